/* Results as a table on the terminal, as Markdown, CSV and JSON. */
#ifndef NST_PERF_REPORT_H
#define NST_PERF_REPORT_H

#include <stdio.h>

#include "host.h"
#include "measure.h"
#include "problem.h"
#include "workload.h"

struct result {
  struct workload workload;
  struct copy_floor floor;
  struct candidate *candidates;
  size_t count;
};

struct report {
  const struct card *card;
  const char *date, *command;
  uint32_t cupti;
  size_t left_out;               /* workloads of operations that the library does not have */
  const struct host_times *host; /* NULL: not measured */
  const struct result *results;
  size_t count;
};

/* The head and the host's side; the titles and one result's lines of the table, so that they appear as they come. */
void report_head(FILE *to, const struct report *r);
void report_titles(FILE *to);
void report_result(FILE *to, const struct result *result);

int report_markdown(const char *path, const struct report *r, struct problem *p);
int report_csv(const char *path, const struct report *r, struct problem *p);
int report_json(const char *path, const struct report *r, struct problem *p);

/* TB/s of `bytes` in `us`. */
double terabytes_per_second(int64_t bytes, double us);

#endif
