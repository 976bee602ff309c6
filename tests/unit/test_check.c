/*
 * Arguments: each wrong in each way. A refused call has the right status and a sentence that begins with the argument,
 * launches nothing and writes nothing. What the header allows is launched, with the parameters that it should have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver.h"

#define ROWS 4
#define N 64
#define ROOM 65536 /* bytes of each tensor */
#define POISON 0xA5

static nst_library *library;

/* Real memory, so that a write would show. */
static _Alignas(64) unsigned char x[ROOM], residual[ROOM], weight[ROOM], y[ROOM], residual_out[ROOM], rstd[ROOM];

union args {
  nst_rms_norm_fwd_args norm;
  nst_fused_add_rms_norm_fwd_args fused;
};

/* Good arguments: rows of bf16 in bigger tensors, everything that is optional present. */
static union args good(nst_op op) {
  union args args;
  if (op == NST_OP_RMS_NORM_FWD) {
    args.norm = (nst_rms_norm_fwd_args){.size = sizeof args.norm,
                                        .dtype = NST_DTYPE_BF16,
                                        .rows = ROWS,
                                        .n = N,
                                        .x = x,
                                        .x_stride = 80,
                                        .weight = weight,
                                        .y = y,
                                        .y_stride = 96,
                                        .rstd = (float *)(void *)rstd,
                                        .eps = 1e-5f};
  } else {
    args.fused = (nst_fused_add_rms_norm_fwd_args){.size = sizeof args.fused,
                                                   .dtype = NST_DTYPE_BF16,
                                                   .rows = ROWS,
                                                   .n = N,
                                                   .x = x,
                                                   .x_stride = 80,
                                                   .residual = residual,
                                                   .residual_stride = 72,
                                                   .weight = weight,
                                                   .y = y,
                                                   .y_stride = 96,
                                                   .residual_out = residual_out,
                                                   .residual_out_stride = 112,
                                                   .rstd = (float *)(void *)rstd,
                                                   .eps = 1e-5f};
  }
  return args;
}

static nst_status call(nst_op op, const void *args) {
  return op == NST_OP_RMS_NORM_FWD ? nst_rms_norm_fwd(library, args, NULL)
                                   : nst_fused_add_rms_norm_fwd(library, args, NULL);
}

static nst_status explain(nst_op op, const void *args) {
  nst_device_facts device = {sizeof device, 90, 132};
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  return nst_explain(op, args, &device, &info);
}

static void poison(void) {
  memset(y, POISON, ROOM);
  memset(residual_out, POISON, ROOM);
  memset(rstd, POISON, ROOM);
  fake_launched.count = 0;
}

static void assert_untouched(void) {
  for (size_t i = 0; i < ROOM; i++) {
    if (y[i] != POISON || residual_out[i] != POISON || rstd[i] != POISON) {
      fail_msg("byte %zu of an output was written", i);
    }
  }
  assert_int_equal(fake_launched.count, 0);
}

/* The sentence begins with `begin` and contains `middle`. */
static void assert_sentence(const char *begin, const char *middle) {
  const char *sentence = nst_last_error();
  if (strncmp(sentence, begin, strlen(begin)) != 0 || !strstr(sentence, middle)) {
    fail_msg("the sentence \"%s\" should begin with \"%s\" and contain \"%s\"", sentence, begin, middle);
  }
}

static void assert_refused(nst_op op, const void *args, nst_status status, const char *begin, const char *middle) {
  poison();
  nst_status was = call(op, args);
  if (was != status) {
    fail_msg("%s instead of %s (\"%s...\")", nst_status_name(was), nst_status_name(status), begin);
  }
  assert_sentence(begin, middle);
  assert_untouched();
  assert_int_equal(explain(op, args), status);
  assert_sentence(begin, middle);
}

static void assert_launched(nst_op op, const void *args) {
  poison();
  if (call(op, args) != NST_OK) {
    fail_msg("refused: %s", nst_last_error());
  }
  assert_int_equal(fake_launched.count, 1);
  assert_int_equal(explain(op, args), NST_OK);
}

/* Both operations with one member changed. */
#define REFUSED(member, value, status, begin, middle)                                         \
  do {                                                                                        \
    union args args_ = good(NST_OP_RMS_NORM_FWD);                                             \
    args_.norm.member = (value);                                                              \
    assert_refused(NST_OP_RMS_NORM_FWD, &args_.norm, (status), (begin), (middle));            \
    args_ = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);                                              \
    args_.fused.member = (value);                                                             \
    assert_refused(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args_.fused, (status), (begin), (middle)); \
  } while (0)
#define LAUNCHED(member, value)                                   \
  do {                                                            \
    union args args_ = good(NST_OP_RMS_NORM_FWD);                 \
    args_.norm.member = (value);                                  \
    assert_launched(NST_OP_RMS_NORM_FWD, &args_.norm);            \
    args_ = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);                  \
    args_.fused.member = (value);                                 \
    assert_launched(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args_.fused); \
  } while (0)

/* The fused operation alone. */
#define FUSED_REFUSED(member, value, status, begin, middle)                                   \
  do {                                                                                        \
    union args args_ = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);                                   \
    args_.fused.member = (value);                                                             \
    assert_refused(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args_.fused, (status), (begin), (middle)); \
  } while (0)
#define FUSED_LAUNCHED(member, value)                             \
  do {                                                            \
    union args args_ = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);       \
    args_.fused.member = (value);                                 \
    assert_launched(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args_.fused); \
  } while (0)

