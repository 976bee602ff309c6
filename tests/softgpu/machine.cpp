/*
 * The interpreter: runs a grid cluster by cluster, each thread of a cluster as a fiber that runs until it must wait.
 *
 * The scheduler stays with a warp as long as one of its lanes can run, so warps drift as far apart as their barriers
 * allow. Copies that a card makes in the background are queued and made at another time than they were asked for. Which
 * lane, warp and copy comes first is the order's choice (softgpu.h): a kernel that lacks a barrier or a wait gives
 * other results, or reads the pattern (all bits set: NaN) that fills shared memory before it is written.
 */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bit>
#include <deque>

#include "fiber.h"
#include "simt.cuh"
#include "softgpu.h"

namespace {

enum class Wait : uint32_t { NOTHING, WARP, SHUFFLE, BARRIER, CLUSTER, MBARRIER, END };

constexpr uint32_t BARRIERS = 16, CLUSTER_BARRIER = BARRIERS, WARPS = SOFTGPU_MAX_THREADS / 32;
constexpr uint32_t FILL = 0xff;
constexpr size_t SHARED_STRIDE = SOFTGPU_MAX_SHARED + 4096; /* the rest catches strays under AddressSanitizer */
constexpr size_t STACK_RESERVE = 8192;                      /* for the sentence that says that a stack is full */
constexpr size_t STACK_STRIDE = 65536 + 320; /* no power of two: the stacks' tops must not share a cache set */

struct Warp;
struct Block;

struct Thread : softgpu_thread {
  Fiber fiber;
  Warp *warp;
  uint32_t bit; /* 1 << lane */
  Wait wait;
  uint32_t detail; /* which barrier, or which parity */
  uint64_t *mbarrier;
  bool arrived; /* at the cluster barrier, and has not waited since */
  uint32_t arrived_phase;
};

struct Warp { /* masks of lanes */
  Block *block;
  Thread *lanes;
  uint32_t live, ready, met, at_barrier, at_mbarrier;
  uint32_t at[BARRIERS + 1]; /* at_barrier by barrier; the last is the cluster's */
  Wait meeting;              /* what the lanes of `met` do */
  uint32_t turn;
  float value[2][32]; /* a shuffle's values; the next shuffle uses the other half */
};

struct Block : softgpu_block {
  Warp *warps;
  uint32_t warp_count, live;
  struct {
    uint32_t count, expected;
  } barrier[BARRIERS];
  std::deque<std::pair<Thread *, uint64_t *>> unfenced; /* mbarriers, and who initialised them */
};

/* An mbarrier is kept in its own 64-bit word, as on the card. */
struct Mbarrier {
  uint64_t state : 2; /* one of the following; shared memory starts as 3 */
  uint64_t phase : 1, expected : 20, pending : 20;
  int64_t bytes : 21;
};
static_assert(sizeof(Mbarrier) == 8);
constexpr uint32_t MBARRIER_INITIALISED = 1, MBARRIER_FENCED = 2, MBARRIER_MOST = (1u << 20) - 1;

struct Copy { /* in the background */
  Block *to;
  char *destination;
  const void *source; /* NULL: value */
  float value;
  uint32_t bytes;
  uint64_t *bar;
};

alignas(128) char shared_memory[SOFTGPU_MAX_CLUSTER][SHARED_STRIDE];
Thread threads[SOFTGPU_MAX_CLUSTER * SOFTGPU_MAX_THREADS];
Warp warps[SOFTGPU_MAX_CLUSTER * WARPS];
Block blocks[SOFTGPU_MAX_CLUSTER];
std::deque<Copy> copies;
Fiber outside; /* the launch's caller */
char *stacks;

struct {
  softgpu_grid grid;
  uint32_t warp_count; /* of the cluster */
  Warp *warp;          /* runs now */
  struct {
    uint32_t live, count, phase;
  } cluster;
  unsigned order;
  uint32_t random;
  bool failed;
  char error[600]; /* empty after a deadlock */
} now;

unsigned chosen_order;
bool order_chosen;

Thread &self() { return *static_cast<Thread *>(softgpu_self); }
Block &block_of(const Thread &t) { return *t.warp->block; }

/* Ends the launch. Nothing on the thread's stack is destroyed, so it must own no memory. */
[[noreturn]] void give_up() {
  now.failed = true;
  fiber_switch(self().fiber, outside);
  abort(); /* nobody comes back here */
}

struct Text {
  char c[160];
};

[[gnu::format(printf, 1, 2)]] Text text(const char *format, ...) {
  Text t;
  va_list values;
  va_start(values, format);
  vsnprintf(t.c, sizeof t.c, format, values);
  va_end(values);
  return t;
}

/* "0-31" or "0-3 and others", for a mask of lanes of a warp */
Text lanes_text(uint32_t mask) {
  const int first = std::countr_zero(mask), last = first + std::countr_one(mask >> first) - 1;
  const char *more = last < 31 && mask >> (last + 1) ? " and others" : "";
  return first == last ? text("%d%s", first, more) : text("%d-%d%s", first, last, more);
}

Text barrier_text(uint32_t id) { return id == CLUSTER_BARRIER ? text("the cluster barrier") : text("barrier %u", id); }

const char *meeting_text(Wait kind) { return kind == Wait::SHUFFLE ? "a shuffle" : "a warp barrier"; }

uint32_t random_below(uint32_t bound) {
  now.random = now.random * 1664525u + 1013904223u;
  return static_cast<uint32_t>(static_cast<uint64_t>(now.random) * bound >> 32);
}

/* ---- mbarriers and copies ------------------------------------------------------------------------------------- */

Mbarrier mbarrier_at(const uint64_t *word) { return softgpu_load<Mbarrier>(word); }

uint64_t *checked_mbarrier(const Block &block, uint64_t *word, bool used_by_copy) {
  const Mbarrier bar = mbarrier_at(word);
  const size_t at = static_cast<size_t>(reinterpret_cast<char *>(word) - block.shared);
  if (bar.state != MBARRIER_INITIALISED && bar.state != MBARRIER_FENCED)
    softgpu_fail("the mbarrier at byte %zu of block %u's shared memory is not initialised", at, block.index);
  if (used_by_copy && bar.state != MBARRIER_FENCED)
    softgpu_fail("a copy uses the mbarrier at byte %zu of block %u's shared memory without nst_mbarrier_init_fence", at,
                 block.index);
  return word;
}

/* Writes an mbarrier back, after completing its phase if nothing is missing. */
void settle(Block &block, uint64_t *word, Mbarrier bar) {
  const bool complete = !bar.pending && !bar.bytes;
  if (complete) bar.phase ^= 1, bar.pending = bar.expected;
  memcpy(word, &bar, sizeof bar);
  if (!complete) return;
  for (uint32_t i = 0; i < block.warp_count; ++i) {
    Warp &warp = block.warps[i];
    for (uint32_t left = warp.at_mbarrier; left; left &= left - 1) {
      const Thread &t = warp.lanes[std::countr_zero(left)];
      if (t.mbarrier == word) warp.at_mbarrier &= ~t.bit, warp.ready |= t.bit;
    }
  }
}

/* Makes one of the queued copies. */
void deliver() {
  if (now.order > 1) std::swap(copies.back(), copies[random_below(static_cast<uint32_t>(copies.size()))]);
  const Copy copy = now.order == 0 ? copies.front() : copies.back();
  if (now.order == 0)
    copies.pop_front();
  else
    copies.pop_back();
  memcpy(copy.destination, copy.source ? copy.source : &copy.value, copy.bytes);
  Mbarrier bar = mbarrier_at(checked_mbarrier(*copy.to, copy.bar, true));
  bar.bytes -= copy.bytes;
  settle(*copy.to, copy.bar, bar);
}

void queue(const Copy &copy) {
  memset(copy.destination, FILL, copy.bytes); /* from now on its contents are anyone's guess */
  copies.push_back(copy);
}

/* ---- Scheduler ------------------------------------------------------------------------------------------------ */

Text wait_text(const Thread &t) {
  const Block &block = block_of(t);
  switch (t.wait) {
    case Wait::WARP:
    case Wait::SHUFFLE:
      return text("wait in %s for the warp's other lanes", meeting_text(t.wait));
    case Wait::BARRIER: {
      const auto &bar = block.barrier[t.detail];
      return text("wait at barrier %u, where %u of %u threads are", t.detail, bar.count,
                  bar.expected ? bar.expected : block.live);
    }
    case Wait::CLUSTER:
      return text("wait at the cluster barrier, where %u of %u threads are", now.cluster.count, now.cluster.live);
    case Wait::MBARRIER: {
      const Mbarrier bar = mbarrier_at(t.mbarrier);
      return text("wait for parity %u of the mbarrier at byte %td, which misses %u arrivals and %d bytes", t.detail,
                  reinterpret_cast<char *>(t.mbarrier) - block.shared, static_cast<unsigned>(bar.pending),
                  static_cast<int>(bar.bytes));
    }
    case Wait::END:
      return text("have ended");
    case Wait::NOTHING:
      break;
  }
  return text("run");
}

std::string deadlock_text() {
  std::string what;
  uint32_t groups = 0;
  for (uint32_t rank = 0; rank < now.grid.cluster; ++rank) {
    const Thread *t = blocks[rank].warps->lanes;
    for (uint32_t first = 0, next; first < now.grid.threads; first = next) {
      const Text wait = wait_text(t[first]);
      for (next = first + 1; next < now.grid.threads && !strcmp(wait_text(t[next]).c, wait.c);) ++next;
      if (++groups <= 8) (what += text("; block %u threads %u-%u ", blocks[rank].index, first, next - 1).c) += wait.c;
    }
  }
  return "deadlock" + what + (groups > 8 ? text("; and %u more groups", groups - 8).c : "");
}

/* The next warp with a lane that can run; the running warp, which has none, where there is no such warp. */
Warp *next_warp() {
  const uint32_t n = now.warp_count, start = now.order > 1 ? random_below(n) : 0;
  for (uint32_t i = 0; i < n; ++i) {
    Warp &warp = warps[now.order == 1 ? n - 1 - i : start + i < n ? start + i : start + i - n];
    if (warp.ready) return &warp;
  }
  return now.warp;
}

Thread &next_thread() {
  for (;;) {
    if (!copies.empty() && (now.order == 1 || (now.order > 1 && !random_below(8)))) deliver();
    if (!now.warp->ready || (now.order > 1 && !random_below(8))) now.warp = next_warp();
    if (const uint32_t ready = now.warp->ready) {
      int lane = std::countr_zero(ready);
      if (now.order == 1) lane = 31 - std::countl_zero(ready);
      if (now.order > 1) {
        const int by = static_cast<int>(random_below(32));
        lane = (std::countr_zero(std::rotr(ready, by)) + by) & 31;
      }
      Thread &t = now.warp->lanes[lane];
      now.warp->ready &= ~t.bit;
      return t;
    }
    if (copies.empty()) give_up(); /* a deadlock */
    deliver();
  }
}

void fiber_main();

void go_on_from(Fiber &fiber) {
  Thread &next = next_thread();
  softgpu_self = &next;
  if (&next.fiber == &fiber) return;
  if (!next.fiber.started)
    fiber_start(next.fiber, stacks + static_cast<size_t>(&next - threads) * STACK_STRIDE, STACK_STRIDE, fiber_main);
  fiber_switch(fiber, next.fiber);
}

void wait_for(Wait what, uint32_t detail) {
  Thread &t = self();
  t.wait = what, t.detail = detail;
  if (static_cast<char *>(__builtin_frame_address(0)) - static_cast<const char *>(t.fiber.bottom) <
      static_cast<std::ptrdiff_t>(STACK_RESERVE))
    softgpu_fail("its local variables do not fit the stack of %zu bytes", STACK_STRIDE);
  go_on_from(t.fiber);
  t.wait = Wait::NOTHING;
}

/* Lets everyone who waits at a barrier go on. */
void open_barrier(Block &block, uint32_t id) {
  for (uint32_t i = 0; i < block.warp_count; ++i) {
    Warp &warp = block.warps[i];
    warp.ready |= warp.at[id];
    warp.at_barrier &= ~warp.at[id];
    warp.at[id] = 0;
  }
}

void open_block_barrier_if_full(Block &block, uint32_t id) {
  auto &bar = block.barrier[id];
  if (!bar.count || bar.count != (bar.expected ? bar.expected : block.live)) return;
  bar.count = 0;
  open_barrier(block, id);
}

void open_cluster_barrier_if_full() {
  if (!now.cluster.count || now.cluster.count != now.cluster.live) return;
  now.cluster.count = 0, ++now.cluster.phase;
  for (uint32_t rank = 0; rank < now.grid.cluster; ++rank) open_barrier(blocks[rank], CLUSTER_BARRIER);
}

void check_warp_at_barrier(const Warp &warp, uint32_t id) {
  if (warp.met)
    softgpu_fail("comes to %s while lanes %s of its warp are in %s", barrier_text(id).c, lanes_text(warp.met).c,
                 meeting_text(warp.meeting));
  if (const uint32_t elsewhere = warp.at_barrier & ~warp.at[id])
    softgpu_fail("comes to %s while lanes %s of its warp wait at another one", barrier_text(id).c,
                 lanes_text(elsewhere).c);
}

void end_thread() {
  Thread &t = self();
  Warp &warp = *t.warp;
  Block &block = *warp.block;
  if (warp.met)
    softgpu_fail("ends while lanes %s of its warp are in %s", lanes_text(warp.met).c, meeting_text(warp.meeting));
  t.wait = Wait::END;
  warp.live &= ~t.bit;
  --block.live, --now.cluster.live;
  if (t.arrived && t.arrived_phase == now.cluster.phase) --now.cluster.count;
  open_block_barrier_if_full(block, 0);
  open_cluster_barrier_if_full();
  if (!block.live)
    for (const Copy &copy : copies)
      if (copy.to == &block) softgpu_fail("the block ends while a copy to its shared memory is on its way");
  if (now.cluster.live)
    go_on_from(t.fiber);
  else
    fiber_switch(t.fiber, outside);
}

/* A fiber lives from launch to launch, as a thread of each. */
void fiber_main() {
  fiber_arrive(self().fiber);
  for (;;) {
    now.grid.kernel->run(now.grid.param);
    end_thread();
  }
}

/* ---- A grid --------------------------------------------------------------------------------------------------- */

void lay_out(const softgpu_grid &grid) {
  static uint32_t shared_before = ~0u;
  const uint32_t block_warps = (grid.threads + 31) / 32;
  now.warp_count = grid.cluster * block_warps;
  for (uint32_t w = 0; w < now.warp_count; ++w) {
    warps[w].block = &blocks[w / block_warps];
    warps[w].lanes = &threads[w * 32];
    for (uint32_t lane = 0; lane < 32; ++lane) {
      Thread &t = threads[w * 32 + lane];
      t.index = w % block_warps * 32 + lane, t.block = warps[w].block, t.warp = &warps[w], t.bit = 1u << lane;
    }
  }
  for (uint32_t rank = 0; rank < grid.cluster; ++rank) {
    Block &block = blocks[rank];
    block.blocks = grid.blocks, block.rank = rank, block.cluster = grid.cluster;
    block.shared = shared_memory[rank], block.shared_size = grid.shared;
    block.warps = &warps[rank * block_warps], block.warp_count = block_warps;
  }
  if (shared_before != grid.shared)
    for (char *shared : shared_memory) {
      ASAN_UNPOISON_MEMORY_REGION(shared, grid.shared);
      ASAN_POISON_MEMORY_REGION(shared + grid.shared, SHARED_STRIDE - grid.shared);
    }
  shared_before = grid.shared;
}

void run_cluster(uint32_t cluster) {
  const softgpu_grid &grid = now.grid;
  now.cluster = {grid.cluster * grid.threads, 0, 0};
  for (uint32_t rank = 0; rank < grid.cluster; ++rank) {
    Block &block = blocks[rank];
    block.index = cluster * grid.cluster + rank, block.live = grid.threads;
    memset(block.barrier, 0, sizeof block.barrier);
    memset(block.shared, FILL, grid.shared);
    block.unfenced.clear();
    for (uint32_t w = 0; w < block.warp_count; ++w) {
      Warp &warp = block.warps[w];
      const uint32_t lanes = grid.threads - w * 32;
      warp.live = warp.ready = lanes < 32 ? (1u << lanes) - 1 : ~0u;
      warp.met = warp.at_barrier = warp.at_mbarrier = warp.turn = 0;
      memset(warp.at, 0, sizeof warp.at);
      for (uint32_t lane = 0; lane < 32; ++lane) warp.lanes[lane].arrived = false;
    }
  }
  now.warp = next_warp();
  go_on_from(outside);
}

/* After a failure the fibers stand in the middle of the kernel: they begin anew. */
void drop_fibers() {
  for (uint32_t i = 0; i < now.warp_count * 32; ++i)
    if (threads[i].fiber.started) {
      threads[i].fiber.started = false;
      ASAN_UNPOISON_MEMORY_REGION(stacks + i * STACK_STRIDE, STACK_STRIDE);
    }
  copies.clear();
}

}  // namespace

