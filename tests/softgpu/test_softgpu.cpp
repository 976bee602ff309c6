/* The software device's own tests: each feature works, and each misuse of it is found. */
#include <cuda.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "machine.h"
#include "simt.cuh"
#include "softgpu.h"

extern "C" {
#include <cmocka.h> /* last: its macros are named like members of the C++ library */
}

/* ---- Kernels. Variant 0 is right, the others each do one thing wrong. ------------------------------------------- */

struct args {
  const float *in;
  float *out;
  uint32_t n, variant;
};

static float *floats(void) { return reinterpret_cast<float *>(nst_smem()); }
static float read_f32(const float *p) { return nst_bits_f32(nst_load_u32(p)); }

__global__ void __launch_bounds__(1024, 1) kernel_place(const __grid_constant__ args a) {
  float *out = a.out + 6 * (nst_block() * a.n + nst_thread());
  const uint32_t values[] = {nst_thread(), nst_lane(), nst_warp(), nst_block(), nst_blocks(), nst_cluster_rank()};
  for (uint32_t value : values) nst_store_f32(out++, static_cast<float>(value));
}

static void kernel_warp_sum(args a) {
  float sum = read_f32(a.in + nst_thread());
  for (uint32_t mask = 16; mask; mask >>= 1) sum += nst_shuffle_xor(sum, mask);
  nst_store_f32(a.out + nst_thread(), sum);
}

/* Each warp turned round, through shared memory. */
static void kernel_warp_reverse(args a) {
  nst_smem_store_f32(floats() + nst_thread(), read_f32(a.in + nst_thread()));
  if (a.variant == 0) nst_sync_warp();
  nst_store_f32(a.out + nst_thread(), nst_smem_load_f32(floats() + (nst_thread() ^ 31u)));
}

/* The block turned round, three times; 1: no barrier before the reads, 2: none before the next writes. */
static void kernel_block_reverse(args a) {
  float v = read_f32(a.in + nst_thread());
  for (int i = 0; i < 3; ++i) {
    nst_smem_store_f32(floats() + nst_thread(), v);
    if (a.variant != 1) nst_sync_block();
    v = nst_smem_load_f32(floats() + a.n - 1 - nst_thread());
    if (a.variant != 2) nst_sync_block();
  }
  nst_store_f32(a.out + nst_thread(), v);
}

static void kernel_divergent(args a) {
  const uint32_t lane = nst_lane();
  if (a.variant == 1 && nst_thread() == 37) return;
  if (a.variant == 2 && nst_thread() == 37) nst_sync_block();
  if (a.variant == 3 && lane >= 16) nst_sync_warp();
  if (a.variant == 4) nst_sync_some(1 + lane / 16, 32);
  nst_store_f32(a.out + nst_thread(), nst_shuffle_xor(static_cast<float>(lane), a.variant == 5 ? 32 : 1));
}

/* Two halves of the block, each turned round, each with its own barrier. */
static void kernel_named(args a) {
  const uint32_t half = a.n / 2, mine = nst_thread() / half;
  nst_smem_store_f32(floats() + nst_thread(), read_f32(a.in + nst_thread()));
  uint32_t id = 1 + mine, count = half;
  if (a.variant == 1) count += 32;
  if (a.variant == 2) id = 1, count = half + 32 * nst_warp();
  if (a.variant == 3) id = 16;
  if (a.variant == 4) count = 33;
  if (a.variant != 5) nst_sync_some(id, count);
  nst_store_f32(a.out + nst_thread(), nst_smem_load_f32(floats() + mine * half + half - 1 - nst_thread() % half));
}

/* Each block reads what the next one of its cluster wrote before the cluster barrier. */
static void kernel_cluster(args a) {
  const uint32_t first = nst_block() - nst_cluster_rank(), next = first + (nst_cluster_rank() + 1) % a.n;
  if (nst_thread() == 0) nst_store_f32(a.out + nst_block(), static_cast<float>(nst_block()));
  if (a.variant != 2) nst_cluster_arrive();
  if (a.variant == 3) nst_cluster_arrive();
  nst_sync_block(); /* between arriving and waiting, and a shuffle straight after, lanes may be apart */
  if (a.variant != 1) nst_cluster_wait();
  nst_shuffle_xor(0, 1);
  if (nst_thread() == 0) nst_store_f32(a.out + nst_blocks() + nst_block(), read_f32(a.out + next));
}

/* Threads that have ended are not waited for: all but one warp end before the barriers. */
static void kernel_early_end(args a) {
  if (nst_warp() == 1) return;
  nst_sync_block();
  nst_cluster_arrive();
  nst_cluster_wait();
  nst_store_f32(a.out + nst_thread(), 1.0f);
}

