// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arithmetic of floating point, rounded to nearest, and comparisons of all types.

#include "operations.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace tersum::simulator {

namespace {

template <class T>
T sum(T a, T b)
{
  return a + b;
}
template <class T>
T difference(T a, T b)
{
  return a - b;
}
template <class T>
T product(T a, T b)
{
  return a * b;
}
template <class T>
T quotient(T a, T b)
{
  return a / b;
}
template <class T>
T square_root(T a)
{
  return std::sqrt(a);
}
template <class T>
T reciprocal(T a)
{
  return T{1} / a;
}
// The result of a device is off by a unit in the last place at most, or two. So is this one: what is made of it must not need more.
float about(double exact, float a)
{
  float const nearest = static_cast<float>(exact);
  if (!std::isnormal(nearest)) { return nearest; }
  bool const up = (std::bit_cast<std::uint32_t>(a) & 1u) != 0;
  return std::nextafterf(nearest, up ? HUGE_VALF : 0.0f);
}
// Two floats in a register, the first in the low half.
template <float (&Of)(float, float)>
std::uint64_t of_two(std::uint64_t a, std::uint64_t b)
{
  std::uint64_t both = 0;
  for (unsigned shift = 0; shift < 64; shift += 32) {
    float const x = std::bit_cast<float>(static_cast<std::uint32_t>(a >> shift));
    float const y = std::bit_cast<float>(static_cast<std::uint32_t>(b >> shift));
    both |= std::uint64_t{std::bit_cast<std::uint32_t>(Of(x, y))} << shift;
  }
  return both;
}
std::uint64_t fused_two(std::uint64_t a, std::uint64_t b, std::uint64_t c)
{
  std::uint64_t both = 0;
  for (unsigned shift = 0; shift < 64; shift += 32) {
    auto const at = [&](std::uint64_t word) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(word >> shift));
    };
    both |= std::uint64_t{std::bit_cast<std::uint32_t>(std::fma(at(a), at(b), at(c)))} << shift;
  }
  return both;
}

float reciprocal_about(float a) { return about(1 / static_cast<double>(a), a); }
float quotient_about(float a, float b) { return about(static_cast<double>(a) / b, a); }
float square_root_about(float a) { return about(std::sqrt(static_cast<double>(a)), a); }
// What nvcc makes of floats with -ftz=true.
float flushed(float a) { return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a; }
template <float (&Of)(float)>
float of_flushed(float a)
{
  return flushed(Of(flushed(a)));
}
template <float (&Of)(float, float)>
float of_flushed(float a, float b)
{
  return flushed(Of(flushed(a), flushed(b)));
}
float root_reciprocal_about(float a) { return about(1 / std::sqrt(static_cast<double>(a)), a); }
// Of a number and a NaN, the number; -0 is below +0.
template <class T>
T least(T a, T b)
{
  if (a != a) { return b; }
  if (b != b) { return a; }
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
T greatest(T a, T b)
{
  if (a != a) { return b; }
  if (b != b) { return a; }
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// These move bits: a NaN keeps its own.
template <class T>
using word_of = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
constexpr word_of<T> sign_bit = word_of<T>{1} << (sizeof(T) * 8 - 1);

template <class T>
word_of<T> negative(word_of<T> a)
{
  return a ^ sign_bit<T>;
}
template <class T>
word_of<T> magnitude(word_of<T> a)
{
  return a & ~sign_bit<T>;
}
template <class W>
W same(W a)
{
  return a;
}
template <class W>
W chosen(W a, W b, bool first)
{
  return first ? a : b;
}

enum class combination { none, conjunction, disjunction };

// setp p|q, a, b and perhaps c: p = (a R b) with c, q = !(a R b) with c.
template <auto Relation, class T, combination With>
void compare(warp& w, instruction const& i, lane_set active)
{
  std::uint64_t* const p       = w.lanes(i.slots[0]);
  std::uint64_t* const q       = w.lanes(i.slots[1]);
  std::uint64_t const* const a = w.lanes(i.slots[2]);
  std::uint64_t const* const b = w.lanes(i.slots[3]);
  std::uint64_t const* const c = With == combination::none ? nullptr : w.lanes(i.slots[4]);
  for_lanes(active, [&](unsigned l) {
    bool const holds = Relation(value_of<T>(a[l]), value_of<T>(b[l]));
    bool const with  = c != nullptr && (c[l] & 1) != 0;
    bool yes = holds, no = !holds;
    if constexpr (With == combination::conjunction) { yes = yes && with, no = no && with; }
    if constexpr (With == combination::disjunction) { yes = yes || with, no = no || with; }
    p[l] = yes;
    q[l] = no;
  });
}

template <auto Relation, class T>
void add_comparison(operation_table& t, std::string const& relation, std::string const& type)
{
  t["setp." + relation + "." + type]     = {.run  = &compare<Relation, T, combination::none>,
                                            .form = "pss"};
  t["setp." + relation + ".and." + type] = {.run  = &compare<Relation, T, combination::conjunction>,
                                            .form = "psss"};
  t["setp." + relation + ".or." + type]  = {.run  = &compare<Relation, T, combination::disjunction>,
                                            .form = "psss"};
}

template <class T>
void add_comparisons(operation_table& t, std::string const& type)
{
  add_comparison<[](T a, T b) { return a == b; }, T>(t, "eq", type);
  // An ordered "not equal" is false for NaN, unlike that of C++.
  add_comparison<[](T a, T b) { return (a < b) || (a > b); }, T>(t, "ne", type);
  add_comparison<[](T a, T b) { return a < b; }, T>(t, "lt", type);
  add_comparison<[](T a, T b) { return a <= b; }, T>(t, "le", type);
  add_comparison<[](T a, T b) { return (a > b); }, T>(t, "gt", type);
  add_comparison<[](T a, T b) { return (a >= b); }, T>(t, "ge", type);
  if constexpr (std::is_floating_point_v<T>) {
    add_comparison<[](T a, T b) { return !((a < b) || (a > b)); }, T>(t, "equ", type);
    add_comparison<[](T a, T b) { return !(a == b); }, T>(t, "neu", type);
    add_comparison<[](T a, T b) { return !(a >= b); }, T>(t, "ltu", type);
    add_comparison<[](T a, T b) { return !(a > b); }, T>(t, "leu", type);
    add_comparison<[](T a, T b) { return !(a <= b); }, T>(t, "gtu", type);
    add_comparison<[](T a, T b) { return !(a < b); }, T>(t, "geu", type);
    add_comparison<[](T a, T b) { return a == a && b == b; }, T>(t, "num", type);
    add_comparison<[](T a, T b) { return a != a || b != b; }, T>(t, "nan", type);
  }
}

//! @name d = a b + c, rounded once
//! Without the processor's own instruction it is a function of the C library, which takes most of the time of a simulation.
//! @{
template <class T>
[[gnu::always_inline]] inline void fuse_lanes(warp& w, instruction const& i, lane_set active)
{
  std::uint64_t* const d       = w.lanes(i.slots[0]);
  std::uint64_t const *const a = w.lanes(i.slots[1]), *const b = w.lanes(i.slots[2]),
                             *const c = w.lanes(i.slots[3]);
  for (unsigned l = 0; l < warp_lanes; ++l) {
    if ((active >> l & 1) != 0) {
      d[l] = bits_of<T>(std::fma(value_of<T>(a[l]), value_of<T>(b[l]), value_of<T>(c[l])));
    }
  }
}

template <class T>
void fuse_by_library(warp& w, instruction const& i, lane_set active)
{
  fuse_lanes<T>(w, i, active);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void fuse_by_instruction(warp& w, instruction const& i, lane_set active)
{
  fuse_lanes<T>(w, i, active);
}
#endif

template <class T>
[[nodiscard]] auto fuse_function()
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return &fuse_by_instruction<T>;
  }
#endif
  return &fuse_by_library<T>;
}
//! @}

}  // namespace

