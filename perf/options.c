#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum option_id {
  OPT_HELP = 256,
  OPT_WORKLOADS,
  OPT_MATCH,
  OPT_OP,
  OPT_DTYPE,
  OPT_WEIGHT_DTYPE,
  OPT_WITHOUT,
  OPT_ROWS_PER_COND,
  OPT_ROWS,
  OPT_N,
  OPT_X_STRIDE,
  OPT_OFFSET,
  OPT_EPS,
  OPT_STRATEGY,
  OPT_KERNEL,
  OPT_ALL_KERNELS,
  OPT_ITERATIONS,
  OPT_NO_HOST,
  OPT_CUPTI,
  OPT_ARCHIVE,
  OPT_JSON,
  OPT_CSV,
  OPT_MARKDOWN,
  OPT_TUNE,
  OPT_SECONDS,
  OPT_OPS,
  OPT_DTYPES,
  OPT_BUCKETS,
  OPT_ACCESSES,
  OPT_ROW_COUNTS
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, OPT_HELP},
    {"workloads", required_argument, NULL, OPT_WORKLOADS},
    {"match", required_argument, NULL, OPT_MATCH},
    {"op", required_argument, NULL, OPT_OP},
    {"dtype", required_argument, NULL, OPT_DTYPE},
    {"weight-dtype", required_argument, NULL, OPT_WEIGHT_DTYPE},
    {"without", required_argument, NULL, OPT_WITHOUT},
    {"rows-per-cond", required_argument, NULL, OPT_ROWS_PER_COND},
    {"rows", required_argument, NULL, OPT_ROWS},
    {"n", required_argument, NULL, OPT_N},
    {"x-stride", required_argument, NULL, OPT_X_STRIDE},
    {"offset", required_argument, NULL, OPT_OFFSET},
    {"eps", required_argument, NULL, OPT_EPS},
    {"strategy", required_argument, NULL, OPT_STRATEGY},
    {"kernel", required_argument, NULL, OPT_KERNEL},
    {"all-kernels", no_argument, NULL, OPT_ALL_KERNELS},
    {"iterations", required_argument, NULL, OPT_ITERATIONS},
    {"no-host", no_argument, NULL, OPT_NO_HOST},
    {"cupti", required_argument, NULL, OPT_CUPTI},
    {"archive", required_argument, NULL, OPT_ARCHIVE},
    {"json", required_argument, NULL, OPT_JSON},
    {"csv", required_argument, NULL, OPT_CSV},
    {"markdown", required_argument, NULL, OPT_MARKDOWN},
    {"tune", required_argument, NULL, OPT_TUNE},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"ops", required_argument, NULL, OPT_OPS},
    {"dtypes", required_argument, NULL, OPT_DTYPES},
    {"buckets", required_argument, NULL, OPT_BUCKETS},
    {"accesses", required_argument, NULL, OPT_ACCESSES},
    {"row-counts", required_argument, NULL, OPT_ROW_COUNTS},
    {NULL, 0, NULL, 0},
};

void options_help(FILE *to) {
  fputs(
      "usage: nst-bench [options]\n"
      "Checks and times normstatic's kernels on the card: device times from CUPTI's kernel records, cold (L2\n"
      "overwritten before each call) and warm, beside the driver's copy of the same bytes.\n"
      "\n"
      "What is timed: the workloads of a file,\n"
      "  --workloads FILE      perf/workloads.json where not given\n"
      "  --match TEXT          those whose id contains TEXT\n"
      "or one shape:\n"
      "  --op OP               rms_norm_fwd, fused_add_rms_norm_fwd, layer_norm_fwd, fused_add_layer_norm_fwd,\n"
      "                        ada_layer_norm_fwd or ada_layer_norm_zero_fwd\n"
      "  --dtype TYPE          f16, bf16 or f32\n"
      "  --weight-dtype TYPE   of weight and bias: f16, bf16 or f32; the data's type where not given\n"
      "  --without L           of weight, bias, scale, shift and gate those that are left out, with commas between\n"
      "  --rows R --n N        [R][N] elements\n"
      "  --rows-per-cond C     rows of x that share a row of scale, shift and gate; 1 where not given\n"
      "  --x-stride S          elements from a row of x to the next; N where not given\n"
      "  --offset E            every tensor starts E elements off a 256-byte boundary\n"
      "  --eps EPS             the operation's default where not given\n"
      "Which kernels: the one that the library chooses, and\n"
      "  --strategy S          those of one strategy: warp, block, persist, reread, cluster, ring, loop\n"
      "  --kernel SYMBOL       one by its name\n"
      "  --all-kernels         all that may serve the shape\n"
      "How:\n"
      "  --iterations I        timed calls of each kind; by size where not given (10 above 1 GB, else 20 or 50)\n"
      "  --no-host             leave out the host's side (opening, first call, time per call)\n"
      "  --cupti FILE          CUPTI's library; searched where not given\n"
      "  --archive FILE        libnormstatic.a, to print its size\n"
      "Results besides the table on the terminal:\n"
      "  --json FILE  --csv FILE  --markdown FILE\n"
      "The tuner:\n"
      "  --tune FILE           times the kernels of each kind of call over numbers of rows and merges the winners "
      "into\n"
      "                        FILE, tuning data for the generator; with --all-kernels the narrowest kernel of each\n"
      "                        strategy is not the only one tried\n"
      "  --ops L --dtypes L --buckets L --accesses L --row-counts L\n"
      "                        lists with commas between, in order of importance\n"
      "  --seconds S           stop after so long\n"
      "Exit status: 0 all went well, 1 not, 2 bad command line, 77 no card.\n",
      to);
}

