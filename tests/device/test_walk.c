/*
 * Every kernel of the table at its edges against the reference.
 *
 * The edges are lengths (the bucket, a vector less, just above half, one vector or element) and row counts (one, a
 * block's rows and one more, several turns of a persistent grid). The options of a call (in place, strides, offsets,
 * flags, optional tensors, values) are dealt to a kernel's calls like cards: each option's choices come in a shuffled
 * order and all of them come before one comes again. So a kernel meets nearly every choice, and each strategy every
 * pair of choices (the first test counts them), without the product of all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "half.h"
#include "harness.h"

static struct gpu gpu;
static struct options options;
static int64_t multiprocessors, calls;

/* All kernels of one operation, types and strategy: one test. */
struct group {
  nst_op op;
  nst_dtype dtype, weight_dtype;
  nst_strategy strategy;
  char name[64];
};

/* ---- The calls of a kernel ------------------------------------------------------------------------------------ */

/* Card number `turn` of a deck of `size` that is shuffled anew each time it is used up. */
static int deal(uint64_t deck, int turn, int size) {
  int cards[16];
  uint64_t bits = scramble(scramble(deck) + (uint64_t)(turn / size));
  for (int i = 0; i < size; i++) cards[i] = i;
  for (int i = size - 1; i > 0; i--, bits = scramble(bits)) {
    const int j = (int)(bits % (uint64_t)(i + 1)), card = cards[i];
    cards[i] = cards[j], cards[j] = card;
  }
  return cards[turn % size];
}

static int64_t per_vector(nst_dtype dtype) { return 16 / (int64_t)half_size(dtype); }

/* Lengths at the edges of what a kernel serves. */
#define LENGTHS 5
static int64_t length(const nst_kernel_info *k, int edge) {
  const int64_t e = per_vector(k->dtype), b = k->bucket;
  const int unaligned = k->access == NST_ACCESS_UNALIGNED;
  if (b == 0) {
    const int64_t any[LENGTHS] = {1, 7, 1000, 300001, 262145}, whole[LENGTHS] = {8, 56, 1000, 300008, 262152};
    return unaligned ? any[edge] : whole[edge];
  }
  if (k->access == NST_ACCESS_EXACT) return b;
  switch (edge) {
    case 0: return b;
    case 1: return unaligned ? b - 1 : b - e;
    case 2: return unaligned ? b / 2 + 1 : b / 2 + e;
    case 3: return unaligned ? 1 : e;
    default: return unaligned ? b / 3 * 2 + 1 : b / 4 / e * e + e;
  }
}

/* Row counts at the edges of a launch: one, a full block, a row more, and more turns than one of a limited grid. */
#define COUNTS 4
static int64_t row_count(const nst_kernel_info *k, int64_t n, int edge) {
  const int64_t in_block = k->rows_per_block;
  int64_t at_once = in_block;
  if (k->blocks_per_sm) {
    const int64_t groups = multiprocessors * k->blocks_per_sm / k->cluster;
    at_once = in_block * (groups > 1 ? groups : 1);
  }
  const int64_t counts[COUNTS] = {1, in_block > 1 ? in_block : 2, at_once + 1, 2 * at_once + 1};
  const int64_t most = gpu.is_card ? 4000000 / n : 100000 / n;
  return counts[edge] <= most || counts[edge] <= 2 ? counts[edge] : most < 3 ? 3 : most;
}

enum decks { LENGTH, COUNT, OPTIONAL, COND, IN_PLACE, FLAGS, LAUNCH, STRIDES, OFFSETS, FILL, EPS, DECKS };
static const int choices[DECKS] = {LENGTHS, COUNTS, 8, 4, 6, 4, 3, 3, 4, FILL_ZERO, 3};

/* Few kernels have rings, so each of them has more turns. */
static int turns_of(const nst_kernel_info *k) {
  return k->strategy == NST_STRATEGY_RING ? 12 : k->bucket > 65536 || k->bucket == 0 ? 4 : 6;
}

static void deal_all(const nst_kernel_info *k, int turn, int card[DECKS]) {
  for (int d = 0; d < DECKS; d++) card[d] = deal(k->index * DECKS + (uint64_t)d, turn, choices[d]);
}

static void place(struct call *call, const nst_kernel_info *k, int strides, int offsets) {
  const int64_t e = per_vector(call->dtype);
  for (int t = 0; t < ROWS_TENSORS; t++) {
    struct place *const at = &call->at[t];
    const enum rows_shape shape = rows_tensor_shape((enum rows_tensor)t);
    if (at->kind != OWN || shape == SHAPE_COLUMN) {
      at->offset = at->kind == OWN && offsets;
      continue;
    }
    const int has_stride = shape != SHAPE_ROW;
    const int64_t unit = has_stride ? e : per_vector(call->weight_dtype); /* elements of 16 bytes */
    if (k->access != NST_ACCESS_UNALIGNED) {
      at->offset = offsets ? unit * (t % 2 + 1) : 0;
      if (has_stride && strides) at->stride = call->n + e * (t + strides);
    } else {
      /* From one 16-byte boundary, from different elements, from the middle and the quarter of a vector. */
      const int64_t where[4] = {0, 1 + (t + offsets) % (unit - 1), unit / 2, unit / 4};
      at->offset = where[offsets];
      /* Dense, rows that all begin alike, and rows that begin on each element in turn. */
      if (has_stride && strides == 1) at->stride = (call->n + e - 1) / e * e + e * t;
      if (has_stride && strides == 2) at->stride = call->n + 1 + t;
    }
    if (shape == SHAPE_COND && strides == 2) at->stride = 6 * call->n; /* a slice of a tensor of six */
  }
}

