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
 * 1 / sqrt halves a relative error and is itself within 1 ulp:
 *     rstd:     v / 2 + 2 u
 *
 * The layer norms sum deviations d = s - K from a pivot K, and their squares: S1 and S2; then mean = K + S1 / n and the
 * squares around it are M2 = S2 - S1^2 / n, by which the pivot drops out. K is the mean of the row's first vector; where
 * 8 M2 < S2, the sums are taken again around the mean that the first ones gave. With a = K - mean, which the reference
 * knows but for the roundings of K (16 u times the mean of |s| behind it, or the error of the first mean), D = sum |d|:
 *     each d is rounded, so S1 is wrong by at most (E + L + 1) u D, and S2 by (E + L + 3) u S2, S2 = M2 + n a^2;
 *     S1 / n: (E + L + 3) u D / n; the mean that is stored is rounded besides, u |mean|;
 *     S1^2 / n: twice |a| times the error of S1, and three roundings of n a^2; the difference is rounded once more.
 * Together M2 is wrong by at most u ((E + L + 4) (M2 + n a^2) + 2 (E + L + 1) |a| D + 3 n a^2), and eps, 1 / n and the
 * root add the same as above, twice what is lost below the smallest normal number. n a^2 is at most 7 M2, and M2 / 8 for
 * ordinary rows.
 *
 * y = gate * (q * factor + addend), q = (s - K) * rstd - (S1 / n) * rstd, the latter rounded once. With v / 2 the
 * relative error of rstd before its own,
 *     q:      (error of S1 / n + u |s - K| + u |a|) * rstd + |q| (v / 2 + 4 u)
 *     y:      |gate| (|factor| * error of q + u |q factor| + u |y / gate|) + u |y|
 * where factor is a rounded sum (weight + offset, 1 + scale); RMSNorm has q = s * rstd, no addend and no gate. A last
 * rounding to the type of y adds half an ulp of that type. For f16 and bf16 the other parts are small: a result is
 * within 1 ulp of the reference, unless terms cancel, and in nearly all cases the reference rounded.
 *
 * NST_FLAG_ROUND_BEFORE_WEIGHT rounds q to the type. Where every number within the error of q rounds to the same one,
 * that one is the reference's factor too, without an error. Where the rounding is not decided, q is within its error of
 * the middle between two numbers, and the limit is half of their distance more: without addend and gate at most 2 ulp
 * of y in all (the factor's ulp is up to twice as large as y's, relative to them).
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
static double normalised(const struct oracle_rows *in, int64_t row, int64_t i, double *sum) {
  const double x = half_load(in->x.dtype, in->x.data, row * in->x.stride + i);
  *sum = x;
  if (!in->residual.data) return x;
  *sum = (float)(x + half_load(in->residual.dtype, in->residual.data, row * in->residual.stride + i));
  return in->flags & NST_FLAG_ROUND_RESIDUAL ? half_round(in->x.dtype, *sum) : *sum;
}

static int is_centred(nst_op op) { return op != NST_OP_RMS_NORM_FWD && op != NST_OP_FUSED_ADD_RMS_NORM_FWD; }

/* Sums of a row's first `count` numbers s: of s, |s|, |s - pivot| and (s - mean)^2; pieces by themselves first. */
struct sums {
  double plain, magnitude, distance, squares;
};
static struct sums sums_of(const struct oracle_rows *in, int64_t row, int64_t count, double pivot, double mean) {
  struct sums total = {0, 0, 0, 0};
  double ignored;
  for (int64_t start = 0; start < count; start += PIECE) {
    const int64_t end = count - start < PIECE ? count : start + PIECE;
    struct sums piece = {0, 0, 0, 0};
    for (int64_t i = start; i < end; i++) {
      const double s = normalised(in, row, i, &ignored);
      piece.plain += s;
      piece.magnitude += fabs(s);
      piece.distance += fabs(s - pivot);
      piece.squares += (s - mean) * (s - mean);
    }
    total.plain += piece.plain;
    total.magnitude += piece.magnitude;
    total.distance += piece.distance;
    total.squares += piece.squares;
  }
  return total;
}

