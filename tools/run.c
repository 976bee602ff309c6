/* nst-run: one operation on NumPy files, on the card or the software device, compared with the double reference. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "gpu.h"
#include "half.h"
#include "npy.h"
#include "oracle.h"
#include "rows.h"

enum { EXIT_WRONG_RESULT = 1, EXIT_USAGE = 2, EXIT_DEVICE = 3 };

#define GRAPH_LAUNCHES 100

static const char usage[] =
    "usage: nst-run OP --x FILE -o FILE [option ...]\n"
    "\n"
    "Applies one normalisation to NumPy files (.npy: f16, f32, or bf16 as uint16) and prints what ran.\n"
    "\n"
    "  OP                  rms_norm_fwd, fused_add_rms_norm_fwd, layer_norm_fwd, fused_add_layer_norm_fwd,\n"
    "                      ada_layer_norm_fwd or ada_layer_norm_zero_fwd\n"
    "  --x FILE            input, [..., n]; all dimensions but the last are rows\n"
    "  --residual FILE     second input of the fused_add operations, of x's type and shape\n"
    "  --weight FILE       [n], of x's type or f32; absent: 1 (all but the ada operations)\n"
    "  --weight-offset W   added to the weight; default 0 (rms_norm_fwd, fused_add_rms_norm_fwd)\n"
    "  --bias FILE         [n], of the weight's type; absent: 0 (layer_norm_fwd, fused_add_layer_norm_fwd)\n"
    "  --scale FILE        [..., n], of x's type; absent: 0 (the ada operations)\n"
    "  --shift FILE        as the scale\n"
    "  --gate FILE         as the scale; absent: 1 (ada_layer_norm_zero_fwd)\n"
    "  --rows-per-cond C   rows of x that share a row of scale, shift and gate; default 1 (the ada operations)\n"
    "  --eps E             added to the variance (or mean of squares); default 1e-5 (1e-6 for the rms operations)\n"
    "  --dtype TYPE        f16, bf16 or f32: what x must hold; needed for bf16, which NumPy files hold as uint16\n"
    "  --flags A,B         of round-residual, round-before-weight, dependent-launch, weight-ready\n"
    "  --device WHERE      card, soft (the software device), or auto: the card where there is one; default auto\n"
    "  -o, --y FILE        output, of x's type and shape\n"
    "  --residual-out FILE x + residual (the fused_add operations)\n"
    "  --mean FILE         the mean of each row, f32 (all but the rms operations)\n"
    "  --rstd FILE         1 / sqrt(variance, or mean of squares, + eps) of each row, f32\n"
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
  const char *file[ROWS_TENSORS]; /* NULL: absent */
  nst_dtype dtype;                /* 0: whatever x holds */
  int64_t rows_per_cond;          /* 0: not given */
  float eps, weight_offset;       /* NAN: not given */
  uint32_t flags;
  enum gpu_choice device;
};

/* The option that names a tensor's file. */
static const char *const file_options[ROWS_TENSORS] = {
    [ROWS_X] = "--x",
    [ROWS_RESIDUAL] = "--residual",
    [ROWS_WEIGHT] = "--weight",
    [ROWS_BIAS] = "--bias",
    [ROWS_SCALE] = "--scale",
    [ROWS_SHIFT] = "--shift",
    [ROWS_GATE] = "--gate",
    [ROWS_Y] = "-o",
    [ROWS_RESIDUAL_OUT] = "--residual-out",
    [ROWS_MEAN] = "--mean",
    [ROWS_RSTD] = "--rstd",
};

/* A word and what it stands for. */
struct word {
  const char *name;
  uint32_t value;
};
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
  char expected[256] = "";
  for (const struct word *w = words; w->name; w++) {
    size_t used = strlen(expected);
    snprintf(expected + used, sizeof expected - used, "%s%s", used ? ", " : "", w->name);
  }
  return complain(EXIT_USAGE, "%s is '%.*s'; expected one of %s.", what, (int)length, text, expected);
}

static int parse_word(const char *what, const struct word *words, const char *text, uint32_t *value) {
  return find_word(what, words, text, strlen(text), value);
}

