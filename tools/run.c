/* nst-run: one operation on NumPy files, on the card or the software device, compared with the double reference. */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "half.h"
#include "npy.h"
#include "oracle.h"

enum { EXIT_WRONG_RESULT = 1, EXIT_USAGE = 2, EXIT_DEVICE = 3 };

#define GRAPH_LAUNCHES 100
#define GRAPH_RUNS 5

static const char usage[] =
    "usage: nst-run OP --x FILE -o FILE [option ...]\n"
    "\n"
    "Applies one normalisation to NumPy files (.npy: f16, f32, or bf16 as uint16) and prints what ran.\n"
    "\n"
    "  OP                  rms_norm_fwd or fused_add_rms_norm_fwd\n"
    "  --x FILE            input, [..., n]; all dimensions but the last are rows\n"
    "  --residual FILE     second input of fused_add_rms_norm_fwd, of x's type and shape\n"
    "  --weight FILE       [n], of x's type or f32; absent: 1\n"
    "  --weight-offset W   added to the weight; default 0\n"
    "  --eps E             added to the mean of squares; default 1e-6\n"
    "  --dtype TYPE        f16, bf16 or f32: what x must hold; needed for bf16, which NumPy files hold as uint16\n"
    "  --flags A,B         of round-residual, round-before-weight, dependent-launch, weight-ready\n"
    "  --device WHERE      card, soft (the software device), or auto: the card where there is one; default auto\n"
    "  -o, --y FILE        output, of x's type and shape\n"
    "  --residual-out FILE x + residual (fused_add_rms_norm_fwd)\n"
    "  --rstd FILE         1 / sqrt(mean of squares + eps) of each row, f32\n"
    "  -h, --help          this text\n"
    "  --version           version and build id\n"
    "\n"
    "Exit status: 0 the result is right, 1 it differs from the reference by more than it may, 2 the command or a file\n"
    "is wrong, 3 the device failed. Unless it is 0 or 1, no output file is written.\n";

/* ---- Failing ----------------------------------------------------------------------------------------------------- */

