/*
 * Strategy ring: persistent clusters; rows stream through a ring of shared-memory slots that a mover thread fills by
 * bulk copies. Each element is read from memory once. The consumers take the statistics of a chunk as soon as it has
 * arrived and write results LAG chunks later, so that the cluster's exchange of one row is hidden behind the next
 * row's chunks.
 *
 * Chunks are numbered through all rows of a cluster; a row has CHUNKS of them in each block. Chunk g lies in slot
 * g % slots. At step g a consumer takes the statistics of chunk g, then writes chunk g - LAG and frees its slot; the
 * slots - LAG chunks ahead are in flight. LAG >= CHUNKS, since a row is written only when all of it has been seen.
 *
 * The bits of v from the top: the vector in the thread, the block, the warp, the lane: a block's pieces of CONSUMERS
 * vectors are contiguous, as bulk copies want. So the exchange is between all warps of the cluster.
 */
#ifndef NST_ROWS_RING_CUH
#define NST_ROWS_RING_CUH

#include "tree.cuh"

template <nst_cell C> struct nst_ring {
  static constexpr uint32_t CONSUMERS = C.lanes;
  static constexpr uint32_t WARPS = CONSUMERS / 32;
  static constexpr uint32_t STREAMS = nst_streams(C.op);
  static constexpr uint32_t PIECE = CONSUMERS * 16;         /* bytes of one contiguous copy */
  static constexpr uint32_t SLOT = 16384;                   /* bytes of a slot: [stream][piece] */
  static constexpr uint32_t PER_SLOT = SLOT / PIECE / STREAMS; /* vectors of a row that a thread finds in a slot */
  static constexpr uint32_t CHUNKS = C.vectors / PER_SLOT;
  static constexpr uint32_t WANTED = CHUNKS + (C.slots - CHUNKS) / 3;
  /*
   * An exchange buffer is used again four rows later. A block sends row r in step r * CHUNKS + CHUNKS - 1 and receives
   * row r - 2 before, at step (r - 2) * CHUNKS + LAG; so all blocks have then sent row r - 2, and each of them before
   * that received row r - 4. Within a step sending comes first, so both "before" need LAG < 3 * CHUNKS - 1.
   */
  static constexpr uint32_t LAG = WANTED < 3 * CHUNKS - 2 ? WANTED : 3 * CHUNKS - 2;
  static constexpr uint32_t BUFFERS = 4;
  static constexpr uint32_t COUNT = C.cluster * CONSUMERS; /* statistics in an exchange buffer */
  static constexpr uint32_t BUFFER = COUNT * 4 * nst_stat<C.op>::words;
  static constexpr uint32_t EXCHANGE_AT = C.slots * SLOT;
  static constexpr uint32_t BARRIERS_AT = EXCHANGE_AT + BUFFERS * BUFFER;
  static constexpr uint32_t BYTES = BARRIERS_AT + (2 * C.slots + BUFFERS) * 8;
  /* Parameters stay in registers where they fit beside the rest. */
  static constexpr bool KEEP_PARAMETERS = C.vectors * STREAMS * nst_weight_vecs(C.types) <= 8;

  static_assert(!nst_is_centred(C.op), "may need a row's statistic twice, when other rows are in the ring");
  static_assert(C.threads == CONSUMERS + 32 && (CONSUMERS & (CONSUMERS - 1)) == 0 && C.cluster > 1);
  static_assert(C.access != NST_ACCESS_UNALIGNED && C.vectors % PER_SLOT == 0 && (C.vectors & (C.vectors - 1)) == 0);
  static_assert(C.vectors * COUNT * nst_per_vec(C.types) >= C.n);
  static_assert(LAG >= CHUNKS && LAG < C.slots && CHUNKS >= 2 && C.smem >= BYTES);
};

/* The place of a chunk in the ring: its slot, and the parity of the slot's turn. */
template <nst_cell C> struct nst_ring_place {
  uint32_t slot;
  uint32_t parity;
};

template <nst_cell C> NST_DEVICE void nst_ring_advance(nst_ring_place<C> *place) {
  if (++place->slot == C.slots) {
    place->slot = 0;
    place->parity ^= 1;
  }
}

/* The first vector of a block's piece number i of a row. */
template <nst_cell C> NST_DEVICE uint32_t nst_ring_piece(uint32_t i) {
  return (i * C.cluster + nst_cluster_rank()) * nst_ring<C>::CONSUMERS;
}

