/*
 * Whether the tests can fail: the conversions, the limits and the harness find every error that is planted here. Needs
 * a device only to have right results to spoil.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "half.h"
#include "harness.h"
#include "oracle.h"

static struct gpu gpu;

/* ---- half.h --------------------------------------------------------------------------------------------------- */

/* Every number of a 16-bit type comes back from double; the middle of each two neighbours goes to the even one, and
 * what is a little below or above it to the nearer one. */
static void conversions(nst_dtype dtype, uint16_t largest) {
  const struct half_format f = half_format_of(dtype);
  for (uint32_t bits = 0; bits <= 0xffff; bits++) {
    const double v = half_decode(f, (uint16_t)bits);
    const uint32_t magnitude = bits & 0x7fff;
    if (magnitude > (uint32_t)largest + 1) {
      assert_true(isnan(v));
      assert_true(isnan(half_decode(f, half_encode(f, v))));
      continue;
    }
    assert_int_equal(half_encode(f, v), bits);
    if (magnitude > largest) {
      assert_true(isinf(v));
      continue;
    }
    /* The neighbour away from zero; above the largest number, the power of two that infinity stands for. */
    const double next = half_clamp(dtype, half_decode(f, (uint16_t)(bits + 1)));
    const double middle = (v + next) / 2;
    assert_int_equal(half_encode(f, middle), bits + (bits & 1));
    assert_int_equal(half_encode(f, nextafter(middle, v)), bits);
    assert_int_equal(half_encode(f, nextafter(middle, next)), bits + 1);
    assert_true(half_ulp(dtype, v) == fabs(next - v));
    assert_true(half_distance(dtype, v, next) == 1 || half_distance(dtype, v, next) == 0.5);
  }
}

static void test_f16(void **state) {
  (void)state;
  conversions(NST_DTYPE_F16, 0x7bff);
  assert_true(half_f16_to(0x3c00) == 1 && half_f16_to(0x7bff) == 65504 && half_f16_to(0x0001) == 0x1p-24);
}

static void test_bf16(void **state) {
  (void)state;
  conversions(NST_DTYPE_BF16, 0x7f7f);
  assert_true(half_bf16_to(0x3f80) == 1 && half_bf16_to(0xc040) == -3 && half_bf16_to(0x0001) == 0x1p-133);
}

static void test_distance(void **state) {
  (void)state;
  assert_true(half_distance(NST_DTYPE_F32, 1 + 0x1p-23, 1) == 1);
  assert_true(half_distance(NST_DTYPE_BF16, 1, 1 + 0x1p-8) == 0.5);
  assert_true(half_distance(NST_DTYPE_F16, INFINITY, 65504) == 1);
  assert_true(half_distance(NST_DTYPE_F16, INFINITY, 1e30) == 0);
  assert_true(half_distance(NST_DTYPE_F16, NAN, NAN) == 0);
  assert_true(isinf(half_distance(NST_DTYPE_F16, 0, NAN)) && isinf(half_distance(NST_DTYPE_F16, NAN, 0)));
}

/* ---- oracle.h ------------------------------------------------------------------------------------------------- */

static struct oracle_tensor f32(const float *row) { return (struct oracle_tensor){row, NST_DTYPE_F32, 2}; }

/* Numbers worked out by hand: x = 3, 4 with eps 0 has the mean square 12.5. */
static void test_reference(void **state) {
  (void)state;
  const float x[2] = {1, 5}, residual[2] = {2, -1}, weight[2] = {0.5f, 2};
  struct oracle_rows in = {.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .n = 2, .x = f32(x), .residual = f32(residual)};
  struct oracle_row stats = oracle_row_of(&in, 0);
  assert_true(fabs(stats.rstd - 0.28284271247461901) < 1e-15 && stats.mean == 0);
  assert_true(stats.rstd_limit > 1e-8 && stats.rstd_limit < 3e-7);
  struct oracle_element e = oracle_element_of(&in, &stats, 0, 1);
  assert_true(e.sum == 4 && fabs(e.y - 1.1313708498984760) < 1e-15);
  in.weight = f32(weight);
  in.weight_offset = 1;
  e = oracle_element_of(&in, &stats, 0, 1);
  assert_true(fabs(e.y - 3 * 1.1313708498984760) < 1e-14);
  in.eps = 3.5f;
  stats = oracle_row_of(&in, 0);
  assert_true(stats.rstd == 0.25);
}

