/*
 * Calls as programs make them, through the public functions: shapes and layouts that went wrong elsewhere, special
 * values, and what nst_explain says beside what the driver is then asked to launch.
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

#define RMS NST_OP_RMS_NORM_FWD
#define FUSED NST_OP_FUSED_ADD_RMS_NORM_FWD
#define LAYER NST_OP_LAYER_NORM_FWD
#define FUSED_LAYER NST_OP_FUSED_ADD_LAYER_NORM_FWD
#define ADA NST_OP_ADA_LAYER_NORM_FWD
#define ADA_ZERO NST_OP_ADA_LAYER_NORM_ZERO_FWD
#define F16 NST_DTYPE_F16
#define BF16 NST_DTYPE_BF16
#define F32 NST_DTYPE_F32

static void make(struct setup *s, const struct call *call) {
  if (setup_make(s, &gpu, call)) fail_msg("no room");
}

static void run(struct setup *s) {
  const nst_status status = setup_run(s, DISPATCH, 0);
  if (status != NST_OK) fail_msg("%s: %s", nst_status_name(status), device_error());
}

static void finish(struct setup *s, const char *name) {
  const int wrong = setup_check(s, name);
  setup_free(s);
  if (wrong) fail_msg("%s is wrong", name);
}

static void check(const struct call *call, const char *name) {
  struct setup s;
  make(&s, call);
  run(&s);
  finish(&s, name);
}

/* Element (row, i) of a result. */
static double got(const struct setup *s, int which, int64_t row, int64_t i) {
  const struct tensor *const t = s->at[which];
  return half_load(t->dtype, t->got + t->first, row * t->stride + i);
}

/* ---- Shapes and layouts --------------------------------------------------------------------------------------- */

static void test_model_shapes(void **state) {
  (void)state;
  struct call call = call_of(FUSED, F16, F16, 8, 3584);
  check(&call, "8 x 3584");
  call = call_of(FUSED, BF16, BF16, 8, 3584);
  check(&call, "8 x 3584");
  call = call_of(FUSED, F16, F16, 4, 16384); /* shared memory above 48 KB where a kernel needs it */
  check(&call, "4 x 16384");
  call = call_of(FUSED, F32, F32, 4, 16384);
  check(&call, "4 x 16384");
  call = call_of(RMS, BF16, F32, 16, 4096);
  check(&call, "f32 weight");
  call = call_of(LAYER, F16, F32, 8, 768);
  check(&call, "f32 weight and bias");
  call = call_of(FUSED_LAYER, BF16, F32, 4, 12288);
  check(&call, "4 x 12288");
  call = call_of(ADA_ZERO, BF16, BF16, 6, 1152);
  call.rows_per_cond = 3;
  check(&call, "2 x 3 x 1152");
}

/* Every parameter absent by itself, and all of them. */
static void test_absent(void **state) {
  (void)state;
  for (int op = 0; op < ROWS_OPS; op++) {
    const struct call all = call_of((nst_op)op, BF16, BF16, 3, 520);
    struct call none = all;
    for (int t = 0; t < ROWS_TENSORS; t++) {
      if (!op_has(all.op, (enum rows_tensor)t) || op_needs(all.op, (enum rows_tensor)t)) continue;
      struct call one = all;
      one.at[t].kind = none.at[t].kind = ABSENT;
      check(&one, rows_tensor_name((enum rows_tensor)t));
    }
    check(&none, "only what must be there");
  }
}

/* Rows of conditioning for some neighbouring rows: the last may serve fewer, and one may serve all. */
static void test_rows_per_cond(void **state) {
  (void)state;
  static const int64_t shared_by[] = {0, 1, 2, 3, 7, 16, 17, 2147483647};
  for (size_t i = 0; i < sizeof shared_by / sizeof *shared_by; i++) {
    struct call call = call_of(i % 2 ? ADA : ADA_ZERO, i % 3 ? F16 : F32, i % 3 ? F16 : F32, 17, i % 4 ? 96 : 1001);
    call.rows_per_cond = shared_by[i];
    check(&call, "rows_per_cond");
  }
}

