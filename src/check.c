/* Arguments: one converter for each operation's public struct, one set of checks for all operations on rows. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "internal.h"

#define LARGEST INT32_MAX /* of rows and n */

/* ---- What operations and tensors are ------------------------------------------------------------------------- */

enum shape {
  ROWS,  /* [rows][n] of the data type, with a stride */
  COND,  /* [ceil(rows / rows_per_cond)][n] of the data type, with a stride */
  ROW,   /* [n] of the weight's type */
  COLUMN /* [rows] of f32 */
};

static const struct tensor_facts {
  const char *name;
  enum shape shape;
  bool in_place; /* an input that an output may take the place of */
} tensor_facts[NST_TENSOR_COUNT] = {
    [NST_TENSOR_X] = {"x", ROWS, true},
    [NST_TENSOR_RESIDUAL] = {"residual", ROWS, true},
    [NST_TENSOR_WEIGHT] = {"weight", ROW, false},
    [NST_TENSOR_BIAS] = {"bias", ROW, false},
    [NST_TENSOR_SCALE] = {"scale", COND, false},
    [NST_TENSOR_SHIFT] = {"shift", COND, false},
    [NST_TENSOR_GATE] = {"gate", COND, false},
    [NST_TENSOR_Y] = {"y", ROWS, false},
    [NST_TENSOR_RESIDUAL_OUT] = {"residual_out", ROWS, false},
    [NST_TENSOR_MEAN] = {"mean", COLUMN, false},
    [NST_TENSOR_RSTD] = {"rstd", COLUMN, false},
};

#define BIT(tensor) (1u << NST_TENSOR_##tensor)
#define COMMON_FLAGS (NST_FLAG_ROUND_BEFORE_WEIGHT | NST_FLAG_DEPENDENT_LAUNCH)

