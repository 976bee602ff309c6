/* One sentence about what went wrong, passed up to the one place that prints it. */
#ifndef NST_PERF_PROBLEM_H
#define NST_PERF_PROBLEM_H

struct problem {
  char text[512];
};

/* Writes the sentence. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void problem_write(struct problem *p, const char *format, ...);

/* Writes the sentence and is -1, so that a function can `return problem(p, ...)`. A macro, so that the compiler sees
 * the -1 and knows that what a failed function leaves unset is not used. */
#define problem(p, ...) (problem_write((p), __VA_ARGS__), -1)

#endif