/* ---- Scalars ------------------------------------------------------------------------------------------------- */

static void test_good_arguments_reach_the_kernel(void **state) {
  (void)state;
  union args args = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);
  args.fused.weight_offset = 1.0f;
  args.fused.flags = NST_FLAG_ROUND_RESIDUAL | NST_FLAG_DEPENDENT_LAUNCH;
  nst_stream stream = (nst_stream)(uintptr_t)0x1234;
  poison();
  assert_int_equal(nst_fused_add_rms_norm_fwd(library, &args.fused, stream), NST_OK);
  const struct nst_rows_params *params = &fake_launched.params;
  assert_int_equal(fake_launched.count, 1);
  assert_ptr_equal(fake_launched.stream, stream);
  assert_true(fake_launched.dependent);
  assert_ptr_equal(params->x, x);
  assert_ptr_equal(params->residual, residual);
  assert_ptr_equal(params->weight, weight);
  assert_ptr_equal(params->y, y);
  assert_ptr_equal(params->residual_out, residual_out);
  assert_ptr_equal(params->rstd, rstd);
  assert_int_equal(params->x_stride, 160);
  assert_int_equal(params->residual_stride, 144);
  assert_int_equal(params->y_stride, 192);
  assert_int_equal(params->residual_out_stride, 224);
  assert_int_equal(params->rows, ROWS);
  assert_int_equal(params->n, N);
  assert_int_equal(params->flags, args.fused.flags);
  assert_true(params->eps == 1e-5f && params->weight_offset == 1.0f && params->inv_n == 1.0f / N);

  args = good(NST_OP_RMS_NORM_FWD);
  args.norm.x_stride = 0; /* dense */
  args.norm.dtype = NST_DTYPE_F32;
  args.norm.n = 3;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  assert_false(fake_launched.dependent);
  assert_int_equal(params->x_stride, 12);
  assert_int_equal(params->y_stride, 384);
  assert_null(params->residual);
  assert_null(params->residual_out);
  assert_true(params->inv_n == (float)(1.0 / 3.0));

  args = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);
  args.fused.rows = 1; /* strides are not used, whatever they are */
  args.fused.x_stride = 4194304, args.fused.y_stride = 1, args.fused.residual_stride = -7;
  args.fused.residual_out_stride = INT64_MAX;
  assert_launched(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args.fused);
  assert_true(params->x_stride == 0 && params->residual_stride == 0 && params->y_stride == 0);
  assert_int_equal(params->residual_out_stride, 0);
}

static void test_absent_pointers(void **state) {
  (void)state;
  union args args = good(NST_OP_RMS_NORM_FWD);
  poison();
  assert_int_equal(nst_rms_norm_fwd(NULL, &args.norm, NULL), NST_ERROR_NULL_POINTER);
  assert_sentence("library is NULL", "nst_open");
  args = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);
  assert_int_equal(nst_fused_add_rms_norm_fwd(NULL, &args.fused, NULL), NST_ERROR_NULL_POINTER);
  assert_sentence("library is NULL", "nst_open");
  assert_untouched();
  assert_refused(NST_OP_RMS_NORM_FWD, NULL, NST_ERROR_NULL_POINTER, "args is NULL", "nst_rms_norm_fwd_args");
  assert_refused(NST_OP_FUSED_ADD_RMS_NORM_FWD, NULL, NST_ERROR_NULL_POINTER, "args is NULL",
                 "nst_fused_add_rms_norm_fwd_args");
  REFUSED(x, NULL, NST_ERROR_NULL_POINTER, "x is NULL", "rows = 4, n = 64");
  REFUSED(y, NULL, NST_ERROR_NULL_POINTER, "y is NULL", "rows = 4, n = 64");
  FUSED_REFUSED(residual, NULL, NST_ERROR_NULL_POINTER, "residual is NULL", "rows = 4");
  LAUNCHED(weight, NULL);
  assert_null(fake_launched.params.weight);
  LAUNCHED(rstd, NULL);
  assert_null(fake_launched.params.rstd);
  FUSED_LAUNCHED(residual_out, NULL);
  assert_null(fake_launched.params.residual_out);
}

static void test_sizes(void **state) {
  (void)state;
  REFUSED(size, 0, NST_ERROR_STRUCT_SIZE, "size = 0:", "rms_norm_fwd_args) = ");
  REFUSED(size, sizeof(nst_rms_norm_fwd_args) - 1, NST_ERROR_STRUCT_SIZE, "size = ", "expected sizeof(nst_");
  REFUSED(size, sizeof(nst_fused_add_rms_norm_fwd_args) + 8, NST_ERROR_STRUCT_SIZE, "size = ", "expected sizeof(nst_");
}

