/*
 * Access to rows and weights by 16-byte vectors. Vector v of a row is its elements [v * E, v * E + E), wherever the row
 * starts; elements past the row's end read as zero and are never touched in memory.
 */
#ifndef NST_ACCESS_CUH
#define NST_ACCESS_CUH

#include "dtype.cuh"

NST_DEVICE const char *nst_row(const void *base, int64_t stride, uint32_t row) {
  return (const char *)base + stride * (int64_t)row;
}
NST_DEVICE char *nst_row(void *base, int64_t stride, uint32_t row) { return (char *)base + stride * (int64_t)row; }

/* The normalised length: known at compile time where access is exact. */
template <nst_cell C> NST_DEVICE uint32_t nst_length(const nst_rows_params &p) {
  return C.access == NST_ACCESS_EXACT ? C.n : p.n;
}

/* The number of vectors that hold n elements. */
template <nst_cell C> NST_DEVICE uint32_t nst_vecs(uint32_t n) {
  constexpr uint32_t E = nst_per_vec(C.types);
  return n / E + (n % E != 0);
}

/* The first `count` (1 to 16 / BYTES) elements at p, which is aligned to an element only. Whole vectors use the widest
 * loads that the address allows: all rows' vectors have the row's alignment, so the branch is uniform. */
template <uint32_t BYTES> NST_DEVICE nst_vec nst_load_elements(const char *p, uint32_t count) {
  nst_vec v = {{0, 0, 0, 0}};
  const uint32_t low = (uint32_t)(uintptr_t)p;
  if (count == 16 / BYTES) {
    if (low % 16 == 0) return nst_load_vec<NST_HINT_NONE>(p, 0);
    if (low % 8 == 0) {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const uint64_t u = nst_load_u64(p + 8 * i);
        v.w[2 * i] = (uint32_t)u;
        v.w[2 * i + 1] = (uint32_t)(u >> 32);
      }
      return v;
    }
    if (BYTES == 4 || low % 4 == 0) {
#pragma unroll
      for (int i = 0; i < 4; i++) v.w[i] = nst_load_u32(p + 4 * i);
      return v;
    }
  }
  if constexpr (BYTES == 4) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      if ((uint32_t)i < count) v.w[i] = nst_load_u32(p + 4 * i);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++)
      if ((uint32_t)i < count) v.w[i / 2] |= (uint32_t)nst_load_u16(p + 2 * i) << (i % 2 * 16);
  }
  return v;
}

/* The reverse: stores the first `count` elements of v at p. */
template <uint32_t BYTES> NST_DEVICE void nst_store_elements(char *p, nst_vec v, uint32_t count) {
  const uint32_t low = (uint32_t)(uintptr_t)p;
  if (count == 16 / BYTES) {
    if (low % 16 == 0) {
      nst_store_vec(p, v);
      return;
    }
    if (low % 8 == 0) {
#pragma unroll
      for (int i = 0; i < 2; i++) nst_store_u64(p + 8 * i, v.w[2 * i] | (uint64_t)v.w[2 * i + 1] << 32);
      return;
    }
    if (BYTES == 4 || low % 4 == 0) {
#pragma unroll
      for (int i = 0; i < 4; i++) nst_store_u32(p + 4 * i, v.w[i]);
      return;
    }
  }
  if constexpr (BYTES == 4) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      if ((uint32_t)i < count) nst_store_u32(p + 4 * i, v.w[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++)
      if ((uint32_t)i < count) nst_store_u16(p + 2 * i, (uint16_t)(v.w[i / 2] >> (i % 2 * 16)));
  }
}

/* How many elements of vector v the row has. */
template <nst_cell C> NST_DEVICE uint32_t nst_in_vec(uint32_t v, uint32_t n) {
  constexpr uint32_t E = nst_per_vec(C.types);
  const uint32_t left = n - v * E;
  return left < E ? left : E;
}

/* Vector v of a row of n elements; zeros where v is past its end. `inside` says that the caller knows v to be inside
 * (a constant after unrolling), which saves the test in exact kernels. */
template <nst_cell C, nst_hint HINT>
NST_DEVICE nst_vec nst_load_row(const char *row, uint32_t v, uint32_t n, bool inside, nst_policy policy) {
  const nst_vec zero = {{0, 0, 0, 0}};
  if (!(C.access == NST_ACCESS_EXACT && inside) && v >= nst_vecs<C>(n)) return zero;
  const char *const at = row + (uint64_t)v * 16;
  if constexpr (C.access == NST_ACCESS_UNALIGNED)
    return nst_load_elements<nst_data_bytes(C.types)>(at, nst_in_vec<C>(v, n));
  else
    return nst_load_vec<HINT>(at, policy);
}

template <nst_cell C, nst_hint HINT = NST_HINT_NONE>
NST_DEVICE void nst_store_row(char *row, uint32_t v, uint32_t n, bool inside, nst_vec value, nst_policy policy = 0) {
  if (!(C.access == NST_ACCESS_EXACT && inside) && v >= nst_vecs<C>(n)) return;
  char *const at = row + (uint64_t)v * 16;
  if constexpr (C.access == NST_ACCESS_UNALIGNED)
    nst_store_elements<nst_data_bytes(C.types)>(at, value, nst_in_vec<C>(v, n));
  else
    nst_store_vec<HINT>(at, value, policy);
}

/* The weights of one data vector as they lie in memory. */
template <nst_types TYPES> struct nst_weights {
  nst_vec raw[nst_weight_vecs(TYPES)];
};

/* Vector v of a row of weights; zeros where the row is absent. */
template <nst_cell C>
NST_DEVICE nst_weights<C.types> nst_load_weights(const void *row, uint32_t v, uint32_t n, bool inside) {
  constexpr uint32_t BYTES = nst_weight_bytes(C.types), VECS = nst_weight_vecs(C.types), PER = 16 / BYTES;
  nst_weights<C.types> out;
#pragma unroll
  for (uint32_t i = 0; i < VECS; i++) out.raw[i] = nst_vec{{0, 0, 0, 0}};
  if (row == nullptr) return out;
  if (!(C.access == NST_ACCESS_EXACT && inside) && v >= nst_vecs<C>(n)) return out;
  const char *const at = (const char *)row + (uint64_t)v * (16 * VECS);
#pragma unroll
  for (uint32_t i = 0; i < VECS; i++) {
    if constexpr (C.access == NST_ACCESS_UNALIGNED) {
      const uint32_t count = nst_in_vec<C>(v, n);
      if (count > i * PER)
        out.raw[i] = nst_load_elements<BYTES>(at + 16 * i, count - i * PER < PER ? count - i * PER : PER);
    } else {
      out.raw[i] = nst_load_vec<NST_HINT_NONE>(at + 16 * i, 0);
    }
  }
  return out;
}

template <nst_types TYPES> NST_DEVICE nst_values<TYPES> nst_unpack_weights(nst_weights<TYPES> w) {
  if constexpr (nst_weight_vecs(TYPES) == 1) {
    return nst_unpack<TYPES>(w.raw[0]);
  } else {
    nst_values<TYPES> out;
#pragma unroll
    for (int i = 0; i < 8; i++) out.e[i] = nst_bits_f32(w.raw[i / 4].w[i % 4]);
    return out;
  }
}

#endif
