#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "chain.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

enum { RUNS = 5 };

/* Entry points for graphs and events, which the software device has no use for. */
struct timer {
  int (*StreamBeginCapture)(void *stream, int mode);
  int (*StreamEndCapture)(void *stream, void **graph);
  int (*GraphInstantiate)(void **executable, void *graph, unsigned long long flags);
  int (*GraphLaunch)(void *executable, void *stream);
  int (*GraphExecDestroy)(void *executable);
  int (*GraphDestroy)(void *graph);
  int (*EventCreate)(void **event, unsigned flags);
  int (*EventRecord)(void *event, void *stream);
  int (*EventElapsedTime)(float *milliseconds, void *start, void *end);
  int (*EventDestroy)(void *event);
};

static int find_timer(const struct gpu *g, struct timer *t) {
  struct {
    const char *name;
    void *to;
  } const entries[] = {
      {"cuStreamBeginCapture", &t->StreamBeginCapture}, {"cuStreamEndCapture", &t->StreamEndCapture},
      {"cuGraphInstantiateWithFlags", &t->GraphInstantiate}, {"cuGraphLaunch", &t->GraphLaunch},
      {"cuGraphExecDestroy", &t->GraphExecDestroy}, {"cuGraphDestroy", &t->GraphDestroy},
      {"cuEventCreate", &t->EventCreate}, {"cuEventRecord", &t->EventRecord},
      {"cuEventElapsedTime", &t->EventElapsedTime}, {"cuEventDestroy", &t->EventDestroy}};
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    void *function = gpu_proc(g, entries[i].name);
    if (!function) return -1;
    memcpy(entries[i].to, &function, sizeof function);
  }
  return 0;
}

static double microseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void keep_least(double *least, double value, int first) {
  if (first || value < *least) *least = value;
}

int chain_time(struct gpu *g, int launches, int (*launch)(void *user), void *user, struct chain_times *times) {
  struct timer t;
  void *graph = NULL, *executable = NULL, *start = NULL, *end = NULL;
  const int thread_local_mode = 1;
  if (find_timer(g, &t) || t.StreamBeginCapture(g->stream, thread_local_mode)) return -1;
  int failed = 0;
  for (int i = 0; i < launches && !failed; i++) failed = launch(user) != 0;
  failed |= t.StreamEndCapture(g->stream, &graph) != 0;
  failed = failed || t.GraphInstantiate(&executable, graph, 0) || t.EventCreate(&start, 0) || t.EventCreate(&end, 0);
  for (int i = 0; i <= RUNS && !failed; i++) { /* the first replay warms up */
    float milliseconds = 0;
    double before = 0, host = 0;
    failed = t.EventRecord(start, g->stream) != 0;
    before = microseconds();
    failed = failed || t.GraphLaunch(executable, g->stream);
    host = microseconds() - before;
    failed = failed || t.EventRecord(end, g->stream) || gpu_sync(g) || t.EventElapsedTime(&milliseconds, start, end);
    if (i == 0) continue;
    keep_least(&times->device_us, 1e3 * (double)milliseconds / launches, i == 1);
    keep_least(&times->host_us, host / launches, i == 1);
  }
  if (start) t.EventDestroy(start);
  if (end) t.EventDestroy(end);
  if (executable) t.GraphExecDestroy(executable);
  if (graph) t.GraphDestroy(graph);
  return failed ? -1 : 0;
}
