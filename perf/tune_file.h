/* The tuning data as a file: read, merged, written with one kind of call a line. */
#ifndef NST_PERF_TUNE_FILE_H
#define NST_PERF_TUNE_FILE_H

#include "measure.h"
#include "options.h"
#include "tune.h"

struct json_t;

struct tune_file {
  const char *path, *log_path; /* log_path: NULL: no log */
  struct json_t *head;         /* device, driver, date, command */
  struct json_t *entries;      /* an array */
  struct json_t *log;          /* an array of everything measured */
};

/* Reads the file where there is one. The log, everything measured, goes to o->json. */
int tune_file_open(struct tune_file *file, const struct options *o, const struct card *card, const char *command,
                   struct problem *p);

/* Replaces or adds the entry of one kind of call. */
int tune_file_put(struct tune_file *file, const nst_kernel_info *cell, const struct candidate *candidates,
                  const struct tune_range *ranges, size_t count, struct problem *p);

void tune_file_log(struct tune_file *file, const struct workload *w, const struct candidate *candidates, size_t count);

/* Writes the file anew, entries in the order of the dispatch table. */
int tune_file_write(struct tune_file *file, struct problem *p);
void tune_file_close(struct tune_file *file);

#endif
