/* What the parts of the host runtime share. Nothing here is API; everything is hidden from other shared objects. */
#ifndef NST_INTERNAL_H
#define NST_INTERNAL_H

#include <cuda.h>         /* types alone: no function of the driver is ever linked */
#include <cudaTypedefs.h> /* PFN_<name>_v<version>: the type of each entry point at the version it is pinned to */
#include <stdatomic.h>
#include <stdbool.h>

#include "axes.h"
#include "normstatic.h"
#include "params.h"

#pragma GCC visibility push(hidden)

/* ---- status.c ----------------------------------------------------------------------------------------------- */

/* Writes the calling thread's error sentence and returns `status`. */
nst_status nst_fail(nst_status status, const char *format, ...) __attribute__((cold, noinline, format(printf, 2, 3)));

/* ---- driver.c ----------------------------------------------------------------------------------------------- */

/* The driver's entry points, each with the CUDA version whose form of it is called. */
#define NST_DRIVER_FUNCTIONS(X)  \
  X(cuDriverGetVersion, 2020)    \
  X(cuInit, 2000)                \
  X(cuGetErrorName, 6000)        \
  X(cuGetErrorString, 6000)      \
  X(cuDeviceGetCount, 2000)      \
  X(cuDeviceGet, 2000)           \
  X(cuDeviceGetAttribute, 2000)  \
  X(cuCtxGetDevice, 2000)        \
  X(cuLibraryLoadData, 12000)    \
  X(cuLibraryUnload, 12000)      \
  X(cuLibraryGetKernel, 12000)   \
  X(cuKernelGetFunction, 12000)  \
  X(cuKernelSetAttribute, 12000) \
  X(cuLaunchKernelEx, 11060)     \
  X(cuOccupancyMaxActiveClusters, 11070)

/* Members are named as the API's functions, so that a call reads like CUDA: driver->cuInit(0). */
struct nst_driver {
#define NST_MEMBER(name, version) PFN_##name##_v##version name;
  NST_DRIVER_FUNCTIONS(NST_MEMBER)
#undef NST_MEMBER
};

/* Finds every entry point, checks the driver's version and initialises it. */
nst_status nst_driver_open(struct nst_driver *driver, const nst_open_options *options);

/* The failure of `call`: its name and the driver's name and text for `result`. `hint` goes to the sentence's end. */
nst_status nst_driver_fail(const struct nst_driver *driver, nst_status status, CUresult result, const char *call,
                           const char *hint) __attribute__((cold, noinline));

/* ---- image.c ------------------------------------------------------------------------------------------------ */

/* The kernels of one operation and types are a part of the image: one ELF file for each architecture. A driver takes
 * about 15 us a kernel to load a file, 20 ms for a thousand, so each part is loaded when it is first wanted. */
#define NST_PART_COUNT (NST_OP_COUNT * NST_TYPES_COUNT)
#define NST_PART_ROWS (NST_ROWS_COUNT / NST_PART_COUNT)
_Static_assert(NST_ROWS_INDEX(1, 1, 0, 0, 0) == (NST_TYPES_COUNT + 1) * NST_PART_ROWS,
               "the rows of a part are neighbours, the operations' types in order");

struct nst_image {
  const unsigned char *bytes;
  size_t size;
  void *owned;                                       /* to be freed with the handle */
  const char *name;                                      /* valid while nst_open runs */
  uint32_t archs;                                    /* of the image: bit 1 << enum nst_arch */
  uint32_t files[NST_ARCH_COUNT];                    /* ELF files of each */
  const void *id[NST_ARCH_COUNT];                    /* the file with the build id; NULL: nothing for this one */
  const void *parts[NST_ARCH_COUNT][NST_PART_COUNT]; /* the others; NULL: a part without kernels */
};

/* A part that is loaded. */
struct nst_part {
  CUlibrary cu_library;
  CUkernel kernels[NST_PART_ROWS];
};

/* All that ever changes in a handle: parts appear. */
struct nst_slots {
  _Atomic(struct nst_part *) part[NST_ARCH_COUNT][NST_PART_COUNT];
};

/* Finds the image that `options` name and checks its form. On failure image->owned may be set. */
nst_status nst_image_open(struct nst_image *image, const nst_open_options *options);

/* Checks that the image's kernels for an architecture are of this build. */
nst_status nst_image_check_build_id(const nst_library *library, uint32_t arch);

/* Loads a part of the image, if no other thread has meanwhile. */
nst_status nst_image_load(const nst_library *library, uint32_t arch, uint32_t number) __attribute__((cold, noinline));

/* Loads all parts for an architecture, and each kernel for the current context's device. */
nst_status nst_image_preload(const nst_library *library, uint32_t arch);

/* Unloads all parts and frees what the image owns. */
CUresult nst_image_close(nst_library *library);

/* ---- library.c ---------------------------------------------------------------------------------------------- */

/* A row of the dispatch table: a kernel with its launch facts, or a hole with its reason. */
struct nst_row {
  const char *symbol; /* NULL: a hole */
  const char *hole;   /* NULL: a kernel */
  uint32_t shared_bytes;
  uint16_t threads;
  uint16_t cluster;
  uint16_t rows_per_block;
  uint16_t blocks_per_sm;
  uint16_t vectors;
  uint8_t op;
  uint8_t types;
  uint8_t bucket;
  uint8_t strategy;
  uint8_t access;
};
extern const struct nst_row nst_rows[NST_ROWS_COUNT];

