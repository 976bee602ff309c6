/* Launches recorded into a graph, one depending on the other, and how long the card and the host take for them. */
#ifndef NST_TOOLS_CHAIN_H
#define NST_TOOLS_CHAIN_H

#include "gpu.h"

struct chain_times {
  double device_us; /* a launch on the card, the fastest of several replays: launched singly, a short kernel would wait
                     * for the host */
  double host_us;   /* a launch on the host: the call that replays the graph, over its launches */
};

/* Records `launches` calls of launch(user), which queue work on g->stream and return 0, and replays them. Returns -1
 * where that can't be done: the software device has no graphs. */
int chain_time(struct gpu *g, int launches, int (*launch)(void *user), void *user, struct chain_times *times);

#endif
