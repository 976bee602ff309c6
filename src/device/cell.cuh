/* The compile-time facts of one kernel: its coordinates and its launch shape, printed by the generator. */
#ifndef NST_CELL_CUH
#define NST_CELL_CUH

#include "axes.h"
#include "params.h"
#include "simt.cuh"

struct nst_cell {
  nst_op op;
  nst_types types;
  nst_access access;
  uint32_t n;       /* the bucket; 0: any length */
  uint32_t threads; /* of a block */
  uint32_t lanes;   /* threads of a block that share a row */
  uint32_t vectors; /* 16-byte vectors of a row that a thread holds at a time */
  uint32_t cluster; /* blocks that share a row */
  uint32_t slots;   /* ring: slots of a block's ring; elsewhere 0 */
  uint32_t smem;    /* bytes of dynamic shared memory that the launch gives */
  nst_hint hint;    /* for the reads of streamed data */
};

#endif
