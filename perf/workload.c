#include "workload.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

/* An operation grows into the bench by a line here and its tensors in measure.c and check.c. */
static const struct {
  nst_op op;
  const char *name, *published_name;
  int adds_residual;
} ops[] = {
    {NST_OP_RMS_NORM_FWD, "rms_norm_fwd", "RMSNormFwd", 0},
    {NST_OP_FUSED_ADD_RMS_NORM_FWD, "fused_add_rms_norm_fwd", "FusedAddRMSNormFwd", 1},
};
enum { OP_COUNT = sizeof ops / sizeof ops[0] };

static const struct {
  nst_dtype dtype;
  const char *name, *with_f32_weight;
} dtypes[] = {
    {NST_DTYPE_F16, "f16", "f16w32"},
    {NST_DTYPE_BF16, "bf16", "bf16w32"},
    {NST_DTYPE_F32, "f32", "f32"},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

static const char *const strategies[] = {"warp", "block", "persist", "reread", "cluster", "ring", "loop"};
enum { STRATEGY_COUNT = sizeof strategies / sizeof strategies[0] };
static const char *const accesses[] = {"exact", "masked", "unaligned"};

const char *op_name(nst_op op) {
  for (int i = 0; i < OP_COUNT; i++)
    if (ops[i].op == op) return ops[i].name;
  return "unknown";
}

int op_from_name(const char *name, nst_op *op) {
  for (int i = 0; i < OP_COUNT; i++)
    if (strcmp(ops[i].name, name) == 0 || strcmp(ops[i].published_name, name) == 0) return *op = ops[i].op, 1;
  return 0;
}

int op_adds_residual(nst_op op) {
  for (int i = 0; i < OP_COUNT; i++)
    if (ops[i].op == op) return ops[i].adds_residual;
  return 0;
}

int dtype_from_name(const char *name, nst_dtype *dtype) {
  for (int i = 0; i < DTYPE_COUNT; i++)
    if (strcmp(dtypes[i].name, name) == 0) return *dtype = dtypes[i].dtype, 1;
  return 0;
}

const char *types_name(nst_dtype dtype, nst_dtype weight_dtype) {
  for (int i = 0; i < DTYPE_COUNT; i++)
    if (dtypes[i].dtype == dtype) return weight_dtype == NST_DTYPE_F32 ? dtypes[i].with_f32_weight : dtypes[i].name;
  return "unknown";
}

const char *strategy_name(nst_strategy strategy) {
  return (unsigned)strategy < STRATEGY_COUNT ? strategies[strategy] : "unknown";
}

int strategy_from_name(const char *name, nst_strategy *strategy) {
  for (int i = 0; i < STRATEGY_COUNT; i++)
    if (strcmp(strategies[i], name) == 0) return *strategy = (nst_strategy)i, 1;
  return 0;
}

const char *access_name(nst_access access) {
  return (unsigned)access < sizeof accesses / sizeof accesses[0] ? accesses[access] : "unknown";
}

int64_t workload_bytes(const struct workload *w) {
  const int64_t tensors = op_adds_residual(w->op) ? 4 : 2; /* x, y and, with a residual, residual and residual_out */
  const int64_t weight = w->has_weight ? w->n * (int64_t)half_size(w->weight_dtype) : 0;
  return w->rows > 0 ? tensors * w->rows * w->n * (int64_t)half_size(w->dtype) + weight : 0;
}

int64_t workload_x_extent(const struct workload *w) {
  const int64_t stride = w->x_stride ? w->x_stride : w->n;
  return w->rows > 0 ? ((w->rows - 1) * stride + w->n) * (int64_t)half_size(w->dtype) : 0;
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

/* The product of all dimensions but the last becomes rows. */
static int read_shape(const json_t *tensor, const char *id, const char *name, int64_t *rows, int64_t *n,
                      struct problem *p) {
  const json_t *shape = json_object_get(tensor, "shape");
  const size_t count = json_array_size(shape);
  if (count == 0)
    return problem(p, "workload %s: tensors.%s.shape is missing or empty, expected a list of sizes.", id, name);
  *rows = 1;
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_array_get(shape, i);
    const int64_t size = json_integer_value(item);
    if (!json_is_integer(item) || size < 1 || size > INT32_MAX)
      return problem(p, "workload %s: tensors.%s.shape[%zu] is not a whole number from 1 to 2147483647.", id, name, i);
    if (i + 1 == count)
      *n = size;
    else if (*rows > INT32_MAX / size)
      return problem(p, "workload %s: tensors.%s.shape has more than 2147483647 rows.", id, name);
    else
      *rows *= size;
  }
  return 0;
}

static int read_dtype(const json_t *tensor, const char *id, const char *name, nst_dtype *dtype, struct problem *p) {
  const char *text = json_string_value(json_object_get(tensor, "dtype"));
  if (text && dtype_from_name(text, dtype)) return 0;
  return problem(p, "workload %s: tensors.%s.dtype is %s, expected f16, bf16 or f32.", id, name,
                 text ? text : "missing");
}

static int read_tensors(const json_t *tensors, struct workload *w, struct problem *p) {
  const char *name;
  json_t *tensor;
  const json_t *x = json_object_get(tensors, "x");
  if (!x) return problem(p, "workload %s: tensors.x is missing.", w->id);
  if (read_shape(x, w->id, "x", &w->rows, &w->n, p) || read_dtype(x, w->id, "x", &w->dtype, p)) return -1;
  w->weight_dtype = w->dtype;
  int has_residual = 0;
  json_object_foreach((json_t *)tensors, name, tensor) {
    int64_t rows, n;
    nst_dtype dtype;
    if (strcmp(name, "x") == 0) continue;
    if (read_shape(tensor, w->id, name, &rows, &n, p) || read_dtype(tensor, w->id, name, &dtype, p)) return -1;
    if (strcmp(name, "weight") == 0) {
      if (rows != 1 || n != w->n)
        return problem(p, "workload %s: tensors.weight has %lld x %lld elements, expected %lld as in a row of x.",
                       w->id, (long long)rows, (long long)n, (long long)w->n);
      w->has_weight = 1;
      w->weight_dtype = dtype;
    } else if (strcmp(name, "residual") == 0 && op_adds_residual(w->op)) {
      if (rows != w->rows || n != w->n || dtype != w->dtype)
        return problem(p, "workload %s: tensors.residual differs from x in shape or dtype.", w->id);
      has_residual = 1;
    } else {
      return problem(p, "workload %s: tensors.%s is not a tensor of %s.", w->id, name, op_name(w->op));
    }
  }
  if (op_adds_residual(w->op) && !has_residual) return problem(p, "workload %s: tensors.residual is missing.", w->id);
  return 0;
}

static int read_params(const json_t *params, struct workload *w, struct problem *p) {
  const char *name;
  json_t *value;
  w->eps = 1e-6f;
  json_object_foreach((json_t *)params, name, value) {
    if (strcmp(name, "eps") != 0)
      return problem(p, "workload %s: params.%s is not a parameter of %s.", w->id, name, op_name(w->op));
    if (!json_is_number(value) || !(json_number_value(value) >= 0 && json_number_value(value) < 1e30))
      return problem(p, "workload %s: params.eps is not a number from 0 up.", w->id);
    w->eps = (float)json_number_value(value);
  }
  return 0;
}

static void read_published(const json_t *published, struct workload *w) {
  const char *name;
  json_t *time;
  w->published_us = json_number_value(json_object_get(published, "time_us"));
  json_object_foreach(json_object_get(published, "alternatives_us"), name, time) {
    const double us = json_number_value(time);
    if (us <= 0 || (w->alternative[0] && us >= w->alternative_us)) continue;
    w->alternative[0] = 0;
    strncat(w->alternative, name, sizeof w->alternative - 1);
    w->alternative_us = us;
  }
}

/* 1: read into *w; 0: left out; -1: a problem. */
static int read_workload(const json_t *item, size_t place, const char *match, struct workload *w, size_t *left_out,
                         struct problem *p) {
  const char *id = json_string_value(json_object_get(item, "id"));
  const char *op = json_string_value(json_object_get(item, "op"));
  memset(w, 0, sizeof *w);
  if (!id || !op) return problem(p, "workload number %zu: \"id\" or \"op\" is missing.", place);
  if (strlen(id) >= sizeof w->id)
    return problem(p, "workload number %zu: its id has %zu characters, expected at most %zu.", place, strlen(id),
                   sizeof w->id - 1);
  strcpy(w->id, id);
  if (match && !strstr(id, match)) return 0;
  if (!op_from_name(op, &w->op)) return ++*left_out, 0;
  if (read_tensors(json_object_get(item, "tensors"), w, p) || read_params(json_object_get(item, "params"), w, p))
    return -1;
  read_published(json_object_get(item, "published"), w);
  return 1;
}

int workloads_load(const char *path, const char *match, struct workload_list *list, struct problem *p) {
  json_error_t error;
  memset(list, 0, sizeof *list);
  json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    if (error.line < 1) return problem(p, "%s: can't be read (%s).", path, error.text);
    return problem(p, "%s: line %d, column %d: is not JSON (%s).", path, error.line, error.column, error.text);
  }
  const json_t *items = json_object_get(root, "workloads");
  int failed = 0;
  if (!json_is_array(items)) {
    failed = problem(p, "%s: has no list \"workloads\".", path);
  } else if (!(list->items = calloc(json_array_size(items) + 1, sizeof *list->items))) {
    failed = problem(p, "out of memory for %zu workloads.", json_array_size(items));
  }
  for (size_t i = 0; !failed && i < json_array_size(items); i++) {
    struct problem inner;
    const int got =
        read_workload(json_array_get(items, i), i + 1, match, &list->items[list->count], &list->left_out, &inner);
    if (got < 0) failed = problem(p, "%s: %.400s", path, inner.text);
    if (got > 0) list->count++;
  }
  json_decref(root);
  if (failed) workloads_free(list);
  return failed;
}

void workloads_free(struct workload_list *list) {
  free(list->items);
  memset(list, 0, sizeof *list);
}
