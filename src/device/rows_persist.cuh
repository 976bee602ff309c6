/*
 * Strategy persist: as block, but each block walks over rows, and while it works at one row the next ones are on their
 * way into slots of its shared memory, by bulk copies. So reads are in flight all the time and cost no registers, and
 * the parameters are loaded once.
 */
#ifndef NST_ROWS_PERSIST_CUH
#define NST_ROWS_PERSIST_CUH

#include "rows_held.cuh"

template <nst_cell C> struct nst_queue {
  static constexpr uint32_t STREAMS = nst_streams(C.op);
  static constexpr uint32_t PIECE = C.threads * C.vectors * 16; /* bytes of a row of one stream */
  static constexpr uint32_t SLOT = STREAMS * PIECE;
  static constexpr uint32_t TABLE = nst_tree_warps_bytes<C.op>(C.threads);
  static constexpr uint32_t TABLES_AT = C.slots * SLOT;
  static constexpr uint32_t BARRIERS_AT = TABLES_AT + 2 * TABLE;
  static constexpr uint32_t BYTES = BARRIERS_AT + C.slots * 8;
  /* Inputs are in registers when the row's barrier opens, so their slot may be filled again then. Conditioning is read
   * from the slot afterwards: it may be filled after the next row's barrier. */
  static constexpr uint32_t LAG = nst_conditioning_of(C.op) > 0 ? 1 : 0;

  static_assert(C.lanes == C.threads && C.cluster == 1 && (C.threads & (C.threads - 1)) == 0 && C.threads > 32);
  static_assert(C.access != NST_ACCESS_UNALIGNED && C.threads * C.vectors * nst_per_vec(C.types) >= C.n);
  static_assert(C.slots > LAG && C.smem >= BYTES);
};

/* Requests a row; by one thread. */
template <nst_cell C>
NST_DEVICE void nst_queue_fill(const nst_rows_params &p, uint64_t row, uint32_t n, uint32_t slot, uint64_t *full,
                               nst_policy policy) {
  typedef nst_queue<C> Q;
  const uint32_t bytes = nst_vecs<C>(n) * 16;
  const nst_row_pointers<C.op> at = nst_row_of<C>(p, (uint32_t)row);
  uint32_t present = 0;
#pragma unroll
  for (uint32_t s = 0; s < Q::STREAMS; s++) present += at.in[s] != nullptr;
  nst_mbarrier_arrive_expect(&full[slot], present * bytes);
#pragma unroll
  for (uint32_t s = 0; s < Q::STREAMS; s++)
    if (at.in[s] != nullptr)
      nst_bulk_load<C.hint>(nst_smem() + slot * Q::SLOT + s * Q::PIECE, at.in[s], bytes, &full[slot], policy);
}

/* Vector v of streams FIRST to END - 1; zeros past the row's end, where the slot holds older data. */
template <nst_cell C, uint32_t FIRST, uint32_t END>
NST_DEVICE void nst_queue_read(nst_inputs<C.op> *in, const nst_row_pointers<C.op> &at, uint32_t slot, uint32_t v,
                               uint32_t n, bool inside) {
  typedef nst_queue<C> Q;
#pragma unroll
  for (uint32_t s = FIRST; s < END; s++) {
    in->raw[s] = nst_vec{{0, 0, 0, 0}};
    if (at.in[s] != nullptr && ((C.access == NST_ACCESS_EXACT && inside) || v < nst_vecs<C>(n)))
      in->raw[s] = nst_smem_load_vec(nst_smem() + slot * Q::SLOT + s * Q::PIECE + v * 16);
  }
}

template <nst_cell C> NST_DEVICE void nst_rows_persist(const nst_rows_params &p) {
  typedef nst_queue<C> Q;
  constexpr uint32_t INPUTS = nst_inputs_of(C.op);
  uint64_t *const full = (uint64_t *)(nst_smem() + Q::BARRIERS_AT);
  const uint32_t n = nst_length<C>(p), first = nst_held_first<C>(), blocks = nst_blocks();
  const nst_policy policy = nst_make_policy<C.hint>();

  if (nst_thread() == 0) {
    for (uint32_t i = 0; i < C.slots; i++) nst_mbarrier_init(&full[i], 1);
    nst_mbarrier_init_fence();
  }
  nst_wait_before_parameters(p);
  const nst_held_parameters<C> parameters = nst_hold_parameters<C>(p, first, n);
  nst_dependency_wait();
  if (nst_thread() == 0) {
    uint64_t row = nst_block();
    for (uint32_t i = 0; i < C.slots && row < p.rows; i++, row += blocks)
      nst_queue_fill<C>(p, row, n, i, full, policy);
  }
  nst_sync_block();
  nst_dependents_start();
  uint32_t slot = 0, parity = 0, last = 0, turn = 0;
  for (uint64_t row = nst_block(); row < p.rows; row += blocks, turn ^= 1) {
    const nst_row_pointers<C.op> at = nst_row_of<C>(p, (uint32_t)row);
    nst_mbarrier_wait(&full[slot], parity);
    nst_held<C> held;
#pragma unroll
    for (uint32_t i = 0; i < C.vectors; i++)
      nst_queue_read<C, 0, INPUTS>(&held.in[i], at, slot, first + i * C.threads, n, nst_held_inside<C>(i));
    if constexpr (nst_is_centred(C.op)) nst_queue_read<C, 0, INPUTS>(&held.head, at, slot, 0, n, true);
    /* Two tables in turn: a warp may still read one row's table when another warp writes the next row's. */
    float *const table = (float *)(nst_smem() + Q::TABLES_AT + turn * Q::TABLE);
    const nst_scale scale = nst_row_scale<C>(nst_held_pivot<C>(held, p), p, [&](float pivot, bool again) {
      if (again) nst_sync_block(); /* all have read the table */
      const nst_stat<C.op> part = nst_held_stat<C>(held, at, first, n, pivot, p);
      return nst_tree_lanes<C.op, 32>(nst_tree_warps<C.op, C.threads / 32>(part, table));
    });
    if (nst_thread() == 0) {
      const uint64_t done = row - (uint64_t)Q::LAG * blocks; /* wraps before the first row */
      const uint64_t next = row + (uint64_t)(C.slots - Q::LAG) * blocks;
      if (done < p.rows && next < p.rows) nst_queue_fill<C>(p, next, n, Q::LAG == 0 ? slot : last, full, policy);
      nst_store_scale<C>(p, (uint32_t)row, scale);
    }
#pragma unroll
    for (uint32_t i = 0; i < C.vectors; i++)
      nst_queue_read<C, INPUTS, Q::STREAMS>(&held.in[i], at, slot, first + i * C.threads, n, nst_held_inside<C>(i));
    nst_held_write<C>(held, parameters, at, first, n, scale, p);
    last = slot;
    if (++slot == C.slots) slot = 0, parity ^= 1;
  }
}

#endif
