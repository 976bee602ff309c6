/*
 * The reference: normalisations of stored tensors in double precision, how far a right result may lie from it, and the
 * comparison. It reads tensors on the host, row by row and in pieces, so that a row of any length needs no memory.
 */
#ifndef NST_TOOLS_ORACLE_H
#define NST_TOOLS_ORACLE_H

#include <stdint.h>

#include "normstatic.h"

/* Rows of elements as they are stored. */
struct oracle_tensor {
  const void *data; /* the first row's first element; NULL: absent */
  nst_dtype dtype;
  int64_t stride; /* elements from a row to the next */
};

/* A call of any operation on rows, as tools/rows.h names its tensors. */
struct oracle_rows {
  nst_op op;
  int64_t n;
  struct oracle_tensor x, residual, weight, bias; /* weight and bias: one row */
  struct oracle_tensor scale, shift, gate;        /* row r of x has their row r / rows_per_cond */
  int64_t rows_per_cond;                          /* 0: 1 */
  float eps, weight_offset;
  uint32_t flags; /* NST_FLAG_ROUND_*; the others do not change a result */
};

/* What a row's elements share. */
struct oracle_row {
  double mean; /* 0 for the RMS norms */
  double rstd;
  double mean_limit, rstd_limit; /* right f32 results lie at most so far away */
  /* layer norms: the pivot, the most that the mean may be away from it, and the error of that distance */
  double pivot, shift, shift_limit;
  double relative; /* relative error of rstd before its own rounding */
  int overflows;   /* layer norms: the sums are too large for f32, so that nothing is promised but residual_out */
};

/* One element. */
struct oracle_element {
  double sum;     /* residual_out, not yet rounded to its type: the f32 sum of x and residual */
  double y;       /* not yet rounded to its type */
  double y_limit; /* a right result of y's type lies at most so far away; INFINITY: nothing is promised */
  double terms;   /* the size of what y is the sum of; |y| where nothing is added */
};

struct oracle_row oracle_row_of(const struct oracle_rows *in, int64_t row);
struct oracle_element oracle_element_of(const struct oracle_rows *in, const struct oracle_row *stats, int64_t row,
                                        int64_t i);

/* What a call wrote; residual_out, mean and rstd (element r for row r) may be absent. */
struct oracle_result {
  struct oracle_tensor y, residual_out;
  const float *mean, *rstd;
};

/* Outcome of comparisons; start with ORACLE_REPORT_INIT and compare as many rows as there are. */
struct oracle_report {
  double y_ulps;       /* largest distance of y from the reference, in units of the last place of y's terms */
  int64_t compared;    /* numbers looked at */
  int64_t wrong;       /* numbers outside their limit */
  const char *what;    /* of the first wrong one: "y", "residual_out", "mean" or "rstd"; NULL: all are right */
  int64_t row, column; /* ... its place */
  double expected, got, limit;
};
#define ORACLE_REPORT_INIT {0, 0, 0, NULL, 0, 0, 0, 0, 0}

/* Compares one row of a result. `in` holds the inputs as they were before the call. */
void oracle_compare(const struct oracle_rows *in, const struct oracle_result *result, int64_t row,
                    struct oracle_report *report);

#endif
