/* Reading workloads, and the bytes that they move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"
#include "workload.h"

static const char *file; /* one for all tests */

/* A file with one workload of these members after "id". */
static int load(const char *members, struct workload_list *list, struct problem *p) {
  FILE *to = fopen(file, "w");
  assert_non_null(to);
  fprintf(to, "{\"workloads\": [{\"id\": \"a\", %s}]}\n", members);
  assert_int_equal(fclose(to), 0);
  const int failed = workloads_load(file, NULL, list, p);
  remove(file);
  return failed;
}

static void refused(const char *members, const char *words) {
  struct workload_list list;
  struct problem p = {""};
  assert_int_equal(load(members, &list, &p), -1);
  if (!strstr(p.text, words)) fail_msg("the sentence is \"%s\", expected \"%s\" in it", p.text, words);
  assert_null(list.items);
}

#define X "\"x\": {\"shape\": [2, 3, 8], \"dtype\": \"bf16\"}"
#define RMS "\"op\": \"RMSNormFwd\", "
#define FUSED "\"op\": \"FusedAddRMSNormFwd\", "
#define LAYER "\"op\": \"LayerNormFwd\", "
#define ADA "\"op\": \"AdaLayerNormZeroFwd\", "

static void test_all_members(void **state) {
  (void)state;
  struct workload_list list;
  struct problem p = {""};
  assert_int_equal(
      load(RMS "\"tensors\": {" X ", \"weight\": {\"shape\": [8], \"dtype\": \"f32\"}}, \"params\": {\"eps\": "
               "0.5}, \"published\": {\"time_us\": 2.5, \"alternatives_us\": {\"slow\": 9, \"fast\": 3, "
               "\"other\": 4.0}}",
           &list, &p),
      0);
  assert_int_equal(list.count, 1);
  const struct workload *w = list.items;
  assert_string_equal(w->id, "a");
  assert_int_equal(w->op, NST_OP_RMS_NORM_FWD);
  assert_int_equal(w->dtype, NST_DTYPE_BF16);
  assert_int_equal(w->weight_dtype, NST_DTYPE_F32);
  assert_true(w->has[ROWS_X] && w->has[ROWS_WEIGHT] && w->has[ROWS_Y]);
  assert_false(w->has[ROWS_BIAS] || w->has[ROWS_RESIDUAL_OUT] || w->has[ROWS_RSTD]);
  assert_int_equal(w->rows, 6);
  assert_int_equal(w->n, 8);
  assert_true(w->eps == 0.5f && w->published_us == 2.5);
  assert_string_equal(w->alternative, "fast");
  assert_true(w->alternative_us == 3);
  workloads_free(&list);
}

static void test_defaults(void **state) {
  (void)state;
  struct workload_list list;
  struct problem p = {""};
  assert_int_equal(load(RMS "\"tensors\": {" X "}", &list, &p), 0);
  const struct workload *w = list.items;
  assert_false(w->has[ROWS_WEIGHT]);
  assert_int_equal(w->weight_dtype, NST_DTYPE_BF16);
  assert_true(w->eps == 1e-6f && w->published_us == 0);
  assert_string_equal(w->alternative, "");
  workloads_free(&list);
}

static void test_layer_norms(void **state) {
  (void)state;
  struct workload_list list;
  struct problem p = {""};
  assert_int_equal(load(LAYER "\"tensors\": {" X ", \"bias\": {\"shape\": [8], \"dtype\": \"f32\"}}, \"params\": null",
                        &list, &p),
                   0);
  assert_int_equal(list.items->op, NST_OP_LAYER_NORM_FWD);
  assert_true(list.items->has[ROWS_BIAS] && !list.items->has[ROWS_WEIGHT] && list.items->eps == 1e-5f);
  assert_int_equal(list.items->weight_dtype, NST_DTYPE_F32);
  workloads_free(&list);
  /* x [2, 3, 8] with a row of conditioning for each 3 rows. */
  assert_int_equal(load(ADA "\"tensors\": {" X ", \"scale\": {\"shape\": [2, 1, 8], \"dtype\": \"bf16\"}, \"gate\": "
                            "{\"shape\": [2, 8], \"dtype\": \"bf16\"}}, \"params\": {\"eps\": 1e-6}",
                        &list, &p),
                   0);
  const struct workload *w = list.items;
  assert_true(w->has[ROWS_SCALE] && w->has[ROWS_GATE] && !w->has[ROWS_SHIFT] && !w->has[ROWS_WEIGHT]);
  assert_true(w->rows == 6 && w->rows_per_cond == 3 && w->eps == 1e-6f);
  assert_int_equal(workload_bytes(w), (2 * 6 + 2 * 2) * 8 * 2);
  workloads_free(&list);
}

