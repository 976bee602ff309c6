/* Records from (a stand-in) CUPTI, and how they are dealt out to calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calls.h"
#include "fake_cupti.h"
#include "records.h"

static struct fake_cupti *fake;

static int open_fake(void **state) {
  (void)state;
  struct problem p;
  fake = fake_cupti_load();
  if (!fake) return -1;
  if (records_open(fake->file, &p)) return puts(p.text), -1;
  return 0;
}

static int close_fake(void **state) {
  (void)state;
  records_close();
  return 0;
}

static int clear(void **state) {
  (void)state;
  struct problem p;
  return records_clear(&p);
}

static const struct record *take(size_t expected, size_t *count) {
  const struct record *records;
  struct problem p;
  if (records_take(expected, &records, count, &p)) fail_msg("%s", p.text);
  return records;
}

static void test_records_come_in_order_of_start(void **state) {
  (void)state;
  char second[] = "second"; /* another pointer than the literal */
  size_t count;
  fake->add(FAKE_KERNEL, "second", 2000, 2500, 12, 256, 0);
  fake->add(FAKE_MEMSET, NULL, 100, 900, 0, 0, 0);
  fake->add(FAKE_KERNEL, second, 3000, 3100, 16, 512, 8);
  fake->add(FAKE_KERNEL, "first", 1000, 1300, 5, 64, 0);
  fake->add(FAKE_MEMCPY, NULL, 4000, 4001, 0, 0, 0);
  const struct record *r = take(5, &count);
  assert_int_equal(count, 5);
  assert_int_equal(r[0].kind, RECORD_MEMSET);
  assert_int_equal(r[0].end - r[0].start, 800);
  assert_string_equal(r[1].name, "first");
  assert_int_equal(r[1].grid[0], 5);
  assert_int_equal(r[1].block[0], 64);
  assert_int_equal(r[1].cluster, 1);
  assert_string_equal(r[2].name, "second");
  assert_ptr_equal(r[2].name, r[3].name);
  assert_int_equal(r[3].cluster, 8);
  assert_int_equal(r[4].kind, RECORD_MEMCPY);
  take(0, &count);
  assert_int_equal(count, 0);
}

static void test_clear_forgets(void **state) {
  (void)state;
  struct problem p;
  size_t count;
  fake->add(FAKE_KERNEL, "a", 1, 2, 1, 32, 0);
  assert_int_equal(records_clear(&p), 0);
  take(0, &count);
  assert_int_equal(count, 0);
}

static void test_lost_records_are_a_problem(void **state) {
  (void)state;
  const struct record *records;
  struct problem p;
  size_t count;
  fake->add(FAKE_KERNEL, "a", 1, 2, 1, 32, 0);
  fake->drop(3);
  assert_int_equal(records_take(1, &records, &count, &p), -1);
  assert_non_null(strstr(p.text, "dropped 3 records"));
  fake->add(FAKE_KERNEL, "a", 0, 0, 1, 32, 0);
  assert_int_equal(records_take(1, &records, &count, &p), -1);
  assert_non_null(strstr(p.text, "1 records without timestamps"));
}

static void test_opening_problems(void **state) {
  (void)state;
  struct problem p;
  assert_int_equal(records_open("/no/such/libcupti.so", &p), -1);
  assert_non_null(strstr(p.text, "/no/such/libcupti.so"));
  assert_int_equal(records_open("libm.so.6", &p), -1);
  assert_non_null(strstr(p.text, "has no function cuptiGetVersion"));
  fake->version(240000);
  assert_int_equal(records_open(fake->file, &p), -1);
  assert_non_null(strstr(p.text, "is CUPTI 240000, expected version 13"));
  fake->version(0);
}

/* ---- Calls -------------------------------------------------------------------------------------------------- */

static const char one[] = "one", two[] = "two";
static struct record kernel(const char *name, uint64_t start, uint64_t end) {
  return (struct record){.kind = RECORD_KERNEL, .name = name, .start = start, .end = end};
}

static void test_calls_sum_their_records(void **state) {
  (void)state;
  struct problem p;
  struct call_shape flush = {0}, pair = {0};
  const struct record set = {.kind = RECORD_MEMSET, .start = 0, .end = 5};
  const struct record both[] = {kernel(one, 0, 1), kernel(two, 1, 2)};
  assert_int_equal(call_shape_learn(&flush, &set, 1, &p), 0);
  assert_int_equal(call_shape_learn(&pair, both, 2, &p), 0);
  struct call calls[] = {{&flush, 0}, {&pair, 0}, {&pair, 0}};
  assert_int_equal(calls_records(calls, 3), 5);
  struct record seen[] = {{.kind = RECORD_MEMSET, .start = 0, .end = 70000},
                          kernel(one, 70100, 71100),
                          kernel(two, 71150, 71400),
                          kernel(one, 71500, 72000),
                          kernel(two, 72100, 72132)};
  if (calls_match(calls, 3, seen, 5, &p)) fail_msg("%s", p.text);
  assert_true(calls[0].us == 70 && calls[1].us == 1.25 && calls[2].us == 0.532);

  assert_int_equal(calls_match(calls, 3, seen, 4, &p), -1);
  assert_non_null(strstr(p.text, "3 calls left 4 records, expected 5"));
  seen[3].name = two;
  assert_int_equal(calls_match(calls, 3, seen, 5, &p), -1);
  assert_non_null(strstr(p.text, "call 3 of 3 left two, expected one"));
  seen[3] = (struct record){.kind = RECORD_MEMCPY};
  assert_int_equal(calls_match(calls, 3, seen, 5, &p), -1);
  assert_non_null(strstr(p.text, "left a copy, expected one"));
  call_shape_free(&flush);
  call_shape_free(&pair);
}

static void test_a_call_leaves_something(void **state) {
  (void)state;
  struct problem p;
  struct call_shape shape = {0};
  assert_int_equal(call_shape_learn(&shape, NULL, 0, &p), -1);
  assert_non_null(strstr(p.text, "no record"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_records_come_in_order_of_start, clear),
      cmocka_unit_test_setup(test_clear_forgets, clear),
      cmocka_unit_test_setup(test_lost_records_are_a_problem, clear),
      cmocka_unit_test(test_calls_sum_their_records),
      cmocka_unit_test(test_a_call_leaves_something),
      cmocka_unit_test(test_opening_problems), /* last: it leaves no library open */
  };
  return cmocka_run_group_tests(tests, open_fake, close_fake);
}
