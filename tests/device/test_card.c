/*
 * What only a card can show: more than 2^31 elements, rows that lie further apart than 2^31 elements, one row of nearly
 * 2^31, and CUDA graphs. On the software device every test here is skipped, visibly.
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
#include "oracle.h"

static struct gpu gpu;

/* ---- Graphs --------------------------------------------------------------------------------------------------- */

/* The driver's functions for graphs, in the forms that gpu_proc finds. */
static struct {
  int (*BeginCapture)(void *stream, int mode);
  int (*EndCapture)(void *stream, void **graph);
  int (*Instantiate)(void **exec, void *graph, unsigned long long flags);
  int (*Launch)(void *exec, void *stream);
  int (*DestroyExec)(void *exec);
  int (*Destroy)(void *graph);
} graphs;

static void find_graphs(void) {
  *(void **)&graphs.BeginCapture = gpu_proc(&gpu, "cuStreamBeginCapture");
  *(void **)&graphs.EndCapture = gpu_proc(&gpu, "cuStreamEndCapture");
  *(void **)&graphs.Instantiate = gpu_proc(&gpu, "cuGraphInstantiateWithFlags");
  *(void **)&graphs.Launch = gpu_proc(&gpu, "cuGraphLaunch");
  *(void **)&graphs.DestroyExec = gpu_proc(&gpu, "cuGraphExecDestroy");
  *(void **)&graphs.Destroy = gpu_proc(&gpu, "cuGraphDestroy");
  assert_true(graphs.BeginCapture && graphs.EndCapture && graphs.Instantiate && graphs.Launch && graphs.DestroyExec &&
              graphs.Destroy);
}

/* Replays a graph and looks at the result, `times` times, each time from poisoned outputs. */
static void replay(void *graph, struct setup *s, int times) {
  void *exec = NULL;
  assert_int_equal(graphs.Instantiate(&exec, graph, 0), 0);
  for (int i = 0; i < times; i++) {
    assert_int_equal(setup_put(s), 0);
    assert_int_equal(graphs.Launch(exec, gpu.stream), 0);
    assert_int_equal(setup_fetch(s), 0);
    assert_int_equal(setup_check(s, "replay"), 0);
  }
  assert_int_equal(graphs.DestroyExec(exec), 0);
}

/* Runs first, in a process that has launched nothing: a capture must not need what a first launch loads, or say so. */
static void test_first_call_captured(void **state) {
  (void)state;
  if (!gpu.is_card) skip();
  find_graphs();
  const struct call call = call_of(NST_OP_RMS_NORM_FWD, NST_DTYPE_F16, NST_DTYPE_F16, 1, 4);
  struct setup s;
  assert_int_equal(setup_make(&s, &gpu, &call), 0);
  assert_int_equal(setup_put(&s), 0);
  const union rows_args args = setup_args(&s);
  void *graph = NULL;
  assert_int_equal(graphs.BeginCapture(gpu.stream, 1), 0); /* 1: thread local */
  const nst_status status = rows_launch(gpu.library, call.op, &args, gpu.stream);
  const int ended = graphs.EndCapture(gpu.stream, &graph);
  if (status == NST_OK) {
    assert_int_equal(ended, 0);
    replay(graph, &s, 2);
    assert_int_equal(graphs.Destroy(graph), 0);
  } else {
    printf("refused: %s\n", nst_last_error());
    assert_int_equal(status, NST_ERROR_DRIVER_CALL);
    assert_non_null(strstr(nst_last_error(), "nst_preload"));
  }
  setup_free(&s);
}