/* Prints one sentence and returns the exit status. */
static int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int complain(int status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  fputs("nst-run: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  return status;
}

/* ---- The command line -------------------------------------------------------------------------------------------- */

struct command {
  nst_op op;
  const char *x, *residual, *weight, *y, *residual_out, *rstd; /* files */
  nst_dtype dtype;                                             /* 0: whatever x holds */
  float eps, weight_offset;
  uint32_t flags;
  enum gpu_choice device;
};

/* A word and what it stands for. */
struct word {
  const char *name;
  uint32_t value;
};
static const struct word op_words[] = {{"rms_norm_fwd", NST_OP_RMS_NORM_FWD},
                                       {"fused_add_rms_norm_fwd", NST_OP_FUSED_ADD_RMS_NORM_FWD},
                                       {NULL, 0}};
static const struct word dtype_words[] = {
    {"f16", NST_DTYPE_F16}, {"bf16", NST_DTYPE_BF16}, {"f32", NST_DTYPE_F32}, {NULL, 0}};
static const struct word device_words[] = {{"auto", GPU_AUTO}, {"card", GPU_CARD}, {"soft", GPU_SOFT}, {NULL, 0}};
static const struct word flag_words[] = {{"round-residual", NST_FLAG_ROUND_RESIDUAL},
                                         {"round-before-weight", NST_FLAG_ROUND_BEFORE_WEIGHT},
                                         {"dependent-launch", NST_FLAG_DEPENDENT_LAUNCH},
                                         {"weight-ready", NST_FLAG_WEIGHT_READY},
                                         {NULL, 0}};

/* Finds the word of `length` characters at `text`; returns 0, or the exit status after a sentence. */
static int find_word(const char *what, const struct word *words, const char *text, size_t length, uint32_t *value) {
  for (const struct word *w = words; w->name; w++) {
    if (strlen(w->name) == length && memcmp(w->name, text, length) == 0) {
      *value = w->value;
      return 0;
    }
  }
  char expected[128] = "";
  for (const struct word *w = words; w->name; w++) {
    size_t used = strlen(expected);
    snprintf(expected + used, sizeof expected - used, "%s%s", used ? ", " : "", w->name);
  }
  return complain(EXIT_USAGE, "%s is '%.*s'; expected one of %s.", what, (int)length, text, expected);
}

static int parse_word(const char *what, const struct word *words, const char *text, uint32_t *value) {
  return find_word(what, words, text, strlen(text), value);
}

static int parse_flags(const char *text, uint32_t *flags) {
  for (;;) {
    uint32_t flag;
    size_t length = strcspn(text, ",");
    int status = find_word("--flags", flag_words, text, length, &flag);
    if (status) return status;
    *flags |= flag;
    if (!text[length]) return 0;
    text += length + 1;
  }
}

static int parse_number(const char *what, const char *text, float *value) {
  char *end;
  *value = strtof(text, &end);
  if (end == text || *end || !isfinite(*value))
    return complain(EXIT_USAGE, "%s is '%s'; expected a finite number.", what, text);
  return 0;
}

enum { OPTION_X = 256, OPTION_RESIDUAL, OPTION_WEIGHT, OPTION_OFFSET, OPTION_EPS, OPTION_DTYPE, OPTION_FLAGS,
       OPTION_DEVICE, OPTION_RESIDUAL_OUT, OPTION_RSTD, OPTION_VERSION };
static const struct option options[] = {{"x", required_argument, NULL, OPTION_X},
                                        {"residual", required_argument, NULL, OPTION_RESIDUAL},
                                        {"weight", required_argument, NULL, OPTION_WEIGHT},
                                        {"weight-offset", required_argument, NULL, OPTION_OFFSET},
                                        {"eps", required_argument, NULL, OPTION_EPS},
                                        {"dtype", required_argument, NULL, OPTION_DTYPE},
                                        {"flags", required_argument, NULL, OPTION_FLAGS},
                                        {"device", required_argument, NULL, OPTION_DEVICE},
                                        {"y", required_argument, NULL, 'o'},
                                        {"residual-out", required_argument, NULL, OPTION_RESIDUAL_OUT},
                                        {"rstd", required_argument, NULL, OPTION_RSTD},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, OPTION_VERSION},
                                        {NULL, 0, NULL, 0}};

