/* Rows that are read twice: what the strategies reread and loop share. No part of a row stays in registers. */
#ifndef NST_STREAM_CUH
#define NST_STREAM_CUH

#include "rows_held.cuh"

/* The longest row in elements. */
template <nst_cell C> constexpr uint32_t nst_longest(void) { return C.n != 0 ? C.n : 0x7fffffffu; }

constexpr uint32_t nst_log2(uint32_t pow2) {
  uint32_t bits = 0;
  while (pow2 > 1) pow2 /= 2, bits++;
  return bits;
}

/*
 * A thread's vectors first + i * step, in groups of `vectors`: group g of G holds i = g, g + G, g + 2 G, ... These are
 * the parts that the tree merges first; the groups are merged next.
 */
template <nst_cell C> NST_DEVICE uint32_t nst_stream_groups(uint32_t n) {
  constexpr uint32_t STEP = nst_held_step<C>();
  const uint32_t vecs = nst_vecs<C>(n);
  const uint32_t turns = nst_ceil_pow2((vecs + STEP - 1) / STEP);
  return turns > C.vectors ? turns / C.vectors : 1;
}

/* One group of a row's inputs. */
template <nst_cell C, nst_hint HINT>
NST_DEVICE nst_held<C> nst_stream_load(const nst_row_pointers<C.op> &at, uint32_t first, uint32_t group,
                                       uint32_t groups, uint32_t n, nst_policy policy) {
  nst_held<C> held;
#pragma unroll
  for (uint32_t i = 0; i < C.vectors; i++)
    held.in[i] = nst_load_inputs<C, HINT>(at, first + (group + i * groups) * nst_held_step<C>(), n, false, policy);
  return held;
}

/* The row's pivot. */
template <nst_cell C>
NST_DEVICE float nst_stream_pivot(const nst_row_pointers<C.op> &at, uint32_t n, nst_policy policy,
                                  const nst_rows_params &p) {
  if constexpr (!nst_is_centred(C.op)) return 0.0f;
  return nst_pivot_of<C>(nst_sum_inputs<C>(nst_load_inputs<C, C.hint>(at, 0, n, true, policy), p), p);
}

/*
 * The statistic of a thread's part. Groups are visited in the order of their reversed bits: then each pair that the
 * tree merges is complete as early as can be, and the parts that wait for their partner are one a level, like the ones
 * in a binary counter.
 */
template <nst_cell C>
NST_DEVICE nst_stat<C.op> nst_stream_stat(const nst_row_pointers<C.op> &at, uint32_t first, uint32_t n, float pivot,
                                          nst_policy policy, const nst_rows_params &p) {
  constexpr uint32_t STEP = nst_held_step<C>(), PER = nst_per_vec(C.types);
  constexpr uint32_t TURNS = nst_ceil_pow2((nst_longest<C>() / PER + STEP) / STEP);
  constexpr uint32_t LEVELS = nst_log2(TURNS) > nst_log2(C.vectors) ? nst_log2(TURNS) - nst_log2(C.vectors) + 1 : 1;
  const uint32_t groups = nst_stream_groups<C>(n);
  nst_stat<C.op> waiting[LEVELS], part = nst_stat_none<C.op>();
#pragma unroll
  for (uint32_t b = 0; b < LEVELS; b++) waiting[b] = nst_stat_none<C.op>();
  uint32_t group = 0;
  for (uint32_t count = 0; count < groups; count++) {
    const nst_held<C> held = nst_stream_load<C, C.hint>(at, first, group, groups, n, policy);
    nst_stat<C.op> leaf[C.vectors];
#pragma unroll
    for (uint32_t i = 0; i < C.vectors; i++)
      leaf[i] = nst_stat_leaf<C>(nst_sum_inputs<C>(held.in[i], p), first + (group + i * groups) * STEP, n, false,
                                 pivot);
    part = nst_tree_fold<C.op, C.vectors>(leaf);
    bool carry = true;
#pragma unroll
    for (uint32_t b = 0; b < LEVELS; b++) {
      const bool merges = carry && (count >> b & 1) != 0, stays = carry && !merges;
      const nst_stat<C.op> merged = nst_stat_merge<C.op>(waiting[b], part);
#pragma unroll
      for (uint32_t i = 0; i < nst_stat<C.op>::words; i++) {
        waiting[b].w[i] = stays ? part.w[i] : waiting[b].w[i];
        part.w[i] = merges ? merged.w[i] : part.w[i];
      }
      carry = merges;
    }
    uint32_t bit = groups / 2; /* the next number in the order of reversed bits */
    while ((group & bit) != 0) {
      group ^= bit;
      bit /= 2;
    }
    group |= bit;
  }
  return part;
}

/* Reads the row again and writes its results: with hints, so that neither drives out rows that are still to be read
 * again (1007 us for 32768 x 32768 of bf16, 1025 without them on the stores). An element is read and written by one thread, and all threads have read
 * the row once before any thread comes here, so outputs may lie where inputs came from. */
template <nst_cell C>
NST_DEVICE void nst_stream_write(const nst_row_pointers<C.op> &at, uint32_t first, uint32_t n, nst_scale scale,
                                 const nst_rows_params &p) {
  constexpr nst_hint HINT = C.hint != NST_HINT_NONE ? NST_HINT_EVICT_FIRST : NST_HINT_NONE;
  const uint32_t groups = nst_stream_groups<C>(n);
  const nst_policy policy = nst_make_policy<HINT>();
  for (uint32_t group = 0; group < groups; group++) {
    nst_held<C> held = nst_stream_load<C, HINT>(at, first, group, groups, n, policy);
    nst_held_parameters<C> parameters;
#pragma unroll
    for (uint32_t i = 0; i < C.vectors; i++) {
      const uint32_t v = first + (group + i * groups) * nst_held_step<C>();
      nst_load_conditioning<C, NST_HINT_NONE>(&held.in[i], at, v, n, false, 0); /* other rows may share it */
      parameters.of[i] = nst_load_parameters<C>(p, v, n, false);
    }
#pragma unroll
    for (uint32_t i = 0; i < C.vectors; i++) {
      const uint32_t v = first + (group + i * groups) * nst_held_step<C>();
      const nst_values<C.types> s = nst_sum_inputs<C>(held.in[i], p);
      nst_store_residual<C, HINT>(at, v, n, false, s, policy);
      nst_store_row<C, HINT>(at.y, v, n, false, nst_normalise<C>(s, held.in[i], parameters.of[i], scale, p), policy);
    }
  }
}

#endif
