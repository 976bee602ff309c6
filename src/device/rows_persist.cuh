/* Strategy persist: as block, but each block walks over rows and requests the next one before it reduces the present
 * one, so that reads are in flight all the time. The parameters are loaded once. */
#ifndef NST_ROWS_PERSIST_CUH
#define NST_ROWS_PERSIST_CUH

#include "rows_held.cuh"

template <nst_cell C> NST_DEVICE void nst_rows_persist(const nst_rows_params &p) {
  constexpr uint32_t WARPS = C.threads / 32, TABLE = nst_tree_warps_bytes<C.op>(C.threads);
  static_assert(C.lanes == C.threads && C.cluster == 1 && (C.threads & (C.threads - 1)) == 0);
  static_assert(C.threads * C.vectors * nst_per_vec(C.types) >= C.n);
  static_assert(C.smem >= 2 * TABLE);
  const uint32_t n = nst_length<C>(p), first = nst_held_first<C>();
  const nst_policy policy = nst_make_policy<C.hint>();

  nst_wait_before_parameters(p);
  const nst_held_parameters<C> parameters = nst_hold_parameters<C>(p, first, n);
  nst_dependency_wait();
  uint64_t row = nst_block();
  nst_row_pointers<C.op> at = nst_row_of<C>(p, (uint32_t)row);
  nst_held<C> held = nst_hold<C>(at, first, n, policy);
  nst_dependents_start();
  for (uint32_t turn = 0; row < p.rows; turn ^= 1) {
    const uint64_t next = row + nst_blocks();
    nst_row_pointers<C.op> next_at = at;
    nst_held<C> next_held = held;
    if (next < p.rows) {
      next_at = nst_row_of<C>(p, (uint32_t)next);
      next_held = nst_hold<C>(next_at, first, n, policy);
    }
    /* Two tables in turn: a warp may still read one row's table when another warp writes the next row's. */
    const float pivot = nst_held_pivot<C>(held, p);
    nst_stat<C.op> part = nst_held_stat<C>(held, at, first, n, pivot, p);
    part = nst_tree_warps<C.op, WARPS>(part, (float *)(nst_smem() + turn * TABLE));
    const nst_scale scale = nst_stat_finish<C>(nst_tree_lanes<C.op, 32>(part), pivot, p);
    if (nst_thread() == 0) nst_store_scale<C>(p, (uint32_t)row, scale);
    nst_held_write<C>(held, parameters, at, first, n, scale, p);
    row = next;
    at = next_at;
    held = next_held;
  }
}

#endif
