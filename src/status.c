/* Status texts and the per-thread error sentence, the only state that a thread keeps. */
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

/* Every status with its meaning; -Wswitch makes the compiler refuse a status that is missing here. */
#define NST_STATUSES(X)                                                                               \
  X(NST_OK, "success")                                                                                \
  X(NST_ERROR_NULL_POINTER, "a pointer that must be set is NULL")                                     \
  X(NST_ERROR_STRUCT_SIZE, "an argument struct's size member fits no version of it")                  \
  X(NST_ERROR_DTYPE, "a data type is unknown, or not allowed beside the others")                      \
  X(NST_ERROR_SHAPE, "rows, n or rows_per_cond outside their range")                                  \
  X(NST_ERROR_STRIDE, "a row stride is negative, overflows, or lets written rows overlap")            \
  X(NST_ERROR_ALIGNMENT, "a pointer is not aligned to its element")                                   \
  X(NST_ERROR_OVERLAP, "tensors overlap in a way that is not one of the documented in-place forms")   \
  X(NST_ERROR_VALUE, "a number is outside its range or not a number")                                 \
  X(NST_ERROR_FLAGS, "an unknown flag, or flags that exclude each other or the operation")            \
  X(NST_ERROR_OP, "an operation is unknown")                                                          \
  X(NST_ERROR_INDEX, "a table index is outside the table")                                            \
  X(NST_ERROR_NO_KERNEL, "this build has no kernel for the call")                                     \
  X(NST_ERROR_KERNEL_UNFIT, "the kernel named by its index can't serve these arguments")              \
  X(NST_ERROR_DRIVER_NOT_FOUND, "the CUDA driver library libcuda.so.1 can't be loaded")               \
  X(NST_ERROR_DRIVER_TOO_OLD, "the CUDA driver is older than the kernels need")                       \
  X(NST_ERROR_DRIVER_SYMBOL, "the CUDA driver, or the hook in its place, lacks an entry point")       \
  X(NST_ERROR_DRIVER_CALL, "a call of the CUDA driver failed")                                        \
  X(NST_ERROR_NO_CONTEXT, "no CUDA context is current to the calling thread")                         \
  X(NST_ERROR_DEVICE_UNSUPPORTED, "the kernel image holds no kernels for this device's architecture") \
  X(NST_ERROR_STATIC_EXECUTABLE, "the CUDA driver can't be loaded into a fully static executable")    \
  X(NST_ERROR_IMAGE_READ, "a kernel image file can't be opened or read")                              \
  X(NST_ERROR_IMAGE_FORMAT, "not a kernel image, or truncated")                                       \
  X(NST_ERROR_IMAGE_BUILD_ID, "a kernel image of another build than the tables")                      \
  X(NST_ERROR_OUT_OF_MEMORY, "out of host memory")

const char *nst_status_name(nst_status status) {
  switch (status) {
#define NST_CASE(name, text) \
  case name: return #name;
    NST_STATUSES(NST_CASE)
#undef NST_CASE
  }
  return "(unknown status)";
}

const char *nst_status_text(nst_status status) {
  switch (status) {
#define NST_CASE(name, text) \
  case name: return text;
    NST_STATUSES(NST_CASE)
#undef NST_CASE
  }
  return "a status that this version of the library does not know";
}

static _Thread_local char nst_sentence[512];

const char *nst_last_error(void) { return nst_sentence; }

nst_status nst_fail(nst_status status, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(nst_sentence, sizeof nst_sentence, format, values);
  va_end(values);
  return status;
}

int nst_version(void) { return NST_VERSION_MAJOR * 10000 + NST_VERSION_MINOR * 100 + NST_VERSION_PATCH; }
