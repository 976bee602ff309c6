/* The exchange of a cluster: each block's 32 lane sums go to every block through distributed shared memory. */
#ifndef NST_CLUSTER_CUH
#define NST_CLUSTER_CUH

#include "tree.cuh"

/* Shared memory of the exchange in bytes: the barrier in 16, then 32 statistics from each block. */
template <nst_op OP> constexpr uint32_t nst_exchange_bytes(uint32_t cluster) {
  return 16 + cluster * 32 * 4 * nst_stat<OP>::words;
}

/* Prepares the exchange; the cluster's other blocks may send once nst_cluster_wait has returned. */
template <nst_cell C> NST_DEVICE void nst_exchange_open(char *smem) {
  if (nst_thread() == 0) {
    nst_mbarrier_init((uint64_t *)smem, 1);
    nst_mbarrier_init_fence();
    nst_mbarrier_arrive_expect((uint64_t *)smem, nst_exchange_bytes<C.op>(C.cluster) - 16);
  }
  nst_cluster_arrive();
}

/* The same for a second exchange: when it returns, all blocks have read what the first one brought. */
template <nst_cell C> NST_DEVICE void nst_exchange_reopen(char *smem) {
  if (nst_thread() == 0) nst_mbarrier_arrive_expect((uint64_t *)smem, nst_exchange_bytes<C.op>(C.cluster) - 16);
  nst_cluster_arrive();
  nst_cluster_wait();
}

/* Merges across the blocks, lane by lane, where lane l of every warp holds its block's part (see nst_tree_warps). A
 * block has received all parts when it returns, so it may exit while others still read theirs. */
template <nst_cell C> NST_DEVICE nst_stat<C.op> nst_exchange(nst_stat<C.op> part, bool again, char *smem) {
  constexpr uint32_t WARPS = C.threads / 32, COUNT = C.cluster * 32;
  uint64_t *const bar = (uint64_t *)smem;
  float *const table = (float *)(smem + 16);
  if (!again) nst_cluster_wait();
#pragma unroll
  for (uint32_t to = 0; to < C.cluster; to += WARPS) {
    const uint32_t rank = to + nst_warp();
    if (rank < C.cluster) {
#pragma unroll
      for (uint32_t i = 0; i < nst_stat<C.op>::words; i++)
        nst_remote_store_f32(table + i * COUNT + nst_cluster_rank() * 32 + nst_lane(), part.w[i], bar, rank);
    }
  }
  nst_mbarrier_wait(bar, again);
  nst_stat<C.op> column[C.cluster];
#pragma unroll
  for (uint32_t i = 0; i < C.cluster; i++) column[i] = nst_get_stat<C.op, COUNT>(table, i * 32 + nst_lane());
  return nst_tree_fold<C.op, C.cluster>(column);
}

#endif
