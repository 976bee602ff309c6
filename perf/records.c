#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "records.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  BUFFER_BYTES = 1 << 20,
  NAMES_MAX = 4096,
  PATIENCE_MS = 5000 /* how long records of finished work may stay away */
};

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET,
                                           CUPTI_ACTIVITY_KIND_MEMCPY};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static struct {
  void *library;
  char file[512];
  uint32_t version;
  CUptiResult (*get_version)(uint32_t *);
  CUptiResult (*get_result_string)(CUptiResult, const char **);
  CUptiResult (*activity_register_callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
  CUptiResult (*activity_enable)(CUpti_ActivityKind);
  CUptiResult (*activity_disable)(CUpti_ActivityKind);
  CUptiResult (*activity_flush_all)(uint32_t);
  CUptiResult (*activity_get_next_record)(uint8_t *, size_t, CUpti_Activity **);
  CUptiResult (*activity_get_num_dropped_records)(CUcontext, uint32_t, size_t *);
} cupti;

/* CUPTI may complete a buffer on a thread of its own. */
static struct {
  pthread_mutex_t lock;
  struct record *items;
  size_t count, capacity;
  size_t dropped;   /* records that CUPTI or we had no memory for */
  size_t unstamped; /* records without timestamps */
  char *names[NAMES_MAX];
  size_t name_count;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- From buffers to records; the lock is held -------------------------------------------------------------- */

static const char *name_of(const char *name) {
  if (!name) name = "";
  for (size_t i = 0; i < seen.name_count; i++)
    if (strcmp(seen.names[i], name) == 0) return seen.names[i];
  char *copy = seen.name_count < NAMES_MAX ? malloc(strlen(name) + 1) : NULL;
  return copy ? seen.names[seen.name_count++] = strcpy(copy, name) : "";
}

static void add(struct record r) {
  if (r.start == 0 && r.end == 0) seen.unstamped++;
  if (seen.count == seen.capacity) {
    const size_t capacity = seen.capacity ? seen.capacity * 2 : 1024;
    struct record *items = realloc(seen.items, capacity * sizeof *items);
    if (!items) {
      seen.dropped++;
      return;
    }
    seen.items = items;
    seen.capacity = capacity;
  }
  seen.items[seen.count++] = r;
}

static void add_activity(const CUpti_Activity *activity) {
  if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || activity->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
    const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)activity;
    const uint32_t cluster = k->clusterX * k->clusterY * k->clusterZ;
    add((struct record){.kind = RECORD_KERNEL,
                        .start = k->start,
                        .end = k->end,
                        .name = name_of(k->name),
                        .grid = {(uint32_t)k->gridX, (uint32_t)k->gridY, (uint32_t)k->gridZ},
                        .block = {(uint32_t)k->blockX, (uint32_t)k->blockY, (uint32_t)k->blockZ},
                        .cluster = cluster ? cluster : 1,
                        .registers = k->registersPerThread,
                        .shared_bytes = (uint32_t)k->staticSharedMemory + (uint32_t)k->dynamicSharedMemory});
  } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const CUpti_ActivityMemset4 *m = (const CUpti_ActivityMemset4 *)activity;
    add((struct record){.kind = RECORD_MEMSET, .start = m->start, .end = m->end});
  } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const CUpti_ActivityMemcpy6 *m = (const CUpti_ActivityMemcpy6 *)activity;
    add((struct record){.kind = RECORD_MEMCPY, .start = m->start, .end = m->end});
  }
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
  *buffer = aligned_alloc(64, BUFFER_BYTES);
  *size = *buffer ? BUFFER_BYTES : 0;
  *max_records = 0; /* as many as fit */
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)size;
  pthread_mutex_lock(&seen.lock);
  CUpti_Activity *activity = NULL;
  while (valid && cupti.activity_get_next_record(buffer, valid, &activity) == CUPTI_SUCCESS) add_activity(activity);
  size_t dropped = 0;
  if (cupti.activity_get_num_dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) seen.dropped += dropped;
  pthread_mutex_unlock(&seen.lock);
  free(buffer);
}

/* ---- Loading ------------------------------------------------------------------------------------------------ */

static int try_load(const char *file) {
  cupti.library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (cupti.library) snprintf(cupti.file, sizeof cupti.file, "%s", file);
  return cupti.library != NULL;
}

