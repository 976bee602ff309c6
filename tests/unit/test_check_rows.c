/*
 * Arguments of every operation on rows, by the table of tools/rows.h: each tensor absent, misplaced, overlapping; what
 * an operation does not have; conditioning and its own number of rows; and what reaches the kernel. (What the RMS norms
 * have is looked at more closely in test_check.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fake_driver.h"
#include "rows.h"

#define ROWS 6
#define PER_COND 4 /* so that there are two rows of conditioning, the second one for two rows of x */
#define N 64
#define ROOM 4096 /* bytes of each tensor */

static nst_library *library;
static _Alignas(64) unsigned char memory[ROWS_TENSORS][ROOM];

/* Good arguments: strided bf16, everything that is optional present. */
static struct rows_call good(nst_op op) {
  struct rows_call call = {.op = op, .dtype = NST_DTYPE_BF16, .rows = ROWS, .n = N, .eps = 1e-5f};
  if (op_has(op, ROWS_SCALE)) {
    call.rows_per_cond = PER_COND;
  }
  for (int t = 0; t < ROWS_TENSORS; t++) {
    enum rows_shape shape = rows_tensor_shape((enum rows_tensor)t);
    call.tensor[t] = op_has(op, (enum rows_tensor)t) ? memory[t] : NULL;
    call.stride[t] = shape == SHAPE_DATA || shape == SHAPE_COND ? N + 8 * (t + 1) : 0;
  }
  return call;
}

static nst_status launch(const struct rows_call *call) {
  union rows_args args = rows_args_of(call);
  return rows_launch(library, call->op, &args, NULL);
}

static nst_status explain(const struct rows_call *call, nst_launch_info *info) {
  union rows_args args = rows_args_of(call);
  nst_device_facts device = {sizeof device, 90, 132};
  return nst_explain(call->op, &args, &device, info);
}

/* The sentence begins with `begin` and contains `middle`. */
static void assert_sentence(const char *begin, const char *middle) {
  const char *sentence = nst_last_error();
  if (strncmp(sentence, begin, strlen(begin)) != 0 || !strstr(sentence, middle)) {
    fail_msg("the sentence \"%s\" should begin with \"%s\" and contain \"%s\"", sentence, begin, middle);
  }
}

static void assert_refused(const struct rows_call *call, nst_status status, const char *begin, const char *middle) {
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  fake_launched.count = 0;
  nst_status was = launch(call);
  if (was != status) {
    fail_msg("%s: %s instead of %s (\"%s...\")", op_name(call->op), nst_status_name(was), nst_status_name(status),
             begin);
  }
  assert_sentence(begin, middle);
  assert_int_equal(fake_launched.count, 0);
  assert_int_equal(explain(call, &info), status);
  assert_sentence(begin, middle);
}

static void assert_launched(const struct rows_call *call) {
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  fake_launched.count = 0;
  if (launch(call) != NST_OK) {
    fail_msg("%s refused: %s", op_name(call->op), nst_last_error());
  }
  assert_int_equal(fake_launched.count, 1);
  assert_int_equal(explain(call, &info), NST_OK);
}

/* "scale" and " is NULL" make "scale is NULL". */
static const char *text(enum rows_tensor tensor, const char *more) {
  static char buffer[64];
  snprintf(buffer, sizeof buffer, "%s%s", rows_tensor_name(tensor), more);
  return buffer;
}

static int is_output(enum rows_tensor tensor) { return tensor >= ROWS_INPUTS; }

static int has_stride(enum rows_tensor tensor) {
  return rows_tensor_shape(tensor) == SHAPE_DATA || rows_tensor_shape(tensor) == SHAPE_COND;
}

#define EACH_TENSOR(op, t)                                                    \
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1))                   \
    for (enum rows_tensor t = 0; t < ROWS_TENSORS; t = (enum rows_tensor)(t + 1)) \
      if (op_has(op, t))

/* ---- What reaches the kernel --------------------------------------------------------------------------------- */

