/*
 * Proofs over the tables, read here as data of their own: rows and choices say what their coordinates say, and for a
 * large sweep of calls nst_explain and the launch agree with a plain reading of the choices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axes.h"
#include "fake_driver.h"
#include "rows.h"

struct line {
  size_t index;
  const char *op, *types, *bucket, *strategy, *access; /* as printed */
  int ordinal;                                         /* of the bucket */
  const char *symbol, *hole;
};

#define NST_KERNEL(index, op, types, bucket, strategy, access, threads, lanes, vectors, cluster, rows, blocks, slots, \
                   smem, symbol)                                                                                      \
  {index, #op, #types, #bucket, #strategy, #access, NST_BUCKET_##bucket, #symbol, NULL},
#define NST_HOLE(index, op, types, bucket, strategy, access, reason) \
  {index, #op, #types, #bucket, #strategy, #access, NST_BUCKET_##bucket, NULL, reason},

struct cell {
  int bucket;
  int access;
  size_t row;
};

struct choice {
  size_t index;
  int arch, op, types, bucket, access;
  int64_t limit[3];
  struct cell cells[4];
  const char *source;
};

#define CELL(op, types, b, s, a)                                                                         \
  {                                                                                                      \
    NST_BUCKET_##b, NST_ACCESS_##a,                                                                      \
        NST_ROWS_INDEX(NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##b, NST_STRATEGY_##s, NST_ACCESS_##a) \
  }
#define NST_CHOICE(index, arch, op, types, bucket, access, r0, r1, r2, b0, s0, a0, b1, s1, a1, b2, s2, a2, b3, s3, a3, \
                   source)                                                                                             \
  {index,                                                                                                              \
   NST_ARCH_##arch,                                                                                                    \
   NST_OP_##op,                                                                                                        \
   NST_TYPES_##types,                                                                                                  \
   NST_BUCKET_##bucket,                                                                                                \
   NST_ACCESS_##access,                                                                                                \
   {r0, r1, r2},                                                                                                       \
   {CELL(op, types, b0, s0, a0), CELL(op, types, b1, s1, a1), CELL(op, types, b2, s2, a2),                             \
    CELL(op, types, b3, s3, a3)},                                                                                      \
   #source},

static const int64_t sizes[NST_BUCKET_COUNT] = NST_BUCKET_SIZES;
static const struct line lines[] = {
#include "rows.inc"
};
static const struct choice choices[] = {
#include "choices.inc"
};
_Static_assert(sizeof lines / sizeof *lines == NST_ROWS_COUNT, "every row is printed");
_Static_assert(sizeof choices / sizeof *choices == NST_CHOICE_COUNT, "every choice is printed");

static nst_library *library;

static void lower(char *text) {
  for (; *text; text++) {
    *text = (char)tolower((unsigned char)*text);
  }
}

/* ---- Rows ---------------------------------------------------------------------------------------------------- */

static void test_rows_are_in_order(void **state) {
  (void)state;
  assert_int_equal(nst_table_count(), NST_ROWS_COUNT);
  for (size_t i = 0; i < NST_ROWS_COUNT; i++) {
    assert_int_equal(lines[i].index, i);
    nst_kernel_info info = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &info), NST_OK);
    assert_int_equal(info.size, sizeof info);
    assert_int_equal(info.index, i);
    assert_int_equal(info.bucket, sizes[lines[i].ordinal]);
    assert_true(!info.symbol == !lines[i].symbol && !info.hole == !lines[i].hole);
    assert_string_equal(info.symbol ? info.symbol : info.hole, info.symbol ? lines[i].symbol : lines[i].hole);
  }
}

static void test_names_say_the_coordinates(void **state) {
  (void)state;
  for (size_t i = 0; i < NST_ROWS_COUNT; i++) {
    nst_kernel_info info = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &info), NST_OK);
    char bucket[16], name[128], printed[128];
    snprintf(bucket, sizeof bucket, info.bucket ? "%d" : "any", (int)info.bucket);
    snprintf(name, sizeof name, "nst_%s_%s_n%s_%s_%s", op_name(info.op), types_name(info.dtype, info.weight_dtype),
             bucket, strategy_name(info.strategy), access_name(info.access));
    snprintf(printed, sizeof printed, "nst_%s_%s_n%s_%s_%s", lines[i].op, lines[i].types, lines[i].bucket,
             lines[i].strategy, lines[i].access);
    lower(printed);
    assert_string_equal(printed, name);
    if (info.symbol) {
      assert_string_equal(info.symbol, name);
    }
  }
}

