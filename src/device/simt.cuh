/*
 * The hardware as the kernels see it: every access to threads, memory, barriers and copies goes through these wrappers.
 * This file is the device's form. On the software device the same names come from its simt_host.h, so that a kernel is
 * one source for both.
 *
 * Addresses of shared memory are plain generic pointers into the block's dynamic shared memory (nst_smem).
 */
#ifndef NST_SIMT_CUH
#define NST_SIMT_CUH

#include <stdint.h>

/* 16 bytes of a row: the unit in which every kernel moves and sums. */
struct alignas(16) nst_vec {
  uint32_t w[4];
};

/* How an access to streamed data asks the L2 cache to treat its line. */
enum nst_hint {
  NST_HINT_NONE,
  NST_HINT_EVICT_LAST,  /* keep: worth 3-7 % on reads of more than a few MB, as lines that were written go first */
  NST_HINT_EVICT_FIRST, /* drop: for the second and last read of a line, and for stores between the two */
};

#ifndef __CUDACC__
#include "simt_host.h"
#else

#define NST_DEVICE static __device__ __forceinline__

/* ---- Place in the launch -------------------------------------------------------------------------------------- */

NST_DEVICE uint32_t nst_thread(void) { return threadIdx.x; }
NST_DEVICE uint32_t nst_lane(void) { return threadIdx.x & 31u; }
NST_DEVICE uint32_t nst_warp(void) { return threadIdx.x >> 5; }
NST_DEVICE uint32_t nst_block(void) { return blockIdx.x; }
NST_DEVICE uint32_t nst_blocks(void) { return gridDim.x; }

/* The block's rank in its cluster; consecutive blocks form a cluster. */
NST_DEVICE uint32_t nst_cluster_rank(void) {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

/* The block's dynamic shared memory, aligned to 128 bytes. */
NST_DEVICE char *nst_smem(void) {
  extern __shared__ __align__(128) char nst_dynamic_shared[];
  return nst_dynamic_shared;
}

/* ---- Barriers and shuffles ------------------------------------------------------------------------------------ */

NST_DEVICE void nst_sync_block(void) { __syncthreads(); }
NST_DEVICE void nst_sync_warp(void) { __syncwarp(); }

/* A barrier among `threads` threads of the block (a multiple of 32); id 1 to 15. */
NST_DEVICE void nst_sync_some(uint32_t id, uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* The value of lane ^ mask; the whole warp takes part. */
NST_DEVICE float nst_shuffle_xor(float v, uint32_t mask) { return __shfl_xor_sync(0xffffffffu, v, (int)mask); }

/* Whether it holds in any lane; the whole warp takes part. */
NST_DEVICE bool nst_any(bool holds) { return __any_sync(0xffffffffu, holds) != 0; }

/* The cluster barrier, split: what is written before arrive is seen by all blocks of the cluster after wait. */
NST_DEVICE void nst_cluster_arrive(void) { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
NST_DEVICE void nst_cluster_wait(void) { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

/* ---- Programmatic dependent launch ---------------------------------------------------------------------------- */

/* Waits until the kernels that this one depends on are complete and their writes visible; at once without any. */
NST_DEVICE void nst_dependency_wait(void) { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/* Lets the kernels that depend on this one start; they wait for its results by themselves. */
NST_DEVICE void nst_dependents_start(void) { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/* ---- Global memory -------------------------------------------------------------------------------------------- */

typedef uint64_t nst_policy;

template <nst_hint HINT> NST_DEVICE nst_policy nst_make_policy(void) {
  nst_policy policy = 0;
  if constexpr (HINT == NST_HINT_EVICT_LAST)
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  if constexpr (HINT == NST_HINT_EVICT_FIRST)
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/* Loads of 16, 8, 4 and 2 bytes from addresses aligned to that size. */
template <nst_hint HINT> NST_DEVICE nst_vec nst_load_vec(const void *p, nst_policy policy) {
  nst_vec v;
  if constexpr (HINT == NST_HINT_NONE)
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(p)
                 : "memory");
  else
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(p), "l"(policy)
                 : "memory");
  return v;
}
NST_DEVICE uint64_t nst_load_u64(const void *p) { return *(const volatile uint64_t *)p; }
NST_DEVICE uint32_t nst_load_u32(const void *p) { return *(const volatile uint32_t *)p; }
NST_DEVICE uint16_t nst_load_u16(const void *p) { return *(const volatile uint16_t *)p; }

template <nst_hint HINT = NST_HINT_NONE> NST_DEVICE void nst_store_vec(void *p, nst_vec v, nst_policy policy = 0) {
  if constexpr (HINT == NST_HINT_NONE)
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3])
                 : "memory");
  else
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(p), "r"(v.w[0]), "r"(v.w[1]),
                 "r"(v.w[2]), "r"(v.w[3]), "l"(policy)
                 : "memory");
}
NST_DEVICE void nst_store_u64(void *p, uint64_t v) { *(volatile uint64_t *)p = v; }
NST_DEVICE void nst_store_u32(void *p, uint32_t v) { *(volatile uint32_t *)p = v; }
NST_DEVICE void nst_store_u16(void *p, uint16_t v) { *(volatile uint16_t *)p = v; }
NST_DEVICE void nst_store_f32(float *p, float v) { *(volatile float *)p = v; }

/* ---- Shared memory -------------------------------------------------------------------------------------------- */

NST_DEVICE float nst_smem_load_f32(const float *p) { return *p; }
NST_DEVICE void nst_smem_store_f32(float *p, float v) { *p = v; }
NST_DEVICE nst_vec nst_smem_load_vec(const void *p) {
  const uint4 u = *(const uint4 *)p;
  return nst_vec{{u.x, u.y, u.z, u.w}};
}

NST_DEVICE uint32_t nst_smem_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* ---- mbarriers and asynchronous copies ------------------------------------------------------------------------ */

NST_DEVICE void nst_mbarrier_init(uint64_t *bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(nst_smem_address(bar)), "r"(arrivals) : "memory");
}