static void test_types(void **state) {
  (void)state;
  REFUSED(dtype, (nst_dtype)0, NST_ERROR_DTYPE, "dtype = 0:", "NST_DTYPE_F32 (3)");
  REFUSED(dtype, (nst_dtype)4, NST_ERROR_DTYPE, "dtype = 4:", "NST_DTYPE_F16 (1)");
  REFUSED(dtype, (nst_dtype)-1, NST_ERROR_DTYPE, "dtype = -1:", "NST_DTYPE_BF16 (2)");
  REFUSED(weight_dtype, (nst_dtype)4, NST_ERROR_DTYPE, "weight_dtype = 4:", "dtype (2)");
  REFUSED(weight_dtype, (nst_dtype)-1, NST_ERROR_DTYPE, "weight_dtype = -1:", "dtype (2)");
  REFUSED(weight_dtype, NST_DTYPE_F16, NST_ERROR_DTYPE, "weight_dtype = 1:", "NST_DTYPE_F32 (3)");
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.dtype = NST_DTYPE_F32, args.norm.weight_dtype = NST_DTYPE_BF16;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_DTYPE, "weight_dtype = 2:", "dtype (3)");
  LAUNCHED(weight_dtype, NST_DTYPE_BF16);
  assert_non_null(strstr(fake_launched.kernel, "_bf16_n64_"));
  LAUNCHED(weight_dtype, NST_DTYPE_F32);
  assert_non_null(strstr(fake_launched.kernel, "_bf16w32_n64_"));
  LAUNCHED(dtype, NST_DTYPE_F16);
  assert_non_null(strstr(fake_launched.kernel, "_f16_n64_"));
  LAUNCHED(dtype, NST_DTYPE_F32);
  assert_non_null(strstr(fake_launched.kernel, "_f32_n64_"));
  args = good(NST_OP_RMS_NORM_FWD); /* the type of a weight that is not there does not matter */
  args.norm.weight = NULL, args.norm.weight_dtype = NST_DTYPE_F32;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  assert_non_null(strstr(fake_launched.kernel, "_bf16_n64_"));
}

static void test_shapes(void **state) {
  (void)state;
  REFUSED(rows, -1, NST_ERROR_SHAPE, "rows = -1:", "0 to 2147483647");
  REFUSED(rows, (int64_t)1 << 31, NST_ERROR_SHAPE, "rows = 2147483648:", "0 to 2147483647");
  REFUSED(rows, INT64_MIN, NST_ERROR_SHAPE, "rows = -9223372036854775808:", "0 to 2147483647");
  REFUSED(n, 0, NST_ERROR_SHAPE, "n = 0:", "1 to 2147483647");
  REFUSED(n, -64, NST_ERROR_SHAPE, "n = -64:", "1 to 2147483647");
  REFUSED(n, (int64_t)1 << 31, NST_ERROR_SHAPE, "n = 2147483648:", "1 to 2147483647");
  LAUNCHED(n, 1);

  /* The largest rows, and many of them, for which the tensors are addresses alone; and the most rows. */
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.rows = ((int64_t)1 << 28) - 1, args.norm.n = INT32_MAX;
  args.norm.x = (void *)(uintptr_t)16, args.norm.y = (void *)((uintptr_t)1 << 62);
  args.norm.weight = args.norm.rstd = NULL;
  args.norm.x_stride = args.norm.y_stride = 0;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  assert_int_equal(fake_launched.params.x_stride, (int64_t)INT32_MAX * 2);
  args.norm.rows = INT32_MAX, args.norm.n = 1;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  assert_int_equal(fake_launched.params.rows, INT32_MAX);
}

static void test_no_rows(void **state) {
  (void)state;
  for (int op = 0; op < 2; op++) {
    union args args = good((nst_op)op);
    if (op == NST_OP_RMS_NORM_FWD) {
      args.norm.rows = 0, args.norm.x = args.norm.weight = args.norm.y = args.norm.rstd = NULL;
    } else {
      args.fused.rows = 0, args.fused.x = args.fused.weight = args.fused.y = args.fused.rstd = NULL;
      args.fused.residual = args.fused.residual_out = NULL;
    }
    fake_context = CUDA_ERROR_INVALID_CONTEXT; /* not even looked at */
    poison();
    assert_int_equal(call((nst_op)op, &args), NST_OK);
    assert_untouched();
    fake_context = CUDA_SUCCESS;
    nst_device_facts device = {sizeof device, 90, 132};
    nst_launch_info info = NST_LAUNCH_INFO_INIT;
    info.grid = 77;
    assert_int_equal(nst_explain((nst_op)op, &args, &device, &info), NST_OK);
    assert_int_equal(info.grid, 0);
    /* The rest is checked all the same. */
    args.norm.dtype = (nst_dtype)7;
    assert_refused((nst_op)op, &args, NST_ERROR_DTYPE, "dtype = 7:", "expected");
  }
}

static void test_values(void **state) {
  (void)state;
  REFUSED(eps, -1e-6f, NST_ERROR_VALUE, "eps = -1e-06:", "finite");
  REFUSED(eps, NAN, NST_ERROR_VALUE, "eps = ", "nan");
  REFUSED(eps, INFINITY, NST_ERROR_VALUE, "eps = inf:", "finite");
  REFUSED(eps, -INFINITY, NST_ERROR_VALUE, "eps = -inf:", "finite");
  REFUSED(weight_offset, NAN, NST_ERROR_VALUE, "weight_offset = ", "nan");
  REFUSED(weight_offset, INFINITY, NST_ERROR_VALUE, "weight_offset = inf:", "finite");
  REFUSED(weight_offset, -INFINITY, NST_ERROR_VALUE, "weight_offset = -inf:", "finite");
  LAUNCHED(eps, 0.0f);
  LAUNCHED(eps, -0.0f);
  LAUNCHED(eps, 3e38f);
  LAUNCHED(weight_offset, -2.5f);
}