/* Scale, shift and gate as chunks of one tensor [cond][6 * n], which the call reads where it lies. */
static void test_chunks(void **state) {
  (void)state;
  static const int64_t lengths[] = {1152, 77}; /* chunks that begin on 16-byte boundaries, and that don't */
  for (int l = 0; l < 2; l++) {
    const int64_t n = lengths[l];
    struct call call = call_of(ADA_ZERO, BF16, BF16, 7, n);
    call.rows_per_cond = 3;
    call.at[ROWS_SCALE].stride = call.at[ROWS_SHIFT].stride = call.at[ROWS_GATE].stride = 6 * n;
    struct setup s;
    make(&s, &call);
    char *const chunks = gpu_alloc(&gpu, (size_t)(3 * 6 * n) * 2), *const host = calloc((size_t)(3 * 6 * n), 2);
    assert_true(chunks && host);
    for (int c = 0; c < 3; c++)
      for (int64_t row = 0; row < 3; row++)
        memcpy(host + (row * 6 + c + 1) * n * 2, setup_given(&s, ROWS_SCALE + c, row, 0), (size_t)n * 2);
    assert_int_equal(gpu_upload(&gpu, chunks, host, (size_t)(3 * 6 * n) * 2), 0);
    assert_int_equal(setup_put(&s), 0);
    union rows_args args = setup_args(&s);
    args.ada_layer_norm_zero.scale = chunks + n * 2;
    args.ada_layer_norm_zero.shift = chunks + 2 * n * 2;
    args.ada_layer_norm_zero.gate = chunks + 3 * n * 2;
    assert_int_equal(rows_launch(gpu.library, ADA_ZERO, &args, gpu.stream), NST_OK);
    assert_int_equal(setup_fetch(&s), 0);
    gpu_free(&gpu, chunks);
    free(host);
    finish(&s, "chunks of one tensor");
  }
}

static void test_odd_n(void **state) {
  (void)state;
  struct call call = call_of(RMS, F16, F16, 33, 769); /* the alignment of rows alternates */
  check(&call, "33 x 769");
  call = call_of(RMS, BF16, BF16, 33, 769);
  check(&call, "33 x 769");
  call = call_of(LAYER, F16, F16, 9, 769);
  check(&call, "9 x 769");
  call = call_of(ADA, BF16, BF16, 9, 769);
  check(&call, "9 x 769");
}

static void test_many_rows(void **state) {
  (void)state;
  const struct call call = call_of(RMS, F32, F32, 65536, 4);
  check(&call, "65536 x 4");
}

/* Rows of a transposed [2, 25, 257, 48] view. */
static void test_transposed(void **state) {
  (void)state;
  struct call call = call_of(RMS, BF16, BF16, 50, 48);
  call.at[ROWS_X].stride = 25 * 48, call.at[ROWS_X].offset = 48;
  check(&call, "transposed view");
}

static void test_four_strides(void **state) {
  (void)state;
  struct call call = call_of(FUSED, BF16, BF16, 64, 4096);
  if (!gpu.is_card) call.rows = 16;
  call.at[ROWS_X].stride = 4096, call.at[ROWS_RESIDUAL].stride = 8192;
  call.at[ROWS_Y].stride = 4104, call.at[ROWS_RESIDUAL_OUT].stride = 12288;
  check(&call, "four strides");
}

/* One row's stride is never used, however absurd. Dense tensors whose arguments then name that stride. */
static void test_stride_of_one_row(void **state) {
  (void)state;
  const struct call call = call_of(RMS, BF16, BF16, 1, 128);
  struct setup s;
  make(&s, &call);
  run(&s);
  union rows_args args = setup_args(&s);
  args.rms_norm.x_stride = 4194304, args.rms_norm.y_stride = 1;
  assert_int_equal(rows_launch(gpu.library, RMS, &args, gpu.stream), NST_OK);
  assert_int_equal(gpu_sync(&gpu), 0);
  const uint64_t digest = setup_digest(&s);
  const struct tensor *const y = s.at[ROWS_Y];
  assert_int_equal(gpu_download(&gpu, y->got, y->device, y->bytes), 0);
  assert_true(setup_digest(&s) == digest);
  finish(&s, "one row");
}

/* Rows of x that overlap may be read. */
static void test_overlapping_rows(void **state) {
  (void)state;
  struct call call = call_of(RMS, F16, F16, 16, 512);
  call.at[ROWS_X].stride = 304;
  check(&call, "overlapping rows");
  call.at[ROWS_X].stride = 1;
  check(&call, "rows that begin one element later each");
}