/* n floats from `in`, in two bulk copies. */
static void kernel_bulk(args a) {
  auto *bar = reinterpret_cast<uint64_t *>(nst_smem());
  char *data = nst_smem() + 128;
  const uint32_t half = a.n * 2, v = a.variant;
  if (nst_thread() == 0) {
    if (v != 7) nst_mbarrier_init(bar, 1);
    if (v == 10) nst_mbarrier_init(bar, 1);
    if (v != 2) nst_mbarrier_init_fence();
  }
  nst_sync_block();
  const nst_policy policy = nst_make_policy<NST_HINT_EVICT_LAST>();
  if (nst_thread() == 0) {
    nst_mbarrier_arrive_expect(bar, v == 3 ? half * 2 + 16 : v == 12 ? half : half * 2);
    nst_bulk_load<NST_HINT_EVICT_LAST>(data + (v == 4 ? 8 : 0), a.in, v == 11 ? 8 : half, bar, policy);
    nst_bulk_load<NST_HINT_NONE>(data + half + (v == 5 ? 16 : 0), a.in + a.n / 2, half, bar, 0);
    if (v == 8) nst_mbarrier_arrive(bar);
  }
  if (v == 9) return;
  if (v != 1) nst_mbarrier_wait(bar, v == 6 ? 1 : 0);
  if (v == 13) { /* the same once more, without a wait */
    nst_sync_block();
    if (nst_thread() == 0) {
      nst_mbarrier_arrive_expect(bar, half);
      nst_bulk_load<NST_HINT_NONE>(data, a.in, half, bar, 0);
    }
    nst_sync_block();
  }
  const nst_vec mine = nst_smem_load_vec(data + 16 * nst_thread());
  nst_mbarrier_wait(bar, v == 13 ? 1 : 0);
  nst_store_vec(a.out + 4 * nst_thread(), mine);
}

/* Eight parts of 4 * 32 floats go through a ring of two slots: warp 0 moves, warp 1 doubles them. */
static void kernel_ring(args a) {
  auto *full = reinterpret_cast<uint64_t *>(nst_smem()), *empty = full + 2;
  char *slots = nst_smem() + 128;
  if (nst_thread() == 0) {
    for (uint32_t i = 0; i < 2; ++i) nst_mbarrier_init(full + i, 1), nst_mbarrier_init(empty + i, 32);
    nst_mbarrier_init_fence();
  }
  nst_sync_block();
  for (uint32_t part = 0; part < 8; ++part) {
    const uint32_t slot = part % 2, round = part / 2;
    char *data = slots + 512 * slot;
    if (nst_thread() == 0) {
      if (round && a.variant != 1) nst_mbarrier_wait(empty + slot, (round - 1) % 2);
      nst_mbarrier_arrive_expect(full + slot, 512);
      nst_bulk_load<NST_HINT_NONE>(data, a.in + 128 * part, 512, full + slot, 0);
    }
    if (nst_warp() == 1) {
      nst_mbarrier_wait(full + slot, round % 2);
      nst_vec v = nst_smem_load_vec(data + 16 * nst_lane());
      if (a.variant == 2) nst_mbarrier_arrive(empty + slot);
      nst_sync_warp();
      if (a.variant == 2) v = nst_smem_load_vec(data + 16 * nst_lane());
      for (uint32_t &w : v.w) w = nst_f32_bits(2 * nst_bits_f32(w));
      nst_store_vec(a.out + 128 * part + 4 * nst_lane(), v);
      if (a.variant != 2) nst_mbarrier_arrive(empty + slot);
    }
  }
}

/* Every block of a cluster of n sends its number to every block, each adds up what came. */
static void kernel_remote(args a) {
  auto *bar = reinterpret_cast<uint64_t *>(nst_smem());
  float *came = floats() + 32;
  const uint32_t v = a.variant;
  if (nst_thread() == 0) {
    nst_mbarrier_init(bar, 1);
    nst_mbarrier_init_fence();
    nst_mbarrier_arrive_expect(bar, 4 * a.n);
  }
  nst_cluster_arrive();
  if (v == 5 && nst_cluster_rank() == 0) return;
  if (v != 3) nst_cluster_wait();
  if (nst_thread() < a.n)
    nst_remote_store_f32(came + nst_cluster_rank(), static_cast<float>(nst_block()), bar, v == 2 ? a.n : nst_thread());
  if (v == 4 && nst_cluster_rank() == 0) return;
  if (v != 1) nst_mbarrier_wait(bar, 0);
  float sum = 0;
  for (uint32_t i = 0; i < a.n; ++i) sum += nst_smem_load_f32(came + i);
  nst_mbarrier_wait(bar, 0);
  if (nst_thread() == 0) nst_store_f32(a.out + nst_block(), sum);
}

/* Reads shared memory that nobody wrote, and writes it for the next block to see that it does not. */
static void kernel_shared(args a) {
  float *mine = floats() + nst_thread();
  if (a.variant == 1) mine = floats() + a.n;
  if (a.variant == 2) mine = reinterpret_cast<float *>(nst_smem() + 2);
  if (a.variant == 3) nst_load_u32(mine);
  if (a.variant == 4) *static_cast<volatile char *>(nst_smem() + 4 * a.n) = 1;
  nst_store_f32(a.out + nst_block() * a.n + nst_thread(), nst_smem_load_f32(mine));
  nst_smem_store_f32(mine, 1.0f);
}

/* Copies n bytes; variant: the width of an access. The last access may lie beyond the tensor. */
static void kernel_copy(args a) {
  const uint32_t at = nst_thread() * a.variant;
  const char *from = reinterpret_cast<const char *>(a.in) + at;
  char *to = reinterpret_cast<char *>(a.out) + at;
  if (a.variant == 16) nst_store_vec(to, nst_load_vec<NST_HINT_NONE>(from, 0));
  if (a.variant == 8) nst_store_u64(to, nst_load_u64(from));
  if (a.variant == 4) nst_store_u32(to, nst_load_u32(from));
  if (a.variant == 2) nst_store_u16(to, nst_load_u16(from));
}

