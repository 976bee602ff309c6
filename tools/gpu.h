/*
 * One device with an open library: the card, or the software device where the program was compiled with
 * NST_WITH_SOFTGPU. Both are driven through the driver's own entry points, so that a program is the same for either.
 */
#ifndef NST_TOOLS_GPU_H
#define NST_TOOLS_GPU_H

#include "normstatic.h"

enum gpu_choice {
  GPU_AUTO, /* the card where there is one, else the software device */
  GPU_CARD,
  GPU_SOFT
};

/* The driver's entry points; g->cu.MemAlloc is cuMemAlloc. Each returns a CUresult, 0 for success. Written with plain C
 * types, so that no CUDA header is needed and none is in the way: device pointers are unsigned long long, handles are
 * void pointers. */
#define GPU_ENTRY_POINTS(F)                                                           \
  F(Init, (unsigned flags))                                                           \
  F(DeviceGetCount, (int *count))                                                     \
  F(DeviceGet, (int *device, int ordinal))                                            \
  F(DeviceGetName, (char *name, int size, int device))                                \
  F(DevicePrimaryCtxRetain, (void **context, int device))                             \
  F(DevicePrimaryCtxRelease, (int device))                                            \
  F(CtxSetCurrent, (void *context))                                                   \
  F(MemAlloc, (unsigned long long *pointer, size_t bytes))                            \
  F(MemFree, (unsigned long long pointer))                                            \
  F(MemcpyHtoD, (unsigned long long to, const void *from, size_t bytes))              \
  F(MemcpyDtoH, (void *to, unsigned long long from, size_t bytes))                    \
  F(StreamCreate, (void **stream, unsigned flags))                                    \
  F(StreamDestroy, (void *stream))                                                    \
  F(StreamSynchronize, (void *stream))

struct gpu_driver {
#define GPU_MEMBER(name, parameters) int(*name) parameters;
  GPU_ENTRY_POINTS(GPU_MEMBER)
#undef GPU_MEMBER
};

struct gpu {
  nst_library *library;
  nst_stream stream;
  char name[128];    /* the device's */
  char notice[512];  /* GPU_AUTO fell back to the software device: why; else "" */
  int is_card;       /* 0: the software device, whose times mean nothing */
  int device;        /* of the driver */
  void *context;     /* its primary context, current to the thread that opened it */
  void *libcuda;     /* from dlopen; NULL: the software device */
  nst_get_proc proc; /* where the entry points come from */
  struct gpu_driver cu;
};

/* Opens a device and the library with its embedded image. Returns 0, or -1 with a sentence in `why`. */
int gpu_open(struct gpu *g, enum gpu_choice choice, char *why, size_t why_size);
void gpu_close(struct gpu *g);

/* Another entry point of the driver, such as "cuEventRecord"; NULL where there is none. */
void *gpu_proc(const struct gpu *g, const char *name);

/* Device memory of exactly `bytes` (0: a pointer that must not be used); NULL where there is no room. */
void *gpu_alloc(struct gpu *g, size_t bytes);
void gpu_free(struct gpu *g, void *pointer);

/* Each waits until it is done and returns the driver's error, 0 for success. gpu_sync waits for the stream, and so
 * returns the errors of the kernels launched before. */
int gpu_upload(struct gpu *g, void *to, const void *from, size_t bytes);
int gpu_download(struct gpu *g, void *to, const void *from, size_t bytes);
int gpu_sync(struct gpu *g);

#endif
