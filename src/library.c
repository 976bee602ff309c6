/* The tables, and the handle: driver, image, devices. */
#include <stdio.h>
#include <stdlib.h>

#include "build_id.h"
#include "internal.h"

/* ---- The tables, printed by the generator ------------------------------------------------------------------- */

#define NST_CELL(op, types, bucket, strategy, access) \
  NST_ROWS_INDEX(NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##bucket, NST_STRATEGY_##strategy, NST_ACCESS_##access)
#define NST_COORDINATES(op_, types_, bucket_, strategy_, access_)                  \
  .op = NST_OP_##op_, .types = NST_TYPES_##types_, .bucket = NST_BUCKET_##bucket_, \
  .strategy = NST_STRATEGY_##strategy_, .access = NST_ACCESS_##access_

#define NST_KERNEL(index, op, types, bucket, strategy, access, threads_, lanes_, vectors_, cluster_, rows_, blocks_, \
                   slots_, smem_, symbol_)                                                                           \
  [NST_CELL(op, types, bucket, strategy, access)] = {NST_COORDINATES(op, types, bucket, strategy, access),           \
                                                     .symbol = #symbol_,                                             \
                                                     .shared_bytes = (smem_),                                        \
                                                     .threads = (threads_),                                          \
                                                     .cluster = (cluster_),                                          \
                                                     .rows_per_block = (rows_),                                      \
                                                     .blocks_per_sm = (blocks_),                                     \
                                                     .vectors = (vectors_)},
#define NST_HOLE(index, op, types, bucket, strategy, access, reason)                                       \
  [NST_CELL(op, types, bucket, strategy, access)] = {NST_COORDINATES(op, types, bucket, strategy, access), \
                                                     .hole = reason},
const struct nst_row nst_rows[NST_ROWS_COUNT] = {
#include "rows.inc"
};
#undef NST_KERNEL
#undef NST_HOLE

/* A printed index is the one that its coordinates give, so every line stands where it says; and there are as many
 * lines as places. A doubled line is an overridden initialiser, which the build refuses. */
#define NST_KERNEL(index, op, types, bucket, strategy, access, ...) \
  NST_HOLE(index, op, types, bucket, strategy, access, )