static const void *pointer_of(enum rows_tensor tensor) {
  const struct nst_rows_params *p = &fake_launched.params;
  const void *const of[ROWS_TENSORS] = {p->x,    p->residual, p->weight, p->bias,         p->scale, p->shift,
                                        p->gate, p->y,        p->residual_out, p->mean, p->rstd};
  return of[tensor];
}

static int64_t stride_of(enum rows_tensor tensor) {
  const struct nst_rows_params *p = &fake_launched.params;
  const int64_t of[ROWS_TENSORS] = {p->x_stride,     p->residual_stride, 0, 0, p->scale_stride, p->shift_stride,
                                    p->gate_stride, p->y_stride,        p->residual_out_stride, 0, 0};
  return of[tensor];
}

static void test_parameters(void **state) {
  (void)state;
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1)) {
    struct rows_call call = good(op);
    call.weight_offset = op == NST_OP_RMS_NORM_FWD || op == NST_OP_FUSED_ADD_RMS_NORM_FWD ? 0.5f : 0;
    assert_launched(&call);
    const struct nst_rows_params *p = &fake_launched.params;
    for (enum rows_tensor t = 0; t < ROWS_TENSORS; t = (enum rows_tensor)(t + 1)) {
      assert_ptr_equal(pointer_of(t), op_has(op, t) ? memory[t] : NULL);
      assert_int_equal(stride_of(t), op_has(op, t) ? 2 * call.stride[t] : 0);
    }
    assert_true(p->weight_offset == (op_has(op, ROWS_WEIGHT) ? call.weight_offset : 1.0f));
    assert_true(p->gate_offset == (op_has(op, ROWS_GATE) ? 0.0f : 1.0f));
    assert_true(p->eps == 1e-5f && p->inv_n == 1.0f / N && p->inv_pivot == 1.0f / 8);
    assert_true(p->rows == ROWS && p->n == N && p->flags == 0);
    call.n = 1000, call.rows = 1;
    assert_launched(&call);
    assert_true(p->inv_n == 1.0f / 1000 && p->inv_pivot == 1.0f / 8); /* the elements of a vector */
    call.dtype = NST_DTYPE_F32;
    assert_launched(&call);
    assert_true(p->inv_pivot == 1.0f / 4);
    call.n = 3;
    assert_launched(&call);
    assert_true(p->inv_pivot == 1.0f / 3);
  }
}

/* An absent tensor is NULL, and its factor 1. */
static void test_absent_tensors(void **state) {
  (void)state;
  EACH_TENSOR(op, t) {
    struct rows_call call = good(op);
    call.tensor[t] = NULL;
    if (op_needs(op, t)) {
      assert_refused(&call, NST_ERROR_NULL_POINTER, text(t, " is NULL"), "rows = 6, n = 64");
    } else {
      assert_launched(&call);
      assert_null(pointer_of(t));
      assert_int_equal(stride_of(t), 0);
      assert_true(t != ROWS_WEIGHT || fake_launched.params.weight_offset == 1.0f);
      assert_true(t != ROWS_GATE || fake_launched.params.gate_offset == 1.0f);
    }
  }
}

