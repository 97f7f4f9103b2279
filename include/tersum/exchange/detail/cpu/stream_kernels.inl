// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of a chunk under a step, and how many bits they take, for one instruction set. Included once for each by
//! cpu_stream_kernels.hpp, after vectors.inl.

//! @brief The same vector, of which the compiler does not know where it comes from: a product is rounded before it is added.
TERSUM_SIMD floats as_rounded(floats v)
{
#if TERSUM_SIMD_WIDTH == 16
  asm("" : "+v"(v));
#elif defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#else
  asm("" : "+m"(v));
#endif
  return v;
}

//! @brief A bit for each lane that is not zero.
TERSUM_SIMD std::uint64_t lanes_with_some(words v)
{
#if TERSUM_SIMD_WIDTH == 16
  return _mm512_test_epi32_mask((__m512i)v, (__m512i)v);
#elif TERSUM_SIMD_WIDTH == 8
  return static_cast<std::uint64_t>(_mm256_movemask_ps((__m256)(v != words{})));
#elif defined(__SSE2__)
  return static_cast<std::uint64_t>(_mm_movemask_ps((__m128)(v != words{})));
#else
  std::uint64_t some = 0;
  for (int lane = 0; lane < width; ++lane) {
    some |= std::uint64_t{v[lane] != 0 ? 1u : 0u} << lane;
  }
  return some;
#endif
}

//! @brief The sum of all lanes, modulo 2^32.
TERSUM_SIMD std::uint32_t sum_of_lanes(words v)
{
  std::uint32_t sum = 0;
  for (int lane = 0; lane < width; ++lane) { sum += v[lane]; }
  return sum;
}

//! @brief The largest magnitude, as bits; of values that are not finite that of infinity.
template <int Size>
TERSUM_TARGET inline std::uint32_t find_peak(float const* values)
{
  integers largest{};
  for (int i = 0; i < Size; i += width) {
    auto const magnitude = (integers)(to_bits(load(values + i)) & 0x7fffffffu);
    largest              = magnitude > largest ? magnitude : largest;
  }
  std::int32_t peak = 0;
  for (int lane = 0; lane < width; ++lane) { peak = maximum(peak, largest[lane]); }
  return minimum(static_cast<std::uint32_t>(peak), 0x7f800000u);
}

//! @brief `code_magnitude` in every lane.
TERSUM_SIMD integers code_magnitudes(floats v, float inverse)
{
  floats const magnitude = from_bits(to_bits(v) & 0x7fffffffu);
  floats const quotient  = as_rounded(magnitude * broadcast(inverse));
  integers const nearest = __builtin_convertvector(quotient + broadcast(0x1.fffffep-2f), integers);
  return quotient < broadcast(0.65f) ? integers{} : nearest;
}

//! @brief `value_of_code` of all values, with their signs.
template <int Size>
TERSUM_TARGET inline void find_sent(float const* values, float inverse, float step, float* sent)
{
  for (int i = 0; i < Size; i += width) {
    floats const value   = load(values + i);
    floats const product = as_rounded(
      __builtin_convertvector(code_magnitudes(value, inverse), floats) * broadcast(step));
    floats const most = broadcast(bits_float(0x7f7fffffu));
    store(sent + i,
          from_bits(to_bits(product < most ? product : most) | (to_bits(value) & 0x80000000u)));
  }
}

//! @brief `code_magnitude` of all values.
//! @tparam Small  Whether all codes are known to be below 2^16.
template <bool Small, int Size>
TERSUM_SIMD magnitude_counts find_codes_of(float const* values,
                                           float inverse,
                                           step_codes<Size>& codes)
{
  words sum{}, high{};             // of the codes modulo 2^32, and of their upper halves
  std::uint64_t last_is_some = 1;  // no zero is before the first
  magnitude_counts counts;
  for (int i = 0; i < Size; i += 64) {
    std::uint64_t some = 0;
    TERSUM_UNROLL
    for (int j = 0; j < 64; j += width) {
      auto const code = (words)code_magnitudes(load(values + i + j), inverse);
      store(codes.magnitudes + i + j, code);
      sum += code;
      if constexpr (!Small) { high += code >> 16; }
      some |= lanes_with_some(code) << j;
    }
    codes.some[i / 64] = some;
    counts.some += static_cast<std::uint32_t>(__builtin_popcountll(some));
    std::uint64_t const firsts = some & ~(some << 1 | last_is_some);
    counts.gaps += static_cast<std::uint32_t>(__builtin_popcountll(firsts));
    last_is_some    = some >> 63;
    auto const last = static_cast<std::uint32_t>(i + 64 - __builtin_clzll(some | 1));
    counts.end      = some != 0 ? last : counts.end;
  }
  if constexpr (Small) {
    counts.sum = sum_of_lanes(sum);
  } else {
    for (int lane = 0; lane < width; ++lane) {
      counts.sum += (std::uint64_t{high[lane]} << 16) +
                    static_cast<std::uint32_t>(sum[lane] - (high[lane] << 16));
    }
  }
  return counts;
}

template <int Size>
TERSUM_TARGET inline magnitude_counts find_codes(float const* values,
                                                 std::uint32_t most,
                                                 float inverse,
                                                 step_codes<Size>& codes)
{
  if (most < 65536) { return find_codes_of<true>(values, inverse, codes); }
  return find_codes_of<false>(values, inverse, codes);
}

