/*
 * The whole measurement without a card: the software device computes, a stand-in CUPTI records durations that this test
 * makes up, so that what comes out is known: checked results, cold and warm, the copies, and what becomes of kernels
 * that are wrong or refused.
 */
#include <cuda.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "fake_cupti.h"
#include "half.h"
#include "measure.h"
#include "records.h"
#include "report.h"
#include "scratch.h"
#include "softgpu.h"
#include "tensors.h"
#include "tune.h"

enum { COLD_NS = 2000, WARM_NS = 1500, FLUSH_NS = 70000, COPY_NS = 4000, ROUNDED_COPY_NS = 3000, ROUNDED = 65536 };

static struct fake_cupti *fake;
static struct card card;
static struct bench bench;
static uint64_t clock_ns = 1000;
static int released;       /* lines kept in L2, since the last kernel */
static int flushed;        /* after that */
static int damage_results; /* a kernel's results are overwritten after it */

static int (*launch_soft)(const CUlaunchConfig *, CUfunction, void **, void **);
static int (*fill_soft)(unsigned long long, unsigned char, size_t, void *);
static int (*copy_soft)(unsigned long long, unsigned long long, size_t, void *);

static void record(int kind, uint64_t ns, uint32_t grid, uint32_t block, uint32_t cluster) {
  fake->add(kind, "kernel", clock_ns, clock_ns + ns, grid, block, cluster);
  clock_ns += ns + 100;
}

static int launch_recorded(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
  uint32_t cluster = 0;
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) cluster = config->attrs[i].value.clusterDim.x;
  const int error = launch_soft(config, function, params, extra);
  record(FAKE_KERNEL, flushed ? COLD_NS : WARM_NS, config->gridDimX, config->blockDimX, cluster);
  released = flushed = 0;
  if (damage_results) fill_soft((uintptr_t)bench.out.base, 0x3f, 4, config->hStream);
  return error;
}

static int fill_recorded(unsigned long long to, unsigned char value, size_t bytes, void *stream) {
  record(FAKE_MEMSET, FLUSH_NS, 0, 0, 0);
  flushed = released;
  return fill_soft(to, value, bytes, stream);
}

static int release_recorded(void) {
  released = 1;
  return 0;
}

static int copy_recorded(unsigned long long to, unsigned long long from, size_t bytes, void *stream) {
  record(FAKE_MEMCPY, bytes % ROUNDED ? COPY_NS : ROUNDED_COPY_NS, 0, 0, 0);
  return copy_soft(to, from, bytes, stream);
}

static void *get_proc(void *user, const char *name, int cuda_version) {
  void *function = softgpu_get_proc(user, name, cuda_version);
  if (strcmp(name, "cuLaunchKernelEx") != 0) return function;
  memcpy(&launch_soft, &function, sizeof function);
  int (*ours)(const CUlaunchConfig *, CUfunction, void **, void **) = launch_recorded;
  memcpy(&function, &ours, sizeof function);
  return function;
}

static int open_all(void **state) {
  (void)state;
  char why[512];
  struct problem p;
  fake = fake_cupti_load();
  if (!fake || records_open(fake->file, &p)) return -1;
  if (gpu_open(&card.gpu, GPU_SOFT, why, sizeof why)) return puts(why), -1;
  nst_close(card.gpu.library);
  nst_open_options options = NST_OPEN_OPTIONS_INIT;
  options.get_proc = get_proc;
  if (nst_open(&card.gpu.library, &options) != NST_OK) return puts(nst_last_error()), -1;
  void *fill = gpu_proc(&card.gpu, "cuMemsetD8Async"), *copy = gpu_proc(&card.gpu, "cuMemcpyDtoDAsync");
  void *text = gpu_proc(&card.gpu, "cuGetErrorString");
  memcpy(&fill_soft, &fill, sizeof fill);
  memcpy(&copy_soft, &copy, sizeof copy);
  memcpy(&card.error_string, &text, sizeof text);
  card.memset_async = fill_recorded;
  card.copy_async = copy_recorded;
  card.reset_persisting = release_recorded;
  bench = (struct bench){.card = &card};
  return arena_reserve(&bench, &bench.flush, 1024, &p); /* no L2 to flush here */
}

static int close_all(void **state) {
  (void)state;
  bench_close(&bench);
  records_close();
  gpu_close(&card.gpu);
  return 0;
}

static struct workload workload(nst_op op, nst_dtype dtype, int64_t rows, int64_t n) {
  struct workload w;
  workload_init(&w, op);
  strcpy(w.id, "w");
  w.dtype = w.weight_dtype = dtype, w.rows = rows, w.n = n;
  return w;
}