static struct call make_call(const nst_kernel_info *k, int turn) {
  int card[DECKS];
  deal_all(k, turn, card);
  const int fused = op_has(k->op, ROWS_RESIDUAL), centred = op_has(k->op, ROWS_MEAN);
  const int64_t n = length(k, card[LENGTH]);
  struct call call = call_of(k->op, k->dtype, k->weight_dtype, row_count(k, n, card[COUNT]), n);
  call.seed = k->index * 64 + (uint64_t)turn;

  /* Three bits and their sums by two: each two optional tensors are absent by themselves, together and not at all. */
  const int optional = card[OPTIONAL], a = optional & 1, b = optional >> 1 & 1, c = optional >> 2 & 1;
  const int absent[ROWS_TENSORS] = {[ROWS_WEIGHT] = a, [ROWS_BIAS] = b, [ROWS_SCALE] = a,    [ROWS_SHIFT] = b,
                                    [ROWS_RSTD] = c,   [ROWS_GATE] = a ^ b, [ROWS_MEAN] = b ^ c};
  for (int t = 0; t < ROWS_TENSORS; t++)
    if (absent[t]) call.at[t].kind = ABSENT;
  if (!centred && b) call.weight_offset = 1;
  /* Rows of conditioning: one for each row, for neighbours (whose last ones may be fewer), for all. */
  const int64_t shared_by[4] = {0, 2, 3, 1000000};
  if (op_has(k->op, ROWS_SCALE)) call.rows_per_cond = shared_by[card[COND]];
  if (fused) {
    static const enum place_kind forms[6][2] = {{OWN, OWN},         {OWN, ABSENT},      {AS_X, AS_RESIDUAL},
                                                {AS_RESIDUAL, AS_X}, {AS_X, ABSENT},     {OWN, AS_RESIDUAL}};
    call.at[ROWS_Y].kind = forms[card[IN_PLACE]][0];
    call.at[ROWS_RESIDUAL_OUT].kind = forms[card[IN_PLACE]][1];
  } else if (card[IN_PLACE] % 2) {
    call.at[ROWS_Y].kind = AS_X;
  }
  if (card[FLAGS] & 1) call.flags |= NST_FLAG_ROUND_BEFORE_WEIGHT;
  if (card[FLAGS] & 2 && fused) call.flags |= NST_FLAG_ROUND_RESIDUAL;
  if (card[LAUNCH] > 0) call.flags |= NST_FLAG_DEPENDENT_LAUNCH;
  if (card[LAUNCH] > 1 && op_has(k->op, ROWS_WEIGHT)) call.flags |= NST_FLAG_WEIGHT_READY;
  place(&call, k, card[STRIDES], card[OFFSETS]);
  call.fill = (enum fill)card[FILL];
  const float eps[3] = {1e-6f, 1e-5f, 0};
  call.eps = eps[card[EPS]];
  /* f32 can't hold the squares of its own and of bf16's subnormal numbers: without eps nothing is promised. */
  if (call.fill == FILL_TINY && k->dtype != NST_DTYPE_F16 && call.eps == 0) call.eps = 1e-6f;
  return call;
}

/* ---- One kernel ----------------------------------------------------------------------------------------------- */

/* A call that the kernel can't serve, one element too long or off the boundary: refused, and nothing written. */
static int check_unfit(const nst_kernel_info *k) {
  struct call call = call_of(k->op, k->dtype, k->weight_dtype, 2, k->bucket ? k->bucket : 1000);
  if (k->access != NST_ACCESS_UNALIGNED)
    call.at[ROWS_Y].offset = 1;
  else if (k->bucket)
    call.n = k->bucket + 1;
  else
    return 0; /* serves everything */
  struct setup s;
  if (setup_make(&s, &gpu, &call)) return 1;
  const nst_status status = setup_run(&s, k->index, 0);
  int wrong = setup_untouched(&s, k->symbol);
  if (status != NST_ERROR_KERNEL_UNFIT) {
    fprintf(stderr, "%s: a call that it can't serve gave %s\n", k->symbol, nst_status_name(status));
    wrong++;
  }
  setup_free(&s);
  return wrong;
}

