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

/* rms_norm_fwd, and fused_add_rms_norm_fwd where there is a residual. */
struct oracle_rms {
  int64_t n;
  struct oracle_tensor x, residual, weight;
  float eps, weight_offset;
  uint32_t flags; /* NST_FLAG_ROUND_*; the others do not change a result */
};

/* What a row's elements share. */
struct oracle_rms_row {
  double rstd;
  double rstd_limit; /* a right f32 result lies at most so far away */
  double relative;   /* the part of it that stems from the sum: relative error of rstd before its own rounding */
};

/* One element. */
struct oracle_element {
  double sum;     /* residual_out, not yet rounded to its type: the f32 sum of x and residual */
  double y;       /* not yet rounded to its type */
  double y_limit; /* a right result of y's type lies at most so far away; INFINITY: nothing is promised */
};

struct oracle_rms_row oracle_rms_row(const struct oracle_rms *in, int64_t row);
struct oracle_element oracle_rms_element(const struct oracle_rms *in, const struct oracle_rms_row *stats, int64_t row,
                                         int64_t i);

/* What a call wrote; residual_out and rstd (one row, element r for row r) may be absent. */
struct oracle_rms_result {
  struct oracle_tensor y, residual_out;
  const float *rstd;
};

/* Outcome of comparisons; start with ORACLE_REPORT_INIT and compare as many rows as there are. */
struct oracle_report {
  double y_ulps;       /* largest distance of y from the reference, in units of the last place of its type */
  int64_t compared;    /* numbers looked at */
  int64_t wrong;       /* numbers outside their limit */
  const char *what;    /* of the first wrong one: "y", "residual_out" or "rstd"; NULL: all are right */
  int64_t row, column; /* ... its place */
  double expected, got, limit;
};
#define ORACLE_REPORT_INIT {0, 0, 0, NULL, 0, 0, 0, 0, 0}

/* Compares one row of a result. `in` holds the inputs as they were before the call. */
void oracle_rms_compare(const struct oracle_rms *in, const struct oracle_rms_result *result, int64_t row,
                        struct oracle_report *report);

#endif
