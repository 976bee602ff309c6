/*
 * Printed by `python3 -m codegen all` from spec axes.json and template rows_kernels.cu.j2; not to be edited.
 *
 * The kernels of ada_layer_norm_zero_fwd, f16.
 */
#include "cell.cuh"
#include "rows_block.cuh"
#include "rows_cluster.cuh"
#include "rows_loop.cuh"
#include "rows_persist.cuh"
#include "rows_reread.cuh"
#include "rows_warp.cuh"

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n64_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 64, .threads = 128, .lanes = 4, .vectors = 2, .cluster = 1, .slots = 0, .smem = 0,
                         .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n64_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_MASKED, .n = 64, .threads = 128, .lanes = 4, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n64_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_UNALIGNED, .n = 64, .threads = 128, .lanes = 4, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n128_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 128, .threads = 128, .lanes = 8, .vectors = 2, .cluster = 1, .slots = 0, .smem = 0,
                         .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n128_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_MASKED, .n = 128, .threads = 128, .lanes = 8, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n128_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_UNALIGNED, .n = 128, .threads = 128, .lanes = 8, .vectors = 2,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n256_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 256, .threads = 128, .lanes = 8, .vectors = 4, .cluster = 1, .slots = 0, .smem = 0,
                         .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n256_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_MASKED, .n = 256, .threads = 128, .lanes = 8, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n256_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_UNALIGNED, .n = 256, .threads = 128, .lanes = 8, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n512_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 512, .threads = 128, .lanes = 16, .vectors = 4, .cluster = 1, .slots = 0, .smem = 0,
                         .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n512_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_MASKED, .n = 512, .threads = 128, .lanes = 16, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n512_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_UNALIGNED, .n = 512, .threads = 128, .lanes = 16, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 16)
nst_ada_layer_norm_zero_fwd_f16_n512_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 512, .threads = 64, .lanes = 64, .vectors = 1,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 16)
nst_ada_layer_norm_zero_fwd_f16_n512_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_MASKED, .n = 512, .threads = 64, .lanes = 64, .vectors = 1,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 16)
nst_ada_layer_norm_zero_fwd_f16_n512_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_UNALIGNED, .n = 512, .threads = 64, .lanes = 64, .vectors = 1,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n768_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 768, .threads = 128, .lanes = 32, .vectors = 3, .cluster = 1, .slots = 0, .smem = 0,
                         .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n768_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 768, .threads = 64, .lanes = 64, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n1024_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 1024, .threads = 128, .lanes = 32, .vectors = 4, .cluster = 1, .slots = 0,
                         .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n1024_warp_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_MASKED, .n = 1024, .threads = 128, .lanes = 32, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n1024_warp_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_UNALIGNED, .n = 1024, .threads = 128, .lanes = 32, .vectors = 4,
                         .cluster = 1, .slots = 0, .smem = 0, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n1024_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n1024_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_MASKED, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n1024_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_UNALIGNED, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n1024_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                            .cluster = 1, .slots = 3, .smem = 25624, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n1024_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 1024, .threads = 64, .lanes = 64, .vectors = 2,
                            .cluster = 1, .slots = 3, .smem = 25624, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n1152_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 1152, .threads = 128, .lanes = 32, .vectors = 5, .cluster = 1, .slots = 0,
                         .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n1152_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 1152, .threads = 64, .lanes = 64, .vectors = 3,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 5)
nst_ada_layer_norm_zero_fwd_f16_n1152_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 1152, .threads = 64, .lanes = 64, .vectors = 3,
                            .cluster = 1, .slots = 3, .smem = 37912, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n1536_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 1536, .threads = 128, .lanes = 32, .vectors = 6, .cluster = 1, .slots = 0,
                         .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n1536_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 1536, .threads = 64, .lanes = 64, .vectors = 3,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 5)
nst_ada_layer_norm_zero_fwd_f16_n1536_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 1536, .threads = 64, .lanes = 64, .vectors = 3,
                            .cluster = 1, .slots = 3, .smem = 37912, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n2048_warp_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_warp<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16, .access = NST_ACCESS_EXACT,
                         .n = 2048, .threads = 128, .lanes = 32, .vectors = 8, .cluster = 1, .slots = 0,
                         .smem = 0, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 4)