static void test_launch_facts_are_possible(void **state) {
  (void)state;
  int kernels = 0;
  for (size_t i = 0; i < NST_ROWS_COUNT; i++) {
    nst_kernel_info info = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &info), NST_OK);
    if (info.hole) {
      assert_null(info.symbol);
      assert_true(strlen(info.hole) > 10); /* a reason, in words */
      continue;
    }
    kernels++;
    assert_true(info.threads >= 32 && info.threads <= 1024 && info.threads % 32 == 0);
    assert_true(info.cluster >= 1 && info.cluster <= 8 && (info.cluster & (info.cluster - 1)) == 0);
    assert_true(info.vectors >= 1 && info.rows_per_block >= 1);
    assert_true(info.shared_bytes <= 227 * 1024);
    assert_true(info.blocks_per_sm <= 32);
    if (info.strategy <= NST_STRATEGY_PERSIST || info.strategy == NST_STRATEGY_CLUSTER) {
      /* The threads that share a row hold all of it at a time. */
      int64_t vector = info.dtype == NST_DTYPE_F32 ? 4 : 8;
      int64_t held = (int64_t)info.threads * info.cluster / info.rows_per_block * info.vectors * vector;
      assert_true(held >= info.bucket);
    }
  }
  assert_true(kernels > 0);
}

/* ---- Choices ------------------------------------------------------------------------------------------------- */

static bool left_out(const char *reason) { return strncmp(reason, "left out of this build", 22) == 0; }

static const nst_dtype data_types[] = NST_TYPES_DATA;
static const nst_dtype weight_types[] = NST_TYPES_WEIGHT;

/* Types that the operation has: conditioning has the data's. */
static nst_types types_of(nst_op op, nst_types types) {
  return !op_has(op, ROWS_WEIGHT) && weight_types[types] != data_types[types] ? types - NST_TYPES_F16W32 : types;
}

static void test_every_choice_is_a_kernel(void **state) {
  (void)state;
  for (size_t i = 0; i < NST_CHOICE_COUNT; i++) {
    const struct choice *choice = &choices[i];
    assert_int_equal(choice->index, i);
    assert_int_equal(NST_CHOICE_INDEX(choice->arch, choice->op, choice->types, choice->bucket, choice->access), i);
    assert_true(choice->limit[0] <= choice->limit[1] && choice->limit[1] <= choice->limit[2]);
    assert_true(choice->limit[0] >= 1 && choice->limit[2] <= INT32_MAX);
    for (int j = 0; j < 4; j++) {
      const struct cell *cell = &choice->cells[j];
      const struct line *line = &lines[cell->row];
      if (types_of((nst_op)choice->op, (nst_types)choice->types) != (nst_types)choice->types) {
        assert_null(line->symbol); /* no call has these types */
        continue;
      }
      if (!line->symbol && !left_out(line->hole)) {
        fail_msg("choice %zu leads to row %zu, a hole: %s", i, cell->row, line->hole);
      }
      /* It serves every call of its kind: long enough, and no more special than the calls are. */
      int64_t size = sizes[choice->bucket];
      int64_t served = sizes[cell->bucket];
      assert_true(served == 0 || (size != 0 && served >= size));
      assert_true(cell->access >= choice->access);
      assert_true(cell->access != NST_ACCESS_EXACT || served == size);
    }
  }
}

/* ---- Explain and launch -------------------------------------------------------------------------------------- */

struct call {
  nst_op op;
  nst_types types;
  int64_t rows, n;
  int offset; /* of x, in elements */
};