/* The mover: one thread. */
template <nst_cell C>
NST_DEVICE void nst_ring_move(const nst_rows_params &p, uint32_t n, uint64_t *full, uint64_t *empty) {
  typedef nst_ring<C> R;
  const uint32_t vecs = nst_vecs<C>(n), clusters = nst_blocks() / C.cluster;
  const nst_policy policy = nst_make_policy<C.hint>();
  nst_ring_place<C> place = {0, 1}; /* the first wait of a slot succeeds: the phase before the first is complete */
  for (uint64_t row = nst_block() / C.cluster; row < p.rows; row += clusters) {
    const nst_row_pointers<C.op> at = nst_row_of<C>(p, (uint32_t)row);
    for (uint32_t chunk = 0; chunk < R::CHUNKS; chunk++) {
      nst_mbarrier_wait(&empty[place.slot], place.parity);
      uint32_t bytes[R::PER_SLOT], total = 0;
#pragma unroll
      for (uint32_t j = 0; j < R::PER_SLOT; j++) {
        const uint32_t v = nst_ring_piece<C>(chunk * R::PER_SLOT + j);
        const uint32_t left = v < vecs ? vecs - v : 0;
        bytes[j] = left < R::CONSUMERS ? left * 16 : R::PIECE;
        total += bytes[j];
      }
      nst_mbarrier_arrive_expect(&full[place.slot], total * R::STREAMS);
      char *const slot = nst_smem() + place.slot * R::SLOT;
#pragma unroll
      for (uint32_t s = 0; s < R::STREAMS; s++) {
#pragma unroll
        for (uint32_t j = 0; j < R::PER_SLOT; j++) {
          const uint64_t from = (uint64_t)nst_ring_piece<C>(chunk * R::PER_SLOT + j) * 16;
          if (bytes[j] != 0)
            nst_bulk_load<C.hint>(slot + (s * R::PER_SLOT + j) * R::PIECE, at.in[s] + from, bytes[j],
                                  &full[place.slot], policy);
        }
      }
      nst_ring_advance<C>(&place);
    }
  }
}

/* A consumer's vector j of a slot, of every stream; zeros past the row's end, where the slot holds older data. */
template <nst_cell C> NST_DEVICE nst_inputs<C.op> nst_ring_read(uint32_t slot, uint32_t j, uint32_t v, uint32_t vecs) {
  typedef nst_ring<C> R;
  nst_inputs<C.op> in;
#pragma unroll
  for (uint32_t s = 0; s < R::STREAMS; s++) {
    in.raw[s] = nst_vec{{0, 0, 0, 0}};
    if (C.access == NST_ACCESS_EXACT || v < vecs)
      in.raw[s] = nst_smem_load_vec(nst_smem() + slot * R::SLOT + (s * R::PER_SLOT + j) * R::PIECE + nst_thread() * 16);
  }
  return in;
}

/* Sends a thread's statistic of a row to every block of the cluster. */
template <nst_cell C> NST_DEVICE void nst_ring_send(nst_stat<C.op> part, uint32_t buffer, uint64_t *sent) {
  typedef nst_ring<C> R;
  float *const table = (float *)(nst_smem() + R::EXCHANGE_AT + buffer * R::BUFFER);
  if (nst_thread() == 0) nst_mbarrier_arrive_expect(&sent[buffer], R::BUFFER);
  const uint32_t place = nst_cluster_rank() * R::CONSUMERS + nst_thread();
#pragma unroll
  for (uint32_t rank = 0; rank < C.cluster; rank++) {
#pragma unroll
    for (uint32_t i = 0; i < nst_stat<C.op>::words; i++)
      nst_remote_store_f32(table + i * R::COUNT + place, part.w[i], &sent[buffer], rank);
  }
}

/* Receives all parts of a row and merges them: across the blocks, the warps, the lanes. */
template <nst_cell C> NST_DEVICE nst_stat<C.op> nst_ring_receive(uint32_t buffer, uint32_t parity, uint64_t *sent) {
  typedef nst_ring<C> R;
  const float *const table = (const float *)(nst_smem() + R::EXCHANGE_AT + buffer * R::BUFFER);
  nst_mbarrier_wait(&sent[buffer], parity);
  nst_stat<C.op> column[R::WARPS];
#pragma unroll
  for (uint32_t warp = 0; warp < R::WARPS; warp++) {
    nst_stat<C.op> blocks[C.cluster];
#pragma unroll
    for (uint32_t rank = 0; rank < C.cluster; rank++)
      blocks[rank] = nst_get_stat<C.op, R::COUNT>(table, rank * R::CONSUMERS + warp * 32 + nst_lane());
    column[warp] = nst_tree_fold<C.op, C.cluster>(blocks);
  }
  return nst_tree_lanes<C.op, 32>(nst_tree_fold<C.op, R::WARPS>(column));
}

