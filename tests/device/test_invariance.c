/*
 * A row's result depends on that row alone. The same row must come out bit for bit the same from every kernel that can
 * serve it, from every place among any number of rows, from any alignment, on any number of multiprocessors, each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "half.h"
#include "harness.h"

static struct gpu gpu;
static struct options options;

/* The operations and types that the table has kernels for. */
struct kind {
  nst_op op;
  nst_dtype dtype, weight_dtype;
};
#define MOST_KINDS 64
static struct kind kinds[MOST_KINDS];
static size_t kind_count;

static int is_kind(const struct kind *kind, const nst_kernel_info *k) {
  return k->op == kind->op && k->dtype == kind->dtype && k->weight_dtype == kind->weight_dtype;
}

static void find_kinds(void) {
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    if (nst_table_row(i, &k) != NST_OK) exit(1);
    size_t at = 0;
    while (at < kind_count && !is_kind(&kinds[at], &k)) at++;
    if (!k.symbol || at < kind_count) continue;
    if (kind_count == MOST_KINDS) exit(1);
    kinds[kind_count++] = (struct kind){k.op, k.dtype, k.weight_dtype};
  }
}

/* Every bucket, lengths between and beside them, models' lengths, and beyond the buckets. */
static const int64_t lengths[] = {1,    2,    3,    7,    8,     9,     64,    65,    100,   128,   256,    257,   512,
                                  768,  769,  1000, 1024, 1152,  1536,  2048,  2049,  2560,  2880,  3072,   3584,  4096,
                                  5120, 6144, 7168, 8192, 11008, 12288, 16384, 20480, 32768, 65536, 65537,  131072,
                                  131073, 262144, 262152, 300001};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static int filtered(const struct kind *kind) {
  const nst_kernel_info like = {.op = kind->op, .dtype = kind->dtype, .weight_dtype = kind->weight_dtype};
  const struct options o = {.op = options.op, .types = options.types};
  return !options_pass(&o, &like);
}

/* Rows that begin and end on 16-byte boundaries, or on the second element after one. */
static struct call aligned_call(const struct kind *kind, int64_t rows, int64_t n) {
  struct call call = call_of(kind->op, kind->dtype, kind->weight_dtype, rows, n);
  /* One square is larger than the sum of many others, so that it is rounded anew on every level of the tree: another
   * order of adding nearly always gives other bits. */
  call.fill = FILL_OUTLIER;
  call.seed = (uint64_t)n;
  return call;
}
static struct call unaligned_call(const struct kind *kind, int64_t rows, int64_t n) {
  struct call call = aligned_call(kind, rows, n);
  for (int t = 0; t < ROWS_TENSORS; t++) {
    const enum rows_shape shape = rows_tensor_shape((enum rows_tensor)t);
    call.at[t].offset = shape == SHAPE_COLUMN ? 0 : 2 - (t & 1);
    if ((shape == SHAPE_DATA || shape == SHAPE_COND) && call.at[t].kind == OWN) call.at[t].stride = n + 1;
  }
  return call;
}

static void make(struct setup *s, const struct call *call) {
  if (setup_make(s, &gpu, call)) fail_msg("no room");
}

static void run(struct setup *s, size_t index) {
  const nst_status status = setup_run(s, index, 0);
  if (status != NST_OK) fail_msg("%s: %s", nst_status_name(status), device_error());
}

/* ---- Across kernels ------------------------------------------------------------------------------------------- */

static int serves(const nst_kernel_info *k, const struct call *call, int aligned) {
  if (k->op != call->op || k->dtype != call->dtype || k->weight_dtype != call->weight_dtype) return 0;
  if (!k->symbol || (k->bucket && call->n > k->bucket)) return 0;
  return k->access == NST_ACCESS_UNALIGNED || (aligned && (k->access == NST_ACCESS_MASKED || call->n == k->bucket));
}

/* Runs `call` through every kernel that serves it, and compares all its rows with the reference's. */
static int each_kernel(const struct setup *reference, const struct call *call, int aligned, int *kernels) {
  struct setup s;
  make(&s, call);
  int wrong = 0;
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &k), NST_OK);
    if (!serves(&k, call, aligned)) continue;
    run(&s, i);
    int same = 1;
    for (int64_t row = 0; row < call->rows && same; row++) same = setup_same_row(reference, row, &s, row, k.symbol);
    wrong += !same;
    ++*kernels;
  }
  setup_free(&s);
  return wrong;
}

