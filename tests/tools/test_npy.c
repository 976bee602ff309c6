/* The reader and writer of NumPy files: what is written is read back; no damaged file gets through or does harm. */
#define _XOPEN_SOURCE 700 /* mkdtemp, SIGXFSZ */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "npy.h"

static char folder[] = "/tmp/test_npy.XXXXXX";
static char path[64];
static char why[512];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/a.npy", folder);
  return 0;
}

/* Fails where a test has left anything but its one file. */
static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static void write_bytes(const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static size_t read_bytes(unsigned char *bytes, size_t room) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(bytes, 1, room, file);
  fclose(file);
  assert_true(size < room);
  return size;
}

static void write_array(const struct npy *array) {
  char staged[NPY_PATH_SIZE];
  assert_int_equal(npy_stage(path, array, staged, why, sizeof why), 0);
  assert_int_equal(npy_commit(path, staged, why, sizeof why), 0);
  assert_string_equal(staged, "");
}

/* The file is refused, with a sentence that begins with its name. */
static void assert_refused(void) {
  struct npy array;
  why[0] = '\0';
  assert_int_equal(npy_read(path, &array, why, sizeof why), -1);
  assert_null(array.data);
  assert_memory_equal(why, path, strlen(path));
  assert_true(strlen(why) > strlen(path) + 8);
}

static void test_round_trip(void **state) {
  (void)state;
  unsigned char data[480];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 37);
  const struct npy arrays[] = {
      {.type = NPY_F16, .dimensions = 2, .shape = {3, 40}, .count = 120, .data = data},
      {.type = NPY_F32, .dimensions = 3, .shape = {2, 1, 60}, .count = 120, .data = data},
      {.type = NPY_U16, .dimensions = 1, .shape = {7}, .count = 7, .data = data},
      {.type = NPY_F32, .dimensions = 0, .count = 1, .data = data},
      {.type = NPY_F16, .dimensions = 2, .shape = {0, 4096}, .count = 0, .data = data},
      {.type = NPY_F16, .dimensions = NPY_MAX_DIMENSIONS, .count = 0, .data = data},
      {.type = NPY_U16, .dimensions = 2, .shape = {0, INT64_MAX}, .count = 0, .data = data},
  };
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
    const struct npy *want = &arrays[i];
    struct npy got;
    write_array(want);
    assert_int_equal(npy_read(path, &got, why, sizeof why), 0);
    assert_int_equal(got.type, want->type);
    assert_int_equal(got.dimensions, want->dimensions);
    assert_memory_equal(got.shape, want->shape, sizeof got.shape);
    assert_int_equal(got.count, want->count);
    assert_memory_equal(got.data, want->data, want->count * npy_type_size(want->type));
    npy_free(&got);
    assert_null(got.data);
  }
}

/* Byte for byte what NumPy itself writes for zeros((2, 3), float16). */
static void test_bytes(void **state) {
  (void)state;
  const uint16_t zeros[6] = {0};
  write_array(&(struct npy){.type = NPY_F16, .dimensions = 2, .shape = {2, 3}, .count = 6, .data = (void *)zeros});
  unsigned char bytes[256];
  assert_int_equal(read_bytes(bytes, sizeof bytes), 128 + 12);
  static const char start[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }";
  assert_memory_equal(bytes, start, sizeof start - 1);
  for (size_t i = sizeof start - 1; i < 127; i++) assert_int_equal(bytes[i], ' ');
  assert_int_equal(bytes[127], '\n');
}

/* Other ways to write a header that mean the same. */
static void test_header_forms(void **state) {
  (void)state;
  static const char *const headers[] = {
      "{'descr':'<f2','fortran_order':False,'shape':(2,)}",
      "{ 'shape' : ( 2 , ) , 'fortran_order' : False , 'descr' : '<f2' , }\n",
      "{\"descr\": \"<f2\", \"fortran_order\": False, \"shape\": (2,), }   ",
      "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2,), }",
      "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 1), }",
  };
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
    unsigned char bytes[256] = "\x93NUMPY\x01";
    const size_t length = strlen(headers[i]);
    bytes[8] = (unsigned char)length;
    memcpy(bytes + 10, headers[i], length);
    write_bytes(bytes, 10 + length + 4);
    struct npy array;
    assert_int_equal(npy_read(path, &array, why, sizeof why), 0);
    assert_int_equal(array.count, 2);
    npy_free(&array);
  }
}

