/* The tests' side of the stand-in libcupti: its file, and its own functions. */
#ifndef NST_TESTS_FAKE_CUPTI_H
#define NST_TESTS_FAKE_CUPTI_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_cupti {
  char file[512];
  int (*add)(int kind, const char *name, uint64_t start, uint64_t end, uint32_t grid, uint32_t block, uint32_t cluster);
  void (*drop)(size_t count);
  void (*version)(uint32_t version);
};

enum { FAKE_KERNEL, FAKE_MEMSET, FAKE_MEMCPY };

/* NULL where the file is missing. NST_BUILD names the build folder. */
static inline struct fake_cupti *fake_cupti_load(void) {
  static struct fake_cupti fake;
  const char *build = getenv("NST_BUILD");
  snprintf(fake.file, sizeof fake.file, "%.400s/tests/perf/libfake_cupti.so", build ? build : ".");
  void *library = dlopen(fake.file, RTLD_NOW);
  if (!library) return NULL;
  void *add = dlsym(library, "fake_cupti_add"), *drop = dlsym(library, "fake_cupti_drop");
  void *version = dlsym(library, "fake_cupti_version");
  memcpy(&fake.add, &add, sizeof add);
  memcpy(&fake.drop, &drop, sizeof drop);
  memcpy(&fake.version, &version, sizeof version);
  return add && drop && version ? &fake : NULL;
}

#endif