static const struct measure_options how = {5, 8, 1};

static void near(double got, double expected) {
  if (!(got > expected - 1e-9 && got < expected + 1e-9)) fail_msg("%g, expected %g", got, expected);
}

static void test_times_and_check(void **state) {
  (void)state;
  struct problem p;
  struct copy_floor floor;
  for (int op = 0; op < ROWS_OPS; op++)
    for (int dtype = NST_DTYPE_F16; dtype <= NST_DTYPE_F32; dtype++) {
      const struct workload w = workload((nst_op)op, (nst_dtype)dtype, 5, 1000);
      struct candidate c = {.index = CANDIDATE_CHOSEN};
      if (measure(&bench, &w, &how, &c, 1, &floor, &p)) fail_msg("%s", p.text);
      if (c.state != CANDIDATE_TIMED) fail_msg("%s", c.reason);
      assert_int_equal(c.cold.count, 5);
      near(c.cold.median, COLD_NS / 1e3);
      near(c.cold.min, COLD_NS / 1e3);
      near(c.warm.median, WARM_NS / 1e3);
      near(floor.plain.median, COPY_NS / 1e3);
      near(floor.us, ROUNDED_COPY_NS / 1e3); /* the faster of both */
      assert_int_equal(floor.bytes, workload_bytes(&w) / 2);
      assert_int_equal(floor.rounded_bytes % ROUNDED, 0);
      assert_int_equal(c.checked_rows, 5);
      assert_true(c.max_ulp > 0 && (op_has((nst_op)op, ROWS_MEAN) || c.max_ulp < 8)); /* y near 0 has few digits */
      assert_true(c.grid > 0 && c.block >= 32 && c.choice[0]);
      assert_string_equal(c.kernel, "kernel");
    }
}

static void test_strided_and_off_the_boundary(void **state) {
  (void)state;
  struct problem p;
  struct workload w = workload(NST_OP_FUSED_ADD_RMS_NORM_FWD, NST_DTYPE_BF16, 40, 333);
  struct candidate c = {.index = CANDIDATE_CHOSEN};
  w.x_stride = 400, w.offset = 3, w.weight_dtype = NST_DTYPE_F32;
  if (measure(&bench, &w, &how, &c, 1, NULL, &p)) fail_msg("%s", p.text);
  if (c.state != CANDIDATE_TIMED) fail_msg("%s", c.reason);
  assert_int_equal(c.checked_rows, 8); /* of 40 */
}

static void test_few_rows_of_conditioning(void **state) {
  (void)state;
  struct problem p;
  struct workload w = workload(NST_OP_ADA_LAYER_NORM_ZERO_FWD, NST_DTYPE_F16, 11, 200);
  struct candidate c = {.index = CANDIDATE_CHOSEN};
  w.rows_per_cond = 4, w.x_stride = 208, w.offset = 8;
  if (measure(&bench, &w, &how, &c, 1, NULL, &p)) fail_msg("%s", p.text);
  if (c.state != CANDIDATE_TIMED) fail_msg("%s", c.reason);
}

static void test_each_input_may_be_absent(void **state) {
  (void)state;
  struct problem p;
  for (int op = 0; op < ROWS_OPS; op++)
    for (int i = 0; i < ROWS_INPUTS; i++) {
      struct workload w = workload((nst_op)op, NST_DTYPE_F32, 3, 64);
      struct candidate c = {.index = CANDIDATE_CHOSEN};
      if (!w.has[i] || op_needs((nst_op)op, (enum rows_tensor)i)) continue;
      w.has[i] = 0;
      if (measure(&bench, &w, &how, &c, 1, NULL, &p)) fail_msg("%s", p.text);
      if (c.state != CANDIDATE_TIMED) fail_msg("%s without %s: %s", op_name(w.op), rows_tensor_name(i), c.reason);
    }
}

static void test_a_wrong_result_is_not_timed(void **state) {
  (void)state;
  struct problem p;
  struct copy_floor floor;
  const struct workload w = workload(NST_OP_RMS_NORM_FWD, NST_DTYPE_BF16, 4, 128);
  struct candidate c = {.index = CANDIDATE_CHOSEN};
  damage_results = 1;
  const int failed = measure(&bench, &w, &how, &c, 1, &floor, &p);
  damage_results = 0;
  if (failed) fail_msg("%s", p.text);
  assert_int_equal(c.state, CANDIDATE_WRONG);
  assert_int_equal(c.cold.count, 0);
  assert_non_null(strstr(c.reason, "y[0][0] is 0.74609375, expected"));
  assert_true(floor.us > 0);
}

