/* What crosses from host to device: one struct by value for each family of kernels. Included by both sides. */
#ifndef NST_PARAMS_H
#define NST_PARAMS_H

#include "normstatic.h"

/* A kernel that normalises rows. Strides are in bytes, 0 with one row. */
struct nst_rows_params {
  const void *x;
  const void *residual; /* set for the fused-add operations alone */
  const void *weight;   /* NULL: absent */
  void *y;
  void *residual_out; /* NULL: not wanted */
  float *rstd;        /* NULL: not wanted */
  int64_t x_stride;
  int64_t residual_stride;
  int64_t y_stride;
  int64_t residual_out_stride;
  uint32_t rows;
  uint32_t n;
  uint32_t flags; /* NST_FLAG_* */
  float eps;
  float inv_n; /* 1 / n, rounded once from double */
  float weight_offset;
};

#endif