static void test_flags(void **state) {
  (void)state;
  REFUSED(flags, 1u << 4, NST_ERROR_FLAGS, "flags = 0x10:", "0x10 is unknown");
  REFUSED(flags, 0x80000002u, NST_ERROR_FLAGS, "flags = 0x80000002:", "0x80000000 is unknown");
  REFUSED(flags, NST_FLAG_WEIGHT_READY, NST_ERROR_FLAGS, "flags = 0x8:", "NST_FLAG_DEPENDENT_LAUNCH");
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.flags = NST_FLAG_ROUND_RESIDUAL;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_FLAGS, "flags = 0x1:", "NST_FLAG_ROUND_RESIDUAL");
  FUSED_LAUNCHED(flags, NST_FLAG_ROUND_RESIDUAL);
  LAUNCHED(flags, NST_FLAG_ROUND_BEFORE_WEIGHT);
  LAUNCHED(flags, NST_FLAG_DEPENDENT_LAUNCH | NST_FLAG_WEIGHT_READY);
  assert_int_equal(fake_launched.params.flags, NST_FLAG_DEPENDENT_LAUNCH | NST_FLAG_WEIGHT_READY);
  assert_true(fake_launched.dependent);
}

/* ---- Tensors, one by one ------------------------------------------------------------------------------------- */

static void test_strides(void **state) {
  (void)state;
  REFUSED(x_stride, -1, NST_ERROR_STRIDE, "x_stride = -1:", "expected 0 (dense) or more");
  REFUSED(y_stride, -80, NST_ERROR_STRIDE, "y_stride = -80:", "expected 0 (dense) or more");
  REFUSED(x_stride, INT64_MIN, NST_ERROR_STRIDE, "x_stride = -9223372036854775808:", "expected 0 (dense) or more");
  REFUSED(y_stride, 63, NST_ERROR_STRIDE, "y_stride = 63:", "at least n = 64");
  FUSED_REFUSED(residual_stride, -2, NST_ERROR_STRIDE, "residual_stride = -2:", "expected 0 (dense) or more");
  FUSED_REFUSED(residual_out_stride, 1, NST_ERROR_STRIDE, "residual_out_stride = 1:", "at least n = 64");
  /* The byte stride overflows; the bytes to the last row overflow; the last row's address overflows. */
  REFUSED(x_stride, INT64_MAX, NST_ERROR_STRIDE, "x_stride = 9223372036854775807:", "address space");
  REFUSED(y_stride, (int64_t)1 << 61, NST_ERROR_STRIDE, "y_stride = 2305843009213693952:", "address space");
  FUSED_REFUSED(residual_stride, INT64_MAX / 2, NST_ERROR_STRIDE, "residual_stride = 4611686018427387903:", "rows, 4");
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.x = (void *)((uintptr_t)7 << 61);
  args.norm.x_stride = (int64_t)1 << 59;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_STRIDE, "x_stride = 576460752303423488:", "behind x");
  args = good(NST_OP_RMS_NORM_FWD); /* 2^64 bytes, which would pass for 0 */
  args.norm.dtype = NST_DTYPE_F32, args.norm.x_stride = (int64_t)1 << 62;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_STRIDE, "x_stride = 4611686018427387904:", "address space");
  /* Rows that are only read may overlap, and strides may differ as they like. */
  LAUNCHED(x_stride, 1);
  LAUNCHED(x_stride, 63);
  FUSED_LAUNCHED(residual_stride, 30);
  LAUNCHED(y_stride, 64);
  LAUNCHED(y_stride, 0);
}

static void test_alignment(void **state) {
  (void)state;
  REFUSED(x, x + 1, NST_ERROR_ALIGNMENT, "x = 0x", "multiple of 2");
  REFUSED(y, y + 3, NST_ERROR_ALIGNMENT, "y = 0x", "multiple of 2");
  REFUSED(weight, weight + 1, NST_ERROR_ALIGNMENT, "weight = 0x", "multiple of 2");
  REFUSED(rstd, (float *)(uintptr_t)(rstd + 2), NST_ERROR_ALIGNMENT, "rstd = 0x", "multiple of 4");
  FUSED_REFUSED(residual, residual + 1, NST_ERROR_ALIGNMENT, "residual = 0x", "multiple of 2");
  FUSED_REFUSED(residual_out, residual_out + 1, NST_ERROR_ALIGNMENT, "residual_out = 0x", "multiple of 2");
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.weight_dtype = NST_DTYPE_F32, args.norm.weight = weight + 2;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_ALIGNMENT, "weight = 0x", "multiple of 4");
  args.norm.weight = weight + 4;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args = good(NST_OP_RMS_NORM_FWD);
  args.norm.dtype = NST_DTYPE_F32, args.norm.x = x + 2;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_ALIGNMENT, "x = 0x", "multiple of 4");
  LAUNCHED(x, x + 2);
  LAUNCHED(y, y + 6);
  LAUNCHED(weight, weight + 2);
  LAUNCHED(rstd, (float *)(uintptr_t)(rstd + 4));
  args = good(NST_OP_RMS_NORM_FWD);
  args.norm.rows = 1, args.norm.x = (void *)(UINTPTR_MAX - 15);
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_SHAPE, "x = 0xf", "address space");
}