softgpu_thread *softgpu_self;
const uintptr_t softgpu_shared_begin = reinterpret_cast<uintptr_t>(shared_memory);
const uintptr_t softgpu_shared_end = softgpu_shared_begin + sizeof shared_memory;

void softgpu_set_order(unsigned order) { chosen_order = order, order_chosen = true; }

std::string softgpu_run(const softgpu_grid &grid) {
  if (!stacks) {
    const size_t size = std::size(threads) * STACK_STRIDE; /* pages that are not touched cost nothing */
    void *map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return "no memory for the threads' stacks";
    stacks = static_cast<char *>(map);
  }
  if (!order_chosen) {
    const char *value = getenv("SOFTGPU_ORDER");
    softgpu_set_order(value ? static_cast<unsigned>(strtoul(value, nullptr, 10)) : 0);
  }
  now.grid = grid, now.order = chosen_order, now.random = chosen_order * 2654435761u;
  now.failed = false, now.error[0] = 0;
  lay_out(grid);
  const uint32_t clusters = grid.blocks / grid.cluster, start = now.order > 1 ? random_below(clusters) : 0;
  for (uint32_t i = 0; i < clusters && !now.failed; ++i)
    run_cluster(now.order == 1 ? clusters - 1 - i : static_cast<uint32_t>((uint64_t{start} + i) % clusters));
  if (!now.failed) return "";
  const std::string what = now.error[0] ? now.error : deadlock_text();
  drop_fibers();
  return std::string("kernel ") + grid.kernel->name + ", " + what;
}

