/*
 * A CUDA driver that does nothing but take notes: handed to nst_open through get_proc, it lets the tests see what the
 * library asks a driver to do, and lets any call fail.
 */
#ifndef NST_FAKE_DRIVER_H
#define NST_FAKE_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

#include "normstatic.h"
#include "params.h"

#define FAKE_DEVICES 4

/* What the driver is like. Set between fake_reset and the calls under test. */
struct fake_driver {
  int version;                  /* cuDriverGetVersion */
  int device_count;             /* up to FAKE_DEVICES */
  int capability[FAKE_DEVICES]; /* major * 10 + minor */
  int multiprocessors;          /* of every device */
  int resident_clusters;        /* cuOccupancyMaxActiveClusters; 0: as many as the multiprocessors allow */
  const char *missing;          /* the entry point that get_proc does not have; NULL: none */
  const char *failing;          /* the function that fails; NULL: none */
  int failing_after;            /* so many of its calls pass before */
  CUresult failure;             /* what it answers then */
  const char *build_id_kernel;  /* the one name with nst_build_id_ that is in the image */
  /* notes */
  int libraries;                /* loaded and not unloaded */
  int misuses;                  /* handles that it never gave */
  int loads;                    /* cuLibraryLoadData so far */
  const void *image;            /* what the last one was given */
  bool preserved;               /* ... and whether the driver may take it for lasting */
  int kernels;                  /* cuLibraryGetKernel that succeeded, the build id's aside */
  int functions;                /* cuKernelGetFunction that succeeded */
  int attributes[FAKE_DEVICES]; /* cuKernelSetAttribute that succeeded on each device */
};
extern struct fake_driver fake;

/* What the calling thread launched last. */
struct fake_launch {
  int count; /* launches of this thread since it was last set to 0 */
  const char *kernel;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  unsigned cluster; /* 0: no such attribute */
  bool dependent;   /* programmatic stream serialization */
  CUstream stream;
  struct nst_rows_params params;
};
extern _Thread_local struct fake_launch fake_launched;

/* The calling thread's context: its device (0 at first), or the error of cuCtxGetDevice. */
extern _Thread_local CUdevice fake_device;
extern _Thread_local CUresult fake_context;

/* A driver for CUDA 13.0 with one sm_90 device of 132 multiprocessors, nothing missing, nothing failing. */
void fake_reset(void);

/* For nst_open_options.get_proc. */
void *fake_get_proc(void *user, const char *name, int cuda_version);

/* The names that fake_get_proc knows. */
extern const char *const fake_names[];
extern const int fake_name_count;

/* Writes a kernel image for these architectures, such as {90, 100}; returns its size. `image` has room for
 * FAKE_IMAGE_ROOM bytes. Behind FAKE_IMAGE_HEAD bytes each file has FAKE_IMAGE_ENTRY bytes, head included. */
#define FAKE_IMAGE_ROOM 16384
#define FAKE_IMAGE_HEAD 16
#define FAKE_IMAGE_ENTRY 96
size_t fake_image(unsigned char *image, const int *archs, int arch_count);

/* Opens a handle on the driver as it is, with a kernel image for sm_90 and sm_100. */
nst_status fake_open(nst_library **library);

#endif
