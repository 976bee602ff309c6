#define _POSIX_C_SOURCE 200809L /* stat */
#include "host.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum {
  N = 4096,     /* a decode step: one row of bf16, the shape where the host's part weighs most */
  BATCHES = 25, /* each timed as a whole, the stream idle before it */
  BATCH = 200   /* fewer than the driver queues before it blocks */
};

static nst_status call(const nst_library *library, nst_op op, char *memory, nst_stream stream) {
  const size_t row = N * 2;
  if (op == NST_OP_FUSED_ADD_RMS_NORM_FWD) {
    nst_fused_add_rms_norm_fwd_args args = NST_FUSED_ADD_RMS_NORM_FWD_ARGS_INIT;
    args.dtype = NST_DTYPE_BF16, args.rows = 1, args.n = N;
    args.x = memory, args.residual = memory + row, args.weight = memory + 2 * row;
    args.y = memory + 3 * row, args.residual_out = memory + 4 * row;
    return nst_fused_add_rms_norm_fwd(library, &args, stream);
  }
  nst_rms_norm_fwd_args args = NST_RMS_NORM_FWD_ARGS_INIT;
  args.dtype = NST_DTYPE_BF16, args.rows = 1, args.n = N;
  args.x = memory, args.weight = memory + 2 * row, args.y = memory + 3 * row;
  return nst_rms_norm_fwd(library, &args, stream);
}

static int timed_call(struct card *card, const nst_library *library, nst_op op, char *memory, double *us,
                      struct problem *p) {
  const double before = now_us();
  if (call(library, op, memory, card->gpu.stream) != NST_OK)
    return problem(p, "a call on the host's side is refused: %.400s", nst_last_error());
  if (card_sync(card, p)) return -1;
  *us = now_us() - before;
  return 0;
}

static int measure_with(struct card *card, const nst_library *library, char *memory, struct host_times *times,
                        struct problem *p) {
  if (card_fill(card, memory, 0x3f, 5 * N * 2, p) || card_sync(card, p) || /* ordinary numbers: all 0.746 */
      timed_call(card, library, NST_OP_RMS_NORM_FWD, memory, &times->first_call_us, p))
    return -1;
  double before = now_us();
  if (nst_preload(library) != NST_OK) return problem(p, "nst_preload failed: %.400s", nst_last_error());
  times->preload_us = now_us() - before;
  if (timed_call(card, library, NST_OP_FUSED_ADD_RMS_NORM_FWD, memory, &times->first_after_us, p)) return -1;
  double values[BATCHES];
  for (int batch = 0; batch < BATCHES; batch++) {
    before = now_us();
    for (int i = 0; i < BATCH; i++)
      if (call(library, NST_OP_RMS_NORM_FWD, memory, card->gpu.stream) != NST_OK)
        return problem(p, "a call on the host's side is refused: %.400s", nst_last_error());
    values[batch] = (now_us() - before) / BATCH;
    if (card_sync(card, p)) return -1;
  }
  times->call_us = stats_of(values, BATCHES);
  return 0;
}

int host_measure(struct card *card, const nst_library *fresh, struct host_times *times, struct problem *p) {
  char *memory = gpu_alloc(&card->gpu, 5 * N * 2);
  if (!memory) return problem(p, "the card has no room for %d bytes.", 5 * N * 2);
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