/* The quotient of every row's number, as the kernels form it. */
static void test_rows_per_cond(void **state) {
  (void)state;
  static const int64_t divisors[] = {1,     2,     3,     5,          6,          7,          8,         9,
                                     640,   641,   4095,  4097,       65535,      65537,      1000003,   16777217,
                                     1 << 29, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, INT32_MAX - 1, INT32_MAX};
  for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
    struct rows_call call = good(NST_OP_ADA_LAYER_NORM_ZERO_FWD);
    const uint64_t d = (uint64_t)divisors[i];
    call.rows_per_cond = divisors[i];
    call.rows = 2;
    assert_launched(&call);
    const uint64_t multiplier = fake_launched.params.cond_multiplier;
    const uint32_t shift = fake_launched.params.cond_shift;
    for (uint64_t multiple = 0; multiple < INT32_MAX; multiple += d * (1 + INT32_MAX / d / 1000)) {
      for (uint64_t r = multiple > 2 ? multiple - 2 : 0; r < multiple + 3 && r < INT32_MAX; r++) {
        assert_int_equal(r * multiplier >> shift, r / d);
      }
    }
    assert_int_equal((uint64_t)(INT32_MAX - 1) * multiplier >> shift, (INT32_MAX - 1) / d);
  }
  struct rows_call call = good(NST_OP_ADA_LAYER_NORM_FWD);
  call.rows_per_cond = 0; /* 1 */
  assert_launched(&call);
  assert_true(5 * (uint64_t)fake_launched.params.cond_multiplier >> fake_launched.params.cond_shift == 5);
  call.rows_per_cond = -1;
  assert_refused(&call, NST_ERROR_SHAPE, "rows_per_cond = -1", "expected 1 to 2147483647");
  call.rows_per_cond = (int64_t)1 << 31;
  assert_refused(&call, NST_ERROR_SHAPE, "rows_per_cond = 2147483648", "expected 1 to 2147483647");
}

/* ---- Scalars ------------------------------------------------------------------------------------------------- */

static void test_scalars(void **state) {
  (void)state;
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1)) {
    struct rows_call call = good(op);
    call.dtype = (nst_dtype)4;
    assert_refused(&call, NST_ERROR_DTYPE, "dtype = 4", "NST_DTYPE_F32");
    call = good(op), call.rows = -1;
    assert_refused(&call, NST_ERROR_SHAPE, "rows = -1", "0 to 2147483647");
    call = good(op), call.n = 0;
    assert_refused(&call, NST_ERROR_SHAPE, "n = 0", "1 to 2147483647");
    call = good(op), call.eps = -1;
    assert_refused(&call, NST_ERROR_VALUE, "eps = -1", "0 or greater");
    call = good(op), call.eps = NAN;
    assert_refused(&call, NST_ERROR_VALUE, "eps = ", "finite");
    call = good(op), call.rows = 0, memset(call.tensor, 0, sizeof call.tensor);
    fake_launched.count = 0;
    assert_int_equal(launch(&call), NST_OK);
    assert_int_equal(fake_launched.count, 0);
    call = good(op);
    union rows_args args = rows_args_of(&call);
    args.size--;
    assert_int_equal(rows_launch(library, op, &args, NULL), NST_ERROR_STRUCT_SIZE);
    char name[64];
    snprintf(name, sizeof name, "sizeof(nst_%s_args)", op_name(op));
    assert_sentence("size = ", name);
    assert_int_equal(rows_launch(NULL, op, &args, NULL), NST_ERROR_NULL_POINTER);
    assert_sentence("library is NULL", "nst_open");
  }
}

static void test_flags(void **state) {
  (void)state;
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1)) {
    struct rows_call call = good(op);
    char none[64];
    call.flags = NST_FLAG_ROUND_BEFORE_WEIGHT | NST_FLAG_DEPENDENT_LAUNCH;
    assert_launched(&call);
    assert_true(fake_launched.dependent);
    assert_int_equal(fake_launched.params.flags, call.flags);
    call.flags = NST_FLAG_ROUND_RESIDUAL;
    snprintf(none, sizeof none, "nst_%s has no residual", op_name(op));
    if (op_has(op, ROWS_RESIDUAL)) {
      assert_launched(&call);
    } else {
      assert_refused(&call, NST_ERROR_FLAGS, "flags = 0x1: NST_FLAG_ROUND_RESIDUAL", none);
    }
    call.flags = NST_FLAG_WEIGHT_READY | NST_FLAG_DEPENDENT_LAUNCH;
    snprintf(none, sizeof none, "nst_%s has no weight", op_name(op));
    if (op_has(op, ROWS_WEIGHT)) {
      assert_launched(&call);
    } else {
      assert_refused(&call, NST_ERROR_FLAGS, "flags = 0xc: NST_FLAG_WEIGHT_READY", none);
    }
    call.flags = 1u << 20;
    assert_refused(&call, NST_ERROR_FLAGS, "flags = 0x100000", "unknown");
  }
}

