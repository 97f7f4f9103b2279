// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arrays of elements: how vectors load and store them, sums and conversions.

//! @name Gradient elements to vectors of floats and back
//! @{
TERSUM_SIMD floats load_values(bfloat16 const* from)
{
  return from_bits(__builtin_convertvector(load_as<shorts>(from), words) << 16);
}

//! Makes every NaN the one that `to_float` makes of a half. Clang 14 would compare halves with themselves lane by lane.
TERSUM_SIMD floats quiet(floats v)
{
  auto const size = (integers)(to_bits(v) & 0x7fffffffu);
  return size > 0x7f800000 ? from_bits(broadcast(0x7fffffffu)) : v;
}

//! Loads values without that: for sums, whose NaNs `store_values` makes the same.
template <class Element>
TERSUM_SIMD floats load_any_nan(Element const* from)
{
  return load_values(from);
}

TERSUM_SIMD floats load_any_nan(half const* from)
{
#if TERSUM_SIMD_WIDTH == 16
  return (floats)_mm512_maskz_cvtph_ps(0xffff,
                                       _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from)));
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)));
#else
  words const value     = __builtin_convertvector(load_as<shorts>(from), words);
  integers const size   = (integers)(value & 0x7fffu);
  words const bits      = (words)size << 13;
  words const normal    = bits + (size < 0x7c00 ? broadcast(0x38000000u) : broadcast(0x70000000u));
  words const subnormal = to_bits(from_bits(bits + 0x38800000u) - broadcast(0x1p-14f));
  return from_bits((size < 0x0400 ? subnormal : normal) | (value & 0x8000u) << 16);
#endif
}

TERSUM_SIMD floats load_values(half const* from) { return quiet(load_any_nan(from)); }

//! Values of a chunk in the units of a metric.
template <class Element, class Scale>
TERSUM_SIMD floats load_values(divided<Element, Scale> const& from)
{
  fetch_beyond<false>(from.from, from.scales);
  return load_values(from.from) / larger(load_values(from.scales), broadcast(from.least));
}

//! Rounds to bfloat16s, in the upper halves of the words. The lower halves are undefined.
TERSUM_SIMD words to_bfloat16s(floats v)
{
  words const bits = to_bits(v);
  return v != v ? broadcast(0x7fff0000u) : bits + 0x7fffu + ((bits >> 16) & 1u);
}

//! Stores the upper halves of words. Compilers have longer ways where they convert.
TERSUM_SIMD void store_upper_halves(bfloat16* to, words v)
{
#if TERSUM_SIMD_WIDTH == 16
  typedef std::uint16_t halves __attribute__((vector_size(64)));
  shorts const out = odd((halves)v, (halves)v);
#elif TERSUM_SIMD_WIDTH == 8
  // In each half of the vector its four first, then both fours one after the other.
  __m256i const upper = _mm256_broadcastsi128_si256(
    _mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1));
  auto const out =
    _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_shuffle_epi8((__m256i)v, upper), 0x08));
#else
  shorts const out      = __builtin_convertvector(v >> 16, shorts);
#endif
  store(to, out);
}

TERSUM_SIMD void store_values(bfloat16* to, floats v) { store_upper_halves(to, to_bfloat16s(v)); }

TERSUM_SIMD void store_values(half* to, floats v)
{
#if TERSUM_SIMD_WIDTH >= 8
  v = v != v ? from_bits(broadcast(0x7fffffffu)) : v;
#endif
#if TERSUM_SIMD_WIDTH == 16
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtps_ph(0xffff, (__m512)v, 0));
#elif TERSUM_SIMD_WIDTH == 8
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph((__m256)v, 0));
#else
  words const bits      = to_bits(v);
  integers const size   = (integers)(bits & 0x7fffffffu);
  words const sign      = (bits >> 16) & 0x8000u;
  words const subnormal = to_bits(from_bits((words)size) + broadcast(0.5f)) - 0x3f000000u;
  words const normal    = ((words)size - 0x38000000u + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  words const finite    = size < 0x38800000 ? subnormal : normal;
  words const number    = (size < 0x477ff000 ? finite : broadcast(0x7c00u)) | sign;
  shorts const out =
    __builtin_convertvector(size > 0x7f800000 ? broadcast(0x7fffu) : number, shorts);
  store(to, out);
#endif
}
//! @}