static void test_no_rows(void **state) {
  (void)state;
  for (int op = 0; op < ROWS_OPS; op++) {
    const struct rows_call call = {.op = (nst_op)op, .dtype = BF16, .n = 2520};
    const union rows_args args = rows_args_of(&call);
    assert_int_equal(rows_launch(gpu.library, call.op, &args, gpu.stream), NST_OK);
    assert_int_equal(gpu_sync(&gpu), 0);
  }
}

/* n = 1: y is the sign of x times the weight. */
static void test_n_1(void **state) {
  (void)state;
  static const nst_dtype types[] = {F16, BF16, F32};
  for (int t = 0; t < 3; t++) {
    struct call call = call_of(RMS, types[t], types[t], 37, 1);
    call.eps = 0;
    check(&call, "n = 1");
    call.at[ROWS_WEIGHT].kind = ABSENT;
    struct setup s;
    make(&s, &call);
    run(&s);
    for (int64_t row = 0; row < call.rows; row++) {
      const double x = half_load(types[t], setup_given(&s, ROWS_X, row, 0), 0);
      assert_true(fabs(got(&s, ROWS_Y, row, 0) - (x > 0 ? 1 : -1)) <= (types[t] == F32 ? 0x1p-22 : 0));
    }
    finish(&s, "n = 1 without weight");
    call = call_of(FUSED, types[t], types[t], 5, 1);
    check(&call, "n = 1, fused");
    /* One number is its own mean: y is the bias. */
    call = call_of(FUSED_LAYER, types[t], types[t], 5, 1);
    make(&s, &call);
    run(&s);
    const double bias = half_load(types[t], setup_given(&s, ROWS_BIAS, 0, 0), 0);
    for (int64_t row = 0; row < call.rows; row++) assert_true(got(&s, ROWS_Y, row, 0) == bias);
    finish(&s, "n = 1, a bias");
  }
}

/* In place as inference engines call it: y over x, the residual sum over the residual. */
static void test_in_place(void **state) {
  (void)state;
  struct call call = call_of(FUSED, BF16, BF16, 7, 4096);
  call.at[ROWS_Y].kind = AS_X, call.at[ROWS_RESIDUAL_OUT].kind = AS_RESIDUAL;
  check(&call, "in place");
  call.flags = NST_FLAG_ROUND_RESIDUAL | NST_FLAG_ROUND_BEFORE_WEIGHT;
  check(&call, "in place, rounded as engines do");
  call = call_of(FUSED_LAYER, F16, F16, 7, 1280);
  call.at[ROWS_Y].kind = AS_X, call.at[ROWS_RESIDUAL_OUT].kind = AS_RESIDUAL;
  check(&call, "in place");
  call.at[ROWS_Y].kind = AS_RESIDUAL, call.at[ROWS_RESIDUAL_OUT].kind = AS_X;
  call.flags = NST_FLAG_ROUND_RESIDUAL | NST_FLAG_ROUND_BEFORE_WEIGHT;
  check(&call, "in place, crosswise and rounded");
  call = call_of(ADA_ZERO, BF16, BF16, 7, 1001);
  call.at[ROWS_Y].kind = AS_X;
  check(&call, "in place");
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

static void test_largest_f16(void **state) {
  (void)state;
  const struct call call = call_of(RMS, F16, F16, 4, 8192);
  struct setup s;
  make(&s, &call);
  for (int64_t row = 0; row < 4; row++)
    for (int64_t i = 0; i < 8192; i++) half_store(F16, setup_given(&s, ROWS_X, row, i), 0, 65504);
  run(&s);
  for (int64_t i = 0; i < 8192; i++) assert_true(isfinite(got(&s, ROWS_Y, 3, i)));
  finish(&s, "all 65504");
}

/* The header: above about 1.8e19 / sqrt(n) the f32 sum of squares overflows to infinity, and y to 0. */
static void test_overflow_f32(void **state) {
  (void)state;
  const struct call call = call_of(RMS, F32, F32, 4, 1024);
  struct setup s;
  make(&s, &call);
  for (int64_t row = 0; row < 4; row++)
    for (int64_t i = 0; i < 1024; i++) {
      /* Rows 0 and 1 overflow; row 2 lies below the header's limit and row 3 above it. */
      static const double magnitudes[4] = {1e30, 1e30, 0.97 * 1.8e19 / 32, 1.03 * 1.845e19 / 32};
      const double around = row == 0 ? 1 + (double)(i % 7) / 16 : 1;
      half_store(F32, setup_given(&s, ROWS_X, row, i), 0, i % 2 ? magnitudes[row] * around : -magnitudes[row] * around);
    }
  run(&s);
  for (int64_t i = 0; i < 1024; i++) {
    assert_true(got(&s, ROWS_Y, 0, i) == 0 && got(&s, ROWS_Y, 1, i) == 0 && got(&s, ROWS_Y, 3, i) == 0);
    assert_true(got(&s, ROWS_Y, 2, i) != 0);
  }
  assert_true(got(&s, ROWS_RSTD, 0, 0) == 0 && got(&s, ROWS_RSTD, 0, 2) > 0 && got(&s, ROWS_RSTD, 0, 3) == 0);
  finish(&s, "around 1e30");
}

/* A mean far above the differences costs none of their digits: 2^22 and 2^22 + 1 in turn give -1 and 1, where f32
 * can't tell their squares apart. */
static void test_far_mean(void **state) {
  (void)state;
  static const int64_t lengths[] = {96, 1000, 4096, 5001, 40000};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
    struct call call = call_of(LAYER, F32, F32, 2, lengths[l]);
    call.at[ROWS_WEIGHT].kind = call.at[ROWS_BIAS].kind = ABSENT;
    call.eps = 0;
    struct setup s;
    make(&s, &call);
    for (int64_t row = 0; row < 2; row++)
      for (int64_t i = 0; i < call.n; i++)
        half_store(F32, setup_given(&s, ROWS_X, row, i), 0, (row ? -0x1p22 : 0x1p22) + (double)(i % 2));
    run(&s);
    for (int64_t i = 0; i < call.n; i++) assert_true(fabs(fabs(got(&s, ROWS_Y, 1, i)) - 1) < 1e-3);
    finish(&s, "2^22 and one more");
    for (int op = LAYER; op < ROWS_OPS; op++) {
      struct call far = call_of((nst_op)op, F32, F32, 2, lengths[l]);
      far.fill = FILL_FAR;
      check(&far, "10000 and noise");
    }
  }
}