/* Tells the test, behind the device's back, in which order threads run. */
static std::vector<uint32_t> ran;
static void kernel_order(args) { ran.push_back(128 * nst_block() + nst_thread()); }

/* Takes n bytes of its stack. */
static void kernel_deep(args a) {
  volatile char *room = static_cast<char *>(__builtin_alloca(a.n));
  room[0] = 1;
  nst_sync_block();
  nst_store_f32(a.out, room[0]);
}

template <void (*KERNEL)(args)> static void thunk(const void *param) { KERNEL(*static_cast<const args *>(param)); }

const std::vector<softgpu_kernel> &softgpu_kernels() {
  static const std::vector<softgpu_kernel> table = {
      {"block_reverse", thunk<kernel_block_reverse>}, {"bulk", thunk<kernel_bulk>},
      {"cluster", thunk<kernel_cluster>},             {"copy", thunk<kernel_copy>},
      {"deep", thunk<kernel_deep>},                   {"divergent", thunk<kernel_divergent>},
      {"early_end", thunk<kernel_early_end>},         {"named", thunk<kernel_named>},
      {"order", thunk<kernel_order>},                 {"place", thunk<kernel_place>},
      {"remote", thunk<kernel_remote>},               {"ring", thunk<kernel_ring>},
      {"shared", thunk<kernel_shared>},               {"warp_reverse", thunk<kernel_warp_reverse>},
      {"warp_sum", thunk<kernel_warp_sum>},
  };
  return table;
}

/* ---- The driver, through the hook ----------------------------------------------------------------------------- */

#define DRIVER(name) reinterpret_cast<decltype(&name)>(softgpu_get_proc(nullptr, #name, 13000))

static CUlibrary library;
static const uint32_t IMAGE[4] = {0xBA55ED50u};

static CUdeviceptr device_alloc(size_t size) {
  CUdeviceptr p = 0;
  assert_int_equal(DRIVER(cuMemAlloc)(&p, size), CUDA_SUCCESS);
  return p;
}

struct shape {
  uint32_t grid, threads, shared, cluster;
};

static CUresult launch(const char *name, const args &a, const shape &s) {
  CUkernel kernel;
  assert_int_equal(DRIVER(cuLibraryGetKernel)(&kernel, library, name), CUDA_SUCCESS);
  CUlaunchAttribute cluster = {};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {s.cluster, 1, 1};
  const CUlaunchConfig config = {s.grid, 1, 1, s.threads, 1, 1, s.shared, nullptr, &cluster, s.cluster > 1};
  void *params[] = {const_cast<args *>(&a)};
  return DRIVER(cuLaunchKernelEx)(&config, reinterpret_cast<CUfunction>(kernel), params, nullptr);
}

/* Launches with `in` and an output of `count` floats in device memory; returns the output, empty after a failure. */
static std::vector<float> run(const char *name, uint32_t n, uint32_t variant, const shape &s,
                              const std::vector<float> &in, size_t count) {
  const CUdeviceptr x = device_alloc(in.size() * 4), y = device_alloc(count * 4);
  assert_int_equal(DRIVER(cuMemcpyHtoD)(x, in.data(), in.size() * 4), CUDA_SUCCESS);
  const args a = {reinterpret_cast<float *>(x), reinterpret_cast<float *>(y), n, variant};
  std::vector<float> out(count);
  const CUresult result = launch(name, a, s);
  if (result != CUDA_SUCCESS) {
    assert_int_equal(result, CUDA_ERROR_LAUNCH_FAILED);
    assert_true(strlen(softgpu_last_error()) > 0);
    out.clear();
  } else {
    assert_string_equal(softgpu_last_error(), "");
    assert_int_equal(DRIVER(cuMemcpyDtoH)(out.data(), y, count * 4), CUDA_SUCCESS);
  }
  assert_int_equal(DRIVER(cuMemFree)(x), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuMemFree)(y), CUDA_SUCCESS);
  return out;
}

static std::vector<float> counting(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i + 1);
  return v;
}

constexpr unsigned ORDERS = 10;

/* The kernel's variant is right in every order. */
static void expect_right(const char *name, uint32_t n, const shape &s, const std::vector<float> &in,
                         const std::vector<float> &want) {
  for (unsigned order = 0; order < ORDERS; ++order) {
    softgpu_set_order(order);
    const std::vector<float> got = run(name, n, 0, s, in, want.size());
    if (got != want) fail_msg("%s in order %u: %s", name, order, softgpu_last_error());
  }
  softgpu_set_order(0);
}

/* The variant runs in every order, and at least one gives a wrong result. */
static void expect_wrong(const char *name, uint32_t n, uint32_t variant, const shape &s, const std::vector<float> &in,
                         const std::vector<float> &want) {
  bool wrong = false;
  for (unsigned order = 0; order < ORDERS; ++order) {
    softgpu_set_order(order);
    const std::vector<float> got = run(name, n, variant, s, in, want.size());
    if (got.empty()) fail_msg("%s variant %u in order %u: %s", name, variant, order, softgpu_last_error());
    wrong = wrong || got != want;
  }
  softgpu_set_order(0);
  if (!wrong) fail_msg("%s variant %u gives the right result in every order", name, variant);
}

