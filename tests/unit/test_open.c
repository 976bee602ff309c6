/*
 * Opening: every step fails in turn, with the right status and sentence, no handle and nothing left behind.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"

static unsigned char image[FAKE_IMAGE_ROOM];
static size_t image_size;
static char folder[] = "/tmp/nst_test_open_XXXXXX";

/* ---- Memory that runs out ------------------------------------------------------------------------------------ */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

/* The program's own malloc and calloc, in front of the C library's; a sanitizer has taken that place already. */
#ifndef SANITIZED
static int allocations_left = -1; /* -1: no limit */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

static bool allowed(void) {
  if (allocations_left < 0 || allocations_left-- > 0) {
    return true;
  }
  allocations_left = 0;
  errno = ENOMEM;
  return false;
}

void *malloc(size_t size) { return allowed() ? __libc_malloc(size) : NULL; }

void *calloc(size_t count, size_t size) { return allowed() ? __libc_calloc(count, size) : NULL; }
#endif

/* ---- Helpers ------------------------------------------------------------------------------------------------- */

static nst_open_options good_options(void) {
  nst_open_options options = NST_OPEN_OPTIONS_INIT;
  options.get_proc = fake_get_proc;
  options.image = image;
  options.image_size = image_size;
  return options;
}

static void assert_sentence(const char *part) {
  if (!strstr(nst_last_error(), part)) {
    fail_msg("the sentence \"%s\" should contain \"%s\"", nst_last_error(), part);
  }
}

static void assert_refused(const nst_open_options *options, nst_status status, const char *part) {
  nst_library *library = (nst_library *)(uintptr_t)1;
  nst_status was = nst_open(&library, options);
  if (was != status) {
    fail_msg("%s instead of %s (%s)", nst_status_name(was), nst_status_name(status), nst_last_error());
  }
  assert_sentence(part);
  assert_null(library);
  assert_int_equal(fake.libraries, 0);
  assert_int_equal(fake.misuses, 0);
}

static nst_library *assert_opened(const nst_open_options *options) {
  nst_library *library = NULL;
  if (nst_open(&library, options) != NST_OK) {
    fail_msg("%s", nst_last_error());
  }
  assert_non_null(library);
  return library;
}

static void assert_closed(nst_library *library) {
  assert_int_equal(nst_close(library), NST_OK);
  assert_int_equal(fake.libraries, 0);
}

static const char *file_path(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static const char *write_file(const char *name, const void *bytes, size_t size) {
  const char *path = file_path(name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  return path;
}

/* Kernels of the table, and those of them that need more shared memory than 48 KB. */
static int kernel_count(bool large_alone) {
  int count = 0;
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info info = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &info), NST_OK);
    count += info.symbol && (!large_alone || info.shared_bytes > 48 * 1024);
  }
  return count;
}

static int part_count(void) {
  return (int)(image_size / FAKE_IMAGE_ENTRY) / 2 - 1; /* files of two architectures, without the build ids */
}

static nst_status launch(const nst_library *library) {
  nst_rms_norm_fwd_args args = NST_RMS_NORM_FWD_ARGS_INIT;
  args.rows = 1, args.n = 64;
  args.x = (void *)(uintptr_t)4096, args.y = (void *)(uintptr_t)8192;
  return nst_rms_norm_fwd(library, &args, NULL);
}

/* ---- Opening as it should be --------------------------------------------------------------------------------- */

static void test_opens(void **state) {
  (void)state;
  nst_open_options options = good_options();
  fake.device_count = 4;
  fake.capability[0] = 86, fake.capability[1] = 90, fake.capability[2] = 103, fake.capability[3] = 120;
  unsigned char *copy = malloc(image_size); /* the caller may free it at once */
  assert_non_null(copy);
  options.image = memcpy(copy, image, image_size);
  nst_library *library = assert_opened(&options);
  free(copy);
  int large = kernel_count(true);
  int parts = part_count();
  assert_int_equal(fake.loads, 2); /* the build ids for two of the devices' architectures */
  assert_int_equal(fake.libraries, 0);
  assert_int_equal(fake.kernels, 0);
  /* The first launch loads a part, the next one nothing. */
  fake_device = 1;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(launch(library), NST_OK);
    assert_int_equal(fake.loads, 3);
    assert_true(fake.preserved); /* the handle keeps the image */
    assert_true(fake.kernels > 0 && fake.kernels < kernel_count(false));
    assert_int_equal(fake.functions, 0); /* the rest stays lazy */
  }
  fake.kernels = 0;
  fake_device = 2;
  assert_int_equal(nst_preload(library), NST_OK);
  assert_int_equal(fake.loads, 3 + parts);
  assert_int_equal(fake.libraries, 1 + parts);
  assert_int_equal(fake.kernels, kernel_count(false));
  assert_int_equal(fake.functions, kernel_count(false));
  assert_int_equal(fake.attributes[2], large);
  fake_device = 1;
  assert_int_equal(nst_preload(library), NST_OK);
  assert_int_equal(fake.loads, 2 + 2 * parts); /* one was there */
  assert_int_equal(fake.attributes[1], large);
  assert_int_equal(fake.attributes[2], large);
  assert_int_equal(fake.attributes[0] + fake.attributes[3], 0);
  assert_closed(library);
  assert_int_equal(nst_close(NULL), NST_OK);
}