static void test_candidates(void **state) {
  (void)state;
  struct problem p;
  struct workload w = workload(NST_OP_RMS_NORM_FWD, NST_DTYPE_BF16, 6, 1016);
  struct candidate list[64];
  nst_kernel_info k = NST_KERNEL_INFO_INIT;
  for (w.offset = 0; w.offset <= 1; w.offset++) { /* off the boundary only kernels of unaligned access serve */
    const size_t count = candidates_of(&w, NULL, list, 64);
    assert_in_range(count, 4, 63);
    if (measure(&bench, &w, &how, list, count, NULL, &p)) fail_msg("%s", p.text);
    for (size_t i = 0; i < count; i++) {
      assert_int_equal(nst_table_row(list[i].index, &k), NST_OK);
      assert_true(k.bucket == 0 || (k.bucket >= 1016 && k.bucket <= 2048));
      assert_int_not_equal(k.access, NST_ACCESS_EXACT);
      const int serves = w.offset == 0 || k.access == NST_ACCESS_UNALIGNED;
      if (list[i].state != (serves ? CANDIDATE_TIMED : CANDIDATE_REFUSED))
        fail_msg("%s: state %d, %s", k.symbol, (int)list[i].state, list[i].reason);
      if (serves) near(list[i].cold.median, COLD_NS / 1e3);
      if (!serves) assert_true(strlen(list[i].reason) > 10);
      assert_string_equal(list[i].choice, "");
    }
  }
  w.n = 1024;
  size_t exact = 0;
  const size_t count = candidates_of(&w, NULL, list, 64);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(nst_table_row(list[i].index, &k), NST_OK);
    exact += k.access == NST_ACCESS_EXACT && k.bucket == 1024;
  }
  assert_in_range(exact, 2, count - 2);
  const nst_strategy strategy = NST_STRATEGY_LOOP;
  assert_int_equal(candidates_of(&w, &strategy, list, 64), 2); /* masked and unaligned */
  assert_int_equal(nst_table_row(list[0].index, &k), NST_OK);
  assert_int_equal(candidate_by_symbol(k.symbol), list[0].index);
  assert_true(candidate_by_symbol("no_such_kernel") == CANDIDATE_CHOSEN);
}

static void test_random_numbers(void **state) {
  (void)state;
  enum { COUNT = 4096 };
  uint32_t numbers[COUNT];
  for (int dtype = NST_DTYPE_F16; dtype <= NST_DTYPE_F32; dtype++) {
    int negative = 0;
    double large = 0, small = 1;
    random_numbers((nst_dtype)dtype, numbers, COUNT, 3);
    for (int64_t i = 0; i < COUNT; i++) {
      const double v = half_load((nst_dtype)dtype, numbers, i);
      negative += v < 0;
      if (fabs(v) > large) large = fabs(v);
      if (fabs(v) < small) small = fabs(v);
    }
    assert_in_range(negative, COUNT / 2 - 200, COUNT / 2 + 200);
    assert_true(large < 4 && large > 0.4 && small >= 0x1p-7 && small < 0.05);
  }
}

/* ---- What is written ---------------------------------------------------------------------------------------- */