#if TERSUM_SIMD_WIDTH >= 8
//! The sums of signed bytes, from `least` to 127.
TERSUM_OPERATOR vector_value<words> add_bytes(vector_value<words> const& a,
                                              vector_value<words> const& b,
                                              vector_value<words> const& least)
{
#if TERSUM_SIMD_WIDTH == 16
  return (words)_mm512_max_epi8(_mm512_adds_epi8((__m512i)a.v, (__m512i)b.v), (__m512i)least.v);
#else
  return (words)_mm256_max_epi8(_mm256_adds_epi8((__m256i)a.v, (__m256i)b.v), (__m256i)least.v);
#endif
}
#endif

//! @brief to[i] = Op{}(a[i], b[i]), by the operation's form for vectors, or in a plain loop, which the compiler makes vectors of.
template <class Op, class Element>
TERSUM_TARGET void reduce_stretch(Element* to,
                                  Element const* a,
                                  Element const* b,
                                  std::size_t count)
{
  std::size_t i = 0;
#if TERSUM_SIMD_WIDTH >= 8
  if constexpr (requires(vector_value<words> v) { Op::add(v, v); }) {
    for (; i + width <= count; i += width) {
      fetch_beyond<false, 4096>(a + i, b + i);
      vector_value<words> left = load(a + i), right = load(b + i);
      asm("" : "+v"(left.v), "+v"(right.v));  // g++ would load them for each use
      store(to + i, Op::add(left, right).v);
    }
  }
#endif
  for (; i < count; ++i) { to[i] = Op{}(a[i], b[i]); }
}

//! @brief to[i] = from[i] + residual[i] in float.
template <class Element, class Residual>
TERSUM_TARGET inline void add_residual(Element const* from,
                                       Residual const* residual,
                                       float* to,
                                       std::size_t count)
{
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    fetch_beyond<false>(from + i, residual + i);
    store(to + i, load_values(from + i) + load_values(residual + i));
  }
  for (; i < count; ++i) { to[i] = to_float(from[i]) + to_float(residual[i]); }
}

//! Stores what feedback keeps, `kept_value` of each, or scales, `kept_scale` of numbers that are not too large.
TERSUM_SIMD void store_values(kept_at<float> const& at, floats v) { store(at.to, v); }

TERSUM_SIMD void store_values(kept_at<bfloat16> const& at, floats v)
{
  words const draw  = (lane_index() * draw_stride + at.draw) & 0xffffu;
  words const bits  = to_bits(v);
  words const moved = (bits & 0x7fffffffu) < largest_kept ? bits + draw : bits;
  store_upper_halves(at.to, moved);
}

//! @brief to[i] = factor * a[i] + b[i] with one rounding.
template <class Element, class To>
TERSUM_TARGET inline void fused_add(
  float factor, Element const* a, float const* b, int count, To to)
{
  int i = 0;
  // The product is exact, and instruction sets without an fma make one of many instructions.
  if (factor * factor == 1.0f) {
    for (; i + width <= count; i += width) {
      store_values(to + i, broadcast(factor) * load_values(a + i) + load(b + i));
    }
  }
  for (; i + width <= count; i += width) {
    store_values(to + i, fma_of_few_bits(broadcast(factor), load_values(a + i), load(b + i)));
  }
  for (; i < count; ++i) { store_value(to + i, ::fmaf(factor, to_float(a[i]), b[i])); }
}

//! @brief Whether values can be sent as elements of this type: see `sendable_below`.
template <class Sent>
TERSUM_SIMD auto are_sendable(floats v)
{
  return (integers)(to_bits(v) & 0x7fffffffu) < (std::int32_t)float_bits(sendable_below<Sent>);
}

//! @brief to[i] = bounded_from_float(from[i], largest), or a NaN where gradient[i] cannot be sent.
template <class Element, class To>
TERSUM_TARGET inline void convert_sendable(
  Element const* gradient, float const* from, float largest, To* to, std::size_t count)
{
  floats const most = broadcast(largest), least = -most;
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    floats const v    = load(from + i);
    floats const sent = larger(least, smaller(most, v));
    store_values(to + i,
                 are_sendable<To>(load_values(gradient + i)) ? sent
                                                             : from_bits(broadcast(0x7fffffffu)));
  }
  for (std::size_t left = count % width; left > 0; --left, ++i) {
    float const nan = bits_float(0x7fffffffu);
    bool const can  = is_sendable<To>(to_float(gradient[i]));
    to[i]           = bounded_from_float<To>(can ? from[i] : nan, largest);
  }
}