/* Returns 0 to go on, or an exit status; *done is set when help or the version was asked for. */
static int parse_command(int argc, char **argv, struct command *c, int *done) {
  uint32_t value = 0;
  int status = 0;
  *c = (struct command){.eps = 1e-6f, .device = GPU_AUTO};
  for (int option; !status && (option = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
    switch (option) {
      case OPTION_X: c->x = optarg; break;
      case OPTION_RESIDUAL: c->residual = optarg; break;
      case OPTION_WEIGHT: c->weight = optarg; break;
      case OPTION_RESIDUAL_OUT: c->residual_out = optarg; break;
      case OPTION_RSTD: c->rstd = optarg; break;
      case 'o': c->y = optarg; break;
      case OPTION_EPS: status = parse_number("--eps", optarg, &c->eps); break;
      case OPTION_OFFSET: status = parse_number("--weight-offset", optarg, &c->weight_offset); break;
      case OPTION_FLAGS: status = parse_flags(optarg, &c->flags); break;
      case OPTION_DTYPE:
        status = parse_word("--dtype", dtype_words, optarg, &value);
        c->dtype = (nst_dtype)value;
        break;
      case OPTION_DEVICE:
        status = parse_word("--device", device_words, optarg, &value);
        c->device = (enum gpu_choice)value;
        break;
      case 'h':
        fputs(usage, stdout);
        *done = 1;
        return 0;
      case OPTION_VERSION:
        printf("normstatic %d.%d.%d, build %s\n", NST_VERSION_MAJOR, NST_VERSION_MINOR, NST_VERSION_PATCH,
               nst_build_id());
        *done = 1;
        return 0;
      default: return EXIT_USAGE; /* getopt_long has said why */
    }
  }
  if (status) return status;
  if (optind + 1 != argc)
    return complain(EXIT_USAGE, "expected one operation, got %d; see nst-run --help.", argc - optind);
  if ((status = parse_word("the operation", op_words, argv[optind], &value))) return status;
  c->op = (nst_op)value;
  if (!c->x) return complain(EXIT_USAGE, "--x is missing; expected the file to read x from.");
  if (!c->y) return complain(EXIT_USAGE, "-o is missing; expected the file to write y to.");
  if (c->op == NST_OP_FUSED_ADD_RMS_NORM_FWD && !c->residual)
    return complain(EXIT_USAGE, "--residual is missing; fused_add_rms_norm_fwd adds it to x.");
  if (c->op == NST_OP_RMS_NORM_FWD && (c->residual || c->residual_out))
    return complain(EXIT_USAGE, "%s is given; rms_norm_fwd has no residual.",
                    c->residual ? "--residual" : "--residual-out");
  return 0;
}

/* ---- The files --------------------------------------------------------------------------------------------------- */

/* Everything of one call, on the host and on the device. An absent tensor has no data and a NULL pointer. */
struct call {
  struct npy x, residual, weight, y, residual_out, rstd;
  void *dx, *dresidual, *dweight, *dy, *dresidual_out, *drstd;
  nst_dtype dtype, weight_dtype;
  int64_t rows, n;
};

static nst_dtype dtype_of(const struct npy *array) {
  return array->type == NPY_F16 ? NST_DTYPE_F16 : array->type == NPY_F32 ? NST_DTYPE_F32 : NST_DTYPE_BF16;
}

/* "[2, 4096]" */
static const char *shape_text(const struct npy *array, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int i = 0; i < array->dimensions && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? ", " : "", array->shape[i]);
  if (used < size) snprintf(text + used, size - used, "]");
  return text;
}

static int same_shape(const struct npy *a, const struct npy *b) {
  return a->dimensions == b->dimensions && memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)a->dimensions) == 0;
}

static int read_x(const struct command *c, struct call *call, char *why, size_t why_size) {
  if (npy_read(c->x, &call->x, why, why_size)) return complain(EXIT_USAGE, "--x: %s.", why);
  const struct npy *x = &call->x;
  call->dtype = dtype_of(x);
  if (x->type == NPY_U16 && c->dtype != NST_DTYPE_BF16)
    return complain(EXIT_USAGE, "--x: %s holds uint16; expected f16 or f32, or --dtype bf16.", c->x);
  if (c->dtype && c->dtype != call->dtype)
    return complain(EXIT_USAGE, "--x: %s holds %s; expected %s because of --dtype %s.", c->x, npy_type_name(x->type),
                    c->dtype == NST_DTYPE_BF16 ? "uint16" : half_name(c->dtype), half_name(c->dtype));
  call->n = x->dimensions ? x->shape[x->dimensions - 1] : 0;
  char shape[512];
  if (call->n < 1)
    return complain(EXIT_USAGE, "--x: %s has the shape %s; expected rows of at least one element.", c->x,
                    shape_text(x, shape, sizeof shape));
  call->rows = (int64_t)x->count / call->n;
  return 0;
}

static int read_residual(const struct command *c, struct call *call, char *why, size_t why_size) {
  struct npy *residual = &call->residual;
  if (npy_read(c->residual, residual, why, why_size)) return complain(EXIT_USAGE, "--residual: %s.", why);
  if (residual->type != call->x.type)
    return complain(EXIT_USAGE, "--residual: %s holds %s; expected %s as in x.", c->residual,
                    npy_type_name(residual->type), npy_type_name(call->x.type));
  char shape[512], expected[512];
  if (!same_shape(residual, &call->x))
    return complain(EXIT_USAGE, "--residual: %s has the shape %s; expected %s as x.", c->residual,
                    shape_text(residual, shape, sizeof shape), shape_text(&call->x, expected, sizeof expected));
  return 0;
}