/* The variant fails in some order (in order 0 if `at_once`) with a sentence that has all of `words` in it. */
static void expect_failure(const char *name, uint32_t n, uint32_t variant, const shape &s, bool at_once,
                           const std::vector<const char *> &words) {
  std::string said;
  for (unsigned order = 0; order < (at_once ? 1 : ORDERS); ++order) {
    softgpu_set_order(order);
    if (run(name, n, variant, s, counting(1024), 1024).empty() && said.empty()) said = softgpu_last_error();
  }
  softgpu_set_order(0);
  for (const char *word : words)
    if (said.find(word) == std::string::npos)
      fail_msg("%s variant %u says \"%s\", without \"%s\"", name, variant, said.c_str(), word);
}

/* ---- Arithmetic ----------------------------------------------------------------------------------------------- */

/* A 16-bit float of so many fraction bits, in double; infinity counts as the next power of two. */
static double value_of(uint32_t magnitude, int fraction, int bias) {
  const uint32_t exponent = magnitude >> fraction, part = magnitude & ((1u << fraction) - 1);
  return exponent ? ldexp(1 + ldexp(part, -fraction), static_cast<int>(exponent) - bias)
                  : ldexp(part, 1 - bias - fraction);
}

static void check_format(int fraction, int bias, void (*unpack)(uint32_t, float *, float *),
                         uint32_t (*pack)(float, float)) {
  const uint32_t infinity = 0x7fffu >> fraction << fraction;
  for (uint32_t h = 0; h < 65536; ++h) {
    const uint32_t magnitude = h & 0x7fff;
    const float sign = h & 0x8000 ? -1.0f : 1.0f;
    float lo, hi;
    unpack(h | (h ^ 0x8000u) << 16, &lo, &hi);
    if (magnitude > infinity) {
      assert_true(isnan(lo) && isnan(hi));
      assert_int_equal(pack(lo, hi), 0x7fff7fffu);
      continue;
    }
    assert_true(lo == (magnitude == infinity ? sign * INFINITY : sign * value_of(magnitude, fraction, bias)));
    assert_true(hi == -lo && signbit(lo) == (h >> 15 & 1) && signbit(hi) != signbit(lo));
    assert_int_equal(pack(lo, hi), h | (h ^ 0x8000u) << 16);
    if (magnitude == infinity) continue;
    /* the middle between this value and the next goes to the even one, its f32 neighbours to the nearer */
    const double middle = (value_of(magnitude, fraction, bias) + value_of(magnitude + 1, fraction, bias)) / 2;
    const float tie = static_cast<float>(middle);
    assert_true(static_cast<double>(tie) == middle);
    assert_int_equal(pack(sign * tie, 0), h + (magnitude & 1));
    assert_int_equal(pack(sign * nextafterf(tie, 0), 0), h);
    assert_int_equal(pack(sign * nextafterf(tie, INFINITY), 0), h + 1);
  }
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xff812345u, 0xffffffffu})
    assert_int_equal(pack(nst_bits_f32(bits), 1), 0x7fffu | pack(0, 1));
}

static void test_f16(void **) {
  check_format(10, 15, nst_unpack_f16, nst_pack_f16);
  assert_int_equal(nst_pack_f16(1e30f, -1e-30f), 0x80007c00u);
}

static void test_bf16(void **) {
  check_format(7, 127, nst_unpack_bf16, nst_pack_bf16);
  assert_int_equal(nst_pack_bf16(INFINITY, -1e-44f), 0x80007f80u);
}

static void test_rsqrt(void **) {
  for (uint32_t i = 0; i < 1u << 24; ++i) { /* every mantissa, with an even and an odd exponent */
    const float v = nst_bits_f32(0x3f800000u + i), want = static_cast<float>(1 / sqrtl(v));
    if (nst_rsqrt(v) != want) fail_msg("rsqrt(%a) = %a, not %a", v, nst_rsqrt(v), want);
  }
  for (float v : {0x1p-149f, 0x1.8p-140f, 0x1.fffffep127f, 0x1p-126f})
    assert_true(nst_rsqrt(v) == static_cast<float>(1 / sqrtl(v)));
  assert_true(nst_rsqrt(0.0f) == INFINITY && nst_rsqrt(-0.0f) == -INFINITY && nst_rsqrt(INFINITY) == 0);
  assert_int_equal(nst_f32_bits(nst_rsqrt(-1.0f)), 0x7fffffffu);
  assert_int_equal(nst_f32_bits(nst_rsqrt(NAN)), 0x7fffffffu);
}

static void test_fma(void **) {
  const float a = 1 + 0x1p-12f;
  assert_true(nst_fma(a, a, -1 - 0x1p-11f) == 0x1p-24f); /* 0 with two roundings */
  volatile float product = a * a;                        /* and not contracted where nst_fma is not asked for */
  assert_true(product + (-1 - 0x1p-11f) == 0);
}

/* ---- Execution ------------------------------------------------------------------------------------------------ */

static void test_place(void **) {
  std::vector<float> want;
  for (uint32_t block = 0; block < 6; ++block)
    for (uint32_t thread = 0; thread < 96; ++thread)
      for (uint32_t value : {thread, thread % 32, thread / 32, block, 6u, block % 3})
        want.push_back(static_cast<float>(value));
  expect_right("place", 96, {6, 96, 0, 3}, {0}, want);
}