/* ---- What the wrappers call ----------------------------------------------------------------------------------- */

void softgpu_fail(const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  snprintf(now.error, sizeof now.error, "block %u, thread %u: %s", softgpu_self->block->index, softgpu_self->index,
           line);
  give_up();
}

static void meet(Wait kind) {
  Thread &t = self();
  Warp &warp = *t.warp;
  if (warp.live != ~0u) softgpu_fail("comes to %s without lanes %s", meeting_text(kind), lanes_text(~warp.live).c);
  if (warp.at_barrier)
    softgpu_fail("comes to %s while lanes %s of its warp wait at a barrier", meeting_text(kind),
                 lanes_text(warp.at_barrier).c);
  if (warp.met && warp.meeting != kind)
    softgpu_fail("comes to %s while lanes %s of its warp are in %s", meeting_text(kind), lanes_text(warp.met).c,
                 meeting_text(warp.meeting));
  warp.meeting = kind;
  warp.met |= t.bit;
  if (warp.met != ~0u) return wait_for(kind, 0);
  warp.met = 0;
  ++warp.turn;
  warp.ready = ~t.bit;
}

void softgpu_meet_warp(void) { meet(Wait::WARP); }

float softgpu_shuffle(float v, uint32_t from_lane) {
  const Thread &t = self();
  if (from_lane > 31) softgpu_fail("a shuffle reads lane %u", from_lane);
  float *values = t.warp->value[t.warp->turn & 1];
  values[t.index & 31] = v;
  meet(Wait::SHUFFLE);
  return values[from_lane];
}

