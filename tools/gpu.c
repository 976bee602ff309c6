#include "gpu.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Entry points are asked for as this version of CUDA introduced them. */
#define CUDA_VERSION_PINNED 12000

#ifdef NST_WITH_SOFTGPU
void *softgpu_get_proc(void *user, const char *name, int cuda_version);
#endif

typedef int get_proc_address(const char *name, void **function, int cuda_version, uint64_t flags, void *status);

/* The card's driver as an nst_get_proc; `user` is the handle of libcuda. */
static void *card_get_proc(void *user, const char *name, int cuda_version) {
  get_proc_address *find;
  /* POSIX lets a data pointer from dlsym hold a function; ISO C has no cast for it. */
  *(void **)&find = dlsym(user, "cuGetProcAddress_v2");
  void *function = NULL;
  if (!find || find(name, &function, cuda_version, 0, NULL) != 0) return NULL;
  return function;
}

void *gpu_proc(const struct gpu *g, const char *name) { return g->proc(g->libcuda, name, CUDA_VERSION_PINNED); }

static int find_entry_points(struct gpu *g, char *why, size_t why_size) {
#define GPU_FIND(name, parameters)                                        \
  *(void **)&g->cu.name = gpu_proc(g, "cu" #name);                        \
  if (!g->cu.name) {                                                      \
    snprintf(why, why_size, "the driver has no entry point cu%s", #name); \
    return -1;                                                            \
  }
  GPU_ENTRY_POINTS(GPU_FIND)
#undef GPU_FIND
  return 0;
}

/* What is common to the card and the software device, once g->proc is set. */
static int open_device(struct gpu *g, char *why, size_t why_size) {
  if (find_entry_points(g, why, why_size)) return -1;
  int error = g->cu.Init(0);
  if (error) {
    snprintf(why, why_size, "cuInit failed with error %d", error);
    return -1;
  }
  int count = 0;
  if (g->cu.DeviceGetCount(&count) || count < 1) {
    snprintf(why, why_size, "the driver finds no device");
    return -1;
  }
  if ((error = g->cu.DeviceGet(&g->device, 0)) || (error = g->cu.DeviceGetName(g->name, sizeof g->name, g->device)) ||
      (error = g->cu.DevicePrimaryCtxRetain(&g->context, g->device))) {
    snprintf(why, why_size, "the driver can't open device 0: error %d", error);
    return -1;
  }
  void *stream = NULL;
  /* Flags 0: the stream is ordered with the copies of gpu_upload and gpu_download. */
  if ((error = g->cu.CtxSetCurrent(g->context)) || (error = g->cu.StreamCreate(&stream, 0))) {
    snprintf(why, why_size, "the driver can't make a stream on device 0: error %d", error);
    return -1;
  }
  g->stream = stream;
  nst_open_options options = NST_OPEN_OPTIONS_INIT;
  options.get_proc = g->proc;
  options.get_proc_user = g->libcuda;
  if (nst_open(&g->library, &options) != NST_OK) {
    snprintf(why, why_size, "nst_open failed: %s", nst_last_error());
    return -1;
  }
  return 0;
}

static int open_card(struct gpu *g, char *why, size_t why_size) {
  g->libcuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!g->libcuda) {
    snprintf(why, why_size, "libcuda.so.1, the display driver's library, can't be loaded");
    return -1;
  }
  g->is_card = 1;
  g->proc = card_get_proc;
  return open_device(g, why, why_size);
}

static int open_soft(struct gpu *g, char *why, size_t why_size) {
#ifdef NST_WITH_SOFTGPU
  g->proc = softgpu_get_proc;
  return open_device(g, why, why_size);
#else
  (void)g;
  snprintf(why, why_size, "this program was built without the software device");
  return -1;
#endif
}

int gpu_open(struct gpu *g, enum gpu_choice choice, char *why, size_t why_size) {
  memset(g, 0, sizeof *g);
  if (choice != GPU_SOFT) {
    if (open_card(g, why, why_size) == 0) return 0;
    gpu_close(g);
    if (choice == GPU_CARD) return -1;
  }
  char notice[sizeof g->notice] = "";
  if (choice == GPU_AUTO) snprintf(notice, sizeof notice, "%s", why);
  if (open_soft(g, why, why_size)) {
    gpu_close(g);
    return -1;
  }
  memcpy(g->notice, notice, sizeof notice);
  return 0;
}

void gpu_close(struct gpu *g) {
  nst_close(g->library);
  if (g->stream) g->cu.StreamDestroy(g->stream);
  if (g->context) g->cu.DevicePrimaryCtxRelease(g->device);
  if (g->libcuda) dlclose(g->libcuda);
  memset(g, 0, sizeof *g);
}

void *gpu_alloc(struct gpu *g, size_t bytes) {
  unsigned long long pointer = 0;
  if (g->cu.MemAlloc(&pointer, bytes ? bytes : 1) != 0) return NULL;
  return (void *)(uintptr_t)pointer;
}

void gpu_free(struct gpu *g, void *pointer) {
  if (pointer) g->cu.MemFree((uintptr_t)pointer);
}

int gpu_upload(struct gpu *g, void *to, const void *from, size_t bytes) {
  return bytes ? g->cu.MemcpyHtoD((uintptr_t)to, from, bytes) : 0;
}

int gpu_download(struct gpu *g, void *to, const void *from, size_t bytes) {
  return bytes ? g->cu.MemcpyDtoH(to, (uintptr_t)from, bytes) : 0;
}

int gpu_sync(struct gpu *g) { return g->cu.StreamSynchronize(g->stream); }