static int parse_op(const char *text, nst_op *op) {
  struct word words[ROWS_OPS + 1] = {{NULL, 0}};
  uint32_t value = 0;
  for (uint32_t i = 0; i < ROWS_OPS; i++) words[i] = (struct word){op_name((nst_op)i), i};
  int status = parse_word("the operation", words, text, &value);
  *op = (nst_op)value;
  return status;
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

static int parse_rows_per_cond(const char *text, int64_t *value) {
  char *end;
  errno = 0;
  const long long number = strtoll(text, &end, 10);
  *value = number;
  if (end == text || *end || errno || number < 1 || number > INT32_MAX)
    return complain(EXIT_USAGE, "--rows-per-cond is '%s'; expected a whole number from 1 to %d.", text, INT32_MAX);
  return 0;
}

/* From OPTION_FILE on: the file of a tensor. */
enum { OPTION_OFFSET = 256, OPTION_PER_COND, OPTION_EPS, OPTION_DTYPE, OPTION_FLAGS, OPTION_DEVICE, OPTION_VERSION,
       OPTION_FILE };
static const struct option options[] = {{"x", required_argument, NULL, OPTION_FILE + ROWS_X},
                                        {"residual", required_argument, NULL, OPTION_FILE + ROWS_RESIDUAL},
                                        {"weight", required_argument, NULL, OPTION_FILE + ROWS_WEIGHT},
                                        {"bias", required_argument, NULL, OPTION_FILE + ROWS_BIAS},
                                        {"scale", required_argument, NULL, OPTION_FILE + ROWS_SCALE},
                                        {"shift", required_argument, NULL, OPTION_FILE + ROWS_SHIFT},
                                        {"gate", required_argument, NULL, OPTION_FILE + ROWS_GATE},
                                        {"y", required_argument, NULL, OPTION_FILE + ROWS_Y},
                                        {"residual-out", required_argument, NULL, OPTION_FILE + ROWS_RESIDUAL_OUT},
                                        {"mean", required_argument, NULL, OPTION_FILE + ROWS_MEAN},
                                        {"rstd", required_argument, NULL, OPTION_FILE + ROWS_RSTD},
                                        {"weight-offset", required_argument, NULL, OPTION_OFFSET},
                                        {"rows-per-cond", required_argument, NULL, OPTION_PER_COND},
                                        {"eps", required_argument, NULL, OPTION_EPS},
                                        {"dtype", required_argument, NULL, OPTION_DTYPE},
                                        {"flags", required_argument, NULL, OPTION_FLAGS},
                                        {"device", required_argument, NULL, OPTION_DEVICE},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, OPTION_VERSION},
                                        {NULL, 0, NULL, 0}};

/* Whether the operation has what the options name; fills in what was not given. */
static int finish_command(struct command *c) {
  const char *op = op_name(c->op);
  for (int i = 0; i < ROWS_TENSORS; i++) {
    const enum rows_tensor tensor = (enum rows_tensor)i;
    if (c->file[i] && !op_has(c->op, tensor))
      return complain(EXIT_USAGE, "%s is given; %s has no %s.", file_options[i], op, rows_tensor_name(tensor));
    if (!c->file[i] && op_needs(c->op, tensor))
      return complain(EXIT_USAGE, "%s is missing; expected the file to %s %s.", file_options[i],
                      i < ROWS_INPUTS ? "read" : "write", rows_tensor_name(tensor));
  }
  if (!isnan(c->weight_offset) && (!op_has(c->op, ROWS_WEIGHT) || op_has(c->op, ROWS_MEAN)))
    return complain(EXIT_USAGE, "--weight-offset is given; %s has no weight_offset.", op);
  if (c->rows_per_cond && !op_has(c->op, ROWS_SCALE))
    return complain(EXIT_USAGE, "--rows-per-cond is given; %s has no rows_per_cond.", op);
  if (isnan(c->weight_offset)) c->weight_offset = 0;
  if (isnan(c->eps)) c->eps = op_eps(c->op);
  if (!c->rows_per_cond) c->rows_per_cond = 1;
  return 0;
}

