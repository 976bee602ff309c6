/* Finds the fastest kernel for each kind of call and number of rows, and writes it as data for the generator. */
#ifndef NST_PERF_TUNE_H
#define NST_PERF_TUNE_H

#include "measure.h"
#include "options.h"
#include "problem.h"

enum { TUNE_RANGES_MAX = 4 }; /* ranges of rows that the generator's table has room for */

/* Up to so many rows, this candidate. */
struct tune_range {
  int64_t rows_up_to; /* 0: without limit */
  size_t candidate;
  double time_us; /* at the largest number of rows measured in the range */
};

/* Condenses times[row * candidate_count + candidate] (0: not timed; each row has one that is) at ascending numbers of
 * rows into ranges: the sum over all numbers of rows of log(time / best time) plus 1 % for each range becomes as small
 * as it can be. So a range is opened only where it gains, and a second run on the same card picks the same. The border
 * of two ranges is the geometric mean of the numbers of rows on its sides. Returns the number of ranges, 0 where
 * nothing fits. */
size_t tune_ranges(const int64_t *rows, size_t row_count, const double *times, size_t candidate_count,
                   struct tune_range ranges[TUNE_RANGES_MAX]);

/* The shape that stands for a kind of call, with all inputs and a row of conditioning for each row of x: n of the
 * bucket for exact access, one vector less for masked, one element less and off the 16-byte boundary for unaligned. */
void tune_shape(const nst_kernel_info *cell, int64_t rows, struct workload *w);

/* Runs the tuner and merges what it found into the file o->tune: entries of the same kind of call are replaced, others
 * stay. `command` goes into the file's head. */
int tune(struct bench *b, const struct options *o, const char *command, struct problem *p);

#endif
