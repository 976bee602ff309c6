#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "half.h"
#include "tune_file.h"

enum { CANDIDATES_MAX = 64, ROW_COUNTS_MAX = 24, LIST_MAX = 64, CHECKED_ROWS = 3 };
/* Calls of each kernel. Short ones scatter by several ticks of the clock, and cost little. */
enum { ITERATIONS = 11, SHORT_ITERATIONS = 41, SHORT_BYTES = 32000000 };
static const double RANGE_COST = 0.01;
static const double TICK_US = 0.033; /* the card's clock moves in steps of 32 ns: so much apart counts as equal */
static const int64_t BYTES_MAX = 2200000000; /* of one call: beyond, times grow with the rows and nothing changes */

/* ---- Condensing --------------------------------------------------------------------------------------------- */

static double best_of(const double *times, size_t count) {
  double best = INFINITY;
  for (size_t c = 0; c < count; c++)
    if (times[c] > 0 && times[c] < best) best = times[c];
  return best;
}

/* How much a time is worse than the best one. */
static double excess(double time, double best) { return time <= best + TICK_US ? 0 : log(time / best); }

/* The cheapest candidate for the rows from `first` to before `end`. */
static double segment_cost(const double *times, size_t candidate_count, size_t first, size_t end, size_t *candidate) {
  double cheapest = INFINITY;
  for (size_t c = 0; c < candidate_count; c++) {
    double cost = RANGE_COST;
    for (size_t r = first; r < end; r++) {
      const double *row = times + r * candidate_count;
      cost += row[c] > 0 ? excess(row[c], best_of(row, candidate_count)) : INFINITY;
    }
    if (cost < cheapest) cheapest = cost, *candidate = c;
  }
  return cheapest;
}

size_t tune_ranges(const int64_t *rows, size_t row_count, const double *times, size_t candidate_count,
                   struct tune_range ranges[TUNE_RANGES_MAX]) {
  /* cost[k][r]: the first r numbers of rows in k ranges; first[k][r]: where the last of these ranges starts. */
  double cost[TUNE_RANGES_MAX + 1][ROW_COUNTS_MAX + 1];
  size_t first[TUNE_RANGES_MAX + 1][ROW_COUNTS_MAX + 1], candidate[TUNE_RANGES_MAX + 1][ROW_COUNTS_MAX + 1];
  if (row_count == 0 || row_count > ROW_COUNTS_MAX) return 0;
  for (size_t r = 0; r <= row_count; r++) cost[0][r] = r ? INFINITY : 0;
  size_t best = 0;
  for (size_t k = 1; k <= TUNE_RANGES_MAX; k++) {
    for (size_t r = 0; r <= row_count; r++) {
      cost[k][r] = INFINITY;
      for (size_t from = 0; from < r; from++) {
        size_t winner = 0;
        const double c = cost[k - 1][from] + segment_cost(times, candidate_count, from, r, &winner);
        if (c < cost[k][r]) cost[k][r] = c, first[k][r] = from, candidate[k][r] = winner;
      }
    }
    if (cost[k][row_count] < INFINITY && (best == 0 || cost[k][row_count] < cost[best][row_count])) best = k;
  }
  size_t end = row_count;
  for (size_t k = best; k > 0; k--) {
    const size_t winner = candidate[k][end];
    ranges[k - 1].candidate = winner;
    ranges[k - 1].time_us = times[(end - 1) * candidate_count + winner];
    ranges[k - 1].rows_up_to = end == row_count ? 0 : (int64_t)floor(sqrt((double)rows[end - 1] * (double)rows[end]));
    end = first[k][end];
  }
  return best;
}

/* ---- What is tried ------------------------------------------------------------------------------------------ */

void tune_shape(const nst_kernel_info *cell, int64_t rows, struct workload *w) {
  const int64_t per_vector = 16 / (int64_t)half_size(cell->dtype);
  workload_init(w, cell->op); /* all inputs, a row of conditioning for each of x */
  w->dtype = cell->dtype, w->weight_dtype = cell->weight_dtype;
  w->rows = rows;
  w->n = cell->bucket;
  if (cell->access == NST_ACCESS_MASKED) w->n -= per_vector;
  if (cell->access == NST_ACCESS_UNALIGNED) w->n -= 1, w->offset = 1;
  snprintf(w->id, sizeof w->id, "%s/%s/%lldx%lld/%s", op_name(w->op), types_name(w->dtype, w->weight_dtype),
           (long long)rows, (long long)w->n, access_name(cell->access));
}

