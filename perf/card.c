#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "card.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ISO C has no cast from object to function pointers. */
static int take_function(void *function, void *symbol) {
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

int card_start(struct card_start *start, struct problem *p) {
  struct {
    int (*init)(unsigned);
    int (*count)(int *);
    int (*get)(int *, int);
    int (*retain)(void **, int);
    int (*set_current)(void *);
  } cu;
  double before = now_us();
  void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!libcuda) {
    problem_write(p, "libcuda.so.1, the display driver's library, can't be loaded: there is no card to measure.");
    return CARD_ABSENT;
  }
  start->load_us = now_us() - before;
  if (!take_function(&cu.init, dlsym(libcuda, "cuInit")) ||
      !take_function(&cu.count, dlsym(libcuda, "cuDeviceGetCount")) ||
      !take_function(&cu.get, dlsym(libcuda, "cuDeviceGet")) ||
      !take_function(&cu.retain, dlsym(libcuda, "cuDevicePrimaryCtxRetain")) ||
      !take_function(&cu.set_current, dlsym(libcuda, "cuCtxSetCurrent")))
    return problem(p, "libcuda.so.1 lacks an entry point that every driver has: is it a stand-in?");
  before = now_us();
  int error = cu.init(0), count = 0;
  start->init_us = now_us() - before;
  if (error == CUDA_ERROR_NO_DEVICE || error == CUDA_ERROR_STUB_LIBRARY ||
      (!error && (cu.count(&count) || count < 1))) {
    problem_write(p, "the driver finds no card to measure (cuInit gave %d).", error);
    return CARD_ABSENT;
  }
  if (error) return problem(p, "cuInit failed with error %d.", error);
  int device;
  void *context;
  before = now_us();
  if ((error = cu.get(&device, 0)) || (error = cu.retain(&context, device)) || (error = cu.set_current(context)))
    return problem(p, "the driver can't open device 0: error %d.", error);
  start->context_us = now_us() - before;
  return 0;
}

/* The driver's own version, which the CUDA driver API does not tell; the management library does. */
static void read_driver_version(char *text, unsigned size) {
  int (*init)(void), (*version)(char *, unsigned), (*shutdown)(void);
  text[0] = 0;
  void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!nvml) return;
  if (take_function(&init, dlsym(nvml, "nvmlInit_v2")) &&
      take_function(&version, dlsym(nvml, "nvmlSystemGetDriverVersion")) &&
      take_function(&shutdown, dlsym(nvml, "nvmlShutdown")) && init() == 0) {
    if (version(text, size) != 0) text[0] = 0;
    shutdown();
  }
  dlclose(nvml);
}

int card_open(struct card *card, struct problem *p) {
  memset(card, 0, sizeof *card);
  char why[400];
  if (gpu_open(&card->gpu, GPU_CARD, why, sizeof why)) return problem(p, "%s.", why);
  int (*attribute)(int *, int, int), (*version)(int *);
  const struct {
    void *function;
    const char *name;
  } wanted[] = {{&card->memset_async, "cuMemsetD8Async"},
                {&card->copy_async, "cuMemcpyDtoDAsync"},
                {&card->reset_persisting, "cuCtxResetPersistingL2Cache"},
                {&card->error_string, "cuGetErrorString"},
                {&attribute, "cuDeviceGetAttribute"},
                {&version, "cuDriverGetVersion"}};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    if (!take_function(wanted[i].function, gpu_proc(&card->gpu, wanted[i].name))) {
      gpu_close(&card->gpu);
      return problem(p, "the driver has no entry point %s.", wanted[i].name);
    }
  int major = 0, minor = 0, sm_khz = 0, memory_khz = 0;
  const int device = card->gpu.device;
  attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  attribute(&card->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  attribute(&sm_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device);
  attribute(&memory_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
  attribute(&card->l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  version(&card->cuda_version);
  card->capability = major * 10 + minor;
  card->sm_mhz = sm_khz / 1000;
  card->memory_mhz = memory_khz / 1000;
  read_driver_version(card->driver, sizeof card->driver);
  return 0;
}

void card_close(struct card *card) { gpu_close(&card->gpu); }

static int check(const struct card *card, int error, const char *what, struct problem *p) {
  const char *text = NULL;
  if (!error) return 0;
  if (card->error_string(error, &text) || !text) text = "no text";
  return problem(p, "%s failed with driver error %d (%s).", what, error, text);
}

int card_fill(struct card *card, void *to, unsigned char value, size_t bytes, struct problem *p) {
  return check(card, card->memset_async((uintptr_t)to, value, bytes, card->gpu.stream), "a memory set", p);
}

int card_copy(struct card *card, void *to, const void *from, size_t bytes, struct problem *p) {
  return check(card, card->copy_async((uintptr_t)to, (uintptr_t)from, bytes, card->gpu.stream), "a copy", p);
}

int card_sync(struct card *card, struct problem *p) {
  return check(card, gpu_sync(&card->gpu), "the work queued on the card", p);
}

int card_release_lines(struct card *card, struct problem *p) {
  return card_sync(card, p) || check(card, card->reset_persisting(), "the release of lines kept in L2", p) ? -1 : 0;
}

int card_download(struct card *card, void *to, const void *from, size_t bytes, struct problem *p) {
  return check(card, gpu_download(&card->gpu, to, from, bytes), "a copy from the card", p);
}

int card_upload(struct card *card, void *to, const void *from, size_t bytes, struct problem *p) {
  return check(card, gpu_upload(&card->gpu, to, from, bytes), "a copy to the card", p);
}