/* x = 3, 7 has the mean 5 and the variance 4: q = -1, 1. */
static void test_reference_centred(void **state) {
  (void)state;
  const float x[2] = {1, 8}, residual[2] = {2, -1}, a[2] = {0.5f, 2}, b[2] = {10, 20};
  struct oracle_rows in = {.op = NST_OP_FUSED_ADD_LAYER_NORM_FWD, .n = 2, .x = f32(x), .residual = f32(residual)};
  struct oracle_row stats = oracle_row_of(&in, 0);
  assert_true(stats.mean == 5 && stats.rstd == 0.5);
  assert_true(stats.mean_limit > 1e-7 && stats.mean_limit < 3e-6 && stats.rstd_limit > 1e-8 && stats.rstd_limit < 1e-6);
  assert_true(oracle_element_of(&in, &stats, 0, 0).y == -1);
  in.weight = f32(a);
  assert_true(oracle_element_of(&in, &stats, 0, 0).y == -0.5 && oracle_element_of(&in, &stats, 0, 1).y == 2);
  in.bias = f32(b);
  assert_true(oracle_element_of(&in, &stats, 0, 0).y == 9.5 && oracle_element_of(&in, &stats, 0, 1).y == 22);
  in.weight.data = NULL;
  assert_true(oracle_element_of(&in, &stats, 0, 1).y == 21);
  in.eps = 12;
  assert_true(oracle_row_of(&in, 0).rstd == 0.25);
}

/* Conditioning: rows 2 and 3 of four have its second row. */
static void test_reference_conditioned(void **state) {
  (void)state;
  const float x[8] = {0, 0, 0, 0, 0, 0, 3, 7}, scale[4] = {7, 7, 0.5f, 2}, shift[4] = {7, 7, 10, 20};
  const float gate[4] = {7, 7, -2, 3};
  struct oracle_rows in = {.op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .n = 2, .x = f32(x), .rows_per_cond = 2};
  const struct oracle_row stats = oracle_row_of(&in, 3);
  assert_true(oracle_element_of(&in, &stats, 3, 0).y == -1);
  in.scale = f32(scale);
  assert_true(oracle_element_of(&in, &stats, 3, 0).y == -1.5 && oracle_element_of(&in, &stats, 3, 1).y == 3);
  in.shift = f32(shift);
  assert_true(oracle_element_of(&in, &stats, 3, 0).y == 8.5 && oracle_element_of(&in, &stats, 3, 1).y == 23);
  in.gate = f32(gate);
  assert_true(oracle_element_of(&in, &stats, 3, 0).y == -17 && oracle_element_of(&in, &stats, 3, 1).y == 69);
}

/* The rounding flags: 1 + 2^-8 is halfway between two bf16 numbers and goes to 1. */
static void test_reference_rounding(void **state) {
  (void)state;
  uint16_t x[1] = {half_bf16_from(1)}, residual[1] = {half_bf16_from(0x1p-8)}, weight[1] = {half_bf16_from(3)};
  struct oracle_rows in = {.op = NST_OP_FUSED_ADD_RMS_NORM_FWD, .n = 1, .x = {x, NST_DTYPE_BF16, 1},
                           .residual = {residual, NST_DTYPE_BF16, 1}};
  struct oracle_row stats = oracle_row_of(&in, 0);
  assert_true(oracle_element_of(&in, &stats, 0, 0).sum == 1 + 0x1p-8);
  assert_true(stats.rstd == 1 / (1 + 0x1p-8));
  in.flags = NST_FLAG_ROUND_RESIDUAL;
  stats = oracle_row_of(&in, 0);
  assert_true(stats.rstd == 1 && oracle_element_of(&in, &stats, 0, 0).sum == 1 + 0x1p-8);

  /* q = 1 / sqrt(1 + 1/64) = 0.99228 lies between the bf16 numbers 0.98828125 and 0.9921875. */
  in = (struct oracle_rows){.n = 1, .x = {x, NST_DTYPE_BF16, 1}, .weight = {weight, NST_DTYPE_BF16, 1}, .eps = 0x1p-6f};
  stats = oracle_row_of(&in, 0);
  assert_true(fabs(oracle_element_of(&in, &stats, 0, 0).y - 3 * 0.99227787671366763) < 1e-14);
  in.flags = NST_FLAG_ROUND_BEFORE_WEIGHT;
  assert_true(oracle_element_of(&in, &stats, 0, 0).y == 3 * 0.9921875);
}

