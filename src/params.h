/* What crosses from host to device: one struct by value for each family of kernels. Included by both sides. */
#ifndef NST_PARAMS_H
#define NST_PARAMS_H

#include "normstatic.h"

/*
 * A kernel that normalises rows. Strides are in bytes, 0 with one row. What an operation does not have is NULL and 0;
 * so is an absent tensor, which reads as zeros: the offsets make the factor of an absent one 1.
 */
struct nst_rows_params {
  const void *x;
  const void *residual;
  const void *weight;
  const void *bias;
  const void *scale;
  const void *shift;
  const void *gate;
  void *y;
  void *residual_out;
  float *mean;
  float *rstd;
  int64_t x_stride;
  int64_t residual_stride;
  int64_t scale_stride; /* from a row of conditioning to the next */
  int64_t shift_stride;
  int64_t gate_stride;
  int64_t y_stride;
  int64_t residual_out_stride;
  uint32_t rows;
  uint32_t n;
  uint32_t flags; /* NST_FLAG_* */
  float eps;
  float inv_n;         /* 1 / n, rounded once from double */
  float inv_pivot;     /* the same for the elements of a row's first vector, which are behind the pivot of the layer norms */
  float weight_offset; /* added to the weight: 1 where it is absent */
  float gate_offset;   /* added to the gate: 1 where it is absent, else 0 */
  /* The row of conditioning of row r, r / rows_per_cond, is r * cond_multiplier >> cond_shift in 64 bits. */
  uint32_t cond_multiplier;
  uint32_t cond_shift;
};

#endif
