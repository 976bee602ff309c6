#include "report.h"

#include <jansson.h>
#include <string.h>

#include "half.h"

enum { CELL_MAX = 160, DIGITS = 6 };

double terabytes_per_second(int64_t bytes, double us) { return us > 0 ? (double)bytes / us / 1e6 : 0; }

/* ---- The table ---------------------------------------------------------------------------------------------- */

/* Columns of the table on the terminal and in Markdown; width < 0: flush left. The last ones have no fixed width. */
static const struct {
  const char *title;
  int width;
} columns[] = {
    {"workload", -47}, {"rows x n", 13}, {"cold us", 8},  {"p10-p90", 15}, {"warm us", 8},
    {"MB", 8},         {"TB/s", 5},      {"copy us", 8},  {"of copy", 7},  {"publ. us", 8},
    {"of publ.", 8},   {"ulp", 5},       {"launch", -17}, {"kernel", -1},
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };
typedef char cells[COLUMN_COUNT][CELL_MAX];

static void fill_cells(const struct result *result, const struct candidate *c, cells cell) {
  const struct workload *w = &result->workload;
  const int64_t bytes = workload_bytes(w);
  for (int i = 0; i < COLUMN_COUNT; i++) cell[i][0] = 0;
  snprintf(cell[0], CELL_MAX, "%s", w->id);
  snprintf(cell[1], CELL_MAX, "%lldx%lld", (long long)w->rows, (long long)w->n);
  snprintf(cell[5], CELL_MAX, "%.3f", (double)bytes / 1e6);
  if (c->state == CANDIDATE_TIMED) {
    snprintf(cell[2], CELL_MAX, "%.2f", c->cold.median);
    snprintf(cell[3], CELL_MAX, "%.2f-%.2f", c->cold.p10, c->cold.p90);
    if (c->warm.count) snprintf(cell[4], CELL_MAX, "%.2f", c->warm.median);
    snprintf(cell[6], CELL_MAX, "%.2f", terabytes_per_second(bytes, c->cold.median));
    if (result->floor.us > 0) snprintf(cell[8], CELL_MAX, "%.3f", c->cold.median / result->floor.us);
    if (w->published_us > 0) snprintf(cell[10], CELL_MAX, "%.3f", c->cold.median / w->published_us);
    snprintf(cell[11], CELL_MAX, "%.2f", c->max_ulp);
  }
  if (result->floor.us > 0) snprintf(cell[7], CELL_MAX, "%.2f", result->floor.us);
  if (w->published_us > 0) snprintf(cell[9], CELL_MAX, "%.2f", w->published_us);
  if (c->grid) snprintf(cell[12], CELL_MAX, "%ux%u", c->grid, c->block);
  if (c->cluster > 1) snprintf(cell[12] + strlen(cell[12]), CELL_MAX - strlen(cell[12]), " c%u", c->cluster);
  if (c->state == CANDIDATE_TIMED)
    snprintf(cell[13], CELL_MAX, "%s", c->kernel);
  else
    snprintf(cell[13], CELL_MAX, "%s: %.*s", c->state == CANDIDATE_WRONG ? "WRONG" : "refused", CELL_MAX - 12,
             c->reason);
}

static void print_line(FILE *to, cells cell) {
  for (int i = 0; i < COLUMN_COUNT; i++)
    fprintf(to, "%s%*s", i ? "  " : "", i + 1 < COLUMN_COUNT ? columns[i].width : 0, cell[i]);
  fputc('\n', to);
}

void report_titles(FILE *to) {
  cells cell;
  for (int i = 0; i < COLUMN_COUNT; i++) snprintf(cell[i], CELL_MAX, "%s", columns[i].title);
  print_line(to, cell);
}

void report_result(FILE *to, const struct result *result) {
  cells cell;
  for (size_t i = 0; i < result->count; i++) {
    fill_cells(result, &result->candidates[i], cell);
    print_line(to, cell);
  }
}

/* ---- The head ----------------------------------------------------------------------------------------------- */