/* A good file of 2 x 2 numbers; returns its size. */
static size_t good_file(unsigned char *bytes, size_t room) {
  const float data[4] = {1, 2, 3, 4};
  write_array(&(struct npy){.type = NPY_F32, .dimensions = 2, .shape = {2, 2}, .count = 4, .data = (void *)data});
  return read_bytes(bytes, room);
}

static void test_every_length(void **state) {
  (void)state;
  unsigned char bytes[256] = {0};
  const size_t size = good_file(bytes, sizeof bytes);
  for (size_t length = 0; length < sizeof bytes; length++) {
    if (length == size) continue;
    write_bytes(bytes, length);
    assert_refused();
  }
}

/* Each byte of the header, set to what may mean something there and to what never does: refused, or read as some array
 * whose data are all there. */
static void test_every_byte(void **state) {
  (void)state;
  unsigned char bytes[256] = {0};
  const size_t size = good_file(bytes, sizeof bytes);
  static const unsigned char values[] = "\0\1\2\3\x7f\x80\xff \t\n'\"\\,:(){}[]0149-+.eLT<>|uf";
  int refused = 0;
  for (size_t place = 0; place < 128; place++) {
    const unsigned char before = bytes[place];
    for (size_t value = 0; value < sizeof values - 1; value++) {
      bytes[place] = values[value];
      write_bytes(bytes, size);
      struct npy array;
      if (npy_read(path, &array, why, sizeof why) == 0) {
        assert_int_equal(array.count * npy_type_size(array.type), size - 128);
        npy_free(&array);
      } else {
        assert_memory_equal(why, path, strlen(path));
        refused++;
      }
    }
    bytes[place] = before;
  }
  assert_true(refused > 1500);
}

static void test_missing(void **state) {
  (void)state;
  unlink(path);
  assert_refused();
}

/* A file that was staged and given up leaves nothing; the folder's removal proves it. */
static void test_discard(void **state) {
  (void)state;
  const float one = 1;
  char staged[NPY_PATH_SIZE];
  const struct npy array = {.type = NPY_F32, .dimensions = 1, .shape = {1}, .count = 1, .data = (void *)&one};
  assert_int_equal(npy_stage(path, &array, staged, why, sizeof why), 0);
  assert_int_equal(access(staged, F_OK), 0);
  npy_discard(staged);
  assert_string_equal(staged, "");
  npy_discard(staged);
}

/* A device that takes no data: the failure is told, and the device is not replaced. */
static void test_not_replaced(void **state) {
  (void)state;
  const float one = 1;
  char staged[NPY_PATH_SIZE];
  const struct npy array = {.type = NPY_F32, .dimensions = 1, .shape = {1}, .count = 1, .data = (void *)&one};
  assert_int_equal(npy_stage("/dev/full", &array, staged, why, sizeof why), -1);
  assert_string_equal(staged, "");
  assert_non_null(strstr(why, "/dev/full"));
}

/* A file that can't be written to its end leaves nothing behind. */
static void test_no_room(void **state) {
  (void)state;
  const float data[256] = {0};
  const struct npy array = {.type = NPY_F32, .dimensions = 1, .shape = {256}, .count = 256, .data = (void *)data};
  char staged[NPY_PATH_SIZE];
  struct rlimit before;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){512, before.rlim_max}), 0);
  const int result = npy_stage(path, &array, staged, why, sizeof why);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(result, -1);
  assert_string_equal(staged, "");
  assert_non_null(strstr(why, "can't be written: File too large"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_bytes),      cmocka_unit_test(test_header_forms),
      cmocka_unit_test(test_every_length), cmocka_unit_test(test_every_byte), cmocka_unit_test(test_missing),
      cmocka_unit_test(test_discard),      cmocka_unit_test(test_not_replaced),
      cmocka_unit_test(test_no_room),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
