#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "tensors.h"

enum {
  FLUSH_BYTES = 256 << 20,
  COPY_ROUNDING = 64 << 10,
  UNTIMED_ROUNDS = 2 /* before the timed ones, so that loading and first touches are past */
};

int bench_open(struct bench *b, struct card *card, struct problem *p) {
  memset(b, 0, sizeof *b);
  b->card = card;
  return arena_reserve(b, &b->flush, FLUSH_BYTES, p);
}

void bench_close(struct bench *b) {
  struct arena *const arenas[] = {&b->in, &b->out, &b->weight, &b->flush};
  for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++) gpu_free(&b->card->gpu, arenas[i]->base);
  for (int i = 0; i <= NST_DTYPE_F32; i++) gpu_free(&b->card->gpu, b->patterns[i].base);
}

/* Fills L2 with dirty lines that no workload reads. What kernels read with evict_last hints would outlast them and serve
 * the next call: at 34 MB that made a cold time 10 % shorter, and the driver's copy of the same input 20 %. */
static int flush(struct bench *b, struct problem *p) {
  if (card_release_lines(b->card, p)) return -1;
  return card_fill(b->card, b->flush.base, ++b->flushes, b->flush.bytes, p);
}

int bench_warm_up(struct bench *b, double seconds, struct problem *p) {
  const double end = now_us() + seconds * 1e6;
  while (now_us() < end) {
    for (int i = 0; i < 50; i++)
      if (card_fill(b->card, b->flush.base, ++b->flushes, b->flush.bytes, p)) return -1;
    if (card_sync(b->card, p) || records_clear(p)) return -1;
  }
  return 0;
}

/* ---- Candidates --------------------------------------------------------------------------------------------- */

static int64_t power_of_two_from(int64_t n) {
  int64_t power = 64;
  while (power < n) power *= 2;
  return power;
}

size_t candidates_of(const struct workload *w, const nst_strategy *strategy, struct candidate *candidates, size_t max) {
  size_t count = 0;
  for (size_t i = 0; i < nst_table_count() && count < max; i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    if (nst_table_row(i, &k) != NST_OK || !k.symbol || k.op != w->op || k.dtype != w->dtype ||
        k.weight_dtype != w->weight_dtype || (strategy && k.strategy != *strategy) ||
        (k.access == NST_ACCESS_EXACT && k.bucket != w->n) ||
        (k.bucket != 0 && (k.bucket < w->n || k.bucket > 2 * power_of_two_from(w->n))))
      continue;
    candidates[count++] = (struct candidate){.index = i};
  }
  return count;
}

size_t candidate_by_symbol(const char *symbol) {
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    if (nst_table_row(i, &k) == NST_OK && k.symbol && strcmp(k.symbol, symbol) == 0) return i;
  }
  return CANDIDATE_CHOSEN;
}

static nst_status launch(struct bench *b, const struct workload *w, const struct tensors *t, size_t index) {
  const struct gpu *g = &b->card->gpu;
  if (index != CANDIDATE_CHOSEN) return nst_launch_kernel(g->library, index, &t->args, g->stream);
  return rows_launch(g->library, w->op, &t->args, g->stream);
}

static void name_choice(struct bench *b, const struct workload *w, const struct tensors *t, struct candidate *c) {
  nst_device_facts facts = {.size = sizeof facts};
  nst_launch_info info = {.size = sizeof info, .kernel = NST_KERNEL_INFO_INIT};
  if (nst_device(b->card->gpu.library, &facts) != NST_OK || nst_explain(w->op, &t->args, &facts, &info) != NST_OK)
    return;
  snprintf(c->choice, sizeof c->choice, "%s", info.choice ? info.choice : "");
}

/* ---- One candidate, alone: is it right, and which records does a call leave? -------------------------------- */

static void name_kernel(struct candidate *c, const struct call_shape *shape) {
  for (size_t i = 0; i < shape->count; i++) {
    const struct record *r = &shape->records[i];
    if (r->kind != RECORD_KERNEL) continue;
    snprintf(c->kernel, sizeof c->kernel, "%s", r->name);
    c->grid = r->grid[0] * r->grid[1] * r->grid[2];
    c->block = r->block[0] * r->block[1] * r->block[2];
    c->cluster = r->cluster;
    c->registers = r->registers;
    c->shared_bytes = r->shared_bytes;
    return; /* a call of several kernels goes by its first one */
  }
}