/* Where a choice comes from. */
enum nst_source { NST_SOURCE_DEFAULT, NST_SOURCE_MODELLED, NST_SOURCE_MEASURED };

/* Which row serves a call: rows[0] up to limit[0] rows of data, rows[1] up to limit[1], ..., rows[3] above limit[2]. */
struct nst_choice {
  uint32_t limit[3];
  uint16_t row[4];
  uint8_t source;
};
extern const struct nst_choice nst_choices[NST_CHOICE_COUNT];

/* The largest n of each bucket, 0: any. */
extern const uint32_t nst_bucket_sizes[NST_BUCKET_COUNT];

/* The data type and the weight type of each enum nst_types. */
extern const nst_dtype nst_types_data[NST_TYPES_COUNT];
extern const nst_dtype nst_types_weight[NST_TYPES_COUNT];

#define NST_ARCH_NONE NST_ARCH_COUNT

struct nst_device {
  CUdevice handle;
  int compute_capability; /* major * 10 + minor */
  uint32_t multiprocessors;
  uint32_t arch; /* enum nst_arch; NST_ARCH_NONE where the image holds no kernels for the device */
};

struct nst_library {
  struct nst_driver driver;
  struct nst_image image;
  struct nst_slots *slots;
  int device_count;
  struct nst_device devices[];
};

/* The architecture whose kernels run on a compute capability, or NST_ARCH_NONE. */
uint32_t nst_arch_of(int compute_capability);

/* Fills *info with the row at `index`, which is in the table. */
void nst_describe(size_t index, nst_kernel_info *info);

/* The device of the current context, covered by the image or not. */
nst_status nst_current_device(const nst_library *library, const struct nst_device **device);

/* The refusal of a device without kernels. */
nst_status nst_device_fail(int compute_capability, uint32_t archs) __attribute__((cold, noinline));

/* The kernel of row `index` for an architecture, its part loaded where this is the first one wanted of it. */
static inline nst_status nst_kernel_of(const nst_library *library, uint32_t arch, size_t index, CUkernel *kernel) {
  uint32_t number = (uint32_t)(index / NST_PART_ROWS);
  struct nst_part *part = atomic_load_explicit(&library->slots->part[arch][number], memory_order_acquire);
  if (!part) {
    nst_status status = nst_image_load(library, arch, number);
    if (status != NST_OK) {
      return status;
    }
    part = atomic_load_explicit(&library->slots->part[arch][number], memory_order_acquire);
  }
  *kernel = part->kernels[index % NST_PART_ROWS];
  return NST_OK;
}

/* ---- check.c ------------------------------------------------------------------------------------------------ */

/* Every tensor that an operation on rows can have, the inputs first. A new operation adds its own here and to the table
 * in check.c. */
enum nst_tensor_id {
  NST_TENSOR_X,
  NST_TENSOR_RESIDUAL,
  NST_TENSOR_WEIGHT,
  NST_TENSOR_BIAS,
  NST_TENSOR_SCALE,
  NST_TENSOR_SHIFT,
  NST_TENSOR_GATE,
  NST_TENSOR_INPUTS, /* their number */
  NST_TENSOR_Y = NST_TENSOR_INPUTS,
  NST_TENSOR_RESIDUAL_OUT,
  NST_TENSOR_MEAN,
  NST_TENSOR_RSTD,
  NST_TENSOR_COUNT
};

/* As the caller gives it. */
struct nst_tensor {
  const void *pointer; /* NULL: absent */
  int64_t stride;      /* elements from a row to the next, 0: dense */
};

/* Where it lies; all 0 where absent. */
struct nst_place {
  uintptr_t begin;
  uintptr_t end;        /* one past the last byte of the last row */
  int64_t stride_bytes; /* 0 with one row */
  int64_t rows;
};

/* A call of any operation on rows, with all that the checks and the launch need. */
struct nst_rows_call {
  nst_op op;
  nst_dtype dtype;
  nst_dtype weight_dtype; /* the check replaces 0, and with neither weight nor bias everything, by dtype */
  uint32_t flags;
  int64_t rows;
  int64_t n;
  int64_t rows_per_cond; /* the check replaces 0 by 1 */
  float eps;
  float weight_offset;
  struct nst_tensor tensors[NST_TENSOR_COUNT];
};

/* What the check finds out about a call. */
struct nst_rows_facts {
  uint32_t types;   /* enum nst_types */
  uint32_t aligned; /* 1: every row of every tensor starts and ends on a 16-byte boundary */
  struct nst_place places[NST_TENSOR_COUNT];
};

/* Converts the args struct of `op` and checks everything that the header promises. With 0 rows the tensors are not
 * looked at, and facts->aligned is 1. */
nst_status nst_check_rows(nst_op op, const void *args, struct nst_rows_call *call, struct nst_rows_facts *facts);

/* The name of the first argument that keeps a checked call from being aligned. */
const char *nst_first_unaligned(const struct nst_rows_facts *facts);

/* ---- select.c ----------------------------------------------------------------------------------------------- */

struct nst_selection {
  uint32_t choice; /* index into nst_choices */
  uint32_t row;    /* index into nst_rows */
};

/* The row that serves a call. Compiles to straight code: no jump depends on the arguments. */
struct nst_selection nst_select(uint32_t arch, uint32_t op, uint32_t types, uint32_t n, uint32_t rows, uint32_t aligned)
    __attribute__((noinline));

/* ---- embed.S ------------------------------------------------------------------------------------------------ */

extern const unsigned char nst_image[];
extern const uint64_t nst_image_size;

#pragma GCC visibility pop
#endif
