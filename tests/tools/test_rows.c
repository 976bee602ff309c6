/* The operations on rows as a table: names, tensors, and that each member of a call arrives in its struct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rows.h"

static void test_names(void **state) {
  (void)state;
  nst_op op;
  nst_strategy strategy;
  for (int i = 0; i < ROWS_OPS; i++) assert_true(op_from_name(op_name((nst_op)i), &op) && op == (nst_op)i);
  assert_string_equal(op_name(NST_OP_ADA_LAYER_NORM_ZERO_FWD), "ada_layer_norm_zero_fwd");
  assert_false(op_from_name("", &op) || op_from_name("layer_norm", &op));
  assert_string_equal(types_name(NST_DTYPE_BF16, NST_DTYPE_F32), "bf16w32");
  assert_string_equal(types_name(NST_DTYPE_F32, NST_DTYPE_F32), "f32");
  assert_string_equal(types_name(NST_DTYPE_F16, NST_DTYPE_F16), "f16");
  assert_string_equal(strategy_name(NST_STRATEGY_LOOP), "loop");
  assert_string_equal(access_name(NST_ACCESS_UNALIGNED), "unaligned");
  assert_true(strategy_from_name("reread", &strategy) && strategy == NST_STRATEGY_REREAD);
  assert_false(strategy_from_name("rere", &strategy));
}

/* The names of the table and of the kernels are the same. */
static void test_symbols(void **state) {
  (void)state;
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    char start[128], end[64];
    assert_int_equal(nst_table_row(i, &k), NST_OK);
    if (!k.symbol) continue;
    snprintf(start, sizeof start, "nst_%s_%s_", op_name(k.op), types_name(k.dtype, k.weight_dtype));
    snprintf(end, sizeof end, "_%s_%s", strategy_name(k.strategy), access_name(k.access));
    assert_memory_equal(k.symbol, start, strlen(start));
    assert_string_equal(k.symbol + strlen(k.symbol) - strlen(end), end);
  }
}

static void test_tensors(void **state) {
  (void)state;
  for (int i = 0; i < ROWS_OPS; i++) {
    const nst_op op = (nst_op)i;
    const int rms = op <= NST_OP_FUSED_ADD_RMS_NORM_FWD, ada = op >= NST_OP_ADA_LAYER_NORM_FWD;
    for (int t = 0; t < ROWS_TENSORS; t++)
      if (op_needs(op, (enum rows_tensor)t)) assert_true(op_has(op, (enum rows_tensor)t));
    assert_true(op_needs(op, ROWS_X) && op_needs(op, ROWS_Y) && op_has(op, ROWS_RSTD));
    assert_int_equal(op_has(op, ROWS_MEAN), !rms);
    assert_int_equal(op_has(op, ROWS_WEIGHT), !ada);
    assert_int_equal(op_has(op, ROWS_SCALE), ada);
    assert_int_equal(op_has(op, ROWS_BIAS), !rms && !ada);
    assert_int_equal(op_has(op, ROWS_GATE), op == NST_OP_ADA_LAYER_NORM_ZERO_FWD);
    assert_int_equal(op_needs(op, ROWS_RESIDUAL), op_has(op, ROWS_RESIDUAL_OUT));
    assert_true(op_eps(op) == (rms ? 1e-6f : 1e-5f));
  }
}

static void test_rows_of_cond(void **state) {
  (void)state;
  assert_int_equal(rows_of_cond(7, 0), 7);
  assert_int_equal(rows_of_cond(7, 1), 7);
  assert_int_equal(rows_of_cond(7, 3), 3);
  assert_int_equal(rows_of_cond(6, 3), 2);
  assert_int_equal(rows_of_cond(2, 100), 1);
  assert_int_equal(rows_of_cond(0, 3), 0);
  assert_int_equal(rows_of_cond(INT32_MAX, INT32_MAX), 1);
}

/* A call in which every member has a value of its own, with the operation's tensors at &place[tensor]. */
static char place[ROWS_TENSORS];

