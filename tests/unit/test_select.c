/*
 * The selection alone, on choices made up for the test: every coordinate leads to its own line, and every number of
 * rows to its own range of the line. The source is compiled here a second time, beside the library's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define nst_choices made_up_choices
#define nst_select select_from_made_up_choices
#include "select.c"

/* The ranges end at 10, 20 and 2^31 - 2; the rows' indices say line and range. */
#define NST_CHOICE(index, ...) \
  [index] = {{10, 20, INT32_MAX - 1}, {4 * (index), 4 * (index) + 1, 4 * (index) + 2, 4 * (index) + 3}, 0},
const struct nst_choice nst_choices[NST_CHOICE_COUNT] = {
#include "choices.inc"
};
_Static_assert(4 * NST_CHOICE_COUNT <= UINT16_MAX, "an index made up here fits");

static const struct {
  uint32_t rows, range;
} rows_of_ranges[] = {{1, 0}, {10, 0}, {11, 1}, {20, 1}, {21, 2}, {INT32_MAX - 1, 2}, {INT32_MAX, 3}};

static void assert_selected(uint32_t arch, uint32_t op, uint32_t types, uint32_t n, uint32_t bucket, uint32_t aligned,
                            uint32_t access) {
  uint32_t line = (uint32_t)NST_CHOICE_INDEX(arch, op, types, bucket, access);
  for (size_t i = 0; i < sizeof rows_of_ranges / sizeof *rows_of_ranges; i++) {
    struct nst_selection selection = nst_select(arch, op, types, n, rows_of_ranges[i].rows, aligned);
    assert_int_equal(selection.choice, line);
    assert_int_equal(selection.row, 4 * line + rows_of_ranges[i].range);
  }
}

static void test_select(void **state) {
  (void)state;
  for (uint32_t arch = 0; arch < NST_ARCH_COUNT; arch++) {
    for (uint32_t op = 0; op < NST_OP_COUNT; op++) {
      for (uint32_t types = 0; types < NST_TYPES_COUNT; types++) {
        uint32_t least = 1; /* the shortest row of the bucket */
        for (uint32_t bucket = 0; bucket < NST_BUCKET_COUNT; bucket++) {
          uint32_t size = nst_bucket_sizes[bucket];
          uint32_t lengths[] = {least, size ? size - 1 : 1u << 30, size ? size : INT32_MAX};
          for (int i = 0; i < 3; i++) {
            bool exact = lengths[i] == size;
            assert_selected(arch, op, types, lengths[i], bucket, 1, exact ? NST_ACCESS_EXACT : NST_ACCESS_MASKED);
            assert_selected(arch, op, types, lengths[i], bucket, 0, NST_ACCESS_UNALIGNED);
          }
          least = size + 1;
        }
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_select)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