static void test_operations_without_kernels_are_counted(void **state) {
  (void)state;
  struct workload_list list;
  struct problem p = {""};
  assert_int_equal(load("\"op\": \"SomeOtherNorm\", \"tensors\": {" X "}", &list, &p), 0);
  assert_int_equal(list.count, 0);
  assert_int_equal(list.left_out, 1);
  workloads_free(&list);
}

static void test_bad_workloads(void **state) {
  (void)state;
  refused("\"tensors\": {}", "\"op\" is missing");
  refused(RMS "\"tensors\": {}", "tensors.x is missing");
  refused(RMS "\"tensors\": {\"x\": {\"shape\": [], \"dtype\": \"f16\"}}", "tensors.x.shape is missing or empty");
  refused(RMS "\"tensors\": {\"x\": {\"shape\": [4, 0], \"dtype\": \"f16\"}}", "tensors.x.shape[1]");
  refused(RMS "\"tensors\": {\"x\": {\"shape\": [4, 2.5], \"dtype\": \"f16\"}}", "tensors.x.shape[1]");
  refused(RMS "\"tensors\": {\"x\": {\"shape\": [65536, 65536, 2], \"dtype\": \"f16\"}}", "more than 2147483647 rows");
  refused(RMS "\"tensors\": {\"x\": {\"shape\": [4, 4], \"dtype\": \"f64\"}}", "tensors.x.dtype is f64");
  refused(RMS "\"tensors\": {\"x\": {\"shape\": [4, 4]}}", "tensors.x.dtype is missing");
  refused(RMS "\"tensors\": {" X ", \"weight\": {\"shape\": [9], \"dtype\": \"bf16\"}}", "tensors.weight has 1 x 9");
  refused(RMS "\"tensors\": {" X ", \"bias\": {\"shape\": [8], \"dtype\": \"bf16\"}}",
          "tensors.bias is not an input of rms_norm_fwd");
  refused(RMS "\"tensors\": {" X ", \"y\": {\"shape\": [6, 8], \"dtype\": \"bf16\"}}", "tensors.y is not an input");
  refused(RMS "\"tensors\": {" X ", \"colour\": {\"shape\": [8], \"dtype\": \"bf16\"}}",
          "tensors.colour is not an input");
  refused(RMS "\"tensors\": {" X ", \"residual\": {\"shape\": [6, 8], \"dtype\": \"bf16\"}}",
          "tensors.residual is not");
  refused(FUSED "\"tensors\": {" X "}", "tensors.residual is missing");
  refused(FUSED "\"tensors\": {" X ", \"residual\": {\"shape\": [6, 8], \"dtype\": \"f16\"}}",
          "tensors.residual differs");
  refused(FUSED "\"tensors\": {" X ", \"residual\": {\"shape\": [5, 8], \"dtype\": \"bf16\"}}",
          "tensors.residual differs");
  refused(LAYER "\"tensors\": {" X ", \"weight\": {\"shape\": [8], \"dtype\": \"f16\"}}",
          "tensors.weight.dtype is f16");
  refused(LAYER "\"tensors\": {" X
                ", \"weight\": {\"shape\": [8], \"dtype\": \"f32\"}, \"bias\": {\"shape\": [8], "
                "\"dtype\": \"bf16\"}}",
          "tensors.bias.dtype is bf16, expected");
  refused(LAYER "\"tensors\": {" X ", \"bias\": {\"shape\": [2, 8], \"dtype\": \"bf16\"}}", "tensors.bias has 2 x 8");
  refused(LAYER "\"tensors\": {" X ", \"scale\": {\"shape\": [8], \"dtype\": \"bf16\"}}",
          "tensors.scale is not an input");
  refused(ADA "\"tensors\": {" X ", \"weight\": {\"shape\": [8], \"dtype\": \"bf16\"}}",
          "tensors.weight is not an input");
  refused(ADA "\"tensors\": {" X ", \"scale\": {\"shape\": [6, 9], \"dtype\": \"bf16\"}}", "tensors.scale has 6 x 9");
  refused(ADA "\"tensors\": {" X ", \"scale\": {\"shape\": [6, 8], \"dtype\": \"f32\"}}", "tensors.scale differs");
  refused(ADA "\"tensors\": {" X ", \"gate\": {\"shape\": [4, 8], \"dtype\": \"bf16\"}}",
          "tensors.gate has 4 rows, which can't be shared evenly by the 6 of x");
  refused(ADA "\"tensors\": {" X ", \"gate\": {\"shape\": [7, 8], \"dtype\": \"bf16\"}}", "tensors.gate has 7 rows");
  refused(ADA "\"tensors\": {" X
              ", \"scale\": {\"shape\": [2, 8], \"dtype\": \"bf16\"}, \"shift\": {\"shape\": [6, 8], "
              "\"dtype\": \"bf16\"}}",
          "tensors.shift has 6 rows, expected 2 as the conditioning before it");
  refused(RMS "\"tensors\": {" X "}, \"params\": {\"eps\": -1}", "params.eps");
  refused(RMS "\"tensors\": {" X "}, \"params\": {\"momentum\": 1}", "params.momentum is not a parameter");
}