/* The type of weight and bias, where there is one of them, picks the kernel. */
static void test_weight_types(void **state) {
  (void)state;
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1)) {
    for (unsigned present = 0; present < 4; present++) {
      struct rows_call call = good(op);
      nst_launch_info info = NST_LAUNCH_INFO_INIT;
      call.weight_dtype = NST_DTYPE_F32;
      if (!(present & 1)) call.tensor[ROWS_WEIGHT] = NULL;
      if (!(present & 2)) call.tensor[ROWS_BIAS] = NULL;
      const int wide = call.tensor[ROWS_WEIGHT] || call.tensor[ROWS_BIAS];
      assert_int_equal(explain(&call, &info), NST_OK);
      assert_int_equal(info.kernel.op, op);
      assert_int_equal(info.kernel.weight_dtype, wide ? NST_DTYPE_F32 : NST_DTYPE_BF16);
    }
    struct rows_call call = good(op);
    call.weight_dtype = NST_DTYPE_F16;
    if (op_has(op, ROWS_WEIGHT)) {
      assert_refused(&call, NST_ERROR_DTYPE, "weight_dtype = 1", "expected dtype (2)");
    }
  }
}

/* The first kernel of an operation and types that serves whatever is aligned. */
static size_t masked_kernel(nst_op op, nst_dtype dtype, nst_dtype weight_dtype) {
  nst_kernel_info info = NST_KERNEL_INFO_INIT;
  for (size_t i = 0; nst_table_row(i, &info) == NST_OK; i++) {
    if (info.symbol && info.op == op && info.dtype == dtype && info.weight_dtype == weight_dtype &&
        info.access == NST_ACCESS_MASKED) {
      return i;
    }
  }
  fail_msg("%s has no masked kernel of these types", op_name(op));
  return 0;
}

/* Weight and bias have one type, and either alone holds a kernel to it. */
static void test_kernels_of_weight_types(void **state) {
  (void)state;
  const enum rows_tensor factors[] = {ROWS_WEIGHT, ROWS_BIAS};
  const nst_op op = NST_OP_FUSED_ADD_LAYER_NORM_FWD;
  const size_t narrow = masked_kernel(op, NST_DTYPE_BF16, NST_DTYPE_BF16);
  const size_t wide = masked_kernel(op, NST_DTYPE_BF16, NST_DTYPE_F32);
  for (int i = 0; i < 2; i++) {
    struct rows_call call = good(op);
    call.weight_dtype = NST_DTYPE_F32;
    call.tensor[factors[i]] = memory[factors[i]] + 2;
    assert_refused(&call, NST_ERROR_ALIGNMENT, text(factors[i], " = 0x"), "multiple of 4");
    call.tensor[factors[i]] = NULL;
    union rows_args args = rows_args_of(&call);
    assert_int_equal(nst_launch_kernel(library, wide, &args, NULL), NST_OK);
    assert_int_equal(nst_launch_kernel(library, narrow, &args, NULL), NST_ERROR_KERNEL_UNFIT);
    assert_sentence("weight_dtype = 3:", "expected 2");
  }
  struct rows_call call = good(op);
  call.tensor[ROWS_WEIGHT] = call.tensor[ROWS_BIAS] = NULL; /* none: both serve */
  union rows_args args = rows_args_of(&call);
  assert_int_equal(nst_launch_kernel(library, wide, &args, NULL), NST_OK);
  assert_int_equal(nst_launch_kernel(library, narrow, &args, NULL), NST_OK);
}

/* ---- Tensors ------------------------------------------------------------------------------------------------- */