static int read_weight(const struct command *c, struct call *call, char *why, size_t why_size) {
  struct npy *weight = &call->weight;
  if (npy_read(c->weight, weight, why, why_size)) return complain(EXIT_USAGE, "--weight: %s.", why);
  if (weight->type != call->x.type && weight->type != NPY_F32)
    return complain(EXIT_USAGE, "--weight: %s holds %s; expected %s as in x, or f32.", c->weight,
                    npy_type_name(weight->type), npy_type_name(call->x.type));
  char shape[512];
  if (weight->dimensions != 1 || weight->shape[0] != call->n)
    return complain(EXIT_USAGE, "--weight: %s has the shape %s; expected [%" PRId64 "] as the rows of x.", c->weight,
                    shape_text(weight, shape, sizeof shape), call->n);
  call->weight_dtype = dtype_of(weight);
  return 0;
}

/* Makes room for an output of the type and shape of `like`. */
static int make_output(struct npy *out, const struct npy *like) {
  *out = *like;
  out->data = malloc(like->count ? like->count * npy_type_size(like->type) : 1);
  return out->data ? 0 : complain(EXIT_DEVICE, "there is no room on the host for an output.");
}

static int read_files(const struct command *c, struct call *call) {
  char why[NPY_PATH_SIZE + 512];
  int status = read_x(c, call, why, sizeof why);
  if (!status && c->residual) status = read_residual(c, call, why, sizeof why);
  if (!status && c->weight) status = read_weight(c, call, why, sizeof why);
  if (!status) status = make_output(&call->y, &call->x);
  if (!status && c->residual_out) status = make_output(&call->residual_out, &call->x);
  if (!status && c->rstd) {
    struct npy like = {.type = NPY_F32, .dimensions = call->x.dimensions - 1, .count = (size_t)call->rows};
    memcpy(like.shape, call->x.shape, sizeof like.shape);
    status = make_output(&call->rstd, &like);
  }
  return status;
}