/* The pivot is the mean of a row's first numbers; these lie where it helps least: far from all others. The rows around
 * that one need no second turn, and may share a warp with it. */
static void test_misleading_pivot(void **state) {
  (void)state;
  static const int64_t lengths[] = {40, 200, 1000, 4096, 40000, 140000};
  static const int64_t counts[] = {1, 4, 128};
  static const nst_dtype types[] = {F16, BF16, F32};
  for (int op = LAYER; op < ROWS_OPS; op++)
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
      for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const nst_dtype dtype = types[(l + c) % 3];
        if (2 * counts[c] > lengths[l] || (lengths[l] > 5000 && op != LAYER + (int)c)) continue;
        const struct call call = call_of((nst_op)op, dtype, dtype, 3, lengths[l]);
        struct setup s;
        make(&s, &call);
        for (int64_t i = 0; i < counts[c]; i++) {
          void *const at = setup_given(&s, ROWS_X, 1, i);
          half_store(dtype, at, 0, half_load(dtype, at, 0) + 3e4);
        }
        run(&s);
        finish(&s, "the first numbers around 30000");
      }
}

/* A constant row has no deviations: y is the bias or the shift as exactly as the mean can be told. */
static void test_constant(void **state) {
  (void)state;
  static const nst_dtype types[] = {F16, BF16, F32};
  for (int op = LAYER; op < ROWS_OPS; op++)
    for (int t = 0; t < 3; t++) {
      struct call call = call_of((nst_op)op, types[t], types[t], 3, t == 1 ? 1000 : 777);
      call.fill = FILL_CONSTANT;
      check(&call, "constant rows");
      call.fill = FILL_ZERO;
      check(&call, "zeros");
      call.eps = 0;
      struct setup s;
      make(&s, &call);
      run(&s);
      assert_true(isnan(got(&s, ROWS_Y, 0, 0)) && isinf(got(&s, ROWS_RSTD, 0, 0)) && got(&s, ROWS_MEAN, 0, 2) == 0);
      finish(&s, "zeros, eps 0");
      call.fill = FILL_TINY, call.eps = 1e-30f;
      check(&call, "subnormal numbers");
      call.fill = FILL_OUTLIER;
      check(&call, "an outlier");
    }
}