static void test_strides(void **state) {
  (void)state;
  EACH_TENSOR(op, t) {
    struct rows_call call = good(op);
    if (!has_stride(t)) continue;
    call.stride[t] = 0; /* dense */
    assert_launched(&call);
    assert_int_equal(stride_of(t), 2 * N);
    call.stride[t] = -1;
    assert_refused(&call, NST_ERROR_STRIDE, text(t, "_stride = -1"), "expected 0 (dense) or more");
    call.stride[t] = N - 8;
    if (is_output(t)) {
      assert_refused(&call, NST_ERROR_STRIDE, text(t, "_stride = 56"), "at least n = 64");
    } else {
      assert_launched(&call); /* rows that are read may overlap */
    }
    call.stride[t] = INT64_MAX;
    assert_refused(&call, NST_ERROR_STRIDE, text(t, "_stride = 9223372036854775807"), "address space");
    call.rows = 1; /* unused */
    assert_launched(&call);
    assert_int_equal(stride_of(t), 0);
  }
  struct rows_call call = good(NST_OP_ADA_LAYER_NORM_FWD);
  call.rows_per_cond = ROWS; /* one row of conditioning: its strides are unused */
  call.stride[ROWS_SCALE] = INT64_MAX, call.stride[ROWS_SHIFT] = -3;
  assert_launched(&call);
  assert_true(stride_of(ROWS_SCALE) == 0 && stride_of(ROWS_SHIFT) == 0);
}

/* Pointers off an element are refused; off a 16-byte boundary they, and strides, pick another kernel. */
static void test_alignment(void **state) {
  (void)state;
  EACH_TENSOR(op, t) {
    struct rows_call call = good(op);
    nst_launch_info info = NST_LAUNCH_INFO_INIT;
    const int column = rows_tensor_shape(t) == SHAPE_COLUMN;
    assert_int_equal(explain(&call, &info), NST_OK);
    assert_int_not_equal(info.kernel.access, NST_ACCESS_UNALIGNED);
    call.tensor[t] = memory[t] + 1;
    assert_refused(&call, NST_ERROR_ALIGNMENT, text(t, " = "), column ? "multiple of 4" : "multiple of 2");
    call.tensor[t] = memory[t] + 4;
    assert_int_equal(explain(&call, &info), NST_OK);
    assert_int_equal(info.kernel.access == NST_ACCESS_UNALIGNED, !column);
    if (!has_stride(t)) continue;
    call = good(op), call.stride[t] += 1;
    assert_int_equal(explain(&call, &info), NST_OK);
    assert_int_equal(info.kernel.access, NST_ACCESS_UNALIGNED);
  }
}

/* The ends of what can be addressed: the largest rows and the most, and tensors that reach just too far. */
static void test_address_space(void **state) {
  (void)state;
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1)) {
    struct rows_call call = good(op); /* addresses alone */
    for (int t = 0; t < ROWS_TENSORS; t++) {
      call.tensor[t] = op_has(op, (enum rows_tensor)t) ? (void *)(((uintptr_t)t << 60) + 16) : NULL;
      call.stride[t] = 0;
    }
    call.rows = ((int64_t)1 << 28) - 1, call.n = INT32_MAX, call.rows_per_cond = 1;
    assert_launched(&call);
    for (int t = 0; t < ROWS_TENSORS; t++) {
      const int reached = op_has(op, (enum rows_tensor)t) && has_stride((enum rows_tensor)t);
      assert_int_equal(stride_of((enum rows_tensor)t), reached ? 2 * (int64_t)INT32_MAX : 0);
    }
    call.rows = INT32_MAX, call.n = 1;
    assert_launched(&call);
  }
  EACH_TENSOR(op, t) {
    struct rows_call call = good(op);
    call.rows = has_stride(t) ? 1 : 13; /* more than 16 bytes either way */
    call.tensor[t] = (void *)(UINTPTR_MAX - 15);
    assert_refused(&call, NST_ERROR_SHAPE, text(t, " = 0xfffffffffffffff0:"), "address space");
    if (!has_stride(t)) continue;
    call = good(op), call.rows = 13; /* 4 rows of conditioning */
    call.stride[t] = (int64_t)1 << 61; /* the bytes to the last row overflow */
    assert_refused(&call, NST_ERROR_STRIDE, text(t, "_stride = 2305843009213693952:"),
                   rows_tensor_shape(t) == SHAPE_COND ? "the rows, 4," : "the rows, 13,");
    call.dtype = NST_DTYPE_F32; /* 2^64 bytes, which would pass for 0 */
    call.stride[t] = (int64_t)1 << 62;
    assert_refused(&call, NST_ERROR_STRIDE, text(t, "_stride = 4611686018427387904:"), "address space");
    call.dtype = NST_DTYPE_BF16;
    call.stride[t] = (int64_t)1 << 58;
    call.tensor[t] = (void *)((uintptr_t)1 << 60);
    assert_launched(&call);
    call.tensor[t] = (void *)((uintptr_t)15 << 60); /* the last row's address overflows */
    assert_refused(&call, NST_ERROR_STRIDE, text(t, "_stride = 288230376151711744:"), "address space");
  }
}