static void test_orders(void **) {
  std::vector<uint32_t> ascending(512), by_order[5];
  for (uint32_t i = 0; i < 512; ++i) ascending[i] = i;
  for (unsigned order : {0u, 1u, 2u, 3u, 4u}) {
    softgpu_set_order(order == 4 ? 2 : order);
    ran.clear();
    assert_int_equal(run("order", 0, 0, {4, 128, 0, 2}, {0}, 1).size(), 1);
    by_order[order] = ran;
    assert_true(std::is_permutation(ran.begin(), ran.end(), ascending.begin(), ascending.end()));
  }
  softgpu_set_order(0);
  assert_true(by_order[0] == ascending);
  assert_true(std::equal(ascending.rbegin(), ascending.rend(), by_order[1].begin()));
  assert_true(by_order[2] == by_order[4]);
  for (int order : {0, 1, 3}) assert_true(by_order[2] != by_order[order]);
  /* shuffled: neither the lanes of a warp nor the warps of a cluster follow each other up or down */
  bool lanes = false, warps = false;
  for (size_t i = 1; i < 512; ++i) {
    const uint32_t a = by_order[2][i - 1], b = by_order[2][i];
    lanes = lanes || (a / 32 == b / 32 && b != a + 1 && b != a - 1);
    warps = warps || (a / 256 == b / 256 && a / 32 != b / 32 && b / 32 != a / 32 + 1 && b / 32 != a / 32 - 1);
  }
  assert_true(lanes && warps);
}

static void test_shuffle(void **) {
  std::vector<float> want(128);
  for (size_t i = 0; i < 128; ++i) want[i] = static_cast<float>(32 * (i / 32 * 32) + 32 * 33 / 2);
  expect_right("warp_sum", 0, {1, 128, 0, 1}, counting(128), want);
}

static void test_shuffle_misuse(void **) {
  expect_failure("divergent", 0, 1, {1, 64, 0, 1}, true,
                 {"kernel divergent, block 0, thread 37: ends while lanes 0-4 of its warp are in a shuffle"});
  expect_failure("divergent", 0, 2, {1, 64, 0, 1}, true, {"block 0, thread 37", "barrier 0", "lanes 0-4", "a shuffle"});
  expect_failure("divergent", 0, 3, {1, 64, 0, 1}, true, {"thread 16: comes to a warp barrier while lanes 0-15"});
  expect_failure("divergent", 0, 4, {1, 64, 0, 1}, true, {"thread 16: comes to barrier 2 while lanes 0-15"});
  expect_failure("divergent", 0, 5, {1, 64, 0, 1}, true, {"a shuffle reads lane 32"});
  expect_failure("warp_sum", 0, 0, {1, 48, 0, 1}, true, {"comes to a shuffle without lanes 16-31"});
}

static std::vector<float> reversed(size_t count, size_t part) {
  std::vector<float> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = static_cast<float>(i / part * part + part - i % part);
  return v;
}

static void test_warp_barrier(void **) {
  const shape s = {1, 96, 384, 1};
  expect_right("warp_reverse", 96, s, counting(96), reversed(96, 32));
  expect_wrong("warp_reverse", 96, 1, s, counting(96), reversed(96, 32));
}

static void test_block_barrier(void **) {
  const shape s = {2, 256, 1024, 1};
  expect_right("block_reverse", 256, s, counting(256), reversed(256, 256));
  expect_wrong("block_reverse", 256, 1, s, counting(256), reversed(256, 256));
  expect_wrong("block_reverse", 256, 2, s, counting(256), reversed(256, 256));
}

static void test_named_barriers(void **) {
  const shape s = {1, 128, 512, 1};
  expect_right("named", 128, s, counting(128), reversed(128, 64));
  expect_wrong("named", 128, 5, s, counting(128), reversed(128, 64));
  expect_failure("named", 128, 1, s, true,
                 {"kernel named, deadlock", "block 0 threads 0-63 wait at barrier 1, where 64 of 96 threads are",
                  "block 0 threads 64-127 wait at barrier 2"});
  expect_failure("named", 128, 2, s, true, {"barrier 1 with a count of 96 threads, others with 64"});
  expect_failure("named", 128, 3, s, true, {"barrier 16"});
  expect_failure("named", 128, 4, s, true, {"33 threads, not a positive multiple of 32"});
}

static void test_cluster_barrier(void **) {
  const std::vector<float> want = {0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 0, 5, 6, 7, 4};
  const shape s = {8, 64, 0, 4};
  expect_right("cluster", 4, s, {0}, want);
  expect_wrong("cluster", 4, 1, s, {0}, want);
  expect_failure("cluster", 4, 2, s, true, {"without having arrived"});
  expect_failure("cluster", 4, 3, s, true, {"arrives at the cluster barrier twice"});
}

static void test_early_end(void **) {
  std::vector<float> want(96, 1.0f);
  for (size_t i = 32; i < 64; ++i) want[i] = NAN;
  for (unsigned order = 0; order < ORDERS; ++order) {
    softgpu_set_order(order);
    const std::vector<float> got = run("early_end", 0, 0, {2, 96, 0, 2}, {0}, 96);
    assert_int_equal(got.size(), 96);
    for (size_t i = 0; i < 96; ++i) assert_true(i / 32 == 1 ? isnan(got[i]) : got[i] == 1.0f);
  }
  softgpu_set_order(0);
}

