// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Conversions between types, packing of registers, and arithmetic of pairs of halves.

#include "operations.hpp"
#include "small_floats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>

namespace tersum::simulator {

namespace {

template <class D, class S>
D converted(S a)
{
  return static_cast<D>(a);
}

enum class rounding { nearest, towards_zero, down, up };

template <rounding How, class T>
T whole(T a)
{
  if constexpr (How == rounding::nearest) { return std::nearbyint(a); }
  if constexpr (How == rounding::towards_zero) { return std::trunc(a); }
  if constexpr (How == rounding::down) { return std::floor(a); }
  if constexpr (How == rounding::up) { return std::ceil(a); }
}

// What is outside of the type becomes its nearest value; NaN becomes 0.
template <rounding How, class D, class S>
D to_integer(S a)
{
  if (a != a) { return 0; }
  S const rounded = whole<How>(a);
  S const above   = std::ldexp(S{1}, std::numeric_limits<D>::digits);
  if (rounded >= above) { return std::numeric_limits<D>::max(); }
  if (rounded < static_cast<S>(std::numeric_limits<D>::min())) {
    return std::numeric_limits<D>::min();
  }
  return static_cast<D>(rounded);
}

template <rounding How, class S>
void add_rounding(operation_table& t, std::string const& how, std::string const& from)
{
  for_integers([&]<class D>(named<D> to) {
    add<to_integer<How, D, S>, D, S>(t, "cvt." + how + "." + to.name + from);
  });
  add<whole<How, S>, S, S>(t, "cvt." + how + from + from);
}

template <class Number>
std::uint16_t small_number_of(float a)
{
  return Number::round(double{a});
}
// Two numbers in a word of twice their bits.
template <class Number>
using pair_of = std::conditional_t<Number::width == 7, std::uint16_t, std::uint32_t>;
template <class Number>
pair_of<Number> small_numbers_of(float high, float low)
{
  return static_cast<pair_of<Number>>(Number::round(double{high}) << (Number::width + 1) |
                                      Number::round(double{low}));
}
// Towards zero, or up.
template <bool Up>
std::uint16_t cut_bfloat16_of(float a)
{
  auto const bits = std::bit_cast<std::uint32_t>(a);
  bool const next = Up && a > 0 && (bits & 0xffff) != 0;
  return a != a ? std::uint16_t{0x7fff} : static_cast<std::uint16_t>((bits >> 16) + next);
}
float float_of_half(std::uint32_t a) { return static_cast<float>(half::value(a)); }
template <class Number>
std::uint16_t bytes_of_halves(std::uint32_t a)
{
  return small_numbers_of<Number>(float_of_half(a >> 16), float_of_half(a));
}
template <class Number>
std::uint32_t halves_of_bytes(std::uint16_t a)
{
  return std::uint32_t{half::round(Number::value(a >> 8))} << 16 | half::round(Number::value(a));
}
// As bits, since a NaN keeps them.
std::uint32_t float_of_bfloat16(std::uint16_t a) { return std::uint32_t{a} << 16; }

// Of each number in a word. A double has two bits more than twice those of one of 16: rounding to it first changes nothing.
template <class Number, auto Of, class Word, std::same_as<Word>... More>
Word of_small(Word a, More... more)
{
  Word result = 0;
  for (unsigned shift = 0; shift < 8 * sizeof(Word); shift += 16) {
    auto const at = [&](Word word) {
      return Number::value(static_cast<std::uint16_t>(word >> shift));
    };
    result |= static_cast<Word>(Word{Number::round(Of(at(a), at(more)...))} << shift);
  }
  return result;
}

double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product(double a, double b) { return a * b; }
// a b is exact. What their sum with c loses makes its last bit 1, so that it is no tie where the exact one is none.
double fused(double a, double b, double c)
{
  double const ab = a * b, all = ab + c, of_c = all - ab;
  double const lost = (ab - (all - of_c)) + (c - of_c);
  auto const bits   = std::bit_cast<std::uint64_t>(all);
  if (!(lost != 0) || !std::isfinite(all) || (bits & 1) != 0) { return all; }
  return std::nextafter(all, lost > 0 ? HUGE_VAL : -HUGE_VAL);
}
// Of a number and a NaN, the number; -0 is below +0.
double greater(double a, double b)
{
  if (a != a) { return b; }
  return b != b || a > b || (a == b && !std::signbit(a)) ? a : b;
}
double lesser(double a, double b) { return -greater(-a, -b); }
template <double (&Of)(double, double)>
double or_nan(double a, double b)
{
  return a != a || b != b ? a + b : Of(a, b);
}
template <class Word>
Word without_signs(Word a)
{
  return static_cast<Word>(a & static_cast<Word>(0x7fff7fffU));
}
template <class Word>
Word other_signs(Word a)
{
  return static_cast<Word>(a ^ static_cast<Word>(0x80008000U));
}

// Of an integer of at most 32 bits, which is exact in double; and the other way.
template <class Number, class S>
std::uint16_t small_of(S a)
{
  return Number::round(static_cast<double>(a));
}
template <class Number, rounding How, class D>
D integer_of_small(std::uint16_t a)
{
  return to_integer<How, D>(Number::value(a));
}

template <class Number, class Word>
void add_small(operation_table& t, std::string const& type)
{
  for (std::string const rounding : {"", ".rn"}) {
    add<of_small<Number, sum, Word, Word>, Word, Word, Word>(t, "add" + rounding + type);
    add<of_small<Number, difference, Word, Word>, Word, Word, Word>(t, "sub" + rounding + type);
    add<of_small<Number, product, Word, Word>, Word, Word, Word>(t, "mul" + rounding + type);
  }
  add<of_small<Number, fused, Word, Word, Word>, Word, Word, Word, Word>(t, "fma.rn" + type);
  add<of_small<Number, greater, Word, Word>, Word, Word, Word>(t, "max" + type);
  add<of_small<Number, lesser, Word, Word>, Word, Word, Word>(t, "min" + type);
  add<of_small<Number, or_nan<greater>, Word, Word>, Word, Word, Word>(t, "max.NaN" + type);
  add<of_small<Number, or_nan<lesser>, Word, Word>, Word, Word, Word>(t, "min.NaN" + type);
  add<without_signs<Word>, Word, Word>(t, "abs" + type);
  add<other_signs<Word>, Word, Word>(t, "neg" + type);
}

template <class Number>
void add_bytes(operation_table& t, std::string const& type)
{
  using word = std::uint32_t;
  add<small_numbers_of<Number>, std::uint16_t, float, float>(t,
                                                             "cvt.rn.satfinite." + type + ".f32");
  add<bytes_of_halves<Number>, std::uint16_t, word>(t, "cvt.rn.satfinite." + type + ".f16x2");
  add<halves_of_bytes<Number>, word, std::uint16_t>(t, "cvt.rn.f16x2." + type);
}

template <class Number>
void add_small_numbers(operation_table& t, std::string const& type)
{
  add<small_number_of<Number>, std::uint16_t, float>(t, "cvt.rn." + type + ".f32");
  add<small_numbers_of<Number>, std::uint32_t, float, float>(t, "cvt.rn." + type + "x2.f32");
  add_small<Number, std::uint16_t>(t, "." + type);
  add_small<Number, std::uint32_t>(t, "." + type + "x2");
  for_integers([&]<class D>(named<D> other) {
    if constexpr (sizeof(D) <= 4) {
      add<small_of<Number, D>, std::uint16_t, D>(t, "cvt.rn." + type + "." + other.name);
    }
    auto const ends = std::string{"."} + other.name + "." + type;
    add<integer_of_small<Number, rounding::nearest, D>, D, std::uint16_t>(t, "cvt.rni" + ends);
    add<integer_of_small<Number, rounding::towards_zero, D>, D, std::uint16_t>(t, "cvt.rzi" + ends);
    add<integer_of_small<Number, rounding::down, D>, D, std::uint16_t>(t, "cvt.rmi" + ends);
    add<integer_of_small<Number, rounding::up, D>, D, std::uint16_t>(t, "cvt.rpi" + ends);
  });
}

// The smaller magnitude with the signs' product, or a NaN where either is one: of a float, and of each half of words.
std::uint32_t least_magnitude(std::uint32_t a, std::uint32_t b)
{
  std::uint32_t const left = a & 0x7fffffffU, right = b & 0x7fffffffU;
  if (std::max(left, right) > 0x7f800000U) { return 0x7fffffffU; }
  return std::min(left, right) | ((a ^ b) & 0x80000000U);
}

template <std::uint32_t Infinity>
std::uint32_t least_magnitudes(std::uint32_t a, std::uint32_t b)
{
  std::uint32_t result = 0;
  for (unsigned const at : {0U, 16U}) {
    std::uint32_t const left = a >> at & 0x7fffU, right = b >> at & 0x7fffU;
    std::uint32_t const sign = (a ^ b) >> at & 0x8000U;
    bool const nan           = std::max(left, right) > Infinity;
    result |= (nan ? 0x7fffU : std::min(left, right) | sign) << at;
  }
  return result;
}

constexpr std::uint64_t low_bits(unsigned bits)
{
  return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// d, {a, b, ...}: the first in the low bits.
template <unsigned Bits>
void pack(warp& w, instruction const& i, lane_set active)
{
  unsigned const parts = i.operands - 1U, width = Bits / parts;
  for_lanes(active, [&](unsigned l) {
    std::uint64_t all = 0;
    for (unsigned k = 0; k < parts; ++k) {
      all |= (w.lanes(i.slots[1 + k])[l] & low_bits(width)) << (k * width);
    }
    w.lanes(i.slots[0])[l] = all;
  });
}

template <unsigned Bits>
void unpack(warp& w, instruction const& i, lane_set active)
{
  unsigned const parts = i.operands - 1U, width = Bits / parts;
  for_lanes(active, [&](unsigned l) {
    std::uint64_t const all = w.lanes(i.slots[parts])[l];
    for (unsigned k = 0; k < parts; ++k) {
      w.lanes(i.slots[k])[l] = all >> (k * width) & low_bits(width);
    }
  });
}

}  // namespace

void add_conversions(operation_table& t)
{
  for_integers([&]<class D>(named<D> to) {
    auto const name = std::string{"cvt."} + to.name + ".";
    for_integers([&]<class S>(named<S> from) { add<converted<D, S>, D, S>(t, name + from.name); });
    add<converted<D, std::uint8_t>, D, std::uint8_t>(t, name + "u8");
    add<converted<D, std::int8_t>, D, std::int8_t>(t, name + "s8");
    add<converted<float, D>, float, D>(t, std::string{"cvt.rn.f32."} + to.name);
    add<converted<double, D>, double, D>(t, std::string{"cvt.rn.f64."} + to.name);
    add<converted<std::uint8_t, D>, std::uint8_t, D>(t, std::string{"cvt.u8."} + to.name);
    add<converted<std::int8_t, D>, std::int8_t, D>(t, std::string{"cvt.s8."} + to.name);
  });
  for_floats([&]<class S>(named<S> from) {
    auto const name = std::string{"."} + from.name;
    add_rounding<rounding::nearest, S>(t, "rni", name);
    add_rounding<rounding::towards_zero, S>(t, "rzi", name);
    add_rounding<rounding::down, S>(t, "rmi", name);
    add_rounding<rounding::up, S>(t, "rpi", name);
  });
  add<converted<double, float>, double, float>(t, "cvt.f64.f32");
  add<converted<float, double>, float, double>(t, "cvt.rn.f32.f64");
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  add<small_number_of<finite_half>, u16, float>(t, "cvt.rn.satfinite.f16.f32");
  add<small_numbers_of<finite_half>, u32, float, float>(t, "cvt.rn.satfinite.f16x2.f32");
  add<cut_bfloat16_of<false>, u16, float>(t, "cvt.rz.bf16.f32");
  add<cut_bfloat16_of<true>, u16, float>(t, "cvt.rp.bf16.f32");
  add_bytes<e4m3>(t, "e4m3x2");
  add_bytes<e5m2>(t, "e5m2x2");
  add<float_of_half, float, u16>(t, "cvt.f32.f16");
  add<float_of_bfloat16, u32, u16>(t, "cvt.f32.bf16");
  add_small_numbers<half>(t, "f16");
  add_small_numbers<bfloat16>(t, "bf16");
  add<least_magnitude, u32, u32, u32>(t, "min.NaN.xorsign.abs.f32");
  add<least_magnitudes<0x7c00>, u32, u32, u32>(t, "min.NaN.xorsign.abs.f16x2");
  add<least_magnitudes<0x7f80>, u32, u32, u32>(t, "min.NaN.xorsign.abs.bf16x2");
  t["pack.b32"]   = {.run = &pack<32>, .form = "dS"};
  t["pack.b64"]   = {.run = &pack<64>, .form = "dS"};
  t["unpack.b32"] = {.run = &unpack<32>, .form = "Ds", .count = 0};
  t["unpack.b64"] = {.run = &unpack<64>, .form = "Ds", .count = 0};
}

}  // namespace tersum::simulator