/* Deviations whose squares overflow: mean and y are not promised, but residual_out is, and other rows are. */
static void test_layer_overflow(void **state) {
  (void)state;
  const struct call call = call_of(FUSED_LAYER, F32, F32, 3, 1024);
  struct setup s;
  make(&s, &call);
  for (int64_t i = 0; i < 1024; i++) *(float *)setup_given(&s, ROWS_X, 1, i) *= 1e30f;
  run(&s);
  for (int64_t i = 0; i < 1024; i++) assert_true(isfinite(got(&s, ROWS_Y, 0, i)) && isfinite(got(&s, ROWS_Y, 2, i)));
  finish(&s, "around 1e30");
}

/* What is not a number stays in its row. */
static void row_isolation(nst_op op, nst_dtype dtype, int64_t n) {
  const struct call call = call_of(op, dtype, dtype, 6, n);
  struct setup clean, s;
  make(&clean, &call);
  make(&s, &call);
  half_store(dtype, setup_given(&s, ROWS_X, 1, n / 2), 0, NAN);
  half_store(dtype, setup_given(&s, ROWS_X, 3, n - 1), 0, INFINITY);
  half_store(dtype, setup_given(&s, ROWS_X, 4, 0), 0, -INFINITY);
  run(&clean);
  run(&s);
  for (int64_t row = 0; row < 6; row += row == 2 ? 3 : 2)
    assert_true(setup_same_row(&clean, row, &s, row, "a row beside NaN and infinity"));
  assert_true(isnan(got(&s, ROWS_Y, 1, 0)) && isnan(got(&s, ROWS_Y, 3, n - 1)) && isnan(got(&s, ROWS_RSTD, 0, 1)));
  if (op_has(op, ROWS_MEAN))
    assert_true(isnan(got(&s, ROWS_MEAN, 0, 1)) && isnan(got(&s, ROWS_Y, 3, 0)) && !isfinite(got(&s, ROWS_MEAN, 0, 4)));
  else
    assert_true(got(&s, ROWS_RSTD, 0, 3) == 0 && got(&s, ROWS_Y, 3, 0) == 0);
  setup_free(&clean);
  finish(&s, "NaN and infinity");
}

static void test_row_isolation(void **state) {
  (void)state;
  static const nst_dtype types[] = {F16, BF16, F32};
  for (int t = 0; t < 3; t++) {
    row_isolation(RMS, types[t], 96);
    row_isolation(RMS, types[t], 4096);
    row_isolation(RMS, types[t], 1001);
    row_isolation(FUSED, types[t], 8192);
    row_isolation(FUSED, types[t], 40);
    row_isolation(LAYER, types[t], 96);
    row_isolation(LAYER, types[t], 1001);
    row_isolation(FUSED_LAYER, types[t], 4096);
    row_isolation(ADA_ZERO, types[t], 1000);
  }
}

/* A row of zeros is 0, however small eps; with eps 0 it is 0 / 0. */
static void test_zero_row(void **state) {
  (void)state;
  struct call call = call_of(RMS, F16, F16, 2, 256);
  call.fill = FILL_ZERO;
  check(&call, "zeros");
  call.eps = 1e-30f;
  check(&call, "zeros, tiny eps");
  call.eps = 0;
  struct setup s;
  make(&s, &call);
  run(&s);
  assert_true(isnan(got(&s, ROWS_Y, 0, 0)) && isinf(got(&s, ROWS_RSTD, 0, 0)));
  finish(&s, "zeros, eps 0");
}

/* 1 + w is formed in f32: tiny weights are not lost in a bf16 sum. */
static void test_tiny_weights(void **state) {
  (void)state;
  struct call call = call_of(RMS, BF16, BF16, 16, 4096);
  call.weight_offset = 1;
  struct setup s;
  make(&s, &call);
  for (int64_t i = 0; i < 4096; i++) half_store(BF16, setup_given(&s, ROWS_WEIGHT, 0, i), 0, i % 2 ? 1e-4 : -1e-4);
  run(&s);
  finish(&s, "tiny weights");
  /* The same in f32, where 1e-4 shows in the result. */
  call = call_of(RMS, F32, F32, 2, 64);
  call.weight_offset = 1;
  make(&s, &call);
  for (int64_t i = 0; i < 64; i++) half_store(F32, setup_given(&s, ROWS_WEIGHT, 0, i), 0, 1e-4);
  run(&s);
  finish(&s, "tiny weights in f32");
}

/* ---- What runs ------------------------------------------------------------------------------------------------ */

/* The driver as the library sees it, with a look at what it is asked to launch. Names are taken down when kernels are
 * fetched. */