static int load(const char *file, struct problem *p) {
  if (file) {
    if (try_load(file)) return 0;
    return problem(p, "CUPTI can't be loaded from %s: %.300s.", file, dlerror());
  }
  char from_variable[512];
  const char *directory = getenv("CUPTI_LIB"); /* the library itself or its folder */
  if (directory) {
    snprintf(from_variable, sizeof from_variable, "%.400s/libcupti.so.13", directory);
    if (try_load(directory) || try_load(from_variable)) return 0;
  }
  static const char *const places[] = {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                                       "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
    if (try_load(places[i])) return 0;
  return problem(p,
                 "libcupti.so.13, which takes the device times, is neither in the loader's path nor in $CUPTI_LIB, "
                 "/usr/local/cuda/lib64 or /usr/local/cuda/extras/CUPTI/lib64; the PyPI package nvidia-cuda-cupti "
                 "holds it (--cupti FILE names it).");
}

static int find(void *function, const char *name, struct problem *p) {
  void *symbol = dlsym(cupti.library, name);
  memcpy(function, &symbol, sizeof symbol); /* ISO C has no cast from object to function pointers */
  return symbol ? 0 : problem(p, "%s has no function %s.", cupti.file, name);
}

static int check(CUptiResult result, const char *call, struct problem *p) {
  if (result == CUPTI_SUCCESS) return 0;
  const char *text = NULL;
  if (cupti.get_result_string(result, &text) != CUPTI_SUCCESS || !text) text = "no text";
  return problem(p, "%s failed with error %d (%s).", call, (int)result, text);
}

int records_open(const char *file, struct problem *p) {
  if (load(file, p)) return -1;
  if (find(&cupti.get_version, "cuptiGetVersion", p) || find(&cupti.get_result_string, "cuptiGetResultString", p) ||
      find(&cupti.activity_register_callbacks, "cuptiActivityRegisterCallbacks", p) ||
      find(&cupti.activity_enable, "cuptiActivityEnable", p) ||
      find(&cupti.activity_disable, "cuptiActivityDisable", p) ||
      find(&cupti.activity_flush_all, "cuptiActivityFlushAll", p) ||
      find(&cupti.activity_get_next_record, "cuptiActivityGetNextRecord", p) ||
      find(&cupti.activity_get_num_dropped_records, "cuptiActivityGetNumDroppedRecords", p))
    return -1;
  if (check(cupti.get_version(&cupti.version), "cuptiGetVersion", p)) return -1;
  /* Records are read by the layout of the headers that this program was compiled with; a newer CUPTI may write another
   * one. */
  if (cupti.version / 10000 != CUPTI_API_VERSION / 10000)
    return problem(p, "%s is CUPTI %u, expected version %d as at build time.", cupti.file, cupti.version,
                   CUPTI_API_VERSION / 10000);
  if (check(cupti.activity_register_callbacks(buffer_requested, buffer_completed), "cuptiActivityRegisterCallbacks", p))
    return -1;
  for (int i = 0; i < KIND_COUNT; i++)
    if (check(cupti.activity_enable(kinds[i]), "cuptiActivityEnable", p)) return -1;
  return 0;
}

void records_close(void) {
  if (!cupti.library) return;
  for (int i = 0; i < KIND_COUNT; i++) cupti.activity_disable(kinds[i]);
  cupti.activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  pthread_mutex_lock(&seen.lock);
  free(seen.items);
  for (size_t i = 0; i < seen.name_count; i++) free(seen.names[i]);
  seen.items = NULL;
  seen.count = seen.capacity = seen.name_count = 0;
  pthread_mutex_unlock(&seen.lock);
}

uint32_t records_version(void) { return cupti.version; }
const char *records_file(void) { return cupti.file; }

/* ---- Taking ------------------------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b) {
  const struct record *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

int records_clear(struct problem *p) {
  if (check(cupti.activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll", p)) return -1;
  pthread_mutex_lock(&seen.lock);
  seen.count = seen.dropped = seen.unstamped = 0;
  pthread_mutex_unlock(&seen.lock);
  return 0;
}

/* What was handed over last; the recording goes on into another array. */
static struct record *taken;

int records_take(size_t expected, const struct record **records, size_t *count, struct problem *p) {
  free(taken);
  taken = NULL;
  size_t before = 0, dropped = 0, unstamped = 0;
  for (int waited = 0; waited < PATIENCE_MS; waited++) {
    if (check(cupti.activity_flush_all(0), "cuptiActivityFlushAll", p)) return -1;
    pthread_mutex_lock(&seen.lock);
    *count = seen.count;
    pthread_mutex_unlock(&seen.lock);
    /* Two flushes that bring the same number: nothing more is on its way. */
    if (*count >= expected && *count == before) break;
    before = *count;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  pthread_mutex_lock(&seen.lock);
  taken = seen.items;
  *count = seen.count;
  dropped = seen.dropped;
  unstamped = seen.unstamped;
  seen.items = NULL;
  seen.count = seen.capacity = seen.dropped = seen.unstamped = 0;
  pthread_mutex_unlock(&seen.lock);
  if (dropped) return problem(p, "CUPTI dropped %zu records.", dropped);
  if (unstamped) return problem(p, "CUPTI gave %zu records without timestamps.", unstamped);
  if (*count < expected) return problem(p, "CUPTI gave %zu records, expected at least %zu.", *count, expected);
  if (*count) qsort(taken, *count, sizeof *taken, by_start);
  *records = taken;
  return 0;
}
