/*
 * The stand-in libcuda: the driver functions that the library, the tools and the tests use, with the driver's
 * signatures and refusals. Device memory is host memory of the exact size asked for, so that AddressSanitizer sees
 * every stray access. Launches run to their end before the launch call returns.
 */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <type_traits>

#include "machine.h"
#include "softgpu.h"

namespace soft {

constexpr int DRIVER_VERSION = 13000;
constexpr uint32_t FATBIN_MAGIC = 0xBA55ED50u;
constexpr int SHARED_WITHOUT_ASKING = 49152;
constexpr size_t FILL_LIMIT = size_t{1} << 28; /* larger allocations stay untouched, so their pages cost nothing */

struct Kernel {
  const softgpu_kernel *entry;
  int shared_limit;
  bool large_cluster;
};
using Library = std::vector<Kernel>; /* in the order of softgpu_kernels() */
struct Object {};                    /* a context, stream or event is nothing but its handle */

static std::recursive_mutex lock; /* held by every call that follows; the interpreter runs one launch at a time */
static bool initialised;
static int multiprocessors = 4;
static unsigned long launches;
static std::map<CUdeviceptr, size_t> allocations;
static size_t allocated;
static std::set<std::unique_ptr<Library>> libraries;
static std::set<std::unique_ptr<Object>> contexts, streams, events;
static CUcontext primary;
static unsigned primary_users;
static thread_local std::vector<CUcontext> current;
static thread_local std::string last_error;

using Guard = std::lock_guard<std::recursive_mutex>;

template <class T> static auto find(std::set<std::unique_ptr<T>> &set, const void *handle) {
  return std::find_if(set.begin(), set.end(), [&](const auto &each) { return each.get() == handle; });
}
template <class Handle> static Handle create(std::set<std::unique_ptr<Object>> &set) {
  return reinterpret_cast<Handle>(set.insert(std::make_unique<Object>()).first->get());
}
static CUresult destroy(std::set<std::unique_ptr<Object>> &set, const void *handle) {
  const auto found = find(set, handle);
  if (found == set.end()) return CUDA_ERROR_INVALID_HANDLE;
  set.erase(found);
  return CUDA_SUCCESS;
}

/* What nearly every call needs: cuInit, and a living context that is current to the thread. */
static CUresult ready() {
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (current.empty() || find(contexts, current.back()) == contexts.end()) return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_SUCCESS;
}
static CUresult ready_with(CUstream stream) {
  if (const CUresult bad = ready()) return bad;
  const bool special = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  return special || find(streams, stream) != streams.end() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult check_device(CUdevice device) {
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static Kernel *find_kernel(const void *handle) {
  for (const auto &library : libraries)
    for (Kernel &kernel : *library)
      if (&kernel == handle) return &kernel;
  return nullptr;
}

/* ---- Errors --------------------------------------------------------------------------------------------------- */

static const struct {
  CUresult code;
  const char *name, *text;
} ERRORS[] = {
#define ERROR(code, text) {code, #code, text}
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "misconfigured cluster launch"),
#undef ERROR
};

static CUresult cuGetErrorName(CUresult error, const char **out) {
  for (const auto &each : ERRORS)
    if (each.code == error) return *out = each.name, CUDA_SUCCESS;
  return *out = nullptr, CUDA_ERROR_INVALID_VALUE;
}
static CUresult cuGetErrorString(CUresult error, const char **out) {
  for (const auto &each : ERRORS)
    if (each.code == error) return *out = each.text, CUDA_SUCCESS;
  return *out = nullptr, CUDA_ERROR_INVALID_VALUE;
}

/* ---- Device and contexts --------------------------------------------------------------------------------------- */

static CUresult cuInit(unsigned flags) {
  const Guard guard(lock);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  initialised = true;
  return CUDA_SUCCESS;
}
static CUresult cuDriverGetVersion(int *version) { return *version = DRIVER_VERSION, CUDA_SUCCESS; }
static CUresult cuDeviceGetCount(int *count) {
  return initialised ? (*count = 1, CUDA_SUCCESS) : CUDA_ERROR_NOT_INITIALIZED;
}
static CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  const CUresult bad = check_device(ordinal);
  return bad ? bad : (*device = ordinal, CUDA_SUCCESS);
}
static CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  if (const CUresult bad = check_device(device)) return bad;
  if (!name || size < 1) return CUDA_ERROR_INVALID_VALUE;
  name[0] = 0;
  strncat(name, "software device", static_cast<size_t>(size) - 1);
  return CUDA_SUCCESS;
}
static CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  if (const CUresult bad = check_device(device)) return bad;
  static const std::map<int, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, static_cast<int>(SOFTGPU_MAX_THREADS)},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, static_cast<int>(SOFTGPU_MAX_THREADS)},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, SHARED_WITHOUT_ASKING},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, static_cast<int>(SOFTGPU_MAX_SHARED)},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, static_cast<int>(SOFTGPU_MAX_SHARED) + 1024},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
  };
  if (!value || attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  const auto found = values.find(attribute);
  *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? multiprocessors
           : found == values.end()                                ? 0
                                                                  : found->second;
  return CUDA_SUCCESS;
}

static CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  const Guard guard(lock);
  if (const CUresult bad = check_device(device)) return bad;
  if (!primary_users++) primary = create<CUcontext>(contexts);
  *context = primary;
  return CUDA_SUCCESS;
}
static CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const Guard guard(lock);
  if (const CUresult bad = check_device(device)) return bad;
  if (!primary_users) return CUDA_ERROR_INVALID_CONTEXT;
  return --primary_users ? CUDA_SUCCESS : destroy(contexts, primary);
}
static CUresult create_context(CUcontext *context, CUdevice device) {
  const Guard guard(lock);
  if (const CUresult bad = check_device(device)) return bad;
  current.push_back(*context = create<CUcontext>(contexts));
  return CUDA_SUCCESS;
}
static CUresult create_context_v2(CUcontext *context, unsigned, CUdevice device) {
  return create_context(context, device);
}
static CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *, unsigned, CUdevice device) {
  return create_context(context, device);
}
static CUresult cuCtxDestroy(CUcontext context) {
  const Guard guard(lock);
  if (context == primary || destroy(contexts, context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!current.empty() && current.back() == context) current.pop_back();
  return CUDA_SUCCESS;
}
static CUresult cuCtxSetCurrent(CUcontext context) {
  const Guard guard(lock);
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (context && find(contexts, context) == contexts.end()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!current.empty()) current.pop_back();
  if (context) current.push_back(context);
  return CUDA_SUCCESS;
}
static CUresult cuCtxGetCurrent(CUcontext *context) {
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  *context = current.empty() ? nullptr : current.back();
  return CUDA_SUCCESS;
}
static CUresult cuCtxGetDevice(CUdevice *device) {
  const Guard guard(lock);
  const CUresult bad = ready();
  return bad ? bad : (*device = 0, CUDA_SUCCESS);
}
static CUresult cuCtxSynchronize(void) {
  const Guard guard(lock);
  return ready();
}

/* ---- Memory --------------------------------------------------------------------------------------------------- */

static CUresult cuMemGetInfo(size_t *free, size_t *total) {
  const Guard guard(lock);
  if (const CUresult bad = ready()) return bad;
  *total = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  *free = *total > allocated ? *total - allocated : 0;
  return CUDA_SUCCESS;
}
static CUresult cuMemAlloc(CUdeviceptr *pointer, size_t size) {
  const Guard guard(lock);
  if (const CUresult bad = ready()) return bad;
  if (!pointer || !size) return CUDA_ERROR_INVALID_VALUE;
  void *memory;
  if (posix_memalign(&memory, 256, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (size <= FILL_LIMIT) memset(memory, 0xff, size); /* NaN in every format: reading what nobody wrote shows */
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  allocations[*pointer] = size;
  allocated += size;
  return CUDA_SUCCESS;
}
static CUresult cuMemFree(CUdeviceptr pointer) {
  const Guard guard(lock);
  if (const CUresult bad = ready()) return bad;
  const auto found = allocations.find(pointer);
  if (found == allocations.end()) return pointer ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  allocated -= found->second;
  allocations.erase(found);
  free(reinterpret_cast<void *>(pointer));
  return CUDA_SUCCESS;
}

/* The host's address of device memory; NULL unless all of it lies in one allocation. */
static char *device_memory(CUdeviceptr at, size_t size) {
  auto found = allocations.upper_bound(at);
  if (found == allocations.begin()) return nullptr;
  --found;
  const size_t offset = at - found->first;
  return offset <= found->second && size <= found->second - offset ? reinterpret_cast<char *>(at) : nullptr;
}
static CUresult copy(void *to, const void *from, size_t size, CUstream stream) {
  if (const CUresult bad = ready_with(stream)) return bad;
  if (size && (!to || !from)) return CUDA_ERROR_INVALID_VALUE;
  if (size) memmove(to, from, size);
  return CUDA_SUCCESS;
}
static CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
  const Guard guard(lock);
  return copy(device_memory(to, size), from, size, stream);
}
static CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
  const Guard guard(lock);
  return copy(to, device_memory(from, size), size, stream);
}
static CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  const Guard guard(lock);
  return copy(device_memory(to, size), device_memory(from, size), size, stream);
}
static CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream stream) {
  const Guard guard(lock);
  if (const CUresult bad = ready_with(stream)) return bad;
  char *memory = device_memory(to, size);
  if (size && !memory) return CUDA_ERROR_INVALID_VALUE;
  if (size) memset(memory, value, size);
  return CUDA_SUCCESS;
}
static CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
  return cuMemcpyHtoDAsync(to, from, size, nullptr);
}
static CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
  return cuMemcpyDtoHAsync(to, from, size, nullptr);
}
static CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return cuMemcpyDtoDAsync(to, from, size, nullptr);
}
static CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t size) {
  return cuMemsetD8Async(to, value, size, nullptr);
}

