/*
 * The three data types on the host: how a double is rounded to them, how their bits become a double, and how far a
 * stored value lies from a reference. f16 and bf16 are taken apart by hand, since C has no types for them.
 */
#ifndef NST_TOOLS_HALF_H
#define NST_TOOLS_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "normstatic.h"

/* A binary format: a value is sign * k * 2^(e - bits) with k < 2^(bits + 1) and e from e_min to e_max. */
struct half_format {
  int bytes;
  int bits;  /* stored bits of the significand */
  int e_min; /* exponent of the smallest normal number; subnormal numbers share it */
  int e_max; /* exponent of the largest finite number */
};

static inline struct half_format half_format_of(nst_dtype dtype) {
  static const struct half_format f16 = {2, 10, -14, 15}, bf16 = {2, 7, -126, 127}, f32 = {4, 23, -126, 127};
  return dtype == NST_DTYPE_F16 ? f16 : dtype == NST_DTYPE_BF16 ? bf16 : f32;
}

static inline size_t half_size(nst_dtype dtype) { return dtype == NST_DTYPE_F32 ? 4 : 2; }

static inline const char *half_name(nst_dtype dtype) {
  return dtype == NST_DTYPE_F16 ? "f16" : dtype == NST_DTYPE_BF16 ? "bf16" : "f32";
}

/* The exponent of a finite v, no smaller than e_min; for 0 it is e_min. */
static inline int half_exponent(double v, int e_min) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  const int e = (int)(u >> 52 & 0x7ff) - 1023;
  return e < e_min ? e_min : e;
}

/* 2^e for a normal double. */
static inline double half_power(int e) {
  const uint64_t u = (uint64_t)(e + 1023) << 52;
  double v;
  memcpy(&v, &u, sizeof v);
  return v;
}

/* v rounded to a 16-bit format, to nearest even. */
static inline uint16_t half_encode(struct half_format f, double v) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  const uint32_t sign = (uint32_t)(u >> 63) << 15;
  const uint32_t infinity = (uint32_t)(f.e_max - f.e_min + 2) << f.bits;
  if (isnan(v)) return (uint16_t)(sign | infinity | 1u << (f.bits - 1));
  if (fabs(v) >= half_power(f.e_max + 1)) return (uint16_t)(sign | infinity);
  const int e = half_exponent(v, f.e_min);
  /* Scaling by a power of two is exact, so nearbyint rounds once. k counts units of the last place and holds the
   * leading bit; adding it (instead of or-ing) carries into the exponent where rounding reaches the next power of two,
   * up to infinity. */
  const uint32_t k = (uint32_t)nearbyint(fabs(v) * half_power(f.bits - e));
  return (uint16_t)(sign | (((uint32_t)(e - f.e_min) << f.bits) + k));
}

static inline double half_decode(struct half_format f, uint16_t bits) {
  const uint32_t exponent = bits >> f.bits & ((1u << (15 - f.bits)) - 1);
  const uint32_t fraction = bits & ((1u << f.bits) - 1);
  double v;
  if (exponent == (1u << (15 - f.bits)) - 1)
    v = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    v = fraction * half_power(f.e_min - f.bits);
  else
    v = ((1u << f.bits) + fraction) * half_power((int)exponent - 1 + f.e_min - f.bits);
  return bits & 0x8000 ? -v : v;
}

static inline uint16_t half_f16_from(double v) { return half_encode(half_format_of(NST_DTYPE_F16), v); }
static inline uint16_t half_bf16_from(double v) { return half_encode(half_format_of(NST_DTYPE_BF16), v); }
static inline double half_f16_to(uint16_t bits) { return half_decode(half_format_of(NST_DTYPE_F16), bits); }
static inline double half_bf16_to(uint16_t bits) { return half_decode(half_format_of(NST_DTYPE_BF16), bits); }

/* Element i of an array of dtype, which needs no alignment. */
static inline double half_load(nst_dtype dtype, const void *array, int64_t i) {
  const char *p = (const char *)array + i * (int64_t)half_size(dtype);
  if (dtype == NST_DTYPE_F32) {
    float v;
    memcpy(&v, p, sizeof v);
    return v;
  }
  uint16_t bits;
  memcpy(&bits, p, sizeof bits);
  return half_decode(half_format_of(dtype), bits);
}

/* Rounds v to dtype and writes it as element i. */
static inline void half_store(nst_dtype dtype, void *array, int64_t i, double v) {
  char *p = (char *)array + i * (int64_t)half_size(dtype);
  if (dtype == NST_DTYPE_F32) {
    const float f = (float)v;
    memcpy(p, &f, sizeof f);
  } else {
    const uint16_t bits = half_encode(half_format_of(dtype), v);
    memcpy(p, &bits, sizeof bits);
  }
}

/* v rounded to dtype. */
static inline double half_round(nst_dtype dtype, double v) {
  if (dtype == NST_DTYPE_F32) return (float)v;
  return half_decode(half_format_of(dtype), half_encode(half_format_of(dtype), v));
}

/* Infinity as the number that it stands for when numbers are compared: the power of two above the largest finite one. A
 * result that overflows beside a reference that hardly does not is then one unit away, not infinitely far. */
static inline double half_clamp(nst_dtype dtype, double v) {
  const double top = half_power(half_format_of(dtype).e_max + 1);
  return v > top ? top : v < -top ? -top : v;
}

/* The unit in the last place of dtype at v, once v is rounded to dtype. */
static inline double half_ulp(nst_dtype dtype, double v) {
  const struct half_format f = half_format_of(dtype);
  const double r = half_round(dtype, v);
  if (!isfinite(r)) return half_power(f.e_max - f.bits);
  return half_power(half_exponent(r, f.e_min) - f.bits);
}

/* How far `got` (a value of dtype) lies from the double reference, in units of the last place at the reference. NaN is
 * 0 away from NaN and infinitely far from everything else. */
static inline double half_distance(nst_dtype dtype, double got, double reference) {
  if (isnan(got) || isnan(reference)) return isnan(got) && isnan(reference) ? 0 : INFINITY;
  return fabs(half_clamp(dtype, got) - half_clamp(dtype, reference)) / half_ulp(dtype, reference);
}

#endif
