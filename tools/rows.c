#include "rows.h"

#include <string.h>

#include "half.h"

#define BIT(tensor) (1u << ROWS_##tensor)

static const struct {
  const char *name;
  enum rows_shape shape;
} tensors[ROWS_TENSORS] = {
    [ROWS_X] = {"x", SHAPE_DATA},           [ROWS_RESIDUAL] = {"residual", SHAPE_DATA},
    [ROWS_WEIGHT] = {"weight", SHAPE_ROW},  [ROWS_BIAS] = {"bias", SHAPE_ROW},
    [ROWS_SCALE] = {"scale", SHAPE_COND},   [ROWS_SHIFT] = {"shift", SHAPE_COND},
    [ROWS_GATE] = {"gate", SHAPE_COND},     [ROWS_Y] = {"y", SHAPE_DATA},
    [ROWS_MEAN] = {"mean", SHAPE_COLUMN},   [ROWS_RESIDUAL_OUT] = {"residual_out", SHAPE_DATA},
    [ROWS_RSTD] = {"rstd", SHAPE_COLUMN},
};

static const struct {
  const char *name;
  float eps;
  uint32_t needs; /* tensors that must be there */
  uint32_t more;  /* tensors that may be there */
} ops[ROWS_OPS] = {
    [NST_OP_RMS_NORM_FWD] = {"rms_norm_fwd", 1e-6f, BIT(X) | BIT(Y), BIT(WEIGHT) | BIT(RSTD)},
    [NST_OP_FUSED_ADD_RMS_NORM_FWD] = {"fused_add_rms_norm_fwd", 1e-6f, BIT(X) | BIT(RESIDUAL) | BIT(Y),
                                       BIT(WEIGHT) | BIT(RESIDUAL_OUT) | BIT(RSTD)},
    [NST_OP_LAYER_NORM_FWD] = {"layer_norm_fwd", 1e-5f, BIT(X) | BIT(Y),
                               BIT(WEIGHT) | BIT(BIAS) | BIT(MEAN) | BIT(RSTD)},
    [NST_OP_FUSED_ADD_LAYER_NORM_FWD] = {"fused_add_layer_norm_fwd", 1e-5f, BIT(X) | BIT(RESIDUAL) | BIT(Y),
                                         BIT(WEIGHT) | BIT(BIAS) | BIT(RESIDUAL_OUT) | BIT(MEAN) | BIT(RSTD)},
    [NST_OP_ADA_LAYER_NORM_FWD] = {"ada_layer_norm_fwd", 1e-5f, BIT(X) | BIT(Y),
                                   BIT(SCALE) | BIT(SHIFT) | BIT(MEAN) | BIT(RSTD)},
    [NST_OP_ADA_LAYER_NORM_ZERO_FWD] = {"ada_layer_norm_zero_fwd", 1e-5f, BIT(X) | BIT(Y),
                                        BIT(SCALE) | BIT(SHIFT) | BIT(GATE) | BIT(MEAN) | BIT(RSTD)},
};