#define NST_HOLE(index, op, types, bucket, strategy, access, reason)       \
  _Static_assert((index) == NST_CELL(op, types, bucket, strategy, access), \
                 "row " #index " of the table is not where its coordinates say");
#include "rows.inc"
#undef NST_KERNEL
#undef NST_HOLE

#define NST_KERNEL(index, ...) NST_LINE_##index,
#define NST_HOLE(index, ...) NST_LINE_##index,
enum {
#include "rows.inc"
  NST_LINES
};
_Static_assert(NST_LINES == NST_ROWS_COUNT, "the table has as many lines as places");
#undef NST_KERNEL
#undef NST_HOLE

#define NST_CHOICE(index, arch_, op_, types_, bucket_, access_, r0, r1, r2, b0, s0, a0, b1, s1, a1, b2, s2, a2, b3,   \
                   s3, a3, source_)                                                                                   \
  [NST_CHOICE_INDEX(NST_ARCH_##arch_, NST_OP_##op_, NST_TYPES_##types_, NST_BUCKET_##bucket_,                         \
                    NST_ACCESS_##access_)] = {{(r0), (r1), (r2)},                                                     \
                                              {NST_CELL(op_, types_, b0, s0, a0), NST_CELL(op_, types_, b1, s1, a1),  \
                                               NST_CELL(op_, types_, b2, s2, a2), NST_CELL(op_, types_, b3, s3, a3)}, \
                                              NST_SOURCE_##source_},
const struct nst_choice nst_choices[NST_CHOICE_COUNT] = {
#include "choices.inc"
};
#undef NST_CHOICE

#define NST_CHOICE(index, arch, op, types, bucket, access, ...)                                                    \
  _Static_assert((index) == NST_CHOICE_INDEX(NST_ARCH_##arch, NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##bucket, \
                                             NST_ACCESS_##access),                                                 \
                 "choice " #index " is not where its coordinates say");
#include "choices.inc"
#undef NST_CHOICE

#define NST_CHOICE(index, ...) NST_CHOICE_LINE_##index,
enum {
#include "choices.inc"
  NST_CHOICE_LINES
};
_Static_assert(NST_CHOICE_LINES == NST_CHOICE_COUNT, "there are as many choices as places");
#undef NST_CHOICE

_Static_assert(NST_ROWS_COUNT <= UINT16_MAX, "an index into the table fits nst_choice.row");

const uint32_t nst_bucket_sizes[NST_BUCKET_COUNT] = NST_BUCKET_SIZES;
const nst_dtype nst_types_data[NST_TYPES_COUNT] = NST_TYPES_DATA;
const nst_dtype nst_types_weight[NST_TYPES_COUNT] = NST_TYPES_WEIGHT;
static const uint32_t capabilities[NST_ARCH_COUNT] = NST_ARCH_CAPABILITIES;

const char *nst_build_id(void) { return NST_BUILD_ID; }

size_t nst_table_count(void) { return NST_ROWS_COUNT; }

void nst_describe(size_t index, nst_kernel_info *info) {
  const struct nst_row *row = &nst_rows[index];
  *info = (nst_kernel_info){
      .size = sizeof *info,
      .index = index,
      .op = (nst_op)row->op,
      .dtype = nst_types_data[row->types],
      .weight_dtype = nst_types_weight[row->types],
      .bucket = nst_bucket_sizes[row->bucket],
      .strategy = (nst_strategy)row->strategy,
      .access = (nst_access)row->access,
      .symbol = row->symbol,
      .hole = row->hole,
      .threads = row->threads,
      .cluster = row->cluster,
      .vectors = row->vectors,
      .rows_per_block = row->rows_per_block,
      .blocks_per_sm = row->blocks_per_sm,
      .shared_bytes = row->shared_bytes,
  };
}

nst_status nst_table_row(size_t index, nst_kernel_info *info) {
  if (!info) {
    return nst_fail(NST_ERROR_NULL_POINTER, "info is NULL: expected a pointer to an nst_kernel_info");
  }
  if (info->size != sizeof *info) {
    return nst_fail(NST_ERROR_STRUCT_SIZE, "size of info = %zu: expected sizeof(nst_kernel_info) = %zu", info->size,
                    sizeof *info);
  }
  if (index >= NST_ROWS_COUNT) {
    return nst_fail(NST_ERROR_INDEX, "index = %zu: expected 0 to %d", index, NST_ROWS_COUNT - 1);
  }
  nst_describe(index, info);
  return NST_OK;
}

/* ---- The handle ---------------------------------------------------------------------------------------------- */

uint32_t nst_arch_of(int compute_capability) {
  /* Machine code runs on later minor versions of its major version. */
  for (uint32_t arch = 0; arch < NST_ARCH_COUNT; arch++) {
    if (compute_capability / 10 == (int)capabilities[arch] / 10) {
      return arch;
    }
  }
  return NST_ARCH_NONE;
}

nst_status nst_device_fail(int compute_capability, uint32_t covered) {
  char list[64] = "";
  size_t length = 0;
  for (uint32_t arch = 0; arch < NST_ARCH_COUNT; arch++) {
    if (covered >> arch & 1) {
      length +=
          (size_t)snprintf(list + length, sizeof list - length, "%ssm_%d", length ? ", " : "", (int)capabilities[arch]);
    }
  }
  return nst_fail(NST_ERROR_DEVICE_UNSUPPORTED,
                  "the device has compute capability %d.%d: expected one that the kernels are for (%s)",
                  compute_capability / 10, compute_capability % 10, length ? list : "none");
}

static nst_status read_device(nst_library *library, int ordinal) {
  const struct nst_driver *driver = &library->driver;
  struct nst_device *device = &library->devices[ordinal];
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  const char *call = "cuDeviceGet";
  CUresult result = driver->cuDeviceGet(&device->handle, ordinal);
  if (result == CUDA_SUCCESS) {
    call = "cuDeviceGetAttribute";
    result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->handle);
  }
  if (result == CUDA_SUCCESS) {
    result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->handle);
  }
  if (result == CUDA_SUCCESS) {
    result = driver->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->handle);
  }
  if (result != CUDA_SUCCESS) {
    return nst_driver_fail(driver, NST_ERROR_DRIVER_CALL, result, call, "");
  }
  device->compute_capability = major * 10 + minor;
  device->multiprocessors = (uint32_t)multiprocessors;
  uint32_t arch = nst_arch_of(device->compute_capability);
  device->arch = arch != NST_ARCH_NONE && library->image.archs >> arch & 1 ? arch : NST_ARCH_NONE;
  return NST_OK;
}

/* Allocates the handle and reads the devices' facts. */
static nst_status create(nst_library **library, const struct nst_driver *driver, const struct nst_image *image) {
  int count = 0;
  CUresult result = driver->cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) {
    return nst_driver_fail(driver, NST_ERROR_DRIVER_CALL, result, "cuDeviceGetCount", "");
  }
  *library = calloc(1, sizeof **library + (size_t)count * sizeof(struct nst_device));
  if (!*library) {
    return nst_fail(NST_ERROR_OUT_OF_MEMORY, "no memory for a library handle");
  }
  (*library)->driver = *driver;
  (*library)->image = *image; /* with what it owns */
  (*library)->slots = calloc(1, sizeof *(*library)->slots);
  if (!(*library)->slots) {
    return nst_fail(NST_ERROR_OUT_OF_MEMORY, "no memory for a library handle");
  }
  (*library)->device_count = count;
  nst_status status = NST_OK;
  for (int i = 0; i < count && status == NST_OK; i++) {
    status = read_device(*library, i);
  }
  return status;
}

