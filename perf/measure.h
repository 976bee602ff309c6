/* Checks and times candidates on one workload, interleaved call by call, with the driver's copy as the floor. */
#ifndef NST_PERF_MEASURE_H
#define NST_PERF_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "card.h"
#include "problem.h"
#include "stats.h"
#include "workload.h"

/* Device memory that grows when more is asked for, so that all workloads of a run lie in the same place. */
struct arena {
  void *base;
  size_t bytes;
  nst_dtype filled; /* the type of the random numbers in it; 0: none */
};

struct bench {
  struct card *card;
  struct arena in, out, weight, flush;
  struct arena patterns[NST_DTYPE_F32 + 1]; /* random numbers of each type, made once */
  unsigned char flushes;                    /* counts around, so that no flush writes what is there already */
};

enum candidate_state {
  CANDIDATE_TIMED,
  CANDIDATE_REFUSED, /* the library refuses the call: see the reason */
  CANDIDATE_WRONG    /* the result is outside its limit, or the driver fails the launch: not timed */
};

#define CANDIDATE_CHOSEN SIZE_MAX

struct candidate {
  size_t index; /* row of the dispatch table; CANDIDATE_CHOSEN: what the library chooses */
  enum candidate_state state;
  char reason[384];
  char kernel[128];
  char choice[16]; /* where the library's choice comes from; "": named by its index */
  uint32_t grid, block, cluster, registers, shared_bytes;
  double max_ulp;
  int64_t checked_rows;
  struct stats cold, warm; /* us */
};

/* The driver's copy of half the bytes that a call moves (it reads and writes each), cold. A copy of an unround size can
 * take much longer, so that a rounded one is timed too. */
struct copy_floor {
  int64_t bytes, rounded_bytes;
  struct stats plain, rounded;
  double us; /* the faster median */
};

struct measure_options {
  int iterations; /* calls of each kind; 0: by size */
  int check_rows; /* rows compared with the oracle, at most; first and last among them */
  int with_warm;
};

int bench_open(struct bench *b, struct card *card, struct problem *p);
void bench_close(struct bench *b);

/* Keeps the card busy for so long that its clocks settle. */
int bench_warm_up(struct bench *b, double seconds, struct problem *p);

/* A candidate that is refused or wrong says so in its own state; -1 is for what ends the run. `floor`: NULL for none.
 */
int measure(struct bench *b, const struct workload *w, const struct measure_options *options,
            struct candidate *candidates, size_t count, struct copy_floor *floor, struct problem *p);

/* Fills `candidates` with the table rows that may serve the workload: of its operation and types, kernels whose bucket
 * holds n and is at most twice the power of two that n needs, or has no limit. With `strategy` those of one strategy.
 */
size_t candidates_of(const struct workload *w, const nst_strategy *strategy, struct candidate *candidates, size_t max);

/* The row whose kernel has this name, CANDIDATE_CHOSEN where there is none. */
size_t candidate_by_symbol(const char *symbol);

#endif