static void test_kernels(void **state) {
  const struct kind *const kind = *state;
  if (filtered(kind)) skip();
  const int64_t per_vector = 16 / (int64_t)half_size(kind->dtype);
  int wrong = 0, kernels = 0;
  for (size_t l = 0; l < LENGTHS; l++) {
    /* Kinds of one statistic have the same tree, and the software device takes its time: there they share the lengths,
     * which are dealt to them in turn. */
    const size_t turns = kind->dtype == NST_DTYPE_F32 ? 2 : 4;
    if (!gpu.is_card && l % turns != (size_t)(kind - kinds) % turns) continue;
    const int64_t n = lengths[l], rows = n > 20000 ? 1 : 2;
    const struct call aligned = aligned_call(kind, rows, n), unaligned = unaligned_call(kind, rows, n);
    struct setup reference;
    make(&reference, &aligned);
    run(&reference, DISPATCH);
    wrong += setup_check(&reference, "dispatch");
    int here = 0;
    if (n % per_vector == 0) wrong += each_kernel(&reference, &aligned, 1, &here);
    wrong += each_kernel(&reference, &unaligned, 0, &here);
    setup_free(&reference);
    assert_true(here > 0);
    kernels += here;
  }
  printf("%d runs of kernels compared\n", kernels);
  if (wrong) fail_msg("%d kernels differ", wrong);
}

/* ---- Across numbers of rows, places and multiprocessors -------------------------------------------------------- */

static int same_everywhere(const struct kind *kind, const struct setup *alone, int64_t rows, int64_t n) {
  const int64_t places[3] = {0, rows / 2, rows - 1};
  int wrong = 0;
  for (int p = 0; p < 3; p++) {
    if (p > 0 && places[p] == places[p - 1]) continue;
    struct call call = aligned_call(kind, rows, n);
    call.probe = places[p];
    struct setup s;
    make(&s, &call);
    run(&s, DISPATCH);
    wrong += !setup_same_row(alone, 0, &s, places[p], "dispatch");
    setup_free(&s);
  }
  return wrong;
}

static void test_rows(void **state) {
  const struct kind *const kind = *state;
  if (filtered(kind)) skip();
  static const int64_t some[] = {7, 512, 1000, 4096};
  int wrong = 0;
  for (size_t l = 0; l < sizeof some / sizeof *some; l++) {
    const int64_t n = some[l];
    const struct call one = aligned_call(kind, 1, n);
    struct setup alone;
    make(&alone, &one);
    run(&alone, DISPATCH);
    wrong += setup_check(&alone, "dispatch");
    const int64_t counts[] = {1, 2, 3, 17, 255, 256, 257, 1000, 4096, 9000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
      if (gpu.is_card || counts[c] * n <= 70000) wrong += same_everywhere(kind, &alone, counts[c], n);
    setup_free(&alone);
  }
  if (wrong) fail_msg("%d rows differ", wrong);
}

/* A row that shares its conditioning with neighbours, wherever it stands among them, and with none. */
static void test_rows_per_cond(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t k = 0; k < kind_count; k++) {
    if (!op_has(kinds[k].op, ROWS_SCALE)) continue;
    static const int64_t some[] = {7, 1000, 4096};
    for (size_t l = 0; l < sizeof some / sizeof *some; l++) {
      const struct call one = aligned_call(&kinds[k], 1, some[l]);
      struct setup alone;
      make(&alone, &one);
      run(&alone, DISPATCH);
      static const int64_t shared_by[] = {2, 3, 8, 100}, places[] = {0, 4, 7, 16};
      for (size_t i = 0; i < 4; i++)
        for (size_t p = 0; p < 4; p++) {
          struct call call = aligned_call(&kinds[k], 17, some[l]);
          call.probe = places[p], call.rows_per_cond = shared_by[i];
          struct setup s;
          make(&s, &call);
          run(&s, DISPATCH);
          wrong += !setup_same_row(&alone, 0, &s, places[p], "dispatch");
          setup_free(&s);
        }
      setup_free(&alone);
    }
  }
  if (wrong) fail_msg("%d rows differ", wrong);
}

