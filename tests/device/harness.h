/*
 * What the device test programs share: one operation's call with all its tensors on the device, run on the card or the
 * software device, and everything that can be wrong about it looked at: every element against the reference, every byte
 * that is not an element of an output against what was there before.
 */
#ifndef NST_TESTS_HARNESS_H
#define NST_TESTS_HARNESS_H

#include <stdint.h>

#include "gpu.h"
#include "normstatic.h"
#include "rows.h"

/* Where a tensor of a call lies. */
enum place_kind { ABSENT, OWN, AS_X, AS_RESIDUAL };
struct place {
  enum place_kind kind;
  int64_t offset; /* of OWN: elements from a 16-byte boundary to the first */
  int64_t stride; /* of OWN: elements from a row to the next, 0: dense */
};

/* What the values of x and the residual are like. Those of the parameters and the conditioning are always normal. */
enum fill {
  FILL_NORMAL,   /* around 0, variance 1 */
  FILL_WIDE,     /* magnitudes over 16 powers of two */
  FILL_LARGE,    /* f16: up to 34640; else around 1e15 */
  FILL_TINY,     /* subnormal numbers of the type */
  FILL_CONSTANT, /* 3 everywhere */
  FILL_OUTLIER,  /* normal, and one element of a row over 1000 */
  FILL_FAR,      /* around 10000, with differences of a few units in the last place where the type has no smaller */
  FILL_ZERO,     /* 0 everywhere */
  FILLS
};

/* A call, described so that it can be printed. */
struct call {
  nst_op op;
  nst_dtype dtype, weight_dtype;
  int64_t rows, n;
  int64_t rows_per_cond;
  struct place at[ROWS_TENSORS];
  float eps, weight_offset; /* the offset: of operations without a mean */
  uint32_t flags;
  enum fill fill;
  uint64_t seed;
  int64_t probe; /* this row (and its conditioning) has the content that row 0 has where probe is 0, and the reverse */
};

/* A call of `op`, all outputs wanted, everything dense and apart. */
struct call call_of(nst_op op, nst_dtype dtype, nst_dtype weight_dtype, int64_t rows, int64_t n);
void call_describe(const struct call *call, char *text, size_t size);

/* A tensor on the device. What is not an element is filled with CANARY on both sides and between the rows. */
struct tensor {
  nst_dtype dtype;
  int64_t rows, n, stride;
  size_t first, bytes;     /* of the first element in the allocation, of the allocation */
  char *device;      /* the allocation */
  char *given, *got; /* host copies: before and after the call */
};

/* f16, bf16 and f32 read it as a NaN that no kernel makes. */
#define CANARY_BYTES {0xab, 0xff}

/* A call with its tensors. */
struct setup {
  struct gpu *gpu;
  struct call call;
  struct tensor own[ROWS_TENSORS]; /* bytes 0: not one of its own */
  struct tensor *at[ROWS_TENSORS]; /* which one an argument is; NULL: absent */
};

/* Makes the tensors; returns 0, or -1 (with a line on stderr) where the device has no room. */
int setup_make(struct setup *s, struct gpu *gpu, const struct call *call);
void setup_free(struct setup *s);

/* The element (row, i) of what argument `which` holds before the call, to be changed by a test. */
void *setup_given(struct setup *s, int which, int64_t row, int64_t i);

/* Puts all tensors in place, launches the kernel at `index` of the table (DISPATCH: through the public function),
 * waits, and fetches what the device then holds. On the software device in this order of its scheduler. The launch's
 * status, or NST_ERROR_DRIVER_CALL with a line on stderr where the device failed. */
#define DISPATCH SIZE_MAX
nst_status setup_run(struct setup *s, size_t index, unsigned order);

/* The same in steps, for tests that launch by themselves: puts the tensors in place; waits and fetches them. Returns
 * the device's error. */
int setup_put(struct setup *s);
int setup_fetch(struct setup *s);

/* Looks at what the last run left. Returns the number of wrong findings, each kind printed once with `name` in front.
 * setup_untouched: after a refusal nothing at all may have changed. */
int setup_check(const struct setup *s, const char *name);
int setup_untouched(const struct setup *s, const char *name);

/* All results' bits: equal for equal results. */
uint64_t setup_digest(const struct setup *s);

/* Whether a row of one setup's results is bit for bit a row of another's (of the same n and types); prints the first
 * difference. */
int setup_same_row(const struct setup *a, int64_t row_a, const struct setup *b, int64_t row_b, const char *name);

/* The arguments of a setup's call, as the public functions take them. */
union rows_args setup_args(const struct setup *s);

/* ---- The programs' options ------------------------------------------------------------------------------------ */

struct options {
  enum gpu_choice device;              /* --device card|soft|auto, else NST_DEVICE, else auto */
  const char *op, *types, *strategy;   /* --op NAME, --types NAME, --strategy NAME; NULL: all */
  int part, parts;                     /* --part I/N: every N-th kernel, beginning with the I-th */
};
/* Ends the program with a sentence and status 2 where an option is unknown. */
struct options options_read(int argc, char **argv);
/* Whether the filters let a table row pass. */
int options_pass(const struct options *o, const nst_kernel_info *info);

/* Opens the device and says on stdout which; ends the program with status 1 where there is none. */
void device_open(struct gpu *gpu, enum gpu_choice choice);
/* What the library or the software device said last about a launch that failed. */
const char *device_error(void);
/* How many multiprocessors the software device says it has from its next opening on; does nothing on the card. */
void device_multiprocessors(int count);

/* Pseudo-random bits from a counter. */
uint64_t scramble(uint64_t x);

#endif