//! @brief residual[i] = kept_value(whole[i] - sent[i]), or of whole[i] if `sent` is null; `whole` may be null for gradient + residual.
//! It stays as it was where gradient[i] cannot be sent, and where it would not be finite.
template <class Sent, class Element, class Residual>
TERSUM_TARGET inline void keep_finite_residual(Element const* gradient,
                                               float const* whole,
                                               Sent const* sent,
                                               kept_at<Residual> residual,
                                               std::size_t count)
{
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    if (whole == nullptr) { fetch_beyond<false>(gradient + i, residual.to + i); }
    floats const given = load_values(gradient + i);
    floats rest        = whole != nullptr ? load(whole + i) : given + load_values(residual.to + i);
    if (sent != nullptr) { rest = rest - load_any_nan(sent + i); }
    auto const known = are_sendable<Sent>(given) & are_sendable<float>(rest);
    store_values(residual + i, known ? rest : load_values(residual.to + i));
  }
  for (; i < count; ++i) {
    float const given = to_float(gradient[i]);
    float rest        = whole != nullptr ? whole[i] : given + to_float(residual.to[i]);
    if (sent != nullptr) { rest = rest - to_float(sent[i]); }
    if (is_sendable<Sent>(given) && is_finite(rest)) { store_value(residual + i, rest); }
  }
}

TERSUM_SIMD std::uint32_t largest_lane(words v)
{
  std::uint32_t most = 0;
  for (int lane = 0; lane < width; ++lane) { most = maximum(most, v[lane]); }
  return most;
}

//! @brief to[i] = from[i] * factor, converted. Returns whether all of from[i] are finite.
template <chunk_pointer From, class To>
TERSUM_TARGET inline bool convert_values(From from, To to, float factor, std::size_t count)
{
  constexpr bool narrows = std::is_convertible_v<From, float const*> && !std::is_same_v<To, float*>;
  words largest          = {};
  std::size_t const whole = count - count % width;
  for (std::size_t i = 0; i < whole; i += width) {
    if (narrows) { fetch_beyond<false>(from + i); }
    floats const v = load_values(from + i);
    largest        = larger(to_bits(v) & 0x7fffffffu, largest);
    store_values(to + i, v * broadcast(factor));
  }
  std::uint32_t most = largest_lane(largest);
  for (std::size_t i = whole; i < count; ++i) {
    float const v = to_float(from[i]);
    most          = maximum(most, float_bits(v) & 0x7fffffffu);
    store_value(to + i, v * factor);
  }
  return most < 0x7f800000u;
}

//! @brief Adds the elements of one vector in float, and rounds the sums to the element.
template <class Element>
TERSUM_SIMD void add_vector(Element const* a, Element const* b, Element* to)
{
  store_values(to, load_any_nan(a) + load_any_nan(b));
}

//! @brief The same for bfloat16, two in a word. Each is the upper half of a float already: nothing is widened or narrowed.
TERSUM_SIMD void add_vector(bfloat16 const* a, bfloat16 const* b, bfloat16* to)
{
  constexpr std::uint32_t upper = 0xffff0000u;
  words const left = load_as<words>(a), right = load_as<words>(b);
  words const high = to_bfloat16s(from_bits(left & upper) + from_bits(right & upper));
  words const low  = to_bfloat16s(from_bits(left << 16) + from_bits(right << 16));
  store(to, (high & upper) | (low >> 16));
}

//! @brief to[i] = a[i] + b[i] in float, rounded to the element.
template <class Element>
TERSUM_TARGET inline void add_values(Element const* a,
                                     Element const* b,
                                     Element* to,
                                     std::size_t count)
{
  constexpr std::size_t step = std::is_same_v<Element, bfloat16> ? 2 * width : width;
  std::size_t i              = 0;
  for (; i + step <= count; i += step) {
    fetch_beyond<false, tuning{}.cpu.write_ahead>(a + i, b + i);
    add_vector(a + i, b + i, to + i);
  }
  for (; i < count; ++i) { to[i] = from_float<Element>(to_float(a[i]) + to_float(b[i])); }
}