/* The named case: one row of 4096 bf16 numbers among 1, 2, 255, 256, 257, 4096 rows. */
static void test_4096(void **state) {
  const struct kind *const kind = *state;
  const struct call one = aligned_call(kind, 1, 4096);
  struct setup alone;
  make(&alone, &one);
  run(&alone, DISPATCH);
  static const int64_t counts[] = {1, 2, 255, 256, 257, 4096};
  int wrong = 0;
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
    if (gpu.is_card || counts[c] < 4096) wrong += same_everywhere(kind, &alone, counts[c], 4096);
  setup_free(&alone);
  if (wrong) fail_msg("%d rows differ", wrong);
}

/* Runs again with the same arguments: nothing may differ. */
static void test_again(void **state) {
  (void)state;
  for (size_t k = 0; k < kind_count; k++) {
    static const int64_t some[] = {96, 4096, 8192, 65536};
    for (size_t l = 0; l < sizeof some / sizeof *some; l++) {
      const struct call call = aligned_call(&kinds[k], gpu.is_card ? 300 : 2, some[l]);
      struct setup s;
      make(&s, &call);
      run(&s, DISPATCH);
      const uint64_t digest = setup_digest(&s);
      for (int again = 0; again < (gpu.is_card ? 20 : 2); again++) {
        run(&s, DISPATCH);
        assert_true(setup_digest(&s) == digest);
      }
      setup_free(&s);
    }
  }
}

/* A device with other multiprocessors: grids that are limited have another size. */
static void test_multiprocessors(void **state) {
  (void)state;
  if (gpu.is_card) skip(); /* it has as many as it has */
  for (size_t k = 0; k < kind_count; k++) {
    static const int64_t some[] = {1000, 4096, 65536};
    for (size_t l = 0; l < sizeof some / sizeof *some; l++) {
      const struct call call = aligned_call(&kinds[k], some[l] > 10000 ? 3 : 20, some[l]);
      uint64_t digest = 0;
      static const int counts[] = {4, 1, 3, 132};
      for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        device_multiprocessors(counts[c]);
        struct gpu other;
        char why[256];
        if (gpu_open(&other, GPU_SOFT, why, sizeof why)) fail_msg("%s", why);
        struct setup s;
        if (setup_make(&s, &other, &call)) fail_msg("no room");
        run(&s, DISPATCH);
        if (c == 0) digest = setup_digest(&s);
        assert_true(setup_digest(&s) == digest);
        setup_free(&s);
        gpu_close(&other);
      }
    }
  }
  device_multiprocessors(4);
}

/* --part deals tests by kinds, then the tests that go through all of them. */
static int in_part(size_t card) { return card % (size_t)options.parts == (size_t)options.part - 1; }

int main(int argc, char **argv) {
  static const struct kind named = {NST_OP_RMS_NORM_FWD, NST_DTYPE_BF16, NST_DTYPE_BF16};
  static const struct CMUnitTest last[] = {cmocka_unit_test_prestate(test_4096, (void *)&named),
                                           cmocka_unit_test(test_rows_per_cond), cmocka_unit_test(test_again),
                                           cmocka_unit_test(test_multiprocessors)};
  enum { LAST = sizeof last / sizeof *last };
  static struct CMUnitTest tests[2 * MOST_KINDS + LAST];
  static char names[2 * MOST_KINDS][64];
  size_t count = 0;
  options = options_read(argc, argv);
  find_kinds();
  for (size_t k = 0; k < kind_count; k++) {
    if (!in_part(k)) continue;
    const char *const op = op_name(kinds[k].op), *const types = types_name(kinds[k].dtype, kinds[k].weight_dtype);
    snprintf(names[2 * k], sizeof names[0], "%s %s, all kernels", op, types);
    snprintf(names[2 * k + 1], sizeof names[0], "%s %s, numbers of rows", op, types);
    tests[count++] = (struct CMUnitTest){names[2 * k], test_kernels, NULL, NULL, &kinds[k]};
    tests[count++] = (struct CMUnitTest){names[2 * k + 1], test_rows, NULL, NULL, &kinds[k]};
  }
  for (size_t i = 0; i < LAST; i++)
    if (in_part(kind_count + i)) tests[count++] = last[i];
  device_open(&gpu, options.device);
  const int failed = _cmocka_run_group_tests("invariance", tests, count, NULL, NULL);
  gpu_close(&gpu);
  return failed;
}