static void test_bad_files(void **state) {
  (void)state;
  struct workload_list list;
  struct problem p = {""};
  assert_int_equal(workloads_load("no-such-file.json", NULL, &list, &p), -1);
  assert_non_null(strstr(p.text, "no-such-file.json: can't be read"));
  assert_int_equal(load("", &list, &p), -1);
  assert_non_null(strstr(p.text, "line 1"));
  FILE *to = fopen(file, "w");
  assert_non_null(to);
  fputs("{\"workload\": []}", to);
  fclose(to);
  assert_int_equal(workloads_load(file, NULL, &list, &p), -1);
  assert_non_null(strstr(p.text, "has no list \"workloads\""));
  remove(file);
}

static struct workload of(nst_op op, int64_t rows, int64_t n) {
  struct workload w;
  workload_init(&w, op);
  w.dtype = NST_DTYPE_BF16, w.weight_dtype = NST_DTYPE_F32;
  w.rows = rows, w.n = n;
  return w;
}

static void test_bytes(void **state) {
  (void)state;
  struct workload w = of(NST_OP_RMS_NORM_FWD, 10, 64);
  assert_int_equal(workload_bytes(&w), 2 * 10 * 64 * 2 + 64 * 4);
  w = of(NST_OP_FUSED_ADD_RMS_NORM_FWD, 10, 64);
  assert_int_equal(workload_bytes(&w), 4 * 10 * 64 * 2 + 64 * 4);
  w.has[ROWS_WEIGHT] = 0;
  w.x_stride = 100; /* gaps are not moved */
  assert_int_equal(workload_bytes(&w), 4 * 10 * 64 * 2);
  const struct matrix x = workload_matrix(&w, ROWS_X), y = workload_matrix(&w, ROWS_Y);
  assert_int_equal(matrix_extent(&x), (9 * 100 + 64) * 2);
  assert_int_equal(matrix_extent(&y), 10 * 64 * 2);
  w.rows = 8192, w.n = 262144, w.x_stride = 0; /* beyond 2^31 */
  assert_int_equal(workload_bytes(&w), (int64_t)4 * 8192 * 262144 * 2);
  w.rows = 0;
  assert_int_equal(workload_bytes(&w), 0);

  w = of(NST_OP_LAYER_NORM_FWD, 10, 64);
  assert_int_equal(workload_bytes(&w), 2 * 10 * 64 * 2 + 2 * 64 * 4);
  w = of(NST_OP_FUSED_ADD_LAYER_NORM_FWD, 10, 64);
  assert_int_equal(workload_bytes(&w), 4 * 10 * 64 * 2 + 2 * 64 * 4);
  w = of(NST_OP_ADA_LAYER_NORM_FWD, 10, 64);
  assert_int_equal(workload_bytes(&w), 4 * 10 * 64 * 2);
  w = of(NST_OP_ADA_LAYER_NORM_ZERO_FWD, 10, 64);
  assert_int_equal(workload_bytes(&w), 5 * 10 * 64 * 2);
  w.rows_per_cond = 4;
  assert_int_equal(workload_bytes(&w), (2 * 10 + 3 * 3) * 64 * 2);
  w.has[ROWS_SHIFT] = 0;
  assert_int_equal(workload_bytes(&w), (2 * 10 + 2 * 3) * 64 * 2);
}

/* The file that the bench runs: run where the repository's root is the current folder. */
static void test_kept_file(void **state) {
  (void)state;
  struct workload_list list;
  struct problem p = {""};
  if (workloads_load("perf/workloads.json", NULL, &list, &p)) fail_msg("%s", p.text);
  const size_t expected[ROWS_OPS] = {34, 10, 11, 7, 6, 6};
  size_t found[ROWS_OPS] = {0};
  assert_int_equal(list.count, 74);
  assert_int_equal(list.left_out, 112 - 74);
  for (size_t i = 0; i < list.count; i++) {
    const struct workload *w = &list.items[i];
    found[w->op]++;
    assert_true(w->published_us > 0 && w->alternative[0] && w->rows_per_cond == 1);
    assert_true(w->eps == op_eps(w->op));
  }
  assert_memory_equal(found, expected, sizeof found);
  workloads_free(&list);
  if (workloads_load("perf/workloads.json", "qk-norm", &list, &p)) fail_msg("%s", p.text);
  assert_int_equal(list.count, 2);
  assert_int_equal(list.items[1].rows, 4 * 2048);
  assert_int_equal(list.left_out, 0);
  workloads_free(&list);
}

int main(void) {
  file = scratch("test_workload.json");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_members),   cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_layer_norms),   cmocka_unit_test(test_operations_without_kernels_are_counted),
      cmocka_unit_test(test_bad_workloads), cmocka_unit_test(test_bad_files),
      cmocka_unit_test(test_bytes),         cmocka_unit_test(test_kept_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
