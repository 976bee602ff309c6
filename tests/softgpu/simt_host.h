/*
 * The host form of simt.cuh: the same names, run by the interpreter in machine.cpp. What a card would refuse (an
 * address that is not aligned, shared memory beyond the launch's size, a barrier used wrongly) ends the launch with a
 * sentence.
 */
#ifndef NST_SIMT_HOST_H
#define NST_SIMT_HOST_H

#include <stddef.h>
#include <stdint.h>

#define NST_DEVICE static inline
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__

/* ---- What machine.cpp offers ---------------------------------------------------------------------------------- */

struct softgpu_block {
  uint32_t index, blocks, rank, cluster; /* rank in a cluster of so many blocks */
  char *shared;
  uint32_t shared_size;
};

struct softgpu_thread {
  uint32_t index;
  softgpu_block *block;
};

extern softgpu_thread *softgpu_self;                             /* the thread that runs */
extern const uintptr_t softgpu_shared_begin, softgpu_shared_end; /* the shared memory of all blocks */
[[noreturn, gnu::format(printf, 1, 2)]] void softgpu_fail(const char *format, ...); /* ends the launch */
void softgpu_meet_warp(void);
float softgpu_shuffle(float v, uint32_t from_lane);
void softgpu_barrier(uint32_t id, uint32_t threads); /* threads 0: all that have not ended */
void softgpu_cluster_arrive(void);
void softgpu_cluster_wait(void);
void softgpu_mbarrier_init(uint64_t *bar, uint32_t arrivals);
void softgpu_mbarrier_init_fence(void);
void softgpu_mbarrier_arrive(uint64_t *bar, uint32_t bytes);
void softgpu_mbarrier_wait(uint64_t *bar, uint32_t parity);
void softgpu_bulk_load(void *shared, const void *global, uint32_t bytes, uint64_t *bar);
void softgpu_remote_store(float *p, float v, uint64_t *bar, uint32_t rank);

NST_DEVICE void softgpu_check_global(const void *p, uint32_t size) {
  const uintptr_t at = (uintptr_t)p;
  if (at % size) softgpu_fail("global access of %u bytes at %p, which is not a multiple of %u", size, p, size);
  if (at - softgpu_shared_begin < softgpu_shared_end - softgpu_shared_begin)
    softgpu_fail("global access of %u bytes at %p, which is shared memory", size, p);
}

NST_DEVICE void softgpu_check_shared(const void *p, uint32_t size, uint32_t alignment) {
  const softgpu_block *block = softgpu_self->block;
  const uintptr_t at = (uintptr_t)p - (uintptr_t)block->shared;
  if (at >= block->shared_size || block->shared_size - at < size)
    softgpu_fail("access of %u bytes at byte %td of the block's shared memory, which has %u bytes", size, (ptrdiff_t)at,
                 block->shared_size);
  if (at % alignment)
    softgpu_fail("access of %u bytes at byte %zu of shared memory, which is not a multiple of %u", size, (size_t)at,
                 alignment);
}