static void test_devices(void **state) {
  (void)state;
  nst_open_options options = good_options();
  fake.device_count = 4;
  fake.capability[0] = 86, fake.capability[1] = 90, fake.capability[2] = 103, fake.capability[3] = 100;
  nst_library *library = assert_opened(&options);
  for (fake_device = 0; fake_device < 4; fake_device++) {
    nst_device_facts facts = NST_DEVICE_FACTS_INIT;
    assert_int_equal(nst_device(library, &facts), NST_OK);
    assert_int_equal(facts.arch, fake.capability[fake_device]);
    fake_launched.count = 0;
    assert_int_equal(launch(library), fake_device == 0 ? NST_ERROR_DEVICE_UNSUPPORTED : NST_OK);
    assert_int_equal(fake_launched.count, fake_device == 0 ? 0 : 1);
    assert_int_equal(nst_preload(library), fake_device == 0 ? NST_ERROR_DEVICE_UNSUPPORTED : NST_OK);
  }
  assert_closed(library);
}

/* An image that has nothing for any of the devices opens all the same; the driver is not bothered with it. */
static void test_uncovered_devices(void **state) {
  (void)state;
  static const int archs[] = {100};
  nst_open_options options = good_options();
  unsigned char other[FAKE_IMAGE_ROOM];
  options.image = other;
  options.image_size = fake_image(other, archs, 1);
  nst_library *library = assert_opened(&options);
  assert_int_equal(fake.loads, 0);
  assert_int_equal(launch(library), NST_ERROR_DEVICE_UNSUPPORTED);
  assert_sentence("9.0");
  assert_sentence("(sm_100)");
  assert_int_equal(nst_preload(library), NST_ERROR_DEVICE_UNSUPPORTED);
  assert_closed(library);
  static const int both[] = {90, 100};
  options.image_size = fake_image(other, both, 2);
  for (int i = 0; i <= part_count(); i++) {
    other[FAKE_IMAGE_HEAD + i * FAKE_IMAGE_ENTRY] = 1; /* the kind of an entry for sm_90: PTX, which is not a kernel */
  }
  library = assert_opened(&options);
  assert_int_equal(launch(library), NST_ERROR_DEVICE_UNSUPPORTED);
  assert_sentence("(sm_100)");
  assert_closed(library);
  options.image_size = fake_image(other, archs, 0);
  library = assert_opened(&options);
  assert_int_equal(launch(library), NST_ERROR_DEVICE_UNSUPPORTED);
  assert_sentence("(none)");
  assert_closed(library);
  fake.device_count = 0;
  library = assert_opened(&options);
  assert_int_equal(launch(library), NST_ERROR_DEVICE_UNSUPPORTED);
  assert_closed(library);
}

static void test_embedded_image(void **state) {
  (void)state;
  nst_open_options options = NST_OPEN_OPTIONS_INIT;
  options.get_proc = fake_get_proc;
  fake.device_count = 2; /* a build may be for one architecture alone */
  fake.capability[1] = 100;
  nst_library *library = assert_opened(&options);
  assert_true(fake.loads == 1 || fake.loads == 2);
  assert_memory_equal(fake.image, "\177ELF", 4);
  assert_int_equal((uintptr_t)fake.image % 8, 0);
  assert_true(fake.preserved);
  assert_closed(library);
}

/* ---- Arguments ----------------------------------------------------------------------------------------------- */

static void test_arguments(void **state) {
  (void)state;
  nst_open_options options = good_options();
  assert_int_equal(nst_open(NULL, &options), NST_ERROR_NULL_POINTER);
  assert_sentence("library is NULL");
  options.size--;
  assert_refused(&options, NST_ERROR_STRUCT_SIZE, "size of options = ");
  options = good_options();
  options.image = NULL;
  assert_refused(&options, NST_ERROR_NULL_POINTER, "image is NULL beside image_size = ");
}

