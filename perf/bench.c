/*
 * nst-bench: checks and times the library's kernels on the card. What is measured how: measure.h; the host's side:
 * host.h; the tuner: tune.h. It never times the software device.
 */
#define _POSIX_C_SOURCE 200809L /* gmtime_r, isatty */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "card.h"
#include "host.h"
#include "measure.h"
#include "options.h"
#include "problem.h"
#include "records.h"
#include "report.h"
#include "tune.h"

enum {
  EXIT_USAGE = 2,
  EXIT_NO_CARD = 77, /* a skipped test, to CTest and automake */
  CANDIDATES_MAX = 512,
  CHECKED_ROWS = 32
};

/* The arguments as one line. Of an absolute path the last part stays: where it lay says nothing elsewhere. */
static void join_command(int argc, char **argv, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "nst-bench");
  for (int i = 1; i < argc && used < size; i++) {
    const char *slash = argv[i][0] == '/' ? strrchr(argv[i], '/') : NULL;
    used += (size_t)snprintf(text + used, size - used, " %s", slash ? slash + 1 : argv[i]);
  }
}

/* What the command line asks for; *list owns the workloads. */
static int pick_workloads(const struct options *o, struct workload_list *list, struct problem *p) {
  if (!o->has_shape) {
    if (workloads_load(o->workloads, o->match, list, p)) return -1;
    if (list->count > 0) return 0;
    workloads_free(list);
    return problem(p, "%s: no workload of this library's operations has \"%s\" in its id.", o->workloads,
                   o->match ? o->match : "");
  }
  *list = (struct workload_list){.items = malloc(sizeof *list->items), .count = 1};
  if (!list->items) return problem(p, "out of memory for a workload.");
  list->items[0] = o->shape;
  return 0;
}

static int pick_candidates(const struct options *o, struct result *result, struct problem *p) {
  struct candidate *c = calloc(CANDIDATES_MAX + 1, sizeof *c);
  if (!c) return problem(p, "out of memory for candidates.");
  result->candidates = c;
  c[0].index = o->kernel ? candidate_by_symbol(o->kernel) : CANDIDATE_CHOSEN;
  result->count = 1;
  if (o->kernel && c[0].index == CANDIDATE_CHOSEN)
    return problem(p, "--kernel is \"%s\", expected the name of a kernel in the dispatch table.", o->kernel);
  if (o->all_kernels || o->has_strategy)
    result->count += candidates_of(&result->workload, o->has_strategy ? &o->strategy : NULL, c + 1, CANDIDATES_MAX);
  return 0;
}

static int run_workloads(struct bench *b, const struct options *o, const struct workload_list *list,
                         struct report *report, struct result *results, struct problem *p) {
  const struct measure_options how = {o->iterations, CHECKED_ROWS, 1};
  const int terminal = isatty(STDERR_FILENO);
  report_titles(stdout);
  for (size_t i = 0; i < list->count; i++) {
    struct result *result = &results[i];
    result->workload = list->items[i];
    if (terminal) fprintf(stderr, "\r\033[K[%zu/%zu] %s", i + 1, list->count, result->workload.id);
    if (pick_candidates(o, result, p) ||
        measure(b, &result->workload, &how, result->candidates, result->count, &result->floor, p))
      return -1;
    if (terminal) fputs("\r\033[K", stderr);
    report_result(stdout, result);
    fflush(stdout);
    report->count = i + 1;
  }
  return 0;
}

/* Candidates tried besides the library's choice may be refused; the choice and a kernel asked for by name may not. */
static size_t count_failures(const struct report *r) {
  size_t failures = 0;
  for (size_t i = 0; i < r->count; i++)
    for (size_t c = 0; c < r->results[i].count; c++) {
      const enum candidate_state state = r->results[i].candidates[c].state;
      failures += state == CANDIDATE_WRONG || (state == CANDIDATE_REFUSED && c == 0);
    }
  return failures;
}

static int write_files(const struct options *o, const struct report *r, struct problem *p) {
  if (o->json && report_json(o->json, r, p)) return -1;
  if (o->csv && report_csv(o->csv, r, p)) return -1;
  return o->markdown && report_markdown(o->markdown, r, p) ? -1 : 0;
}

static int measure_all(struct bench *b, const struct options *o, const struct workload_list *list,
                       struct report *report, struct problem *p) {
  struct result *results = calloc(list->count, sizeof *results);
  if (!results) return problem(p, "out of memory for results.");
  report->results = results;
  int failed = run_workloads(b, o, list, report, results, p);
  struct problem late;
  /* What was measured before a failure is written all the same; the first problem is the one to tell. */
  if (write_files(o, report, failed ? &late : p)) failed = -1;
  const size_t failures = count_failures(report);
  if (!failed && failures) failed = problem(p, "%zu results are wrong or refused, see above.", failures);
  for (size_t i = 0; i < list->count; i++) free(results[i].candidates);
  free(results);
  return failed;
}

/* From the started driver to the end of the measuring. */
static int on_card(struct card *card, const struct options *o, const struct workload_list *list,
                   const struct host_times *host, struct report *report, struct problem *p) {
  struct bench bench;
  if (records_open(o->cupti, p)) return -1;
  report->card = card;
  report->host = host;
  report->cupti = records_version();
  int failed = bench_open(&bench, card, p);
  if (!failed) {
    report_head(stdout, report);
    fflush(stdout);
    failed = bench_warm_up(&bench, 1, p);
    if (!failed) failed = o->tune ? tune(&bench, o, report->command, p) : measure_all(&bench, o, list, report, p);
    bench_close(&bench);
  }
  records_close();
  return failed;
}

static int with_library(const struct card_start *start, const struct options *o, const struct workload_list *list,
                        struct report *report, struct problem *p) {
  struct card card;
  struct host_times host = {.start = *start};
  nst_library *fresh = NULL;
  const double before = now_us();
  if (o->host && nst_open(&fresh, NULL) != NST_OK) return problem(p, "nst_open failed: %.400s", nst_last_error());
  host.open_us = now_us() - before;
  int failed = o->archive ? host_archive_size(o->archive, &host, p) : 0;
  if (!failed && !(failed = card_open(&card, p))) {
    if (o->host) failed = host_measure(&card, fresh, &host, p);
    if (!failed) failed = on_card(&card, o, list, o->host ? &host : NULL, report, p);
    card_close(&card);
  }
  nst_close(fresh);
  return failed;
}

int main(int argc, char **argv) {
  struct options o;
  struct problem p = {""};
  struct workload_list list = {0};
  struct card_start start;
  char date[32], command[512];
  const int parsed = options_parse(argc, argv, &o, &p);
  if (parsed == OPTIONS_HELP) return options_help(stdout), 0;
  if (parsed || (!o.tune && pick_workloads(&o, &list, &p))) {
    fprintf(stderr, "nst-bench: %s\n", p.text);
    return EXIT_USAGE;
  }
  const time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
  join_command(argc, argv, command, sizeof command);
  struct report report = {.date = date, .command = command, .left_out = list.left_out};
  int status = card_start(&start, &p);
  if (status == 0) status = with_library(&start, &o, &list, &report, &p);
  workloads_free(&list);
  if (status == 0) return 0;
  fprintf(stderr, "nst-bench: %s\n", p.text);
  return status == CARD_ABSENT ? EXIT_NO_CARD : EXIT_FAILURE;
}
