/*
 * Limits. u = 2^-24 is the relative error of one f32 rounding.
 *
 * The sum of squares. The kernels add a row's squares in a tree over its 16-byte vectors: a square meets at most E
 * roundings in its vector of E elements (its own included) and one on each of the tree's L = ceil(log2(vectors))
 * levels. All terms are positive, so the relative error of the sum is no larger than that of a term: (E + L) u. Where x
 * is a sum of two inputs it is rounded to f32 first, which a square feels twice: 2 u. The mean multiplies by a rounded
 * 1 / n and adds eps: 3 roundings at most. Together
 *     variance: v = (E + L + 5) u + 2^-149 / (mean + eps)
 * where the second part is what squares and their mean lose below the smallest normal f32 number (2^-150 each).
 * 1 / sqrt halves a relative error and is rounded itself:
 *     rstd:     v / 2 + u
 *
 * y = s * rstd * (weight + offset) feels s, two products and the weight's sum besides: with e = v / 2 + 5 u, and a last
 * rounding to the type of y,
 *     |y - reference| <= ulp / 2 + e |reference|
 * with the ulp of y's type. For f16 and bf16 e is below 2^-19, so that a result is within 1 ulp of the reference and in
 * nearly all cases the reference rounded. For f32 the bound grows with log2(n) alone.
 *
 * NST_FLAG_ROUND_BEFORE_WEIGHT rounds q = s * rstd to the type. Where every number within the error of q rounds to the
 * same one, that one is the reference's factor too and the limit stays ulp / 2 + 2 u |y|. Where the rounding is not
 * decided, q is within its error of the middle between two numbers, and the limit is half of their distance more:
 * together at most 2 ulp of y (the factor's ulp is up to twice as large as y's, relative to them).
 *
 * The residual sum is one f32 addition and one rounding to the type; both are exactly defined, so residual_out is
 * compared bit for bit. Against the unrounded sum that is 0.5 ulp for f32; for the 16-bit types up to 0.5 ulp and half
 * an ulp of f32, since the sum of two 16-bit numbers of very different size does not fit f32 and is rounded twice. For
 * the same reason NST_FLAG_ROUND_RESIDUAL needs no wider limit: what is normalised is known exactly.
 * The sum is formed here in double and rounded to f32: 53 bits are more than 2 * 24 + 2, so that this is the f32 sum of
 * f32 numbers too.
 */
#include "oracle.h"

#include <float.h>
#include <math.h>

#include "half.h"

#define U 0x1p-24
#define PIECE 4096 /* elements that are summed by themselves, so that long sums keep their digits */

/* The number that is normalised: x, or the sum with the residual. *sum: before an asked-for rounding to the type. */
static double normalised(const struct oracle_rms *in, int64_t row, int64_t i, double *sum) {
  const double x = half_load(in->x.dtype, in->x.data, row * in->x.stride + i);
  *sum = x;
  if (!in->residual.data) return x;
  *sum = (float)(x + half_load(in->residual.dtype, in->residual.data, row * in->residual.stride + i));
  return in->flags & NST_FLAG_ROUND_RESIDUAL ? half_round(in->x.dtype, *sum) : *sum;
}

struct oracle_rms_row oracle_rms_row(const struct oracle_rms *in, int64_t row) {
  double total = 0, ignored;
  for (int64_t start = 0; start < in->n; start += PIECE) {
    const int64_t end = in->n - start < PIECE ? in->n : start + PIECE;
    double piece = 0;
    for (int64_t i = start; i < end; i++) {
      const double s = normalised(in, row, i, &ignored);
      piece += s * s;
    }
    total += piece;
  }
  /* As the header says: the sum is an f32 number and overflows like one. */
  if (total > FLT_MAX) total = INFINITY;
  const double variance = total / (double)in->n + (double)in->eps;
  const int64_t per_vector = 16 / (int64_t)half_size(in->x.dtype);
  const double levels = ceil(log2((double)((in->n + per_vector - 1) / per_vector)));
  const double v = ((double)per_vector + levels + 5) * U + 0x1p-149 / variance;
  struct oracle_rms_row stats;
  stats.rstd = 1 / sqrt(variance);
  /* v * v stands for all of the higher powers. Squares that vanish leave nothing to promise. */
  stats.relative = v < 0.25 ? v / 2 + v * v : isnan(v) ? 0 : INFINITY;
  stats.rstd_limit = isfinite(stats.rstd) && stats.rstd > 0 ? (stats.relative + U) * stats.rstd : 0;
  return stats;
}

struct oracle_element oracle_rms_element(const struct oracle_rms *in, const struct oracle_rms_row *stats, int64_t row,
                                         int64_t i) {
  const nst_dtype dtype = in->x.dtype;
  struct oracle_element out;
  const double s = normalised(in, row, i, &out.sum);
  double factor = 1; /* weight and offset */
  if (in->weight.data) factor = half_load(in->weight.dtype, in->weight.data, i) + (double)in->weight_offset;
  const double q = s * stats->rstd;
  double relative = stats->relative + 5 * U, more = 0;
  out.y = q * factor;
  if (in->flags & NST_FLAG_ROUND_BEFORE_WEIGHT && dtype != NST_DTYPE_F32 && isfinite(q)) {
    const double error = (stats->relative + 3 * U) * fabs(q) + 0x1p-149;
    const double low = half_round(dtype, q - error), high = half_round(dtype, q + error);
    if (low == high) {
      out.y = low * factor;
      relative = 2 * U;
    } else {
      more = half_ulp(dtype, q) / 2 * fabs(factor);
    }
  }
  if (isnan(out.y)) {
    out.y_limit = 0;
    return out;
  }
  if (isinf(relative)) {
    out.y_limit = INFINITY;
    return out;
  }
  const double magnitude = fabs(half_clamp(dtype, out.y));
  /* The last part: the f32 products may be too small for a normal number. */
  out.y_limit = half_ulp(dtype, magnitude * (1 + relative)) / 2 + relative * magnitude + more +
                0x1p-149 * (1 + fabs(factor));
  return out;
}

static void judge(struct oracle_report *report, const char *what, nst_dtype dtype, int64_t row, int64_t column,
                  double expected, double got, double limit) {
  report->compared++;
  const int right = isnan(expected) || isnan(got)
                        ? isnan(expected) && isnan(got)
                        : fabs(half_clamp(dtype, got) - half_clamp(dtype, expected)) <= limit;
  if (right) return;
  if (report->wrong++ > 0) return;
  report->what = what, report->row = row, report->column = column;
  report->expected = expected, report->got = got, report->limit = limit;
}

void oracle_rms_compare(const struct oracle_rms *in, const struct oracle_rms_result *result, int64_t row,
                        struct oracle_report *report) {
  const struct oracle_rms_row stats = oracle_rms_row(in, row);
  if (result->rstd)
    judge(report, "rstd", NST_DTYPE_F32, row, 0, stats.rstd, (double)result->rstd[row], stats.rstd_limit);
  const nst_dtype dtype = result->y.dtype;
  for (int64_t i = 0; i < in->n; i++) {
    const struct oracle_element e = oracle_rms_element(in, &stats, row, i);
    const double y = half_load(dtype, result->y.data, row * result->y.stride + i);
    judge(report, "y", dtype, row, i, e.y, y, e.y_limit);
    const double ulps = half_distance(dtype, y, e.y);
    if (ulps > report->y_ulps) report->y_ulps = ulps;
    if (result->residual_out.data)
      judge(report, "residual_out", dtype, row, i, half_round(dtype, e.sum),
            half_load(dtype, result->residual_out.data, row * result->residual_out.stride + i), 0);
  }
}
