/* Rows held in registers: what the strategies warp, block, persist and cluster share. */
#ifndef NST_ROWS_HELD_CUH
#define NST_ROWS_HELD_CUH

#include "tree.cuh"

/* A thread's part of a row: the vectors first, first + step, first + 2 step, ... */
template <nst_cell C> struct nst_held {
  nst_inputs<C.op> in[C.vectors];
  nst_inputs<C.op> head; /* the row's first vector, for the pivot */
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
  if constexpr (nst_is_centred(C.op)) held.head = nst_load_inputs<C, C.hint>(at, 0, n, true, policy);
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++)
    nst_load_conditioning<C, C.hint>(&held.in[i], at, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i), policy);
  return held;
}

/* Whether the parameters are read after the exchange: with the row they would not fit the registers, of which the
 * addresses of unaligned vectors take more. */
template <nst_cell C> constexpr bool nst_parameters_are_late(void) {
  return C.vectors * (nst_streams(C.op) + nst_parameters_of(C.op) * nst_weight_vecs(C.types)) >
         (C.access == NST_ACCESS_UNALIGNED ? 16 : 20);
}

/* The parameters beside a thread's part of every row. */
template <nst_cell C> struct nst_held_parameters {
  nst_parameters<C> of[C.vectors];
};

template <nst_cell C>
NST_DEVICE nst_held_parameters<C> nst_hold_parameters(const nst_rows_params &p, uint32_t first, uint32_t n) {
  nst_held_parameters<C> held = {};
  if constexpr (!nst_parameters_are_late<C>()) {
#pragma unroll
    for (uint32_t i = 0; i < C.vectors; i++)
      held.of[i] = nst_load_parameters<C>(p, first + i * nst_held_step<C>(), n, nst_held_inside<C>(i));
  }
  return held;
}

/* The row's pivot. */
template <nst_cell C> NST_DEVICE float nst_held_pivot(const nst_held<C> &held, const nst_rows_params &p) {
  return nst_is_centred(C.op) ? nst_pivot_of<C>(nst_sum_inputs<C>(held.head, p), p) : 0.0f;
}

/* A vector's inputs, to be unpacked once more. */
template <nst_op OP> NST_DEVICE nst_inputs<OP> nst_repack_inputs(nst_inputs<OP> in) {
#pragma unroll
  for (uint32_t i = 0; i < nst_inputs_of(OP); i++) in.raw[i] = nst_repack(in.raw[i]);
  return in;
}

/* The same for its parameters, which persistent blocks keep. */
template <nst_cell C> NST_DEVICE nst_parameters<C> nst_repack_parameters(nst_parameters<C> parameters) {
  if constexpr (nst_parameters_of(C.op) > 0) {
#pragma unroll
    for (uint32_t i = 0; i < nst_parameters_of(C.op) * nst_weight_vecs(C.types); i++) {
      nst_vec *const raw = &parameters.of[i / nst_weight_vecs(C.types)].raw[i % nst_weight_vecs(C.types)];
      *raw = nst_repack(*raw);
    }
  }
  return parameters;
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
    /* The layer norms may come here twice, and would keep the unpacked row until they know. */
    const nst_inputs<C.op> in = nst_is_centred(C.op) ? nst_repack_inputs<C.op>(held.in[i]) : held.in[i];
    const nst_values<C.types> s = nst_sum_inputs<C>(in, p);
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
    const nst_inputs<C.op> in = nst_repack_inputs<C.op>(held.in[i]);
    const nst_parameters<C> beside = nst_parameters_are_late<C>()
                                         ? nst_load_parameters<C>(p, v, n, nst_held_inside<C>(i))
                                         : nst_repack_parameters<C>(parameters.of[i]);
    const nst_values<C.types> s = nst_sum_inputs<C>(in, p);
    if constexpr (nst_is_centred(C.op)) nst_store_residual<C>(at, v, n, nst_held_inside<C>(i), s);
    nst_store_row<C>(at.y, v, n, nst_held_inside<C>(i), nst_normalise<C>(s, in, beside, scale, p));
  }
}

#endif
