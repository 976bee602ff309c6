/*
 * The operations on rows, for programs that handle all of them alike: names, which tensors each has, and calls as one
 * struct instead of one for each operation.
 */
#ifndef NST_TOOLS_ROWS_H
#define NST_TOOLS_ROWS_H

#include <stdint.h>

#include "normstatic.h"

/* Every tensor that an operation on rows can have, the inputs first. */
enum rows_tensor {
  ROWS_X,
  ROWS_RESIDUAL,
  ROWS_WEIGHT,
  ROWS_BIAS,
  ROWS_SCALE,
  ROWS_SHIFT,
  ROWS_GATE,
  ROWS_INPUTS, /* their number */
  ROWS_Y = ROWS_INPUTS,
  ROWS_RESIDUAL_OUT,
  ROWS_MEAN,
  ROWS_RSTD,
  ROWS_TENSORS
};

enum rows_shape {
  SHAPE_DATA, /* [rows][n] of the data type, with a stride */
  SHAPE_COND, /* [ceil(rows / rows_per_cond)][n] of the data type, with a stride */
  SHAPE_ROW,  /* [n] of the weight's type */
  SHAPE_COLUMN /* [rows] of f32 */
};

/* A call; tensors that are absent, or that the operation does not have, are NULL. */
struct rows_call {
  nst_op op;
  nst_dtype dtype;
  nst_dtype weight_dtype; /* 0: dtype */
  int64_t rows, n;
  int64_t rows_per_cond; /* 0: 1 */
  void *tensor[ROWS_TENSORS];
  int64_t stride[ROWS_TENSORS]; /* elements; 0: dense; of tensors without a stride unused */
  float eps, weight_offset;
  uint32_t flags;
};

/* The args struct of any operation on rows. */
union rows_args {
  size_t size;
  nst_rms_norm_fwd_args rms_norm;
  nst_fused_add_rms_norm_fwd_args fused_add_rms_norm;
  nst_layer_norm_fwd_args layer_norm;
  nst_fused_add_layer_norm_fwd_args fused_add_layer_norm;
  nst_ada_layer_norm_fwd_args ada_layer_norm;
  nst_ada_layer_norm_zero_fwd_args ada_layer_norm_zero;
};

#define ROWS_OPS 6 /* nst_op 0 to 5 */

/* "x", "residual", ... as in the args structs. */
const char *rows_tensor_name(enum rows_tensor tensor);
enum rows_shape rows_tensor_shape(enum rows_tensor tensor);

/* Whether an operation has a tensor, and whether it may not be absent. */
int op_has(nst_op op, enum rows_tensor tensor);
int op_needs(nst_op op, enum rows_tensor tensor);

/* The default of eps in the operation's *_ARGS_INIT. */
float op_eps(nst_op op);

/* The rows of conditioning of a call. */
int64_t rows_of_cond(int64_t rows, int64_t rows_per_cond);

/* The call as the args struct of its operation; rows_args_of(c).size is that struct's size. */
union rows_args rows_args_of(const struct rows_call *call);

/* The operation's public function. */
nst_status rows_launch(const nst_library *library, nst_op op, const union rows_args *args, nst_stream stream);

/* Names, as in kernels and on command lines ("rms_norm_fwd", "bf16w32", "block", "exact"). The *_from_name return 0
 * where the name is unknown. */
const char *op_name(nst_op op);
int op_from_name(const char *name, nst_op *op);
const char *types_name(nst_dtype dtype, nst_dtype weight_dtype);
const char *strategy_name(nst_strategy strategy);
int strategy_from_name(const char *name, nst_strategy *strategy);
const char *access_name(nst_access access);

#endif