/* ---- Streams and events: everything is done when its call returns ----------------------------------------------- */

static CUresult cuStreamCreate(CUstream *stream, unsigned) {
  const Guard guard(lock);
  const CUresult bad = ready();
  return bad ? bad : (*stream = create<CUstream>(streams), CUDA_SUCCESS);
}
static CUresult cuStreamDestroy(CUstream stream) {
  const Guard guard(lock);
  return destroy(streams, stream);
}
static CUresult cuStreamSynchronize(CUstream stream) {
  const Guard guard(lock);
  return ready_with(stream);
}
static CUresult cuEventCreate(CUevent *event, unsigned) {
  const Guard guard(lock);
  const CUresult bad = ready();
  return bad ? bad : (*event = create<CUevent>(events), CUDA_SUCCESS);
}
static CUresult cuEventDestroy(CUevent event) {
  const Guard guard(lock);
  return destroy(events, event);
}
static CUresult cuEventSynchronize(CUevent event) {
  const Guard guard(lock);
  return find(events, event) == events.end() ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}
static CUresult cuEventRecord(CUevent event, CUstream stream) {
  const Guard guard(lock);
  const CUresult bad = ready_with(stream);
  return bad ? bad : soft::cuEventSynchronize(event);
}
static CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  *milliseconds = 0; /* times mean nothing here */
  const CUresult bad = soft::cuEventSynchronize(start);
  return bad ? bad : soft::cuEventSynchronize(end);
}

/* ---- Libraries and kernels -------------------------------------------------------------------------------------- */

static CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *, void **, unsigned,
                                  CUlibraryOption *, void **, unsigned) {
  const Guard guard(lock);
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!library || !code) return CUDA_ERROR_INVALID_VALUE;
  if (memcmp(code, &FATBIN_MAGIC, sizeof FATBIN_MAGIC) && memcmp(code, "\177ELF", 4)) return CUDA_ERROR_INVALID_IMAGE;
  auto kernels = std::make_unique<Library>();
  for (const softgpu_kernel &entry : softgpu_kernels()) kernels->push_back({&entry, SHARED_WITHOUT_ASKING, false});
  *library = reinterpret_cast<CUlibrary>(libraries.insert(std::move(kernels)).first->get());
  return CUDA_SUCCESS;
}
static CUresult cuLibraryUnload(CUlibrary library) {
  const Guard guard(lock);
  const auto found = find(libraries, library);
  if (found == libraries.end()) return CUDA_ERROR_INVALID_HANDLE;
  libraries.erase(found);
  return CUDA_SUCCESS;
}
static CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  const Guard guard(lock);
  const auto found = find(libraries, library);
  if (found == libraries.end()) return CUDA_ERROR_INVALID_HANDLE;
  Library &kernels = **found;
  const auto place =
      std::lower_bound(kernels.begin(), kernels.end(), std::string(name),
                       [](const Kernel &each, const std::string &key) { return each.entry->name < key; });
  if (place == kernels.end() || strcmp(place->entry->name, name)) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(&*place);
  return CUDA_SUCCESS;
}
static CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  const Guard guard(lock);
  const auto found = find(libraries, library);
  if (found == libraries.end()) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>((*found)->size());
  return CUDA_SUCCESS;
}
static CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
  const Guard guard(lock);
  const auto found = find(libraries, library);
  if (found == libraries.end()) return CUDA_ERROR_INVALID_HANDLE;
  for (size_t i = 0; i < std::min<size_t>(count, (*found)->size()); ++i)
    kernels[i] = reinterpret_cast<CUkernel>(&(**found)[i]);
  return CUDA_SUCCESS;
}
static CUresult cuKernelGetName(const char **name, CUkernel handle) {
  const Guard guard(lock);
  const Kernel *kernel = find_kernel(handle);
  return kernel ? (*name = kernel->entry->name, CUDA_SUCCESS) : CUDA_ERROR_INVALID_HANDLE;
}
static CUresult cuKernelGetFunction(CUfunction *function, CUkernel handle) {
  const Guard guard(lock);
  if (const CUresult bad = ready()) return bad;
  return find_kernel(handle) ? (*function = reinterpret_cast<CUfunction>(handle), CUDA_SUCCESS)
                             : CUDA_ERROR_INVALID_HANDLE;
}
static CUresult cuFuncLoad(CUfunction handle) {
  const Guard guard(lock);
  return find_kernel(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
static CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  const Guard guard(lock);
  const Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES         ? kernel->shared_limit
           : attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED ? kernel->large_cluster
           : attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK             ? static_cast<int>(SOFTGPU_MAX_THREADS)
           : attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION                    ? 90
                                                                              : 0;
  return CUDA_SUCCESS;
}
static CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  const Guard guard(lock);
  Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > static_cast<int>(SOFTGPU_MAX_SHARED)) return CUDA_ERROR_INVALID_VALUE;
    kernel->shared_limit = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    kernel->large_cluster = value != 0;
  } else if (attribute != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
static CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  const CUresult bad = check_device(device);
  return bad ? bad : soft::cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}
static CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  const CUresult bad = check_device(device);
  return bad ? bad : soft::cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}

static CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction handle, void **params, void **extra) {
  const Guard guard(lock);
  last_error.clear();
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = ready_with(config->hStream)) return bad;
  const Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  const CUlaunchConfig &c = *config;
  if (c.gridDimY != 1 || c.gridDimZ != 1 || c.blockDimY != 1 || c.blockDimZ != 1 || extra)
    return CUDA_ERROR_NOT_SUPPORTED; /* no kernel here uses them */
  if (!c.gridDimX || c.gridDimX > 0x7fffffffu || !c.blockDimX || c.blockDimX > SOFTGPU_MAX_THREADS ||
      c.sharedMemBytes > static_cast<unsigned>(kernel->shared_limit) || (c.numAttrs && !c.attrs))
    return CUDA_ERROR_INVALID_VALUE;
  uint32_t cluster = 1;
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    const CUlaunchAttributeID id = c.attrs[i].id;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto &dim = c.attrs[i].value.clusterDim;
      cluster = dim.x;
      if (dim.y != 1 || dim.z != 1 || !cluster || c.gridDimX % cluster || cluster > SOFTGPU_MAX_CLUSTER ||
          (cluster > 8 && !kernel->large_cluster))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    } else if (id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && id != CU_LAUNCH_ATTRIBUTE_IGNORE &&
               id != CU_LAUNCH_ATTRIBUTE_PRIORITY) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  ++launches;
  last_error = softgpu_run({kernel->entry, params ? params[0] : nullptr, c.gridDimX, c.blockDimX, cluster,
                            c.sharedMemBytes});
  return last_error.empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}
/* As if every block took a multiprocessor. */
static CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config) {
  const Guard guard(lock);
  if (!clusters || !config) return CUDA_ERROR_INVALID_VALUE;
  if (!find_kernel(handle)) return CUDA_ERROR_INVALID_HANDLE;
  uint32_t cluster = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) cluster = config->attrs[i].value.clusterDim.x;
  if (!cluster || config->gridDimX % cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *clusters = std::max(1, multiprocessors / static_cast<int>(cluster));
  return CUDA_SUCCESS;
}
static CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **params,
                               void **extra) {
  const CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, nullptr, 0};
  return soft::cuLaunchKernelEx(&config, function, params, extra);
}

/* ---- Entry points ----------------------------------------------------------------------------------------------- */

static CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t,
                                 CUdriverProcAddressQueryResult *result) {
  *function = softgpu_get_proc(nullptr, name, version);
  if (result) *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

template <class Driver, class Ours> static void *same_signature(Ours *ours) {
  static_assert(std::is_same_v<Driver, Ours *>, "the signature differs from cuda.h's");
  return reinterpret_cast<void *>(ours);
}

static const struct {
  const char *name;
  int since; /* the CUDA version that introduced this form */
  void *function;
} FUNCTIONS[] = {
#define FUNCTION(name, since) {#name, since, same_signature<decltype(&::name)>(soft::name)}
    FUNCTION(cuCtxCreate, 12050),
    {"cuCtxCreate", 3020, reinterpret_cast<void *>(create_context_v2)},
    FUNCTION(cuCtxDestroy, 4000),
    FUNCTION(cuCtxGetCurrent, 4000),
    FUNCTION(cuCtxGetDevice, 2000),
    FUNCTION(cuCtxSetCurrent, 4000),
    FUNCTION(cuCtxSynchronize, 2000),
    FUNCTION(cuDeviceGet, 2000),
    FUNCTION(cuDeviceGetAttribute, 2000),
    FUNCTION(cuDeviceGetCount, 2000),
    FUNCTION(cuDeviceGetName, 2000),
    FUNCTION(cuDevicePrimaryCtxRelease, 11000),
    FUNCTION(cuDevicePrimaryCtxRetain, 7000),
    FUNCTION(cuDriverGetVersion, 2020),
    FUNCTION(cuEventCreate, 2000),
    FUNCTION(cuEventDestroy, 4000),
    FUNCTION(cuEventElapsedTime, 2000),
    FUNCTION(cuEventRecord, 2000),
    FUNCTION(cuEventSynchronize, 2000),
    FUNCTION(cuFuncGetAttribute, 2020),
    FUNCTION(cuFuncLoad, 12040),
    FUNCTION(cuFuncSetAttribute, 9000),
    FUNCTION(cuGetErrorName, 6000),
    FUNCTION(cuGetErrorString, 6000),
    FUNCTION(cuGetProcAddress, 12000),
    FUNCTION(cuInit, 2000),
    FUNCTION(cuKernelGetAttribute, 12000),
    FUNCTION(cuKernelGetFunction, 12000),
    FUNCTION(cuKernelGetName, 12030),
    FUNCTION(cuKernelSetAttribute, 12000),
    FUNCTION(cuLaunchKernel, 4000),
    FUNCTION(cuLaunchKernelEx, 11060),
    FUNCTION(cuLibraryEnumerateKernels, 12040),
    FUNCTION(cuLibraryGetKernel, 12000),
    FUNCTION(cuLibraryGetKernelCount, 12040),
    FUNCTION(cuLibraryLoadData, 12000),
    FUNCTION(cuLibraryUnload, 12000),
    FUNCTION(cuMemAlloc, 3020),
    FUNCTION(cuMemFree, 3020),
    FUNCTION(cuMemGetInfo, 3020),
    FUNCTION(cuMemcpyDtoD, 3020),
    FUNCTION(cuMemcpyDtoDAsync, 3020),
    FUNCTION(cuMemcpyDtoH, 3020),
    FUNCTION(cuMemcpyDtoHAsync, 3020),
    FUNCTION(cuMemcpyHtoD, 3020),
    FUNCTION(cuMemcpyHtoDAsync, 3020),
    FUNCTION(cuMemsetD8, 3020),
    FUNCTION(cuMemsetD8Async, 3020),
    FUNCTION(cuOccupancyMaxActiveClusters, 11070),
    FUNCTION(cuStreamCreate, 2000),
    FUNCTION(cuStreamDestroy, 4000),
    FUNCTION(cuStreamSynchronize, 2000),
#undef FUNCTION
};

}  // namespace soft

void *softgpu_get_proc(void *, const char *name, int cuda_version) {
  std::string key = name;
  if (key.size() > 3 && key.substr(key.size() - 3) == "_v2") { /* as dlsym knows the 64-bit forms */
    key.resize(key.size() - 3);
    cuda_version = std::min(cuda_version, 12000);
  }
  for (const auto &each : soft::FUNCTIONS)
    if (key == each.name && cuda_version >= each.since) return each.function;
  return nullptr;
}

void softgpu_set_multiprocessors(int count) { soft::multiprocessors = count; }

unsigned long softgpu_launches(void) { return soft::launches; }

const char *softgpu_last_error(void) { return soft::last_error.c_str(); }