/* One thing that keeps a call from being aligned at a time: the kernel is of the unaligned form. */
static void test_access(void **state) {
  (void)state;
  LAUNCHED(rows, ROWS);
  assert_non_null(strstr(fake_launched.kernel, "_exact"));
  LAUNCHED(n, 56);
  assert_non_null(strstr(fake_launched.kernel, "_masked"));
  LAUNCHED(rstd, (float *)(uintptr_t)(rstd + 4)); /* written one by one: needs no more */
  assert_non_null(strstr(fake_launched.kernel, "_exact"));
#define UNALIGNED(member, value) \
  LAUNCHED(member, (value));     \
  assert_non_null(strstr(fake_launched.kernel, "_unaligned"))
#define FUSED_UNALIGNED(member, value) \
  FUSED_LAUNCHED(member, (value));     \
  assert_non_null(strstr(fake_launched.kernel, "_unaligned"))
  UNALIGNED(n, 63);
  UNALIGNED(x, x + 8);
  UNALIGNED(y, y + 2);
  UNALIGNED(weight, weight + 4);
  UNALIGNED(x_stride, 81);
  UNALIGNED(y_stride, 84);
  FUSED_UNALIGNED(residual, residual + 8);
  FUSED_UNALIGNED(residual_out, residual_out + 8);
  FUSED_UNALIGNED(residual_stride, 66);
  FUSED_UNALIGNED(residual_out_stride, 65);
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.rows = 1, args.norm.x_stride = 81, args.norm.y_stride = 3;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  assert_non_null(strstr(fake_launched.kernel, "_exact"));
}

/* ---- Overlaps ------------------------------------------------------------------------------------------------ */

static void test_in_place(void **state) {
  (void)state;
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.y = x, args.norm.y_stride = args.norm.x_stride;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args.norm.y_stride = args.norm.x_stride = 0;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args.norm.y_stride = N; /* the same, said otherwise */
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args.norm.y_stride = 80;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_OVERLAP, "y = 0x", "overlaps x = 0x");
  args.norm.rows = 1; /* strides do not count */
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args.norm.y = x + 2;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_OVERLAP, "y = 0x", "very pointer and stride");

  /* y and residual_out in the places of x and residual, every way round. */
  struct {
    void *y, *residual_out;
    bool allowed;
  } ways[] = {{x, residual, true},         {residual, x, true}, {x, residual_out, true}, {residual, NULL, true},
              {residual, y, true},         {y, x, true},        {y, residual, true},     {x, x, false},
              {residual, residual, false}, {y, y, false}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    args = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);
    args.fused.x_stride = args.fused.residual_stride = args.fused.y_stride = args.fused.residual_out_stride = 80;
    args.fused.y = ways[i].y, args.fused.residual_out = ways[i].residual_out;
    if (ways[i].allowed) {
      assert_launched(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args.fused);
    } else {
      assert_refused(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args.fused, NST_ERROR_OVERLAP, "residual_out = 0x",
                     "overlaps y = 0x");
    }
  }
  args = good(NST_OP_FUSED_ADD_RMS_NORM_FWD);
  args.fused.residual_out = residual; /* with another stride */
  assert_refused(NST_OP_FUSED_ADD_RMS_NORM_FWD, &args.fused, NST_ERROR_OVERLAP, "residual_out = 0x",
                 "overlaps residual = 0x");
}

static void test_overlaps(void **state) {
  (void)state;
  /* Outputs over the weight and the statistics, though they begin at the same place. */
  REFUSED(weight, y, NST_ERROR_OVERLAP, "y = 0x", "overlaps weight = 0x");
  REFUSED(weight, y + 2, NST_ERROR_OVERLAP, "y = 0x", "overlaps weight = 0x");
  REFUSED(rstd, (float *)(void *)y, NST_ERROR_OVERLAP, "rstd = 0x", "overlaps y = 0x");
  REFUSED(rstd, (float *)(void *)x, NST_ERROR_OVERLAP, "rstd = 0x", "overlaps x = 0x");
  REFUSED(rstd, (float *)(void *)(weight + 4), NST_ERROR_OVERLAP, "rstd = 0x", "overlaps weight = 0x");
  FUSED_REFUSED(rstd, (float *)(void *)(residual + 8), NST_ERROR_OVERLAP, "rstd = 0x", "overlaps residual = 0x");
  FUSED_REFUSED(rstd, (float *)(void *)residual_out, NST_ERROR_OVERLAP, "rstd = 0x", "overlaps residual_out = 0x");
  FUSED_REFUSED(residual_out, weight, NST_ERROR_OVERLAP, "residual_out = 0x", "overlaps weight = 0x");
  FUSED_REFUSED(residual_out, y + 2, NST_ERROR_OVERLAP, "residual_out = 0x", "overlaps y = 0x");
  FUSED_REFUSED(residual_out, x + 2, NST_ERROR_OVERLAP, "residual_out = 0x", "overlaps x = 0x");
  FUSED_REFUSED(y, residual + 2, NST_ERROR_OVERLAP, "y = 0x", "overlaps residual = 0x");
  /* Inputs among themselves. */
  FUSED_LAUNCHED(residual, x);
  FUSED_LAUNCHED(residual, x + 2);
  LAUNCHED(weight, x + 4);

  /* Slices of fused rows of 3 * N: q is normalised into the place of k, beside v. */
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.x_stride = args.norm.y_stride = 3 * N;
  args.norm.y = x + 2 * N;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args.norm.x = x + 4 * N, args.norm.y = x;
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args.norm.y = x + 2 * N + 2;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_OVERLAP, "y = 0x", "overlaps x = 0x");
  args.norm.x = x + 6 * N + 4 * N, args.norm.y = x + 2 * N; /* from the next row */
  assert_launched(NST_OP_RMS_NORM_FWD, &args.norm);
  args.norm.y_stride = 4 * N; /* different strides: not looked into */
  args.norm.x = x + 2;
  args.norm.y = x + 2 * N + 2;
  assert_refused(NST_OP_RMS_NORM_FWD, &args.norm, NST_ERROR_OVERLAP, "y = 0x", "overlaps x = 0x");
}