/* Members of the args structs go by the same names everywhere. */
#define TAKE(tensor, member) (call->tensors[NST_TENSOR_##tensor] = (struct nst_tensor){args->member, 0})
#define TAKE_ROWS(tensor, member) \
  (call->tensors[NST_TENSOR_##tensor] = (struct nst_tensor){args->member, args->member##_stride})
#define TAKE_COMMON                                                                           \
  (call->dtype = args->dtype, call->flags = args->flags, call->rows = args->rows, call->n = args->n, \
   call->eps = args->eps, TAKE_ROWS(X, x), TAKE_ROWS(Y, y), TAKE(RSTD, rstd))
#define TAKE_WEIGHT (call->weight_dtype = args->weight_dtype, TAKE(WEIGHT, weight))
#define TAKE_RESIDUAL (TAKE_ROWS(RESIDUAL, residual), TAKE_ROWS(RESIDUAL_OUT, residual_out))
#define TAKE_COND (call->rows_per_cond = args->rows_per_cond, TAKE_ROWS(SCALE, scale), TAKE_ROWS(SHIFT, shift))

static void from_rms_norm_fwd(struct nst_rows_call *call, const void *public_args) {
  const nst_rms_norm_fwd_args *args = public_args;
  TAKE_COMMON, TAKE_WEIGHT;
  call->weight_offset = args->weight_offset;
}

static void from_fused_add_rms_norm_fwd(struct nst_rows_call *call, const void *public_args) {
  const nst_fused_add_rms_norm_fwd_args *args = public_args;
  TAKE_COMMON, TAKE_WEIGHT, TAKE_RESIDUAL;
  call->weight_offset = args->weight_offset;
}

static void from_layer_norm_fwd(struct nst_rows_call *call, const void *public_args) {
  const nst_layer_norm_fwd_args *args = public_args;
  TAKE_COMMON, TAKE_WEIGHT, TAKE(BIAS, bias), TAKE(MEAN, mean);
}

static void from_fused_add_layer_norm_fwd(struct nst_rows_call *call, const void *public_args) {
  const nst_fused_add_layer_norm_fwd_args *args = public_args;
  TAKE_COMMON, TAKE_WEIGHT, TAKE(BIAS, bias), TAKE(MEAN, mean), TAKE_RESIDUAL;
}

static void from_ada_layer_norm_fwd(struct nst_rows_call *call, const void *public_args) {
  const nst_ada_layer_norm_fwd_args *args = public_args;
  TAKE_COMMON, TAKE(MEAN, mean), TAKE_COND;
}

static void from_ada_layer_norm_zero_fwd(struct nst_rows_call *call, const void *public_args) {
  const nst_ada_layer_norm_zero_fwd_args *args = public_args;
  TAKE_COMMON, TAKE(MEAN, mean), TAKE_COND, TAKE_ROWS(GATE, gate);
}

static const struct op_facts {
  const char *name;
  size_t size;       /* of its args struct */
  uint32_t required; /* tensors that must be there */
  uint32_t optional; /* tensors that may be there */
  uint32_t flags;    /* that it knows */
  /* Sets all but op, where they differ from 0, and no tensors but the operation's own. */
  void (*convert)(struct nst_rows_call *call, const void *public_args);
} op_facts[NST_OP_COUNT] = {
    [NST_OP_RMS_NORM_FWD] = {"nst_rms_norm_fwd", sizeof(nst_rms_norm_fwd_args), BIT(X) | BIT(Y),
                             BIT(WEIGHT) | BIT(RSTD), COMMON_FLAGS | NST_FLAG_WEIGHT_READY, from_rms_norm_fwd},
    [NST_OP_FUSED_ADD_RMS_NORM_FWD] = {"nst_fused_add_rms_norm_fwd", sizeof(nst_fused_add_rms_norm_fwd_args),
                                       BIT(X) | BIT(RESIDUAL) | BIT(Y), BIT(WEIGHT) | BIT(RESIDUAL_OUT) | BIT(RSTD),
                                       COMMON_FLAGS | NST_FLAG_WEIGHT_READY | NST_FLAG_ROUND_RESIDUAL,
                                       from_fused_add_rms_norm_fwd},
    [NST_OP_LAYER_NORM_FWD] = {"nst_layer_norm_fwd", sizeof(nst_layer_norm_fwd_args), BIT(X) | BIT(Y),
                               BIT(WEIGHT) | BIT(BIAS) | BIT(MEAN) | BIT(RSTD), COMMON_FLAGS | NST_FLAG_WEIGHT_READY,
                               from_layer_norm_fwd},
    [NST_OP_FUSED_ADD_LAYER_NORM_FWD] = {"nst_fused_add_layer_norm_fwd", sizeof(nst_fused_add_layer_norm_fwd_args),
                                         BIT(X) | BIT(RESIDUAL) | BIT(Y),
                                         BIT(WEIGHT) | BIT(BIAS) | BIT(RESIDUAL_OUT) | BIT(MEAN) | BIT(RSTD),
                                         COMMON_FLAGS | NST_FLAG_WEIGHT_READY | NST_FLAG_ROUND_RESIDUAL,
                                         from_fused_add_layer_norm_fwd},
    [NST_OP_ADA_LAYER_NORM_FWD] = {"nst_ada_layer_norm_fwd", sizeof(nst_ada_layer_norm_fwd_args), BIT(X) | BIT(Y),
                                   BIT(SCALE) | BIT(SHIFT) | BIT(MEAN) | BIT(RSTD), COMMON_FLAGS,
                                   from_ada_layer_norm_fwd},
    [NST_OP_ADA_LAYER_NORM_ZERO_FWD] = {"nst_ada_layer_norm_zero_fwd", sizeof(nst_ada_layer_norm_zero_fwd_args),
                                        BIT(X) | BIT(Y), BIT(SCALE) | BIT(SHIFT) | BIT(GATE) | BIT(MEAN) | BIT(RSTD),
                                        COMMON_FLAGS, from_ada_layer_norm_zero_fwd},
};

/* ---- Scalars ------------------------------------------------------------------------------------------------- */

static nst_status check_flags(const struct nst_rows_call *call) {
  const struct op_facts *op = &op_facts[call->op];
  uint32_t unknown = call->flags & ~(COMMON_FLAGS | (uint32_t)NST_FLAG_ROUND_RESIDUAL | NST_FLAG_WEIGHT_READY);
  if (unknown) {
    return nst_fail(NST_ERROR_FLAGS, "flags = 0x%" PRIx32 ": 0x%" PRIx32 " is unknown, expected NST_FLAG_* alone",
                    call->flags, unknown);
  }
  if (call->flags & ~op->flags) {
    bool residual = call->flags & ~op->flags & NST_FLAG_ROUND_RESIDUAL;
    return nst_fail(NST_ERROR_FLAGS, "flags = 0x%" PRIx32 ": %s, and %s has no %s", call->flags,
                    residual ? "NST_FLAG_ROUND_RESIDUAL is for fused-add operations"
                             : "NST_FLAG_WEIGHT_READY is for operations with a weight",
                    op->name, residual ? "residual" : "weight");
  }
  return nst_fail(NST_ERROR_FLAGS,
                  "flags = 0x%" PRIx32 ": NST_FLAG_WEIGHT_READY is expected only beside NST_FLAG_DEPENDENT_LAUNCH",
                  call->flags);
}

static nst_status check_scalars(struct nst_rows_call *call, struct nst_rows_facts *facts) {
  uint32_t flags = call->flags;
  bool lone_weight_ready = (flags & (NST_FLAG_WEIGHT_READY | NST_FLAG_DEPENDENT_LAUNCH)) == NST_FLAG_WEIGHT_READY;
  if ((flags & ~op_facts[call->op].flags) | lone_weight_ready) {
    return check_flags(call);
  }
  if (call->dtype < NST_DTYPE_F16 || call->dtype > NST_DTYPE_F32) {
    return nst_fail(NST_ERROR_DTYPE,
                    "dtype = %d: expected NST_DTYPE_F16 (%d), NST_DTYPE_BF16 (%d) or NST_DTYPE_F32 (%d)",
                    (int)call->dtype, NST_DTYPE_F16, NST_DTYPE_BF16, NST_DTYPE_F32);
  }
  if (call->weight_dtype != 0 && call->weight_dtype != call->dtype && call->weight_dtype != NST_DTYPE_F32) {
    return nst_fail(NST_ERROR_DTYPE, "weight_dtype = %d: expected dtype (%d), NST_DTYPE_F32 (%d) or 0 for dtype",
                    (int)call->weight_dtype, (int)call->dtype, NST_DTYPE_F32);
  }
  if (call->rows < 0 || call->rows > LARGEST) {
    return nst_fail(NST_ERROR_SHAPE, "rows = %" PRId64 ": expected 0 to %d", call->rows, LARGEST);
  }
  if (call->n < 1 || call->n > LARGEST) {
    return nst_fail(NST_ERROR_SHAPE, "n = %" PRId64 ": expected 1 to %d", call->n, LARGEST);
  }
  if (call->rows_per_cond < 0 || call->rows_per_cond > LARGEST) {
    return nst_fail(NST_ERROR_SHAPE, "rows_per_cond = %" PRId64 ": expected 1 to %d, or 0 for 1", call->rows_per_cond,
                    LARGEST);
  }
  if (!isfinite(call->eps) || call->eps < 0) {
    return nst_fail(NST_ERROR_VALUE, "eps = %g: expected a finite number, 0 or greater", (double)call->eps);
  }
  if (!isfinite(call->weight_offset)) {
    return nst_fail(NST_ERROR_VALUE, "weight_offset = %g: expected a finite number", (double)call->weight_offset);
  }
  /* The cells that read f32 weights beside 16-bit data follow those with one type. Without a weight and bias
   * their type does not matter. */
  bool has_parameters = call->tensors[NST_TENSOR_WEIGHT].pointer || call->tensors[NST_TENSOR_BIAS].pointer;
  if (call->weight_dtype == 0 || !has_parameters) {
    call->weight_dtype = call->dtype;
  }
  call->rows_per_cond += call->rows_per_cond == 0;
  facts->types = (uint32_t)call->dtype - NST_DTYPE_F16 + NST_TYPES_F16W32 * (call->weight_dtype != call->dtype);
  return NST_OK;
}

_Static_assert(NST_TYPES_BF16 - NST_TYPES_F16 == NST_DTYPE_BF16 - NST_DTYPE_F16 &&
                   NST_TYPES_F32 - NST_TYPES_F16 == NST_DTYPE_F32 - NST_DTYPE_F16 &&
                   NST_TYPES_BF16W32 - NST_TYPES_F16W32 == NST_DTYPE_BF16 - NST_DTYPE_F16 && NST_TYPES_F16 == 0,
               "check_scalars computes the types from the data types");

/* ---- Tensors, one by one ------------------------------------------------------------------------------------- */

/* The number of a tensor's rows. */
static int64_t rows_of(const struct nst_rows_call *call, enum shape shape) {
  int64_t rows = call->rows;
  return shape == ROWS ? rows : shape == COND ? (rows - 1) / call->rows_per_cond + 1 : 1;
}

static nst_status fail_absent(const struct nst_rows_call *call, const char *name) {
  return nst_fail(NST_ERROR_NULL_POINTER, "%s is NULL: expected a tensor of rows = %" PRId64 ", n = %" PRId64, name,
                  call->rows, call->n);
}

static nst_status fail_stride(const struct nst_rows_call *call, uint32_t tensor, int64_t stride) {
  const char *name = tensor_facts[tensor].name;
  if (stride < 0) {
    return nst_fail(NST_ERROR_STRIDE, "%s_stride = %" PRId64 ": expected 0 (dense) or more", name, stride);
  }
  if (tensor >= NST_TENSOR_INPUTS && stride < call->n) {
    return nst_fail(NST_ERROR_STRIDE,
                    "%s_stride = %" PRId64 ": expected at least n = %" PRId64
                    ", since rows of %s that are written must not overlap",
                    name, stride, call->n, name);
  }
  return nst_fail(NST_ERROR_STRIDE,
                  "%s_stride = %" PRId64 ": expected the rows, %" PRId64 ", to fit the address space behind %s", name,
                  stride, rows_of(call, tensor_facts[tensor].shape), name);
}

static nst_status fail_end(const struct nst_rows_call *call, const char *name, const void *pointer) {
  return nst_fail(NST_ERROR_SHAPE,
                  "%s = %p: expected rows = %" PRId64 ", n = %" PRId64 " to fit the address space behind it", name,
                  pointer, call->rows, call->n);
}

/* Works out where the tensors lie. A row's bytes can't overflow: rows and n are below 2^31, elements at most 4 bytes.
 */
static nst_status place_tensors(const struct nst_rows_call *call, struct nst_rows_facts *facts) {
  uint32_t required = op_facts[call->op].required;
  uint32_t known = required | op_facts[call->op].optional;
  int64_t data_element = call->dtype == NST_DTYPE_F32 ? 4 : 2;
  int64_t element_of[] = {[ROWS] = data_element,
                          [COND] = data_element,
                          [ROW] = call->weight_dtype == NST_DTYPE_F32 ? 4 : 2,
                          [COLUMN] = 4};
  uintptr_t bits = (uintptr_t)(call->n * data_element);
  for (uint32_t i = 0; i < NST_TENSOR_COUNT; i++) {
    const struct nst_tensor *tensor = &call->tensors[i];
    const struct tensor_facts *kind = &tensor_facts[i];
    struct nst_place *place = &facts->places[i];
    *place = (struct nst_place){0, 0, 0, 1};
    if (!(known >> i & 1)) {
      continue;
    }
    if (!tensor->pointer) {
      if (required >> i & 1) {
        return fail_absent(call, kind->name);
      }
      continue;
    }
    int64_t element = element_of[kind->shape];
    int64_t length = kind->shape == COLUMN ? call->rows : call->n;
    int64_t rows = rows_of(call, kind->shape);
    int64_t last = 0; /* bytes from the first row to the last */
    place->rows = rows;
    if (rows > 1) {
      int64_t stride = tensor->stride ? tensor->stride : call->n;
      int64_t least = i >= NST_TENSOR_INPUTS ? call->n : 1;
      if (stride < least || __builtin_mul_overflow(stride, element, &place->stride_bytes) ||
          __builtin_mul_overflow(place->stride_bytes, rows - 1, &last)) {
        return fail_stride(call, i, stride);
      }
    }
    place->begin = (uintptr_t)tensor->pointer;
    if (place->begin & (uintptr_t)(element - 1)) {
      return nst_fail(NST_ERROR_ALIGNMENT, "%s = %p: expected a multiple of %d, the bytes of an element", kind->name,
                      tensor->pointer, (int)element);
    }
    if (__builtin_add_overflow(place->begin, (uintptr_t)last, &place->end)) {
      return fail_stride(call, i, tensor->stride ? tensor->stride : call->n);
    }
    if (__builtin_add_overflow(place->end, (uintptr_t)(length * element), &place->end)) {
      return fail_end(call, kind->name, tensor->pointer);
    }
    bits |= kind->shape == COLUMN ? 0 : place->begin | (uintptr_t)place->stride_bytes;
  }
  facts->aligned = (bits & 15) == 0;
  return NST_OK;
}

const char *nst_first_unaligned(const struct nst_rows_facts *facts) {
  for (int i = 0; i < NST_TENSOR_COUNT; i++) {
    const struct nst_place *place = &facts->places[i];
    if (tensor_facts[i].shape != COLUMN && ((place->begin | (uintptr_t)place->stride_bytes) & 15)) {
      return tensor_facts[i].name;
    }
  }
  return "n";
}

/* ---- Overlaps ------------------------------------------------------------------------------------------------ */

static uintptr_t row_bytes(const struct nst_place *place) {
  return place->end - place->begin - (uintptr_t)(place->stride_bytes * (place->rows - 1));
}

/* No gaps between the rows: the tensor is one block of bytes. */
static bool is_block(const struct nst_place *place) {
  return (uintptr_t)place->stride_bytes <= row_bytes(place);
}

/* Whether a tensor without gaps touches a row of a strided one; the byte ranges of the two intersect. */
static bool touches(const struct nst_place *block, const struct nst_place *strided) {
  if (block->begin < strided->begin) {
    return true;
  }
  uintptr_t stride = (uintptr_t)strided->stride_bytes;
  uintptr_t offset = block->begin - strided->begin;
  uintptr_t row = offset / stride;
  if (offset % stride < row_bytes(strided)) {
    return true;
  }
  /* It begins in the gap after `row`, so there is a next row: otherwise the ranges would not intersect. */
  return block->end > strided->begin + (row + 1) * stride;
}

/* Whether two tensors whose byte ranges intersect have a byte in common. */
static bool overlap(const struct nst_place *a, const struct nst_place *b) {
  bool a_is_block = is_block(a);
  bool b_is_block = is_block(b);
  if (a_is_block || b_is_block) {
    return (a_is_block && b_is_block) || (a_is_block ? touches(a, b) : touches(b, a));
  }
  if (a->stride_bytes != b->stride_bytes) {
    return true; /* not worth deciding: taken as an overlap */
  }
  /* Slices of one tensor, such as q and k of fused rows: seen from a row of `a`, where does a row of `b` begin? */
  uintptr_t stride = (uintptr_t)a->stride_bytes;
  uintptr_t offset =
      b->begin >= a->begin ? (b->begin - a->begin) % stride : (stride - (a->begin - b->begin) % stride) % stride;
  return offset < row_bytes(a) || offset + row_bytes(b) > stride;
}

static bool same_place(const struct nst_place *a, const struct nst_place *b) {
  return a->begin == b->begin && a->stride_bytes == b->stride_bytes;
}

static nst_status check_pair(const struct nst_rows_call *call, const struct nst_rows_facts *facts, int output,
                             int other) {
  const struct nst_place *a = &facts->places[output];
  const struct nst_place *b = &facts->places[other];
  bool in_place = tensor_facts[output].shape == ROWS && tensor_facts[other].in_place;
  if ((in_place && same_place(a, b)) || !overlap(a, b)) {
    return NST_OK;
  }
  const char *a_name = tensor_facts[output].name;
  const char *b_name = tensor_facts[other].name;
  return nst_fail(NST_ERROR_OVERLAP,
                  "%s = %p (%" PRId64 " bytes from row to row) overlaps %s = %p (%" PRId64
                  " bytes): expected %s to lie apart from %s%s",
                  a_name, call->tensors[output].pointer, a->stride_bytes, b_name, call->tensors[other].pointer,
                  b->stride_bytes, a_name, b_name, in_place ? ", or to have its very pointer and stride" : "");
}

/* Every output against every input and against the outputs before it. An absent tensor's range, 0 to 0, meets none. */
static nst_status check_overlaps(const struct nst_rows_call *call, const struct nst_rows_facts *facts) {
  const struct nst_place *places = facts->places;
  for (int i = NST_TENSOR_INPUTS; i < NST_TENSOR_COUNT; i++) {
    for (int j = 0; j < i; j++) {
      if (places[i].begin < places[j].end && places[j].begin < places[i].end) {
        nst_status status = check_pair(call, facts, i, j);
        if (status != NST_OK) {
          return status;
        }
      }
    }
  }
  return NST_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------------------- */

nst_status nst_check_rows(nst_op op, const void *args, struct nst_rows_call *call, struct nst_rows_facts *facts) {
  if ((uint32_t)op >= NST_OP_COUNT) {
    return nst_fail(NST_ERROR_OP, "op = %d: expected 0 to %d, an NST_OP_* value", (int)op, NST_OP_COUNT - 1);
  }
  const struct op_facts *kind = &op_facts[op];
  if (!args) {
    return nst_fail(NST_ERROR_NULL_POINTER, "args is NULL: expected a %s_args", kind->name);
  }
  size_t size;
  memcpy(&size, args, sizeof size); /* the first member of every args struct */
  if (size != kind->size) {
    return nst_fail(NST_ERROR_STRUCT_SIZE, "size = %zu: expected sizeof(%s_args) = %zu", size, kind->name, kind->size);
  }
  /* What is looked at whether the operation has it or not. */
  call->op = op;
  call->weight_dtype = (nst_dtype)0;
  call->rows_per_cond = 0;
  call->weight_offset = 0;
  call->tensors[NST_TENSOR_WEIGHT] = call->tensors[NST_TENSOR_BIAS] = (struct nst_tensor){NULL, 0};
  kind->convert(call, args);
  nst_status status = check_scalars(call, facts);
  facts->aligned = 1;
  if (status != NST_OK || call->rows == 0) {
    return status;
  }
  status = place_tensors(call, facts);
  return status == NST_OK ? check_overlaps(call, facts) : status;
}
