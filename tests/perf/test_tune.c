/* The tuner: from times to ranges, the shapes it tries, and the file it merges into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "scratch.h"
#include "tune.h"
#include "tune_file.h"

static const int64_t rows[] = {1, 16, 256, 4096, 65536};

static void check_range(const struct tune_range *r, int64_t rows_up_to, size_t candidate, double time_us) {
  assert_int_equal(r->rows_up_to, rows_up_to);
  assert_int_equal(r->candidate, candidate);
  if (r->time_us != time_us) fail_msg("%g us, expected %g", r->time_us, time_us);
}

static void test_one_winner_is_one_range(void **state) {
  (void)state;
  const double times[] = {2, 1, 2, 1, 2, 1};
  struct tune_range ranges[TUNE_RANGES_MAX];
  assert_int_equal(tune_ranges(rows, 3, times, 2, ranges), 1);
  check_range(&ranges[0], 0, 1, 1);
}

static void test_a_border_is_the_geometric_mean(void **state) {
  (void)state;
  const double times[] = {1, 2, 1, 2, 9, 3, 20, 10, 200, 100};
  struct tune_range ranges[TUNE_RANGES_MAX];
  assert_int_equal(tune_ranges(rows, 5, times, 2, ranges), 2);
  check_range(&ranges[0], 64, 0, 1); /* sqrt(16 * 256) */
  check_range(&ranges[1], 0, 1, 100);
}

static void test_noise_opens_no_range(void **state) {
  (void)state;
  const double times[] = {1.000, 1.004, 1.004, 1.000, 1.000, 1.004, 1.000, 1.004, 1.004, 1.000};
  struct tune_range ranges[TUNE_RANGES_MAX];
  assert_int_equal(tune_ranges(rows, 5, times, 2, ranges), 1);
  check_range(&ranges[0], 0, 0, 1.004);
}

/* Two runs on one card, apart by a tick here and there, give the same. */
static void test_a_tick_does_not_decide(void **state) {
  (void)state;
  const double once[] = {1.440, 1.472, 1.600, 1.568, 9.280, 9.600};
  const double again[] = {1.472, 1.440, 1.568, 1.600, 9.312, 9.632};
  struct tune_range ranges[TUNE_RANGES_MAX];
  assert_int_equal(tune_ranges(rows, 3, once, 2, ranges), 1);
  check_range(&ranges[0], 0, 0, 9.280);
  assert_int_equal(tune_ranges(rows, 3, again, 2, ranges), 1);
  check_range(&ranges[0], 0, 0, 9.312);
  const double more[] = {1.440, 1.472, 1.600, 1.560, 1.600, 1.560}; /* 40 ns is more than a tick */
  assert_int_equal(tune_ranges(rows, 3, more, 2, ranges), 1);
  check_range(&ranges[0], 0, 1, 1.560);
}

static void test_at_most_four_ranges(void **state) {
  (void)state;
  /* Five winners; the fourth gains least over its neighbours. */
  const double times[] = {
      1, 9, 9, 9, 9,   /* rows 1 */
      9, 1, 9, 9, 9,   /* rows 16 */
      9, 9, 1, 9, 9,   /* rows 256 */
      9, 9, 9, 1, 1.1, /* rows 4096 */
      9, 9, 9, 9, 1,   /* rows 65536 */
  };
  struct tune_range ranges[TUNE_RANGES_MAX];
  assert_int_equal(tune_ranges(rows, 5, times, 5, ranges), 4);
  check_range(&ranges[0], 4, 0, 1);
  check_range(&ranges[1], 64, 1, 1);
  check_range(&ranges[2], 1024, 2, 1);
  check_range(&ranges[3], 0, 4, 1);
}

static void test_what_was_not_timed_is_not_picked(void **state) {
  (void)state;
  const double times[] = {1, 2, 0, 2}; /* the first candidate refuses 16 rows */
  struct tune_range ranges[TUNE_RANGES_MAX];
  assert_int_equal(tune_ranges(rows, 2, times, 2, ranges), 2);
  check_range(&ranges[0], 4, 0, 1);
  check_range(&ranges[1], 0, 1, 2);
  const double none[] = {0, 0};
  assert_int_equal(tune_ranges(rows, 1, none, 2, ranges), 0);
  assert_int_equal(tune_ranges(rows, 0, none, 2, ranges), 0);
}

static nst_kernel_info cell_of(int64_t bucket, nst_dtype dtype, nst_access access) {
  nst_kernel_info k = NST_KERNEL_INFO_INIT;
  k.op = NST_OP_RMS_NORM_FWD, k.dtype = k.weight_dtype = dtype, k.bucket = bucket, k.access = access;
  return k;
}

static void test_shapes(void **state) {
  (void)state;
  struct workload w;
  nst_kernel_info cell = cell_of(4096, NST_DTYPE_BF16, NST_ACCESS_EXACT);
  tune_shape(&cell, 7, &w);
  assert_true(w.n == 4096 && w.rows == 7 && w.offset == 0 && w.has[ROWS_WEIGHT] && w.eps == 1e-6f);
  cell = cell_of(4096, NST_DTYPE_BF16, NST_ACCESS_MASKED);
  tune_shape(&cell, 7, &w);
  assert_true(w.n == 4088 && w.offset == 0);
  cell = cell_of(4096, NST_DTYPE_F32, NST_ACCESS_MASKED);
  tune_shape(&cell, 7, &w);
  assert_true(w.n == 4092 && w.offset == 0);
  cell = cell_of(4096, NST_DTYPE_F32, NST_ACCESS_UNALIGNED);
  tune_shape(&cell, 7, &w);
  assert_true(w.n == 4095 && w.offset == 1);
  cell.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD;
  tune_shape(&cell, 7, &w);
  assert_true(w.has[ROWS_SCALE] && w.has[ROWS_SHIFT] && w.has[ROWS_GATE] && !w.has[ROWS_WEIGHT]);
  assert_true(w.rows_per_cond == 1 && w.eps == 1e-5f);
}