/* Returns 0 to go on, or an exit status; *done is set when help or the version was asked for. */
static int parse_command(int argc, char **argv, struct command *c, int *done) {
  uint32_t value = 0;
  int status = 0;
  *c = (struct command){.eps = NAN, .weight_offset = NAN, .device = GPU_AUTO};
  for (int option; !status && (option = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
    if (option == 'o') option = OPTION_FILE + ROWS_Y;
    if (option >= OPTION_FILE) {
      c->file[option - OPTION_FILE] = optarg;
      continue;
    }
    switch (option) {
      case OPTION_EPS: status = parse_number("--eps", optarg, &c->eps); break;
      case OPTION_OFFSET: status = parse_number("--weight-offset", optarg, &c->weight_offset); break;
      case OPTION_PER_COND: status = parse_rows_per_cond(optarg, &c->rows_per_cond); break;
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
  status = parse_op(argv[optind], &c->op);
  return status ? status : finish_command(c);
}

/* ---- The files --------------------------------------------------------------------------------------------------- */

/* Everything of one call, on the host and, in rows.tensor, on the device. An absent tensor has no data. */
struct call {
  struct npy array[ROWS_TENSORS];
  struct rows_call rows;
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

static int read_x(const struct command *c, struct call *call) {
  const char *path = c->file[ROWS_X];
  const struct npy *x = &call->array[ROWS_X];
  const nst_dtype dtype = dtype_of(x);
  if (x->type == NPY_U16 && c->dtype != NST_DTYPE_BF16)
    return complain(EXIT_USAGE, "--x: %s holds uint16; expected f16 or f32, or --dtype bf16.", path);
  if (c->dtype && c->dtype != dtype)
    return complain(EXIT_USAGE, "--x: %s holds %s; expected %s because of --dtype %s.", path, npy_type_name(x->type),
                    c->dtype == NST_DTYPE_BF16 ? "uint16" : half_name(c->dtype), half_name(c->dtype));
  const int64_t n = x->dimensions ? x->shape[x->dimensions - 1] : 0;
  char shape[512];
  if (n < 1)
    return complain(EXIT_USAGE, "--x: %s has the shape %s; expected rows of at least one element.", path,
                    shape_text(x, shape, sizeof shape));
  call->rows = (struct rows_call){.op = c->op,
                                  .dtype = dtype,
                                  .rows = (int64_t)x->count / n,
                                  .n = n,
                                  .rows_per_cond = c->rows_per_cond,
                                  .eps = c->eps,
                                  .weight_offset = c->weight_offset,
                                  .flags = c->flags};
  return 0;
}

/* Whether an input has the type that it must have beside those read before it. */
static int check_type(const struct command *c, struct call *call, enum rows_tensor tensor) {
  const struct npy *array = &call->array[tensor], *x = &call->array[ROWS_X];
  const char *option = file_options[tensor], *path = c->file[tensor], *holds = npy_type_name(array->type);
  if (rows_tensor_shape(tensor) != SHAPE_ROW) {
    if (array->type == x->type) return 0;
    return complain(EXIT_USAGE, "%s: %s holds %s; expected %s as in x.", option, path, holds, npy_type_name(x->type));
  }
  if (array->type != x->type && array->type != NPY_F32)
    return complain(EXIT_USAGE, "%s: %s holds %s; expected %s as in x, or f32.", option, path, holds,
                    npy_type_name(x->type));
  if (call->rows.weight_dtype && call->rows.weight_dtype != dtype_of(array))
    return complain(EXIT_USAGE, "%s: %s holds %s; expected %s as in the weight.", option, path, holds,
                    npy_type_name(call->array[ROWS_WEIGHT].type));
  call->rows.weight_dtype = dtype_of(array);
  return 0;
}

static int check_shape(const struct command *c, const struct call *call, enum rows_tensor tensor) {
  const struct npy *array = &call->array[tensor], *x = &call->array[ROWS_X];
  const int64_t n = call->rows.n, conditions = rows_of_cond(call->rows.rows, call->rows.rows_per_cond);
  const int64_t last = array->dimensions ? array->shape[array->dimensions - 1] : 0;
  char shape[512], expected[600] = "";
  switch (rows_tensor_shape(tensor)) {
    case SHAPE_ROW:
      if (array->dimensions != 1 || last != n)
        snprintf(expected, sizeof expected, "[%" PRId64 "] as the rows of x", n);
      break;
    case SHAPE_COND:
      if (last != n || (int64_t)array->count / n != conditions)
        snprintf(expected, sizeof expected,
                 "[..., %" PRId64 "] with %" PRId64 " rows in all, one for each %" PRId64 " of x", n, conditions,
                 call->rows.rows_per_cond);
      break;
    default:
      if (!same_shape(array, x)) snprintf(expected, sizeof expected, "%s as x", shape_text(x, shape, sizeof shape));
  }
  if (!expected[0]) return 0;
  return complain(EXIT_USAGE, "%s: %s has the shape %s; expected %s.", file_options[tensor], c->file[tensor],
                  shape_text(array, shape, sizeof shape), expected);
}

/* Makes room for an output of the type and shape of `like`. */
static int make_output(struct npy *out, const struct npy *like) {
  *out = *like;
  out->data = malloc(like->count ? like->count * npy_type_size(like->type) : 1);
  return out->data ? 0 : complain(EXIT_DEVICE, "there is no room on the host for an output.");
}

static int read_files(const struct command *c, struct call *call) {
  char why[NPY_PATH_SIZE + 512];
  int status = 0;
  for (int i = 0; i < ROWS_INPUTS && !status; i++) {
    const enum rows_tensor tensor = (enum rows_tensor)i;
    if (!c->file[i]) continue;
    if (npy_read(c->file[i], &call->array[i], why, sizeof why))
      return complain(EXIT_USAGE, "%s: %s.", file_options[i], why);
    if (i == ROWS_X)
      status = read_x(c, call);
    else if (!(status = check_type(c, call, tensor)))
      status = check_shape(c, call, tensor);
  }
  const struct npy *x = &call->array[ROWS_X];
  struct npy column = {.type = NPY_F32, .dimensions = x->dimensions - 1, .count = (size_t)call->rows.rows};
  memcpy(column.shape, x->shape, sizeof column.shape);
  for (int i = ROWS_INPUTS; i < ROWS_TENSORS && !status; i++)
    if (c->file[i])
      status = make_output(&call->array[i], rows_tensor_shape((enum rows_tensor)i) == SHAPE_COLUMN ? &column : x);
  return status;
}

/* Writes all outputs, or none. */
static int write_files(const struct command *c, const struct call *call) {
  static char staged[ROWS_TENSORS][NPY_PATH_SIZE];
  char why[NPY_PATH_SIZE + 512];
  int status = 0;
  for (int i = ROWS_INPUTS; i < ROWS_TENSORS && !status; i++)
    if (c->file[i] && npy_stage(c->file[i], &call->array[i], staged[i], why, sizeof why))
      status = complain(EXIT_USAGE, "%s: %s.", file_options[i], why);
  for (int i = ROWS_INPUTS; i < ROWS_TENSORS && !status; i++)
    if (c->file[i] && npy_commit(c->file[i], staged[i], why, sizeof why))
      status = complain(EXIT_USAGE, "%s: %s.", file_options[i], why);
  for (int i = ROWS_INPUTS; i < ROWS_TENSORS; i++) npy_discard(staged[i]);
  return status;
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

/* Device memory for each array; the inputs' data are copied there. */
static int place(struct gpu *g, struct call *call) {
  for (int i = 0; i < ROWS_TENSORS; i++) {
    const struct npy *array = &call->array[i];
    const size_t bytes = array->count * npy_type_size(array->type);
    if (!array->data) continue;
    void *pointer = call->rows.tensor[i] = gpu_alloc(g, bytes);
    if (!pointer) return complain(EXIT_DEVICE, "there is no room on the device for %zu bytes.", bytes);
    const int error = i < ROWS_INPUTS ? gpu_upload(g, pointer, array->data, bytes) : 0;
    if (error) return complain(EXIT_DEVICE, "copying to the device failed with error %d.", error);
  }
  return 0;
}

/* The outputs' data. */
static int fetch(struct gpu *g, struct call *call) {
  for (int i = ROWS_INPUTS; i < ROWS_TENSORS; i++) {
    const struct npy *array = &call->array[i];
    if (!array->data) continue;
    const size_t bytes = array->count * npy_type_size(array->type);
    const int error = gpu_download(g, array->data, call->rows.tensor[i], bytes);
    if (error) return complain(EXIT_DEVICE, "copying from the device failed with error %d.", error);
  }
  return 0;
}

static void free_call(struct gpu *g, struct call *call) {
  for (int i = 0; i < ROWS_TENSORS; i++) {
    npy_free(&call->array[i]);
    gpu_free(g, call->rows.tensor[i]);
  }
}

/* ---- Time on the card -------------------------------------------------------------------------------------------- */

struct repeated {
  const nst_library *library;
  nst_op op;
  const union rows_args *args;
  nst_stream stream;
};

static int launch_again(void *user) {
  const struct repeated *r = user;
  return rows_launch(r->library, r->op, r->args, r->stream) != NST_OK;
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
  const struct npy *y = &call->array[ROWS_Y];
  const int64_t n = call->rows.n, last = call->rows.rows - 1;
  char shape[512];
  printf("y         %s %s\n", half_name(call->rows.dtype), shape_text(y, shape, sizeof shape));
  for (int64_t row = 0; row <= last; row += last ? last : 1) {
    printf("  row %-4" PRId64, row);
    for (int64_t i = 0; i < n && i < 6; i++) printf(" %10.5g", half_load(call->rows.dtype, y->data, row * n + i));
    printf("%s\n", n > 6 ? " ..." : "");
  }
}

static struct oracle_tensor as_oracle(const struct call *call, enum rows_tensor tensor) {
  const struct npy *array = &call->array[tensor];
  return (struct oracle_tensor){.data = array->data, .dtype = dtype_of(array), .stride = call->rows.n};
}

/* Compares with the reference and prints the outcome; returns the exit status. */
static int check(const struct call *call) {
  const struct rows_call *rows = &call->rows;
  const struct oracle_rows in = {.op = rows->op,
                                 .n = rows->n,
                                 .x = as_oracle(call, ROWS_X),
                                 .residual = as_oracle(call, ROWS_RESIDUAL),
                                 .weight = as_oracle(call, ROWS_WEIGHT),
                                 .bias = as_oracle(call, ROWS_BIAS),
                                 .scale = as_oracle(call, ROWS_SCALE),
                                 .shift = as_oracle(call, ROWS_SHIFT),
                                 .gate = as_oracle(call, ROWS_GATE),
                                 .rows_per_cond = rows->rows_per_cond,
                                 .eps = rows->eps,
                                 .weight_offset = rows->weight_offset,
                                 .flags = rows->flags};
  const struct oracle_result result = {.y = as_oracle(call, ROWS_Y),
                                       .residual_out = as_oracle(call, ROWS_RESIDUAL_OUT),
                                       .mean = call->array[ROWS_MEAN].data,
                                       .rstd = call->array[ROWS_RSTD].data};
  struct oracle_report report = ORACLE_REPORT_INIT;
  for (int64_t row = 0; row < rows->rows; row++) oracle_compare(&in, &result, row, &report);
  printf("accuracy  at most %.3f ulp of %s from the result in double precision\n", report.y_ulps,
         half_name(rows->dtype));
  if (!report.wrong) return 0;
  return complain(EXIT_WRONG_RESULT,
                  "%" PRId64 " of %" PRId64 " numbers are wrong; the first is %s[%" PRId64 ", %" PRId64
                  "]: %.9g, expected %.9g within %.3g.",
                  report.wrong, report.compared, report.what, report.row, report.column, report.got, report.expected,
                  report.limit);
}

/* ---- Together ---------------------------------------------------------------------------------------------------- */

static int run_on(struct gpu *g, const struct command *c, struct call *call) {
  int status = place(g, call);
  if (status) return status;
  const union rows_args args = rows_args_of(&call->rows);
  nst_device_facts facts = NST_DEVICE_FACTS_INIT;
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  if (nst_device(g->library, &facts) != NST_OK || nst_explain(c->op, &args, &facts, &info) != NST_OK)
    return complain(EXIT_USAGE, "%s", nst_last_error());
  if (info.grid == 0) {
    printf("launch    nothing: x has no rows\n");
    return write_files(c, call);
  }
  if (rows_launch(g->library, c->op, &args, g->stream) != NST_OK) return complain(EXIT_DEVICE, "%s", nst_last_error());
  int error = gpu_sync(g);
  if (error) return complain(EXIT_DEVICE, "the kernel failed with the driver's error %d.", error);
  if ((status = fetch(g, call))) return status;

  print_launch(g, &info);
  if (g->is_card) {
    struct repeated repeated = {g->library, c->op, &args, g->stream};
    struct chain_times times;
    if (chain_time(g, GRAPH_LAUNCHES, launch_again, &repeated, &times))
      return complain(EXIT_DEVICE, "the launch could not be timed.");
    printf("time      %.2f us on the card, caches warm: %d launches in a graph, the fastest replay\n", times.device_us,
           GRAPH_LAUNCHES);
  }
  print_values(call);
  if ((status = write_files(c, call))) return status;
  return check(call);
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
