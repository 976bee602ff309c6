/* Data types: the elements of a 16-byte vector as f32 values, and back with one rounding. */
#ifndef NST_DTYPE_CUH
#define NST_DTYPE_CUH

#include "cell.cuh"

constexpr bool nst_is_f16(nst_types types) { return types == NST_TYPES_F16 || types == NST_TYPES_F16W32; }
constexpr bool nst_is_bf16(nst_types types) { return types == NST_TYPES_BF16 || types == NST_TYPES_BF16W32; }

/* Bytes of an element of the data, and of the weight beside it. */
constexpr uint32_t nst_data_bytes(nst_types types) { return types == NST_TYPES_F32 ? 4 : 2; }
constexpr uint32_t nst_weight_bytes(nst_types types) {
  return types == NST_TYPES_F16 || types == NST_TYPES_BF16 ? 2 : 4;
}

/* Elements of a 16-byte vector of the data. */
constexpr uint32_t nst_per_vec(nst_types types) { return 16 / nst_data_bytes(types); }

/* 16-byte loads that bring the weights of one data vector. */
constexpr uint32_t nst_weight_vecs(nst_types types) { return nst_weight_bytes(types) / nst_data_bytes(types); }

/* One data vector's elements in f32. */
template <nst_types TYPES> struct nst_values {
  float e[nst_per_vec(TYPES)];
};

template <nst_types TYPES> NST_DEVICE nst_values<TYPES> nst_unpack(nst_vec v) {
  nst_values<TYPES> out;
  if constexpr (nst_is_f16(TYPES)) {
#pragma unroll
    for (int i = 0; i < 4; i++) nst_unpack_f16(v.w[i], &out.e[2 * i], &out.e[2 * i + 1]);
  } else if constexpr (nst_is_bf16(TYPES)) {
#pragma unroll
    for (int i = 0; i < 4; i++) nst_unpack_bf16(v.w[i], &out.e[2 * i], &out.e[2 * i + 1]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) out.e[i] = nst_bits_f32(v.w[i]);
  }
  return out;
}

template <nst_types TYPES> NST_DEVICE nst_vec nst_pack(nst_values<TYPES> v) {
  nst_vec out;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if constexpr (nst_is_f16(TYPES))
      out.w[i] = nst_pack_f16(v.e[2 * i], v.e[2 * i + 1]);
    else if constexpr (nst_is_bf16(TYPES))
      out.w[i] = nst_pack_bf16(v.e[2 * i], v.e[2 * i + 1]);
    else
      out.w[i] = nst_f32_bits(v.e[i]);
  }
  return out;
}

/* The values after a rounding to the data type. */
template <nst_types TYPES> NST_DEVICE nst_values<TYPES> nst_round(nst_values<TYPES> v) {
  return nst_unpack<TYPES>(nst_pack<TYPES>(v));
}

#endif