/* What the tables, read plainly, give to a call. */
static const struct cell *expected_cell(const struct call *call, int arch, const char **source) {
  int bucket = 0;
  while (sizes[bucket] != 0 && sizes[bucket] < call->n) {
    bucket++;
  }
  int64_t element = data_types[call->types] == NST_DTYPE_F32 ? 4 : 2;
  int access = NST_ACCESS_EXACT;
  if (call->n * element % 16 != 0 || call->offset * element % 16 != 0) {
    access = NST_ACCESS_UNALIGNED;
  } else if (call->n != sizes[bucket]) {
    access = NST_ACCESS_MASKED;
  }
  const struct choice *choice = &choices[NST_CHOICE_INDEX(arch, call->op, call->types, bucket, access)];
  int range = 0;
  while (range < 3 && call->rows > choice->limit[range]) {
    range++;
  }
  *source = choice->source;
  return &choice->cells[range];
}

/* Addresses alone, far apart; of data 2^59 bytes, of the rest fewer. Only x may be off a 16-byte boundary. */
static struct rows_call given_of(const struct call *call) {
  struct rows_call given = {.op = call->op,
                            .dtype = data_types[call->types],
                            .weight_dtype = weight_types[call->types],
                            .rows = call->rows,
                            .n = call->n,
                            .eps = 1e-5f};
  for (int t = 0; t < ROWS_TENSORS; t++) {
    if (op_has(call->op, (enum rows_tensor)t) && t != ROWS_MEAN && t != ROWS_RSTD) {
      given.tensor[t] = (void *)((uintptr_t)(t + 1) << 59);
    }
  }
  int element = data_types[call->types] == NST_DTYPE_F32 ? 4 : 2;
  given.tensor[ROWS_X] = (char *)given.tensor[ROWS_X] + call->offset * element;
  return given;
}

static union rows_args args_of(const struct call *call) {
  struct rows_call given = given_of(call);
  return rows_args_of(&given);
}

/* The grid by the rule, worked out in another way than the library does. */
static int64_t expected_grid(const nst_kernel_info *kernel, int64_t rows, int multiprocessors) {
  int64_t groups = rows / kernel->rows_per_block + (rows % kernel->rows_per_block != 0);
  int64_t limit = (int64_t)multiprocessors * kernel->blocks_per_sm / kernel->cluster;
  if (kernel->blocks_per_sm && groups > limit) {
    groups = limit < 1 ? 1 : limit;
  }
  return groups * kernel->cluster;
}

static void check_call(const struct call *call, int arch) {
  static const int capabilities[] = NST_ARCH_CAPABILITIES;
  const char *source;
  const struct cell *cell = expected_cell(call, arch, &source);
  const struct line *line = &lines[cell->row];
  union rows_args args = args_of(call);
  nst_device_facts device = {sizeof device, capabilities[arch], fake.multiprocessors};
  nst_launch_info info = NST_LAUNCH_INFO_INIT;
  nst_status status = nst_explain(call->op, &args, &device, &info);
  fake_launched.count = 0;
  fake_device = arch;
  nst_status launched = rows_launch(library, call->op, &args, NULL);
  assert_int_equal(status, launched);
  if (line->hole) {
    assert_int_equal(status, NST_ERROR_NO_KERNEL);
    assert_non_null(strstr(nst_last_error(), line->hole));
    return;
  }
  nst_kernel_info row = NST_KERNEL_INFO_INIT;
  assert_int_equal(nst_table_row(cell->row, &row), NST_OK);
  int64_t grid = expected_grid(&row, call->rows, fake.multiprocessors);
  if (grid > INT32_MAX) {
    assert_int_equal(status, NST_ERROR_KERNEL_UNFIT);
    return;
  }
  if (status != NST_OK) {
    fail_msg("rows %lld n %lld: %s", (long long)call->rows, (long long)call->n, nst_last_error());
  }
  char word[16];
  snprintf(word, sizeof word, "%s", source);
  lower(word);
  assert_string_equal(info.choice, word);
  assert_memory_equal(&info.kernel, &row, sizeof row);
  assert_int_equal(info.grid, grid);
  assert_int_equal(fake_launched.count, 1);
  assert_string_equal(fake_launched.kernel, line->symbol);
  assert_int_equal(fake_launched.grid[0], grid);
  assert_int_equal(fake_launched.block[0], row.threads);
  assert_true(fake_launched.grid[1] == 1 && fake_launched.grid[2] == 1);
  assert_true(fake_launched.block[1] == 1 && fake_launched.block[2] == 1);
  assert_int_equal(fake_launched.shared_bytes, row.shared_bytes);
  assert_int_equal(fake_launched.cluster, row.cluster > 1 ? row.cluster : 0);
  assert_int_equal(fake_launched.params.n, call->n);
  assert_int_equal(fake_launched.params.rows, call->rows);
}