/* ---- Overlaps ------------------------------------------------------------------------------------------------ */

/* Whether an output may take the place of another tensor. */
static int in_place_form(enum rows_tensor out, enum rows_tensor other) {
  return rows_tensor_shape(out) == SHAPE_DATA && (other == ROWS_X || other == ROWS_RESIDUAL);
}

static void test_in_place(void **state) {
  (void)state;
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1)) {
    for (enum rows_tensor out = ROWS_INPUTS; out < ROWS_TENSORS; out = (enum rows_tensor)(out + 1)) {
      for (enum rows_tensor in = 0; in < ROWS_INPUTS; in = (enum rows_tensor)(in + 1)) {
        if (!op_has(op, out) || !op_has(op, in)) continue;
        struct rows_call call = good(op);
        call.tensor[out] = call.tensor[in];
        call.stride[out] = call.stride[in];
        if (in_place_form(out, in)) {
          assert_launched(&call);
          call.stride[out] += 8;
        }
        assert_refused(&call, NST_ERROR_OVERLAP, text(out, " = "), rows_tensor_name(in));
      }
    }
  }
}

/* One output laid over every place of one input, against a look at each byte. */
static void overlap_by_force(nst_op op, enum rows_tensor out, enum rows_tensor in) {
  static unsigned char touched[4 * ROOM];
  for (int stride = N; stride <= 2 * N; stride += N / 2) {
    for (int64_t at = -2 * ROOM / 4; at < ROOM / 2; at += 14) {
      struct rows_call call = good(op);
      const enum rows_tensor both[] = {in, out};
      int wrong = 0;
      memset(touched, 0, sizeof touched);
      call.stride[out] = stride;
      unsigned char *const base = memory[ROWS_TENSORS / 2]; /* far from both ends; nothing is read or written there */
      call.tensor[in] = base;
      call.tensor[out] = base + at;
      for (int i = 0; i < 2; i++) {
        const enum rows_shape shape = rows_tensor_shape(both[i]);
        const int64_t rows = shape == SHAPE_DATA   ? call.rows
                             : shape == SHAPE_COND ? rows_of_cond(call.rows, call.rows_per_cond)
                                                   : 1;
        for (int64_t r = 0; r < rows; r++) {
          unsigned char *const row = touched + 2 * ROOM + (i ? at : 0) + 2 * r * call.stride[both[i]];
          for (int b = 0; b < 2 * N; b++) {
            wrong |= i && row[b];
            if (!i) row[b] = 1;
          }
        }
      }
      /* Tensors with gaps and different strides are taken to overlap where their ranges do: not looked at here. */
      if (call.stride[in] != stride && stride != N && call.stride[in] != N && has_stride(in)) continue;
      if (at == 0 && call.stride[in] == stride) continue; /* in place */
      for (int t = 0; t < ROWS_TENSORS; t++) {
        if (!op_needs(op, (enum rows_tensor)t) && t != (int)in && t != (int)out) call.tensor[t] = NULL;
      }
      static unsigned char apart[2][4 * ROOM];
      if (out != ROWS_Y) call.tensor[ROWS_Y] = apart[0];
      if (in != ROWS_X) call.tensor[ROWS_X] = apart[1];
      if (op_has(op, ROWS_RESIDUAL) && in != ROWS_RESIDUAL) call.tensor[ROWS_RESIDUAL] = apart[1];
      nst_status status = launch(&call);
      if (status != (wrong ? NST_ERROR_OVERLAP : NST_OK)) {
        fail_msg("%s: %s at byte %lld of %s, stride %d: %s, %s", op_name(op), rows_tensor_name(out), (long long)at,
                 rows_tensor_name(in), stride, nst_status_name(status), nst_last_error());
      }
    }
  }
}