/* Writes all outputs, or none. */
static int write_files(const struct command *c, const struct call *call) {
  const struct {
    const char *option, *path;
    const struct npy *array;
  } files[] = {{"-o", c->y, &call->y},
               {"--residual-out", c->residual_out, &call->residual_out},
               {"--rstd", c->rstd, &call->rstd}};
  enum { COUNT = sizeof files / sizeof files[0] };
  static char staged[COUNT][NPY_PATH_SIZE];
  char why[NPY_PATH_SIZE + 512];
  int status = 0;
  for (int i = 0; i < COUNT && !status; i++)
    if (files[i].path && npy_stage(files[i].path, files[i].array, staged[i], why, sizeof why))
      status = complain(EXIT_USAGE, "%s: %s.", files[i].option, why);
  for (int i = 0; i < COUNT && !status; i++)
    if (files[i].path && npy_commit(files[i].path, staged[i], why, sizeof why))
      status = complain(EXIT_USAGE, "%s: %s.", files[i].option, why);
  for (int i = 0; i < COUNT; i++) npy_discard(staged[i]);
  return status;
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

/* The args struct of the operation, on device pointers. */
union args {
  nst_rms_norm_fwd_args rms;
  nst_fused_add_rms_norm_fwd_args fused;
};

static union args make_args(const struct command *c, const struct call *call) {
  union args args;
  if (c->op == NST_OP_RMS_NORM_FWD) {
    args.rms = (nst_rms_norm_fwd_args)NST_RMS_NORM_FWD_ARGS_INIT;
    args.rms.dtype = call->dtype, args.rms.weight_dtype = call->weight_dtype;
    args.rms.rows = call->rows, args.rms.n = call->n;
    args.rms.x = call->dx, args.rms.weight = call->dweight, args.rms.y = call->dy, args.rms.rstd = call->drstd;
    args.rms.eps = c->eps, args.rms.weight_offset = c->weight_offset, args.rms.flags = c->flags;
  } else {
    args.fused = (nst_fused_add_rms_norm_fwd_args)NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT;
    args.fused.dtype = call->dtype, args.fused.weight_dtype = call->weight_dtype;
    args.fused.rows = call->rows, args.fused.n = call->n;
    args.fused.x = call->dx, args.fused.residual = call->dresidual, args.fused.weight = call->dweight;
    args.fused.y = call->dy, args.fused.residual_out = call->dresidual_out, args.fused.rstd = call->drstd;
    args.fused.eps = c->eps, args.fused.weight_offset = c->weight_offset, args.fused.flags = c->flags;
  }
  return args;
}

static nst_status launch(struct gpu *g, nst_op op, const union args *args) {
  return op == NST_OP_RMS_NORM_FWD ? nst_rms_norm_fwd(g->library, &args->rms, g->stream)
                                   : nst_fused_add_rms_norm_fwd(g->library, &args->fused, g->stream);
}

/* Device memory for an array; an input's data are copied there. */
static int place(struct gpu *g, const struct npy *array, int is_input, void **pointer) {
  if (!array->data) return 0;
  size_t bytes = array->count * npy_type_size(array->type);
  *pointer = gpu_alloc(g, bytes);
  if (!*pointer) return complain(EXIT_DEVICE, "there is no room on the device for %zu bytes.", bytes);
  int error = is_input ? gpu_upload(g, *pointer, array->data, bytes) : 0;
  return error ? complain(EXIT_DEVICE, "copying to the device failed with error %d.", error) : 0;
}

static int fetch(struct gpu *g, struct npy *array, const void *pointer) {
  if (!array->data) return 0;
  int error = gpu_download(g, array->data, pointer, array->count * npy_type_size(array->type));
  return error ? complain(EXIT_DEVICE, "copying from the device failed with error %d.", error) : 0;
}

static void free_call(struct gpu *g, struct call *call) {
  struct npy *const arrays[] = {&call->x, &call->residual, &call->weight, &call->y, &call->residual_out, &call->rstd};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) npy_free(arrays[i]);
  void *const pointers[] = {call->dx, call->dresidual, call->dweight, call->dy, call->dresidual_out, call->drstd};
  for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) gpu_free(g, pointers[i]);
}

/* ---- Time on the card -------------------------------------------------------------------------------------------- */

/* Entry points for graphs and events, which the software device has no use for. */
struct timer {
  int (*StreamBeginCapture)(void *stream, int mode);
  int (*StreamEndCapture)(void *stream, void **graph);
  int (*GraphInstantiate)(void **executable, void *graph, unsigned long long flags);
  int (*GraphLaunch)(void *executable, void *stream);
  int (*GraphExecDestroy)(void *executable);
  int (*GraphDestroy)(void *graph);
  int (*EventCreate)(void **event, unsigned flags);
  int (*EventRecord)(void *event, void *stream);
  int (*EventElapsedTime)(float *milliseconds, void *start, void *end);
  int (*EventDestroy)(void *event);
};

static int find_timer(const struct gpu *g, struct timer *t) {
  struct {
    const char *name;
    void *to;
  } const entries[] = {
      {"cuStreamBeginCapture", &t->StreamBeginCapture}, {"cuStreamEndCapture", &t->StreamEndCapture},
      {"cuGraphInstantiateWithFlags", &t->GraphInstantiate}, {"cuGraphLaunch", &t->GraphLaunch},
      {"cuGraphExecDestroy", &t->GraphExecDestroy}, {"cuGraphDestroy", &t->GraphDestroy},
      {"cuEventCreate", &t->EventCreate}, {"cuEventRecord", &t->EventRecord},
      {"cuEventElapsedTime", &t->EventElapsedTime}, {"cuEventDestroy", &t->EventDestroy}};
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    void *function = gpu_proc(g, entries[i].name);
    if (!function) return -1;
    memcpy(entries[i].to, &function, sizeof function);
  }
  return 0;
}