static uint32_t random_state = 12345;

static uint32_t random_below(uint32_t limit) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % limit;
}

struct strip {
  uint32_t begin, row, stride, rows; /* bytes */
};

static bool strips_meet(const struct strip *a, const struct strip *b) {
  for (uint32_t i = 0; i < a->rows; i++) {
    for (uint32_t j = 0; j < b->rows; j++) {
      uint32_t p = a->begin + i * a->stride;
      uint32_t q = b->begin + j * b->stride;
      if (p < q + b->row && q < p + a->row) {
        return true;
      }
    }
  }
  return false;
}

static bool gaps(const struct strip *a) { return a->rows > 1 && a->stride > a->row; }

/* Random small tensors close together, against a row by row comparison. */
static void test_overlaps_by_force(void **state) {
  (void)state;
  int seen[3] = {0, 0, 0};
  for (int i = 0; i < 200000; i++) {
    uint32_t rows = 1 + random_below(5);
    uint32_t n = 1 + random_below(8);
    struct strip in = {2 * random_below(60), 2 * n, 2 * (1 + random_below(2 * n + 6)), rows};
    struct strip out = {2 * random_below(60), 2 * n, 2 * (n + random_below(n + 6)), rows};
    struct strip factor = {2 * random_below(60), 2 * n, 0, 1};
    struct strip statistics = {4 * random_below(30), 4 * rows, 0, 1};
    if (random_below(2)) {
      out.stride = in.stride >= out.row ? in.stride : out.stride;
    }
    bool has_factor = random_below(4) == 0;
    bool has_statistics = random_below(4) == 0;
    union args args = good(NST_OP_RMS_NORM_FWD);
    args.norm.rows = rows, args.norm.n = n;
    args.norm.x = y + in.begin, args.norm.x_stride = in.stride / 2;
    args.norm.y = y + out.begin, args.norm.y_stride = out.stride / 2;
    args.norm.weight = has_factor ? y + factor.begin : NULL;
    args.norm.rstd = has_statistics ? (float *)(void *)(y + statistics.begin) : NULL;

    bool in_place = in.begin == out.begin && (rows == 1 || in.stride == out.stride);
    bool meet = !in_place && strips_meet(&in, &out);
    meet = meet || (has_factor && strips_meet(&factor, &out));
    meet = meet || (has_statistics && (strips_meet(&statistics, &out) || strips_meet(&statistics, &in)));
    meet = meet || (has_statistics && has_factor && strips_meet(&statistics, &factor));
    bool undecided = !in_place && gaps(&in) && gaps(&out) && in.stride != out.stride;
    nst_status status = call(NST_OP_RMS_NORM_FWD, &args.norm);
    if (status != (meet ? NST_ERROR_OVERLAP : NST_OK) && !(undecided && status == NST_ERROR_OVERLAP)) {
      fail_msg("rows %u n %u x %u/%u y %u/%u: %s (%s)", rows, n, in.begin, in.stride, out.begin, out.stride,
               nst_status_name(status), nst_last_error());
    }
    seen[meet ? 0 : in_place ? 1 : 2]++;
  }
  assert_true(seen[0] > 10000 && seen[1] > 500 && seen[2] > 10000); /* all kinds came up */
}

/* ---- The other functions ------------------------------------------------------------------------------------- */

static void test_explain_arguments(void **state) {
  (void)state;
  union args args = good(NST_OP_RMS_NORM_FWD);
  nst_device_facts device = {sizeof device, 90, 132};
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  assert_int_equal(nst_explain((nst_op)99, &args, &device, &info), NST_ERROR_OP);
  assert_sentence("op = 99:", "expected 0 to 5");
  assert_int_equal(nst_explain((nst_op)-1, &args, &device, &info), NST_ERROR_OP);
  assert_sentence("op = -1:", "expected 0 to 5");
  assert_int_equal(nst_explain(NST_OP_RMS_NORM_FWD, &args, NULL, &info), NST_ERROR_NULL_POINTER);
  assert_sentence("device is NULL", "nst_device_facts");
  assert_int_equal(nst_explain(NST_OP_RMS_NORM_FWD, &args, &device, NULL), NST_ERROR_NULL_POINTER);
  assert_sentence("info is NULL", "nst_launch_info");
  device.size = 3;
  assert_int_equal(nst_explain(NST_OP_RMS_NORM_FWD, &args, &device, &info), NST_ERROR_STRUCT_SIZE);
  assert_sentence("size of device = 3:", "nst_device_facts");
  device = (nst_device_facts){sizeof device, 90, 0};
  assert_int_equal(nst_explain(NST_OP_RMS_NORM_FWD, &args, &device, &info), NST_ERROR_VALUE);
  assert_sentence("multiprocessors = 0:", "1 or more");
  device = (nst_device_facts){sizeof device, 86, 100};
  assert_int_equal(nst_explain(NST_OP_RMS_NORM_FWD, &args, &device, &info), NST_ERROR_DEVICE_UNSUPPORTED);
  assert_sentence("the device has compute capability 8.6", "sm_90, sm_100");
  device.arch = 103;
  assert_int_equal(nst_explain(NST_OP_RMS_NORM_FWD, &args, &device, &info), NST_OK);
  info.size = 0;
  assert_int_equal(nst_explain(NST_OP_RMS_NORM_FWD, &args, &device, &info), NST_ERROR_STRUCT_SIZE);
  assert_sentence("size of info = 0:", "nst_launch_info");
}