/* An image of another build is refused at once, though its parts are loaded later. */
static nst_status check_build_id(const nst_library *library) {
  for (uint32_t arch = 0; arch < NST_ARCH_COUNT; arch++) {
    bool covered = false;
    for (int i = 0; i < library->device_count; i++) {
      covered |= library->devices[i].arch == arch;
    }
    nst_status status = covered ? nst_image_check_build_id(library, arch) : NST_OK;
    if (status != NST_OK) {
      return status;
    }
  }
  return NST_OK;
}

static CUresult release(nst_library *library) {
  CUresult result = nst_image_close(library);
  free(library);
  return result;
}

nst_status nst_open(nst_library **library, const nst_open_options *options) {
  static const nst_open_options defaults = NST_OPEN_OPTIONS_INIT;
  if (!library) {
    return nst_fail(NST_ERROR_NULL_POINTER, "library is NULL: expected where to put the handle");
  }
  *library = NULL;
  options = options ? options : &defaults;
  if (options->size != sizeof *options) {
    return nst_fail(NST_ERROR_STRUCT_SIZE, "size of options = %zu: expected sizeof(nst_open_options) = %zu",
                    options->size, sizeof *options);
  }
  struct nst_image image = {0};
  struct nst_driver driver;
  nst_library *opened = NULL;
  nst_status status = nst_image_open(&image, options);
  if (status == NST_OK) {
    status = nst_driver_open(&driver, options);
  }
  if (status == NST_OK) {
    status = create(&opened, &driver, &image);
  }
  if (status == NST_OK) {
    status = check_build_id(opened);
  }
  if (status == NST_OK) {
    *library = opened;
  } else if (opened) {
    release(opened);
  } else {
    free(image.owned);
  }
  return status;
}

nst_status nst_close(nst_library *library) {
  if (!library) {
    return NST_OK;
  }
  struct nst_driver driver = library->driver;
  CUresult result = release(library);
  return result == CUDA_SUCCESS ? NST_OK
                                : nst_driver_fail(&driver, NST_ERROR_DRIVER_CALL, result, "cuLibraryUnload", "");
}

/* ---- The current context ------------------------------------------------------------------------------------- */

static nst_status fail_context(const nst_library *library, CUresult result) {
  bool none = result == CUDA_ERROR_INVALID_CONTEXT;
  return nst_driver_fail(&library->driver, none ? NST_ERROR_NO_CONTEXT : NST_ERROR_DRIVER_CALL, result,
                         "cuCtxGetDevice",
                         none ? "; a CUDA context is expected to be current to the calling thread" : "");
}

nst_status nst_current_device(const nst_library *library, const struct nst_device **device) {
  CUdevice handle;
  CUresult result = library->driver.cuCtxGetDevice(&handle);
  if (result != CUDA_SUCCESS) {
    return fail_context(library, result);
  }
  for (int i = 0; i < library->device_count; i++) {
    if (library->devices[i].handle == handle) {
      *device = &library->devices[i];
      return NST_OK;
    }
  }
  return nst_fail(NST_ERROR_DEVICE_UNSUPPORTED, "the current context's device (%d) was not there at nst_open", handle);
}

nst_status nst_device(const nst_library *library, nst_device_facts *facts) {
  if (!library || !facts) {
    return nst_fail(NST_ERROR_NULL_POINTER, "%s is NULL: expected %s", library ? "device" : "library",
                    library ? "a pointer to nst_device_facts" : "a handle from nst_open");
  }
  if (facts->size != sizeof *facts) {
    return nst_fail(NST_ERROR_STRUCT_SIZE, "size of device = %zu: expected sizeof(nst_device_facts) = %zu", facts->size,
                    sizeof *facts);
  }
  const struct nst_device *device;
  nst_status status = nst_current_device(library, &device);
  if (status == NST_OK) {
    facts->arch = device->compute_capability;
    facts->multiprocessors = (int)device->multiprocessors;
  }
  return status;
}

nst_status nst_preload(const nst_library *library) {
  if (!library) {
    return nst_fail(NST_ERROR_NULL_POINTER, "library is NULL: expected a handle from nst_open");
  }
  const struct nst_device *device;
  nst_status status = nst_current_device(library, &device);
  if (status != NST_OK) {
    return status;
  }
  if (device->arch == NST_ARCH_NONE) {
    return nst_device_fail(device->compute_capability, library->image.archs);
  }
  return nst_image_preload(library, device->arch);
}
