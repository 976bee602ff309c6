/* Order statistics of times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats.h"

static void near(double got, double expected) {
  if (!(fabs(got - expected) <= 1e-12 * fabs(expected))) fail_msg("%.17g, expected %.17g", got, expected);
}

static void test_odd_count(void **state) {
  (void)state;
  double values[] = {5, 1, 4, 2, 3};
  const struct stats s = stats_of(values, 5);
  assert_int_equal(s.count, 5);
  near(s.min, 1);
  near(s.p10, 1.4);
  near(s.median, 3);
  near(s.p90, 4.6);
  near(s.max, 5);
}

static void test_even_count_takes_the_middle_of_two(void **state) {
  (void)state;
  double values[] = {10, 40, 20, 30};
  near(stats_of(values, 4).median, 25);
}

static void test_one_value_is_every_quantile(void **state) {
  (void)state;
  double value = 7.5;
  const struct stats s = stats_of(&value, 1);
  near(s.min, 7.5);
  near(s.p10, 7.5);
  near(s.median, 7.5);
  near(s.p90, 7.5);
}

static void test_no_value_is_zero(void **state) {
  (void)state;
  const struct stats s = stats_of(NULL, 0);
  assert_int_equal(s.count, 0);
  near(s.median, 0);
  near(stats_geometric_mean(NULL, 0), 0);
  near(stats_quantile(NULL, 0, 0.5), 0);
}

static void test_one_outlier_leaves_the_median(void **state) {
  (void)state;
  double values[] = {2, 2, 1e9, 2, 2};
  const struct stats s = stats_of(values, 5);
  near(s.median, 2);
  near(s.max, 1e9);
}

static void test_quantile_ends(void **state) {
  (void)state;
  const double sorted[] = {1, 2, 4};
  near(stats_quantile(sorted, 3, 0), 1);
  near(stats_quantile(sorted, 3, 1), 4);
  near(stats_quantile(sorted, 3, 0.75), 3);
}

static void test_geometric_mean(void **state) {
  (void)state;
  const double values[] = {0.5, 2, 8};
  near(stats_geometric_mean(values, 3), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_odd_count),
      cmocka_unit_test(test_even_count_takes_the_middle_of_two),
      cmocka_unit_test(test_one_value_is_every_quantile),
      cmocka_unit_test(test_no_value_is_zero),
      cmocka_unit_test(test_one_outlier_leaves_the_median),
      cmocka_unit_test(test_quantile_ends),
      cmocka_unit_test(test_geometric_mean),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
