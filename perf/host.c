#define _POSIX_C_SOURCE 200809L /* stat */
#include "host.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "rows.h"

enum {
  N = 4096,     /* a decode step: one row of bf16, the shape where the host's part weighs most */
  BATCHES = 25, /* each timed as a whole, the stream idle before it */
  BATCH = 200,  /* fewer than the driver queues before it blocks */
  ROW_BYTES = 2 * N,
  MEMORY = (ROWS_RESIDUAL_OUT + 1) * ROW_BYTES
};

/* Each of the operation's tensors lies in a row of its own. */
static union rows_args args_of(nst_op op, char *memory) {
  struct rows_call call = {.op = op, .dtype = NST_DTYPE_BF16, .rows = 1, .n = N, .eps = op_eps(op)};
  for (int i = 0; i <= ROWS_RESIDUAL_OUT; i++)
    if (op_has(op, (enum rows_tensor)i)) call.tensor[i] = memory + i * ROW_BYTES;
  return rows_args_of(&call);
}

static int timed_call(struct card *card, const nst_library *library, nst_op op, char *memory, double *us,
                      struct problem *p) {
  const union rows_args args = args_of(op, memory);
  const double before = now_us();
  if (rows_launch(library, op, &args, card->gpu.stream) != NST_OK)
    return problem(p, "a call on the host's side is refused: %.400s", nst_last_error());
  if (card_sync(card, p)) return -1;
  *us = now_us() - before;
  return 0;
}

struct link {
  const struct card *card;
  const nst_library *library;
  union rows_args args;
};

static int launch_link(void *user) {
  const struct link *l = user;
  return rows_launch(l->library, NST_OP_RMS_NORM_FWD, &l->args, l->card->gpu.stream) != NST_OK;
}

/* One row, normalised again and again in place. */
static int measure_chain(struct card *card, const nst_library *library, char *memory, uint32_t flags,
                         struct chain_times *times, struct problem *p) {
  struct link link = {card, library, args_of(NST_OP_RMS_NORM_FWD, memory)};
  link.args.rms_norm.y = memory + ROWS_X * ROW_BYTES;
  link.args.rms_norm.flags = flags;
  return chain_time(&card->gpu, BATCH, launch_link, &link, times)
             ? problem(p, "a chain of %d calls can't be recorded into a graph and replayed.", BATCH)
             : 0;
}

static int measure_with(struct card *card, const nst_library *library, char *memory, struct host_times *times,
                        struct problem *p) {
  if (card_fill(card, memory, 0x3f, MEMORY, p) || card_sync(card, p) || /* ordinary numbers: all 0.746 */
      timed_call(card, library, NST_OP_RMS_NORM_FWD, memory, &times->first_call_us, p))
    return -1;
  double before = now_us();
  if (nst_preload(library) != NST_OK) return problem(p, "nst_preload failed: %.400s", nst_last_error());
  times->preload_us = now_us() - before;
  if (timed_call(card, library, NST_OP_FUSED_ADD_RMS_NORM_FWD, memory, &times->first_after_us, p)) return -1;
  const union rows_args args = args_of(NST_OP_RMS_NORM_FWD, memory);
  double values[BATCHES];
  for (int batch = 0; batch < BATCHES; batch++) {
    before = now_us();
    for (int i = 0; i < BATCH; i++)
      if (rows_launch(library, NST_OP_RMS_NORM_FWD, &args, card->gpu.stream) != NST_OK)
        return problem(p, "a call on the host's side is refused: %.400s", nst_last_error());
    values[batch] = (now_us() - before) / BATCH;
    if (card_sync(card, p)) return -1;
  }
  times->call_us = stats_of(values, BATCHES);
  return measure_chain(card, library, memory, 0, &times->chain, p) ||
                 measure_chain(card, library, memory, NST_FLAG_DEPENDENT_LAUNCH | NST_FLAG_WEIGHT_READY,
                               &times->chain_dependent, p)
             ? -1
             : 0;
}

int host_measure(struct card *card, const nst_library *fresh, struct host_times *times, struct problem *p) {
  char *memory = gpu_alloc(&card->gpu, MEMORY);
  if (!memory) return problem(p, "the card has no room for %d bytes.", MEMORY);
  const int failed = measure_with(card, fresh, memory, times, p);
  gpu_free(&card->gpu, memory);
  return failed;
}

int host_archive_size(const char *file, struct host_times *times, struct problem *p) {
  struct stat s;
  if (stat(file, &s) != 0) return problem(p, "--archive %s: %s.", file, strerror(errno));
  times->archive_bytes = s.st_size;
  return 0;
}
