/*
 * Printed by `python3 -m codegen all` from spec axes.json and template rows_kernels.cu.j2; not to be edited.
 *
 * The kernels of fused_add_rms_norm_fwd, bf16.
 */
#include "cell.cuh"
#include "rows_loop.cuh"
#include "rows_warp.cuh"

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_bf16_n512_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_BF16, .access = NST_ACCESS_EXACT,
                         .n = 512, .threads = 128, .lanes = 16, .vectors = 4, .cluster = 1, .slots = 0, .smem = 0,
                         .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_bf16_n512_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_BF16,
                         .access = NST_ACCESS_UNALIGNED, .n = 512, .threads = 128, .lanes = 16, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_fused_add_rms_norm_fwd_bf16_n768_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_BF16, .access = NST_ACCESS_EXACT,
                         .n = 768, .threads = 128, .lanes = 32, .vectors = 3, .cluster = 1, .slots = 0, .smem = 0,
                         .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_fused_add_rms_norm_fwd_bf16_nany_loop_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_loop<nst_cell{.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .types = NST_TYPES_BF16,
                         .access = NST_ACCESS_UNALIGNED, .n = 0, .threads = 512, .lanes = 512, .vectors = 2,
                         .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_NONE}>(p);
}