/* After nst_preload a chain of calls, dependent launches among them, is captured and replayed. */
static void test_captured_chain(void **state) {
  (void)state;
  if (!gpu.is_card) skip();
  find_graphs();
  assert_int_equal(nst_preload(gpu.library), NST_OK);
  static const int64_t lengths[] = {128, 1001, 4096, 16384, 131072};
  for (size_t l = 0; l < ROWS_OPS * sizeof lengths / sizeof *lengths; l++) {
    struct call call =
        call_of((nst_op)(l % ROWS_OPS), NST_DTYPE_BF16, NST_DTYPE_BF16, 33, lengths[l / ROWS_OPS]);
    call.flags = NST_FLAG_DEPENDENT_LAUNCH, call.rows_per_cond = 4;
    struct setup s;
    assert_int_equal(setup_make(&s, &gpu, &call), 0);
    const union rows_args args = setup_args(&s);
    void *graph = NULL;
    assert_int_equal(graphs.BeginCapture(gpu.stream, 1), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(rows_launch(gpu.library, call.op, &args, gpu.stream), NST_OK);
    assert_int_equal(graphs.EndCapture(gpu.stream, &graph), 0);
    replay(graph, &s, 3);
    assert_int_equal(graphs.Destroy(graph), 0);
    setup_free(&s);
  }
}

/* ---- Large tensors -------------------------------------------------------------------------------------------- */

/* Rows are windows into one pool of random numbers, each beginning an element further on: distinct, and made by
 * copying. Between the rows lie zeros. All conditioning is the row that is otherwise the weight. */
struct large {
  nst_op op;
  nst_dtype dtype;
  int64_t rows, n, stride;
  char *pool, *weight; /* host */
  char *x, *y, *w;     /* device */
};

#define STAGE 256 /* rows that are uploaded at once */

static void large_make(struct large *l) {
  const size_t size = half_size(l->dtype);
  const int64_t length = l->n + l->rows;
  l->pool = malloc((size_t)length * size);
  l->weight = malloc((size_t)l->n * size);
  char *const stage = calloc((size_t)(STAGE * l->stride), size);
  assert_true(l->pool && l->weight && stage);
  for (int64_t i = 0; i < length; i++)
    half_store(l->dtype, l->pool, i, ((double)(scramble((uint64_t)i) >> 11) * 0x1p-53 - 0.5) * 4);
  for (int64_t i = 0; i < l->n; i++)
    half_store(l->dtype, l->weight, i, 0.5 + (double)(scramble(~(uint64_t)i) >> 11) * 0x1p-53);
  l->x = gpu_alloc(&gpu, (size_t)(l->rows * l->stride) * size);
  l->y = gpu_alloc(&gpu, (size_t)(l->rows * l->n) * size);
  l->w = gpu_alloc(&gpu, (size_t)l->n * size);
  assert_true(l->x && l->y && l->w);
  assert_int_equal(gpu_upload(&gpu, l->w, l->weight, (size_t)l->n * size), 0);
  for (int64_t row = 0; row < l->rows; row += STAGE) {
    const int64_t count = l->rows - row < STAGE ? l->rows - row : STAGE;
    for (int64_t r = 0; r < count; r++)
      memcpy(stage + (size_t)(r * l->stride) * size, l->pool + (size_t)(row + r) * size, (size_t)l->n * size);
    assert_int_equal(
        gpu_upload(&gpu, l->x + (size_t)(row * l->stride) * size, stage, (size_t)(count * l->stride) * size), 0);
  }
  free(stage);
}

static void large_free(struct large *l) {
  gpu_free(&gpu, l->x);
  gpu_free(&gpu, l->y);
  gpu_free(&gpu, l->w);
  free(l->pool);
  free(l->weight);
}

/* The first, the last and 1000 random rows against the reference. */
static void large_check(struct large *l) {
  const size_t size = half_size(l->dtype);
  struct rows_call call = {.op = l->op, .dtype = l->dtype, .rows = l->rows, .n = l->n, .rows_per_cond = l->rows,
                           .eps = op_eps(l->op)};
  struct oracle_rows in = {.op = l->op, .n = l->n, .x = {l->pool, l->dtype, 1}, .rows_per_cond = l->rows,
                           .eps = call.eps};
  const struct oracle_tensor row_of_all = {l->weight, l->dtype, 0};
  call.tensor[ROWS_X] = l->x, call.stride[ROWS_X] = l->stride, call.tensor[ROWS_Y] = l->y;
  if (op_has(l->op, ROWS_SCALE)) {
    call.tensor[ROWS_SCALE] = call.tensor[ROWS_SHIFT] = call.tensor[ROWS_GATE] = l->w;
    in.scale = in.shift = row_of_all;
    if (op_has(l->op, ROWS_GATE)) in.gate = row_of_all;
  } else {
    call.tensor[ROWS_WEIGHT] = l->w;
    in.weight = row_of_all;
  }
  const union rows_args args = rows_args_of(&call);
  assert_int_equal(rows_launch(gpu.library, l->op, &args, gpu.stream), NST_OK);
  assert_int_equal(gpu_sync(&gpu), 0);
  struct oracle_report report = ORACLE_REPORT_INIT;
  char *const y = malloc((size_t)l->n * size);
  assert_non_null(y);
  for (int i = 0; i < 1002; i++) {
    const int64_t row = i == 0 ? 0 : i == 1 ? l->rows - 1 : (int64_t)(scramble((uint64_t)i) % (uint64_t)l->rows);
    assert_int_equal(gpu_download(&gpu, y, l->y + (size_t)(row * l->n) * size, (size_t)l->n * size), 0);
    /* The result is one row, so its stride is 0. */
    const struct oracle_result result = {.y = {y, l->dtype, 0}};
    oracle_compare(&in, &result, row, &report);
  }
  free(y);
  if (report.wrong)
    fail_msg("%s[%lld][%lld] is %g, expected %g", report.what, (long long)report.row, (long long)report.column,
             report.got, report.expected);
}

static void large(struct large l) {
  if (!gpu.is_card) skip();
  large_make(&l);
  large_check(&l);
  large_free(&l);
}

static void test_many_elements(void **state) {
  (void)state;
  large((struct large){.op = NST_OP_RMS_NORM_FWD, .dtype = NST_DTYPE_F16, .rows = 175000, .n = 12288, .stride = 12288});
}

/* x is the slice [:, :5120] of a [150000, 15360] tensor. */
static void test_far_rows(void **state) {
  (void)state;
  large((struct large){.op = NST_OP_RMS_NORM_FWD, .dtype = NST_DTYPE_BF16, .rows = 150000, .n = 5120, .stride = 15360});
}

static void test_far_conditioned_rows(void **state) {
  (void)state;
  large((struct large){
      .op = NST_OP_ADA_LAYER_NORM_ZERO_FWD, .dtype = NST_DTYPE_BF16, .rows = 150000, .n = 5120, .stride = 15360});
}

/* One row of 2^31 - 1 elements, the longest there is: x in a repeated pattern, so that the host need not hold it. */
static void test_longest_row(void **state) {
  (void)state;
  if (!gpu.is_card) skip();
  enum { PATTERN = 1000003 }; /* a prime: no period of a kernel's divides it */
  const int64_t n = INT32_MAX;
  uint16_t *const pattern = malloc(PATTERN * sizeof *pattern), *const y = malloc(PATTERN * sizeof *y);
  assert_true(pattern && y);
  double squares = 0, tail = 0;
  for (int64_t i = 0; i < PATTERN; i++) {
    pattern[i] = half_f16_from((double)(scramble((uint64_t)i) >> 11) * 0x1p-53 * 4 - 2);
    squares += half_f16_to(pattern[i]) * half_f16_to(pattern[i]);
    if (i < n % PATTERN) tail += half_f16_to(pattern[i]) * half_f16_to(pattern[i]);
  }
  const double rstd = 1 / sqrt((squares * (double)(n / PATTERN) + tail) / (double)n + 1e-6);
  char *const x = gpu_alloc(&gpu, (size_t)n * 2), *const out = gpu_alloc(&gpu, 4);
  assert_true(x && out);
  for (int64_t i = 0; i < n; i += PATTERN)
    assert_int_equal(gpu_upload(&gpu, x + i * 2, pattern, (size_t)(n - i < PATTERN ? n - i : PATTERN) * 2), 0);
  nst_rms_norm_fwd_args args = NST_RMS_NORM_FWD_ARGS_INIT;
  args.dtype = NST_DTYPE_F16, args.rows = 1, args.n = n, args.x = x, args.y = x, args.rstd = (float *)(void *)out;
  assert_int_equal(nst_rms_norm_fwd(gpu.library, &args, gpu.stream), NST_OK);
  assert_int_equal(gpu_sync(&gpu), 0);
  float got;
  assert_int_equal(gpu_download(&gpu, &got, out, sizeof got), 0);
  /* The oracle's limit for rstd: 28 levels above vectors of 8. */
  assert_true(fabs((double)got / rstd - 1) < ((8 + 28 + 5) / 2.0 + 1) * 0x1p-24);
  /* The first, the last and some other stretches of y. */
  for (int part = 0; part < 40; part++) {
    const int64_t turns = n / PATTERN, some = (int64_t)(scramble((uint64_t)part) % (uint64_t)turns);
    const int64_t turn = part == 0 ? 0 : part == 1 ? turns : some;
    const int64_t count = turn == turns ? n % PATTERN : PATTERN;
    assert_int_equal(gpu_download(&gpu, y, x + turn * PATTERN * 2, (size_t)count * 2), 0);
    for (int64_t i = 0; i < count; i++)
      assert_true(half_distance(NST_DTYPE_F16, half_f16_to(y[i]), half_f16_to(pattern[i]) * rstd) < 0.52);
  }
  gpu_free(&gpu, x);
  gpu_free(&gpu, out);
  free(pattern);
  free(y);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_call_captured), /* first, see there */
      cmocka_unit_test(test_captured_chain),
      cmocka_unit_test(test_many_elements),
      cmocka_unit_test(test_far_rows),
      cmocka_unit_test(test_far_conditioned_rows),
      cmocka_unit_test(test_longest_row),
  };
  const struct options options = options_read(argc, argv);
  device_open(&gpu, options.device);
  const int failed = cmocka_run_group_tests_name("card", tests, NULL, NULL);
  gpu_close(&gpu);
  return failed;
}