nst_ada_layer_norm_zero_fwd_f16_n2048_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 2048, .threads = 128, .lanes = 128, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 4)
nst_ada_layer_norm_zero_fwd_f16_n2048_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_MASKED, .n = 2048, .threads = 128, .lanes = 128, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 4)
nst_ada_layer_norm_zero_fwd_f16_n2048_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_UNALIGNED, .n = 2048, .threads = 128, .lanes = 128, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 4)
nst_ada_layer_norm_zero_fwd_f16_n2048_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 2048, .threads = 64, .lanes = 64, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 50200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 4)
nst_ada_layer_norm_zero_fwd_f16_n2048_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 2048, .threads = 64, .lanes = 64, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 50200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 8)
nst_ada_layer_norm_zero_fwd_f16_n2560_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 2560, .threads = 64, .lanes = 64, .vectors = 5,
                          .cluster = 1, .slots = 0, .smem = 512, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 3)
nst_ada_layer_norm_zero_fwd_f16_n2560_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 2560, .threads = 64, .lanes = 64, .vectors = 5,
                            .cluster = 1, .slots = 3, .smem = 62488, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 4)
nst_ada_layer_norm_zero_fwd_f16_n3072_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 3072, .threads = 128, .lanes = 128, .vectors = 3,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 3)
nst_ada_layer_norm_zero_fwd_f16_n3072_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 3072, .threads = 128, .lanes = 128, .vectors = 3,
                            .cluster = 1, .slots = 3, .smem = 75800, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_ada_layer_norm_zero_fwd_f16_n4096_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 4096, .threads = 256, .lanes = 256, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_ada_layer_norm_zero_fwd_f16_n4096_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_MASKED, .n = 4096, .threads = 256, .lanes = 256, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_ada_layer_norm_zero_fwd_f16_n4096_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_UNALIGNED, .n = 4096, .threads = 256, .lanes = 256, .vectors = 2,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 2)
nst_ada_layer_norm_zero_fwd_f16_n4096_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 4096, .threads = 128, .lanes = 128, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 100376, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 2)
nst_ada_layer_norm_zero_fwd_f16_n4096_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 4096, .threads = 128, .lanes = 128, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 100376, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(64, 1)
nst_ada_layer_norm_zero_fwd_f16_n4096_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 4096, .threads = 64, .lanes = 64, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 2688, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 4)
nst_ada_layer_norm_zero_fwd_f16_n5120_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 5120, .threads = 128, .lanes = 128, .vectors = 5,
                          .cluster = 1, .slots = 0, .smem = 1024, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n5120_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 5120, .threads = 128, .lanes = 128, .vectors = 5,
                            .cluster = 1, .slots = 4, .smem = 165920, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n5120_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 5120, .threads = 128, .lanes = 128, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_ada_layer_norm_zero_fwd_f16_n6144_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 6144, .threads = 256, .lanes = 256, .vectors = 3,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_ada_layer_norm_zero_fwd_f16_n6144_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 6144, .threads = 256, .lanes = 256, .vectors = 3,
                            .cluster = 1, .slots = 4, .smem = 200736, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n6144_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 6144, .threads = 128, .lanes = 128, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_ada_layer_norm_zero_fwd_f16_n8192_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_ada_layer_norm_zero_fwd_f16_n8192_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_MASKED, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 2)
nst_ada_layer_norm_zero_fwd_f16_n8192_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_UNALIGNED, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 2048, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_ada_layer_norm_zero_fwd_f16_n8192_persist_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 200728, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_ada_layer_norm_zero_fwd_f16_n8192_persist_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_persist<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 8192, .threads = 256, .lanes = 256, .vectors = 4,
                            .cluster = 1, .slots = 3, .smem = 200728, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_ada_layer_norm_zero_fwd_f16_n8192_reread_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_EXACT, .n = 8192, .threads = 512, .lanes = 512, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n8192_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 8192, .threads = 128, .lanes = 128, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n8192_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 8192, .threads = 128, .lanes = 128, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(128, 1)
