/* The CUDA driver: found at run time, never linked. No state is kept outside the handle. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Cubins and fatbins of one CUDA major version need a driver of that version. */
#define NST_MINIMUM_DRIVER 13000

/* The hook that stands for libcuda.so.1; `user` points to its cuGetProcAddress. */
static void *find_in_libcuda(void *user, const char *name, int cuda_version) {
  PFN_cuGetProcAddress_v12000 cuGetProcAddress_v2 = *(PFN_cuGetProcAddress_v12000 *)user;
  CUdriverProcAddressQueryResult found;
  void *function = NULL;
  /* NULL as a stream means the context's default stream, however the caller was compiled. */
  CUresult result = cuGetProcAddress_v2(name, &function, cuda_version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
  return result == CUDA_SUCCESS ? function : NULL;
}

/* The first object is the executable itself: *user becomes true where it names a dynamic linker. */
static int look_for_interpreter(struct dl_phdr_info *object, size_t size, void *user) {
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    if (object->dlpi_phdr[i].p_type == PT_INTERP) {
      *(bool *)user = true;
    }
  }
  return 1;
}

/* libcuda.so.1 in a fully static executable dies in dlopen or can't initialise: nothing that could be tried. */
static bool is_static_executable(void) {
  bool has_interpreter = false;
  dl_iterate_phdr(look_for_interpreter, &has_interpreter);
  return !has_interpreter;
}

static nst_status load_libcuda(PFN_cuGetProcAddress_v12000 *get_proc_address) {
  if (is_static_executable()) {
    return nst_fail(NST_ERROR_STATIC_EXECUTABLE,
                    "libcuda.so.1 can't be loaded into a fully static executable: expected one that links the C "
                    "library dynamically (libnormstatic.a itself stays static), or a get_proc hook");
  }
  /* NODELETE: the driver stays for the life of the process, as its own threads and exit handlers need it to. */
  void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!libcuda) {
    const char *reason = dlerror();
    return nst_fail(NST_ERROR_DRIVER_NOT_FOUND, "libcuda.so.1 can't be loaded: %s",
                    reason ? reason : "no reason given");
  }
  void *address = dlsym(libcuda, "cuGetProcAddress_v2");
  dlclose(libcuda);
  if (!address) {
    return nst_fail(NST_ERROR_DRIVER_TOO_OLD,
                    "libcuda.so.1 has no cuGetProcAddress_v2: expected a driver for CUDA %d.%d or newer",
                    NST_MINIMUM_DRIVER / 1000, NST_MINIMUM_DRIVER % 1000 / 10);
  }
  memcpy(get_proc_address, &address, sizeof address);
  return NST_OK;
}

/* Stores the entry point in *function, a function pointer. */
static nst_status find(nst_get_proc get_proc, void *user, const char *name, int cuda_version, void *function) {
  void *address = get_proc(user, name, cuda_version);
  if (!address) {
    return nst_fail(NST_ERROR_DRIVER_SYMBOL, "%s (CUDA %d.%d) is missing: expected it from the driver or from get_proc",
                    name, cuda_version / 1000, cuda_version % 1000 / 10);
  }
  memcpy(function, &address, sizeof address);
  return NST_OK;
}

static nst_status find_all(struct nst_driver *driver, nst_get_proc get_proc, void *user) {
  nst_status status = NST_OK;
#define NST_FIND(name, version)                                     \
  if (status == NST_OK) {                                           \
    status = find(get_proc, user, #name, (version), &driver->name); \
  }
  NST_DRIVER_FUNCTIONS(NST_FIND)
#undef NST_FIND
  return status;
}

static nst_status check_version(const struct nst_driver *driver) {
  int version = 0;
  CUresult result = driver->cuDriverGetVersion(&version);
  if (result != CUDA_SUCCESS) {
    return nst_fail(NST_ERROR_DRIVER_CALL, "cuDriverGetVersion failed: error %d", (int)result);
  }
  if (version < NST_MINIMUM_DRIVER) {
    return nst_fail(NST_ERROR_DRIVER_TOO_OLD, "the driver is for CUDA %d.%d: expected one for CUDA %d.%d or newer",
                    version / 1000, version % 1000 / 10, NST_MINIMUM_DRIVER / 1000, NST_MINIMUM_DRIVER % 1000 / 10);
  }
  return NST_OK;
}

nst_status nst_driver_open(struct nst_driver *driver, const nst_open_options *options) {
  nst_get_proc get_proc = options->get_proc;
  void *user = options->get_proc_user;
  PFN_cuGetProcAddress_v12000 get_proc_address = NULL;
  nst_status status = NST_OK;
  if (!get_proc) {
    status = load_libcuda(&get_proc_address);
    get_proc = find_in_libcuda;
    user = &get_proc_address;
  }
  /* The version comes first, since an old driver also lacks entry points. */
  if (status == NST_OK) {
    status = find(get_proc, user, "cuDriverGetVersion", 2020, &driver->cuDriverGetVersion);
  }
  if (status == NST_OK) {
    status = check_version(driver);
  }
  if (status == NST_OK) {
    status = find_all(driver, get_proc, user);
  }
  if (status != NST_OK) {
    return status;
  }
  CUresult result = driver->cuInit(0);
  return result == CUDA_SUCCESS ? NST_OK : nst_driver_fail(driver, NST_ERROR_DRIVER_CALL, result, "cuInit", "");
}

nst_status nst_driver_fail(const struct nst_driver *driver, nst_status status, CUresult result, const char *call,
                           const char *hint) {
  const char *name = NULL;
  const char *text = NULL;
  if (driver->cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) {
    name = "an unknown error";
  }
  if (driver->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) {
    text = "the driver has no text for it";
  }
  return nst_fail(status, "%s failed: %s (error %d: %s)%s", call, name, (int)result, text, hint);
}