/* Row lengths around every bucket's ends, and numbers of rows around every threshold of the choices. */
static void test_explain_agrees_with_launch(void **state) {
  (void)state;
  static const int64_t beside[] = {-9, -8, -1, 0, 1, 8};
  for (int arch = 0; arch < NST_ARCH_COUNT; arch++) {
    for (int op = 0; op < NST_OP_COUNT; op++) {
      for (int types = 0; types < NST_TYPES_COUNT; types++) {
        if (types_of((nst_op)op, (nst_types)types) != (nst_types)types) {
          continue;
        }
        for (int bucket = 0; bucket < NST_BUCKET_COUNT; bucket++) {
          int64_t size = sizes[bucket] ? sizes[bucket] : 1000000;
          for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
            for (int offset = 0; offset < 2; offset++) {
              struct call call = {(nst_op)op, (nst_types)types, 1, size + beside[i], offset};
              const char *source;
              expected_cell(&call, arch, &source);
              int64_t element = data_types[types] == NST_DTYPE_F32 ? 4 : 2;
              int access = call.n * element % 16 || offset ? 2 : call.n == sizes[bucket] ? 0 : 1;
              const struct choice *choice = &choices[NST_CHOICE_INDEX(arch, op, types, bucket, access)];
              int64_t rows[] = {1,
                                2,
                                33,
                                4096,
                                choice->limit[0],
                                choice->limit[0] + 1,
                                choice->limit[1],
                                choice->limit[1] + 1,
                                choice->limit[2],
                                choice->limit[2] + 1,
                                INT32_MAX};
              for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
                call.rows = rows[j] < INT32_MAX ? rows[j] : INT32_MAX;
                check_call(&call, arch);
              }
            }
          }
        }
      }
    }
  }
}

static uint64_t random_state = 1;

static uint32_t random_bits(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}

/* Random calls of every magnitude. */
static void test_random_calls(void **state) {
  (void)state;
  for (int i = 0; i < 200000; i++) {
    struct call call = {(nst_op)(random_bits() % NST_OP_COUNT), (nst_types)(random_bits() % NST_TYPES_COUNT),
                        1 + (random_bits() >> random_bits() % 31), 1 + (random_bits() >> random_bits() % 31),
                        (int)(random_bits() % 9)};
    call.types = types_of(call.op, call.types);
    call.rows = call.rows > INT32_MAX ? INT32_MAX : call.rows;
    call.n = call.n > INT32_MAX ? INT32_MAX : call.n;
    if ((double)call.rows * (double)call.n > 1e17) {
      call.rows = 1 + call.rows % 1000; /* within the space between the addresses */
    }
    check_call(&call, (int)(random_bits() % NST_ARCH_COUNT));
  }
}

/* Every kernel is launched by its index with arguments that fit it exactly, and gets its own shape. */
static void test_every_kernel_by_index(void **state) {
  (void)state;
  for (size_t i = 0; i < NST_ROWS_COUNT; i++) {
    nst_kernel_info row = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &row), NST_OK);
    nst_types types = 0;
    while (data_types[types] != row.dtype || weight_types[types] != row.weight_dtype) {
      types++;
    }
    int64_t size = row.bucket ? row.bucket : 3000000;
    struct call call = {row.op, types, 1000, size - (row.access == NST_ACCESS_EXACT ? 0 : 8), 0};
    union rows_args args = args_of(&call);
    fake_launched.count = 0;
    nst_status status = nst_launch_kernel(library, i, &args, NULL);
    if (row.hole) {
      assert_int_equal(status, NST_ERROR_NO_KERNEL);
      assert_int_equal(fake_launched.count, 0);
      continue;
    }
    assert_int_equal(status, NST_OK);
    assert_int_equal(fake_launched.count, 1);
    assert_string_equal(fake_launched.kernel, row.symbol);
    assert_int_equal(fake_launched.grid[0], expected_grid(&row, call.rows, fake.multiprocessors));
    assert_int_equal(fake_launched.block[0], row.threads);
    assert_int_equal(fake_launched.cluster, row.cluster > 1 ? row.cluster : 0);
    assert_int_equal(fake_launched.shared_bytes, row.shared_bytes);
    /* One element too long; each tensor in turn 4 bytes off a 16-byte boundary, statistics aside. */
    struct rows_call given = given_of(&call);
    given.n = size + 1;
    args = rows_args_of(&given);
    assert_int_equal(nst_launch_kernel(library, i, &args, NULL),
                     row.bucket || row.access != NST_ACCESS_UNALIGNED ? NST_ERROR_KERNEL_UNFIT : NST_OK);
    for (enum rows_tensor t = 0; t < ROWS_TENSORS; t = (enum rows_tensor)(t + 1)) {
      given = given_of(&call);
      if (given.tensor[t]) {
        given.tensor[t] = (char *)given.tensor[t] + 4;
        args = rows_args_of(&given);
        assert_int_equal(nst_launch_kernel(library, i, &args, NULL),
                         row.access != NST_ACCESS_UNALIGNED ? NST_ERROR_KERNEL_UNFIT : NST_OK);
        char begin[32];
        snprintf(begin, sizeof begin, "%s keeps ", rows_tensor_name(t));
        assert_true(row.access == NST_ACCESS_UNALIGNED || strncmp(nst_last_error(), begin, strlen(begin)) == 0);
      }
    }
  }
}

