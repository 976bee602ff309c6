/* Rows held in registers: what the strategies warp, block, persist and cluster share. */
#ifndef NST_ROWS_HELD_CUH
#define NST_ROWS_HELD_CUH

#include "tree.cuh"

/* Whether a warp loads the vectors behind the pivot besides its part of the row. */
template <nst_cell C> constexpr bool nst_has_own_pivot(void) { return nst_is_centred(C.op) && C.lanes > 32; }

/* A thread's part of a row: the vectors first, first + step, first + 2 step, ... */
template <nst_cell C> struct nst_held {
  nst_inputs<C.op> in[C.vectors];
  nst_inputs<C.op> pivot; /* vector `lane` of the row, where nst_has_own_pivot */
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
  if constexpr (nst_has_own_pivot<C>())
    held.pivot = nst_load_inputs<C, C.hint>(at, nst_lane(), n, nst_held_inside<C>(0), policy);
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++)
    nst_load_conditioning<C>(&held.in[i], at, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i));
  return held;
}

/* The parameters beside a thread's part of every row. */
template <nst_cell C> struct nst_held_parameters {
  nst_parameters<C> of[C.vectors];
};

template <nst_cell C>
NST_DEVICE nst_held_parameters<C> nst_hold_parameters(const nst_rows_params &p, uint32_t first, uint32_t n) {
  nst_held_parameters<C> held;
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++)
    held.of[i] = nst_load_parameters<C>(p, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i));
  return held;
}

/* The row's pivot. */
template <nst_cell C> NST_DEVICE float nst_held_pivot(const nst_held<C> &held, const nst_rows_params &p) {
  if constexpr (!nst_is_centred(C.op)) {
    return 0.0f;
  } else if constexpr (nst_has_own_pivot<C>()) {
    return nst_pivot_of<32>(nst_add_halves<C.types>(nst_sum_inputs<C>(held.pivot, p)), p);
  } else { /* the row's lanes hold those vectors: lane, lane + lanes, ..., added as the tree would */
    constexpr uint32_t MINE = NST_PIVOT_VECTORS / C.lanes < C.vectors ? NST_PIVOT_VECTORS / C.lanes : C.vectors;
    float part[MINE];
#pragma unroll
    for (uint32_t i = 0; i < MINE; i++) part[i] = nst_add_halves<C.types>(nst_sum_inputs<C>(held.in[i], p));
    return nst_pivot_of<C.lanes>(nst_fold<nst_ceil_pow2(MINE) / 2, MINE>(part), p);
  }
}

/* The statistic of a thread's part. Without a pivot the residual sum is stored on the way: every element is then read
 * and written by the same thread, so it may go where an input came from. */
template <nst_cell C>
NST_DEVICE nst_stat<C.op> nst_held_stat(const nst_held<C> &held, const nst_row_pointers<C.op> &at, uint32_t first,
                                        uint32_t n, float pivot, const nst_rows_params &p) {
  nst_stat<C.op> part[C.vectors];
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++) {
    const uint32_t v = first + i * nst_held_step<C>();
    const nst_values<C.types> s = nst_sum_inputs<C>(held.in[i], p);
    if constexpr (!nst_is_centred(C.op)) nst_store_residual<C>(at, v, n, nst_held_inside<C>(i), s);
    part[i] = nst_stat_leaf<C>(s, v, n, nst_held_inside<C>(i), pivot);
  }
  return nst_tree_fold<C.op, C.vectors>(part);
}

/* Writes a thread's part; all threads of the row have read their pivots. */
template <nst_cell C>
NST_DEVICE void nst_held_write(const nst_held<C> &held, const nst_held_parameters<C> &parameters,
                               const nst_row_pointers<C.op> &at, uint32_t first, uint32_t n, nst_scale scale,
                               const nst_rows_params &p) {
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++) {
    const uint32_t v = first + i * nst_held_step<C>();
    const nst_values<C.types> s = nst_sum_inputs<C>(held.in[i], p);
    if constexpr (nst_is_centred(C.op)) nst_store_residual<C>(at, v, n, nst_held_inside<C>(i), s);
    nst_store_row<C>(at.y, v, n, nst_held_inside<C>(i),
                     nst_normalise<C>(s, held.in[i], parameters.of[i], scale, p));
  }
}

#endif