/* The time of one launch in microseconds, or a negative number where it can't be taken. The launches are recorded into
 * a graph, since launched one by one a short kernel would wait for the host; of several replays the fastest counts. */
static double time_launch(struct gpu *g, nst_op op, const union args *args) {
  struct timer t;
  void *graph = NULL, *executable = NULL, *start = NULL, *end = NULL;
  double best = -1;
  const int thread_local_mode = 1;
  if (find_timer(g, &t) || t.StreamBeginCapture(g->stream, thread_local_mode)) return best;
  int failed = 0;
  for (int i = 0; i < GRAPH_LAUNCHES && !failed; i++) failed = launch(g, op, args) != NST_OK;
  failed |= t.StreamEndCapture(g->stream, &graph) != 0;
  failed = failed || t.GraphInstantiate(&executable, graph, 0) || t.EventCreate(&start, 0) || t.EventCreate(&end, 0);
  for (int i = 0; i <= GRAPH_RUNS && !failed; i++) {
    float milliseconds;
    failed = t.EventRecord(start, g->stream) || t.GraphLaunch(executable, g->stream) ||
             t.EventRecord(end, g->stream) || gpu_sync(g) || t.EventElapsedTime(&milliseconds, start, end);
    double one = failed ? best : 1e3 * (double)milliseconds / GRAPH_LAUNCHES;
    if (i > 0 && (best < 0 || one < best)) best = one; /* the first replay warms up */
  }
  if (start) t.EventDestroy(start);
  if (end) t.EventDestroy(end);
  if (executable) t.GraphExecDestroy(executable);
  if (graph) t.GraphDestroy(graph);
  return failed ? -1 : best;
}

/* ---- Reporting --------------------------------------------------------------------------------------------------- */

static void print_launch(const struct gpu *g, const nst_launch_info *info) {
  const nst_kernel_info *k = &info->kernel;
  printf("device    %s%s\n", g->name, g->is_card ? "" : " (no card is used, no time is taken)");
  printf("kernel    %s\n", k->symbol);
  printf("launch    %" PRIu32 " blocks of %" PRIu32 " threads", info->grid, k->threads);
  if (k->cluster > 1) printf(", clusters of %" PRIu32, k->cluster);
  printf(", %" PRIu32 " vectors of 16 bytes a thread, %" PRIu32 " bytes of shared memory\n", k->vectors,
         k->shared_bytes);
  printf("choice    row %zu of the table, %s\n", k->index, info->choice);
}

/* The first values of the first and the last row. */
static void print_values(const struct call *call) {
  char shape[512];
  printf("y         %s %s\n", half_name(call->dtype), shape_text(&call->y, shape, sizeof shape));
  const int64_t last = call->rows - 1;
  for (int64_t row = 0; row <= last; row += last ? last : 1) {
    printf("  row %-4" PRId64, row);
    for (int64_t i = 0; i < call->n && i < 6; i++)
      printf(" %10.5g", half_load(call->dtype, call->y.data, row * call->n + i));
    printf("%s\n", call->n > 6 ? " ..." : "");
  }
}

static struct oracle_tensor as_oracle(const struct npy *array, nst_dtype dtype, int64_t stride) {
  return (struct oracle_tensor){.data = array->data, .dtype = dtype, .stride = stride};
}

