#include "calls.h"

#include <stdlib.h>
#include <string.h>

int call_shape_learn(struct call_shape *shape, const struct record *records, size_t count, struct problem *p) {
  call_shape_free(shape);
  if (count == 0) return problem(p, "a call left no record of device work.");
  shape->records = malloc(count * sizeof *records);
  if (!shape->records) return problem(p, "out of memory for %zu records.", count);
  memcpy(shape->records, records, count * sizeof *records);
  shape->count = count;
  return 0;
}

void call_shape_free(struct call_shape *shape) {
  free(shape->records);
  memset(shape, 0, sizeof *shape);
}

size_t calls_records(const struct call *calls, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += calls[i].shape->count;
  return sum;
}

static const char *described(const struct record *r) {
  static const char *const kinds[] = {"a kernel", "a memory set", "a copy"};
  return r->kind == RECORD_KERNEL ? r->name : kinds[r->kind];
}

int calls_match(struct call *calls, size_t call_count, const struct record *records, size_t record_count,
                struct problem *p) {
  const size_t expected = calls_records(calls, call_count);
  if (record_count != expected)
    return problem(p, "%zu calls left %zu records, expected %zu.", call_count, record_count, expected);
  for (size_t c = 0; c < call_count; c++) {
    const struct call_shape *shape = calls[c].shape;
    uint64_t ns = 0;
    for (size_t i = 0; i < shape->count; i++, records++) {
      const struct record *want = &shape->records[i];
      if (records->kind != want->kind || records->name != want->name)
        return problem(p, "call %zu of %zu left %s, expected %s.", c + 1, call_count, described(records),
                       described(want));
      ns += records->end - records->start;
    }
    calls[c].us = (double)ns / 1e3;
  }
  return 0;
}
