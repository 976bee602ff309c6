/* The library's times on the host: opening, first calls, and what a call costs the caller. */
#ifndef NST_PERF_HOST_H
#define NST_PERF_HOST_H

#include <stdint.h>

#include "card.h"
#include "chain.h"
#include "problem.h"
#include "stats.h"

struct host_times {
  struct card_start start;
  double open_us;        /* nst_open, after the driver's own start */
  double first_call_us;  /* the first call of a handle until its result is there: the driver loads the kernel */
  double preload_us;     /* nst_preload after that */
  double first_after_us; /* the first call of another kernel after nst_preload, until its result is there */
  struct stats call_us;  /* a call of a loaded kernel, until it returns */
  /* A chain of calls in a graph, each working in place on what the one before wrote. */
  struct chain_times chain, chain_dependent; /* the latter with programmatic dependent launch, the weight ready */
  int64_t archive_bytes;                     /* 0: not asked for */
};

/* `fresh` is a handle through which nothing was launched yet. Must run before recording starts, which slows launches.
 */
int host_measure(struct card *card, const nst_library *fresh, struct host_times *times, struct problem *p);

int host_archive_size(const char *file, struct host_times *times, struct problem *p);

#endif
