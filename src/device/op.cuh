/*
 * The operations: what a row's statistic is, how it is formed from a vector and merged, and how a vector's results come
 * from it. The strategies (rows_*.cuh) know nothing of formulas; a new operation is written here.
 */
#ifndef NST_OP_CUH
#define NST_OP_CUH

#include "access.cuh"

/* ---- What an operation reads; the lists are printed from the axes ---------------------------------------------- */

/* Tensors that are summed to what is normalised: x, and the residual. */
constexpr uint32_t nst_inputs_of(nst_op op) {
  constexpr uint8_t of[] = NST_OP_INPUTS;
  return of[op];
}

/* Tensors of one row for all rows: the weight, and the bias. */
constexpr uint32_t nst_parameters_of(nst_op op) {
  constexpr uint8_t of[] = NST_OP_PARAMETERS;
  return of[op];
}

/* Tensors of a row for each row, or for some neighbouring ones: scale and shift, and the gate. */
constexpr uint32_t nst_conditioning_of(nst_op op) {
  constexpr uint8_t of[] = NST_OP_CONDITIONING;
  return of[op];
}

/* All that is read row by row, the inputs first. */
constexpr uint32_t nst_streams(nst_op op) { return nst_inputs_of(op) + nst_conditioning_of(op); }

constexpr bool nst_has_residual(nst_op op) { return nst_inputs_of(op) == 2; }

/* Whether the mean is subtracted. */
constexpr bool nst_is_centred(nst_op op) {
  constexpr uint8_t words[] = NST_OP_STATISTIC;
  return words[op] == 2;
}

/* One data vector of every stream. */
template <nst_op OP> struct nst_inputs {
  nst_vec raw[nst_streams(OP)];
};

/* One data vector's part of every parameter. */
template <nst_cell C> struct nst_parameters {
  nst_weights<C.types> of[nst_parameters_of(C.op) > 0 ? nst_parameters_of(C.op) : 1];
};

/* ---- Statistics ------------------------------------------------------------------------------------------------- */

/*
 * What the reduction carries of a part of a row. RMSNorm: the sum of squares. The layer norms: the sum of deviations
 * from a pivot, and of their squares.
 *
 * The pivot K is the mean of the row's first vector, which each thread reads for itself. So the sums need one exchange,
 * as RMSNorm's, and merging is adding, whatever the parts' sizes. The squares around the mean are S2 - S1^2 / n. What
 * cancels there is n (K - mean)^2, an eighth of the result for an ordinary row of 16-bit elements, and a mean far from
 * 0 costs no digits, since the pivot is near it. Where more than 3 bits cancel (the row begins with outliers, say) the
 * sums are taken once more around the mean that the first ones gave: see nst_row_scale.
 */
template <nst_op OP> struct nst_stat {
  static constexpr uint32_t words = nst_is_centred(OP) ? 2 : 1;
  float w[words];
};

template <nst_op OP> NST_DEVICE nst_stat<OP> nst_stat_none(void) { return nst_stat<OP>{}; }

/* Merges two parts of a row. The result does not depend on which comes first, so that both lanes of a shuffle agree. */
template <nst_op OP> NST_DEVICE nst_stat<OP> nst_stat_merge(nst_stat<OP> a, nst_stat<OP> b) {
#pragma unroll
  for (uint32_t i = 0; i < nst_stat<OP>::words; i++) a.w[i] = a.w[i] + b.w[i];
  return a;
}

/* The sum of a vector's numbers: halves are added down to one number, as above the vector. */
template <nst_types TYPES> NST_DEVICE float nst_add_halves(nst_values<TYPES> s) {
  float q[4];
#pragma unroll
  for (int i = 0; i < 4; i++) q[i] = nst_per_vec(TYPES) == 8 ? s.e[i] + s.e[i + nst_per_vec(TYPES) / 2] : s.e[i];
  return (q[0] + q[2]) + (q[1] + q[3]);
}

/* The sum of their squares. */
template <nst_types TYPES> NST_DEVICE float nst_add_squares(nst_values<TYPES> s) {
  float q[4];
#pragma unroll
  for (int i = 0; i < 4; i++) q[i] = s.e[i] * s.e[i];
  if constexpr (nst_per_vec(TYPES) == 8) {
#pragma unroll
    for (int i = 0; i < 4; i++) q[i] = nst_fma(s.e[i + 4], s.e[i + 4], q[i]);
  }
  return (q[0] + q[2]) + (q[1] + q[3]);
}