void report_head(FILE *to, const struct report *r) {
  const struct card *card = r->card;
  fprintf(to, "%s (sm_%d, %d multiprocessors, %d MB L2), driver %s (CUDA %d.%d), clocks %d MHz, memory %d MHz\n",
          card->gpu.name, card->capability, card->multiprocessors, card->l2_bytes >> 20,
          card->driver[0] ? card->driver : "not told", card->cuda_version / 1000, card->cuda_version % 1000 / 10,
          card->sm_mhz, card->memory_mhz);
  fprintf(to, "%s, normstatic %d.%d.%d, build %s, CUPTI %u\n", r->date, NST_VERSION_MAJOR, NST_VERSION_MINOR,
          NST_VERSION_PATCH, nst_build_id(), r->cupti);
  if (r->host) {
    const struct host_times *h = r->host;
    fprintf(to, "driver's start: libcuda loaded %.1f ms, cuInit %.1f ms, context %.1f ms; nst_open beyond it %.2f ms\n",
            h->start.load_us / 1e3, h->start.init_us / 1e3, h->start.context_us / 1e3, h->open_us / 1e3);
    fprintf(
        to,
        "host: first call %.2f ms, nst_preload %.1f ms, first call of another kernel after it %.3f ms, a call %.2f us "
        "(p10 %.2f, p90 %.2f)\n",
        h->first_call_us / 1e3, h->preload_us / 1e3, h->first_after_us / 1e3, h->call_us.median, h->call_us.p10,
        h->call_us.p90);
    fprintf(to,
            "chain of 1 x 4096 bf16 in a graph, a call: %.2f us on the card and %.2f on the host, with dependent launch "
            "%.2f and %.2f\n",
            h->chain.device_us, h->chain.host_us, h->chain_dependent.device_us, h->chain_dependent.host_us);
    if (h->archive_bytes) fprintf(to, "archive: %.1f MB\n", (double)h->archive_bytes / 1e6);
  }
  if (r->left_out) fprintf(to, "left out: %zu workloads of operations that the library does not have\n", r->left_out);
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static int finish(FILE *to, const char *path, struct problem *p) {
  const int failed = ferror(to);
  return fclose(to) != 0 || failed ? problem(p, "%s: can't be written to its end.", path) : 0;
}

static void markdown_line(FILE *to, cells cell) {
  for (int i = 0; i < COLUMN_COUNT; i++) fprintf(to, "| %s ", cell[i]);
  fputs("|\n", to);
}

int report_markdown(const char *path, const struct report *r, struct problem *p) {
  FILE *to = fopen(path, "w");
  if (!to) return problem(p, "%s: can't be written.", path);
  fputs("```\n", to);
  report_head(to, r);
  fputs("```\n\n", to);
  cells cell;
  for (int i = 0; i < COLUMN_COUNT; i++) snprintf(cell[i], CELL_MAX, "%s", columns[i].title);
  markdown_line(to, cell);
  for (int i = 0; i < COLUMN_COUNT; i++) fputs(columns[i].width < 0 ? "| --- " : "| ---: ", to);
  fputs("|\n", to);
  for (size_t i = 0; i < r->count; i++)
    for (size_t c = 0; c < r->results[i].count; c++) {
      fill_cells(&r->results[i], &r->results[i].candidates[c], cell);
      markdown_line(to, cell);
    }
  return finish(to, path, p);
}

static const char *const states[] = {"timed", "refused", "wrong"};

/* Doubled quotes, as CSV wants them. */
static void csv_text(FILE *to, const char *text) {
  fputc('"', to);
  for (; *text; text++) {
    if (*text == '"') fputc('"', to);
    fputc(*text, to);
  }
  fputc('"', to);
}

int report_csv(const char *path, const struct report *r, struct problem *p) {
  FILE *to = fopen(path, "w");
  if (!to) return problem(p, "%s: can't be written.", path);
  fputs(
      "id,op,types,rows,n,bytes,state,kernel,grid,block,cluster,cold_us,cold_min_us,cold_p10_us,cold_p90_us,warm_us,"
      "copy_us,published_us,max_ulp,reason\n",
      to);
  for (size_t i = 0; i < r->count; i++) {
    const struct result *x = &r->results[i];
    const struct workload *w = &x->workload;
    for (size_t k = 0; k < x->count; k++) {
      const struct candidate *c = &x->candidates[k];
      csv_text(to, w->id);
      fprintf(to, ",%s,%s,%lld,%lld,%lld,%s,%s,%u,%u,%u,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f,", op_name(w->op),
              types_name(w->dtype, w->weight_dtype), (long long)w->rows, (long long)w->n, (long long)workload_bytes(w),
              states[c->state], c->kernel, c->grid, c->block, c->cluster, c->cold.median, c->cold.min, c->cold.p10,
              c->cold.p90, c->warm.median, x->floor.us, w->published_us, c->max_ulp);
      csv_text(to, c->reason);
      fputc('\n', to);
    }
  }
  return finish(to, path, p);
}

static json_t *stats_json(const struct stats *s) {
  return json_pack("{sf sf sf sf sI}", "median", s->median, "min", s->min, "p10", s->p10, "p90", s->p90, "count",
                   (json_int_t)s->count);
}

static json_t *candidate_json(const struct candidate *c) {
  json_t *json = json_pack("{ss ss}", "state", states[c->state], "kernel", c->kernel);
  if (c->choice[0]) json_object_set_new(json, "choice", json_string(c->choice));
  if (c->state != CANDIDATE_TIMED) json_object_set_new(json, "reason", json_string(c->reason));
  if (c->state == CANDIDATE_REFUSED) return json;
  json_object_update_new(
      json, json_pack("{si si si si si sf sI}", "grid", (int)c->grid, "block", (int)c->block, "cluster",
                      (int)c->cluster, "registers", (int)c->registers, "shared_bytes", (int)c->shared_bytes, "max_ulp",
                      c->max_ulp < 1e30 ? c->max_ulp : 1e30, "checked_rows", (json_int_t)c->checked_rows));
  if (c->cold.count) json_object_set_new(json, "cold_us", stats_json(&c->cold));
  if (c->warm.count) json_object_set_new(json, "warm_us", stats_json(&c->warm));
  return json;
}

static json_t *result_json(const struct result *x) {
  const struct workload *w = &x->workload;
  json_t *json =
      json_pack("{ss ss ss ss sI sI sI}", "id", w->id, "op", op_name(w->op), "dtype", half_name(w->dtype),
                "weight_dtype", w->has[ROWS_WEIGHT] || w->has[ROWS_BIAS] ? half_name(w->weight_dtype) : "none", "rows",
                (json_int_t)w->rows, "n", (json_int_t)w->n, "bytes", (json_int_t)workload_bytes(w));
  if (w->x_stride) json_object_set_new(json, "x_stride", json_integer(w->x_stride));
  if (w->rows_per_cond > 1) json_object_set_new(json, "rows_per_cond", json_integer(w->rows_per_cond));
  if (w->offset) json_object_set_new(json, "offset", json_integer(w->offset));
  json_object_set_new(json, "copy_us", json_real(x->floor.us));
  json_object_set_new(
      json, "copy",
      json_pack("{sI so sI so}", "bytes", (json_int_t)x->floor.bytes, "us", stats_json(&x->floor.plain),
                "rounded_bytes", (json_int_t)x->floor.rounded_bytes, "rounded_us", stats_json(&x->floor.rounded)));
  if (w->published_us > 0) json_object_set_new(json, "published_us", json_real(w->published_us));
  if (w->alternative[0])
    json_object_set_new(json, "published_alternative",
                        json_pack("{ss sf}", "name", w->alternative, "us", w->alternative_us));
  json_t *list = json_array();
  for (size_t i = 0; i < x->count; i++) json_array_append_new(list, candidate_json(&x->candidates[i]));
  json_object_set_new(json, "results", list);
  return json;
}

static json_t *chain_json(const struct chain_times *t) {
  return json_pack("{sf sf}", "device_us", t->device_us, "host_us", t->host_us);
}

static json_t *host_json(const struct host_times *h) {
  json_t *json = json_pack("{sf sf sf sf sf sf sf so}", "libcuda_us", h->start.load_us, "cuinit_us", h->start.init_us,
                           "context_us", h->start.context_us, "nst_open_us", h->open_us, "first_call_us",
                           h->first_call_us, "preload_us", h->preload_us, "first_call_after_preload_us",
                           h->first_after_us, "call_us", stats_json(&h->call_us));
  json_object_set_new(json, "chain", chain_json(&h->chain));
  json_object_set_new(json, "chain_dependent_launch", chain_json(&h->chain_dependent));
  if (h->archive_bytes) json_object_set_new(json, "archive_bytes", json_integer(h->archive_bytes));
  return json;
}

int report_json(const char *path, const struct report *r, struct problem *p) {
  const struct card *card = r->card;
  json_t *json = json_pack("{ss ss ss ss si si si si si si}", "device", card->gpu.name, "driver", card->driver, "date",
                           r->date, "build_id", nst_build_id(), "cuda", card->cuda_version, "capability",
                           card->capability, "multiprocessors", card->multiprocessors, "clock_mhz", card->sm_mhz,
                           "memory_clock_mhz", card->memory_mhz, "cupti", (int)r->cupti);
  json_object_set_new(json, "command", json_string(r->command));
  json_object_set_new(json, "left_out", json_integer((json_int_t)r->left_out));
  if (r->host) json_object_set_new(json, "host", host_json(r->host));
  json_t *list = json_array();
  for (size_t i = 0; i < r->count; i++) json_array_append_new(list, result_json(&r->results[i]));
  if (json_object_set_new(json, "workloads", list) != 0) {
    json_decref(json);
    return problem(p, "out of memory for %s.", path);
  }
  const int failed = json_dump_file(json, path, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS));
  json_decref(json);
  return failed ? problem(p, "%s: can't be written.", path) : 0;
}
