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
}

static void test_odd_n(void **state) {
  (void)state;
  struct call call = call_of(RMS, F16, F16, 33, 769); /* the alignment of rows alternates */
  check(&call, "33 x 769");
  call = call_of(RMS, BF16, BF16, 33, 769);
  check(&call, "33 x 769");
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
  call.at[X].stride = 25 * 48, call.at[X].offset = 48;
  check(&call, "transposed view");
}

static void test_four_strides(void **state) {
  (void)state;
  struct call call = call_of(FUSED, BF16, BF16, 64, 4096);
  if (!gpu.is_card) call.rows = 16;
  call.at[X].stride = 4096, call.at[RESIDUAL].stride = 8192;
  call.at[Y].stride = 4104, call.at[RESIDUAL_OUT].stride = 12288;
  check(&call, "four strides");
}

/* One row's stride is never used, however absurd. Dense tensors whose arguments then name that stride. */
static void test_stride_of_one_row(void **state) {
  (void)state;
  const struct call call = call_of(RMS, BF16, BF16, 1, 128);
  struct setup s;
  make(&s, &call);
  run(&s);
  union call_args args = setup_args(&s);
  args.rms_norm.x_stride = 4194304, args.rms_norm.y_stride = 1;
  assert_int_equal(launch(&gpu, RMS, &args, gpu.stream), NST_OK);
  assert_int_equal(gpu_sync(&gpu), 0);
  const uint64_t digest = setup_digest(&s);
  const struct tensor *const y = s.at[Y];
  assert_int_equal(gpu_download(&gpu, y->got, y->device, y->bytes), 0);
  assert_true(setup_digest(&s) == digest);
  finish(&s, "one row");
}

/* Rows of x that overlap may be read. */
static void test_overlapping_rows(void **state) {
  (void)state;
  struct call call = call_of(RMS, F16, F16, 16, 512);
  call.at[X].stride = 304;
  check(&call, "overlapping rows");
  call.at[X].stride = 1;
  check(&call, "rows that begin one element later each");
}

static void test_no_rows(void **state) {
  (void)state;
  for (int op = 0; op < 2; op++) {
    union call_args args;
    if (op == 0) {
      args.rms_norm = (nst_rms_norm_fwd_args)NST_RMS_NORM_FWD_ARGS_INIT;
      args.rms_norm.dtype = BF16, args.rms_norm.n = 2520;
    } else {
      args.fused_add_rms_norm = (nst_fused_add_rms_norm_fwd_args)NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT;
      args.fused_add_rms_norm.dtype = BF16, args.fused_add_rms_norm.n = 2520;
    }
    assert_int_equal(launch(&gpu, op == 0 ? RMS : FUSED, &args, gpu.stream), NST_OK);
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
    call.at[WEIGHT].kind = ABSENT;
    struct setup s;
    make(&s, &call);
    run(&s);
    for (int64_t row = 0; row < call.rows; row++) {
      const double x = half_load(types[t], setup_given(&s, X, row, 0), 0);
      assert_true(fabs(got(&s, Y, row, 0) - (x > 0 ? 1 : -1)) <= (types[t] == F32 ? 0x1p-22 : 0));
    }
    finish(&s, "n = 1 without weight");
    call = call_of(FUSED, types[t], types[t], 5, 1);
    check(&call, "n = 1, fused");
  }
}

/* In place as inference engines call it: y over x, the residual sum over the residual. */
static void test_in_place(void **state) {
  (void)state;
  struct call call = call_of(FUSED, BF16, BF16, 7, 4096);
  call.at[Y].kind = AS_X, call.at[RESIDUAL_OUT].kind = AS_RESIDUAL;
  check(&call, "in place");
  call.flags = NST_FLAG_ROUND_RESIDUAL | NST_FLAG_ROUND_BEFORE_WEIGHT;
  check(&call, "in place, rounded as engines do");
}

/* ---- Values --------------------------------------------------------------------------------------------------- */

static void test_largest_f16(void **state) {
  (void)state;
  const struct call call = call_of(RMS, F16, F16, 4, 8192);
  struct setup s;
  make(&s, &call);
  for (int64_t row = 0; row < 4; row++)
    for (int64_t i = 0; i < 8192; i++) half_store(F16, setup_given(&s, X, row, i), 0, 65504);
  run(&s);
  for (int64_t i = 0; i < 8192; i++) assert_true(isfinite(got(&s, Y, 3, i)));
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
      half_store(F32, setup_given(&s, X, row, i), 0, i % 2 ? magnitudes[row] * around : -magnitudes[row] * around);
    }
  run(&s);
  for (int64_t i = 0; i < 1024; i++) {
    assert_true(got(&s, Y, 0, i) == 0 && got(&s, Y, 1, i) == 0 && got(&s, Y, 3, i) == 0);
    assert_true(got(&s, Y, 2, i) != 0);
  }
  assert_true(got(&s, RSTD, 0, 0) == 0 && got(&s, RSTD, 0, 2) > 0 && got(&s, RSTD, 0, 3) == 0);
  finish(&s, "around 1e30");
}