static void test_bulk_load(void **) {
  const shape s = {2, 64, 128 + 1024, 1};
  const std::vector<float> in = counting(256);
  expect_right("bulk", 256, s, in, in);
  expect_wrong("bulk", 256, 1, s, in, in);
  expect_wrong("bulk", 256, 13, s, in, in);
  expect_failure("bulk", 256, 2, s, true, {"without nst_mbarrier_init_fence"});
  expect_failure("bulk", 256, 3, s, true,
                 {"deadlock; block 0 threads 0-63 wait for parity 0 of the mbarrier at byte 0", "16 bytes"});
  expect_failure("bulk", 256, 4, s, true, {"byte 136 of shared memory, which is not a multiple of 16"});
  expect_failure("bulk", 256, 5, s, true, {"access of 512 bytes at byte 656", "1152 bytes"});
  expect_failure("bulk", 256, 6, s, false, {"deadlock", "wait for parity 1 of the mbarrier at byte 0"});
  expect_failure("bulk", 256, 7, s, true, {"mbarrier at byte 0", "not initialised"});
  expect_failure("bulk", 256, 8, s, true, {"more often than it was initialised for"});
  expect_failure("bulk", 256, 9, s, true, {"ends while a copy to its shared memory is on its way"});
  expect_failure("bulk", 256, 10, s, true, {"twice"});
  expect_failure("bulk", 256, 11, s, true, {"8 bytes", "multiple of 16"});
  expect_failure("bulk", 256, 12, s, true, {"ends while a copy to its shared memory is on its way"});
}

static void test_ring(void **) {
  const shape s = {1, 64, 128 + 1024, 1};
  const std::vector<float> in = counting(1024);
  std::vector<float> want = in;
  for (float &v : want) v *= 2;
  expect_right("ring", 0, s, in, want);
  expect_failure("ring", 0, 1, s, true, {"thread 0: arrives at the mbarrier at byte 0 more often"});
  expect_wrong("ring", 0, 2, s, in, want);
}

static void test_remote_store(void **) {
  std::vector<float> want;
  for (int block = 0; block < 16; ++block) want.push_back(block < 8 ? 28 : 28 + 64);
  const shape s = {16, 64, 256, 8};
  expect_right("remote", 8, s, {0}, want);
  expect_wrong("remote", 8, 1, s, {0}, want);
  expect_failure("remote", 8, 2, s, true, {"remote store to block 8 of a cluster of 8"});
  expect_failure("remote", 8, 3, s, false, {"not initialised"});
  expect_failure("remote", 8, 4, s, true, {"ends while a copy to its shared memory is on its way"});
  expect_failure("remote", 8, 5, s, true, {"shared memory of block 0, which has ended"});
}

static void test_shared_memory(void **) {
  const shape s = {3, 64, 256, 1};
  const std::vector<float> got = run("shared", 64, 0, s, {0}, 192);
  assert_int_equal(got.size(), 192);
  for (float v : got) assert_int_equal(nst_f32_bits(v), 0xffffffffu);
  expect_failure("shared", 64, 1, s, true, {"access of 4 bytes at byte 256", "has 256 bytes"});
  expect_failure("shared", 64, 2, s, true, {"byte 2 of shared memory, which is not a multiple of 4"});
  expect_failure("shared", 64, 3, s, true, {"which is shared memory"});
}

static void test_deep_stack(void **) {
  assert_int_equal(run("deep", 40000, 0, {1, 32, 0, 1}, {0}, 1).size(), 1);
  expect_failure("deep", 58000, 0, {1, 32, 0, 1}, true, {"do not fit the stack"});
}

/* Two host threads launch at once; fibers go from one to the other. */
static void test_host_threads(void **) {
  const CUdeviceptr x = device_alloc(1024), y = device_alloc(2048);
  const std::vector<float> in = counting(256);
  CUcontext context;
  assert_int_equal(DRIVER(cuMemcpyHtoD)(x, in.data(), 1024), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuCtxGetCurrent)(&context), CUDA_SUCCESS);
  int bad[2] = {};
  std::vector<std::thread> both;
  for (size_t i = 0; i < 2; ++i)
    both.emplace_back([&, i] {
      const args a = {reinterpret_cast<float *>(x), reinterpret_cast<float *>(y) + 256 * i, 256, 0};
      bad[i] += launch("block_reverse", a, {1, 256, 1024, 1}) != CUDA_ERROR_INVALID_CONTEXT;
      bad[i] += DRIVER(cuCtxSetCurrent)(context) != CUDA_SUCCESS;
      for (int j = 0; j < 50; ++j) bad[i] += launch("block_reverse", a, {1, 256, 1024, 1}) != CUDA_SUCCESS;
    });
  for (std::thread &t : both) t.join();
  assert_int_equal(bad[0] + bad[1], 0);
  std::vector<float> out(512), want = reversed(256, 256);
  assert_int_equal(DRIVER(cuMemcpyDtoH)(out.data(), y, 2048), CUDA_SUCCESS);
  want.insert(want.end(), want.begin(), want.begin() + 256);
  assert_true(out == want);
  assert_int_equal(DRIVER(cuMemFree)(x), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuMemFree)(y), CUDA_SUCCESS);
}

/* ---- Strays, seen by AddressSanitizer --------------------------------------------------------------------------- */

/* What a child process that does `what` writes to stderr; "" if it lives through it. */
static std::string last_words(const std::function<void()> &what) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    dup2(ends[1], 2);
    what();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) words.append(part, static_cast<size_t>(got));
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && !WEXITSTATUS(status) ? "" : words;
}

