/* Where a workload's tensors lie, and the check of a result against the oracle. */
#ifndef NST_PERF_TENSORS_H
#define NST_PERF_TENSORS_H

#include <stddef.h>

#include "measure.h"

struct tensors {
  struct rows_call call; /* its tensors on the device */
  union rows_args args;
  size_t out_bytes; /* of the arena that the outputs lie in */
};

/* Takes room in the bench's arenas, fills the inputs with random numbers where they are not yet, and sets the
 * arguments. `copied`: bytes that a copy from one arena to the other must have room for. */
int tensors_place(struct bench *b, const struct workload *w, size_t copied, struct tensors *t, struct problem *p);

/* Overwrites the outputs with NaNs. */
int tensors_poison(struct bench *b, const struct tensors *t, struct problem *p);

/* Compares rows of the outputs with the oracle: all where there are few, else the first, the last and random ones. Sets
 * the candidate's check members and, where a number is outside its limit, its state and reason. */
int tensors_check(struct bench *b, const struct workload *w, const struct tensors *t, int max_rows,
                  struct candidate *candidate, struct problem *p);

/* Makes an arena at least so large. What was in it is lost when it grows. */
int arena_reserve(struct bench *b, struct arena *arena, size_t bytes, struct problem *p);

/* `count` random numbers of a type at `to`: both signs, all mantissas, magnitudes from 2^-7 to 4 that change from one
 * stretch of 1024 to the next, so that rows differ in their norm. */
void random_numbers(nst_dtype dtype, void *to, size_t count, uint64_t seed);

#endif
