/* The generated tables as a C program sees them: each is included with macros of the includer's choice. */
#include "axes.h"

/* The rows as designated initialisers: a doubled index is an error under -Woverride-init -Werror. */
struct row {
  const char *text;
  int threads;
};
#define NST_KERNEL(index, op, types, bucket, strategy, access, threads, lanes, vectors, cluster, rows_per_block, \
                   blocks_per_sm, slots, smem, symbol) \
  [NST_ROWS_INDEX(NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##bucket, NST_STRATEGY_##strategy, \
                  NST_ACCESS_##access)] = {#symbol, threads},
#define NST_HOLE(index, op, types, bucket, strategy, access, reason) \
  [NST_ROWS_INDEX(NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##bucket, NST_STRATEGY_##strategy, \
                  NST_ACCESS_##access)] = {reason, 0},
const struct row rows[NST_ROWS_COUNT] = {
#include "rows.inc"
};
#undef NST_KERNEL
#undef NST_HOLE

/* The printed index is the index of the coordinates. */
#define NST_KERNEL(index, op, types, bucket, strategy, access, ...) \
  NST_HOLE(index, op, types, bucket, strategy, access, "")
#define NST_HOLE(index, op, types, bucket, strategy, access, reason) \
  NST_STATIC_ASSERT(index == NST_ROWS_INDEX(NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##bucket, \
                                            NST_STRATEGY_##strategy, NST_ACCESS_##access), "a row is out of its place");
#include "rows.inc"
#undef NST_KERNEL
#undef NST_HOLE

/* All rows are there. */
#define NST_KERNEL(...) +1
#define NST_HOLE(...) +1
enum {
  rows_found = 0
#include "rows.inc"
};
NST_STATIC_ASSERT(rows_found == NST_ROWS_COUNT, "the number of rows");

/* The choices, the same way. */
#define NST_CHOICE(index, arch, op, types, bucket, access, r0, r1, r2, b0, s0, a0, b1, s1, a1, b2, s2, a2, b3, s3, a3, \
                   source) \
  [NST_CHOICE_INDEX(NST_ARCH_##arch, NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##bucket, NST_ACCESS_##access)] = \
      NST_ROWS_INDEX(NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##b3, NST_STRATEGY_##s3, NST_ACCESS_##a3),
const int choices[NST_CHOICE_COUNT] = {
#include "choices.inc"
};
#undef NST_CHOICE
#define NST_CHOICE(index, arch, op, types, bucket, access, r0, r1, r2, ...) \
  NST_STATIC_ASSERT(index == NST_CHOICE_INDEX(NST_ARCH_##arch, NST_OP_##op, NST_TYPES_##types, NST_BUCKET_##bucket, \
                                              NST_ACCESS_##access) && 0 < r0 && r0 <= r1 && r1 <= r2, \
                    "a choice is out of its place or order");
#include "choices.inc"
#undef NST_CHOICE
#define NST_CHOICE(...) +1
enum {
  choices_found = 0
#include "choices.inc"
};
NST_STATIC_ASSERT(choices_found == NST_CHOICE_COUNT, "the number of choices");

/* Every kernel's name is declared once. */
#define NST_KERNEL_SYMBOL(family, symbol) symbol,
enum {
#include "kernels.inc"
  kernels_found
};
NST_STATIC_ASSERT(kernels_found > 0, "kernels");

/* The lists beside the axes have the axes' lengths. */
const int sizes[] = NST_BUCKET_SIZES;
const nst_dtype data[] = NST_TYPES_DATA;
const nst_dtype weight[] = NST_TYPES_WEIGHT;
const int capabilities[] = NST_ARCH_CAPABILITIES;
NST_STATIC_ASSERT(sizeof(sizes) / sizeof(sizes[0]) == NST_BUCKET_COUNT, "buckets");
NST_STATIC_ASSERT(sizeof(data) / sizeof(data[0]) == NST_TYPES_COUNT, "types");
NST_STATIC_ASSERT(sizeof(weight) / sizeof(weight[0]) == NST_TYPES_COUNT, "types");
NST_STATIC_ASSERT(sizeof(capabilities) / sizeof(capabilities[0]) == NST_ARCH_COUNT, "archs");
const int inputs[] = NST_OP_INPUTS;
const int parameters[] = NST_OP_PARAMETERS;
const int conditioning[] = NST_OP_CONDITIONING;
const int statistic[] = NST_OP_STATISTIC;
NST_STATIC_ASSERT(sizeof(inputs) / sizeof(inputs[0]) == NST_OP_COUNT, "inputs");
NST_STATIC_ASSERT(sizeof(parameters) / sizeof(parameters[0]) == NST_OP_COUNT, "parameters");
NST_STATIC_ASSERT(sizeof(conditioning) / sizeof(conditioning[0]) == NST_OP_COUNT, "conditioning");
NST_STATIC_ASSERT(sizeof(statistic) / sizeof(statistic[0]) == NST_OP_COUNT, "statistic");

/* The smallest bucket that holds n. */
NST_STATIC_ASSERT(NST_BUCKET_OF(1) == NST_BUCKET_64, "1");
NST_STATIC_ASSERT(NST_BUCKET_OF(64) == NST_BUCKET_64, "64");
NST_STATIC_ASSERT(NST_BUCKET_OF(65) == NST_BUCKET_128, "65");
NST_STATIC_ASSERT(NST_BUCKET_OF(4096) == NST_BUCKET_4096, "4096");
NST_STATIC_ASSERT(NST_BUCKET_OF(4097) == NST_BUCKET_5120, "4097");
NST_STATIC_ASSERT(NST_BUCKET_OF(262144) == NST_BUCKET_262144, "262144");
NST_STATIC_ASSERT(NST_BUCKET_OF(262145) == NST_BUCKET_ANY, "262145");
NST_STATIC_ASSERT(NST_BUCKET_OF(2147483647) == NST_BUCKET_ANY, "2^31-1");