/* ---- The file ----------------------------------------------------------------------------------------------- */

static const char *path;

static size_t kernel_row(int64_t bucket, nst_strategy strategy) {
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    if (nst_table_row(i, &k) == NST_OK && k.symbol && k.op == NST_OP_RMS_NORM_FWD && k.dtype == NST_DTYPE_BF16 &&
        k.weight_dtype == NST_DTYPE_BF16 && k.bucket == bucket && k.strategy == strategy)
      return i;
  }
  fail_msg("no kernel of bucket %lld and strategy %d", (long long)bucket, (int)strategy);
  return 0;
}

static void test_file_is_merged(void **state) {
  (void)state;
  const struct options o = {.tune = path};
  struct card card = {.driver = "1.2"};
  strcpy(card.gpu.name, "card");
  struct tune_file file;
  struct problem p;
  const struct candidate candidates[] = {{.index = kernel_row(4096, NST_STRATEGY_BLOCK)},
                                         {.index = kernel_row(0, NST_STRATEGY_LOOP)}};
  const struct tune_range first[] = {{64, 0, 2.5}, {0, 1, 9}}, second[] = {{0, 0, 3.25}};
  const nst_kernel_info large = cell_of(4096, NST_DTYPE_BF16, NST_ACCESS_EXACT);
  const nst_kernel_info small = cell_of(64, NST_DTYPE_BF16, NST_ACCESS_EXACT);
  remove(path);
  for (int run = 0; run < 2; run++) { /* the second run replaces one of the first's entries */
    if (tune_file_open(&file, &o, &card, "nst-bench --tune", &p)) fail_msg("%s", p.text);
    assert_int_equal(tune_file_put(&file, &large, candidates, run ? second : first, run ? 1 : 2, &p), 0);
    if (run == 0) assert_int_equal(tune_file_put(&file, &small, candidates, second, 1, &p), 0);
    if (tune_file_write(&file, &p)) fail_msg("%s", p.text);
    tune_file_close(&file);
    json_t *json = json_load_file(path, 0, NULL);
    const json_t *entries = json_object_get(json, "entries"), *entry = json_array_get(entries, 1);
    const json_t *ranges = json_object_get(entry, "ranges"), *range = json_array_get(ranges, 0);
    assert_int_equal(json_array_size(entries), 2);
    assert_string_equal(json_string_value(json_object_get(json, "device")), "card");
    assert_string_equal(json_string_value(json_object_get(json, "driver")), "1.2");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(entries, 0), "bucket")), 64); /* table order */
    assert_int_equal(json_integer_value(json_object_get(entry, "bucket")), 4096);
    assert_string_equal(json_string_value(json_object_get(entry, "types")), "bf16");
    assert_int_equal(json_array_size(ranges), run ? 1 : 2);
    assert_string_equal(json_string_value(json_object_get(range, "strategy")), "block");
    assert_null(json_object_get(range, "bucket")); /* the entry's own */
    if (run == 0) {
      const json_t *last = json_array_get(ranges, 1);
      assert_int_equal(json_integer_value(json_object_get(range, "rows_up_to")), 64);
      assert_true(json_is_null(json_object_get(last, "rows_up_to")));
      assert_string_equal(json_string_value(json_object_get(last, "bucket")), "any");
      assert_string_equal(json_string_value(json_object_get(last, "access")), "masked");
      assert_true(json_real_value(json_object_get(range, "time_us")) == 2.5);
    }
    json_decref(json);
  }
  remove(path);
}

static void test_bad_file(void **state) {
  (void)state;
  const struct options o = {.tune = path};
  struct card card = {0};
  struct tune_file file;
  struct problem p;
  FILE *to = fopen(path, "w");
  assert_non_null(to);
  fputs("{\n\"entries\": 3}", to);
  fclose(to);
  assert_int_equal(tune_file_open(&file, &o, &card, "", &p), -1);
  assert_non_null(strstr(p.text, "has no list \"entries\""));
  to = fopen(path, "w");
  assert_non_null(to);
  fputs("{\n\"entries\": [}", to);
  fclose(to);
  assert_int_equal(tune_file_open(&file, &o, &card, "", &p), -1);
  assert_non_null(strstr(p.text, "line 2: is not JSON"));
  remove(path);
}

int main(void) {
  path = scratch("test_tune.json");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_winner_is_one_range),
      cmocka_unit_test(test_a_border_is_the_geometric_mean),
      cmocka_unit_test(test_noise_opens_no_range),
      cmocka_unit_test(test_a_tick_does_not_decide),
      cmocka_unit_test(test_at_most_four_ranges),
      cmocka_unit_test(test_what_was_not_timed_is_not_picked),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_file_is_merged),
      cmocka_unit_test(test_bad_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