static int whole(const char *name, const char *text, int64_t low, int64_t high, int64_t *value, struct problem *p) {
  char *end;
  errno = 0;
  const long long v = strtoll(text, &end, 10);
  if (end == text || *end || errno || v < low || v > high)
    return problem(p, "--%s is \"%s\", expected a whole number from %lld to %lld.", name, text, (long long)low,
                   (long long)high);
  *value = v;
  return 0;
}

static int positive(const char *name, const char *text, double low, double *value, struct problem *p) {
  char *end;
  const double v = strtod(text, &end);
  if (end == text || *end || !isfinite(v) || v < low)
    return problem(p, "--%s is \"%s\", expected a number from %g up.", name, text, low);
  *value = v;
  return 0;
}

/* What was given of a shape; the rest follows from the operation, which may come last. */
struct given {
  int op, dtype, rows, n, eps, other;
  nst_dtype weight_dtype;
  int64_t rows_per_cond;
  const char *without;
};

static int parse_op(const char *text, nst_op *op, struct problem *p) {
  char expected[256] = "";
  if (op_from_name(text, op)) return 0;
  for (int i = 0; i < ROWS_OPS; i++) {
    const size_t used = strlen(expected);
    snprintf(expected + used, sizeof expected - used, "%s%s",
             i == 0             ? ""
             : i + 1 < ROWS_OPS ? ", "
                                : " or ",
             op_name((nst_op)i));
  }
  return problem(p, "--op is \"%s\", expected %s.", text, expected);
}

static int parse_dtype(const char *name, const char *text, nst_dtype *dtype, struct problem *p) {
  if (dtype_from_name(text, dtype)) return 0;
  return problem(p, "--%s is \"%s\", expected f16, bf16 or f32.", name, text);
}

static int parse_shape_option(int id, const char *text, struct options *o, struct given *given, struct problem *p) {
  struct workload *w = &o->shape;
  double number;
  switch (id) {
    case OPT_OP:
      given->op = 1;
      return parse_op(text, &w->op, p);
    case OPT_DTYPE:
      given->dtype = 1;
      return parse_dtype("dtype", text, &w->dtype, p);
    case OPT_WEIGHT_DTYPE:
      given->other = 1;
      return parse_dtype("weight-dtype", text, &given->weight_dtype, p);
    case OPT_WITHOUT:
      given->other = 1;
      given->without = text;
      return 0;
    case OPT_ROWS_PER_COND:
      given->other = 1;
      return whole("rows-per-cond", text, 1, INT32_MAX, &given->rows_per_cond, p);
    case OPT_ROWS:
      given->rows = 1;
      return whole("rows", text, 1, INT32_MAX, &w->rows, p);
    case OPT_N:
      given->n = 1;
      return whole("n", text, 1, INT32_MAX, &w->n, p);
    case OPT_X_STRIDE:
      given->other = 1;
      return whole("x-stride", text, 1, (int64_t)1 << 40, &w->x_stride, p);
    case OPT_OFFSET:
      given->other = 1;
      return whole("offset", text, 0, 4096, &w->offset, p);
    default:
      given->eps = given->other = 1;
      if (positive("eps", text, 0, &number, p)) return -1;
      w->eps = (float)number;
      return 0;
  }
}

static int parse_option(int id, const char *text, struct options *o, struct given *given, struct problem *p) {
  int64_t number;
  switch (id) {
    case OPT_WORKLOADS:
      return o->workloads = text, 0;
    case OPT_MATCH:
      return o->match = text, 0;
    case OPT_STRATEGY:
      o->has_strategy = 1;
      if (strategy_from_name(text, &o->strategy)) return 0;
      return problem(p, "--strategy is \"%s\", expected warp, block, persist, reread, cluster, ring or loop.", text);
    case OPT_KERNEL:
      return o->kernel = text, 0;
    case OPT_ALL_KERNELS:
      return o->all_kernels = 1, 0;
    case OPT_ITERATIONS:
      if (whole("iterations", text, 1, 100000, &number, p)) return -1;
      return o->iterations = (int)number, 0;
    case OPT_NO_HOST:
      return o->host = 0, 0;
    case OPT_CUPTI:
      return o->cupti = text, 0;
    case OPT_ARCHIVE:
      return o->archive = text, 0;
    case OPT_JSON:
      return o->json = text, 0;
    case OPT_CSV:
      return o->csv = text, 0;
    case OPT_MARKDOWN:
      return o->markdown = text, 0;
    case OPT_TUNE:
      return o->tune = text, 0;
    case OPT_SECONDS:
      return positive("seconds", text, 0, &o->seconds, p);
    case OPT_OPS:
      return o->ops = text, 0;
    case OPT_DTYPES:
      return o->dtypes = text, 0;
    case OPT_BUCKETS:
      return o->buckets = text, 0;
    case OPT_ACCESSES:
      return o->accesses = text, 0;
    case OPT_ROW_COUNTS:
      return o->row_counts = text, 0;
    default:
      return parse_shape_option(id, text, o, given, p);
  }
}

