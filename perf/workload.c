#include "workload.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

/* As the file of workloads writes them. */
static const char *const published_names[ROWS_OPS] = {
    [NST_OP_RMS_NORM_FWD] = "RMSNormFwd",
    [NST_OP_FUSED_ADD_RMS_NORM_FWD] = "FusedAddRMSNormFwd",
    [NST_OP_LAYER_NORM_FWD] = "LayerNormFwd",
    [NST_OP_FUSED_ADD_LAYER_NORM_FWD] = "FusedAddLayerNormFwd",
    [NST_OP_ADA_LAYER_NORM_FWD] = "AdaLayerNormFwd",
    [NST_OP_ADA_LAYER_NORM_ZERO_FWD] = "AdaLayerNormZeroFwd",
};

int dtype_from_name(const char *name, nst_dtype *dtype) {
  for (int i = NST_DTYPE_F16; i <= NST_DTYPE_F32; i++)
    if (strcmp(half_name((nst_dtype)i), name) == 0) return *dtype = (nst_dtype)i, 1;
  return 0;
}

void workload_init(struct workload *w, nst_op op) {
  memset(w, 0, sizeof *w);
  w->op = op;
  w->rows_per_cond = 1;
  w->eps = op_eps(op);
  for (int i = 0; i <= ROWS_RESIDUAL_OUT; i++) w->has[i] = (unsigned char)op_has(op, (enum rows_tensor)i);
}

struct matrix workload_matrix(const struct workload *w, enum rows_tensor tensor) {
  struct matrix m = {w->rows, w->n, w->n, w->dtype};
  switch (rows_tensor_shape(tensor)) {
    case SHAPE_DATA:
      if (tensor == ROWS_X && w->x_stride) m.stride = w->x_stride;
      break;
    case SHAPE_COND:
      m.rows = rows_of_cond(w->rows, w->rows_per_cond);
      break;
    case SHAPE_ROW:
      m.rows = 1, m.dtype = w->weight_dtype;
      break;
    case SHAPE_COLUMN:
      m.n = m.stride = 1, m.dtype = NST_DTYPE_F32;
      break;
  }
  return m;
}

int64_t matrix_extent(const struct matrix *m) {
  return m->rows > 0 ? ((m->rows - 1) * m->stride + m->n) * (int64_t)half_size(m->dtype) : 0;
}

int64_t workload_bytes(const struct workload *w) {
  int64_t bytes = 0;
  for (int i = 0; w->rows > 0 && i < ROWS_TENSORS; i++) {
    const struct matrix m = workload_matrix(w, (enum rows_tensor)i);
    if (w->has[i]) bytes += m.rows * m.n * (int64_t)half_size(m.dtype);
  }
  return bytes;
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

/* Each row of conditioning is shared by equally many rows of x. */
static int set_rows_per_cond(struct workload *w, const char *name, int64_t rows, struct problem *p) {
  const int64_t per = w->rows / rows;
  if (w->rows % rows != 0)
    return problem(p, "workload %s: tensors.%s has %lld rows, which can't be shared evenly by the %lld of x.", w->id,
                   name, (long long)rows, (long long)w->rows);
  if (w->rows_per_cond && w->rows_per_cond != per)
    return problem(p, "workload %s: tensors.%s has %lld rows, expected %lld as the conditioning before it.", w->id,
                   name, (long long)rows, (long long)(w->rows / w->rows_per_cond));
  w->rows_per_cond = per;
  return 0;
}

/* One of the inputs besides x. */
static int add_tensor(const json_t *json, const char *name, enum rows_tensor tensor, struct workload *w,
                      struct problem *p) {
  int64_t rows, n;
  nst_dtype dtype;
  if (read_shape(json, w->id, name, &rows, &n, p) || read_dtype(json, w->id, name, &dtype, p)) return -1;
  const enum rows_shape shape = rows_tensor_shape(tensor);
  if (n != w->n || (shape == SHAPE_ROW && rows != 1))
    return problem(p, "workload %s: tensors.%s has %lld x %lld elements, expected %lld as in a row of x.", w->id, name,
                   (long long)rows, (long long)n, (long long)w->n);
  w->has[tensor] = 1;
  if (shape == SHAPE_ROW) {
    if ((dtype != w->dtype && dtype != NST_DTYPE_F32) || (w->weight_dtype && dtype != w->weight_dtype))
      return problem(p, "workload %s: tensors.%s.dtype is %s, expected that of x or f32, for weight and bias alike.",
                     w->id, name, half_name(dtype));
    w->weight_dtype = dtype;
    return 0;
  }
  if (dtype != w->dtype || (shape == SHAPE_DATA && rows != w->rows))
    return problem(p, "workload %s: tensors.%s differs from x in shape or dtype.", w->id, name);
  return shape == SHAPE_COND ? set_rows_per_cond(w, name, rows, p) : 0;
}

static int read_tensors(const json_t *tensors, struct workload *w, struct problem *p) {
  const char *name;
  json_t *json;
  const json_t *x = json_object_get(tensors, "x");
  if (!x) return problem(p, "workload %s: tensors.x is missing.", w->id);
  if (read_shape(x, w->id, "x", &w->rows, &w->n, p) || read_dtype(x, w->id, "x", &w->dtype, p)) return -1;
  w->rows_per_cond = 0; /* until a tensor says it */
  for (int i = ROWS_X + 1; i < ROWS_INPUTS; i++) w->has[i] = 0;
  json_object_foreach((json_t *)tensors, name, json) {
    int i = 0;
    while (i < ROWS_INPUTS &&
           !(op_has(w->op, (enum rows_tensor)i) && strcmp(name, rows_tensor_name((enum rows_tensor)i)) == 0))
      i++;
    if (i == ROWS_INPUTS)
      return problem(p, "workload %s: tensors.%s is not an input of %s.", w->id, name, op_name(w->op));
    if (i != ROWS_X && add_tensor(json, name, (enum rows_tensor)i, w, p)) return -1;
  }
  for (int i = 0; i < ROWS_INPUTS; i++)
    if (op_needs(w->op, (enum rows_tensor)i) && !w->has[i])
      return problem(p, "workload %s: tensors.%s is missing.", w->id, rows_tensor_name((enum rows_tensor)i));
  if (!w->weight_dtype) w->weight_dtype = w->dtype;
  if (!w->rows_per_cond) w->rows_per_cond = 1;
  return 0;
}

static int read_params(const json_t *params, struct workload *w, struct problem *p) {
  const char *name;
  json_t *value;
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

static int op_from_published_name(const char *name, nst_op *op) {
  for (int i = 0; i < ROWS_OPS; i++)
    if (strcmp(published_names[i], name) == 0) return *op = (nst_op)i, 1;
  return 0;
}

/* 1: read into *w; 0: left out; -1: a problem. */
static int read_workload(const json_t *item, size_t place, const char *match, struct workload *w, size_t *left_out,
                         struct problem *p) {
  const char *id = json_string_value(json_object_get(item, "id"));
  const char *op = json_string_value(json_object_get(item, "op"));
  nst_op of = NST_OP_RMS_NORM_FWD;
  if (!id || !op) return problem(p, "workload number %zu: \"id\" or \"op\" is missing.", place);
  if (strlen(id) >= sizeof w->id)
    return problem(p, "workload number %zu: its id has %zu characters, expected at most %zu.", place, strlen(id),
                   sizeof w->id - 1);
  if (match && !strstr(id, match)) return 0;
  if (!op_from_published_name(op, &of)) return ++*left_out, 0;
  workload_init(w, of);
  strcpy(w->id, id);
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