static int probe(struct bench *b, const struct workload *w, const struct tensors *t, int check_rows,
                 struct candidate *c, struct call_shape *shape, struct problem *p) {
  const struct record *records;
  size_t count;
  c->state = CANDIDATE_TIMED;
  nst_kernel_info k = NST_KERNEL_INFO_INIT;
  if (c->index != CANDIDATE_CHOSEN && nst_table_row(c->index, &k) == NST_OK)
    snprintf(c->kernel, sizeof c->kernel, "%s", k.symbol);
  if (tensors_poison(b, t, p) || card_sync(b->card, p) || records_clear(p)) return -1;
  const nst_status status = launch(b, w, t, c->index);
  if (status != NST_OK) {
    c->state = status == NST_ERROR_DRIVER_CALL ? CANDIDATE_WRONG : CANDIDATE_REFUSED;
    snprintf(c->reason, sizeof c->reason, "%s", nst_last_error());
    return 0;
  }
  if (card_sync(b->card, p) || records_take(1, &records, &count, p) || call_shape_learn(shape, records, count, p))
    return -1;
  name_kernel(c, shape);
  if (c->index == CANDIDATE_CHOSEN) name_choice(b, w, t, c);
  return tensors_check(b, w, t, check_rows, c, p);
}

/* ---- All together ------------------------------------------------------------------------------------------- */

/* Calls in the order in which they are queued. Each one's time goes to `out`, if any. */
struct program {
  struct call *calls;
  double **out;
  size_t count;
};

static void program_add(struct program *program, const struct call_shape *shape, double *out) {
  program->calls[program->count].shape = shape;
  program->out[program->count++] = out;
}

struct run {
  struct bench *b;
  const struct workload *w;
  const struct tensors *t;
  struct candidate *candidates;
  size_t count;
  const struct copy_floor *floor; /* NULL: no copies */
  int with_warm;
  const struct call_shape *shapes; /* of each candidate, then of a flush, a copy and a rounded copy */
};

static int queue_candidate(const struct run *r, size_t i, struct program *program, double *cold, double *warm,
                           struct problem *p) {
  if (flush(r->b, p)) return -1;
  program_add(program, &r->shapes[r->count], NULL);
  for (int call = 0; call < 1 + r->with_warm; call++) {
    if (launch(r->b, r->w, r->t, r->candidates[i].index) != NST_OK)
      return problem(p, "%s: a launch that went well before is refused: %.300s", r->candidates[i].kernel,
                     nst_last_error());
    program_add(program, &r->shapes[i], call ? warm : cold);
  }
  return 0;
}

static int queue_copy(const struct run *r, int64_t bytes, const struct call_shape *shape, struct program *program,
                      double *out, struct problem *p) {
  if (flush(r->b, p) || card_copy(r->b->card, r->b->out.base, r->b->in.base, (size_t)bytes, p)) return -1;
  program_add(program, &r->shapes[r->count], NULL);
  program_add(program, shape, out);
  return 0;
}

/* One call of everything. times: for each candidate its cold and warm slot, then the two copies'; NULL: untimed. */
static int queue_round(const struct run *r, struct program *program, double *times, size_t stride, struct problem *p) {
  for (size_t i = 0; i < r->count; i++) {
    if (r->candidates[i].state != CANDIDATE_TIMED) continue;
    double *cold = times ? times + 2 * i * stride : NULL, *warm = times ? times + (2 * i + 1) * stride : NULL;
    if (queue_candidate(r, i, program, cold, warm, p)) return -1;
  }
  if (!r->floor) return 0;
  double *plain = times ? times + 2 * r->count * stride : NULL, *rounded = plain ? plain + stride : NULL;
  return queue_copy(r, r->floor->bytes, &r->shapes[r->count + 1], program, plain, p) ||
                 queue_copy(r, r->floor->rounded_bytes, &r->shapes[r->count + 2], program, rounded, p)
             ? -1
             : 0;
}