static struct rows_call call_of(nst_op op) {
  struct rows_call c = {.op = op, .dtype = NST_DTYPE_F16, .weight_dtype = NST_DTYPE_F32};
  c.rows = 11, c.n = 12, c.rows_per_cond = 13, c.eps = 0.25f, c.weight_offset = 2.5f, c.flags = 5;
  for (int i = 0; i < ROWS_TENSORS; i++) c.tensor[i] = &place[i], c.stride[i] = 100 + i;
  return c;
}

#define COMMON(a)                                                                                 \
  do {                                                                                            \
    assert_int_equal((a).size, sizeof(a));                                                        \
    assert_true((a).dtype == NST_DTYPE_F16 && (a).rows == 11 && (a).n == 12 && (a).eps == 0.25f); \
    assert_true((a).flags == 5 && (void *)(a).rstd == &place[ROWS_RSTD]);                         \
    assert_true((a).x == &place[ROWS_X] && (a).x_stride == 100 + ROWS_X);                         \
    assert_true((a).y == &place[ROWS_Y] && (a).y_stride == 100 + ROWS_Y);                         \
  } while (0)
#define WEIGHT(a) assert_true((a).weight == &place[ROWS_WEIGHT] && (a).weight_dtype == NST_DTYPE_F32)
#define OFFSET(a) assert_true((a).weight_offset == 2.5f)
#define BIAS(a) assert_true((a).bias == &place[ROWS_BIAS])
#define MEAN(a) assert_true((void *)(a).mean == &place[ROWS_MEAN])
#define RESIDUAL(a)                                                                                  \
  assert_true((a).residual == &place[ROWS_RESIDUAL] && (a).residual_stride == 100 + ROWS_RESIDUAL && \
              (a).residual_out == &place[ROWS_RESIDUAL_OUT] && (a).residual_out_stride == 100 + ROWS_RESIDUAL_OUT)
#define COND(a)                                                                                                     \
  assert_true((a).rows_per_cond == 13 && (a).scale == &place[ROWS_SCALE] && (a).scale_stride == 100 + ROWS_SCALE && \
              (a).shift == &place[ROWS_SHIFT] && (a).shift_stride == 100 + ROWS_SHIFT)

static void test_args(void **state) {
  (void)state;
  for (int i = 0; i < ROWS_OPS; i++) {
    const struct rows_call call = call_of((nst_op)i);
    const union rows_args args = rows_args_of(&call);
    switch (call.op) {
      case NST_OP_RMS_NORM_FWD:
        COMMON(args.rms_norm);
        WEIGHT(args.rms_norm);
        OFFSET(args.rms_norm);
        break;
      case NST_OP_FUSED_ADD_RMS_NORM_FWD:
        COMMON(args.fused_add_rms_norm);
        WEIGHT(args.fused_add_rms_norm);
        OFFSET(args.fused_add_rms_norm);
        RESIDUAL(args.fused_add_rms_norm);
        break;
      case NST_OP_LAYER_NORM_FWD:
        COMMON(args.layer_norm);
        WEIGHT(args.layer_norm);
        BIAS(args.layer_norm);
        MEAN(args.layer_norm);
        break;
      case NST_OP_FUSED_ADD_LAYER_NORM_FWD:
        COMMON(args.fused_add_layer_norm);
        WEIGHT(args.fused_add_layer_norm);
        BIAS(args.fused_add_layer_norm);
        MEAN(args.fused_add_layer_norm);
        RESIDUAL(args.fused_add_layer_norm);
        break;
      case NST_OP_ADA_LAYER_NORM_FWD:
        COMMON(args.ada_layer_norm);
        MEAN(args.ada_layer_norm);
        COND(args.ada_layer_norm);
        break;
      case NST_OP_ADA_LAYER_NORM_ZERO_FWD:
        COMMON(args.ada_layer_norm_zero);
        MEAN(args.ada_layer_norm_zero);
        COND(args.ada_layer_norm_zero);
        assert_true(args.ada_layer_norm_zero.gate == &place[ROWS_GATE] &&
                    args.ada_layer_norm_zero.gate_stride == 100 + ROWS_GATE);
        break;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),        cmocka_unit_test(test_symbols), cmocka_unit_test(test_tensors),
      cmocka_unit_test(test_rows_of_cond), cmocka_unit_test(test_args),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