static void test_table_arguments(void **state) {
  (void)state;
  nst_kernel_info info = NST_KERNEL_INFO_INIT;
  assert_int_equal(nst_table_row(nst_table_count(), &info), NST_ERROR_INDEX);
  assert_sentence("index = ", "expected 0 to ");
  assert_int_equal(nst_table_row(SIZE_MAX, &info), NST_ERROR_INDEX);
  assert_int_equal(nst_table_row(0, NULL), NST_ERROR_NULL_POINTER);
  assert_sentence("info is NULL", "nst_kernel_info");
  info.size = 8;
  assert_int_equal(nst_table_row(0, &info), NST_ERROR_STRUCT_SIZE);
  assert_sentence("size of info = 8:", "nst_kernel_info");
}

static void test_device_arguments(void **state) {
  (void)state;
  nst_device_facts facts = NST_DEVICE_FACTS_INIT;
  assert_int_equal(nst_device(NULL, &facts), NST_ERROR_NULL_POINTER);
  assert_sentence("library is NULL", "nst_open");
  assert_int_equal(nst_device(library, NULL), NST_ERROR_NULL_POINTER);
  assert_sentence("device is NULL", "nst_device_facts");
  assert_int_equal(nst_preload(NULL), NST_ERROR_NULL_POINTER);
  assert_sentence("library is NULL", "nst_open");
  assert_int_equal(nst_device(library, &facts), NST_OK);
  assert_true(facts.arch == 90 && facts.multiprocessors == 132);
  facts.size++;
  assert_int_equal(nst_device(library, &facts), NST_ERROR_STRUCT_SIZE);
  assert_sentence("size of device = ", "nst_device_facts");
}

/* The index of the kernel with this name; where the build left its operation out, the test is skipped. */
static size_t kernel_named(const char *name) {
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info info = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &info), NST_OK);
    if (info.symbol && strcmp(info.symbol, name) == 0) {
      return i;
    }
  }
  print_message("this build has no %s\n", name);
  skip();
  return 0;
}

static void assert_unfit(size_t index, const union args *args, nst_status status, const char *begin,
                         const char *middle) {
  poison();
  assert_int_equal(nst_launch_kernel(library, index, args, NULL), status);
  assert_sentence(begin, middle);
  assert_untouched();
}

static void test_launch_kernel(void **state) {
  (void)state;
  size_t exact = kernel_named("nst_rms_norm_fwd_bf16_n64_warp_exact");
  size_t masked = kernel_named("nst_rms_norm_fwd_bf16_n128_warp_masked");
  size_t unaligned = kernel_named("nst_rms_norm_fwd_bf16_n128_warp_unaligned");
  size_t wide = kernel_named("nst_rms_norm_fwd_bf16w32_n64_warp_masked");
  size_t fused = kernel_named("nst_fused_add_rms_norm_fwd_bf16_n64_warp_exact");
  size_t loop = kernel_named("nst_rms_norm_fwd_bf16_nany_loop_unaligned");
  union args args = good(NST_OP_RMS_NORM_FWD);
  size_t fitting[] = {exact, masked, unaligned, loop};
  for (size_t i = 0; i < 4; i++) { /* more general kernels serve as well */
    poison();
    assert_int_equal(nst_launch_kernel(library, fitting[i], &args, NULL), NST_OK);
    assert_int_equal(fake_launched.count, 1);
    nst_kernel_info info = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(fitting[i], &info), NST_OK);
    assert_string_equal(fake_launched.kernel, info.symbol);
  }
  assert_unfit(nst_table_count(), &args, NST_ERROR_INDEX, "index = ", "expected 0 to");
  assert_unfit(wide, &args, NST_ERROR_KERNEL_UNFIT, "weight_dtype = 2:", "expected 3");
  args.norm.n = 56;
  assert_unfit(exact, &args, NST_ERROR_KERNEL_UNFIT, "n = 56:", "exactly 64");
  assert_int_equal(nst_launch_kernel(library, masked, &args, NULL), NST_OK);
  args.norm.n = 63;
  assert_unfit(masked, &args, NST_ERROR_KERNEL_UNFIT, "n keeps", "16-byte");
  args.norm.n = 72;
  assert_unfit(exact, &args, NST_ERROR_KERNEL_UNFIT, "n = 72:", "at most 64");
  args = good(NST_OP_RMS_NORM_FWD);
  args.norm.y = y + 2;
  assert_unfit(exact, &args, NST_ERROR_KERNEL_UNFIT, "y keeps", "16-byte");
  assert_int_equal(nst_launch_kernel(library, unaligned, &args, NULL), NST_OK);
  args = good(NST_OP_RMS_NORM_FWD);
  args.norm.dtype = NST_DTYPE_F16;
  assert_unfit(exact, &args, NST_ERROR_KERNEL_UNFIT, "dtype = 1:", "expected 2");
  args = good(NST_OP_RMS_NORM_FWD);
  args.norm.weight = NULL; /* a kernel for another weight type serves, when there is no weight */
  assert_int_equal(nst_launch_kernel(library, wide, &args, NULL), NST_OK);
  /* The args struct is that of the kernel's operation. */
  assert_unfit(fused, &args, NST_ERROR_STRUCT_SIZE, "size = ", "nst_fused_add_rms_norm_fwd_args");
  assert_unfit(exact, NULL, NST_ERROR_NULL_POINTER, "args is NULL", "nst_rms_norm_fwd_args");
  args.norm.rows = 0;
  poison();
  assert_int_equal(nst_launch_kernel(library, exact, &args, NULL), NST_OK);
  assert_int_equal(fake_launched.count, 0);
  assert_int_equal(nst_launch_kernel(NULL, exact, &args, NULL), NST_ERROR_NULL_POINTER);
  assert_sentence("library is NULL", "nst_open");
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info info = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &info), NST_OK);
    if (info.hole) {
      assert_unfit(i, &args, NST_ERROR_NO_KERNEL, "no kernel for this call: ", info.hole);
    }
  }
}

