/* Strategy reread: one block a row, read twice, the second time from cache. Few registers, so that many threads live on
 * a multiprocessor. */
#ifndef NST_ROWS_REREAD_CUH
#define NST_ROWS_REREAD_CUH

#include "stream.cuh"

template <nst_cell C> NST_DEVICE void nst_rows_reread(const nst_rows_params &p) {
  static_assert(C.lanes == C.threads && C.cluster == 1 && (C.threads & (C.threads - 1)) == 0);
  static_assert(C.smem >= nst_tree_warps_bytes<C.op>(C.threads));
  const uint32_t n = nst_length<C>(p), row = nst_block(), first = nst_held_first<C>();
  nst_dependency_wait();
  nst_dependents_start();
  const nst_row_pointers<C.op> at = nst_row_of<C>(p, row);
  const nst_policy policy = nst_make_policy<C.hint>();
  const float pivot = nst_stream_pivot<C>(at, n, policy, p);
  nst_stat<C.op> part = nst_stream_stat<C>(at, first, n, pivot, policy, p);
  part = nst_tree_warps<C.op, C.threads / 32>(part, (float *)nst_smem());
  const nst_scale scale = nst_stat_finish<C>(nst_tree_lanes<C.op, 32>(part), pivot, p);
  if (nst_thread() == 0) nst_store_scale<C>(p, row, scale);
  nst_stream_write<C>(at, first, n, scale, p);
}

#endif