/* Clusters that walk over rows: no more of them than the driver says the device holds at once. */
static void test_clusters_fit_the_device(void **state) {
  (void)state;
  size_t walking = 0;
  fake.resident_clusters = 5;
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info row = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &row), NST_OK);
    if (row.hole || row.cluster == 1) {
      continue;
    }
    nst_types types = 0;
    while (data_types[types] != row.dtype || weight_types[types] != row.weight_dtype) {
      types++;
    }
    walking += row.blocks_per_sm > 0;
    for (int64_t rows = 3; rows <= 300; rows *= 10) {
      struct call call = {row.op, types, rows, row.bucket ? row.bucket : 3000000, 0};
      union rows_args args = args_of(&call);
      int64_t most = row.blocks_per_sm ? 5 : rows;
      assert_int_equal(nst_launch_kernel(library, i, &args, NULL), NST_OK);
      assert_int_equal(fake_launched.grid[0], (rows < most ? rows : most) * row.cluster);
    }
    if (row.blocks_per_sm) {
      struct call call = {row.op, types, 300, row.bucket, 0};
      union rows_args args = args_of(&call);
      fake.failing = "cuOccupancyMaxActiveClusters", fake.failing_after = 0;
      fake_launched.count = 0;
      assert_int_equal(nst_launch_kernel(library, i, &args, NULL), NST_ERROR_DRIVER_CALL);
      assert_non_null(strstr(nst_last_error(), "cuOccupancyMaxActiveClusters"));
      assert_int_equal(fake_launched.count, 0);
      fake.failing = NULL;
    }
  }
  assert_true(walking > 0);
  fake.resident_clusters = 0;
}

/* A device as small as can be: limits of a grid fall below one cluster. */
static int open_on_one_multiprocessor(void **state) {
  (void)state;
  nst_close(library);
  fake.multiprocessors = 1;
  return fake_open(&library);
}

static int open_library(void **state) {
  static const int capabilities[] = NST_ARCH_CAPABILITIES;
  (void)state;
  fake_reset();
  fake.device_count = NST_ARCH_COUNT; /* one device of each architecture */
  memcpy(fake.capability, capabilities, sizeof capabilities);
  return fake_open(&library);
}

static int close_library(void **state) {
  (void)state;
  return nst_close(library);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_are_in_order),
      cmocka_unit_test(test_names_say_the_coordinates),
      cmocka_unit_test(test_launch_facts_are_possible),
      cmocka_unit_test(test_every_choice_is_a_kernel),
      cmocka_unit_test(test_explain_agrees_with_launch),
      cmocka_unit_test(test_random_calls),
      cmocka_unit_test(test_every_kernel_by_index),
      cmocka_unit_test(test_clusters_fit_the_device),
      cmocka_unit_test_setup(test_every_kernel_by_index, open_on_one_multiprocessor),
      cmocka_unit_test(test_random_calls),
  };
  return cmocka_run_group_tests(tests, open_library, close_library);
}
