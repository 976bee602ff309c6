/*
 * The summation tree. A row's 16-byte vectors are numbered v = 0, 1, ...; their number is thought of as filled up to a
 * power of two with empty vectors; and statistics are merged by halving the index space from the top bit down: v with
 * v + 2^(k-1), then with v + 2^(k-2), ..., last neighbours. The tree depends on n alone. Whatever bits of v name the
 * vector within a thread, the warp, the block of a cluster and the lane, as long as they stand in the order in which
 * they are merged every strategy gets the same bits.
 */
#ifndef NST_TREE_CUH
#define NST_TREE_CUH

#include "op.cuh"

constexpr uint32_t nst_ceil_pow2(uint32_t n) {
  uint32_t p = 1;
  while (p < n) p *= 2;
  return p;
}

/* One level of the tree over s[0 .. COUNT), then the levels below. (By templates, since the compiler leaves a loop over
 * levels rolled and then keeps s in memory.) */
template <nst_op OP, uint32_t HALF, uint32_t COUNT> NST_DEVICE void nst_tree_halve(nst_stat<OP> (&s)[COUNT]) {
  if constexpr (HALF > 0) {
#pragma unroll
    for (uint32_t i = 0; i < HALF; i++)
      if (i + HALF < COUNT) s[i] = nst_stat_merge<OP>(s[i], s[i + HALF]);
    nst_tree_halve<OP, HALF / 2, COUNT>(s);
  }
}

/* Merges COUNT parts whose number is the next bits of v; the missing ones up to a power of two are empty. */
template <nst_op OP, uint32_t COUNT> NST_DEVICE nst_stat<OP> nst_tree_fold(nst_stat<OP> (&s)[COUNT]) {
  nst_tree_halve<OP, nst_ceil_pow2(COUNT) / 2, COUNT>(s);
  return s[0];
}

/* Merges the parts of LANES neighbouring lanes; each gets the result. */
template <nst_op OP, uint32_t LANES> NST_DEVICE nst_stat<OP> nst_tree_lanes(nst_stat<OP> s) {
#pragma unroll
  for (uint32_t mask = LANES / 2; mask > 0; mask /= 2) {
    nst_stat<OP> other;
#pragma unroll
    for (uint32_t i = 0; i < nst_stat<OP>::words; i++) other.w[i] = nst_shuffle_xor(s.w[i], mask);
    s = nst_stat_merge<OP>(s, other);
  }
  return s;
}

/* A table of statistics in shared memory: [words][COUNT] numbers, so that a warp's access meets each bank once. */
template <nst_op OP, uint32_t COUNT> NST_DEVICE void nst_put_stat(float *table, uint32_t at, nst_stat<OP> s) {
#pragma unroll
  for (uint32_t i = 0; i < nst_stat<OP>::words; i++) nst_smem_store_f32(table + i * COUNT + at, s.w[i]);
}
template <nst_op OP, uint32_t COUNT> NST_DEVICE nst_stat<OP> nst_get_stat(const float *table, uint32_t at) {
  nst_stat<OP> s;
#pragma unroll
  for (uint32_t i = 0; i < nst_stat<OP>::words; i++) s.w[i] = nst_smem_load_f32(table + i * COUNT + at);
  return s;
}

/* Shared memory that nst_tree_warps needs, in bytes. */
template <nst_op OP> constexpr uint32_t nst_tree_warps_bytes(uint32_t threads) {
  return threads > 32 ? threads * 4 * nst_stat<OP>::words : 0;
}

/* Merges across the block's WARPS warps, lane by lane: afterwards lane l of every warp holds the block's part of all
 * vectors whose low bits are l. One barrier; the table may be used again after the next one. */
template <nst_op OP, uint32_t WARPS> NST_DEVICE nst_stat<OP> nst_tree_warps(nst_stat<OP> s, float *table) {
  if constexpr (WARPS == 1) {
    return s;
  } else {
    nst_put_stat<OP, WARPS * 32>(table, nst_thread(), s);
    nst_sync_block();
    nst_stat<OP> column[WARPS];
#pragma unroll
    for (uint32_t i = 0; i < WARPS; i++) column[i] = nst_get_stat<OP, WARPS * 32>(table, i * 32 + nst_lane());
    return nst_tree_fold<OP, WARPS>(column);
  }
}

#endif