//! @brief The sum of what remains of all codes without their lowest `order` bits.
template <int Size>
TERSUM_SIMD std::uint32_t sum_of_quotients(step_codes<Size> const& codes, std::uint32_t order)
{
  words sum{};
  for (int i = 0; i < Size; i += width) { sum += load_words(codes.magnitudes + i) >> order; }
  return sum_of_lanes(sum);
}

//! @brief The sum of floor(log2(code - 1 + 2^order)) of codes that are not zero.
template <int Size>
TERSUM_SIMD std::uint32_t sum_of_logarithms(step_codes<Size> const& codes,
                                            std::uint32_t some,
                                            std::uint32_t order)
{
  std::uint32_t const of_zero = (1u << order) - 1;
  words const more            = broadcast(of_zero);
  words
    sum{};  // of the exponents of floats: without the bit behind the highest, numbers are not rounded up
  for (int i = 0; i < Size; i += width) {
    words const number  = load_words(codes.magnitudes + i) + more;
    auto const as_float = __builtin_convertvector((integers)(number & ~(number >> 1)), floats);
    sum += to_bits(as_float) >> 23;
  }
  std::uint32_t const zeros    = static_cast<std::uint32_t>(Size) - some;
  std::uint32_t const exponent = float_bits(static_cast<float>(of_zero & ~(of_zero >> 1))) >> 23;
  return sum_of_lanes(sum) - zeros * exponent - some * 127;
}

//! @brief The places of codes that are not zero, in order. Returns how many there are.
//! @param places  Has room for a vector behind them.
template <int Size>
TERSUM_TARGET inline std::uint32_t find_places(step_codes<Size> const& codes, std::uint32_t* places)
{
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Size); i += 64) {
    std::uint64_t some = codes.some[i / 64];
#if TERSUM_SIMD_WIDTH == 16
    TERSUM_UNROLL
    for (std::uint32_t j = 0; j < 64; j += 16) {
      auto const of_lanes = static_cast<__mmask16>(some >> j);
      store(places + count,
            (words)_mm512_maskz_compress_epi32(of_lanes, (__m512i)(lane_index() + (i + j))));
      count += static_cast<std::uint32_t>(__builtin_popcount(of_lanes));
    }
#else
    for (; some != 0; some &= some - 1) {
      places[count++] = i + static_cast<std::uint32_t>(__builtin_ctzll(some));
    }
#endif
  }
  return count;
}

//! @brief The sum of the lengths of runs of zeros before codes, each less one and without its lowest `order` bits.
template <int Size>
TERSUM_SIMD std::uint32_t sum_of_runs(step_codes<Size> const& codes,
                                      std::uint32_t gaps,
                                      std::uint32_t order)
{
  std::uint32_t ends[step_codes<Size>::size + static_cast<std::size_t>(width) +
                     1];  // one of a run before the first
  ends[0]                   = ~0u;
  std::uint32_t const count = find_places(codes, ends + 1);
  store(ends + 1 + count, lane_index() + (ends[count] + 1));  // runs of no zeros
  std::uint32_t const below = (1u << order) - 2;  // one more without these bits, but of no zeros
  words sum{};
  for (std::uint32_t i = 0; i < count; i += static_cast<std::uint32_t>(width)) {
    sum += (load_words(ends + 1 + i) - load_words(ends + i) + below) >> order;
  }
  return sum_of_lanes(sum) - gaps;
}

//! @brief No less than this is the sum of what magnitudes are without their lowest `order` bits.
TERSUM_SIMD std::uint32_t least_quotients(magnitude_counts const& counts, std::uint32_t order)
{
  std::uint64_t const remains = std::uint64_t{counts.some} * ((1u << order) - 1);
  return counts.sum > remains ? static_cast<std::uint32_t>((counts.sum - remains) >> order) : 0u;
}

//! @brief The way with the fewest bits of a chunk whose codes are not all zero, the first of those with as many. What cannot have
//! fewer is not counted.
template <int Size>
TERSUM_TARGET inline sized_orders choose_way(step_codes<Size> const& codes,
                                             magnitude_counts const& counts)
{
  constexpr auto size        = static_cast<std::uint32_t>(Size);
  order_choices const orders = find_orders(size, counts);
  std::uint32_t const some   = counts.some;
  std::uint32_t const follow = counts.end - some - counts.gaps;  // zeros behind the first of a run
  std::uint32_t const zeros =
    orders.runs == 0 ? follow : sum_of_runs(codes, counts.gaps, orders.runs);
  std::uint32_t const in_line = least_quotients(counts, orders.in_line);
  std::uint32_t const all     = least_quotients(counts, orders.all);
  sized_orders best =
    size_behind(counts, orders, zeros, sum_of_logarithms(codes, some, orders.behind));
  if (size_in_line(counts, orders, zeros, in_line).bits < best.bits) {
    sized_orders const way =
      size_in_line(counts, orders, zeros, sum_of_quotients(codes, orders.in_line));
    if (way.bits < best.bits) { best = way; }
  }
  if (size_of_all(size, counts, orders, all).bits < best.bits) {
    sized_orders const way = size_of_all(size, counts, orders, sum_of_quotients(codes, orders.all));
    if (way.bits < best.bits) { best = way; }
  }
  return best;
}
