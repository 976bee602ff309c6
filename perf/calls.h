/* Which records belong to which call: calls go to one stream, so records stand in the order of the calls. */
#ifndef NST_PERF_CALLS_H
#define NST_PERF_CALLS_H

#include <stddef.h>

#include "problem.h"
#include "records.h"

/* What one call leaves behind, learnt by making it alone. */
struct call_shape {
  struct record *records;
  size_t count;
};

struct call {
  const struct call_shape *shape;
  double us; /* set by calls_match: the sum of its records' durations */
};

/* Copies the records of one call. */
int call_shape_learn(struct call_shape *shape, const struct record *records, size_t count, struct problem *p);
void call_shape_free(struct call_shape *shape);

/* The records that the calls together must leave. */
size_t calls_records(const struct call *calls, size_t count);

/* Deals the records out to the calls, and refuses where one is not what its call left when it was made alone. */
int calls_match(struct call *calls, size_t call_count, const struct record *records, size_t record_count,
                struct problem *p);

#endif