static int check_call(const nst_kernel_info *k, const struct call *call, int turn) {
  struct setup s;
  if (setup_make(&s, &gpu, call)) return 1;
  calls++;
  int wrong = 0;
  uint64_t digest = 0;
  /* Each call runs in two of the software device's orders, of forward (0), backward (1) and shuffled ones; on the card
   * it just runs twice. The bits must be the same. */
  const unsigned orders[2] = {(unsigned)turn % 2, turn % 4 < 2 ? 1 - (unsigned)turn % 2 : 2 + (unsigned)turn};
  for (int run = 0; run < 2 && !wrong; run++) {
    const nst_status status = setup_run(&s, k->index, orders[run]);
    if (status != NST_OK) {
      char text[512];
      call_describe(call, text, sizeof text);
      fprintf(stderr, "%s: %s: %s\n    in %s\n", k->symbol, nst_status_name(status), device_error(), text);
      wrong++;
    } else if (run == 0) {
      wrong = setup_check(&s, k->symbol);
      digest = setup_digest(&s);
    } else if (setup_digest(&s) != digest) {
      fprintf(stderr, "%s: another run of the same call gave other bits\n", k->symbol);
      wrong = setup_check(&s, k->symbol) + 1;
    }
  }
  setup_free(&s);
  return wrong;
}

static int check_kernel(const nst_kernel_info *k) {
  int wrong = check_unfit(k);
  for (int turn = 0; turn < turns_of(k); turn++) {
    const struct call call = make_call(k, turn);
    wrong += check_call(k, &call, turn);
  }
  return wrong;
}

/* ---- The walk ------------------------------------------------------------------------------------------------- */

static int in_group(const struct group *g, const nst_kernel_info *k) {
  return k->op == g->op && k->dtype == g->dtype && k->weight_dtype == g->weight_dtype && k->strategy == g->strategy;
}

static void test_group(void **state) {
  const struct group *const g = *state;
  int kernels = 0, bad = 0;
  for (size_t i = 0; i < nst_table_count() && bad < 5; i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &k), NST_OK);
    if (!k.symbol || !in_group(g, &k) || k.index % (size_t)options.parts != (size_t)options.part - 1) continue;
    kernels++;
    if (check_kernel(&k)) bad++;
  }
  if (!kernels) skip(); /* its kernels are in other parts */
  if (bad) fail_msg("%d kernels wrong; after 5 the group ends", bad);
}

/* Every pair of choices of every two options comes to some kernel of every strategy; the general loop has too few. */
static void test_pairs(void **state) {
  (void)state;
  static uint8_t met[NST_STRATEGY_LOOP][DECKS][8][DECKS][8];
  memset(met, 0, sizeof met);
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    assert_int_equal(nst_table_row(i, &k), NST_OK);
    if (!k.symbol || k.strategy == NST_STRATEGY_LOOP) continue;
    for (int turn = 0; turn < turns_of(&k); turn++) {
      int card[DECKS];
      deal_all(&k, turn, card);
      for (int a = 0; a < DECKS; a++)
        for (int b = 0; b < DECKS; b++) met[k.strategy][a][card[a]][b][card[b]] = 1;
    }
  }
  for (int s = 0; s < NST_STRATEGY_LOOP; s++)
    for (int a = 0; a < DECKS; a++)
      for (int b = 0; b < a; b++)
        for (int i = 0; i < choices[a]; i++)
          for (int j = 0; j < choices[b]; j++)
            if (!met[s][a][i][b][j])
              fail_msg("no kernel of %s is called with choice %d of option %d and %d of %d", strategy_name(s), i, a, j, b);
}

int main(int argc, char **argv) {
  struct group *const groups = calloc(nst_table_count(), sizeof *groups);
  struct CMUnitTest *const tests = calloc(1 + nst_table_count(), sizeof *tests);
  if (!groups || !tests) return 1;
  tests[0] = (struct CMUnitTest)cmocka_unit_test(test_pairs);
  size_t count = 0;
  options = options_read(argc, argv);
  for (size_t i = 0; i < nst_table_count(); i++) {
    nst_kernel_info k = NST_KERNEL_INFO_INIT;
    if (nst_table_row(i, &k) != NST_OK) return 1;
    if (!k.symbol || !options_pass(&options, &k)) continue;
    size_t g = 0;
    while (g < count && !in_group(&groups[g], &k)) g++;
    if (g < count) continue;
    groups[g] = (struct group){k.op, k.dtype, k.weight_dtype, k.strategy, ""};
    snprintf(groups[g].name, sizeof groups[g].name, "%s %s %s", op_name(k.op), types_name(k.dtype, k.weight_dtype),
             strategy_name(k.strategy));
    tests[1 + g] = (struct CMUnitTest){groups[g].name, test_group, NULL, NULL, &groups[g]};
    count++;
  }
  if (count == 0) {
    fprintf(stderr, "the options leave no kernel\n");
    return 2;
  }
  device_multiprocessors(1); /* so that few rows make a persistent grid walk */
  device_open(&gpu, options.device);
  nst_device_facts facts = NST_DEVICE_FACTS_INIT;
  if (nst_device(gpu.library, &facts) != NST_OK) return 1;
  multiprocessors = facts.multiprocessors;
  const int failed = _cmocka_run_group_tests("walk", tests, 1 + count, NULL, NULL);
  printf("%lld calls compared with the reference\n", (long long)calls);
  gpu_close(&gpu);
  free(groups);
  free(tests);
  return failed;
}
