/*
 * The operations: what a row's statistic is, how it is formed from a vector and merged, and how a vector's results come
 * from it. The strategies (rows_*.cuh) know nothing of formulas; a new operation is written here.
 */
#ifndef NST_OP_CUH
#define NST_OP_CUH

#include "access.cuh"

constexpr bool nst_has_residual(nst_op op) { return op == NST_OP_FUSED_ADD_RMS_NORM_FWD; }

/* Streams of data that a row reads: x, and the residual where the operation adds one. */
constexpr uint32_t nst_streams(nst_op op) { return nst_has_residual(op) ? 2 : 1; }

/* One data vector of every stream. */
template <nst_op OP> struct nst_inputs {
  nst_vec raw[nst_streams(OP)];
};

/* What the reduction carries: `words` numbers. RMSNorm: the sum of squares. */
template <nst_op OP> struct nst_stat {
  static constexpr uint32_t words = 1;
  float w[words];
};

template <nst_op OP> NST_DEVICE nst_stat<OP> nst_stat_none(void) { return nst_stat<OP>{{0.0f}}; }

/* Merges two parts of a row. The result does not depend on which comes first, so that both lanes of a shuffle agree. */
template <nst_op OP> NST_DEVICE nst_stat<OP> nst_stat_merge(nst_stat<OP> a, nst_stat<OP> b) {
  return nst_stat<OP>{{a.w[0] + b.w[0]}};
}

/* The values to normalise: x, or the residual sum before (or on request after) it is rounded. */
template <nst_cell C> NST_DEVICE nst_values<C.types> nst_sum_inputs(nst_inputs<C.op> in, const nst_rows_params &p) {
  nst_values<C.types> s = nst_unpack<C.types>(in.raw[0]);
  if constexpr (nst_has_residual(C.op)) {
    const nst_values<C.types> r = nst_unpack<C.types>(in.raw[1]);
#pragma unroll
    for (uint32_t i = 0; i < nst_per_vec(C.types); i++) s.e[i] = s.e[i] + r.e[i];
    if (C.types != NST_TYPES_F32 && p.flags & NST_FLAG_ROUND_RESIDUAL) s = nst_round<C.types>(s);
  }
  return s;
}

/* The statistic of one vector, a leaf of the row's tree: halves are added down to one number, as above the leaf. */
template <nst_cell C> NST_DEVICE nst_stat<C.op> nst_stat_leaf(nst_values<C.types> s) {
  float q[4];
#pragma unroll
  for (int i = 0; i < 4; i++) q[i] = s.e[i] * s.e[i];
  if constexpr (nst_per_vec(C.types) == 8) {
#pragma unroll
    for (int i = 0; i < 4; i++) q[i] = nst_fma(s.e[i + 4], s.e[i + 4], q[i]);
  }
  return nst_stat<C.op>{{(q[0] + q[2]) + (q[1] + q[3])}};
}

/* What normalising needs of a whole row. */
struct nst_scale {
  float rstd;
};

template <nst_cell C> NST_DEVICE nst_scale nst_stat_finish(nst_stat<C.op> total, const nst_rows_params &p) {
  return nst_scale{nst_rsqrt(nst_fma(total.w[0], p.inv_n, p.eps))};
}

/* The row's optional outputs, by one thread. */
NST_DEVICE void nst_store_scale(const nst_rows_params &p, uint32_t row, nst_scale scale) {
  if (p.rstd != nullptr) nst_store_f32(p.rstd + row, scale.rstd);
}

/* y of one vector. An absent weight has read as zeros: with the offset 1 its factor is exactly 1. */
template <nst_cell C>
NST_DEVICE nst_vec nst_normalise(nst_values<C.types> s, nst_weights<C.types> weights, nst_scale scale,
                                 const nst_rows_params &p) {
  constexpr uint32_t E = nst_per_vec(C.types);
  const float offset = p.weight != nullptr ? p.weight_offset : 1.0f;
  const nst_values<C.types> w = nst_unpack_weights<C.types>(weights);
  nst_values<C.types> y;
#pragma unroll
  for (uint32_t i = 0; i < E; i++) y.e[i] = s.e[i] * scale.rstd;
  if (C.types != NST_TYPES_F32 && p.flags & NST_FLAG_ROUND_BEFORE_WEIGHT) y = nst_round<C.types>(y);
#pragma unroll
  for (uint32_t i = 0; i < E; i++) y.e[i] = y.e[i] * (w.e[i] + offset);
  return nst_pack<C.types>(y);
}

/* A row's addresses. */
template <nst_op OP> struct nst_row_pointers {
  const char *in[nst_streams(OP)];
  char *y;
  char *residual_out; /* NULL: not wanted */
};

template <nst_cell C> NST_DEVICE nst_row_pointers<C.op> nst_row_of(const nst_rows_params &p, uint32_t row) {
  nst_row_pointers<C.op> at;
  at.in[0] = nst_row(p.x, p.x_stride, row);
  at.y = nst_row(p.y, p.y_stride, row);
  at.residual_out = nullptr;
  if constexpr (nst_has_residual(C.op)) {
    at.in[1] = nst_row(p.residual, p.residual_stride, row);
    if (p.residual_out != nullptr) at.residual_out = nst_row(p.residual_out, p.residual_out_stride, row);
  }
  return at;
}

template <nst_cell C, nst_hint HINT>
NST_DEVICE nst_inputs<C.op> nst_load_inputs(const nst_row_pointers<C.op> &at, uint32_t v, uint32_t n, bool inside,
                                            nst_policy policy) {
  nst_inputs<C.op> in;
#pragma unroll
  for (uint32_t i = 0; i < nst_streams(C.op); i++)
    in.raw[i] = nst_load_row<C, HINT>(at.in[i], v, n, inside, policy);
  return in;
}

/* Writes the residual sum of one vector, rounded, where it is wanted. */
template <nst_cell C>
NST_DEVICE void nst_store_residual(const nst_row_pointers<C.op> &at, uint32_t v, uint32_t n, bool inside,
                                   nst_values<C.types> s) {
  if constexpr (nst_has_residual(C.op)) {
    if (at.residual_out != nullptr) nst_store_row<C>(at.residual_out, v, n, inside, nst_pack<C.types>(s));
  }
}

/* Waits for the kernels before this one; weights that are ready may be requested before the second call. */
NST_DEVICE void nst_wait_before_weights(const nst_rows_params &p) {
  if (!(p.flags & NST_FLAG_WEIGHT_READY)) nst_dependency_wait();
}

#endif