static int run_rounds(const struct run *r, struct program *program, double *times, size_t iterations,
                      struct problem *p) {
  const struct record *records;
  size_t count;
  if (card_sync(r->b->card, p) || records_clear(p)) return -1;
  for (size_t i = 0; i < UNTIMED_ROUNDS + iterations; i++)
    if (queue_round(r, program, i < UNTIMED_ROUNDS ? NULL : times + (i - UNTIMED_ROUNDS), iterations, p)) return -1;
  if (card_sync(r->b->card, p) || records_take(calls_records(program->calls, program->count), &records, &count, p) ||
      calls_match(program->calls, program->count, records, count, p))
    return -1;
  for (size_t i = 0; i < program->count; i++)
    if (program->out[i]) *program->out[i] = program->calls[i].us;
  return 0;
}

/* The records of a flush and of the copies, which are one in every driver seen; learnt all the same. */
static int probe_copies(const struct run *r, struct call_shape *shapes, struct problem *p) {
  const int64_t sizes[] = {0, r->floor ? r->floor->bytes : 0, r->floor ? r->floor->rounded_bytes : 0};
  for (int i = 0; i < 3; i++) {
    const struct record *records;
    size_t count;
    if (i > 0 && !r->floor) break;
    if (card_sync(r->b->card, p) || records_clear(p)) return -1;
    if (i == 0 ? flush(r->b, p) : card_copy(r->b->card, r->b->out.base, r->b->in.base, (size_t)sizes[i], p)) return -1;
    if (card_sync(r->b->card, p) || records_take(1, &records, &count, p) ||
        call_shape_learn(&shapes[i], records, count, p))
      return -1;
  }
  return 0;
}

static void summarise(const struct run *r, double *times, size_t iterations, struct copy_floor *floor) {
  for (size_t i = 0; i < r->count; i++) {
    struct candidate *c = &r->candidates[i];
    if (c->state != CANDIDATE_TIMED) continue;
    c->cold = stats_of(times + 2 * i * iterations, iterations);
    if (r->with_warm) c->warm = stats_of(times + (2 * i + 1) * iterations, iterations);
  }
  if (!floor) return;
  floor->plain = stats_of(times + 2 * r->count * iterations, iterations);
  floor->rounded = stats_of(times + (2 * r->count + 1) * iterations, iterations);
  floor->us = floor->plain.median < floor->rounded.median ? floor->plain.median : floor->rounded.median;
}

static size_t iterations_for(const struct measure_options *options, int64_t bytes) {
  if (options->iterations > 0) return (size_t)options->iterations;
  return bytes > 1000000000 ? 10 : bytes > 64000000 ? 20 : 50;
}

int measure(struct bench *b, const struct workload *w, const struct measure_options *options,
            struct candidate *candidates, size_t count, struct copy_floor *floor, struct problem *p) {
  const int64_t bytes = workload_bytes(w);
  const size_t iterations = iterations_for(options, bytes);
  if (bytes < 2) return problem(p, "%s: no byte is moved, so there is nothing to time.", w->id);
  if (floor) {
    memset(floor, 0, sizeof *floor);
    floor->bytes = bytes / 2;
    floor->rounded_bytes = (bytes / 2 + COPY_ROUNDING - 1) / COPY_ROUNDING * COPY_ROUNDING;
  }
  struct tensors t;
  if (tensors_place(b, w, floor ? (size_t)floor->rounded_bytes : 0, &t, p)) return -1;

  const size_t calls = (iterations + UNTIMED_ROUNDS) * (3 * count + 4);
  struct call_shape *shapes = calloc(count + 3, sizeof *shapes);
  struct program program = {.calls = calloc(calls, sizeof *program.calls), .out = calloc(calls, sizeof *program.out)};
  double *times = calloc((2 * count + 2) * iterations, sizeof *times);
  const struct run r = {b, w, &t, candidates, count, floor, options->with_warm, shapes};
  int failed = 0;
  if (!shapes || !program.calls || !program.out || !times) failed = problem(p, "out of memory for %zu calls.", calls);
  for (size_t i = 0; !failed && i < count; i++)
    failed = probe(b, w, &t, options->check_rows, &candidates[i], &shapes[i], p);
  if (!failed) failed = probe_copies(&r, &shapes[count], p);
  if (!failed) failed = run_rounds(&r, &program, times, iterations, p);
  if (!failed) summarise(&r, times, iterations, floor);
  for (size_t i = 0; shapes && i < count + 3; i++) call_shape_free(&shapes[i]);
  free(shapes);
  free(program.calls);
  free(program.out);
  free(times);
  return failed;
}