nst_ada_layer_norm_zero_fwd_f16_n8192_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_UNALIGNED, .n = 8192, .threads = 128, .lanes = 128, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 3200, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n12288_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 12288, .threads = 512, .lanes = 512, .vectors = 3,
                          .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_ada_layer_norm_zero_fwd_f16_n12288_reread_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_EXACT, .n = 12288, .threads = 512, .lanes = 512, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_ada_layer_norm_zero_fwd_f16_n12288_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 12288, .threads = 256, .lanes = 256, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 4224, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n16384_block_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_EXACT, .n = 16384, .threads = 512, .lanes = 512, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n16384_block_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_MASKED, .n = 16384, .threads = 512, .lanes = 512, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n16384_block_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_block<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                          .access = NST_ACCESS_UNALIGNED, .n = 16384, .threads = 512, .lanes = 512, .vectors = 4,
                          .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_ada_layer_norm_zero_fwd_f16_n16384_reread_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_EXACT, .n = 16384, .threads = 512, .lanes = 512, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_ada_layer_norm_zero_fwd_f16_n16384_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 16384, .threads = 256, .lanes = 256, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 4224, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_ada_layer_norm_zero_fwd_f16_n16384_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 16384, .threads = 256, .lanes = 256, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 4224, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(256, 1)
nst_ada_layer_norm_zero_fwd_f16_n16384_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_UNALIGNED, .n = 16384, .threads = 256, .lanes = 256,
                            .vectors = 1, .cluster = 8, .slots = 0, .smem = 4224, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_ada_layer_norm_zero_fwd_f16_n32768_reread_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_EXACT, .n = 32768, .threads = 512, .lanes = 512, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 2)
nst_ada_layer_norm_zero_fwd_f16_n32768_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_MASKED, .n = 32768, .threads = 512, .lanes = 512, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 4096, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n32768_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 32768, .threads = 512, .lanes = 512, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n32768_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 32768, .threads = 512, .lanes = 512, .vectors = 1,
                            .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n32768_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_UNALIGNED, .n = 32768, .threads = 512, .lanes = 512,
                            .vectors = 1, .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_ada_layer_norm_zero_fwd_f16_n65536_reread_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_EXACT, .n = 65536, .threads = 1024, .lanes = 1024, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 8192, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_ada_layer_norm_zero_fwd_f16_n65536_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_MASKED, .n = 65536, .threads = 1024, .lanes = 1024, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 8192, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n65536_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 65536, .threads = 512, .lanes = 512, .vectors = 2,
                            .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n65536_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 65536, .threads = 512, .lanes = 512, .vectors = 2,
                            .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n65536_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_UNALIGNED, .n = 65536, .threads = 512, .lanes = 512,
                            .vectors = 2, .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_ada_layer_norm_zero_fwd_f16_n131072_reread_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_EXACT, .n = 131072, .threads = 1024, .lanes = 1024, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 8192, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_ada_layer_norm_zero_fwd_f16_n131072_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_MASKED, .n = 131072, .threads = 1024, .lanes = 1024, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 8192, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n131072_cluster_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_EXACT, .n = 131072, .threads = 512, .lanes = 512, .vectors = 4,
                            .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n131072_cluster_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_MASKED, .n = 131072, .threads = 512, .lanes = 512, .vectors = 4,
                            .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_n131072_cluster_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_cluster<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                            .access = NST_ACCESS_UNALIGNED, .n = 131072, .threads = 512, .lanes = 512,
                            .vectors = 4, .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_NONE}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_ada_layer_norm_zero_fwd_f16_n262144_reread_exact(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_EXACT, .n = 262144, .threads = 1024, .lanes = 1024, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 8192, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
nst_ada_layer_norm_zero_fwd_f16_n262144_reread_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_reread<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                           .access = NST_ACCESS_MASKED, .n = 262144, .threads = 1024, .lanes = 1024, .vectors = 1,
                           .cluster = 1, .slots = 0, .smem = 8192, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_nany_loop_masked(const __grid_constant__ nst_rows_params p) {
  nst_rows_loop<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_MASKED, .n = 0, .threads = 512, .lanes = 512, .vectors = 1,
                         .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_EVICT_LAST}>(p);
}

extern "C" __global__ void __launch_bounds__(512, 1)
nst_ada_layer_norm_zero_fwd_f16_nany_loop_unaligned(const __grid_constant__ nst_rows_params p) {
  nst_rows_loop<nst_cell{.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .types = NST_TYPES_F16,
                         .access = NST_ACCESS_UNALIGNED, .n = 0, .threads = 512, .lanes = 512, .vectors = 1,
                         .cluster = 8, .slots = 0, .smem = 6272, .hint = NST_HINT_NONE}>(p);
}
