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
  NST_TYPES_F16 = 0,
  NST_TYPES_BF16 = 1,
  NST_TYPES_F32 = 2,
  NST_TYPES_F16W32 = 3,
  NST_TYPES_BF16W32 = 4
} nst_types;

/* The data type and the weight type of each nst_types. */
#define NST_TYPES_DATA \
  {NST_DTYPE_F16, NST_DTYPE_BF16, NST_DTYPE_F32, NST_DTYPE_F16, NST_DTYPE_BF16}
#define NST_TYPES_WEIGHT \
  {NST_DTYPE_F16, NST_DTYPE_BF16, NST_DTYPE_F32, NST_DTYPE_F32, NST_DTYPE_F32}

/* Of each nst_op: tensors that are read row by row and summed (x, residual); that are one row for all (weight, bias);
 * that have a row for each row or for some neighbours (scale, shift, gate); numbers of the reduced statistic. */
#define NST_OP_INPUTS {1, 2, 1, 2, 1, 1}
#define NST_OP_PARAMETERS {1, 1, 2, 2, 0, 0}
#define NST_OP_CONDITIONING {0, 0, 0, 0, 2, 3}
#define NST_OP_STATISTIC {1, 1, 2, 2, 2, 2}

typedef enum nst_arch {
  NST_ARCH_SM_90 = 0,
  NST_ARCH_SM_100 = 1
} nst_arch;

/* The compute capability of each nst_arch, major * 10 + minor. */
#define NST_ARCH_CAPABILITIES {90, 100}

/* Buckets by ordinal. A bucket serves rows of up to its size; ANY has no limit. */
enum {
  NST_BUCKET_64 = 0,
  NST_BUCKET_128 = 1,
  NST_BUCKET_256 = 2,
  NST_BUCKET_512 = 3,
  NST_BUCKET_768 = 4,
  NST_BUCKET_1024 = 5,
  NST_BUCKET_1152 = 6,
  NST_BUCKET_1536 = 7,
  NST_BUCKET_2048 = 8,
  NST_BUCKET_2560 = 9,
  NST_BUCKET_3072 = 10,
  NST_BUCKET_4096 = 11,
  NST_BUCKET_5120 = 12,
  NST_BUCKET_6144 = 13,
  NST_BUCKET_8192 = 14,
  NST_BUCKET_12288 = 15,
  NST_BUCKET_16384 = 16,
  NST_BUCKET_32768 = 17,
  NST_BUCKET_65536 = 18,
  NST_BUCKET_131072 = 19,
  NST_BUCKET_262144 = 20,
  NST_BUCKET_ANY = 21
};

/* The size of each bucket; 0: no limit. */
#define NST_BUCKET_SIZES \
  {64, 128, 256, 512, 768, 1024, 1152, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192, 12288, 16384, 32768, 65536, \
   131072, 262144, 0}

/* The ordinal of the smallest bucket that holds n; a sum, so that it compiles without a jump. */
#define NST_BUCKET_OF(n) \
  (((n) > 64) + ((n) > 128) + ((n) > 256) + ((n) > 512) + ((n) > 768) + ((n) > 1024) + ((n) > 1152) + ((n) > 1536) + \
   ((n) > 2048) + ((n) > 2560) + ((n) > 3072) + ((n) > 4096) + ((n) > 5120) + ((n) > 6144) + ((n) > 8192) + \
   ((n) > 12288) + ((n) > 16384) + ((n) > 32768) + ((n) > 65536) + ((n) > 131072) + ((n) > 262144))

/* Counts of the axes and of the tables. */
#define NST_OP_COUNT 6
#define NST_TYPES_COUNT 5
#define NST_BUCKET_COUNT 22
#define NST_STRATEGY_COUNT 7
#define NST_ACCESS_COUNT 3
#define NST_ARCH_COUNT 2
#define NST_ROWS_COUNT 13860
#define NST_CHOICE_COUNT 3960

/*
 * The index of a row of the dispatch table; bucket is an ordinal. The axes from slow to fast, and why in this order:
 *   op        slowest: a new operation is appended and moves no other row
 *   types     with the operation it names a source file, so a file's kernels are neighbours
 *   bucket    all that serves a row length stands together when the table is read
 *   strategy  the alternatives that a choice picks from are neighbours
 *   access    fastest: the forms of one strategy, narrow to general
 */
#define NST_ROWS_INDEX(op, types, bucket, strategy, access) \
  ((op) * 2310 + (types) * 462 + (bucket) * 21 + (strategy) * 3 + (access))

/*
 * The index of a line of the choice table, which says for a kind of call which rows of the dispatch table serve it:
 *   arch      slowest: a device reads one part of the table
 *   op        then as in the dispatch table, without the strategy, which is what the table gives
 *   types     as in the dispatch table
 *   bucket    as in the dispatch table
 *   access    as in the dispatch table
 */
#define NST_CHOICE_INDEX(arch, op, types, bucket, access) \
  ((arch) * 1980 + (op) * 330 + (types) * 66 + (bucket) * 3 + (access))

#ifdef __cplusplus
#define NST_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define NST_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* The public enums are in the order of the axes. */
NST_STATIC_ASSERT(NST_OP_RMS_NORM_FWD == 0, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_OP_FUSED_ADD_RMS_NORM_FWD == 1, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_OP_LAYER_NORM_FWD == 2, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_OP_FUSED_ADD_LAYER_NORM_FWD == 3, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_OP_ADA_LAYER_NORM_FWD == 4, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_OP_ADA_LAYER_NORM_ZERO_FWD == 5, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_WARP == 0, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_BLOCK == 1, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_PERSIST == 2, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_REREAD == 3, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_CLUSTER == 4, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_RING == 5, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_STRATEGY_LOOP == 6, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_ACCESS_EXACT == 0, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_ACCESS_MASKED == 1, "the public header and the tables differ in order");
NST_STATIC_ASSERT(NST_ACCESS_UNALIGNED == 2, "the public header and the tables differ in order");

#endif
