#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double stats_quantile(const double *sorted, size_t count, double q) {
  if (count == 0) return 0;
  const double place = q * (double)(count - 1);
  const size_t below = (size_t)place;
  if (below + 1 >= count) return sorted[count - 1];
  return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

struct stats stats_of(double *values, size_t count) {
  struct stats s = {.count = count};
  if (count == 0) return s;
  qsort(values, count, sizeof *values, ascending);
  s.min = values[0];
  s.p10 = stats_quantile(values, count, 0.1);
  s.median = stats_quantile(values, count, 0.5);
  s.p90 = stats_quantile(values, count, 0.9);
  s.max = values[count - 1];
  return s;
}

double stats_geometric_mean(const double *values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += log(values[i]);
  return count ? exp(sum / (double)count) : 0;
}
