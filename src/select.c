/* From a call to a row of the table, without a conditional jump. */
#include "internal.h"

struct nst_selection nst_select(uint32_t arch, uint32_t op, uint32_t types, uint32_t n, uint32_t rows,
                                uint32_t aligned) {
  uint32_t bucket = (uint32_t)NST_BUCKET_OF(n);
  /* From the most special to the most general: EXACT, MASKED, UNALIGNED. */
  uint32_t exact = aligned & (nst_bucket_sizes[bucket] == n);
  uint32_t access = (uint32_t)NST_ACCESS_UNALIGNED - aligned - exact;
  uint32_t index = (uint32_t)NST_CHOICE_INDEX(arch, op, types, bucket, access);
  const struct nst_choice *choice = &nst_choices[index];
  uint32_t range = (uint32_t)(rows > choice->limit[0]) + (rows > choice->limit[1]) + (rows > choice->limit[2]);
  return (struct nst_selection){index, choice->row[range]};
}

_Static_assert(NST_ACCESS_EXACT == 0 && NST_ACCESS_MASKED == 1 && NST_ACCESS_UNALIGNED == 2,
               "nst_select counts accesses from the most special to the most general");