/* ---- The harness ---------------------------------------------------------------------------------------------- */

#define FUSED NST_OP_FUSED_ADD_RMS_NORM_FWD
#define LAYER NST_OP_LAYER_NORM_FWD
#define FUSED_LAYER NST_OP_FUSED_ADD_LAYER_NORM_FWD
#define ADA_ZERO NST_OP_ADA_LAYER_NORM_ZERO_FWD
#define ROWS 3
#define N 40

static struct call good_call(nst_op op, nst_dtype dtype) {
  struct call call = call_of(op, dtype, dtype, ROWS, N);
  for (int t = 0; t < ROWS_TENSORS; t++) {
    const enum rows_shape shape = rows_tensor_shape((enum rows_tensor)t);
    if (shape == SHAPE_DATA || shape == SHAPE_COND) call.at[t].stride = N + 16;
  }
  return call;
}

/* Changes bytes of what a tensor holds after a call. */
typedef void damage(struct setup *s);

static char *result(struct setup *s, int which, int64_t row, int64_t i) {
  return s->at[which]->got + ((char *)setup_given(s, which, row, i) - s->at[which]->given);
}

/* Moves a 16-bit element of y by so many units in the last place away from zero. */
static void move_y(struct setup *s, int by) {
  uint16_t bits;
  memcpy(&bits, result(s, ROWS_Y, 1, 7), sizeof bits);
  bits = (uint16_t)(bits + by);
  memcpy(result(s, ROWS_Y, 1, 7), &bits, sizeof bits);
}

static void two_ulps(struct setup *s) { move_y(s, 2); }
static void one_ulp_residual(struct setup *s) { *result(s, ROWS_RESIDUAL_OUT, 2, N - 1) ^= 1; }
static void wrong_rstd(struct setup *s) { result(s, ROWS_RSTD, 0, ROWS - 1)[1] ^= 1; }
static void wrong_mean(struct setup *s) { result(s, ROWS_MEAN, 0, 1)[2] ^= 4; }
static void not_a_number(struct setup *s) {
  memcpy(result(s, ROWS_Y, 0, 0), "\xff\x7f\xff\x7f", half_size(s->call.dtype));
}
static void not_written(struct setup *s) {
  memcpy(result(s, ROWS_Y, 2, 3), setup_given(s, ROWS_Y, 2, 3), half_size(s->call.dtype));
}
static void after_a_row(struct setup *s) { *result(s, ROWS_Y, 0, N) ^= 1; }
static void before_the_first(struct setup *s) { result(s, ROWS_RESIDUAL_OUT, 0, 0)[-1] ^= 1; }
static void before_rstd(struct setup *s) { s->at[ROWS_RSTD]->got[0] ^= 1; }
static void into_x(struct setup *s) { *result(s, ROWS_X, 1, 1) ^= 1; }
static void into_weight(struct setup *s) { *result(s, ROWS_WEIGHT, 0, N - 1) ^= 1; }
#ifndef __SANITIZE_ADDRESS__ /* with it a host copy, too, ends where the tensor does */
static void after_mean(struct setup *s) { *result(s, ROWS_MEAN, 0, ROWS) ^= 1; }
#endif
static void into_gate(struct setup *s) { *result(s, ROWS_GATE, 1, 1) ^= 1; }