/* The consumers. */
template <nst_cell C>
NST_DEVICE void nst_ring_consume(const nst_rows_params &p, uint32_t n, uint64_t *full, uint64_t *empty,
                                 uint64_t *sent) {
  typedef nst_ring<C> R;
  const uint32_t vecs = nst_vecs<C>(n), clusters = nst_blocks() / C.cluster, start = nst_block() / C.cluster;
  const uint32_t rows = p.rows > start ? (p.rows - start - 1) / clusters + 1 : 0;
  nst_parameters<C> kept[R::KEEP_PARAMETERS ? C.vectors : 1];
  if constexpr (R::KEEP_PARAMETERS) {
#pragma unroll
    for (uint32_t i = 0; i < C.vectors; i++)
      kept[i] = nst_load_parameters<C>(p, nst_ring_piece<C>(i) + nst_thread(), n, true);
  }
  nst_dependency_wait();
  nst_ring_place<C> seen = {0, 0}, written = {0, 0};
  nst_stat<C.op> part[C.vectors / 2]; /* of vector i, and from half the row on of vector i + vectors / 2 as well */
  nst_scale scale = {};
  nst_row_pointers<C.op> at = nst_row_of<C>(p, start);
  constexpr uint32_t TAIL = (R::LAG + R::CHUNKS - 1) / R::CHUNKS; /* turns that only write */
  for (uint64_t turn = 0; turn < (uint64_t)rows + TAIL; turn++) {
#pragma unroll
    for (uint32_t chunk = 0; chunk < R::CHUNKS; chunk++) {
      if (turn < rows) {
        nst_mbarrier_wait(&full[seen.slot], seen.parity);
#pragma unroll
        for (uint32_t j = 0; j < R::PER_SLOT; j++) {
          const uint32_t i = chunk * R::PER_SLOT + j, v = nst_ring_piece<C>(i) + nst_thread();
          const nst_inputs<C.op> in = nst_ring_read<C>(seen.slot, j, v, vecs);
          const nst_stat<C.op> leaf = nst_stat_leaf<C>(nst_sum_inputs<C>(in, p), v, n, true, 0.0f);
          if (i < C.vectors / 2)
            part[i] = leaf;
          else
            part[i - C.vectors / 2] = nst_stat_merge<C.op>(part[i - C.vectors / 2], leaf);
        }
        nst_ring_advance<C>(&seen);
        if (chunk == R::CHUNKS - 1)
          nst_ring_send<C>(nst_tree_fold<C.op, C.vectors / 2>(part), (uint32_t)turn % R::BUFFERS, sent);
      }
      /* Chunk number turn * CHUNKS + chunk - LAG: chunk `out` of the row `back` turns ago. */
      const uint32_t back = (R::LAG - chunk + R::CHUNKS - 1) / R::CHUNKS;
      const uint32_t out = back * R::CHUNKS + chunk - R::LAG;
      if (turn >= back && turn - back < rows) {
        const uint32_t now = (uint32_t)(turn - back);
        if (out == 0) {
          const uint32_t row = start + now * clusters;
          at = nst_row_of<C>(p, row);
          scale = nst_row_scale<C>(0.0f, p, [&](float, bool) {
            return nst_ring_receive<C>(now % R::BUFFERS, now / R::BUFFERS % 2, sent);
          });
          if (nst_thread() == 0 && nst_cluster_rank() == 0) nst_store_scale<C>(p, row, scale);
        }
#pragma unroll
        for (uint32_t j = 0; j < R::PER_SLOT; j++) {
          const uint32_t i = out * R::PER_SLOT + j, v = nst_ring_piece<C>(i) + nst_thread();
          const nst_inputs<C.op> in = nst_ring_read<C>(written.slot, j, v, vecs);
          const nst_values<C.types> s = nst_sum_inputs<C>(in, p);
          nst_parameters<C> parameters;
          if constexpr (R::KEEP_PARAMETERS)
            parameters = kept[i];
          else
            parameters = nst_load_parameters<C>(p, v, n, true);
          nst_store_residual<C>(at, v, n, true, s);
          nst_store_row<C>(at.y, v, n, true, nst_normalise<C>(s, in, parameters, scale, p));
        }
        nst_sync_warp(); /* all lanes have read the slot */
        if (nst_lane() == 0) nst_mbarrier_arrive(&empty[written.slot]);
        nst_ring_advance<C>(&written);
      }
    }
  }
}

template <nst_cell C> NST_DEVICE void nst_rows_ring(const nst_rows_params &p) {
  typedef nst_ring<C> R;
  uint64_t *const full = (uint64_t *)(nst_smem() + R::BARRIERS_AT);
  uint64_t *const empty = full + C.slots, *const sent = empty + C.slots;
  const uint32_t n = nst_length<C>(p);
  if (nst_thread() == 0) {
    for (uint32_t i = 0; i < C.slots; i++) {
      nst_mbarrier_init(&full[i], 1);
      nst_mbarrier_init(&empty[i], R::WARPS);
    }
    for (uint32_t i = 0; i < R::BUFFERS; i++) nst_mbarrier_init(&sent[i], 1);
    nst_mbarrier_init_fence();
  }
  nst_cluster_arrive();
  nst_cluster_wait();
  nst_dependents_start();
  if (nst_warp() == R::WARPS) {
    nst_dependency_wait();
    if (nst_lane() == 0) nst_ring_move<C>(p, n, full, empty);
  } else {
    nst_wait_before_parameters(p);
    nst_ring_consume<C>(p, n, full, empty, sent);
  }
}

#endif