static struct {
  struct {
    void *kernel;
    const char *name;
  } fetched[8192];
  size_t count;
  int (*get_kernel)(void **kernel, void *library, const char *name);
  int (*launch)(const void *config, void *function, void **parameters, void **extra);
  const char *symbol; /* of the last launch */
  unsigned grid, block, shared;
  int launches;
} driver;

static int watch_get_kernel(void **kernel, void *library, const char *name) {
  const int error = driver.get_kernel(kernel, library, name);
  if (!error && driver.count < sizeof driver.fetched / sizeof *driver.fetched) {
    driver.fetched[driver.count].kernel = *kernel;
    driver.fetched[driver.count++].name = name;
  }
  return error;
}

static int watch_launch(const void *config, void *function, void **parameters, void **extra) {
  unsigned begin[7]; /* a CUlaunchConfig begins with the grid, the block and the shared memory */
  memcpy(begin, config, sizeof begin);
  driver.grid = begin[0], driver.block = begin[3], driver.shared = begin[6];
  driver.symbol = NULL;
  for (size_t i = 0; i < driver.count; i++)
    if (driver.fetched[i].kernel == function) driver.symbol = driver.fetched[i].name;
  driver.launches++;
  return driver.launch(config, function, parameters, extra);
}

static void *watching(void *user, const char *name, int cuda_version) {
  void *const real = gpu.proc(user, name, cuda_version);
  if (real && strcmp(name, "cuLibraryGetKernel") == 0) {
    *(void **)&driver.get_kernel = real;
    int (*const watch)(void **, void *, const char *) = watch_get_kernel;
    return *(void *const *)&watch;
  }
  if (real && strcmp(name, "cuLaunchKernelEx") == 0) {
    *(void **)&driver.launch = real;
    int (*const watch)(const void *, void *, void **, void **) = watch_launch;
    return *(void *const *)&watch;
  }
  return real;
}

static void explained(nst_library *library, const nst_device_facts *facts, const struct call *call) {
  struct setup s;
  make(&s, call);
  assert_int_equal(setup_put(&s), 0);
  const union rows_args args = setup_args(&s);
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  assert_int_equal(nst_explain(call->op, &args, facts, &info), NST_OK);
  assert_non_null(info.choice);
  const int before = driver.launches;
  assert_int_equal(rows_launch(library, call->op, &args, gpu.stream), NST_OK);
  assert_int_equal(gpu_sync(&gpu), 0);
  setup_free(&s);
  assert_int_equal(driver.launches, before + 1);
  assert_non_null(driver.symbol);
  assert_string_equal(driver.symbol, info.kernel.symbol);
  assert_int_equal(driver.grid, info.grid);
  assert_int_equal(driver.block, info.kernel.threads);
  assert_int_equal(driver.shared, info.kernel.shared_bytes);
}

static void test_explain(void **state) {
  (void)state;
  memset(&driver, 0, sizeof driver);
  nst_open_options options = NST_OPEN_OPTIONS_INIT;
  options.get_proc = watching, options.get_proc_user = gpu.libcuda;
  nst_library *library;
  assert_int_equal(nst_open(&library, &options), NST_OK);
  nst_device_facts facts = NST_DEVICE_FACTS_INIT;
  assert_int_equal(nst_device(library, &facts), NST_OK);
  static const int64_t lengths[] = {1, 64, 100, 768, 1000, 4096, 5120, 8192, 12288, 16384, 40000};
  for (int op = 0; op < ROWS_OPS; op++) {
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
      static const nst_dtype types[] = {F16, BF16, F32};
      const nst_dtype dtype = types[l % 3], weight = l % 2 || !op_has((nst_op)op, ROWS_WEIGHT) ? dtype : F32;
      const int64_t few = 1 + (int64_t)l % 3, many = gpu.is_card ? 3000 : 20;
      struct call call = call_of((nst_op)op, dtype, weight, few, lengths[l]);
      explained(library, &facts, &call);
      call.at[ROWS_X].offset = 1;
      explained(library, &facts, &call);
      call.at[ROWS_X].offset = 0, call.rows = lengths[l] > 10000 ? 2 : many;
      explained(library, &facts, &call);
    }
  }
  /* No rows: nothing is launched, and explained so. */
  const struct rows_call none = {.op = RMS, .dtype = F32, .n = 64};
  const union rows_args args = rows_args_of(&none);
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  assert_int_equal(nst_explain(RMS, &args, &facts, &info), NST_OK);
  assert_int_equal(info.grid, 0);
  const int before = driver.launches;
  assert_int_equal(nst_rms_norm_fwd(library, &args.rms_norm, gpu.stream), NST_OK);
  assert_int_equal(driver.launches, before);
  assert_int_equal(nst_close(library), NST_OK);
}