/* The statistic of vector v, a leaf of the row's tree; `inside` as for nst_load_row. */
template <nst_cell C>
NST_DEVICE nst_stat<C.op> nst_stat_leaf(nst_values<C.types> s, uint32_t v, uint32_t n, bool inside, float pivot) {
  if constexpr (!nst_is_centred(C.op)) {
    return nst_stat<C.op>{{nst_add_squares<C.types>(s)}}; /* elements past the row's end have read as zeros */
  } else {
    constexpr uint32_t E = nst_per_vec(C.types);
    const bool whole = C.access == NST_ACCESS_EXACT && inside;
    uint32_t count = E;
    if (!whole) count = v >= nst_vecs<C>(n) ? 0 : C.access == NST_ACCESS_UNALIGNED ? nst_in_vec<C>(v, n) : E;
    nst_values<C.types> d;
#pragma unroll
    for (uint32_t i = 0; i < E; i++) d.e[i] = whole || i < count ? s.e[i] - pivot : 0.0f;
    return nst_stat<C.op>{{nst_add_halves<C.types>(d), nst_add_squares<C.types>(d)}};
  }
}

/* What normalising needs of a whole row: the mean is pivot + shift, which is more than f32 holds of it. */
struct nst_scale {
  float pivot;
  float shift;
  float rstd;
  float offset; /* - shift * rstd */
};

/*
 * A row's scale, where total(pivot, again) gives every thread of the row its statistic around a pivot; `again` says
 * that it is called a second time. Whether that happens depends on the statistic alone, so all threads of the row, and
 * all strategies, agree.
 */
template <nst_cell C, class TOTAL> NST_DEVICE nst_scale nst_row_scale(float pivot, const nst_rows_params &p, TOTAL total) {
  if constexpr (!nst_is_centred(C.op)) {
    return nst_scale{0.0f, 0.0f, nst_rsqrt(nst_fma(total(0.0f, false).w[0], p.inv_n, p.eps)), 0.0f};
  } else {
    for (bool again = false;; again = true) {
      const nst_stat<C.op> sums = total(pivot, again);
      const float shift = sums.w[0] * p.inv_n;
      const float squares = sums.w[1] - sums.w[0] * shift;
      const bool poor = squares * 8.0f < sums.w[1];
      /* Rows that share a warp take the second turn together; the good ones get the same sums once more. */
      if (again || !(C.lanes < 32 ? nst_any(poor) : poor)) {
        const float rstd = nst_rsqrt(nst_fma(squares < 0.0f ? 0.0f : squares, p.inv_n, p.eps));
        return nst_scale{pivot, shift, rstd, -(shift * rstd)};
      }
      if (poor) pivot = pivot + shift;
    }
  }
}

/* The pivot, from the row's first vector. */
template <nst_cell C> NST_DEVICE float nst_pivot_of(nst_values<C.types> first, const nst_rows_params &p) {
  return nst_add_halves<C.types>(first) * p.inv_pivot;
}

