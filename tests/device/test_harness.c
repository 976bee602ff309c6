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

/* Numbers worked out by hand: x = 3, 4 with eps 0 has the mean square 12.5. */
static void test_reference(void **state) {
  (void)state;
  const float x[2] = {1, 5}, residual[2] = {2, -1}, weight[2] = {0.5f, 2};
  struct oracle_rms in = {.n = 2, .x = {x, NST_DTYPE_F32, 2}, .residual = {residual, NST_DTYPE_F32, 2}};
  struct oracle_rms_row stats = oracle_rms_row(&in, 0);
  assert_true(fabs(stats.rstd - 0.28284271247461901) < 1e-15);
  assert_true(stats.rstd_limit > 1e-8 && stats.rstd_limit < 3e-7);
  struct oracle_element e = oracle_rms_element(&in, &stats, 0, 1);
  assert_true(e.sum == 4 && fabs(e.y - 1.1313708498984760) < 1e-15);
  in.weight = (struct oracle_tensor){weight, NST_DTYPE_F32, 2};
  in.weight_offset = 1;
  e = oracle_rms_element(&in, &stats, 0, 1);
  assert_true(fabs(e.y - 3 * 1.1313708498984760) < 1e-14);
  in.eps = 3.5f;
  stats = oracle_rms_row(&in, 0);
  assert_true(stats.rstd == 0.25);
}

/* The rounding flags: 1 + 2^-8 is halfway between two bf16 numbers and goes to 1. */
static void test_reference_rounding(void **state) {
  (void)state;
  uint16_t x[1] = {half_bf16_from(1)}, residual[1] = {half_bf16_from(0x1p-8)}, weight[1] = {half_bf16_from(3)};
  struct oracle_rms in = {.n = 1, .x = {x, NST_DTYPE_BF16, 1}, .residual = {residual, NST_DTYPE_BF16, 1}};
  struct oracle_rms_row stats = oracle_rms_row(&in, 0);
  assert_true(oracle_rms_element(&in, &stats, 0, 0).sum == 1 + 0x1p-8);
  assert_true(stats.rstd == 1 / (1 + 0x1p-8));
  in.flags = NST_FLAG_ROUND_RESIDUAL;
  stats = oracle_rms_row(&in, 0);
  assert_true(stats.rstd == 1 && oracle_rms_element(&in, &stats, 0, 0).sum == 1 + 0x1p-8);

  /* q = 1 / sqrt(1 + 1/64) = 0.99228 lies between the bf16 numbers 0.98828125 and 0.9921875. */
  in = (struct oracle_rms){.n = 1, .x = {x, NST_DTYPE_BF16, 1}, .weight = {weight, NST_DTYPE_BF16, 1}, .eps = 0x1p-6f};
  stats = oracle_rms_row(&in, 0);
  assert_true(fabs(oracle_rms_element(&in, &stats, 0, 0).y - 3 * 0.99227787671366763) < 1e-14);
  in.flags = NST_FLAG_ROUND_BEFORE_WEIGHT;
  assert_true(oracle_rms_element(&in, &stats, 0, 0).y == 3 * 0.9921875);
}

/* ---- The harness ---------------------------------------------------------------------------------------------- */

#define ROWS 3
#define N 40

static struct call good_call(nst_dtype dtype) {
  struct call call = call_of(NST_OP_FUSED_ADD_RMS_NORM_FWD, dtype, dtype, ROWS, N);
  for (int t = 0; t < TENSORS; t++)
    if (t != WEIGHT && t != RSTD) call.at[t].stride = N + 16;
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
  memcpy(&bits, result(s, Y, 1, 7), sizeof bits);
  bits = (uint16_t)(bits + by);
  memcpy(result(s, Y, 1, 7), &bits, sizeof bits);
}