/* What is not a number stays in its row. */
static void row_isolation(nst_op op, nst_dtype dtype, int64_t n) {
  const struct call call = call_of(op, dtype, dtype, 6, n);
  struct setup clean, s;
  make(&clean, &call);
  make(&s, &call);
  half_store(dtype, setup_given(&s, X, 1, n / 2), 0, NAN);
  half_store(dtype, setup_given(&s, X, 3, n - 1), 0, INFINITY);
  half_store(dtype, setup_given(&s, X, 4, 0), 0, -INFINITY);
  run(&clean);
  run(&s);
  for (int64_t row = 0; row < 6; row += row == 2 ? 3 : 2)
    assert_true(setup_same_row(&clean, row, &s, row, "a row beside NaN and infinity"));
  assert_true(isnan(got(&s, Y, 1, 0)) && isnan(got(&s, Y, 3, n - 1)) && isnan(got(&s, RSTD, 0, 1)));
  assert_true(got(&s, RSTD, 0, 3) == 0 && got(&s, Y, 3, 0) == 0);
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
  assert_true(isnan(got(&s, Y, 0, 0)) && isinf(got(&s, RSTD, 0, 0)));
  finish(&s, "zeros, eps 0");
}

/* 1 + w is formed in f32: tiny weights are not lost in a bf16 sum. */
static void test_tiny_weights(void **state) {
  (void)state;
  struct call call = call_of(RMS, BF16, BF16, 16, 4096);
  call.weight_offset = 1;
  struct setup s;
  make(&s, &call);
  for (int64_t i = 0; i < 4096; i++) half_store(BF16, setup_given(&s, WEIGHT, 0, i), 0, i % 2 ? 1e-4 : -1e-4);
  run(&s);
  finish(&s, "tiny weights");
  /* The same in f32, where 1e-4 shows in the result. */
  call = call_of(RMS, F32, F32, 2, 64);
  call.weight_offset = 1;
  make(&s, &call);
  for (int64_t i = 0; i < 64; i++) half_store(F32, setup_given(&s, WEIGHT, 0, i), 0, 1e-4);
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
  for (int which = 0; which < TENSORS; which++)
    if (s.own[which].bytes)
      assert_int_equal(gpu_upload(&gpu, s.own[which].device, s.own[which].given, s.own[which].bytes), 0);
  const union call_args args = setup_args(&s);
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  assert_int_equal(nst_explain(call->op, &args, facts, &info), NST_OK);
  assert_non_null(info.choice);
  const int before = driver.launches;
  const nst_status status = call->op == RMS
                                ? nst_rms_norm_fwd(library, &args.rms_norm, gpu.stream)
                                : nst_fused_add_rms_norm_fwd(library, &args.fused_add_rms_norm, gpu.stream);
  assert_int_equal(status, NST_OK);
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
  for (int op = 0; op < 2; op++) {
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
      static const nst_dtype types[] = {F16, BF16, F32};
      const nst_dtype dtype = types[l % 3], weight = l % 2 ? dtype : F32;
      const int64_t few = 1 + (int64_t)l % 3, many = gpu.is_card ? 3000 : 20;
      struct call call = call_of(op == 0 ? RMS : FUSED, dtype, weight, few, lengths[l]);
      explained(library, &facts, &call);
      call.at[X].offset = 1;
      explained(library, &facts, &call);
      call.at[X].offset = 0, call.rows = lengths[l] > 10000 ? 2 : many;
      explained(library, &facts, &call);
    }
  }
  /* No rows: nothing is launched, and explained so. */
  union call_args args;
  args.rms_norm = (nst_rms_norm_fwd_args)NST_RMS_NORM_FWD_ARGS_INIT;
  args.rms_norm.n = 64;
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
    struct call call = call_of(FUSED, BF16, BF16, gpu.is_card ? 512 : 4, 4096);
    call.at[Y].kind = AS_X, call.at[RESIDUAL_OUT].kind = AS_RESIDUAL;
    call.seed = (uint64_t)i / 2; /* chains 0 and 1, and 2 and 3, hold the same numbers */
    if (i % 2) call.flags = NST_FLAG_DEPENDENT_LAUNCH | NST_FLAG_WEIGHT_READY;
    make(&chains[i], &call);
    assert_int_equal(gpu.cu.StreamCreate(&streams[i], 0), 0);
    for (int which = 0; which < TENSORS; which++) {
      const struct tensor *const t = &chains[i].own[which];
      if (t->bytes) assert_int_equal(gpu_upload(&gpu, t->device, t->given, t->bytes), 0);
    }
  }
  for (int turn = 0; turn < TURNS; turn++)
    for (int i = 0; i < STREAMS; i++) {
      const union call_args args = setup_args(&chains[i]);
      assert_int_equal(launch(&gpu, FUSED, &args, (nst_stream)streams[i]), NST_OK);
    }
  for (int i = 0; i < STREAMS; i++) {
    assert_int_equal(gpu.cu.StreamSynchronize(streams[i]), 0);
    for (int which = 0; which < TENSORS; which++) {
      struct tensor *const t = &chains[i].own[which];
      if (t->bytes) assert_int_equal(gpu_download(&gpu, t->got, t->device, t->bytes), 0);
    }
    assert_int_equal(gpu.cu.StreamDestroy(streams[i]), 0);
  }
  /* The chain one launch at a time, each looked at, gives what each stream's chain must have given. */
  for (int i = 0; i < STREAMS; i += 2) {
    struct setup slow;
    make(&slow, &chains[i].call);
    for (int turn = 0; turn < TURNS; turn++) {
      run(&slow);
      assert_int_equal(setup_check(&slow, "a turn"), 0);
      for (int which = X; which <= RESIDUAL; which++)
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
