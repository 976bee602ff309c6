"""Which cells exist and with which launch shape, and which strategy a call gets where nothing was measured.

V is the number of 16-byte vectors in a row of the bucket. Measured reasons are from an H200 (sm_90, 132 SMs), cold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .spec import ANY, ROWS_MAX, VECTOR_BYTES, Op, Spec, Types, bucket_name

ACCESSES = ("exact", "masked", "unaligned")  # narrow to general: each also serves what those before it serve

SMEM_MAX = 232448  # 227 KB: what a block may have of an SM's shared memory
SMEM_SM = 233472  # 228 KB: what an SM has
THREADS_MAX = 1024
WARP = 32
BLOCKS_MAX = 32  # that an SM can hold
CLUSTER_MAX = 8  # the largest cluster that every device grants


@dataclass(frozen=True)
class Cell:
    """Coordinates in the dispatch table."""

    op: Op
    types: Types
    bucket: int
    strategy: str
    access: str

    @property
    def name(self) -> str:
        return f"nst_{self.op.name}_{self.types.name}_n{bucket_name(self.bucket)}_{self.strategy}_{self.access}"

    @property
    def vectors(self) -> int:
        return self.bucket * self.types.data.bytes // VECTOR_BYTES


@dataclass(frozen=True)
class Config:
    """The launch shape of a kernel."""

    threads: int  # of a block
    lanes: int  # threads of a block that share a row
    vectors: int  # 16-byte vectors of a row that a thread holds
    cluster: int = 1  # blocks that share a row
    rows_per_block: int = 1
    blocks_per_sm: int = 0  # the grid is limited to so many; 0: not limited
    slots: int = 0  # of a ring
    smem: int = 0  # bytes of dynamic shared memory
    min_blocks: int = 1  # blocks that the compiler must leave registers for on an SM
    hint: str = "NONE"  # L2 hint of the reads of streamed data


@dataclass(frozen=True)
class Hole:
    reason: str


def occurs(op: Op, types: Types) -> bool:
    """Whether there are calls of the operation with these types."""
    return bool(op.parameters) or types.weight == types.data


def cell(spec: Spec, c: Cell) -> Config | Hole:
    """The one validity predicate."""
    if not occurs(c.op, c.types):
        return Hole("the operation has no weights, and conditioning has the data's type")
    if c.types.weight != c.types.data and c.access == "exact":
        return Hole("f32 weights beside 16-bit data: served by the masked form")
    if c.strategy == "loop":
        return _loop(c)
    if c.bucket == ANY:
        return Hole("a bucket without limit has no compile-time shape")
    if not _is_power_of_two(c.bucket):
        general = bucket_name(_next_power_of_two_bucket(spec, c.bucket))
        if c.types.weight != c.types.data:
            return Hole(f"f32 weights beside 16-bit data: served by bucket {general}")
        if c.access != "exact":
            return Hole(f"rows of this length that are not exact are served by bucket {general}")
    return STRATEGIES[c.strategy](c)


# ---- Strategies ------------------------------------------------------------------------------------------------


def _warp(c: Cell) -> Config | Hole:
    """Lanes of a warp share a row: 2 to 4 vectors a lane, and a cache line (8 vectors) a request where V allows. 144
    vectors: 32 lanes of 5 took 3.46 us for 1024 rows, 16 of 9 took 3.71, a block of 64 x 3 took 3.52."""
    v = c.vectors
    if v > 288:
        return Hole("more than 288 vectors: longer than a warp holds in registers")
    if v > 128 and c.access != "exact":
        return Hole("more than 128 vectors: only exact rows are cheaper to read by one warp than by a block")
    # The fewest lanes that hold the row with 4 vectors each, but 8 or more, or one for 2 vectors of a shorter row.
    lanes = min(WARP, max(_power_of_two_from(_ceil(v, 4)), min(8, v // 2), 1))
    threads = 128  # 4 warps: 2048 such blocks start in 1.8 us, and few rows still spread over many SMs
    return Config(threads, lanes, _ceil(v, lanes), rows_per_block=threads // lanes, hint=_hint(c))


def _block(c: Cell) -> Config | Hole:
    """2 or 4 vectors a thread: of 40 shapes 128 x 2 won at 256 vectors, 256 x 2 at 512, 256 x 4 at 1024, and 512 x 4
    at 2048, or 256 x 8 where that fits the registers (65.1 us for two inputs of 2048 rows, 512 x 4 took 66.2); 512 x 2
    at 1024 was 6-25 % slower, 1024 x 1 took twice as long."""
    v = c.vectors
    if v < 64:
        return Hole("fewer than 64 vectors: too short for a block of 64 threads")
    if v > 2048:
        return Hole("more than 2048 vectors: longer than a block holds in registers")
    tensors = _streams(c) + _parameter_vectors(c)
    many = v == 2048 and tensors <= 3 and c.op.statistic == "squares" and c.access == "exact"  # others would spill
    threads, vectors = _block_shape(v, 2 if v < 1024 else 8 if many else 4)
    # Vectors in registers, of a row and the weights: up to 4 fit 40 registers (1536 threads an SM), up to 8 fit 64
    # (1024 threads), more need up to 128 (512 threads). The narrow reads of unaligned rows need more addresses.
    held = vectors * tensors + _pivot_vectors(c)
    alive = 1536 if held <= 4 and c.access != "unaligned" else 1024 if held <= 8 else 512
    return Config(threads, threads, vectors, smem=_table(c, threads), min_blocks=min(BLOCKS_MAX, alive // threads),
                  hint=_hint(c))


def _persist(c: Cell) -> Config | Hole:
    """512 threads a multiprocessor with 4 vectors each won for one input and two, one statistic and two, with 2 to 4
    rows a block on their way (of 130 shapes for the layer norms: 128 x 4 at 512 vectors, 256 x 4 at 1024)."""
    v = c.vectors
    if c.access == "unaligned":
        return Hole("the narrow accesses of unaligned rows are the limit, not when they are requested")
    if v < 128:
        return Hole("fewer than 128 vectors: a row is too short to be worth requesting early")
    if v > 2048:
        return Hole("more than 2048 vectors: longer than a block holds in registers")
    threads, vectors = _block_shape(v, 4)
    # Vectors in registers, of a row and the weights: up to 20 fit 128 registers (512 threads an SM).
    if vectors * (len(c.op.inputs) + _parameter_vectors(c)) + _pivot_vectors(c) > 20:
        return Hole("more than 20 vectors a thread, of a row and the weights: registers would spill")
    row = _streams(c) * threads * vectors * VECTOR_BYTES
    wanted = 3 if c.op.conditioning else 2  # conditioning is still read from its slot when the next row is at work
    blocks = 512 // threads
    while blocks > 1 and blocks * (wanted * row + _queue_smem(c, threads, wanted)) > SMEM_SM:
        blocks -= 1
    slots = min(4, max(1, (SMEM_SM // blocks - _queue_smem(c, threads, 4)) // row))
    if slots < wanted:
        return Hole("so many streams that the rows on their way do not fit a multiprocessor's shared memory")
    return Config(threads, threads, vectors, blocks_per_sm=blocks, slots=slots,
                  smem=slots * row + 2 * _table(c, threads) + 8 * slots, min_blocks=blocks, hint=_hint(c))


def _reread(c: Cell) -> Config | Hole:
    """Few registers, so that blocks overlap. 512 x 2 with four blocks an SM won at 1024 vectors, 512 x 4 with two
    blocks at 2048 and 4096 (1024 us for 32768 rows; 1024 x 2 with two blocks 1125), 1024 x 4 above."""
    v = c.vectors
    if c.access == "unaligned":
        return Hole("unaligned rows: served by the general loop")
    if v < 1024:
        return Hole("fewer than 1024 vectors: a row fits in registers, reading it twice gains nothing")
    if v < 4096 and c.access == "masked":
        return Hole("fewer than 4096 vectors: a block holds the row in registers")
    if v > 65536:
        return Hole("more than 65536 vectors: the rows in flight do not fit the L2 cache")
    threads = 512 if v <= 4096 else 1024
    # Two vectors at a time fit 32 registers (2048 threads an SM) unless there are two inputs, wide weights or tests of
    # the row's end; four of one input fit 64 (1024 threads).
    light = _streams(c) == _parameter_vectors(c) == 1 and c.access == "exact"
    if light and v == 1024:
        return Config(threads, threads, 2, smem=_table(c, threads), min_blocks=2048 // threads, hint=_hint(c))
    return Config(threads, threads, _in_flight(c), smem=_table(c, threads), min_blocks=1024 // threads, hint=_hint(c))


def _cluster(c: Cell) -> Config | Hole:
    """8 blocks a row, 1 vector a thread where 512 threads suffice: for few rows, the shortest chain of reads."""
    v = c.vectors
    if v < (512 if c.access == "exact" else 1024):
        return Hole("fewer than 512 vectors (1024, if not exact): a block is faster than an exchange in a cluster")
    if v > 16384:
        return Hole("more than 16384 vectors: longer than a cluster of 8 holds in registers")
    cluster = 8 if v >= 8 * 64 else 4  # blocks have 64 threads at least
    part = _ceil(v, cluster)
    threads = min(512, max(64, _power_of_two_from(part)))
    return Config(threads, threads, _ceil(part, threads), cluster=cluster, smem=_cluster_smem(c, threads, cluster),
                  hint=_hint(c))


def _ring(c: Cell) -> Config | Hole:
    """A mover warp fills slots of 16 KB with bulk copies; 512 threads take the statistics of the next row while they
    write this one. 13 slots reached 2083 us at 16384 vectors; fewer where the exchange buffers need the space."""
    v = c.vectors
    if c.op.statistic == "moments":
        return Hole("the layer norms may need a row's sums a second time, when other rows are in the ring")
    if c.access == "unaligned":
        return Hole("bulk copies need rows on 16-byte boundaries")
    if c.access == "exact":
        return Hole("served by the masked form, which took 0.4 to 1.5 % longer")
    if v < 4096:
        return Hole("fewer than 4096 vectors: the ring lost to plain blocks by 5-10 %")
    consumers = 512
    slot = consumers * 2 * VECTOR_BYTES  # two vectors a consumer: of x, or one of x and one of residual
    # 8 vectors a thread if possible: their weights stay in registers.
    cluster = min(CLUSTER_MAX, max(2, _power_of_two_from(_ceil(v, 8 * consumers))))
    vectors = v // cluster // consumers
    if vectors * _streams(c) > 16:
        return Hole("a row of over 1 MB (x and residual) is longer than a cluster of 8 holds in its rings")
    exchange = 4 * _table(c, 16 * WARP) * cluster  # four buffers; a statistic from each lane of each block's 16 warps
    barriers = 512
    slots = min(13, (SMEM_MAX - exchange - barriers) // slot)
    return Config(consumers + WARP, consumers, vectors, cluster=cluster, blocks_per_sm=1, slots=slots,
                  smem=slots * slot + exchange + barriers, hint=_hint(c))


def _loop(c: Cell) -> Config | Hole:
    """A cluster a row, any length: 8 blocks of 512."""
    if c.bucket != ANY:
        return Hole("the general loop is for lengths above all buckets")
    if c.access == "exact":
        return Hole("no length is exact in a bucket without limit")
    # The sums that wait for their partner need more than the 64 registers of two blocks where they are two.
    return Config(512, 512, _in_flight(c), cluster=8, smem=_cluster_smem(c, 512, 8), min_blocks=3 - c.op.words,
                  hint=_hint(c))


STRATEGIES: dict[str, Callable[[Cell], Config | Hole]] = {
    "warp": _warp,
    "block": _block,
    "persist": _persist,
    "reread": _reread,
    "cluster": _cluster,
    "ring": _ring,
    "loop": _loop,
}


# ---- Choices ---------------------------------------------------------------------------------------------------


def default_choice(op: Op, v: int, access: str) -> list[tuple[int, tuple[str, ...]]]:
    """For a served bucket of `v` vectors (0: any length): up to so many rows, the first of these strategies that has
    a kernel."""
    if v == 0:
        return [(ROWS_MAX, ("loop",))]
    if v <= 128:  # up to 1024 elements of 16 bits; 1024 such rows: 2.82 us with a warp a row, 3.10 with a block
        return [(ROWS_MAX, ("warp", "block", "loop"))]
    # Few rows: a cluster spreads each over 8 SMs (1 x 8192: 1.60 us, 1 x 16384: 1.73 us, other kernels 3.9). With 16
    # rows every block still has an SM of its own; of longer rows, which a block would read in many steps, 64.
    few = 0 if v < 1024 else 16 if v < 2048 else 64
    ranges: list[tuple[int, tuple[str, ...]]] = [(few, ("cluster", "loop"))] if few else []
    if v <= 2048 and len(op.parameters) > 1:  # read once a block: 2048 x 8192 took 18.5 us, by plain blocks 25.6
        return [*ranges, (264, ("block", "warp", "loop")), (ROWS_MAX, ("persist", "block", "warp", "loop"))]
    if v <= 2048:  # 32768 x 4096: 125.1 us, x 8192: 249.4, x 16384: 499.5; persist took 133, 264, 540
        return [*ranges, (ROWS_MAX, ("block", "warp", "loop"))]
    if v < 8192:  # 32768 x 32768: 1044 us
        return [*ranges, (ROWS_MAX, ("reread", "loop"))]
    return [*ranges, (ROWS_MAX, ("ring", "reread", "loop"))]  # 8192 x 65536: 545 us, read twice 569


def served_bucket(spec: Spec, types: Types, bucket: int, access: str) -> int:
    """The bucket whose kernels serve a call of this kind."""
    own = _is_power_of_two(bucket) or (access == "exact" and types.weight == types.data)
    return bucket if bucket == ANY or own else _next_power_of_two_bucket(spec, bucket)


def serving_cells(spec: Spec, op: Op, types: Types, bucket: int, access: str, strategy: str) -> Sequence[Cell]:
    """The cells of a strategy that can serve calls of this bucket and access, best first."""
    cells: list[Cell] = []
    for b in dict.fromkeys((served_bucket(spec, types, bucket, access), ANY)):
        for a in ACCESSES[ACCESSES.index(access):]:
            if a in (described.name for described in spec.accesses) and (a != "exact" or b == bucket):
                cells.append(Cell(op, types, b, strategy, a))
    return cells


# ---- Arithmetic ------------------------------------------------------------------------------------------------


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _is_power_of_two(x: int) -> bool:
    return x > 0 and x & (x - 1) == 0


def _power_of_two_from(x: int) -> int:
    """The smallest power of two >= x."""
    return 1 << max(0, x - 1).bit_length()


def _next_power_of_two_bucket(spec: Spec, bucket: int) -> int:
    return next((b for b in spec.buckets if b > bucket and _is_power_of_two(b)), ANY)


def _streams(c: Cell) -> int:
    """Tensors that are read row by row."""
    return len(c.op.inputs) + len(c.op.conditioning)


def _parameter_vectors(c: Cell) -> int:
    """16-byte vectors of weight and bias beside one of data."""
    return len(c.op.parameters) * (c.types.weight.bytes // c.types.data.bytes)


def _pivot_vectors(c: Cell) -> int:
    """Vectors beside its part of a row that a thread reads for the pivot of the layer norms: the row's first."""
    return len(c.op.inputs) if c.op.statistic == "moments" else 0