static void expect_found(nst_op op, nst_dtype dtype, damage *spoil) {
  const struct call call = good_call(op, dtype);
  struct setup s;
  assert_int_equal(setup_make(&s, &gpu, &call), 0);
  assert_int_equal(setup_run(&s, DISPATCH, 0), NST_OK);
  assert_int_equal(setup_check(&s, "planted nothing"), 0);
  spoil(&s);
  fprintf(stderr, "expected: ");
  assert_int_not_equal(setup_check(&s, "planted"), 0);
  setup_free(&s);
}

static void test_planted_values(void **state) {
  (void)state;
  expect_found(FUSED, NST_DTYPE_F16, two_ulps);
  expect_found(FUSED, NST_DTYPE_BF16, two_ulps);
  expect_found(FUSED, NST_DTYPE_BF16, one_ulp_residual);
  expect_found(FUSED, NST_DTYPE_F32, one_ulp_residual);
  expect_found(FUSED, NST_DTYPE_F16, wrong_rstd);
  expect_found(FUSED, NST_DTYPE_F16, not_a_number);
  expect_found(FUSED, NST_DTYPE_F32, not_a_number);
  expect_found(LAYER, NST_DTYPE_F32, wrong_mean);
  expect_found(LAYER, NST_DTYPE_F16, wrong_mean);
  expect_found(LAYER, NST_DTYPE_F16, wrong_rstd);
  expect_found(LAYER, NST_DTYPE_BF16, two_ulps);
  expect_found(ADA_ZERO, NST_DTYPE_F16, two_ulps);
}

static void test_planted_writes(void **state) {
  (void)state;
  expect_found(FUSED, NST_DTYPE_F16, not_written);
  expect_found(FUSED, NST_DTYPE_F16, after_a_row);
  expect_found(FUSED, NST_DTYPE_BF16, before_the_first);
  expect_found(FUSED, NST_DTYPE_F32, before_rstd);
  expect_found(FUSED, NST_DTYPE_F16, into_x);
  expect_found(FUSED, NST_DTYPE_F16, into_weight);
  expect_found(LAYER, NST_DTYPE_F32, not_written);
#ifndef __SANITIZE_ADDRESS__
  expect_found(LAYER, NST_DTYPE_BF16, after_mean);
#endif
  expect_found(ADA_ZERO, NST_DTYPE_BF16, into_gate);
}

/* A kernel that ignored a rounding flag, an offset or eps would be found: the result of the call without it does not
 * pass for the call with it. */
static void expect_different(struct call call, const char *what, uint32_t flags, float weight_offset, float eps) {
  struct setup s;
  assert_int_equal(setup_make(&s, &gpu, &call), 0);
  assert_int_equal(setup_run(&s, DISPATCH, 0), NST_OK);
  assert_int_equal(setup_check(&s, what), 0);
  s.call.flags = flags, s.call.weight_offset = weight_offset, s.call.eps = eps;
  fprintf(stderr, "expected: ");
  assert_int_not_equal(setup_check(&s, what), 0);
  setup_free(&s);
}

static void test_ignored_arguments(void **state) {
  (void)state;
  static const nst_dtype types[] = {NST_DTYPE_BF16, NST_DTYPE_F16};
  static const nst_op ops[] = {FUSED, FUSED_LAYER};
  for (int i = 0; i < 4; i++) {
    const struct call call = call_of(ops[i / 2], types[i % 2], types[i % 2], 4, 512);
    expect_different(call, "ROUND_RESIDUAL", NST_FLAG_ROUND_RESIDUAL, 0, call.eps);
    expect_different(call, "ROUND_BEFORE_WEIGHT", NST_FLAG_ROUND_BEFORE_WEIGHT, 0, call.eps);
    expect_different(call, "eps", 0, 0, 1e-2f);
  }
  const struct call call = call_of(FUSED, NST_DTYPE_BF16, NST_DTYPE_BF16, 4, 512);
  expect_different(call, "weight_offset", 0, 0.0625f, call.eps);
}

