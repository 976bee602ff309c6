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

int tensors_place(struct bench *b, const struct workload *w, size_t copied, struct tensors *t, struct problem *p) {
  const int adds = op_adds_residual(w->op);
  const size_t shift = (size_t)w->offset * half_size(w->dtype);
  const size_t x_bytes = round_up((size_t)workload_x_extent(w) + shift, ALIGNMENT);
  const size_t dense = round_up((size_t)w->rows * (size_t)w->n * half_size(w->dtype) + shift, ALIGNMENT);
  memset(t, 0, sizeof *t);
  t->in_bytes = x_bytes + (adds ? dense : 0);
  t->out_bytes = dense * (adds ? 2 : 1);
  if (arena_reserve(b, &b->in, t->in_bytes > copied ? t->in_bytes : copied, p) ||
      arena_reserve(b, &b->out, t->out_bytes > copied ? t->out_bytes : copied, p) ||
      fill_arena(b, &b->in, w->dtype, 0, p))
    return -1;
  char *in = b->in.base, *out = b->out.base;
  t->x = in + shift;
  if (adds) t->residual = in + x_bytes + shift;
  t->y = out + shift;
  if (adds) t->residual_out = out + dense + shift;
  if (w->has_weight) {
    const size_t weight_shift = (size_t)w->offset * half_size(w->weight_dtype);
    if (arena_reserve(b, &b->weight, (size_t)w->n * half_size(w->weight_dtype) + weight_shift, p) ||
        fill_arena(b, &b->weight, w->weight_dtype, PATTERN_BYTES / 4, p))
      return -1;
    t->weight = (char *)b->weight.base + weight_shift;
  }
  if (adds) {
    t->args.fused = (nst_fused_add_rms_norm_fwd_args)NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT;
    nst_fused_add_rms_norm_fwd_args *a = &t->args.fused;
    a->dtype = w->dtype, a->weight_dtype = w->weight_dtype, a->rows = w->rows, a->n = w->n, a->eps = w->eps;
    a->x = t->x, a->x_stride = w->x_stride, a->residual = t->residual, a->weight = t->weight;
    a->y = t->y, a->residual_out = t->residual_out;
  } else {
    t->args.rms = (nst_rms_norm_fwd_args)NST_RMS_NORM_FWD_ARGS_INIT;
    nst_rms_norm_fwd_args *a = &t->args.rms;
    a->dtype = w->dtype, a->weight_dtype = w->weight_dtype, a->rows = w->rows, a->n = w->n, a->eps = w->eps;
    a->x = t->x, a->x_stride = w->x_stride, a->weight = t->weight, a->y = t->y;
  }
  return 0;
}

int tensors_poison(struct bench *b, const struct tensors *t, struct problem *p) {
  return card_fill(b->card, b->out.base, 0xff, t->out_bytes, p); /* NaN in all three types */
}

/* ---- Checking ----------------------------------------------------------------------------------------------- */

/* One row of each tensor on the host. */
struct host_row {
  char *x, *residual, *weight, *y, *residual_out;
};

static int check_row(struct bench *b, const struct workload *w, const struct tensors *t, const struct host_row *h,
                     int64_t row, struct oracle_report *report, struct problem *p) {
  const int64_t size = (int64_t)half_size(w->dtype), x_stride = w->x_stride ? w->x_stride : w->n;
  const size_t bytes = (size_t)(w->n * size);
  const int64_t dense = row * w->n * size;
  if (card_download(b->card, h->x, (const char *)t->x + row * x_stride * size, bytes, p) ||
      card_download(b->card, h->y, (const char *)t->y + dense, bytes, p))
    return -1;
  if (t->residual && (card_download(b->card, h->residual, (const char *)t->residual + dense, bytes, p) ||
                      card_download(b->card, h->residual_out, (const char *)t->residual_out + dense, bytes, p)))
    return -1;
  struct oracle_rms in = {.n = w->n, .eps = w->eps};
  in.x = (struct oracle_tensor){h->x, w->dtype, w->n};
  if (t->residual) in.residual = (struct oracle_tensor){h->residual, w->dtype, w->n};
  if (t->weight) in.weight = (struct oracle_tensor){h->weight, w->weight_dtype, w->n};
  struct oracle_rms_result result = {.y = {h->y, w->dtype, w->n}};
  if (t->residual) result.residual_out = (struct oracle_tensor){h->residual_out, w->dtype, w->n};
  const int was_right = report->what == NULL;
  oracle_rms_compare(&in, &result, 0, report);
  if (was_right && report->what) report->row = row;
  return 0;
}

static int check_rows(struct bench *b, const struct workload *w, const struct tensors *t, int max_rows, char *host,
                      struct candidate *c, struct problem *p) {
  const size_t bytes = (size_t)w->n * half_size(w->dtype);
  const struct host_row h = {host, host + bytes, host + 4 * bytes, host + 2 * bytes, host + 3 * bytes};
  if (t->weight && card_download(b->card, h.weight, t->weight, (size_t)w->n * half_size(w->weight_dtype), p)) return -1;
  struct oracle_report report = ORACLE_REPORT_INIT;
  uint64_t state = 7;
  int64_t rows = CHECKED_ELEMENTS / w->n;
  rows = rows > max_rows ? max_rows : rows < 3 ? 3 : rows;
  if (rows > w->rows) rows = w->rows;
  for (int64_t i = 0; i < rows; i++) {
    int64_t row = i;
    if (rows < w->rows && i > 0) row = i + 1 == rows ? w->rows - 1 : (int64_t)(random_bits(&state) % (uint64_t)w->rows);
    if (check_row(b, w, t, &h, row, &report, p)) return -1;
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
  /* Four rows of the data's type and the weight, which may be twice as wide. */
  char *host = malloc((size_t)w->n * (4 * half_size(w->dtype) + half_size(w->weight_dtype)));
  if (!host) return problem(p, "out of memory for rows of %lld elements.", (long long)w->n);
  const int failed = check_rows(b, w, t, max_rows, host, candidate, p);
  free(host);
  return failed;
}