void softgpu_barrier(uint32_t id, uint32_t expected) {
  Thread &t = self();
  Block &block = block_of(t);
  auto &bar = block.barrier[id];
  check_warp_at_barrier(*t.warp, id);
  if (bar.count && bar.expected != expected)
    softgpu_fail("comes to barrier %u with a count of %u threads, others with %u", id, expected, bar.expected);
  bar.expected = expected;
  ++bar.count;
  t.warp->at[id] |= t.bit, t.warp->at_barrier |= t.bit;
  open_block_barrier_if_full(block, id);
  if (bar.count)
    wait_for(Wait::BARRIER, id);
  else
    t.warp->ready &= ~t.bit;
}

void softgpu_cluster_arrive(void) {
  Thread &t = self();
  if (t.arrived) softgpu_fail("arrives at the cluster barrier twice without waiting");
  t.arrived = true, t.arrived_phase = now.cluster.phase;
  ++now.cluster.count;
  open_cluster_barrier_if_full();
}

void softgpu_cluster_wait(void) {
  Thread &t = self();
  if (!t.arrived) softgpu_fail("waits at the cluster barrier without having arrived");
  t.arrived = false;
  if (t.arrived_phase != now.cluster.phase) return;
  check_warp_at_barrier(*t.warp, CLUSTER_BARRIER);
  t.warp->at[CLUSTER_BARRIER] |= t.bit, t.warp->at_barrier |= t.bit;
  wait_for(Wait::CLUSTER, 0);
}

