/* The command line. */
#ifndef NST_PERF_OPTIONS_H
#define NST_PERF_OPTIONS_H

#include <stdio.h>

#include "problem.h"
#include "workload.h"

struct options {
  const char *workloads, *match; /* the file of workloads, and which of them */
  int has_shape;                 /* --op ... was given: this workload instead of the file's */
  struct workload shape;
  int has_strategy, all_kernels;
  nst_strategy strategy;
  const char *kernel; /* its symbol */
  int iterations;     /* 0: by size */
  int host;           /* measure the host's side too */
  const char *cupti, *archive;
  const char *json, *csv, *markdown; /* files to write */
  /* The tuner: comma-separated lists, NULL: all. */
  const char *tune, *ops, *dtypes, *buckets, *accesses, *row_counts;
  double seconds;
};

enum { OPTIONS_HELP = 1 };

/* Returns 0, OPTIONS_HELP, or -1 with a sentence. Strings point into argv. */
int options_parse(int argc, char **argv, struct options *o, struct problem *p);
void options_help(FILE *to);

#endif
