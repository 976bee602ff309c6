/*
 * What a call of the library costs on top of the driver's launch: the whole call, with its checks, against a direct
 * launch through the same do-nothing driver. Prints nanoseconds and fails above the limit, which may be given as the
 * only argument.
 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_driver.h"

/* Other programs share the machine, so that only the least of many short batches says something. */
#define BATCHES 2000
#define CALLS 200

/* What is promised of a release build; others only show that nothing is wildly wrong. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SANITIZED) || !defined(__OPTIMIZE__)
static double limit_ns = 10000.0;
#else
static double limit_ns = 100.0;
#endif

typedef CUresult (*launch_function)(const CUlaunchConfig *, CUfunction, void **, void **);

static nst_library *library;
static launch_function launch_kernel;
static nst_rms_norm_fwd_args norm = NST_RMS_NORM_FWD_ARGS_INIT;
static nst_fused_add_rms_norm_fwd_args fused = NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT;
static nst_ada_layer_norm_zero_fwd_args zero = NST_ADA_LAYER_NORM_ZERO_FWD_ARGS_INIT;

static int launch_directly(void) {
  struct nst_rows_params params;
  memset(&params, 0, sizeof params);
  CUlaunchConfig config = {
      .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
  void *arguments[] = {&params};
  return (int)launch_kernel(&config, NULL, arguments, NULL);
}

static int launch_norm(void) { return (int)nst_rms_norm_fwd(library, &norm, NULL); }

static int launch_fused(void) { return (int)nst_fused_add_rms_norm_fwd(library, &fused, NULL); }

/* The one with the most tensors. */
static int launch_zero(void) { return (int)nst_ada_layer_norm_zero_fwd(library, &zero, NULL); }

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The least time of one call, or -1 where a call fails. */
static double least_ns(int (*call)(void)) {
  double least = 1e30;
  for (int batch = 0; batch < BATCHES; batch++) {
    int failures = 0;
    double begin = now();
    for (int i = 0; i < CALLS; i++) {
      failures |= call();
    }
    double each = (now() - begin) / CALLS;
    least = each < least ? each : least;
    if (failures) {
      return -1;
    }
  }
  return least;
}

static int measure(const char *name, int (*call)(void), double direct) {
  double whole = least_ns(call);
  if (whole < 0) {
    printf("%s failed: %s\n", name, nst_last_error());
    return 1;
  }
  printf("%-28s %6.1f ns a call, %6.1f ns on top of the launch alone (limit %.0f)\n", name, whole, whole - direct,
         limit_ns);
  return whole - direct > limit_ns;
}

int main(int argc, char **argv) {
  if (argc > 1) {
    limit_ns = atof(argv[1]);
  }
  fake_reset();
  if (fake_open(&library) != NST_OK) {
    printf("nst_open failed: %s\n", nst_last_error());
    return 1;
  }
  void *address = fake_get_proc(NULL, "cuLaunchKernelEx", 11060);
  memcpy(&launch_kernel, &address, sizeof address);

  /* Addresses alone: nothing is read or written behind them. */
  norm.dtype = NST_DTYPE_BF16, norm.rows = 2048, norm.n = 4096;
  norm.x = (void *)(uintptr_t)0x100000000, norm.weight = (void *)(uintptr_t)0x200000000;
  norm.y = (void *)(uintptr_t)0x300000000, norm.rstd = (float *)(uintptr_t)0x400000000;
  fused.dtype = NST_DTYPE_BF16, fused.rows = 2048, fused.n = 4096;
  fused.x = norm.x, fused.weight = norm.weight, fused.y = norm.y, fused.rstd = norm.rstd;
  fused.residual = (void *)(uintptr_t)0x500000000, fused.residual_out = (void *)(uintptr_t)0x600000000;

  double direct = least_ns(launch_directly);
  printf("%-28s %6.1f ns a call\n", "the launch alone", direct);
  int failed = measure("nst_rms_norm_fwd", launch_norm, direct);
  failed |= measure("nst_fused_add_rms_norm_fwd", launch_fused, direct);
  fused.y = (void *)(uintptr_t)fused.x, fused.residual_out = (void *)(uintptr_t)fused.residual;
  failed |= measure("the same, in place", launch_fused, direct);
  zero.dtype = NST_DTYPE_BF16, zero.rows = 2048, zero.n = 1152, zero.rows_per_cond = 256;
  zero.x = norm.x, zero.y = norm.y, zero.rstd = norm.rstd, zero.mean = (float *)(uintptr_t)0x700000000;
  zero.scale = norm.weight, zero.shift = fused.residual_out, zero.gate = (void *)(uintptr_t)0x800000000;
  failed |= measure("nst_ada_layer_norm_zero_fwd", launch_zero, direct);
  nst_close(library);
  return failed;
}