/* So would one that took no notice of a tensor, or of rows_per_cond. */
static void test_ignored_tensors(void **state) {
  (void)state;
  for (int op = 0; op < ROWS_OPS; op++)
    for (int t = ROWS_WEIGHT; t < ROWS_INPUTS; t++) {
      if (!op_has((nst_op)op, (enum rows_tensor)t)) continue;
      struct call call = good_call((nst_op)op, NST_DTYPE_BF16);
      call.at[t].kind = ABSENT;
      struct setup without, with;
      assert_int_equal(setup_make(&without, &gpu, &call), 0);
      call.at[t].kind = OWN;
      assert_int_equal(setup_make(&with, &gpu, &call), 0);
      assert_int_equal(setup_run(&without, DISPATCH, 0), NST_OK);
      assert_int_equal(setup_run(&with, DISPATCH, 0), NST_OK);
      assert_int_equal(setup_check(&with, rows_tensor_name((enum rows_tensor)t)), 0);
      memcpy(with.own[ROWS_Y].got, without.own[ROWS_Y].got, with.own[ROWS_Y].bytes);
      fprintf(stderr, "expected: ");
      assert_int_not_equal(setup_check(&with, rows_tensor_name((enum rows_tensor)t)), 0);
      setup_free(&without);
      setup_free(&with);
    }
  struct call call = good_call(ADA_ZERO, NST_DTYPE_F32);
  call.rows_per_cond = 2;
  struct setup s;
  assert_int_equal(setup_make(&s, &gpu, &call), 0);
  assert_int_equal(setup_run(&s, DISPATCH, 0), NST_OK);
  assert_int_equal(setup_check(&s, "rows_per_cond 2"), 0);
  s.call.rows_per_cond = 3;
  fprintf(stderr, "expected: ");
  assert_int_not_equal(setup_check(&s, "rows_per_cond 3"), 0);
  setup_free(&s);
}

/* The comparison of rows bit by bit finds one bit. */
static void test_same_row(void **state) {
  (void)state;
  const struct call call = good_call(FUSED_LAYER, NST_DTYPE_F16);
  struct setup a, b;
  assert_int_equal(setup_make(&a, &gpu, &call), 0);
  assert_int_equal(setup_make(&b, &gpu, &call), 0);
  assert_int_equal(setup_run(&a, DISPATCH, 0), NST_OK);
  assert_int_equal(setup_run(&b, DISPATCH, 0), NST_OK);
  assert_true(setup_digest(&a) == setup_digest(&b));
  for (int row = 0; row < ROWS; row++) assert_true(setup_same_row(&a, row, &b, row, "planted nothing"));
  fprintf(stderr, "expected: ");
  assert_false(setup_same_row(&a, 0, &b, 1, "another row"));
  *result(&b, ROWS_Y, 1, N - 1) ^= 1;
  assert_true(setup_digest(&a) != setup_digest(&b));
  fprintf(stderr, "expected: ");
  assert_false(setup_same_row(&a, 1, &b, 1, "planted"));
  *result(&b, ROWS_MEAN, 0, 2) ^= 1;
  fprintf(stderr, "expected: ");
  assert_false(setup_same_row(&a, 2, &b, 2, "planted"));
  setup_free(&a);
  setup_free(&b);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_f16),
      cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_distance),
      cmocka_unit_test(test_reference),
      cmocka_unit_test(test_reference_centred),
      cmocka_unit_test(test_reference_conditioned),
      cmocka_unit_test(test_reference_rounding),
      cmocka_unit_test(test_planted_values),
      cmocka_unit_test(test_planted_writes),
      cmocka_unit_test(test_ignored_arguments),
      cmocka_unit_test(test_ignored_tensors),
      cmocka_unit_test(test_same_row),
  };
  const struct options options = options_read(argc, argv);
  device_open(&gpu, options.device);
  const int failed = cmocka_run_group_tests_name("harness", tests, NULL, NULL);
  gpu_close(&gpu);
  return failed;
}
