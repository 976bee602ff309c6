/* The card: its start, timed step by step; its facts; and the driver calls that tools/gpu.h does not have. */
#ifndef NST_PERF_CARD_H
#define NST_PERF_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "gpu.h"
#include "problem.h"

/* How long the driver itself takes to start. */
struct card_start {
  double load_us;    /* dlopen of libcuda */
  double init_us;    /* cuInit */
  double context_us; /* the primary context of device 0, made current */
};

struct card {
  struct gpu gpu;
  int capability; /* major * 10 + minor */
  int multiprocessors;
  int sm_mhz, memory_mhz; /* the clocks that the driver states */
  int l2_bytes;
  int cuda_version; /* of the driver, 13000 for 13.0 */
  char driver[64];  /* its own version, such as 580.95.05; "": not told */
  int (*memset_async)(unsigned long long to, unsigned char value, size_t bytes, void *stream);
  int (*copy_async)(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
  int (*reset_persisting)(void);
  int (*error_string)(int error, const char **text);
};

enum { CARD_ABSENT = 1 };

/* Starts the driver on device 0. Returns 0, CARD_ABSENT with the sentence why there is none, or -1. The context stays
 * until the process ends. */
int card_start(struct card_start *start, struct problem *p);

/* Opens the library on the started card and reads the card's facts. */
int card_open(struct card *card, struct problem *p);
void card_close(struct card *card);

/* Each is queued on the card's stream. */
int card_fill(struct card *card, void *to, unsigned char value, size_t bytes, struct problem *p);
int card_copy(struct card *card, void *to, const void *from, size_t bytes, struct problem *p);

/* Waits for all queued work, then lets go of the L2 lines that a read asked to keep: without it they outlast many
 * megabytes of other lines. */
int card_release_lines(struct card *card, struct problem *p);

int card_sync(struct card *card, struct problem *p);
int card_download(struct card *card, void *to, const void *from, size_t bytes, struct problem *p);
int card_upload(struct card *card, void *to, const void *from, size_t bytes, struct problem *p);

/* Microseconds of a clock that only goes forward. */
double now_us(void);

#endif