/* E and L of the text above. */
static double roundings(const struct oracle_rows *in) {
  const int64_t per_vector = 16 / (int64_t)half_size(in->x.dtype);
  return (double)per_vector + ceil(log2((double)((in->n + per_vector - 1) / per_vector)));
}

/* The sum of squares, or what is left of it without the mean, and the error that it may have. */
static double squares_of(const struct oracle_rows *in, int64_t row, struct oracle_row *stats, double *error) {
  const double n = (double)in->n, e = roundings(in);
  if (!is_centred(in->op)) {
    double total = sums_of(in, row, in->n, 0, 0).squares;
    /* As the header says: the sum is an f32 number and overflows like one. */
    if (total > FLT_MAX) total = INFINITY;
    *error = (e + 2) * U * total;
    return total;
  }
  const int64_t behind = 16 / (int64_t)half_size(in->x.dtype), count = in->n < behind ? in->n : behind;
  const struct sums first = sums_of(in, row, count, 0, 0);
  stats->pivot = first.plain / (double)count;
  stats->mean = count == in->n ? stats->pivot : sums_of(in, row, in->n, 0, 0).plain / n;
  struct sums all = sums_of(in, row, in->n, stats->pivot, stats->mean);
  double rounding = 16 * U * first.magnitude / (double)count, a = fabs(stats->pivot - stats->mean) + rounding;
  double distance = all.distance + n * rounding;
  stats->shift_limit = (e + 4) * U * distance / n + 0x1p-149;
  /* Near the limit of 7 either may happen, and the first pivot has the larger errors. */
  if (n * a * a > 7.5 * all.squares) {
    rounding = a = stats->shift_limit + U * fabs(stats->mean);
    stats->pivot = stats->mean;
    all = sums_of(in, row, in->n, stats->pivot, stats->mean);
    distance = all.distance + n * rounding;
    stats->shift_limit = (e + 4) * U * distance / n + 0x1p-149;
  }
  stats->shift = a;
  stats->mean_limit = isfinite(stats->mean) ? U * fabs(stats->mean) + stats->shift_limit : 0;
  *error = U * ((e + 4) * (all.squares + n * a * a) + 2 * (e + 1) * a * distance + 3 * n * a * a);
  /* Sums that are too large for f32 are infinite there or, subtracted, no number: nothing is promised. */
  stats->overflows = isfinite(all.squares) &&
                     (all.squares + n * a * a > FLT_MAX || distance > FLT_MAX || first.magnitude > FLT_MAX);
  return all.squares;
}

struct oracle_row oracle_row_of(const struct oracle_rows *in, int64_t row) {
  struct oracle_row stats = {0};
  double error;
  const double squares = squares_of(in, row, &stats, &error);
  const double variance = squares / (double)in->n + (double)in->eps;
  const double v = error / (double)in->n / variance + 3 * U + (is_centred(in->op) ? 2 : 1) * 0x1p-149 / variance;
  stats.rstd = 1 / sqrt(variance);
  /* v * v stands for all of the higher powers. Squares that vanish beside their error leave nothing to promise. Where
   * v is no number (0 / 0, or the row holds infinity or NaN), the kernels do exactly what is done here. */
  stats.relative = v < 0.25 ? v / 2 + v * v : isnan(v) ? 0 : INFINITY;
  stats.rstd_limit = isinf(stats.relative) ? INFINITY
                     : isfinite(stats.rstd) && stats.rstd > 0 ? (stats.relative + 2 * U) * stats.rstd
                                                              : 0;
  return stats;
}

/* Element i of a parameter, or of the row of conditioning that belongs to `row`; `absent` where there is none. */
static double parameter(const struct oracle_rows *in, const struct oracle_tensor *t, int64_t row, int64_t i,
                        double absent) {
  if (!t->data) return absent;
  const int64_t cond = in->rows_per_cond > 1 ? row / in->rows_per_cond : row;
  return half_load(t->dtype, t->data, cond * t->stride + i);
}

