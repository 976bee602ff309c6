/* Strategy loop: a cluster of blocks a row of any length, read twice. */
#ifndef NST_ROWS_LOOP_CUH
#define NST_ROWS_LOOP_CUH

#include "cluster.cuh"
#include "stream.cuh"

template <nst_cell C> NST_DEVICE void nst_rows_loop(const nst_rows_params &p) {
  constexpr uint32_t EXCHANGE = nst_exchange_bytes<C.op>(C.cluster);
  static_assert(C.lanes == C.threads && C.cluster > 1 && (C.threads & (C.threads - 1)) == 0);
  static_assert(C.smem >= EXCHANGE + nst_tree_warps_bytes<C.op>(C.threads));
  const uint32_t n = nst_length<C>(p), row = nst_block() / C.cluster, first = nst_held_first<C>();
  nst_exchange_open<C>(nst_smem());
  nst_dependency_wait();
  nst_dependents_start();
  const nst_row_pointers<C.op> at = nst_row_of<C>(p, row);
  const nst_policy policy = nst_make_policy<C.hint>();
  const nst_scale scale = nst_row_scale<C>(nst_stream_pivot<C>(at, n, policy, p), p, [&](float pivot, bool again) {
    if (again) nst_exchange_reopen<C>(nst_smem());
    nst_stat<C.op> part = nst_stream_stat<C>(at, first, n, pivot, policy, p);
    part = nst_tree_warps<C.op, C.threads / 32>(part, (float *)(nst_smem() + EXCHANGE));
    return nst_tree_lanes<C.op, 32>(nst_exchange<C>(part, again, nst_smem()));
  });
  if (nst_thread() == 0 && nst_cluster_rank() == 0) nst_store_scale<C>(p, row, scale);
  nst_stream_write<C>(at, first, n, scale, p);
}

#endif
