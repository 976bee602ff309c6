#include "fake_driver.h"

#include <stdint.h>
#include <string.h>

#include "axes.h"
#include "build_id.h"

struct fake_driver fake;
_Thread_local struct fake_launch fake_launched;
_Thread_local CUdevice fake_device;
_Thread_local CUresult fake_context;

static int fake_library; /* its address is the CUlibrary */

void fake_reset(void) {
  fake = (struct fake_driver){
      .version = 13000,
      .device_count = 1,
      .capability = {90, 90, 90, 90},
      .multiprocessors = 132,
      .failure = CUDA_ERROR_UNKNOWN,
      .build_id_kernel = NST_BUILD_ID_SYMBOL,
  };
  fake_launched = (struct fake_launch){0};
  fake_device = 0;
  fake_context = CUDA_SUCCESS;
}

/* Whether this call of `name` is the one that fails. */
static bool fails(const char *name) {
  return fake.failing && strcmp(fake.failing, name) == 0 && fake.failing_after-- == 0;
}

static CUresult fake_cuDriverGetVersion(int *version) {
  *version = fake.version;
  return fails("cuDriverGetVersion") ? fake.failure : CUDA_SUCCESS;
}

static CUresult fake_cuInit(unsigned flags) { return fails("cuInit") || flags != 0 ? fake.failure : CUDA_SUCCESS; }

static CUresult fake_cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
    case CUDA_ERROR_UNKNOWN: *name = "CUDA_ERROR_UNKNOWN"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; return CUDA_SUCCESS;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; return CUDA_SUCCESS;
    default: *name = NULL; return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult fake_cuGetErrorString(CUresult error, const char **text) {
  const char *name;
  *text = fake_cuGetErrorName(error, &name) == CUDA_SUCCESS ? "the fake driver's words" : NULL;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_cuDeviceGetCount(int *count) {
  *count = fake.device_count;
  return fails("cuDeviceGetCount") ? fake.failure : CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return fails("cuDeviceGet") || ordinal >= fake.device_count ? fake.failure : CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  if (fails("cuDeviceGetAttribute")) {
    return fake.failure;
  }
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = fake.capability[device] / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = fake.capability[device] % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = fake.multiprocessors; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetDevice(CUdevice *device) {
  *device = fake_device;
  return fake_context;
}

static CUresult fake_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
                                       void **jit_values, unsigned jit_count, CUlibraryOption *options, void **values,
                                       unsigned count) {
  (void)jit_options, (void)jit_values;
  bool preserved = count == 1 && options[0] == CU_LIBRARY_BINARY_IS_PRESERVED && values[0] == (void *)(uintptr_t)1;
  if (fails("cuLibraryLoadData") || jit_count != 0 || (count != 0 && !preserved)) {
    *library = (CUlibrary)(uintptr_t)0xbad; /* as a driver may leave it: nobody may use it */
    return fake.failure;
  }
  fake.libraries++;
  fake.loads++;
  fake.image = code;
  fake.preserved = preserved;
  *library = (CUlibrary)&fake_library;
  return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryUnload(CUlibrary library) {
  if (library != (CUlibrary)&fake_library || fake.libraries == 0) {
    fake.misuses++;
    return CUDA_ERROR_INVALID_HANDLE;
  }
  fake.libraries--;
  return fails("cuLibraryUnload") ? fake.failure : CUDA_SUCCESS;
}

/* A kernel's handle is its name, which the table holds for the life of the program. */
static CUresult fake_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  if (library != (CUlibrary)&fake_library) {
    fake.misuses++;
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (fails("cuLibraryGetKernel")) {
    return fake.failure;
  }
  bool build_id = strncmp(name, "nst_build_id_", 13) == 0;
  if (build_id && strcmp(name, fake.build_id_kernel) != 0) {
    return CUDA_ERROR_NOT_FOUND;
  }
  fake.kernels += !build_id;
  *kernel = (CUkernel)(uintptr_t)name;
  return CUDA_SUCCESS;
}

static CUresult fake_cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  if (fails("cuKernelGetFunction")) {
    return fake.failure;
  }
  fake.functions++;
  *function = (CUfunction)kernel;
  return CUDA_SUCCESS;
}

static CUresult fake_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  (void)kernel;
  if (fails("cuKernelSetAttribute") || attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
      value <= 48 * 1024) {
    return fake.failure;
  }
  fake.attributes[device]++;
  return CUDA_SUCCESS;
}