/* ---- The driver ---------------------------------------------------------------------------------------------- */

static void test_no_driver(void **state) {
  (void)state;
  void *libcuda = dlopen("libcuda.so.1", RTLD_LAZY);
  if (libcuda) {
    dlclose(libcuda);
    print_message("skipped: this machine has libcuda.so.1\n");
    skip();
  }
  nst_open_options options = good_options();
  options.get_proc = NULL;
  assert_refused(&options, NST_ERROR_DRIVER_NOT_FOUND, "libcuda.so.1 can't be loaded: ");
  assert_refused(NULL, NST_ERROR_DRIVER_NOT_FOUND, "libcuda.so.1 can't be loaded: ");
}

static void test_old_driver(void **state) {
  (void)state;
  nst_open_options options = good_options();
  fake.version = 12090;
  assert_refused(&options, NST_ERROR_DRIVER_TOO_OLD, "the driver is for CUDA 12.9: expected one for CUDA 13.0");
  fake.missing = "cuLibraryLoadData"; /* said as what it is, though it also lacks functions */
  fake.version = 11040;
  assert_refused(&options, NST_ERROR_DRIVER_TOO_OLD, "CUDA 11.4");
  fake_reset();
  fake.version = 13020;
  assert_closed(assert_opened(&options));
}

static void test_missing_entry_points(void **state) {
  (void)state;
  nst_open_options options = good_options();
  for (int i = 0; i < fake_name_count; i++) {
    fake.missing = fake_names[i];
    assert_refused(&options, NST_ERROR_DRIVER_SYMBOL, fake_names[i]);
  }
  fake.missing = NULL;
  assert_closed(assert_opened(&options));
}

/* Every call that the driver gets fails in turn. */
static void test_failing_calls(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int times; /* that it is called with two devices of one architecture */
  } calls[] = {{"cuDriverGetVersion", 1},   {"cuInit", 1},
               {"cuDeviceGetCount", 1},     {"cuDeviceGet", 2},
               {"cuDeviceGetAttribute", 6}, {"cuLibraryLoadData", 1},
               {"cuLibraryGetKernel", 1},   {"cuLibraryUnload", 1}};
  nst_open_options options = good_options();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int times = calls[i].times;
    for (int after = 0; after < times; after++) {
      fake_reset();
      fake.device_count = 2;
      fake.failing = calls[i].name;
      fake.failing_after = after;
      assert_refused(&options, NST_ERROR_DRIVER_CALL, calls[i].name);
    }
    fake_reset();
    fake.device_count = 2;
    fake.failing = calls[i].name;
    fake.failing_after = times;
    assert_closed(assert_opened(&options));
  }
  fake_reset();
  fake.failing = "cuInit", fake.failure = CUDA_ERROR_NO_DEVICE;
  assert_refused(&options, NST_ERROR_DRIVER_CALL, "cuInit failed: CUDA_ERROR_NO_DEVICE (error 100: the fake driver's");
  fake.failing_after = 0, fake.failure = (CUresult)12345; /* one that the driver itself can't name */
  assert_refused(&options, NST_ERROR_DRIVER_CALL, "cuInit failed: an unknown error (error 12345: ");
}

static void test_failing_after_opening(void **state) {
  (void)state;
  nst_open_options options = good_options();
  nst_library *library = assert_opened(&options);
  fake.failing = "cuKernelGetFunction", fake.failing_after = 5;
  assert_int_equal(nst_preload(library), NST_ERROR_DRIVER_CALL);
  assert_sentence("cuKernelGetFunction(nst_");
  assert_int_equal(fake.functions, 5);
  fake.failing = "cuLibraryUnload", fake.failing_after = 0;
  assert_int_equal(nst_close(library), NST_ERROR_DRIVER_CALL); /* the handle is gone all the same */
  assert_sentence("cuLibraryUnload failed: ");
}