/* memcpy, since one place is read and written as different types. */
template <class T> static inline T softgpu_load(const void *p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T> static inline T softgpu_load_global(const void *p) {
  softgpu_check_global(p, sizeof(T));
  return softgpu_load<T>(p);
}
template <class T> static inline void softgpu_store_global(void *p, T v) {
  softgpu_check_global(p, sizeof v);
  __builtin_memcpy(p, &v, sizeof v);
}

/* ---- Place in the launch -------------------------------------------------------------------------------------- */

NST_DEVICE uint32_t nst_thread(void) { return softgpu_self->index; }
NST_DEVICE uint32_t nst_lane(void) { return softgpu_self->index & 31u; }
NST_DEVICE uint32_t nst_warp(void) { return softgpu_self->index >> 5; }
NST_DEVICE uint32_t nst_block(void) { return softgpu_self->block->index; }
NST_DEVICE uint32_t nst_blocks(void) { return softgpu_self->block->blocks; }
NST_DEVICE uint32_t nst_cluster_rank(void) { return softgpu_self->block->rank; }
NST_DEVICE char *nst_smem(void) { return softgpu_self->block->shared; }

/* ---- Barriers and shuffles ------------------------------------------------------------------------------------ */

NST_DEVICE void nst_sync_block(void) { softgpu_barrier(0, 0); }
NST_DEVICE void nst_sync_warp(void) { softgpu_meet_warp(); }
NST_DEVICE void nst_sync_some(uint32_t id, uint32_t threads) {
  if (id < 1 || id > 15) softgpu_fail("nst_sync_some with barrier %u, which is not 1 to 15", id);
  if (!threads || threads % 32) softgpu_fail("nst_sync_some with %u threads, not a positive multiple of 32", threads);
  softgpu_barrier(id, threads);
}
NST_DEVICE float nst_shuffle_xor(float v, uint32_t mask) { return softgpu_shuffle(v, nst_lane() ^ mask); }
NST_DEVICE bool nst_any(bool holds) {
  for (uint32_t mask = 16; mask > 0; mask /= 2) holds |= softgpu_shuffle(holds ? 1.0f : 0.0f, nst_lane() ^ mask) != 0;
  return holds;
}
NST_DEVICE void nst_cluster_arrive(void) { softgpu_cluster_arrive(); }
NST_DEVICE void nst_cluster_wait(void) { softgpu_cluster_wait(); }

/* ---- Programmatic dependent launch: launches run one after the other here --------------------------------------- */

NST_DEVICE void nst_dependency_wait(void) {}
NST_DEVICE void nst_dependents_start(void) {}

/* ---- Global memory -------------------------------------------------------------------------------------------- */

typedef uint64_t nst_policy;

template <nst_hint HINT> NST_DEVICE nst_policy nst_make_policy(void) { return HINT; }

template <nst_hint HINT> NST_DEVICE nst_vec nst_load_vec(const void *p, nst_policy policy) {
  if (HINT != NST_HINT_NONE && !policy) softgpu_fail("a load with a cache hint has no policy");
  return softgpu_load_global<nst_vec>(p);
}
NST_DEVICE uint64_t nst_load_u64(const void *p) { return softgpu_load_global<uint64_t>(p); }
NST_DEVICE uint32_t nst_load_u32(const void *p) { return softgpu_load_global<uint32_t>(p); }
NST_DEVICE uint16_t nst_load_u16(const void *p) { return softgpu_load_global<uint16_t>(p); }

template <nst_hint HINT = NST_HINT_NONE> NST_DEVICE void nst_store_vec(void *p, nst_vec v, nst_policy policy = 0) {
  if (HINT != NST_HINT_NONE && !policy) softgpu_fail("a store with a cache hint has no policy");
  softgpu_store_global(p, v);
}
NST_DEVICE void nst_store_u64(void *p, uint64_t v) { softgpu_store_global(p, v); }
NST_DEVICE void nst_store_u32(void *p, uint32_t v) { softgpu_store_global(p, v); }
NST_DEVICE void nst_store_u16(void *p, uint16_t v) { softgpu_store_global(p, v); }
NST_DEVICE void nst_store_f32(float *p, float v) { softgpu_store_global(p, v); }

/* ---- Shared memory -------------------------------------------------------------------------------------------- */

NST_DEVICE float nst_smem_load_f32(const float *p) {
  softgpu_check_shared(p, 4, 4);
  return softgpu_load<float>(p);
}
NST_DEVICE void nst_smem_store_f32(float *p, float v) {
  softgpu_check_shared(p, 4, 4);
  __builtin_memcpy(p, &v, 4);
}
NST_DEVICE nst_vec nst_smem_load_vec(const void *p) {
  softgpu_check_shared(p, 16, 16);
  return softgpu_load<nst_vec>(p);
}
NST_DEVICE uint32_t nst_smem_address(const void *p) { return (uint32_t)((const char *)p - nst_smem()); }

/* ---- mbarriers and asynchronous copies ------------------------------------------------------------------------ */

NST_DEVICE void nst_mbarrier_init(uint64_t *bar, uint32_t arrivals) { softgpu_mbarrier_init(bar, arrivals); }
NST_DEVICE void nst_mbarrier_init_fence(void) { softgpu_mbarrier_init_fence(); }
NST_DEVICE void nst_mbarrier_arrive(uint64_t *bar) { softgpu_mbarrier_arrive(bar, 0); }
NST_DEVICE void nst_mbarrier_arrive_expect(uint64_t *bar, uint32_t bytes) { softgpu_mbarrier_arrive(bar, bytes); }
NST_DEVICE void nst_mbarrier_wait(uint64_t *bar, uint32_t parity) { softgpu_mbarrier_wait(bar, parity); }

template <nst_hint HINT>
NST_DEVICE void nst_bulk_load(void *smem, const void *global, uint32_t bytes, uint64_t *bar, nst_policy policy) {
  if (HINT != NST_HINT_NONE && !policy) softgpu_fail("a bulk load with a cache hint has no policy");
  softgpu_bulk_load(smem, global, bytes, bar);
}
NST_DEVICE void nst_remote_store_f32(float *p, float v, uint64_t *bar, uint32_t rank) {
  softgpu_remote_store(p, v, bar, rank);
}

NST_DEVICE nst_vec nst_repack(nst_vec v) { return v; }

/* ---- Arithmetic: what the card's instructions give, bit for bit ----------------------------------------------- */

NST_DEVICE float nst_bits_f32(uint32_t u) { return softgpu_load<float>(&u); }
NST_DEVICE uint32_t nst_f32_bits(float f) { return softgpu_load<uint32_t>(&f); }

NST_DEVICE float nst_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/* No f32 has a 1 / sqrt so close to the middle of two f32 that double's two roundings move it across: test_softgpu.cpp
 * tries them all. */
NST_DEVICE float nst_rsqrt(float v) {
  return v < 0 || v != v ? nst_bits_f32(0x7fffffffu) : (float)(1.0 / __builtin_sqrt((double)v));
}

NST_DEVICE float softgpu_f32_of_f16(uint32_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  uint32_t bits;
  if (magnitude > 0x7c00u) return nst_bits_f32(0x7fffffffu);
  if (magnitude == 0x7c00u)
    bits = 0x7f800000u;
  else if (magnitude >= 0x0400u)
    bits = (magnitude << 13) + 0x38000000u;
  else
    bits = nst_f32_bits((float)magnitude * 0x1p-24f);
  return nst_bits_f32(bits | (half & 0x8000u) << 16);
}

NST_DEVICE uint32_t softgpu_f16_of_f32(float v) {
  const uint32_t bits = nst_f32_bits(v), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fffu;
  if (magnitude >= 0x47800000u) return sign | 0x7c00u; /* 65536 and above */
  if (magnitude < 0x38800000u) /* below 2^-14: the unit of f16 there is that of f32 at 0.5, so the sum rounds */
    return sign | (nst_f32_bits(nst_bits_f32(magnitude) + 0.5f) - 0x3f000000u);
  return sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
}

NST_DEVICE uint32_t softgpu_bf16_of_f32(float v) {
  const uint32_t bits = nst_f32_bits(v);
  return v != v ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

NST_DEVICE void nst_unpack_f16(uint32_t pair, float *lo, float *hi) {
  *lo = softgpu_f32_of_f16(pair & 0xffffu);
  *hi = softgpu_f32_of_f16(pair >> 16);
}
NST_DEVICE uint32_t nst_pack_f16(float lo, float hi) { return softgpu_f16_of_f32(lo) | softgpu_f16_of_f32(hi) << 16; }
NST_DEVICE void nst_unpack_bf16(uint32_t pair, float *lo, float *hi) {
  *lo = nst_bits_f32(pair << 16);
  *hi = nst_bits_f32(pair & 0xffff0000u);
}
NST_DEVICE uint32_t nst_pack_bf16(float lo, float hi) {
  return softgpu_bf16_of_f32(lo) | softgpu_bf16_of_f32(hi) << 16;
}

#endif
