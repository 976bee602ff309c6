/*
 * One handle, many threads: each launches its own calls and is refused its own, and sees its own results and sentences
 * alone. Built with -fsanitize=thread it also shows that the handle is only read.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "fake_driver.h"

#define THREADS 16
#define CALLS 5000

static nst_library *library;

struct worker {
  pthread_t thread;
  int number;
  char wrong[256]; /* the first thing that went wrong; "" when nothing did */
};

/* One launch and one refusal; false where anything differs from what this thread asked for. */
static bool call_once(struct worker *worker, int i) {
  nst_rms_norm_fwd_args args = NST_RMS_NORM_FWD_ARGS_INIT;
  args.rows = 1 + worker->number * 1000 + i % 100;
  args.n = 64 << i % 8;
  args.x = (void *)(uintptr_t)(0x10000000 + 0x1000 * worker->number);
  args.y = (void *)(uintptr_t)args.x;
  fake_launched.count = 0;
  nst_status status = nst_rms_norm_fwd(library, &args, NULL);
  if (status != NST_OK || fake_launched.count != 1 || fake_launched.params.x != args.x ||
      fake_launched.params.rows != args.rows || fake_launched.params.n != args.n) {
    snprintf(worker->wrong, sizeof worker->wrong, "call %d: %s, %d launches", i, nst_status_name(status),
             fake_launched.count);
    return false;
  }
  char expected[64];
  args.n = -worker->number - 1;
  snprintf(expected, sizeof expected, "n = %d: expected 1 to 2147483647", (int)args.n);
  status = nst_rms_norm_fwd(library, &args, NULL);
  if (status != NST_ERROR_SHAPE || fake_launched.count != 1 || strcmp(nst_last_error(), expected) != 0) {
    snprintf(worker->wrong, sizeof worker->wrong, "call %d: %s, \"%.100s\" instead of \"%s\"", i,
             nst_status_name(status), nst_last_error(), expected);
    return false;
  }
  return true;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  if (strcmp(nst_last_error(), "") != 0) {
    snprintf(worker->wrong, sizeof worker->wrong, "begins with a sentence: %.100s", nst_last_error());
    return NULL;
  }
  for (int i = 0; i < CALLS && call_once(worker, i); i++) {
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  struct worker workers[THREADS];
  assert_int_equal(nst_rms_norm_fwd(library, NULL, NULL), NST_ERROR_NULL_POINTER); /* this thread's sentence */
  for (int i = 0; i < THREADS; i++) {
    workers[i].number = i;
    workers[i].wrong[0] = '\0';
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    if (workers[i].wrong[0]) {
      fail_msg("thread %d: %s", i, workers[i].wrong);
    }
  }
  assert_non_null(strstr(nst_last_error(), "args is NULL"));
}

static int open_library(void **state) {
  (void)state;
  fake_reset();
  return fake_open(&library);
}

static int close_library(void **state) {
  (void)state;
  return nst_close(library);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, open_library, close_library);
}