/* Every call that loads a part fails in turn: nothing of that part is left behind, and the next try loads it. */
static void test_failing_parts(void **state) {
  (void)state;
  nst_open_options options = good_options();
  const struct {
    const char *name;
    int times; /* by nst_preload with two devices of one architecture */
  } calls[] = {{"cuLibraryLoadData", part_count()},
               {"cuLibraryGetKernel", kernel_count(false)},
               {"cuKernelSetAttribute", 2 * kernel_count(true)}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    for (int after = 0; after < calls[i].times; after++) {
      fake_reset();
      fake.device_count = 2;
      nst_library *library = assert_opened(&options);
      fake.failing = calls[i].name;
      fake.failing_after = after;
      assert_int_equal(nst_preload(library), NST_ERROR_DRIVER_CALL);
      assert_sentence(calls[i].name);
      assert_true(fake.libraries < part_count());
      fake.failing = NULL;
      assert_int_equal(nst_preload(library), NST_OK);
      assert_int_equal(fake.libraries, part_count());
      assert_closed(library);
    }
  }
  fake_reset();
  nst_library *library = assert_opened(&options);
  fake.failing = "cuLibraryLoadData";
  assert_int_equal(launch(library), NST_ERROR_DRIVER_CALL);
  assert_int_equal(fake_launched.count, 0);
  assert_int_equal(fake.libraries, 0);
  assert_closed(library);
}

/* Memory runs out at every allocation in turn, those of the C library's files included. */
static void test_memory(void **state) {
  (void)state;
#ifdef SANITIZED
  print_message("skipped: the sanitizer has the place of malloc\n");
  skip();
#else
  nst_open_options options = good_options();
  options.image_path = write_file("memory", image, image_size);
  bool no_image = false;
  bool no_handle = false;
  nst_status status = NST_ERROR_OUT_OF_MEMORY;
  for (int allocations = 0; status != NST_OK; allocations++) {
    nst_library *library = (nst_library *)(uintptr_t)1;
    allocations_left = allocations;
    status = nst_open(&library, &options);
    allocations_left = -1;
    if (status == NST_OK) {
      allocations_left = 0; /* none for the part that a launch loads */
      nst_status launched = launch(library);
      allocations_left = -1;
      assert_int_equal(launched, NST_ERROR_OUT_OF_MEMORY);
      assert_sentence("the handles of");
      assert_int_equal(launch(library), NST_OK);
      assert_closed(library);
      break;
    }
    assert_null(library);
    assert_int_equal(fake.libraries, 0);
    if (status == NST_ERROR_IMAGE_READ) {
      assert_sentence("Cannot allocate memory"); /* the C library's own words */
    } else {
      assert_int_equal(status, NST_ERROR_OUT_OF_MEMORY);
      no_image |= strstr(nst_last_error(), "bytes of image_path = ") != NULL;
      no_handle |= strstr(nst_last_error(), "a library handle") != NULL;
    }
    assert_true(allocations < 100);
  }
  assert_true(no_image && no_handle);
  remove(options.image_path);
#endif
}

/* ---- The image ----------------------------------------------------------------------------------------------- */

static void test_truncated_image(void **state) {
  (void)state;
  nst_open_options options = good_options();
  for (size_t size = 1; size < image_size; size++) {
    unsigned char *copy = malloc(size); /* of its own, so that a read behind its end shows under ASan */
    assert_non_null(copy);
    memcpy(copy, image, size);
    options.image = copy, options.image_size = size;
    assert_refused(&options, NST_ERROR_IMAGE_FORMAT, "image ");
    if (size >= FAKE_IMAGE_HEAD) { /* the head says so many bytes: cut within an entry, or files are missing */
      size_t entries = size - FAKE_IMAGE_HEAD;
      size_t files = entries / FAKE_IMAGE_ENTRY, of_one = (size_t)part_count() + 1;
      copy[8] = (unsigned char)entries, copy[9] = (unsigned char)(entries >> 8);
      if (entries % FAKE_IMAGE_ENTRY != 0) {
        assert_refused(&options, NST_ERROR_IMAGE_FORMAT, "truncated or damaged");
      } else if (files % of_one != 0) {
        assert_refused(&options, NST_ERROR_IMAGE_BUILD_ID, "image is of another build");
      } else {
        assert_closed(assert_opened(&options)); /* all of an architecture, or nothing */
      }
    }
    free(copy);
  }
  options.image = image, options.image_size = 0;
  assert_refused(&options, NST_ERROR_IMAGE_FORMAT, "image has 0 bytes");
  fake.loads = 0;
  unsigned char longer[FAKE_IMAGE_ROOM + 1]; /* not on a boundary, and with bytes after its end: both are fine */
  memcpy(longer + 1, image, image_size);
  options.image = longer + 1, options.image_size = FAKE_IMAGE_ROOM;
  assert_closed(assert_opened(&options));
}

