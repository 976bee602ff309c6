/* Rows held in registers: what the strategies warp, block, persist and cluster share. */
#ifndef NST_ROWS_HELD_CUH
#define NST_ROWS_HELD_CUH

#include "tree.cuh"

/* A thread's part of a row: the vectors first, first + step, first + 2 step, ... */
template <nst_cell C> struct nst_held {
  nst_inputs<C.op> in[C.vectors];
};

template <nst_cell C> constexpr uint32_t nst_held_step(void) { return C.lanes * C.cluster; }

/* Whether every thread's i-th vector lies inside a row of the bucket's length. */
template <nst_cell C> constexpr bool nst_held_inside(uint32_t i) {
  return (i + 1) * nst_held_step<C>() * nst_per_vec(C.types) <= C.n;
}

/* The first vector of a thread where the block's warps, then the cluster's blocks take turns of 32 vectors: from the
 * top the bits of v are the vector in the thread, the warp, the block, the lane. */
template <nst_cell C> NST_DEVICE uint32_t nst_held_first(void) {
  if constexpr (C.cluster == 1)
    return nst_thread();
  else
    return (nst_warp() * C.cluster + nst_cluster_rank()) * 32 + nst_lane();
}

template <nst_cell C>
NST_DEVICE nst_held<C> nst_hold(const nst_row_pointers<C.op> &at, uint32_t first, uint32_t n, nst_policy policy) {
  nst_held<C> held;
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++)
    held.in[i] =
        nst_load_inputs<C, C.hint>(at, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i), policy);
  return held;
}

/* The weights beside a thread's part of every row. */
template <nst_cell C> struct nst_held_weights {
  nst_weights<C.types> of[C.vectors];
};

template <nst_cell C>
NST_DEVICE nst_held_weights<C> nst_hold_weights(const nst_rows_params &p, uint32_t first, uint32_t n) {
  nst_held_weights<C> w;
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++)
    w.of[i] = nst_load_weights<C>(p, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i));
  return w;
}

/* The statistic of a thread's part. The residual sum is stored on the way: every element is read and written by the
 * same thread, so it may go where an input came from. */
template <nst_cell C>
NST_DEVICE nst_stat<C.op> nst_held_stat(const nst_held<C> &held, const nst_row_pointers<C.op> &at, uint32_t first,
                                        uint32_t n, const nst_rows_params &p) {
  nst_stat<C.op> part[C.vectors];
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++) {
    const nst_values<C.types> s = nst_sum_inputs<C>(held.in[i], p);
    nst_store_residual<C>(at, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i), s);
    part[i] = nst_stat_leaf<C>(s);
  }
  return nst_tree_fold<C.op, C.vectors>(part);
}

template <nst_cell C>
NST_DEVICE void nst_held_write(const nst_held<C> &held, const nst_held_weights<C> &weights,
                               const nst_row_pointers<C.op> &at, uint32_t first, uint32_t n, nst_scale scale,
                               const nst_rows_params &p) {
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++)
    nst_store_row<C>(at.y, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i),
                     nst_normalise<C>(nst_sum_inputs<C>(held.in[i], p), weights.of[i], scale, p));
}

#endif
