/* Strategy cluster: a cluster of blocks holds one row in registers, for few rows or long ones. */
#ifndef NST_ROWS_CLUSTER_CUH
#define NST_ROWS_CLUSTER_CUH

#include "cluster.cuh"
#include "rows_held.cuh"

template <nst_cell C> NST_DEVICE void nst_rows_cluster(const nst_rows_params &p) {
  constexpr uint32_t EXCHANGE = nst_exchange_bytes<C.op>(C.cluster);
  static_assert(C.lanes == C.threads && C.cluster > 1 && (C.threads & (C.threads - 1)) == 0);
  static_assert(nst_held_step<C>() * C.vectors * nst_per_vec(C.types) >= C.n);
  static_assert(C.smem >= EXCHANGE + nst_tree_warps_bytes<C.op>(C.threads));
  const uint32_t n = nst_length<C>(p), row = nst_block() / C.cluster, first = nst_held_first<C>();

  nst_wait_before_parameters(p);
  const nst_held_parameters<C> parameters = nst_hold_parameters<C>(p, first, n);
  nst_dependency_wait();
  const nst_row_pointers<C.op> at = nst_row_of<C>(p, row);
  const nst_held<C> held = nst_hold<C>(at, first, n, nst_make_policy<C.hint>());
  nst_exchange_open<C>(nst_smem());
  nst_dependents_start();
  const nst_scale scale = nst_row_scale<C>(nst_held_pivot<C>(held, p), p, [&](float pivot, bool again) {
    if (again) nst_exchange_reopen<C>(nst_smem());
    nst_stat<C.op> part = nst_held_stat<C>(held, at, first, n, pivot, p);
    part = nst_tree_warps<C.op, C.threads / 32>(part, (float *)(nst_smem() + EXCHANGE));
    return nst_tree_lanes<C.op, 32>(nst_exchange<C>(part, again, nst_smem()));
  });
  if (nst_thread() == 0 && nst_cluster_rank() == 0) nst_store_scale<C>(p, row, scale);
  nst_held_write<C>(held, parameters, at, first, n, scale, p);
}

#endif
