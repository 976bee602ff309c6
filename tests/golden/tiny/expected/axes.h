/*
 * Printed by `python3 -m codegen all` from spec axes.json and template axes.h.j2; not to be edited.
 *
 * The axes of the tables: their choices in order, and the index of a coordinate. Usable from C11 and C++.
 */
#ifndef NST_AXES_H
#define NST_AXES_H

#include "normstatic.h" /* nst_op, nst_dtype, nst_strategy, nst_access */

/* Data type and weight type of a kernel; a name with w32 has f32 weights beside 16-bit data. */
typedef enum nst_types {
  NST_TYPES_BF16 = 0,
  NST_TYPES_BF16W32 = 1
} nst_types;

/* The data type and the weight type of each nst_types. */
#define NST_TYPES_DATA \
  {NST_DTYPE_BF16, NST_DTYPE_BF16}
#define NST_TYPES_WEIGHT \
  {NST_DTYPE_BF16, NST_DTYPE_F32}

/* Of each nst_op: tensors that are read row by row and summed (x, residual); that are one row for all (weight, bias);
 * that have a row for each row or for some neighbours (scale, shift, gate); numbers of the reduced statistic. */
#define NST_OP_INPUTS {1, 2}
#define NST_OP_PARAMETERS {1, 1}
#define NST_OP_CONDITIONING {0, 0}
#define NST_OP_STATISTIC {1, 1}

typedef enum nst_arch {
  NST_ARCH_SM_90 = 0,
  NST_ARCH_SM_100 = 1
} nst_arch;

/* The compute capability of each nst_arch, major * 10 + minor. */
#define NST_ARCH_CAPABILITIES {90, 100}

/* Buckets by ordinal. A bucket serves rows of up to its size; ANY has no limit. */
enum {
  NST_BUCKET_512 = 0,
  NST_BUCKET_768 = 1,
  NST_BUCKET_ANY = 2
};

/* The size of each bucket; 0: no limit. */
#define NST_BUCKET_SIZES \
  {512, 768, 0}

/* The ordinal of the smallest bucket that holds n; a sum, so that it compiles without a jump. */
#define NST_BUCKET_OF(n) \
  (((n) > 512) + ((n) > 768))

/* Counts of the axes and of the tables. */
#define NST_OP_COUNT 2
#define NST_TYPES_COUNT 2
#define NST_BUCKET_COUNT 3
#define NST_STRATEGY_COUNT 2
#define NST_ACCESS_COUNT 2
#define NST_ARCH_COUNT 2
#define NST_ROWS_COUNT 48
#define NST_CHOICE_COUNT 48

/*
 * The index of a row of the dispatch table; bucket is an ordinal. The axes from slow to fast, and why in this order:
 *   op        slowest: a new operation is appended and moves no other row
 *   types     with the operation it names a source file, so a file's kernels are neighbours
 *   bucket    all that serves a row length stands together when the table is read
 *   strategy  the alternatives that a choice picks from are neighbours
 *   access    fastest: the forms of one strategy, narrow to general
 */
#define NST_ROWS_INDEX(op, types, bucket, strategy, access) \
  ((op) * 24 + (types) * 12 + (bucket) * 4 + (strategy) * 2 + (access))

/*
 * The index of a line of the choice table, which says for a kind of call which rows of the dispatch table serve it:
 *   arch      slowest: a device reads one part of the table
 *   op        then as in the dispatch table, without the strategy, which is what the table gives
 *   types     as in the dispatch table
 *   bucket    as in the dispatch table
 *   access    as in the dispatch table
 */
#define NST_CHOICE_INDEX(arch, op, types, bucket, access) \
  ((arch) * 24 + (op) * 12 + (types) * 6 + (bucket) * 2 + (access))

#ifdef __cplusplus
#define NST_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define NST_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* The public enums are in the order of the axes. */
NST_STATIC_ASSERT(NST_OP_RMS_NORM_FWD == 0, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_OP_FUSED_ADD_RMS_NORM_FWD == 1, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_WARP == 0, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_LOOP == 1, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_ACCESS_EXACT == 0, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_ACCESS_UNALIGNED == 1, "the public header and the tables differ in order");

#endif