static void test_reports(void **state) {
  (void)state;
  const char *json_name = scratch("test_measure.json"), *csv_name = scratch("test_measure.csv");
  const char *markdown_name = scratch("test_measure.md");
  struct problem p;
  struct candidate list[] = {{.index = CANDIDATE_CHOSEN}, {.state = CANDIDATE_REFUSED, .reason = "a \"reason\""}};
  struct result result = {
      .workload = workload(NST_OP_RMS_NORM_FWD, NST_DTYPE_BF16, 4, 128), .candidates = list, .count = 1};
  result.workload.published_us = 4;
  if (measure(&bench, &result.workload, &how, list, 1, &result.floor, &p)) fail_msg("%s", p.text);
  result.count = 2;
  const struct report report = {.card = &card, .date = "today", .command = "nst-bench", .results = &result, .count = 1};
  if (report_json(json_name, &report, &p) || report_csv(csv_name, &report, &p) ||
      report_markdown(markdown_name, &report, &p))
    fail_msg("%s", p.text);

  json_t *json = json_load_file(json_name, 0, NULL);
  const json_t *w = json_array_get(json_object_get(json, "workloads"), 0);
  const json_t *timed = json_array_get(json_object_get(w, "results"), 0);
  assert_string_equal(json_string_value(json_object_get(json, "build_id")), nst_build_id());
  assert_int_equal(json_integer_value(json_object_get(w, "bytes")), 2 * 4 * 128 * 2 + 128 * 2);
  near(json_real_value(json_object_get(w, "copy_us")), 3);
  near(json_real_value(json_object_get(json_object_get(timed, "cold_us"), "median")), 2);
  near(json_real_value(json_object_get(json_object_get(timed, "warm_us"), "median")), 1.5);
  assert_string_equal(json_string_value(json_object_get(timed, "state")), "timed");
  json_decref(json);

  char text[4096];
  FILE *from = fopen(csv_name, "r");
  assert_non_null(from);
  text[fread(text, 1, sizeof text - 1, from)] = 0;
  fclose(from);
  assert_non_null(strstr(text, "\"w\",rms_norm_fwd,bf16,4,128,2304,timed,kernel,"));
  assert_non_null(strstr(text, "\"a \"\"reason\"\"\""));
  from = fopen(markdown_name, "r");
  assert_non_null(from);
  text[fread(text, 1, sizeof text - 1, from)] = 0;
  fclose(from);
  assert_non_null(strstr(text, "| 4x128 | 2.00 | 2.00-2.00 | 1.50 | 0.002 | 0.00 | 3.00 | 0.667 | 4.00 | 0.500 |"));
  remove(json_name);
  remove(csv_name);
  remove(markdown_name);
  assert_int_equal(report_json("/no/such/folder/a.json", &report, &p), -1);
  assert_non_null(strstr(p.text, "/no/such/folder/a.json"));
}

static void test_tuner(void **state) {
  (void)state;
  struct problem p;
  struct options o = {.tune = scratch("test_measure_tune.json"),
                      .ops = "rms_norm_fwd",
                      .dtypes = "bf16",
                      .buckets = "64,1024",
                      .accesses = "exact,masked",
                      .row_counts = "1,9",
                      .json = scratch("test_measure_log.json")};
  remove(o.tune);
  if (tune(&bench, &o, "command", &p)) fail_msg("%s", p.text);
  json_t *json = json_load_file(o.tune, 0, NULL), *log = json_load_file(o.json, 0, NULL);
  const json_t *entries = json_object_get(json, "entries");
  assert_int_equal(json_array_size(entries), 4);
  for (size_t i = 0; i < 4; i++) {
    const json_t *entry = json_array_get(entries, i), *ranges = json_object_get(entry, "ranges");
    assert_int_equal(json_integer_value(json_object_get(entry, "bucket")), i < 2 ? 64 : 1024);
    assert_string_equal(json_string_value(json_object_get(entry, "access")), i % 2 ? "masked" : "exact");
    assert_int_equal(json_array_size(ranges), 1); /* all kernels take the same time here */
    near(json_real_value(json_object_get(json_array_get(ranges, 0), "time_us")), 2);
  }
  assert_int_equal(json_array_size(json_object_get(log, "measured")), 8);
  json_decref(json);
  json_decref(log);
  remove(o.tune);
  remove(o.json);
  /* Types of a weight make no kind of call where there is none. */
  o.ops = "ada_layer_norm_fwd", o.dtypes = "bf16w32,bf16", o.buckets = "64", o.accesses = "exact", o.json = NULL;
  if (tune(&bench, &o, "command", &p)) fail_msg("%s", p.text);
  json = json_load_file(o.tune, 0, NULL);
  entries = json_object_get(json, "entries");
  assert_int_equal(json_array_size(entries), 1);
  assert_string_equal(json_string_value(json_object_get(json_array_get(entries, 0), "types")), "bf16");
  json_decref(json);
  remove(o.tune);
  o.ops = "rms_norm_fwd", o.dtypes = "bf16", o.accesses = "exact,masked";
  o.buckets = "65";
  assert_int_equal(tune(&bench, &o, "command", &p), -1);
  assert_non_null(strstr(p.text, "no kind of call is rms_norm_fwd bf16 65"));
  o.buckets = "64", o.row_counts = "9,1";
  assert_int_equal(tune(&bench, &o, "command", &p), -1);
  assert_non_null(strstr(p.text, "--row-counts has \"1\""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_times_and_check),
      cmocka_unit_test(test_strided_and_off_the_boundary),
      cmocka_unit_test(test_few_rows_of_conditioning),
      cmocka_unit_test(test_each_input_may_be_absent),
      cmocka_unit_test(test_a_wrong_result_is_not_timed),
      cmocka_unit_test(test_candidates),
      cmocka_unit_test(test_random_numbers),
      cmocka_unit_test(test_reports),
      cmocka_unit_test(test_tuner),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
