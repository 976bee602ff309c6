/* Between the parts of the software device: the table of kernels and the interpreter that runs one. */
#ifndef NST_SOFTGPU_MACHINE_H
#define NST_SOFTGPU_MACHINE_H

#include <stdint.h>

#include <string>
#include <vector>

#if defined __SANITIZE_ADDRESS__ /* g++ */
#define SOFTGPU_ASAN 1
#elif defined __has_feature /* clang */
#if __has_feature(address_sanitizer)
#define SOFTGPU_ASAN 1
#endif
#endif

struct softgpu_kernel {
  const char *name;
  void (*run)(const void *param); /* calls the kernel with the struct at param, for one thread */
};

/* Every kernel, sorted by name. A program that defines this function itself replaces registry.cpp. */
const std::vector<softgpu_kernel> &softgpu_kernels();

constexpr uint32_t SOFTGPU_MAX_THREADS = 1024;  /* of a block */
constexpr uint32_t SOFTGPU_MAX_CLUSTER = 16;    /* blocks; above 8 a kernel must allow it */
constexpr uint32_t SOFTGPU_MAX_SHARED = 232448; /* bytes of a block's dynamic shared memory */

struct softgpu_grid {
  const softgpu_kernel *kernel;
  const void *param;
  uint32_t blocks, threads, cluster, shared; /* already checked */
};

/* Runs a grid to its end. Returns what went wrong, empty if nothing did. One call at a time. */
std::string softgpu_run(const softgpu_grid &grid);

#endif