void softgpu_mbarrier_init(uint64_t *word, uint32_t arrivals) {
  softgpu_check_shared(word, 8, 8);
  const uint32_t state = mbarrier_at(word).state;
  if (state == MBARRIER_INITIALISED || state == MBARRIER_FENCED)
    softgpu_fail("initialises the mbarrier at byte %u twice", nst_smem_address(word));
  if (arrivals < 1 || arrivals > MBARRIER_MOST)
    softgpu_fail("initialises an mbarrier with %u arrivals, which is not 1 to %u", arrivals, MBARRIER_MOST);
  const Mbarrier bar = {MBARRIER_INITIALISED, 0, arrivals & MBARRIER_MOST, arrivals & MBARRIER_MOST, 0};
  memcpy(word, &bar, sizeof bar);
  block_of(self()).unfenced.emplace_back(&self(), word);
}

void softgpu_mbarrier_init_fence(void) {
  for (auto &[thread, word] : block_of(self()).unfenced)
    if (thread == &self()) {
      Mbarrier bar = mbarrier_at(word);
      bar.state = MBARRIER_FENCED;
      memcpy(word, &bar, sizeof bar);
      thread = nullptr;
    }
}

void softgpu_mbarrier_arrive(uint64_t *word, uint32_t bytes) {
  softgpu_check_shared(word, 8, 8);
  Block &block = block_of(self());
  Mbarrier bar = mbarrier_at(checked_mbarrier(block, word, false));
  if (bytes > MBARRIER_MOST || bar.bytes + static_cast<int64_t>(bytes) > static_cast<int64_t>(MBARRIER_MOST))
    softgpu_fail("makes an mbarrier wait for %u more bytes, above the %u that it counts", bytes, MBARRIER_MOST);
  if (!bar.pending)
    softgpu_fail("arrives at the mbarrier at byte %u more often than it was initialised for", nst_smem_address(word));
  bar.bytes += bytes;
  --bar.pending;
  settle(block, word, bar);
}