static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                                      void **extra) {
  if (fails("cuLaunchKernelEx") || extra) {
    return fake.failure;
  }
  struct fake_launch *launch = &fake_launched;
  launch->count++;
  launch->kernel = (const char *)(uintptr_t)function;
  launch->grid[0] = config->gridDimX, launch->grid[1] = config->gridDimY, launch->grid[2] = config->gridDimZ;
  launch->block[0] = config->blockDimX, launch->block[1] = config->blockDimY, launch->block[2] = config->blockDimZ;
  launch->shared_bytes = config->sharedMemBytes;
  launch->stream = config->hStream;
  launch->cluster = 0;
  launch->dependent = false;
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const CUlaunchAttribute *attribute = &config->attrs[i];
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && attribute->value.clusterDim.y == 1 &&
        attribute->value.clusterDim.z == 1) {
      launch->cluster = attribute->value.clusterDim.x;
    } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      launch->dependent = attribute->value.programmaticStreamSerializationAllowed == 1;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  launch->params = *(const struct nst_rows_params *)arguments[0];
  return CUDA_SUCCESS;
}

static CUresult fake_cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config) {
  (void)function;
  unsigned cluster = config->numAttrs > 0 && config->attrs[0].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                         ? config->attrs[0].value.clusterDim.x
                         : 0;
  if (fails("cuOccupancyMaxActiveClusters") || cluster == 0 || config->gridDimX % cluster != 0) {
    return fake.failure;
  }
  *clusters = fake.resident_clusters ? fake.resident_clusters : fake.multiprocessors / (int)cluster;
  return CUDA_SUCCESS;
}

#define FAKE_FUNCTIONS(X)        \
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

#define FAKE_NAME(name, version) #name,
const char *const fake_names[] = {FAKE_FUNCTIONS(FAKE_NAME)};
const int fake_name_count = sizeof fake_names / sizeof *fake_names;

void *fake_get_proc(void *user, const char *name, int cuda_version) {
  void *address = NULL;
  (void)user;
  if (fake.missing && strcmp(name, fake.missing) == 0) {
    return NULL;
  }
  /* As the driver does: no form of a function that is newer than what was asked for. */
#define FAKE_FIND(function, version)                               \
  if (strcmp(name, #function) == 0 && cuda_version >= (version)) { \
    __typeof__(&fake_##function) pointer = fake_##function;        \
    memcpy(&address, &pointer, sizeof address);                    \
  }
  FAKE_FUNCTIONS(FAKE_FIND)
  return address;
}

static void put(unsigned char *image, size_t at, size_t bytes, uint64_t value) {
  for (size_t i = 0; i < bytes; i++) {
    image[at + i] = (unsigned char)(value >> 8 * i);
  }
}

/* Files for one architecture: the build id's, and one for each operation and types that have kernels. */
static int file_count(void) {
  size_t parts = NST_OP_COUNT * NST_TYPES_COUNT;
  size_t rows = nst_table_count() / parts;
  int count = 1;
  for (size_t part = 0; part < parts; part++) {
    bool kernels = false;
    for (size_t i = part * rows; i < (part + 1) * rows; i++) {
      nst_kernel_info info = NST_KERNEL_INFO_INIT;
      kernels |= nst_table_row(i, &info) == NST_OK && info.symbol;
    }
    count += kernels;
  }
  return count;
}

size_t fake_image(unsigned char *image, const int *archs, int arch_count) {
  enum { HEAD = 64 };
  memset(image, 0, FAKE_IMAGE_ROOM);
  size_t at = FAKE_IMAGE_HEAD;
  for (int i = 0; i < arch_count * file_count(); i++) {
    put(image, at, 2, 2); /* an ELF file */
    put(image, at + 2, 2, 0x101);
    put(image, at + 4, 4, HEAD);
    put(image, at + 8, 8, FAKE_IMAGE_ENTRY - HEAD);
    put(image, at + 28, 4, (uint64_t)archs[i / file_count()]);
    memcpy(image + at + HEAD, "\177ELF", 4);
    at += FAKE_IMAGE_ENTRY;
  }
  put(image, 0, 4, 0xBA55ED50u);
  put(image, 4, 2, 1);
  put(image, 6, 2, FAKE_IMAGE_HEAD);
  put(image, 8, 8, at - FAKE_IMAGE_HEAD);
  return at;
}

nst_status fake_open(nst_library **library) {
  static const int archs[] = {90, 100};
  unsigned char image[FAKE_IMAGE_ROOM];
  nst_open_options options = NST_OPEN_OPTIONS_INIT;
  options.get_proc = fake_get_proc;
  options.image = image;
  options.image_size = fake_image(image, archs, 2);
  return nst_open(library, &options);
}