/* ---- Streams -------------------------------------------------------------------------------------------------- */

/* Dependent work in one stream, several streams at once: each stream's chain normalises its own tensor again and again,
 * which is right only if every launch waits for the one before it, with and without a dependent launch. */
static void test_streams(void **state) {
  (void)state;
  enum { STREAMS = 4, TURNS = 6 };
  struct setup chains[STREAMS];
  void *streams[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    /* Chains 0 and 1, and 2 and 3, hold the same numbers. */
    struct call call = call_of(i < 2 ? FUSED : FUSED_LAYER, BF16, BF16, gpu.is_card ? 512 : 4, 4096);
    call.at[ROWS_Y].kind = AS_X, call.at[ROWS_RESIDUAL_OUT].kind = AS_RESIDUAL;
    if (i % 2) call.flags = NST_FLAG_DEPENDENT_LAUNCH | NST_FLAG_WEIGHT_READY;
    make(&chains[i], &call);
    assert_int_equal(gpu.cu.StreamCreate(&streams[i], 0), 0);
    assert_int_equal(setup_put(&chains[i]), 0);
  }
  for (int turn = 0; turn < TURNS; turn++)
    for (int i = 0; i < STREAMS; i++) {
      const union rows_args args = setup_args(&chains[i]);
      assert_int_equal(rows_launch(gpu.library, chains[i].call.op, &args, (nst_stream)streams[i]), NST_OK);
    }
  for (int i = 0; i < STREAMS; i++) {
    assert_int_equal(gpu.cu.StreamSynchronize(streams[i]), 0);
    assert_int_equal(setup_fetch(&chains[i]), 0);
    assert_int_equal(gpu.cu.StreamDestroy(streams[i]), 0);
  }
  /* The chain one launch at a time, each looked at, gives what each stream's chain must have given. */
  for (int i = 0; i < STREAMS; i += 2) {
    struct setup slow;
    make(&slow, &chains[i].call);
    for (int turn = 0; turn < TURNS; turn++) {
      run(&slow);
      assert_int_equal(setup_check(&slow, "a turn"), 0);
      for (int which = ROWS_X; which <= ROWS_RESIDUAL; which++)
        memcpy(slow.own[which].given, slow.own[which].got, slow.own[which].bytes);
    }
    for (int64_t row = 0; row < slow.call.rows; row++) {
      assert_true(setup_same_row(&slow, row, &chains[i], row, "a stream's chain"));
      assert_true(setup_same_row(&slow, row, &chains[i + 1], row, "a chain of dependent launches"));
    }
    setup_free(&slow);
  }
  for (int i = 0; i < STREAMS; i++) setup_free(&chains[i]);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model_shapes),
      cmocka_unit_test(test_absent),
      cmocka_unit_test(test_rows_per_cond),
      cmocka_unit_test(test_chunks),
      cmocka_unit_test(test_odd_n),
      cmocka_unit_test(test_many_rows),
      cmocka_unit_test(test_transposed),
      cmocka_unit_test(test_four_strides),
      cmocka_unit_test(test_stride_of_one_row),
      cmocka_unit_test(test_overlapping_rows),
      cmocka_unit_test(test_no_rows),
      cmocka_unit_test(test_n_1),
      cmocka_unit_test(test_in_place),
      cmocka_unit_test(test_largest_f16),
      cmocka_unit_test(test_overflow_f32),
      cmocka_unit_test(test_far_mean),
      cmocka_unit_test(test_misleading_pivot),
      cmocka_unit_test(test_constant),
      cmocka_unit_test(test_layer_overflow),
      cmocka_unit_test(test_row_isolation),
      cmocka_unit_test(test_zero_row),
      cmocka_unit_test(test_tiny_weights),
      cmocka_unit_test(test_explain),
      cmocka_unit_test(test_streams),
  };
  const struct options options = options_read(argc, argv);
  device_open(&gpu, options.device);
  const int failed = cmocka_run_group_tests_name("rows", tests, NULL, NULL);
  gpu_close(&gpu);
  return failed;
}