static void test_overlaps_by_force(void **state) {
  (void)state;
  for (nst_op op = 0; op < ROWS_OPS; op = (nst_op)(op + 1)) {
    for (enum rows_tensor out = ROWS_Y; out <= ROWS_RESIDUAL_OUT; out = (enum rows_tensor)(out + 1)) {
      for (enum rows_tensor in = 0; in < ROWS_INPUTS; in = (enum rows_tensor)(in + 1)) {
        if (op_has(op, out) && op_has(op, in)) overlap_by_force(op, out, in);
      }
    }
  }
}

/* Conditioning ends after its own two rows, however many rows x has. */
static void test_conditioning_ends_after_its_rows(void **state) {
  (void)state;
  for (enum rows_tensor t = ROWS_SCALE; t <= ROWS_GATE; t = (enum rows_tensor)(t + 1)) {
    for (int stride = N; stride <= 3 * N; stride += 2 * N) { /* dense, and a slice of rows of 3 * N */
      struct rows_call call = good(NST_OP_ADA_LAYER_NORM_ZERO_FWD);
      unsigned char *const behind = memory[t] + 2 * (stride + N);
      call.stride[t] = call.stride[ROWS_Y] = stride;
      call.tensor[ROWS_Y] = behind;
      assert_launched(&call);
      call.tensor[ROWS_Y] = behind - 2;
      assert_refused(&call, NST_ERROR_OVERLAP, "y = 0x", "overlaps");
      call.tensor[ROWS_Y] = memory[ROWS_Y];
      call.tensor[ROWS_MEAN] = behind;
      assert_launched(&call);
      call.tensor[ROWS_MEAN] = behind - 4;
      assert_refused(&call, NST_ERROR_OVERLAP, "mean = 0x", rows_tensor_name(t));
    }
  }
}

/* Where a tensor lies, in bytes; 0 rows: it is absent. */
struct strip {
  int64_t begin, row, stride, rows;
};

static int strips_meet(const struct strip *a, const struct strip *b) {
  for (int64_t i = 0; i < a->rows; i++) {
    for (int64_t j = 0; j < b->rows; j++) {
      const int64_t p = a->begin + i * a->stride;
      const int64_t q = b->begin + j * b->stride;
      if (p < q + b->row && q < p + a->row) return 1;
    }
  }
  return 0;
}

static int gaps(const struct strip *a) { return a->rows > 1 && a->stride > a->row; }

static uint32_t random_state = 12345;

static int64_t random_below(int64_t limit) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int64_t)random_state * limit >> 32;
}

