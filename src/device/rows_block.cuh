/* Strategy block: a block holds one row in registers. */
#ifndef NST_ROWS_BLOCK_CUH
#define NST_ROWS_BLOCK_CUH

#include "rows_held.cuh"

template <nst_cell C> NST_DEVICE void nst_rows_block(const nst_rows_params &p) {
  static_assert(C.lanes == C.threads && C.cluster == 1 && (C.threads & (C.threads - 1)) == 0);
  static_assert(C.threads * C.vectors * nst_per_vec(C.types) >= C.n);
  static_assert(C.smem >= nst_tree_warps_bytes<C.op>(C.threads));
  const uint32_t n = nst_length<C>(p), row = nst_block(), first = nst_held_first<C>();

  nst_wait_before_parameters(p);
  const nst_held_parameters<C> parameters = nst_hold_parameters<C>(p, first, n);
  nst_dependency_wait();
  const nst_row_pointers<C.op> at = nst_row_of<C>(p, row);
  const nst_held<C> held = nst_hold<C>(at, first, n, nst_make_policy<C.hint>());
  nst_dependents_start();
  const nst_scale scale = nst_row_scale<C>(nst_held_pivot<C>(held, p), p, [&](float pivot, bool again) {
    if (again) nst_sync_block(); /* all have read the table */
    const nst_stat<C.op> part = nst_held_stat<C>(held, at, first, n, pivot, p);
    return nst_tree_lanes<C.op, 32>(nst_tree_warps<C.op, C.threads / 32>(part, (float *)nst_smem()));
  });
  if (nst_thread() == 0) nst_store_scale<C>(p, row, scale);
  nst_held_write<C>(held, parameters, at, first, n, scale, p);
}

#endif