/* More blocks than a grid can have, which only a named kernel meets: every row a cluster. */
static void test_largest_grid(void **state) {
  (void)state;
  size_t loop = kernel_named("nst_rms_norm_fwd_bf16_nany_loop_unaligned");
  nst_kernel_info info = NST_KERNEL_INFO_INIT;
  assert_int_equal(nst_table_row(loop, &info), NST_OK);
  union args args = good(NST_OP_RMS_NORM_FWD);
  args.norm.rows = INT32_MAX, args.norm.n = 1, args.norm.weight = args.norm.rstd = NULL;
  args.norm.x = (void *)(uintptr_t)16, args.norm.y = (void *)((uintptr_t)1 << 40);
  args.norm.x_stride = args.norm.y_stride = 0;
  if (info.blocks_per_sm == 0 && info.cluster > 1) {
    assert_unfit(loop, &args, NST_ERROR_KERNEL_UNFIT, "rows = 2147483647:", "blocks");
  } else {
    assert_int_equal(nst_launch_kernel(library, loop, &args, NULL), NST_OK);
    assert_true(fake_launched.grid[0] > 0 && fake_launched.grid[0] <= INT32_MAX);
  }
}

static void test_driver_state(void **state) {
  (void)state;
  union args args = good(NST_OP_RMS_NORM_FWD);
  nst_device_facts facts = NST_DEVICE_FACTS_INIT;
  poison();
  fake_context = CUDA_ERROR_INVALID_CONTEXT;
  assert_int_equal(call(NST_OP_RMS_NORM_FWD, &args), NST_ERROR_NO_CONTEXT);
  assert_sentence("cuCtxGetDevice failed: CUDA_ERROR_INVALID_CONTEXT", "current to the calling thread");
  assert_int_equal(nst_device(library, &facts), NST_ERROR_NO_CONTEXT);
  assert_int_equal(nst_preload(library), NST_ERROR_NO_CONTEXT);
  fake_context = CUDA_ERROR_UNKNOWN;
  assert_int_equal(call(NST_OP_RMS_NORM_FWD, &args), NST_ERROR_DRIVER_CALL);
  assert_sentence("cuCtxGetDevice failed: CUDA_ERROR_UNKNOWN (error 999", "words");
  fake_context = CUDA_SUCCESS;
  fake_device = 7;
  assert_int_equal(call(NST_OP_RMS_NORM_FWD, &args), NST_ERROR_DEVICE_UNSUPPORTED);
  assert_sentence("the current context's device (7)", "nst_open");
  fake_device = 0;
  fake.failing = "cuLaunchKernelEx", fake.failing_after = 0;
  assert_int_equal(call(NST_OP_RMS_NORM_FWD, &args), NST_ERROR_DRIVER_CALL);
  assert_sentence("cuLaunchKernelEx failed: CUDA_ERROR_UNKNOWN", "");
  fake.failing_after = 0, fake.failure = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  assert_int_equal(call(NST_OP_RMS_NORM_FWD, &args), NST_ERROR_DRIVER_CALL);
  assert_sentence("cuLaunchKernelEx failed: an unknown error (error 900", "nst_preload");
  fake.failing = NULL;
  assert_untouched();
  assert_launched(NST_OP_RMS_NORM_FWD, &args);
}

static void test_status_texts(void **state) {
  (void)state;
  assert_string_equal(nst_status_name(NST_OK), "NST_OK");
  assert_string_equal(nst_status_name(NST_ERROR_SHAPE), "NST_ERROR_SHAPE");
  int known = 0;
  for (int i = -1; i < 200; i++) {
    const char *name = nst_status_name((nst_status)i);
    const char *text = nst_status_text((nst_status)i);
    assert_true(name && *name && text && *text);
    known += strncmp(name, "NST_", 4) == 0;
  }
  assert_int_equal(known, 25);
  assert_int_equal(nst_version(), NST_VERSION_MAJOR * 10000 + NST_VERSION_MINOR * 100 + NST_VERSION_PATCH);
  assert_int_equal(strlen(nst_build_id()), 16);
}

static int open_library(void **state) {
  (void)state;
  fake_reset();
  return fake_open(&library);
}

static int close_library(void **state) {
  (void)state;
  nst_status status = nst_close(library);
  return status != NST_OK || fake.libraries != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_good_arguments_reach_the_kernel),
      cmocka_unit_test(test_absent_pointers),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_no_rows),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_flags),
      cmocka_unit_test(test_strides),
      cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_access),
      cmocka_unit_test(test_in_place),
      cmocka_unit_test(test_overlaps),
      cmocka_unit_test(test_overlaps_by_force),
      cmocka_unit_test(test_explain_arguments),
      cmocka_unit_test(test_table_arguments),
      cmocka_unit_test(test_device_arguments),
      cmocka_unit_test(test_launch_kernel),
      cmocka_unit_test(test_largest_grid),
      cmocka_unit_test(test_driver_state),
      cmocka_unit_test(test_status_texts),
  };
  return cmocka_run_group_tests(tests, open_library, close_library);
}