//! @brief The largest of the magnitudes, NaN above infinity.
template <chunk_pointer From>
TERSUM_TARGET inline float largest_of(From from, int count)
{
  integers largest = {};
  int i            = 0;
  for (; i + width <= count; i += width) {
    fetch_beyond<false>(from + i);
    largest = larger((integers)(to_bits(load_values(from + i)) & 0x7fffffffu), largest);
  }
  std::uint32_t most = largest_lane((words)largest);
  for (; i < count; ++i) { most = maximum(most, float_bits(to_float(from[i])) & 0x7fffffffu); }
  return bits_float(most);
}

//! @brief to[i] = from[i] * scale, rounded as a mean is.
template <class Element, class Scale>
TERSUM_TARGET inline void multiply_by_scales(
  float const* from, Scale const* scales, float least, Element* to, std::size_t count)
{
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    fetch_beyond<false>(scales + i);
    fetch_beyond<true>(to + i);
    floats const v = load(from + i) * larger(load_values(scales + i), broadcast(least));
    store_values(to + i, within_range<Element>(v));
  }
  for (; i < count; ++i) {
    to[i] = finite_from_float<Element>(from[i] * raised_scale(to_float(scales[i]), least));
  }
}

TERSUM_SIMD floats square_roots(floats v)
{
#if TERSUM_SIMD_WIDTH == 16
  // g++ 12 warns of the undefined lanes of the intrinsic without a mask.
  return (floats)_mm512_maskz_sqrt_ps(0xffff, (__m512)v);
#elif TERSUM_SIMD_WIDTH == 8
  return (floats)_mm256_sqrt_ps((__m256)v);
#elif defined(__x86_64__)
  return (floats)_mm_sqrt_ps((__m128)v);
#else
  floats out;
  for (int lane = 0; lane < width; ++lane) { out[lane] = ::sqrtf(v[lane]); }
  return out;
#endif
}

//! @brief v / divisor, where `inverse` is 1 / divisor, rounded. The divisor lies between 1 and 2^60, v is zero or at least 2^-30; what
//! is not finite has a quotient that is not finite.
//!
//! A product and two fused additions give the quotient with all bits right (Brisebarre, Muller, Raina: Accelerating correctly
//! rounded floating-point division when the divisor is known in advance, 2004).
TERSUM_SIMD floats divide_by(floats v, float divisor, [[maybe_unused]] float inverse)
{
#if TERSUM_SIMD_WIDTH >= 8
  floats const quotient = v * broadcast(inverse);
  return fma(fma(-quotient, broadcast(divisor), v), broadcast(inverse), quotient);
#else
  return v / broadcast(divisor);
#endif
}

//! @brief `kept_diagonal::update`, or what was kept where this is too large or NaN; `raised` is what a scale counts as.
template <class Scale>
TERSUM_SIMD floats average_squares(floats v, floats kept, floats raised, float steps, float inverse)
{
  floats const one    = broadcast(1.0f);
  floats const change = (v - one) * (v + one);
  floats const next   = raised * square_roots(one + divide_by(change, steps, inverse));
  return next <= broadcast(largest_scale<Scale>) ? next : kept;
}

//! Stores values in the units of a metric in those of the gradient.
template <class Element, class Scale, bool Keeps>
TERSUM_SIMD void store_values(multiplied<Element, Scale, Keeps> const& at, floats v)
{
  fetch_beyond<true>(at.to);
  fetch_beyond<Keeps, tuning{}.cpu.read_ahead>(at.scales);
  floats const kept   = load_values(at.scales);
  floats const raised = larger(kept, broadcast(at.least));
  store_values(at.to, within_range<Element>(v * raised));
  if (Keeps) {
    floats const next = average_squares<Scale>(v, kept, raised, at.steps, at.inverse);
    store_values(kept_at<Scale>{at.scales, at.draw}, next);
  }
}

//! @brief to[i] = values[i], rounded as a mean is, for whole vectors.
template <chunk_pointer To>
TERSUM_TARGET inline void store_whole(float const* values, To to, int count)
{
  using element = typename stored_element<To>::type;
  for (int i = 0; i < count; i += width) {
    store_values(to + i, within_range<element>(load(values + i)));
  }
}