/* The row's optional outputs, by one thread. */
template <nst_cell C> NST_DEVICE void nst_store_scale(const nst_rows_params &p, uint32_t row, nst_scale scale) {
  if (nst_is_centred(C.op) && p.mean != nullptr) nst_store_f32(p.mean + row, scale.pivot + scale.shift);
  if (p.rstd != nullptr) nst_store_f32(p.rstd + row, scale.rstd);
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

/* The values to normalise: x, or the residual sum before (or on request after) it is rounded. */
template <nst_cell C> NST_DEVICE nst_values<C.types> nst_sum_inputs(nst_inputs<C.op> in, const nst_rows_params &p) {
  nst_values<C.types> s = nst_unpack<C.types>(in.raw[0]);
  if constexpr (nst_has_residual(C.op)) {
    const nst_values<C.types> r = nst_unpack<C.types>(in.raw[1]);
#pragma unroll
    for (uint32_t i = 0; i < nst_per_vec(C.types); i++) s.e[i] = s.e[i] + r.e[i];
    if (C.types != NST_TYPES_F32 && p.flags & NST_FLAG_ROUND_RESIDUAL) s = nst_round<C.types>(s);
  }
  return s;
}

/* y of one vector. What is absent has read as zeros; the offsets make its factor exactly 1. */
template <nst_cell C>
NST_DEVICE nst_vec nst_normalise(nst_values<C.types> s, nst_inputs<C.op> in, nst_parameters<C> parameters,
                                 nst_scale scale, const nst_rows_params &p) {
  constexpr uint32_t E = nst_per_vec(C.types), PARAMETERS = nst_parameters_of(C.op);
  constexpr uint32_t CONDITIONING = nst_conditioning_of(C.op), FIRST = nst_inputs_of(C.op);
  nst_values<C.types> y;
#pragma unroll
  for (uint32_t i = 0; i < E; i++)
    y.e[i] = nst_is_centred(C.op) ? nst_fma(s.e[i] - scale.pivot, scale.rstd, scale.offset) : s.e[i] * scale.rstd;
  if (C.types != NST_TYPES_F32 && p.flags & NST_FLAG_ROUND_BEFORE_WEIGHT) y = nst_round<C.types>(y);
  if constexpr (PARAMETERS > 0) {
    const nst_values<C.types> weight = nst_unpack_weights<C.types>(parameters.of[0]);
    nst_values<C.types> bias = {};
    if constexpr (PARAMETERS > 1) bias = nst_unpack_weights<C.types>(parameters.of[1]);
#pragma unroll
    for (uint32_t i = 0; i < E; i++) {
      const float factor = weight.e[i] + p.weight_offset;
      y.e[i] = PARAMETERS > 1 ? nst_fma(y.e[i], factor, bias.e[i]) : y.e[i] * factor;
    }
  }
  if constexpr (CONDITIONING > 0) {
    const nst_values<C.types> factor = nst_unpack<C.types>(in.raw[FIRST]);
    const nst_values<C.types> shift = nst_unpack<C.types>(in.raw[FIRST + 1]);
#pragma unroll
    for (uint32_t i = 0; i < E; i++) y.e[i] = nst_fma(y.e[i], 1.0f + factor.e[i], shift.e[i]);
  }
  if constexpr (CONDITIONING > 2) {
    const nst_values<C.types> gate = nst_unpack<C.types>(in.raw[FIRST + 2]);
#pragma unroll
    for (uint32_t i = 0; i < E; i++) y.e[i] = y.e[i] * (gate.e[i] + p.gate_offset);
  }
  return nst_pack<C.types>(y);
}

/* ---- Rows in memory --------------------------------------------------------------------------------------------- */

/* A row's addresses. */
template <nst_op OP> struct nst_row_pointers {
  const char *in[nst_streams(OP)]; /* NULL: absent */
  char *y;
  char *residual_out; /* NULL: not wanted */
};

template <nst_cell C> NST_DEVICE nst_row_pointers<C.op> nst_row_of(const nst_rows_params &p, uint32_t row) {
  constexpr uint32_t CONDITIONING = nst_conditioning_of(C.op), FIRST = nst_inputs_of(C.op);
  nst_row_pointers<C.op> at;
  at.in[0] = nst_row(p.x, p.x_stride, row);
  at.y = nst_row(p.y, p.y_stride, row);
  at.residual_out = nullptr;
  if constexpr (nst_has_residual(C.op)) {
    at.in[1] = nst_row(p.residual, p.residual_stride, row);
    if (p.residual_out != nullptr) at.residual_out = nst_row(p.residual_out, p.residual_out_stride, row);
  }
  if constexpr (CONDITIONING > 0) {
    const uint32_t cond = (uint32_t)((uint64_t)row * p.cond_multiplier >> p.cond_shift);
    at.in[FIRST] = nst_row(p.scale, p.scale_stride, cond);
    at.in[FIRST + 1] = nst_row(p.shift, p.shift_stride, cond);
    if constexpr (CONDITIONING > 2) at.in[FIRST + 2] = nst_row(p.gate, p.gate_stride, cond);
  }
  return at;
}

/* Vector v of the inputs; the conditioning's place is filled by nst_load_conditioning. */
template <nst_cell C, nst_hint HINT>
NST_DEVICE nst_inputs<C.op> nst_load_inputs(const nst_row_pointers<C.op> &at, uint32_t v, uint32_t n, bool inside,
                                            nst_policy policy) {
  nst_inputs<C.op> in = {};
#pragma unroll
  for (uint32_t i = 0; i < nst_inputs_of(C.op); i++)
    in.raw[i] = nst_load_row<C, HINT>(at.in[i], v, n, inside, policy);
  return in;
}

template <nst_cell C, nst_hint HINT>
NST_DEVICE void nst_load_conditioning(nst_inputs<C.op> *in, const nst_row_pointers<C.op> &at, uint32_t v, uint32_t n,
                                      bool inside, nst_policy policy) {
#pragma unroll
  for (uint32_t i = nst_inputs_of(C.op); i < nst_streams(C.op); i++)
    if (at.in[i] != nullptr) in->raw[i] = nst_load_row<C, HINT>(at.in[i], v, n, inside, policy);
}

template <nst_cell C>
NST_DEVICE nst_parameters<C> nst_load_parameters(const nst_rows_params &p, uint32_t v, uint32_t n, bool inside) {
  nst_parameters<C> out = {};
  if constexpr (nst_parameters_of(C.op) > 0) out.of[0] = nst_load_weights<C>(p.weight, v, n, inside);
  if constexpr (nst_parameters_of(C.op) > 1) out.of[1] = nst_load_weights<C>(p.bias, v, n, inside);
  return out;
}

/* Writes the residual sum of one vector, rounded, where it is wanted. */
template <nst_cell C, nst_hint HINT = NST_HINT_NONE>
NST_DEVICE void nst_store_residual(const nst_row_pointers<C.op> &at, uint32_t v, uint32_t n, bool inside,
                                   nst_values<C.types> s, nst_policy policy = 0) {
  if constexpr (nst_has_residual(C.op)) {
    if (at.residual_out != nullptr) nst_store_row<C, HINT>(at.residual_out, v, n, inside, nst_pack<C.types>(s), policy);
  }
}

/* Waits for the kernels before this one; parameters that are ready may be requested before the second call. */
NST_DEVICE void nst_wait_before_parameters(const nst_rows_params &p) {
  if (!(p.flags & NST_FLAG_WEIGHT_READY)) nst_dependency_wait();
}

#endif
