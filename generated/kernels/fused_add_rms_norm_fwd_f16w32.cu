/*
 * Printed by `python3 -m codegen all` from spec axes.json and template rows_kernels.cu.j2; not to be edited.
 *
 * The kernels of fused_add_rms_norm_fwd, f16w32.
 */
#include "cell.cuh"
#include "rows_block.cuh"
#include "rows_cluster.cuh"
#include "rows_loop.cuh"
#include "rows_persist.cuh"
#include "rows_reread.cuh"
#include "rows_ring.cuh"
#include "rows_warp.cuh"

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n64_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 64, .threads = 128, .lanes = 4, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n64_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_UNALIGNED, .n = 64, .threads = 128, .lanes = 4, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n128_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 128, .threads = 128, .lanes = 8, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n128_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_UNALIGNED, .n = 128, .threads = 128, .lanes = 8, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n256_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 256, .threads = 128, .lanes = 8, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n256_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_UNALIGNED, .n = 256, .threads = 128, .lanes = 8, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n512_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 512, .threads = 128, .lanes = 16, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n512_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_UNALIGNED, .n = 512, .threads = 128, .lanes = 16, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 24)
nst_fused_add_rms_norm_fwd_f16w32_n512_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_MASKED, .n = 512, .threads = 64, .lanes = 64, .vectors = 1,
                          .cluster = 1, .slots = 0, .smem = 256, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 16)
nst_fused_add_rms_norm_fwd_f16w32_n512_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_UNALIGNED, .n = 512, .threads = 64, .lanes = 64, .vectors = 1,
                          .cluster = 1, .slots = 0, .smem = 256, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n1024_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 1024, .threads = 128, .lanes = 32, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n1024_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_UNALIGNED, .n = 1024, .threads = 128, .lanes = 32, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 16)
nst_fused_add_rms_norm_fwd_f16w32_n1024_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_MASKED, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 256, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 16)
nst_fused_add_rms_norm_fwd_f16w32_n1024_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_UNALIGNED, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 256, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_fused_add_rms_norm_fwd_f16w32_n1024_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                            .cluster = 1, .slots = 4, .smem = 16928, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 8)
nst_fused_add_rms_norm_fwd_f16w32_n2048_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_MASKED, .n = 2048, .threads = 128, .lanes = 128, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 8)
nst_fused_add_rms_norm_fwd_f16w32_n2048_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_UNALIGNED, .n = 2048, .threads = 128, .lanes = 128, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_fused_add_rms_norm_fwd_f16w32_n2048_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 2048, .threads = 64, .lanes = 64, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 25112, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 4)
nst_fused_add_rms_norm_fwd_f16w32_n4096_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_MASKED, .n = 4096, .threads = 256, .lanes = 256, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 4)
nst_fused_add_rms_norm_fwd_f16w32_n4096_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_UNALIGNED, .n = 4096, .threads = 256, .lanes = 256, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 4)
nst_fused_add_rms_norm_fwd_f16w32_n4096_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 4096, .threads = 128, .lanes = 128, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 50200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_fused_add_rms_norm_fwd_f16w32_n8192_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_MASKED, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_fused_add_rms_norm_fwd_f16w32_n8192_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_UNALIGNED, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_fused_add_rms_norm_fwd_f16w32_n8192_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 100376, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n8192_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 8192, .threads = 128, .lanes = 128, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 1664, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_f16w32_n8192_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_UNALIGNED, .n = 8192, .threads = 128, .lanes = 128, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 1664, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n16384_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_MASKED, .n = 16384, .threads = 512, .lanes = 512, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n16384_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                          .access = NST_ACCESS_UNALIGNED, .n = 16384, .threads = 512, .lanes = 512, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n16384_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 16384, .threads = 512, .lanes = 512, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 200728, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_fused_add_rms_norm_fwd_f16w32_n16384_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 16384, .threads = 256, .lanes = 256, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 2176, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_fused_add_rms_norm_fwd_f16w32_n16384_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_UNALIGNED, .n = 16384, .threads = 256, .lanes = 256,
                            .vectors = 1, .cluster = 8, .slots = 0, .smem = 2176, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_fused_add_rms_norm_fwd_f16w32_n32768_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                           .access = NST_ACCESS_MASKED, .n = 32768, .threads = 512, .lanes = 512, .vectors = 2,
                           .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n32768_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 32768, .threads = 512, .lanes = 512, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n32768_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_UNALIGNED, .n = 32768, .threads = 512, .lanes = 512,
                            .vectors = 1, .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(544, 1)
nst_fused_add_rms_norm_fwd_f16w32_n32768_ring_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_ring<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 32768, .threads = 544, .lanes = 512, .vectors = 4,
                         .cluster = 2, .slots = 13, .smem = 229888, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_fused_add_rms_norm_fwd_f16w32_n65536_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                           .access = NST_ACCESS_MASKED, .n = 65536, .threads = 1024, .lanes = 1024, .vectors = 2,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n65536_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 65536, .threads = 512, .lanes = 512, .vectors = 2,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n65536_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_UNALIGNED, .n = 65536, .threads = 512, .lanes = 512,
                            .vectors = 2, .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(544, 1)
nst_fused_add_rms_norm_fwd_f16w32_n65536_ring_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_ring<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 65536, .threads = 544, .lanes = 512, .vectors = 8,
                         .cluster = 2, .slots = 13, .smem = 229888, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_fused_add_rms_norm_fwd_f16w32_n131072_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                           .access = NST_ACCESS_MASKED, .n = 131072, .threads = 1024, .lanes = 1024, .vectors = 2,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n131072_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_MASKED, .n = 131072, .threads = 512, .lanes = 512, .vectors = 4,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_fused_add_rms_norm_fwd_f16w32_n131072_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                            .access = NST_ACCESS_UNALIGNED, .n = 131072, .threads = 512, .lanes = 512,
                            .vectors = 4, .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(544, 1)
nst_fused_add_rms_norm_fwd_f16w32_n131072_ring_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_ring<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 131072, .threads = 544, .lanes = 512, .vectors = 8,
                         .cluster = 4, .slots = 12, .smem = 229888, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_fused_add_rms_norm_fwd_f16w32_n262144_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                           .access = NST_ACCESS_MASKED, .n = 262144, .threads = 1024, .lanes = 1024, .vectors = 2,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(544, 1)
nst_fused_add_rms_norm_fwd_f16w32_n262144_ring_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_ring<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 262144, .threads = 544, .lanes = 512, .vectors = 8,
                         .cluster = 8, .slots = 10, .smem = 229888, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_fused_add_rms_norm_fwd_f16w32_nany_loop_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_loop<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_MASKED, .n = 0, .threads = 512, .lanes = 512, .vectors = 2,
                         .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_fused_add_rms_norm_fwd_f16w32_nany_loop_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_loop<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_F16W32,
                         .access = NST_ACCESS_UNALIGNED, .n = 0, .threads = 512, .lanes = 512, .vectors = 2,
                         .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_NONE}>(p);
}