static void two_ulps(struct setup *s) { move_y(s, 2); }
static void one_ulp_residual(struct setup *s) { *result(s, RESIDUAL_OUT, 2, N - 1) ^= 1; }
static void wrong_rstd(struct setup *s) { result(s, RSTD, 0, ROWS - 1)[1] ^= 1; }
static void not_a_number(struct setup *s) { memcpy(result(s, Y, 0, 0), "\xff\x7f\xff\x7f", half_size(s->call.dtype)); }
static void not_written(struct setup *s) {
  memcpy(result(s, Y, 2, 3), setup_given(s, Y, 2, 3), half_size(s->call.dtype));
}
static void after_a_row(struct setup *s) { *result(s, Y, 0, N) ^= 1; }
static void before_the_first(struct setup *s) { result(s, RESIDUAL_OUT, 0, 0)[-1] ^= 1; }
static void before_rstd(struct setup *s) { s->at[RSTD]->got[0] ^= 1; }
static void into_x(struct setup *s) { *result(s, X, 1, 1) ^= 1; }
static void into_weight(struct setup *s) { *result(s, WEIGHT, 0, N - 1) ^= 1; }

static void expect_found(nst_dtype dtype, damage *spoil) {
  const struct call call = good_call(dtype);
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
  expect_found(NST_DTYPE_F16, two_ulps);
  expect_found(NST_DTYPE_BF16, two_ulps);
  expect_found(NST_DTYPE_BF16, one_ulp_residual);
  expect_found(NST_DTYPE_F32, one_ulp_residual);
  expect_found(NST_DTYPE_F16, wrong_rstd);
  expect_found(NST_DTYPE_F16, not_a_number);
  expect_found(NST_DTYPE_F32, not_a_number);
}

static void test_planted_writes(void **state) {
  (void)state;
  expect_found(NST_DTYPE_F16, not_written);
  expect_found(NST_DTYPE_F16, after_a_row);
  expect_found(NST_DTYPE_BF16, before_the_first);
  expect_found(NST_DTYPE_F32, before_rstd);
  expect_found(NST_DTYPE_F16, into_x);
  expect_found(NST_DTYPE_F16, into_weight);
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
  struct call call = call_of(NST_OP_FUSED_ADD_RMS_NORM_FWD, NST_DTYPE_BF16, NST_DTYPE_BF16, 4, 512);
  expect_different(call, "ROUND_RESIDUAL", NST_FLAG_ROUND_RESIDUAL, 0, call.eps);
  expect_different(call, "ROUND_BEFORE_WEIGHT", NST_FLAG_ROUND_BEFORE_WEIGHT, 0, call.eps);
  expect_different(call, "weight_offset", 0, 0.0625f, call.eps);
  expect_different(call, "eps", 0, 0, 1e-2f);
  call.dtype = call.weight_dtype = NST_DTYPE_F16;
  expect_different(call, "ROUND_RESIDUAL", NST_FLAG_ROUND_RESIDUAL, 0, call.eps);
  expect_different(call, "ROUND_BEFORE_WEIGHT", NST_FLAG_ROUND_BEFORE_WEIGHT, 0, call.eps);
}

/* The comparison of rows bit by bit finds one bit. */
static void test_same_row(void **state) {
  (void)state;
  const struct call call = good_call(NST_DTYPE_F16);
  struct setup a, b;
  assert_int_equal(setup_make(&a, &gpu, &call), 0);
  assert_int_equal(setup_make(&b, &gpu, &call), 0);
  assert_int_equal(setup_run(&a, DISPATCH, 0), NST_OK);
  assert_int_equal(setup_run(&b, DISPATCH, 0), NST_OK);
  assert_true(setup_digest(&a) == setup_digest(&b));
  for (int row = 0; row < ROWS; row++) assert_true(setup_same_row(&a, row, &b, row, "planted nothing"));
  fprintf(stderr, "expected: ");
  assert_false(setup_same_row(&a, 0, &b, 1, "another row"));
  *result(&b, Y, 1, N - 1) ^= 1;
  assert_true(setup_digest(&a) != setup_digest(&b));
  fprintf(stderr, "expected: ");
  assert_false(setup_same_row(&a, 1, &b, 1, "planted"));
  setup_free(&a);
  setup_free(&b);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_f16),
      cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_distance),
      cmocka_unit_test(test_reference),
      cmocka_unit_test(test_reference_rounding),
      cmocka_unit_test(test_planted_values),
      cmocka_unit_test(test_planted_writes),
      cmocka_unit_test(test_ignored_arguments),
      cmocka_unit_test(test_same_row),
  };
  const struct options options = options_read(argc, argv);
  device_open(&gpu, options.device);
  const int failed = cmocka_run_group_tests_name("harness", tests, NULL, NULL);
  gpu_close(&gpu);
  return failed;
}