static void expect_stray(const char *name, size_t in_bytes, size_t out_bytes, uint32_t n, uint32_t variant,
                         const shape &s, const char *words) {
  const CUdeviceptr x = device_alloc(in_bytes), y = device_alloc(out_bytes);
  const args a = {reinterpret_cast<float *>(x), reinterpret_cast<float *>(y), n, variant};
  const std::string said = last_words([&] { launch(name, a, s); });
  if (!words)
    assert_string_equal(said.c_str(), "");
  else if (said.find(words) == std::string::npos || said.find(name) == std::string::npos)
    fail_msg("%s variant %u says \"%s\", without \"%s\"", name, variant, said.c_str(), words);
  assert_int_equal(DRIVER(cuMemFree)(x), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuMemFree)(y), CUDA_SUCCESS);
}

static void test_strays(void **) {
#ifndef SOFTGPU_ASAN
  skip(); /* needs AddressSanitizer */
#endif
  for (uint32_t width : {2u, 4u, 8u, 16u}) {
    const size_t size = 64 * width;
    expect_stray("copy", size, size, 0, width, {1, 64, 0, 1}, nullptr);
    for (size_t missing : {size_t{1}, size_t{width}}) {
      expect_stray("copy", size - missing, size, 0, width, {1, 64, 0, 1}, "heap-buffer-overflow");
      expect_stray("copy", size, size - missing, 0, width, {1, 64, 0, 1}, "heap-buffer-overflow");
    }
  }
  expect_stray("bulk", 1024, 1024, 256, 0, {1, 64, 1152, 1}, nullptr);
  expect_stray("bulk", 1022, 1024, 256, 0, {1, 64, 1152, 1}, "in softgpu_bulk_load");
  expect_stray("shared", 4, 252, 63, 4, {1, 63, 252, 1}, "use-after-poison");
}

/* ---- The driver's refusals ------------------------------------------------------------------------------------- */

static void test_launch_limits(void **) {
  const args a = {};
  const unsigned long before = softgpu_launches();
  const struct {
    shape s;
    CUresult want;
  } cases[] = {
      {{0, 32, 0, 1}, CUDA_ERROR_INVALID_VALUE},
      {{0x80000000u, 32, 0, 1}, CUDA_ERROR_INVALID_VALUE},
      {{1, 0, 0, 1}, CUDA_ERROR_INVALID_VALUE},
      {{1, 1025, 0, 1}, CUDA_ERROR_INVALID_VALUE},
      {{1, 32, 49153, 1}, CUDA_ERROR_INVALID_VALUE},
      {{6, 32, 0, 4}, CUDA_ERROR_INVALID_CLUSTER_SIZE},
      {{9, 32, 0, 9}, CUDA_ERROR_INVALID_CLUSTER_SIZE},
      {{17, 32, 0, 17}, CUDA_ERROR_INVALID_CLUSTER_SIZE},
  };
  for (const auto &each : cases) assert_int_equal(launch("place", a, each.s), each.want);
  assert_int_equal(softgpu_launches(), before);

  CUkernel kernel;
  int value;
  assert_int_equal(DRIVER(cuLibraryGetKernel)(&kernel, library, "early_end"), CUDA_SUCCESS);
  const auto set = [&](CUfunction_attribute attribute, int to) {
    return DRIVER(cuKernelSetAttribute)(attribute, to, kernel, 0);
  };
  assert_int_equal(set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0),
                   CUDA_SUCCESS);
  assert_int_equal(value, 232448);
  assert_int_equal(run("early_end", 0, 0, {1, 96, 232448, 1}, {0}, 96).size(), 96);
  assert_int_equal(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), CUDA_SUCCESS);
  assert_int_equal(run("early_end", 0, 0, {16, 96, 0, 16}, {0}, 96).size(), 96);
  assert_int_equal(softgpu_launches(), before + 2);
}

static void test_libraries(void **) {
  CUlibrary other;
  CUkernel kernel, kernels[64];
  CUfunction function;
  unsigned count;
  const char *name;
  const auto load = [&](const void *image) {
    return DRIVER(cuLibraryLoadData)(&other, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  };
  assert_int_equal(load("not an image"), CUDA_ERROR_INVALID_IMAGE);
  assert_int_equal(load(IMAGE), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuLibraryGetKernel)(&kernel, other, "absent"), CUDA_ERROR_NOT_FOUND);
  assert_int_equal(DRIVER(cuLibraryGetKernelCount)(&count, other), CUDA_SUCCESS);
  assert_int_equal(count, softgpu_kernels().size());
  assert_int_equal(DRIVER(cuLibraryEnumerateKernels)(kernels, count, other), CUDA_SUCCESS);
  for (unsigned i = 0; i < count; ++i) {
    assert_int_equal(DRIVER(cuKernelGetName)(&name, kernels[i]), CUDA_SUCCESS);
    assert_string_equal(name, softgpu_kernels()[i].name);
    assert_int_equal(DRIVER(cuLibraryGetKernel)(&kernel, other, name), CUDA_SUCCESS);
    assert_ptr_equal(kernel, kernels[i]);
    assert_int_equal(DRIVER(cuKernelGetFunction)(&function, kernel), CUDA_SUCCESS);
    assert_int_equal(DRIVER(cuFuncLoad)(function), CUDA_SUCCESS);
  }
  assert_int_equal(DRIVER(cuLibraryUnload)(other), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuLibraryUnload)(other), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(DRIVER(cuFuncLoad)(function), CUDA_ERROR_INVALID_HANDLE);
}

