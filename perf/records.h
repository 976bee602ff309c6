/*
 * Records of what the device ran, from CUPTI's activity API: kernels, memory sets and copies with their timestamps.
 * CUPTI is loaded at run time. Its callbacks carry no pointer of ours, so a process has one set of records.
 */
#ifndef NST_PERF_RECORDS_H
#define NST_PERF_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "problem.h"

enum record_kind { RECORD_KERNEL, RECORD_MEMSET, RECORD_MEMCPY };

struct record {
  enum record_kind kind;
  uint64_t start, end; /* ns */
  const char *name;    /* a kernel's; one string for each name, so that pointers compare. NULL for the other kinds */
  uint32_t grid[3], block[3];
  uint32_t cluster; /* blocks of a cluster, 1: none */
  uint32_t registers;
  uint32_t shared_bytes; /* static and dynamic */
};

/* Loads CUPTI and starts recording. `file`: NULL to search the loader's path and the usual places. */
int records_open(const char *file, struct problem *p);

/* Forgets what was recorded so far. The device must be idle. */
int records_clear(struct problem *p);

/* Hands over everything recorded since the last take or clear, ordered by start; waits (up to some seconds) until there
 * are at least `expected`. The device must be idle. The array is valid until the next take or clear. */
int records_take(size_t expected, const struct record **records, size_t *count, struct problem *p);

/* CUPTI's version as it states it, such as 130001, and the file that was loaded. */
uint32_t records_version(void);
const char *records_file(void);

/* Stops recording. */
void records_close(void);

#endif
