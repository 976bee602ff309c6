/* Strategy warp: `lanes` lanes of a warp share a row, so a warp holds 32 / lanes rows. No shared memory, no barrier. */
#ifndef NST_ROWS_WARP_CUH
#define NST_ROWS_WARP_CUH

#include "rows_held.cuh"

template <nst_cell C> NST_DEVICE void nst_rows_warp(const nst_rows_params &p) {
  static_assert(C.lanes <= 32 && (C.lanes & (C.lanes - 1)) == 0 && C.cluster == 1);
  static_assert(C.lanes * C.vectors * nst_per_vec(C.types) >= C.n);
  const uint32_t n = nst_length<C>(p);
  const uint32_t first = nst_thread() % C.lanes;
  const uint64_t wanted = (uint64_t)nst_block() * (C.threads / C.lanes) + nst_thread() / C.lanes;
  /* Lanes past the last row read that row again, since the whole warp takes part in a shuffle, and write nothing. */
  const bool live = wanted < p.rows;
  const uint32_t row = live ? (uint32_t)wanted : p.rows - 1;

  nst_wait_before_parameters(p);
  const nst_held_parameters<C> parameters = nst_hold_parameters<C>(p, first, n);
  nst_dependency_wait();
  nst_row_pointers<C.op> at = nst_row_of<C>(p, row);
  if (!live) at.residual_out = nullptr;
  const nst_held<C> held = nst_hold<C>(at, first, n, nst_make_policy<C.hint>());
  nst_dependents_start();
  const nst_scale scale = nst_row_scale<C>(nst_held_pivot<C>(held, p), p, [&](float pivot, bool) {
    return nst_tree_lanes<C.op, C.lanes>(nst_held_stat<C>(held, at, first, n, pivot, p));
  });
  if (!live) return;
  if (first == 0) nst_store_scale<C>(p, row, scale);
  nst_held_write<C>(held, parameters, at, first, n, scale, p);
}

#endif