/* Compares with the reference and prints the outcome; returns the exit status. */
static int check(const struct command *c, const struct call *call) {
  const struct oracle_rms in = {.n = call->n,
                                .x = as_oracle(&call->x, call->dtype, call->n),
                                .residual = as_oracle(&call->residual, call->dtype, call->n),
                                .weight = as_oracle(&call->weight, call->weight_dtype, 0),
                                .eps = c->eps,
                                .weight_offset = c->weight_offset,
                                .flags = c->flags};
  const struct oracle_rms_result result = {.y = as_oracle(&call->y, call->dtype, call->n),
                                           .residual_out = as_oracle(&call->residual_out, call->dtype, call->n),
                                           .rstd = call->rstd.data};
  struct oracle_report report = ORACLE_REPORT_INIT;
  for (int64_t row = 0; row < call->rows; row++) oracle_rms_compare(&in, &result, row, &report);
  printf("accuracy  at most %.3f ulp of %s from the result in double precision\n", report.y_ulps,
         half_name(call->dtype));
  if (!report.wrong) return 0;
  return complain(EXIT_WRONG_RESULT,
                  "%" PRId64 " of %" PRId64 " numbers are wrong; the first is %s[%" PRId64 ", %" PRId64
                  "]: %.9g, expected %.9g within %.3g.",
                  report.wrong, report.compared, report.what, report.row, report.column, report.got, report.expected,
                  report.limit);
}

/* ---- Together ---------------------------------------------------------------------------------------------------- */

static int run_on(struct gpu *g, const struct command *c, struct call *call) {
  int status = 0;
  if ((status = place(g, &call->x, 1, &call->dx)) || (status = place(g, &call->residual, 1, &call->dresidual)) ||
      (status = place(g, &call->weight, 1, &call->dweight)) || (status = place(g, &call->y, 0, &call->dy)) ||
      (status = place(g, &call->residual_out, 0, &call->dresidual_out)) ||
      (status = place(g, &call->rstd, 0, &call->drstd)))
    return status;

  const union args args = make_args(c, call);
  nst_device_facts facts = NST_DEVICE_FACTS_INIT;
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  if (nst_device(g->library, &facts) != NST_OK || nst_explain(c->op, &args, &facts, &info) != NST_OK)
    return complain(EXIT_USAGE, "%s", nst_last_error());
  if (info.grid == 0) {
    printf("launch    nothing: x has no rows\n");
    return write_files(c, call);
  }
  if (launch(g, c->op, &args) != NST_OK) return complain(EXIT_DEVICE, "%s", nst_last_error());
  int error = gpu_sync(g);
  if (error) return complain(EXIT_DEVICE, "the kernel failed with the driver's error %d.", error);
  if ((status = fetch(g, &call->y, call->dy)) || (status = fetch(g, &call->residual_out, call->dresidual_out)) ||
      (status = fetch(g, &call->rstd, call->drstd)))
    return status;

  print_launch(g, &info);
  if (g->is_card) {
    double microseconds = time_launch(g, c->op, &args);
    if (microseconds < 0) return complain(EXIT_DEVICE, "the launch could not be timed.");
    printf("time      %.2f us on the card, caches warm: %d launches in a graph, best of %d\n", microseconds,
           GRAPH_LAUNCHES, GRAPH_RUNS);
  }
  print_values(call);
  if ((status = write_files(c, call))) return status;
  return check(c, call);
}

int main(int argc, char **argv) {
  struct command c;
  int done = 0;
  int status = parse_command(argc, argv, &c, &done);
  if (status || done) return status;

  struct call call;
  memset(&call, 0, sizeof call);
  struct gpu g;
  memset(&g, 0, sizeof g);
  status = read_files(&c, &call);
  char why[512];
  if (!status && gpu_open(&g, c.device, why, sizeof why)) status = complain(EXIT_DEVICE, "%s.", why);
  if (!status) {
    if (g.notice[0]) fprintf(stderr, "nst-run: the software device is used: %s.\n", g.notice);
    status = run_on(&g, &c, &call);
  }
  free_call(&g, &call);
  if (g.library) gpu_close(&g);
  if (!status && (fflush(stdout) || ferror(stdout)))
    return complain(EXIT_DEVICE, "the report can't be written to standard output.");
  return status;
}
