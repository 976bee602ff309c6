/* Order statistics of measured times. */
#ifndef NST_PERF_STATS_H
#define NST_PERF_STATS_H

#include <stddef.h>

struct stats {
  size_t count;
  double min, p10, median, p90, max;
};

/* Sorts `values` in place. With no value all members are 0. */
struct stats stats_of(double *values, size_t count);

/* The q-quantile (0 to 1) of ascending values, linear between neighbours; 0 with no value. */
double stats_quantile(const double *sorted, size_t count, double q);

/* The geometric mean of positive values; 0 with no value. */
double stats_geometric_mean(const double *values, size_t count);

#endif