struct oracle_element oracle_element_of(const struct oracle_rows *in, const struct oracle_row *stats, int64_t row,
                                        int64_t i) {
  const nst_dtype dtype = in->x.dtype;
  struct oracle_element out;
  const double s = normalised(in, row, i, &out.sum);
  double factor = 1, addend = 0, gate = 1;
  if (in->op == NST_OP_ADA_LAYER_NORM_FWD || in->op == NST_OP_ADA_LAYER_NORM_ZERO_FWD) {
    factor += parameter(in, &in->scale, row, i, 0);
    addend = parameter(in, &in->shift, row, i, 0);
    gate = parameter(in, &in->gate, row, i, 1);
  } else {
    if (in->weight.data) factor = parameter(in, &in->weight, 0, i, 1) + (double)in->weight_offset;
    addend = parameter(in, &in->bias, 0, i, 0);
  }
  double q = (s - stats->mean) * stats->rstd;
  double error = fabs(q) * (stats->relative + 4 * U) + 0x1p-149, more = 0;
  if (is_centred(in->op)) error += (stats->shift_limit + U * fabs(s - stats->pivot) + U * stats->shift) * stats->rstd;
  if (in->flags & NST_FLAG_ROUND_BEFORE_WEIGHT && dtype != NST_DTYPE_F32 && isfinite(q)) {
    const double low = half_round(dtype, q - error), high = half_round(dtype, q + error);
    if (low == high)
      q = low, error = 0;
    else
      more = half_ulp(dtype, fabs(q) + error) / 2 * fabs(factor * gate);
  }
  const double inner = q * factor + addend;
  out.y = gate * inner;
  out.terms = addend != 0 ? fabs(gate) * (fabs(q * factor) + fabs(addend)) : fabs(out.y);
  if (isinf(stats->relative) || isnan(out.y)) {
    out.y_limit = isinf(stats->relative) ? INFINITY : 0;
    return out;
  }
  /* The last part: the f32 products may be too small for a normal number. */
  error = fabs(gate) * (fabs(factor) * error + U * fabs(q * factor) + U * fabs(inner)) +
          (in->gate.data ? U * fabs(out.y) : 0) + more + 0x1p-149 * (1 + fabs(factor)) * (1 + fabs(gate));
  out.y_limit = half_ulp(dtype, fabs(half_clamp(dtype, out.y)) + error) / 2 + error;
  return out;
}

static void judge(struct oracle_report *report, const char *what, nst_dtype dtype, int64_t row, int64_t column,
                  double expected, double got, double limit) {
  if (isinf(limit)) return; /* nothing is promised */
  report->compared++;
  const int right = isnan(expected) || isnan(got)
                        ? isnan(expected) && isnan(got)
                        : fabs(half_clamp(dtype, got) - half_clamp(dtype, expected)) <= limit;
  if (right) return;
  if (report->wrong++ > 0) return;
  report->what = what, report->row = row, report->column = column;
  report->expected = expected, report->got = got, report->limit = limit;
}

void oracle_compare(const struct oracle_rows *in, const struct oracle_result *result, int64_t row,
                    struct oracle_report *report) {
  const struct oracle_row stats = oracle_row_of(in, row);
  if (result->rstd && !stats.overflows)
    judge(report, "rstd", NST_DTYPE_F32, row, 0, stats.rstd, (double)result->rstd[row], stats.rstd_limit);
  /* An infinite element makes the mean infinite, or no number if it is behind the pivot; y is no number then. */
  if (result->mean && !stats.overflows && !(isinf(stats.mean) && isnan(result->mean[row])))
    judge(report, "mean", NST_DTYPE_F32, row, 0, stats.mean, (double)result->mean[row], stats.mean_limit);
  const nst_dtype dtype = result->y.dtype;
  for (int64_t i = 0; i < in->n; i++) {
    const struct oracle_element e = oracle_element_of(in, &stats, row, i);
    if (!stats.overflows) {
      const double y = half_load(dtype, result->y.data, row * result->y.stride + i);
      judge(report, "y", dtype, row, i, e.y, y, e.y_limit);
      const double terms = half_ulp(dtype, e.y) / half_ulp(dtype, e.terms); /* of the latter's units */
      const double ulps = isinf(e.y_limit) ? 0 : half_distance(dtype, y, e.y) * terms;
      if (ulps > report->y_ulps) report->y_ulps = ulps;
    }
    if (result->residual_out.data)
      judge(report, "residual_out", dtype, row, i, half_round(dtype, e.sum),
            half_load(dtype, result->residual_out.data, row * result->residual_out.stride + i), 0);
  }
}