/* Takes the tensors of a list out of a workload. */
static int leave_out(const char *list, struct workload *w, struct problem *p) {
  for (const char *at = list;; at++) {
    const size_t length = strcspn(at, ",");
    int i = 0;
    for (; i < ROWS_INPUTS; i++) {
      const char *name = rows_tensor_name((enum rows_tensor)i);
      if (op_has(w->op, (enum rows_tensor)i) && !op_needs(w->op, (enum rows_tensor)i) && strlen(name) == length &&
          memcmp(name, at, length) == 0)
        break;
    }
    if (i == ROWS_INPUTS)
      return problem(p, "--without names \"%.*s\", expected inputs that %s can do without.", (int)length, at,
                     op_name(w->op));
    w->has[i] = 0;
    at += length;
    if (!*at) return 0;
  }
}

static int finish_shape(struct options *o, const struct given *given, struct problem *p) {
  struct workload *w = &o->shape;
  o->has_shape = given->op;
  if (!given->op) {
    if (!given->dtype && !given->rows && !given->n && !given->other) return 0;
    return problem(p, "--op is missing: --dtype, --rows, --n and what belongs to them describe one shape of it.");
  }
  if (!given->dtype || !given->rows || !given->n)
    return problem(p, "--%s is missing, expected with --op.", !given->dtype ? "dtype" : !given->rows ? "rows" : "n");
  if (o->match)
    return problem(p, "--match picks workloads of the file, and --op gives one of its own: give one of them.");
  const struct workload said = *w;
  workload_init(w, said.op);
  w->dtype = w->weight_dtype = said.dtype;
  w->rows = said.rows, w->n = said.n, w->x_stride = said.x_stride, w->offset = said.offset;
  if (given->eps) w->eps = said.eps;
  if (given->without && leave_out(given->without, w, p)) return -1;
  if (given->weight_dtype) {
    if (!w->has[ROWS_WEIGHT] && !w->has[ROWS_BIAS])
      return problem(p, "--weight-dtype is given, but neither a weight nor a bias is there.");
    if (given->weight_dtype != w->dtype && given->weight_dtype != NST_DTYPE_F32)
      return problem(p, "--weight-dtype differs from --dtype, expected the same or f32.");
    w->weight_dtype = given->weight_dtype;
  }
  if (given->rows_per_cond) {
    if (!op_has(w->op, ROWS_SCALE))
      return problem(p, "--rows-per-cond is given, but %s has no scale, shift or gate.", op_name(w->op));
    w->rows_per_cond = given->rows_per_cond;
  }
  snprintf(w->id, sizeof w->id, "%s/%s/%lldx%lld", op_name(w->op), types_name(w->dtype, w->weight_dtype),
           (long long)w->rows, (long long)w->n);
  return 0;
}

int options_parse(int argc, char **argv, struct options *o, struct problem *p) {
  memset(o, 0, sizeof *o);
  o->workloads = "perf/workloads.json";
  o->host = 1;
  struct given given = {0};
  optind = 0; /* glibc: start over */
  opterr = 0; /* the sentences are ours */
  for (;;) {
    const int id = getopt_long(argc, argv, "+:", long_options, NULL); /* ends at the first argument that is no option */
    if (id == -1) break;
    if (id == OPT_HELP) return OPTIONS_HELP;
    if (id == ':') return problem(p, "%s needs a value.", argv[optind - 1]);
    if (id == '?') return problem(p, "the option %s is unknown; --help lists them.", argv[optind - 1]);
    if (parse_option(id, optarg, o, &given, p)) return -1;
  }
  if (optind < argc) return problem(p, "the argument \"%s\" is not an option; --help lists them.", argv[optind]);
  if (o->has_strategy + o->all_kernels + (o->kernel != NULL) > 1)
    return problem(p, "--strategy, --kernel and --all-kernels exclude each other.");
  if (o->tune && (given.op || o->match || o->has_strategy || o->kernel))
    return problem(p, "--tune takes --ops, --dtypes, --buckets, --accesses and --row-counts, not one shape or kernel.");
  if (!o->tune && (o->ops || o->dtypes || o->buckets || o->accesses || o->row_counts || o->seconds > 0))
    return problem(p, "--ops, --dtypes, --buckets, --accesses, --row-counts and --seconds belong to --tune.");
  return finish_shape(o, &given, p);
}