/* Makes initialised mbarriers visible to the cluster's other blocks and to the copy engine, before the barrier (of the
 * block or the cluster) that lets the others use them. */
NST_DEVICE void nst_mbarrier_init_fence(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

NST_DEVICE void nst_mbarrier_arrive(uint64_t *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(nst_smem_address(bar)) : "memory");
}

/* Arrives, and makes the phase wait for `bytes` of asynchronous copies too. */
NST_DEVICE void nst_mbarrier_arrive_expect(uint64_t *bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(nst_smem_address(bar)), "r"(bytes)
               : "memory");
}

/* Waits until the phase of this parity (0 for the first) is complete; sees what was written for it, also by the
 * cluster's other blocks. */
NST_DEVICE void nst_mbarrier_wait(uint64_t *bar, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile("{\n\t"
                 ".reg .pred done;\n\t"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, done;\n\t"
                 "}"
                 : "=r"(done)
                 : "r"(nst_smem_address(bar)), "r"(parity)
                 : "memory");
  } while (done == 0);
}

/* Copies `bytes` (a multiple of 16) from global to this block's shared memory, both 16-byte aligned; completes on
 * bar. */
template <nst_hint HINT>
NST_DEVICE void nst_bulk_load(void *smem, const void *global, uint32_t bytes, uint64_t *bar, nst_policy policy) {
  if constexpr (HINT == NST_HINT_NONE)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     nst_smem_address(smem)),
                 "l"(global), "r"(bytes), "r"(nst_smem_address(bar))
                 : "memory");
  else
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(nst_smem_address(smem)),
                 "l"(global), "r"(bytes), "r"(nst_smem_address(bar)), "l"(policy)
                 : "memory");
}

/* Stores v at the same place as p in the shared memory of block `rank` of the cluster, asynchronously; counts 4 bytes
 * on that block's mbarrier at the place of bar. */
NST_DEVICE void nst_remote_store_f32(float *p, float v, uint64_t *bar, uint32_t rank) {
  asm volatile("{\n\t"
               ".reg .b32 to, on;\n\t"
               "mapa.shared::cluster.u32 to, %0, %3;\n\t"
               "mapa.shared::cluster.u32 on, %2, %3;\n\t"
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %1, [on];\n\t"
               "}" ::"r"(nst_smem_address(p)),
               "r"(__float_as_uint(v)), "r"(nst_smem_address(bar)), "r"(rank)
               : "memory");
}

/* The same vector, of which the compiler knows no more: so it is unpacked where it is used, and does not lie unpacked in
 * twice as many registers until then. */
NST_DEVICE nst_vec nst_repack(nst_vec v) {
  asm volatile("" : "+r"(v.w[0]), "+r"(v.w[1]), "+r"(v.w[2]), "+r"(v.w[3]));
  return v;
}

/* ---- Arithmetic: one rounding each, never contracted (the build says --fmad=false) ----------------------------- */

NST_DEVICE float nst_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }

/* 1 / sqrt(v) within 1 ulp: the hardware's estimate and one step of Newton's, which 0 and infinity (where it gives no
 * number) do without. A third of the time of the correctly rounded one, and every row waits for it. */
NST_DEVICE float nst_rsqrt(float v) {
  float r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
  const float error = __fmaf_rn(-(r * v), r, 1.0f);
  const float better = __fmaf_rn(0.5f * r, error, r);
  return better == better ? better : r;
}

NST_DEVICE float nst_bits_f32(uint32_t u) { return __uint_as_float(u); }
NST_DEVICE uint32_t nst_f32_bits(float f) { return __float_as_uint(f); }

/* Two 16-bit values in a word, the lower half first; rounded to nearest even. */
NST_DEVICE void nst_unpack_f16(uint32_t pair, float *lo, float *hi) {
  asm("{\n\t.reg .b16 a, b;\n\tmov.b32 {a, b}, %2;\n\tcvt.f32.f16 %0, a;\n\tcvt.f32.f16 %1, b;\n\t}"
      : "=f"(*lo), "=f"(*hi)
      : "r"(pair));
}
NST_DEVICE uint32_t nst_pack_f16(float lo, float hi) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(hi), "f"(lo));
  return pair;
}
NST_DEVICE void nst_unpack_bf16(uint32_t pair, float *lo, float *hi) {
  *lo = __uint_as_float(pair << 16);
  *hi = __uint_as_float(pair & 0xffff0000u);
}
NST_DEVICE uint32_t nst_pack_bf16(float lo, float hi) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(hi), "f"(lo));
  return pair;
}

#endif
#endif