static void test_memory(void **) {
  const CUdeviceptr p = device_alloc(100);
  unsigned char bytes[100];
  assert_int_equal(p % 256, 0);
  assert_int_equal(DRIVER(cuMemcpyDtoH)(bytes, p, 100), CUDA_SUCCESS);
  for (unsigned char byte : bytes) assert_int_equal(byte, 255);
  assert_int_equal(DRIVER(cuMemsetD8)(p + 10, 7, 90), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuMemcpyDtoD)(p, p + 10, 10), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuMemcpyDtoH)(bytes, p, 100), CUDA_SUCCESS);
  for (unsigned char byte : bytes) assert_int_equal(byte, 7);
  assert_int_equal(DRIVER(cuMemsetD8)(p + 10, 7, 91), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(DRIVER(cuMemcpyHtoD)(p - 1, bytes, 1), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(DRIVER(cuMemcpyDtoH)(bytes, p, 101), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(DRIVER(cuMemFree)(p + 1), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(DRIVER(cuMemFree)(p), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuMemFree)(p), CUDA_ERROR_INVALID_VALUE);
}

static void test_device(void **) {
  char name[32];
  int value, version;
  CUdevice device;
  CUcontext before, own, now;
  CUstream stream;
  CUevent event;
  const char *words;
  void *function;
  assert_null(softgpu_get_proc(nullptr, "cuNoSuchFunction", 13000));
  assert_null(softgpu_get_proc(nullptr, "cuLibraryLoadData", 11000));
  assert_ptr_equal(softgpu_get_proc(nullptr, "cuMemAlloc_v2", 12000), DRIVER(cuMemAlloc));
  assert_int_equal(DRIVER(cuGetProcAddress)("cuInit", &function, 12000, 0, nullptr), CUDA_SUCCESS);
  assert_ptr_equal(function, DRIVER(cuInit));
  assert_int_equal(DRIVER(cuDriverGetVersion)(&version), CUDA_SUCCESS);
  assert_int_equal(version, 13000);
  assert_int_equal(DRIVER(cuDeviceGet)(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  assert_int_equal(DRIVER(cuDeviceGet)(&device, 0), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuDeviceGetName)(name, sizeof name, device), CUDA_SUCCESS);
  assert_string_equal(name, "software device");
  for (int count : {7, 4}) {
    softgpu_set_multiprocessors(count);
    assert_int_equal(DRIVER(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), 0);
    assert_int_equal(value, count);
  }
  assert_int_equal(DRIVER(cuCtxGetCurrent)(&before), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuCtxCreate)(&own, nullptr, 0, device), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuCtxGetCurrent)(&now), CUDA_SUCCESS);
  assert_ptr_equal(now, own);
  assert_int_equal(DRIVER(cuCtxDestroy)(own), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuCtxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT);
  assert_int_equal(DRIVER(cuCtxSetCurrent)(own), CUDA_ERROR_INVALID_CONTEXT);
  assert_int_equal(DRIVER(cuCtxSetCurrent)(before), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuEventCreate)(&event, 0), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuEventRecord)(event, stream), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuStreamDestroy)(stream), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuStreamSynchronize)(stream), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(DRIVER(cuEventDestroy)(event), CUDA_SUCCESS);
  assert_int_equal(DRIVER(cuGetErrorName)(CUDA_ERROR_INVALID_HANDLE, &words), CUDA_SUCCESS);
  assert_string_equal(words, "CUDA_ERROR_INVALID_HANDLE");
}

static int open_device(void **) {
  CUcontext context;
  if (DRIVER(cuCtxGetCurrent)(&context) != CUDA_ERROR_NOT_INITIALIZED) return -1;
  if (DRIVER(cuInit)(0) || DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) || DRIVER(cuCtxSetCurrent)(context)) return -1;
  return DRIVER(cuLibraryLoadData)(&library, IMAGE, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

static int close_device(void **) {
  return DRIVER(cuLibraryUnload)(library) || DRIVER(cuDevicePrimaryCtxRelease)(0) ||
         DRIVER(cuDevicePrimaryCtxRelease)(0) != CUDA_ERROR_INVALID_CONTEXT;
}

int main(void) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_f16),
      cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_rsqrt),
      cmocka_unit_test(test_fma),
      cmocka_unit_test(test_place),
      cmocka_unit_test(test_orders),
      cmocka_unit_test(test_shuffle),
      cmocka_unit_test(test_shuffle_misuse),
      cmocka_unit_test(test_warp_barrier),
      cmocka_unit_test(test_block_barrier),
      cmocka_unit_test(test_named_barriers),
      cmocka_unit_test(test_cluster_barrier),
      cmocka_unit_test(test_early_end),
      cmocka_unit_test(test_bulk_load),
      cmocka_unit_test(test_ring),
      cmocka_unit_test(test_remote_store),
      cmocka_unit_test(test_shared_memory),
      cmocka_unit_test(test_deep_stack),
      cmocka_unit_test(test_host_threads),
      cmocka_unit_test(test_strays),
      cmocka_unit_test(test_launch_limits),
      cmocka_unit_test(test_libraries),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_device),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