void softgpu_mbarrier_wait(uint64_t *word, uint32_t parity) {
  softgpu_check_shared(word, 8, 8);
  Thread &t = self();
  if (parity > 1) softgpu_fail("waits for parity %u of an mbarrier", parity);
  if (mbarrier_at(checked_mbarrier(block_of(t), word, false)).phase != parity) return;
  t.mbarrier = word;
  t.warp->at_mbarrier |= t.bit;
  wait_for(Wait::MBARRIER, parity);
}

void softgpu_bulk_load(void *shared, const void *global, uint32_t bytes, uint64_t *word) {
  if (!bytes || bytes % 16 || bytes > MBARRIER_MOST)
    softgpu_fail("bulk load of %u bytes, which is not a multiple of 16 from 16 to %u", bytes, MBARRIER_MOST);
  softgpu_check_global(global, 16);
  softgpu_check_shared(shared, bytes, 16);
  softgpu_check_shared(word, 8, 8);
  Block &block = block_of(self());
  checked_mbarrier(block, word, true);
#ifdef SOFTGPU_ASAN
  if (void *bad = __asan_region_is_poisoned(const_cast<void *>(global), bytes)) /* report it here, in the kernel */
    memcpy(shared, bad, 1);
#endif
  queue({&block, static_cast<char *>(shared), global, 0, bytes, word});
}

void softgpu_remote_store(float *p, float v, uint64_t *word, uint32_t rank) {
  softgpu_check_shared(p, 4, 4);
  softgpu_check_shared(word, 8, 8);
  const Block &from = block_of(self());
  if (rank >= from.cluster) softgpu_fail("remote store to block %u of a cluster of %u", rank, from.cluster);
  Block &to = blocks[rank];
  if (!to.live) softgpu_fail("remote store to the shared memory of block %u, which has ended", to.index);
  char *destination = to.shared + (reinterpret_cast<char *>(p) - from.shared);
  auto *bar = reinterpret_cast<uint64_t *>(to.shared + (reinterpret_cast<char *>(word) - from.shared));
  queue({&to, destination, nullptr, v, 4, checked_mbarrier(to, bar, true)});
}