void add_float_operations(operation_table& t)
{
  for_floats([&]<class T>(named<T> type) {
    auto const name = std::string{"."} + type.name;
    for (std::string const rounding : {"", ".rn"}) {
      add<sum<T>, T, T, T>(t, "add" + rounding + name);
      add<difference<T>, T, T, T>(t, "sub" + rounding + name);
      add<product<T>, T, T, T>(t, "mul" + rounding + name);
    }
    add<quotient<T>, T, T, T>(t, "div.rn" + name);
    t["fma.rn" + name] = {.run = fuse_function<T>(), .form = "dsss"};
    add<square_root<T>, T, T>(t, "sqrt.rn" + name);
    add<reciprocal<T>, T, T>(t, "rcp.rn" + name);
    add<least<T>, T, T, T>(t, "min" + name);
    add<greatest<T>, T, T, T>(t, "max" + name);
    using W = word_of<T>;
    add<negative<T>, W, W>(t, "neg" + name);
    add<magnitude<T>, W, W>(t, "abs" + name);
    add<same<W>, W, W>(t, "mov" + name);
    add<chosen<W>, W, W, W, bool>(t, "selp" + name);
    add_comparisons<T>(t, type.name);
  });
  add<[](float a, float b) {
    return std::isnan(a) || std::isnan(b) ? std::bit_cast<float>(0x7fffffffU) : std::max(a, b);
  },
      float,
      float,
      float>(t, "max.NaN.f32");
  add<[](float a, float b, float c) { return std::min(1.0f, std::max(0.0f, std::fma(a, b, c))); },
      float,
      float,
      float,
      float>(t, "fma.rn.sat.f32");
  using two = std::uint64_t;
  add<of_two<sum<float>>, two, two, two>(t, "add.rn.f32x2");
  add<of_two<difference<float>>, two, two, two>(t, "sub.rn.f32x2");
  add<fused_two, two, two, two, two>(t, "fma.rn.f32x2");
  add<of_flushed<sum<float>>, float, float, float>(t, "add.ftz.f32");
  add<of_flushed<difference<float>>, float, float, float>(t, "sub.ftz.f32");
  add<of_flushed<product<float>>, float, float, float>(t, "mul.ftz.f32");
  add<of_flushed<quotient_about>, float, float, float>(t, "div.approx.ftz.f32");
  add<quotient_about, float, float, float>(t, "div.full.f32");
  add<of_flushed<square_root_about>, float, float>(t, "sqrt.approx.ftz.f32");
  add<square_root_about, float, float>(t, "sqrt.approx.f32");
  add_comparison<[](float a, float b) { return a == a && b == b; }, float>(t, "num.ftz", "f32");
  add_comparison<[](float a, float b) { return a != a || b != b; }, float>(t, "nan.ftz", "f32");
  add<reciprocal_about, float, float>(t, "rcp.approx.ftz.f32");
  add<root_reciprocal_about, float, float>(t, "rsqrt.approx.ftz.f32");
  for_integers([&]<class T>(named<T> type) { add_comparisons<T>(t, type.name); });
  for_bits([&]<class T>(named<T> type) {
    add_comparison<[](T a, T b) { return a == b; }, T>(t, "eq", type.name);
    add_comparison<[](T a, T b) { return a != b; }, T>(t, "ne", type.name);
  });
}

}  // namespace tersum::simulator