static void test_damaged_image(void **state) {
  (void)state;
  static const struct {
    size_t at;
    unsigned char value;
    const char *part;
  } damages[] = {
      {0, 0x51, "begins with 0xba55ed51, version 1"}, /* magic */
      {4, 2, "version 2"},                            /* version */
      {6, 15, "expected a kernel image"},             /* size of the head */
      {7, 0x7f, "truncated or damaged"},
      {15, 0x80, "truncated or damaged"}, /* size of the entries */
      {8, 5, "truncated or damaged"},     /* ends within the first entry */
      {20, 31, "truncated or damaged"},   /* size of an entry's head */
      {23, 0xff, "truncated or damaged"},
      {24, 0xff, "truncated or damaged"}, /* size of an entry */
      {31, 0xff, "truncated or damaged"},
      {32, 1, "expected a kernel image that is not compressed"},
      {80, 0, "an entry for sm_90 that is no ELF file"},
      {44, 100, "of another build"}, /* one file more for sm_100, one less for sm_90 */
  };
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    unsigned char damaged[FAKE_IMAGE_ROOM];
    memcpy(damaged, image, sizeof damaged);
    damaged[damages[i].at] = damages[i].value;
    nst_open_options options = good_options();
    options.image = damaged;
    bool other = strstr(damages[i].part, "another build") != NULL;
    assert_refused(&options, other ? NST_ERROR_IMAGE_BUILD_ID : NST_ERROR_IMAGE_FORMAT, damages[i].part);
  }
  assert_int_equal(fake.loads, 0);
}

/* The file descriptor that the next file opened gets. */
static int next_descriptor(void) {
  int descriptor = dup(0);
  assert_true(descriptor >= 0);
  close(descriptor);
  return descriptor;
}

static void test_image_file(void **state) {
  (void)state;
  int descriptor = next_descriptor();
  nst_open_options options = good_options();
  options.image = NULL, options.image_size = 0;
  options.image_path = write_file("good", image, image_size);
  assert_closed(assert_opened(&options));
  assert_int_equal(fake.loads, 1);
  remove(options.image_path);
  assert_refused(&options, NST_ERROR_IMAGE_READ, "good\" can't be opened: No such file");
  options.image_path = folder;
  assert_refused(&options, NST_ERROR_IMAGE_READ, "is not a regular file");
  options.image_path = "/dev/null";
  assert_refused(&options, NST_ERROR_IMAGE_READ, "\"/dev/null\" is not a regular file");
  options.image_path = write_file("empty", "", 0);
  assert_refused(&options, NST_ERROR_IMAGE_FORMAT, "empty has 0 bytes");
  remove(options.image_path);
  options.image_path = write_file("truncated", image, image_size - 1);
  assert_refused(&options, NST_ERROR_IMAGE_FORMAT, "truncated or damaged");
  remove(options.image_path);
  options.image_path = write_file("text", "nothing but a few words of text", 31);
  assert_refused(&options, NST_ERROR_IMAGE_FORMAT, "text begins with 0x68746f6e");
  remove(options.image_path);
  assert_int_equal(next_descriptor(), descriptor); /* every file was closed */
}

static void test_build_id(void **state) {
  (void)state;
  nst_open_options options = good_options();
  fake.build_id_kernel = "nst_build_id_0000000000000000";
  assert_refused(&options, NST_ERROR_IMAGE_BUILD_ID, nst_build_id());
  assert_sentence("image is of another build");
  fake_reset(); /* another failure of the same call is not taken for it */
  fake.failing = "cuLibraryGetKernel";
  assert_refused(&options, NST_ERROR_DRIVER_CALL, "cuLibraryGetKernel(nst_build_id_");
}

/* ---- */

static int start(void **state) {
  static const int archs[] = {90, 100};
  (void)state;
  fake_reset();
  image_size = fake_image(image, archs, 2);
  return 0;
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_opens, start),
      cmocka_unit_test_setup(test_devices, start),
      cmocka_unit_test_setup(test_uncovered_devices, start),
      cmocka_unit_test_setup(test_embedded_image, start),
      cmocka_unit_test_setup(test_arguments, start),
      cmocka_unit_test_setup(test_no_driver, start),
      cmocka_unit_test_setup(test_old_driver, start),
      cmocka_unit_test_setup(test_missing_entry_points, start),
      cmocka_unit_test_setup(test_failing_calls, start),
      cmocka_unit_test_setup(test_failing_after_opening, start),
      cmocka_unit_test_setup(test_failing_parts, start),
      cmocka_unit_test_setup(test_memory, start),
      cmocka_unit_test_setup(test_truncated_image, start),
      cmocka_unit_test_setup(test_damaged_image, start),
      cmocka_unit_test_setup(test_image_file, start),
      cmocka_unit_test_setup(test_build_id, start),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