def _in_flight(c: Cell) -> int:
    """Vectors of each stream that a thread requests at a time where no row stays in registers: about 4 reads of the
    row, or of its parameters, in all."""
    return max(1, 4 // _power_of_two_from(max(_streams(c), _parameter_vectors(c))))


def _table(c: Cell, threads: int) -> int:
    """Bytes of a statistic a thread."""
    return 4 * c.op.words * threads


def _block_shape(v: int, want: int) -> tuple[int, int]:
    """(threads, vectors) of a block a row: no idle lanes if possible, then close to `want` vectors a thread with 64 to
    512 threads (blocks of 1024 are poor for streaming)."""
    shapes = [(t, _ceil(v, t)) for t in (64, 128, 256, 512) if _ceil(v, t) <= 8]
    return min(shapes, key=lambda s: (s[0] * s[1] - v, abs(s[1] - want)))


def _queue_smem(c: Cell, threads: int, slots: int) -> int:
    """What the strategy persist takes of an SM's shared memory beside rows: two tables, mbarriers, and the 1 KB that
    every block costs."""
    return 2 * _table(c, threads) + 8 * slots + 1024


def _cluster_smem(c: Cell, threads: int, cluster: int) -> int:
    """A statistic a thread, 32 from each block, an mbarrier; whole 128 bytes."""
    return _ceil(_table(c, threads) + _table(c, WARP * cluster) + 16, 128) * 128


def _hint(c: Cell) -> str:
    """Keeping read lines in L2 is worth 3-7 % from 10 MB up, and costs nothing below. Narrow reads take no hint."""
    return "NONE" if c.access == "unaligned" else "EVICT_LAST"