static const char *const strategies[] = {"warp", "block", "persist", "reread", "cluster", "ring", "loop"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

const char *rows_tensor_name(enum rows_tensor tensor) { return tensors[tensor].name; }
enum rows_shape rows_tensor_shape(enum rows_tensor tensor) { return tensors[tensor].shape; }

int op_needs(nst_op op, enum rows_tensor tensor) { return ops[op].needs >> tensor & 1; }
int op_has(nst_op op, enum rows_tensor tensor) { return (ops[op].needs | ops[op].more) >> tensor & 1; }
float op_eps(nst_op op) { return ops[op].eps; }

int64_t rows_of_cond(int64_t rows, int64_t rows_per_cond) {
  return rows_per_cond > 1 ? rows / rows_per_cond + (rows % rows_per_cond != 0) : rows;
}

/* Members that several structs have under the same name. */
#define SET_COMMON(a, c)                                                                                        \
  ((a)->dtype = (c)->dtype, (a)->rows = (c)->rows, (a)->n = (c)->n, (a)->x = (c)->tensor[ROWS_X],               \
   (a)->x_stride = (c)->stride[ROWS_X], (a)->y = (c)->tensor[ROWS_Y], (a)->y_stride = (c)->stride[ROWS_Y],      \
   (a)->rstd = (c)->tensor[ROWS_RSTD], (a)->eps = (c)->eps, (a)->flags = (c)->flags)
#define SET_RESIDUAL(a, c)                                                                             \
  ((a)->residual = (c)->tensor[ROWS_RESIDUAL], (a)->residual_stride = (c)->stride[ROWS_RESIDUAL],      \
   (a)->residual_out = (c)->tensor[ROWS_RESIDUAL_OUT], (a)->residual_out_stride = (c)->stride[ROWS_RESIDUAL_OUT])
#define SET_WEIGHT(a, c) ((a)->weight = (c)->tensor[ROWS_WEIGHT], (a)->weight_dtype = (c)->weight_dtype)
#define SET_AFFINE(a, c) \
  (SET_WEIGHT(a, c), (a)->bias = (c)->tensor[ROWS_BIAS], (a)->mean = (c)->tensor[ROWS_MEAN])
#define SET_COND(a, c)                                                                                   \
  ((a)->rows_per_cond = (c)->rows_per_cond, (a)->mean = (c)->tensor[ROWS_MEAN],                          \
   (a)->scale = (c)->tensor[ROWS_SCALE], (a)->scale_stride = (c)->stride[ROWS_SCALE],                    \
   (a)->shift = (c)->tensor[ROWS_SHIFT], (a)->shift_stride = (c)->stride[ROWS_SHIFT])

union rows_args rows_args_of(const struct rows_call *call) {
  union rows_args args;
  memset(&args, 0, sizeof args);
  switch (call->op) {
    case NST_OP_RMS_NORM_FWD:
      args.rms_norm = (nst_rms_norm_fwd_args)NST_RMS_NORM_FWD_ARGS_INIT;
      SET_COMMON(&args.rms_norm, call);
      SET_WEIGHT(&args.rms_norm, call);
      args.rms_norm.weight_offset = call->weight_offset;
      break;
    case NST_OP_FUSED_ADD_RMS_NORM_FWD:
      args.fused_add_rms_norm = (nst_fused_add_rms_norm_fwd_args)NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT;
      SET_COMMON(&args.fused_add_rms_norm, call);
      SET_RESIDUAL(&args.fused_add_rms_norm, call);
      SET_WEIGHT(&args.fused_add_rms_norm, call);
      args.fused_add_rms_norm.weight_offset = call->weight_offset;
      break;
    case NST_OP_LAYER_NORM_FWD:
      args.layer_norm = (nst_layer_norm_fwd_args)NST_LAYER_NORM_FWD_ARGS_INIT;
      SET_COMMON(&args.layer_norm, call);
      SET_AFFINE(&args.layer_norm, call);
      break;
    case NST_OP_FUSED_ADD_LAYER_NORM_FWD:
      args.fused_add_layer_norm = (nst_fused_add_layer_norm_fwd_args)NST_FUSED_ADD_LAYER_NORM_FWD_ARGS_INIT;
      SET_COMMON(&args.fused_add_layer_norm, call);
      SET_RESIDUAL(&args.fused_add_layer_norm, call);
      SET_AFFINE(&args.fused_add_layer_norm, call);
      break;
    case NST_OP_ADA_LAYER_NORM_FWD:
      args.ada_layer_norm = (nst_ada_layer_norm_fwd_args)NST_ADA_LAYER_NORM_FWD_ARGS_INIT;
      SET_COMMON(&args.ada_layer_norm, call);
      SET_COND(&args.ada_layer_norm, call);
      break;
    case NST_OP_ADA_LAYER_NORM_ZERO_FWD:
      args.ada_layer_norm_zero = (nst_ada_layer_norm_zero_fwd_args)NST_ADA_LAYER_NORM_ZERO_FWD_ARGS_INIT;
      SET_COMMON(&args.ada_layer_norm_zero, call);
      SET_COND(&args.ada_layer_norm_zero, call);
      args.ada_layer_norm_zero.gate = call->tensor[ROWS_GATE];
      args.ada_layer_norm_zero.gate_stride = call->stride[ROWS_GATE];
      break;
  }
  return args;
}

nst_status rows_launch(const nst_library *library, nst_op op, const union rows_args *args, nst_stream stream) {
  switch (op) {
    case NST_OP_RMS_NORM_FWD: return nst_rms_norm_fwd(library, &args->rms_norm, stream);
    case NST_OP_FUSED_ADD_RMS_NORM_FWD: return nst_fused_add_rms_norm_fwd(library, &args->fused_add_rms_norm, stream);
    case NST_OP_LAYER_NORM_FWD: return nst_layer_norm_fwd(library, &args->layer_norm, stream);
    case NST_OP_FUSED_ADD_LAYER_NORM_FWD:
      return nst_fused_add_layer_norm_fwd(library, &args->fused_add_layer_norm, stream);
    case NST_OP_ADA_LAYER_NORM_FWD: return nst_ada_layer_norm_fwd(library, &args->ada_layer_norm, stream);
    case NST_OP_ADA_LAYER_NORM_ZERO_FWD:
      return nst_ada_layer_norm_zero_fwd(library, &args->ada_layer_norm_zero, stream);
  }
  return NST_ERROR_OP;
}

const char *op_name(nst_op op) { return (size_t)op < COUNT(ops) ? ops[op].name : "?"; }

int op_from_name(const char *name, nst_op *op) {
  for (size_t i = 0; i < COUNT(ops); i++)
    if (strcmp(ops[i].name, name) == 0) return *op = (nst_op)i, 1;
  return 0;
}

const char *types_name(nst_dtype dtype, nst_dtype weight_dtype) {
  if (dtype == weight_dtype) return half_name(dtype);
  return dtype == NST_DTYPE_F16 ? "f16w32" : "bf16w32";
}

const char *strategy_name(nst_strategy strategy) {
  return (size_t)strategy < COUNT(strategies) ? strategies[strategy] : "?";
}

int strategy_from_name(const char *name, nst_strategy *strategy) {
  for (size_t i = 0; i < COUNT(strategies); i++)
    if (strcmp(strategies[i], name) == 0) return *strategy = (nst_strategy)i, 1;
  return 0;
}

const char *access_name(nst_access access) {
  static const char *const names[] = {"exact", "masked", "unaligned"};
  return (size_t)access < COUNT(names) ? names[access] : "?";
}
