#include "tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "oracle.h"

enum {
  PATTERN_BYTES = 64 << 20, /* random numbers made on the host; the device spreads them */
  STRETCH = 1024,           /* elements of about one magnitude */
  ALIGNMENT = 256,          /* of a tensor, before the workload's offset */
  CHECKED_ELEMENTS = 1 << 21
};

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static uint64_t random_bits(uint64_t *state) { /* splitmix64 */
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void random_numbers(nst_dtype dtype, void *to, size_t count, uint64_t seed) {
  const struct half_format format = half_format_of(dtype);
  const uint32_t bias = (uint32_t)(1 - format.e_min);
  uint32_t top = bias;
  for (size_t i = 0; i < count; i++) {
    const uint64_t bits = random_bits(&seed);
    if (i % STRETCH == 0) top = bias - 2 + (bits >> 60 & 3); /* exponents from -2 to 1 */
    /* Each binade below the top one half as often as the one above, as in a uniform distribution. */
    uint32_t below = 0;
    while (below < 5 && bits >> (40 + below) & 1) below++;
    const uint32_t sign = bits >> 63 & 1, mantissa = (uint32_t)bits & ((1u << format.bits) - 1);
    const uint32_t word = sign << (format.bytes * 8 - 1) | (top - below) << format.bits | mantissa;
    if (format.bytes == 4) {
      ((uint32_t *)to)[i] = word;
    } else {
      ((uint16_t *)to)[i] = (uint16_t)word;
    }
  }
}

int arena_reserve(struct bench *b, struct arena *arena, size_t bytes, struct problem *p) {
  if (arena->bytes >= bytes) return 0;
  gpu_free(&b->card->gpu, arena->base);
  memset(arena, 0, sizeof *arena);
  arena->base = gpu_alloc(&b->card->gpu, bytes);
  if (!arena->base) return problem(p, "the card has no room for %.1f MB more.", (double)bytes / 1e6);
  arena->bytes = bytes;
  return 0;
}

static int fill_pattern(struct bench *b, nst_dtype dtype, struct problem *p) {
  struct arena *pattern = &b->patterns[dtype];
  if (pattern->filled == dtype) return 0;
  if (arena_reserve(b, pattern, PATTERN_BYTES, p)) return -1;
  void *host = malloc(PATTERN_BYTES);
  if (!host) return problem(p, "out of memory for %d bytes of random numbers.", PATTERN_BYTES);
  random_numbers(dtype, host, PATTERN_BYTES / half_size(dtype), 1);
  const int failed = card_upload(b->card, pattern->base, host, PATTERN_BYTES, p);
  free(host);
  if (failed) return -1;
  pattern->filled = dtype;
  return 0;
}

/* Copies pieces of the pattern that each start elsewhere in it, so that no two rows of a tensor are the same. */
static int fill_arena(struct bench *b, struct arena *arena, nst_dtype dtype, size_t first, struct problem *p) {
  if (arena->filled == dtype) return 0;
  if (fill_pattern(b, dtype, p)) return -1;
  const size_t piece = PATTERN_BYTES / 2;
  size_t from = first;
  for (size_t done = 0; done < arena->bytes; done += piece) {
    const size_t bytes = arena->bytes - done < piece ? arena->bytes - done : piece;
    if (card_copy(b->card, (char *)arena->base + done, (char *)b->patterns[dtype].base + from, bytes, p)) return -1;
    from = (from + 7340048) % piece; /* a multiple of 16 that shares no other factor with the size */
  }
  arena->filled = dtype;
  return card_sync(b->card, p);
}

/* The arenas of data and conditioning, of weight and bias, and of what is written. */
enum { IN, WEIGHTS, OUT, ROOMS };

static int room_of(enum rows_tensor tensor) {
  return tensor >= ROWS_INPUTS ? OUT : rows_tensor_shape(tensor) == SHAPE_ROW ? WEIGHTS : IN;
}

int tensors_place(struct bench *b, const struct workload *w, size_t copied, struct tensors *t, struct problem *p) {
  struct arena *const arenas[ROOMS] = {&b->in, &b->weight, &b->out};
  size_t at[ROWS_TENSORS], used[ROOMS] = {0};
  for (int i = 0; i < ROWS_TENSORS; i++) {
    const struct matrix m = workload_matrix(w, (enum rows_tensor)i);
    size_t *end = &used[room_of((enum rows_tensor)i)];
    if (!w->has[i]) continue;
    at[i] = *end + (size_t)w->offset * half_size(m.dtype);
    *end = round_up(at[i] + (size_t)matrix_extent(&m), ALIGNMENT);
  }
  if (arena_reserve(b, &b->in, used[IN] > copied ? used[IN] : copied, p) ||
      arena_reserve(b, &b->out, used[OUT] > copied ? used[OUT] : copied, p) ||
      arena_reserve(b, &b->weight, used[WEIGHTS], p) || fill_arena(b, &b->in, w->dtype, 0, p) ||
      fill_arena(b, &b->weight, w->weight_dtype, PATTERN_BYTES / 4, p))
    return -1;
  struct rows_call call = {.op = w->op, .dtype = w->dtype, .weight_dtype = w->weight_dtype};
  call.rows = w->rows, call.n = w->n, call.rows_per_cond = w->rows_per_cond, call.eps = w->eps;
  call.stride[ROWS_X] = w->x_stride;
  for (int i = 0; i < ROWS_TENSORS; i++)
    if (w->has[i]) call.tensor[i] = (char *)arenas[room_of((enum rows_tensor)i)]->base + at[i];
  *t = (struct tensors){.call = call, .args = rows_args_of(&call), .out_bytes = used[OUT]};
  return 0;
}

int tensors_poison(struct bench *b, const struct tensors *t, struct problem *p) {
  return card_fill(b->card, b->out.base, 0xff, t->out_bytes, p); /* NaN in all three types */
}

/* ---- Checking ----------------------------------------------------------------------------------------------- */

/* A row of each tensor that the workload has on the host. */
struct host_rows {
  char *row[ROWS_TENSORS];
};

static int fetch(struct bench *b, const struct workload *w, const struct tensors *t, enum rows_tensor tensor,
                 int64_t row, struct host_rows *h, struct problem *p) {
  const struct matrix m = workload_matrix(w, tensor);
  const size_t size = half_size(m.dtype);
  const char *from = (const char *)t->call.tensor[tensor] + (size_t)(row * m.stride) * size;
  return card_download(b->card, h->row[tensor], from, (size_t)m.n * size, p);
}

static struct oracle_tensor as_oracle(const struct workload *w, const struct host_rows *h, enum rows_tensor tensor) {
  const struct matrix m = workload_matrix(w, tensor);
  return (struct oracle_tensor){h->row[tensor], m.dtype, m.n};
}

static int check_row(struct bench *b, const struct workload *w, const struct tensors *t, struct host_rows *h,
                     int64_t row, struct oracle_report *report, struct problem *p) {
  for (int i = 0; i < ROWS_TENSORS; i++) {
    const enum rows_shape shape = rows_tensor_shape((enum rows_tensor)i);
    if (!w->has[i] || shape == SHAPE_ROW) continue;
    if (fetch(b, w, t, (enum rows_tensor)i, shape == SHAPE_COND ? row / w->rows_per_cond : row, h, p)) return -1;
  }
  const struct oracle_rows in = {.op = w->op,
                                 .n = w->n,
                                 .x = as_oracle(w, h, ROWS_X),
                                 .residual = as_oracle(w, h, ROWS_RESIDUAL),
                                 .weight = as_oracle(w, h, ROWS_WEIGHT),
                                 .bias = as_oracle(w, h, ROWS_BIAS),
                                 .scale = as_oracle(w, h, ROWS_SCALE),
                                 .shift = as_oracle(w, h, ROWS_SHIFT),
                                 .gate = as_oracle(w, h, ROWS_GATE),
                                 .eps = w->eps};
  const struct oracle_result result = {.y = as_oracle(w, h, ROWS_Y),
                                       .residual_out = as_oracle(w, h, ROWS_RESIDUAL_OUT)};
  const int was_right = report->what == NULL;
  oracle_compare(&in, &result, 0, report);
  if (was_right && report->what) report->row = row;
  return 0;
}

static int check_rows(struct bench *b, const struct workload *w, const struct tensors *t, int max_rows,
                      struct host_rows *h, struct candidate *c, struct problem *p) {
  struct oracle_report report = ORACLE_REPORT_INIT;
  uint64_t state = 7;
  int64_t rows = CHECKED_ELEMENTS / w->n;
  rows = rows > max_rows ? max_rows : rows < 3 ? 3 : rows;
  if (rows > w->rows) rows = w->rows;
  for (int i = 0; i < ROWS_INPUTS; i++)
    if (w->has[i] && rows_tensor_shape((enum rows_tensor)i) == SHAPE_ROW &&
        fetch(b, w, t, (enum rows_tensor)i, 0, h, p))
      return -1;
  for (int64_t i = 0; i < rows; i++) {
    int64_t row = i;
    if (rows < w->rows && i > 0) row = i + 1 == rows ? w->rows - 1 : (int64_t)(random_bits(&state) % (uint64_t)w->rows);
    if (check_row(b, w, t, h, row, &report, p)) return -1;
  }
  c->checked_rows = rows;
  c->max_ulp = report.y_ulps;
  if (!report.what) return 0;
  c->state = CANDIDATE_WRONG;
  snprintf(c->reason, sizeof c->reason,
           "%s[%lld][%lld] is %.9g, expected %.9g within %.3g; %lld of %lld numbers looked at are wrong", report.what,
           (long long)report.row, (long long)report.column, report.got, report.expected, report.limit,
           (long long)report.wrong, (long long)report.compared);
  return 0;
}

int tensors_check(struct bench *b, const struct workload *w, const struct tensors *t, int max_rows,
                  struct candidate *candidate, struct problem *p) {
  const size_t row_bytes = round_up((size_t)w->n * sizeof(float), sizeof(float[4])); /* of the widest type */
  char *host = malloc(ROWS_TENSORS * row_bytes);
  if (!host) return problem(p, "out of memory for rows of %lld elements.", (long long)w->n);
  struct host_rows h = {{NULL}};
  for (int i = 0; i < ROWS_TENSORS; i++)
    if (w->has[i]) h.row[i] = host + (size_t)i * row_bytes;
  const int failed = check_rows(b, w, t, max_rows, &h, candidate, p);
  free(host);
  return failed;
}