/* Drops what can't serve the kind of call, and, of each strategy, all but the narrowest kernel: the smallest bucket,
 * then the narrowest access. Both grow along the table. */
static size_t keep_candidates(const nst_kernel_info *cell, int all, struct candidate *list, size_t count) {
  size_t kept = 0;
  unsigned strategies = 0;
  for (size_t i = 0; i < count; i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    if (nst_table_row(list[i].index, &k) != NST_OK || k.access < cell->access) continue;
    if (!all && strategies >> k.strategy & 1) continue;
    strategies |= 1u << k.strategy;
    list[kept++] = list[i];
  }
  return kept;
}

/* ---- One kind of call --------------------------------------------------------------------------------------- */

struct grid {
  int64_t rows[ROW_COUNTS_MAX];
  size_t row_count;
};

static int tune_cell(struct bench *b, const nst_kernel_info *cell, const struct options *o, const struct grid *grid,
                     struct tune_file *file, struct problem *p) {
  struct candidate list[CANDIDATES_MAX];
  double times[ROW_COUNTS_MAX * CANDIDATES_MAX];
  struct workload w;
  tune_shape(cell, 1, &w);
  const size_t all = candidates_of(&w, NULL, list, CANDIDATES_MAX);
  const size_t count = keep_candidates(cell, o->all_kernels, list, all);
  size_t rows = 0;
  if (count == 0) return 0; /* a build without this operation or type */
  for (size_t r = 0; r < grid->row_count; r++) {
    tune_shape(cell, grid->rows[r], &w);
    const int64_t bytes = workload_bytes(&w);
    if (bytes > BYTES_MAX) break;
    const int iterations = bytes < SHORT_BYTES ? SHORT_ITERATIONS : ITERATIONS;
    const struct measure_options options = {o->iterations ? o->iterations : iterations, CHECKED_ROWS, 0};
    if (measure(b, &w, &options, list, count, NULL, p)) return -1;
    size_t timed = 0;
    for (size_t c = 0; c < count; c++) {
      if (list[c].state == CANDIDATE_WRONG)
        return problem(p, "%s: %s is wrong: %.300s.", w.id, list[c].kernel, list[c].reason);
      times[rows * count + c] = list[c].state == CANDIDATE_TIMED ? list[c].cold.median : 0;
      timed += list[c].state == CANDIDATE_TIMED;
    }
    tune_file_log(file, &w, list, count);
    if (!timed) return problem(p, "%s: no kernel takes the call: %.300s", w.id, list[0].reason);
    rows++;
  }
  struct tune_range ranges[TUNE_RANGES_MAX];
  const size_t range_count = tune_ranges(grid->rows, rows, times, count, ranges);
  return range_count ? tune_file_put(file, cell, list, ranges, range_count, p) : 0;
}

/* ---- The order in which kinds of call are tuned ------------------------------------------------------------- */

/* A comma-separated list, taken apart in place; NULL: one item NULL, which stands for all. */
struct list {
  char text[512];
  const char *items[LIST_MAX];
  size_t count;
};

static int split(const char *name, const char *text, struct list *list, struct problem *p) {
  list->count = 0;
  if (!text) return list->items[list->count++] = NULL, 0;
  if (strlen(text) >= sizeof list->text) return problem(p, "--%s is longer than %zu.", name, sizeof list->text - 1);
  strcpy(list->text, text);
  for (char *at = list->text; at;) {
    char *comma = strchr(at, ',');
    if (comma) *comma++ = 0;
    if (!*at || list->count == LIST_MAX)
      return problem(p, "--%s is \"%s\", expected up to %d names with commas between.", name, text, LIST_MAX);
    list->items[list->count++] = at;
    at = comma;
  }
  return 0;
}

static int read_row_counts(const char *text, struct grid *grid, struct problem *p) {
  struct list list;
  if (split("row-counts", text ? text : "1,4,16,64,132,264,528,1056,2048,4096,8192,32768", &list, p)) return -1;
  grid->row_count = list.count;
  if (list.count > ROW_COUNTS_MAX) return problem(p, "--row-counts has more than %d numbers.", ROW_COUNTS_MAX);
  for (size_t i = 0; i < list.count; i++) {
    char *end;
    grid->rows[i] = strtoll(list.items[i], &end, 10);
    if (*end || grid->rows[i] < 1 || grid->rows[i] > INT32_MAX || (i && grid->rows[i] <= grid->rows[i - 1]))
      return problem(p, "--row-counts has \"%s\", expected ascending whole numbers from 1 to 2147483647.",
                     list.items[i]);
  }
  return 0;
}

