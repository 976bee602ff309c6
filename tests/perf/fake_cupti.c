/*
 * A stand-in libcupti for the tests: it hands over the records that a test gives it, in buffers, as CUPTI does. A test
 * loads this same file and calls fake_cupti_add.
 */
#include <cupti.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_MAX = 4096 };

union activity {
  CUpti_Activity any;
  CUpti_ActivityKernel10 kernel;
  CUpti_ActivityMemset4 memset;
  CUpti_ActivityMemcpy6 memcpy;
};

static union activity pending[PENDING_MAX];
static size_t pending_count, dropped, enabled;
static uint32_t fake_version = CUPTI_API_VERSION;
static CUpti_BuffersCallbackRequestFunc requested;
static CUpti_BuffersCallbackCompleteFunc completed;
static size_t read_place;

/* kind 0: a kernel of this name; 1: a memory set; 2: a copy. Recorded only while recording is on. */
int fake_cupti_add(int kind, const char *name, uint64_t start, uint64_t end, uint32_t grid, uint32_t block,
                   uint32_t cluster) {
  if (!enabled || pending_count == PENDING_MAX) return 0;
  union activity *a = &pending[pending_count++];
  memset(a, 0, sizeof *a);
  if (kind == 0) {
    a->kernel = (CUpti_ActivityKernel10){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .start = start, .end = end};
    a->kernel.name = name;
    a->kernel.gridX = (int32_t)grid, a->kernel.gridY = 1, a->kernel.gridZ = 1;
    a->kernel.blockX = (int32_t)block, a->kernel.blockY = 1, a->kernel.blockZ = 1;
    a->kernel.clusterX = cluster, a->kernel.clusterY = cluster ? 1 : 0, a->kernel.clusterZ = cluster ? 1 : 0;
  } else if (kind == 1) {
    a->memset = (CUpti_ActivityMemset4){.kind = CUPTI_ACTIVITY_KIND_MEMSET, .start = start, .end = end};
  } else {
    a->memcpy = (CUpti_ActivityMemcpy6){.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .start = start, .end = end};
  }
  return 1;
}

void fake_cupti_drop(size_t count) { dropped = count; }
void fake_cupti_version(uint32_t version) { fake_version = version ? version : CUPTI_API_VERSION; }

CUptiResult cuptiGetVersion(uint32_t *version) { return *version = fake_version, CUPTI_SUCCESS; }

CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
  return *text = result == CUPTI_SUCCESS ? "success" : "a stand-in's error", CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  return requested = request, completed = complete, CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return enabled++, (void)kind, CUPTI_SUCCESS; }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return enabled--, (void)kind, CUPTI_SUCCESS; }

/* Two buffers a flush, so that a reader has to put them together. */
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  (void)flag;
  for (size_t from = 0, end = pending_count / 2; from < pending_count; from = end, end = pending_count) {
    uint8_t *buffer;
    size_t size, records;
    if (end == from) end = pending_count;
    requested(&buffer, &size, &records);
    const size_t bytes = (end - from) * sizeof *pending;
    if (!buffer || bytes > size) return CUPTI_ERROR_OUT_OF_MEMORY;
    memcpy(buffer, &pending[from], bytes);
    read_place = 0;
    completed(NULL, 0, buffer, size, bytes);
  }
  pending_count = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, CUpti_Activity **record) {
  if (read_place + sizeof *pending > bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)(void *)(buffer + read_place);
  read_place += sizeof *pending;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *count) {
  (void)context, (void)stream;
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}
