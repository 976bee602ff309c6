#define _POSIX_C_SOURCE 200809L /* access, gmtime_r */
#include "tune_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DIGITS = 6 };

int tune_file_open(struct tune_file *file, const struct options *o, const struct card *card, const char *command,
                   struct problem *p) {
  memset(file, 0, sizeof *file);
  file->path = o->tune;
  file->log_path = o->json;
  json_t *old = NULL;
  if (access(file->path, F_OK) == 0) {
    json_error_t error;
    old = json_load_file(file->path, 0, &error);
    if (!old) return problem(p, "%s: line %d: is not JSON (%s).", file->path, error.line, error.text);
    if (!json_is_array(json_object_get(old, "entries"))) {
      json_decref(old);
      return problem(p, "%s: has no list \"entries\".", file->path);
    }
  }
  char date[16];
  const time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
  const char *driver = card->driver[0] ? card->driver : "not told";
  file->head = json_pack("{ss ss ss ss}", "device", card->gpu.name, "driver", driver, "date", date, "command", command);
  file->entries = old ? json_incref(json_object_get(old, "entries")) : json_array();
  file->log = json_array();
  json_decref(old);
  if (file->head && file->entries && file->log) return 0;
  tune_file_close(file);
  return problem(p, "out of memory for the tuning data.");
}

void tune_file_close(struct tune_file *file) {
  json_decref(file->head);
  json_decref(file->entries);
  json_decref(file->log);
  memset(file, 0, sizeof *file);
}

/* A bucket as the spec writes it: a number, or "any". */
static json_t *bucket_json(int64_t bucket) { return bucket ? json_integer(bucket) : json_string("any"); }

static json_t *range_json(const nst_kernel_info *cell, const struct candidate *candidate,
                          const struct tune_range *range) {
  nst_kernel_info k = NST_KERNEL_INFO_INIT;
  if (nst_table_row(candidate->index, &k) != NST_OK) return NULL;
  json_t *rows = range->rows_up_to ? json_integer(range->rows_up_to) : json_null();
  json_t *json = json_pack("{so ss}", "rows_up_to", rows, "strategy", strategy_name(k.strategy));
  if (k.bucket != cell->bucket) json_object_set_new(json, "bucket", bucket_json(k.bucket));
  if (k.access != cell->access) json_object_set_new(json, "access", json_string(access_name(k.access)));
  json_object_set_new(json, "time_us", json_real(range->time_us));
  return json;
}

/* Whether an entry is of this kind of call. */
static int is_of(const json_t *entry, const nst_kernel_info *cell) {
  const char *op = json_string_value(json_object_get(entry, "op"));
  const char *types = json_string_value(json_object_get(entry, "types"));
  const char *access = json_string_value(json_object_get(entry, "access"));
  const json_t *bucket = json_object_get(entry, "bucket");
  const int64_t size = json_is_integer(bucket) ? json_integer_value(bucket) : 0;
  return op && types && access && strcmp(op, op_name(cell->op)) == 0 &&
         strcmp(types, types_name(cell->dtype, cell->weight_dtype)) == 0 && size == cell->bucket &&
         strcmp(access, access_name(cell->access)) == 0;
}

int tune_file_put(struct tune_file *file, const nst_kernel_info *cell, const struct candidate *candidates,
                  const struct tune_range *ranges, size_t count, struct problem *p) {
  json_t *list = json_array();
  for (size_t i = 0; i < count; i++)
    if (json_array_append_new(list, range_json(cell, &candidates[ranges[i].candidate], &ranges[i])) != 0) {
      json_decref(list);
      return problem(p, "out of memory for the tuning data.");
    }
  json_t *entry =
      json_pack("{ss ss so ss so}", "op", op_name(cell->op), "types", types_name(cell->dtype, cell->weight_dtype),
                "bucket", bucket_json(cell->bucket), "access", access_name(cell->access), "ranges", list);
  for (size_t i = json_array_size(file->entries); i-- > 0;)
    if (is_of(json_array_get(file->entries, i), cell)) json_array_remove(file->entries, i);
  if (json_array_append_new(file->entries, entry) != 0) return problem(p, "out of memory for the tuning data.");
  return 0;
}

void tune_file_log(struct tune_file *file, const struct workload *w, const struct candidate *candidates, size_t count) {
  json_t *kernels = json_object();
  for (size_t i = 0; i < count; i++)
    if (candidates[i].state == CANDIDATE_TIMED)
      json_object_set_new(kernels, candidates[i].kernel, json_real(candidates[i].cold.median));
  json_array_append_new(file->log, json_pack("{ss sI sI so}", "id", w->id, "rows", (json_int_t)w->rows, "n",
                                             (json_int_t)w->n, "cold_us", kernels));
}

/* ---- Writing ------------------------------------------------------------------------------------------------ */

static int write_list(FILE *to, const char *name, const json_t *list) {
  fprintf(to, "  \"%s\": [", name);
  for (size_t i = 0; i < json_array_size(list); i++) {
    fputs(i ? ",\n    " : "\n    ", to);
    json_dumpf(json_array_get(list, i), to, JSON_REAL_PRECISION(DIGITS));
  }
  fputs(json_array_size(list) ? "\n  ]\n}\n" : "]\n}\n", to);
  return ferror(to);
}

static int write_json(const char *path, const json_t *head, const char *name, const json_t *list, struct problem *p) {
  FILE *to = fopen(path, "w");
  if (!to) return problem(p, "%s: can't be written.", path);
  const char *key;
  json_t *value;
  fputs("{\n", to);
  json_object_foreach((json_t *)head, key, value) {
    fprintf(to, "  \"%s\": ", key);
    json_dumpf(value, to, JSON_ENCODE_ANY);
    fputs(",\n", to);
  }
  const int failed = write_list(to, name, list);
  if (fclose(to) != 0 || failed) return problem(p, "%s: can't be written to its end.", path);
  return 0;
}

/* Sorting key: the first table row of the entry's kind of call. */
struct place {
  size_t index;
  json_t *entry;
};

static int by_index(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  return (x->index > y->index) - (x->index < y->index);
}

static size_t place_of(const json_t *entry) {
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    if (nst_table_row(i, &k) == NST_OK && is_of(entry, &k)) return i;
  }
  return nst_table_count(); /* of an axis that this library does not have: last */
}

static int sort_entries(struct tune_file *file, struct problem *p) {
  const size_t count = json_array_size(file->entries);
  struct place *places = malloc((count + 1) * sizeof *places);
  json_t *sorted = json_array();
  if (!places || !sorted) {
    free(places);
    json_decref(sorted);
    return problem(p, "out of memory for the tuning data.");
  }
  for (size_t i = 0; i < count; i++) {
    json_t *entry = json_array_get(file->entries, i);
    places[i] = (struct place){place_of(entry), entry};
  }
  qsort(places, count, sizeof *places, by_index);
  for (size_t i = 0; i < count; i++) json_array_append(sorted, places[i].entry);
  free(places);
  json_decref(file->entries);
  file->entries = sorted;
  return 0;
}

int tune_file_write(struct tune_file *file, struct problem *p) {
  if (sort_entries(file, p) || write_json(file->path, file->head, "entries", file->entries, p)) return -1;
  return file->log_path ? write_json(file->log_path, file->head, "measured", file->log, p) : 0;
}