static int same(const char *item, const char *name) { return !item || strcmp(item, name) == 0; }

/* Every kind of call has one row for each strategy, a hole too: the first strategy's rows name them all. */
static int is_cell(size_t index, nst_kernel_info *k) {
  *k = (nst_kernel_info)NST_KERNEL_INFO_INIT;
  return nst_table_row(index, k) == NST_OK && k->strategy == NST_STRATEGY_WARP && k->bucket != 0;
}

/* Types of a weight make no kind of call where there is none. */
static int can_occur(const nst_kernel_info *k) {
  return k->weight_dtype == k->dtype || op_has(k->op, ROWS_WEIGHT) || op_has(k->op, ROWS_BIAS);
}

struct wanted {
  struct list ops, types, buckets, accesses;
};

/* The kinds of call that can occur in the order of the lists, as table indexes; a list's item that names nothing is a
 * problem. */
static int order_cells(struct wanted *wanted, size_t *cells, size_t *count, struct problem *p) {
  *count = 0;
  for (size_t o = 0; o < wanted->ops.count; o++)
    for (size_t t = 0; t < wanted->types.count; t++)
      for (size_t u = 0; u < wanted->buckets.count; u++)
        for (size_t a = 0; a < wanted->accesses.count; a++) {
          int found = 0;
          for (size_t i = 0; i < nst_table_count(); i++) {
            nst_kernel_info k;
            char bucket[24];
            if (!is_cell(i, &k)) continue;
            snprintf(bucket, sizeof bucket, "%lld", (long long)k.bucket);
            if (!same(wanted->ops.items[o], op_name(k.op)) ||
                !same(wanted->types.items[t], types_name(k.dtype, k.weight_dtype)) ||
                !same(wanted->buckets.items[u], bucket) || !same(wanted->accesses.items[a], access_name(k.access)))
              continue;
            found = 1;
            if (can_occur(&k)) cells[(*count)++] = i;
          }
          if (!found)
            return problem(p, "no kind of call is %s %s %s %s.", wanted->ops.items[o] ? wanted->ops.items[o] : "*",
                           wanted->types.items[t] ? wanted->types.items[t] : "*",
                           wanted->buckets.items[u] ? wanted->buckets.items[u] : "*",
                           wanted->accesses.items[a] ? wanted->accesses.items[a] : "*");
        }
  return 0;
}

static int tune_cells(struct bench *b, const struct options *o, const struct grid *grid, const size_t *cells,
                      size_t count, struct tune_file *file, struct problem *p) {
  const double end = now_us() + o->seconds * 1e6;
  const int terminal = isatty(STDERR_FILENO);
  size_t done = 0;
  while (done < count && (o->seconds <= 0 || now_us() < end)) {
    nst_kernel_info k;
    is_cell(cells[done], &k);
    if (terminal)
      fprintf(stderr, "\r\033[K[%zu/%zu] %s %s %lld %s", done + 1, count, op_name(k.op),
              types_name(k.dtype, k.weight_dtype), (long long)k.bucket, access_name(k.access));
    if (tune_cell(b, &k, o, grid, file, p)) {
      struct problem ignored;
      tune_file_write(file, &ignored); /* what was found until here is kept */
      return -1;
    }
    done++;
  }
  if (terminal) fputs("\r\033[K", stderr);
  printf("tuned %zu of %zu kinds of call.\n", done, count);
  return tune_file_write(file, p);
}

int tune(struct bench *b, const struct options *o, const char *command, struct problem *p) {
  struct wanted wanted;
  struct grid grid;
  if (split("ops", o->ops, &wanted.ops, p) || split("dtypes", o->dtypes, &wanted.types, p) ||
      split("buckets", o->buckets, &wanted.buckets, p) || split("accesses", o->accesses, &wanted.accesses, p) ||
      read_row_counts(o->row_counts, &grid, p))
    return -1;
  /* Items may repeat, so that there can be more than the table has. */
  const size_t repeats = wanted.ops.count * wanted.types.count * wanted.buckets.count * wanted.accesses.count;
  size_t *cells = calloc(nst_table_count() * repeats, sizeof *cells), count = 0;
  struct tune_file file;
  if (!cells) return problem(p, "out of memory for the list of kinds of call.");
  int failed = order_cells(&wanted, cells, &count, p) || tune_file_open(&file, o, b->card, command, p);
  if (!failed) {
    failed = tune_cells(b, o, &grid, cells, count, &file, p);
    tune_file_close(&file);
  }
  free(cells);
  return failed ? -1 : 0;
}