/* Small tensors close together, often in each other's place or slices of the same rows. */
static struct rows_call random_call(nst_op op, struct strip *strips) {
  struct rows_call call = {.op = op, .dtype = NST_DTYPE_BF16, .eps = 1e-5f};
  call.rows = 1 + random_below(6), call.n = 1 + random_below(8), call.rows_per_cond = 1 + random_below(4);
  const int64_t room = 30 << random_below(5);
  memset(strips, 0, ROWS_TENSORS * sizeof *strips);
  for (enum rows_tensor t = 0; t < ROWS_TENSORS; t = (enum rows_tensor)(t + 1)) {
    struct strip *strip = &strips[t];
    const struct strip *like = &strips[random_below(t + 1)];
    if (!op_has(op, t) || (!op_needs(op, t) && random_below(2))) continue;
    strip->row = rows_tensor_shape(t) == SHAPE_COLUMN ? 4 * call.rows : 2 * call.n;
    strip->rows = 1;
    strip->begin = 4 * random_below(room);
    if (has_stride(t)) {
      strip->rows = rows_tensor_shape(t) == SHAPE_COND ? rows_of_cond(call.rows, call.rows_per_cond) : call.rows;
      strip->stride = 2 * (is_output(t) ? call.n + random_below(call.n + 6) : 1 + random_below(2 * call.n + 6));
      strip->begin += 2 * random_below(2);
      if (like->stride >= strip->row && random_below(2)) {
        strip->stride = like->stride;
        strip->begin = random_below(2) ? like->begin : strip->begin;
      }
    }
    call.tensor[t] = memory[0] + strip->begin;
    call.stride[t] = strip->stride / 2;
  }
  return call;
}

/* All tensors of a call at once, against a comparison row by row. */
static void test_random_overlaps(void **state) {
  (void)state;
  int seen[ROWS_OPS][3] = {{0}};
  for (int i = 0; i < 50000 * ROWS_OPS; i++) {
    const nst_op op = (nst_op)(i % ROWS_OPS);
    struct strip strips[ROWS_TENSORS];
    struct rows_call call = random_call(op, strips);
    int meet = 0, undecided = 0, in_place = 0;
    for (int out = ROWS_INPUTS; out < ROWS_TENSORS; out++) {
      for (int other = 0; other < out; other++) {
        const struct strip *a = &strips[out];
        const struct strip *b = &strips[other];
        if (!a->rows || !b->rows) continue;
        const int same = in_place_form((enum rows_tensor)out, (enum rows_tensor)other) && a->begin == b->begin &&
                         (a->rows == 1 || a->stride == b->stride);
        in_place |= same;
        meet |= !same && strips_meet(a, b);
        undecided |= !same && gaps(a) && gaps(b) && a->stride != b->stride;
      }
    }
    const nst_status status = launch(&call);
    if (status != (meet ? NST_ERROR_OVERLAP : NST_OK) && !(undecided && status == NST_ERROR_OVERLAP)) {
      fail_msg("call %d, %s: %s (%s)", i, op_name(op), nst_status_name(status), nst_last_error());
    }
    seen[op][meet ? 0 : in_place ? 1 : 2]++;
  }
  for (int op = 0; op < ROWS_OPS; op++) { /* all kinds came up */
    assert_true(seen[op][0] > 10000 && seen[op][1] > 500 && seen[op][2] > 10000);
  }
}

/* Outputs against outputs. */
static void test_outputs_apart(void **state) {
  (void)state;
  EACH_TENSOR(op, t) {
    for (enum rows_tensor other = ROWS_INPUTS; is_output(t) && other < t; other = (enum rows_tensor)(other + 1)) {
      if (!op_has(op, other)) continue;
      struct rows_call call = good(op);
      call.tensor[t] = call.tensor[other];
      assert_refused(&call, NST_ERROR_OVERLAP, text(t, " = "), rows_tensor_name(other));
    }
  }
}

static int open_library(void **state) {
  (void)state;
  fake_reset();
  return fake_open(&library);
}

static int close_library(void **state) {
  (void)state;
  return nst_close(library);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parameters),    cmocka_unit_test(test_absent_tensors),
      cmocka_unit_test(test_rows_per_cond), cmocka_unit_test(test_scalars),
      cmocka_unit_test(test_flags),         cmocka_unit_test(test_weight_types),
      cmocka_unit_test(test_strides),       cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_in_place),      cmocka_unit_test(test_overlaps_by_force),
      cmocka_unit_test(test_outputs_apart), cmocka_unit_test(test_kernels_of_weight_types),
      cmocka_unit_test(test_address_space), cmocka_unit_test(test_conditioning_ends_after_its_rows),
      cmocka_unit_test(test_random_overlaps),
  };
  return cmocka_run_group_tests(tests, open_library, close_library);
}
