// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Integers, bits and predicates.

#include "operations.hpp"

#include <algorithm>
#include <limits>

namespace tersum::simulator {

namespace {

// Sums wrap, whatever the sign.
template <class T>
using unsigned_of = std::make_unsigned_t<T>;
template <class T>
using wider_of =
  std::conditional_t<sizeof(T) == 2,
                     std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                     std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

template <class T>
T product(T a, T b)
{
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class T>
T sum(T a, T b)
{
  return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T>
T difference(T a, T b)
{
  return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
template <class T>
T negative(T a)
{
  return difference(T{0}, a);
}
template <class T>
T high_product(T a, T b)
{
  return static_cast<T>(wider_of<T>{a} * b >> std::numeric_limits<unsigned_of<T>>::digits);
}
template <class T>
wider_of<T> wide_product(T a, T b)
{
  return product(wider_of<T>{a}, wider_of<T>{b});
}
template <class T>
T product_and_sum(T a, T b, T c)
{
  return sum(product(a, b), c);
}
template <class T>
wider_of<T> wide_product_and_sum(T a, T b, wider_of<T> c)
{
  return sum(wide_product(a, b), c);
}
template <class T>
T quotient(T a, T b)
{
  if (b == 0) { fail("divides by zero"); }
  if (std::is_signed_v<T> && b == T(-1)) { return negative(a); }
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b)
{
  return difference(a, product(quotient(a, b), b));
}
template <class T>
T least(T a, T b)
{
  return std::min(a, b);
}
template <class T>
T greatest(T a, T b)
{
  return std::max(a, b);
}
template <class T>
T magnitude(T a)
{
  return a < 0 ? negative(a) : a;
}
std::int32_t least_above_zero(std::int32_t a, std::int32_t b)
{
  return std::max(std::min(a, b), 0);
}
template <class T>
T shift_left(T a, std::uint32_t by)
{
  return by >= sizeof(T) * 8 ? T{0} : static_cast<T>(a << by);
}
template <class T>
T shift_right(T a, std::uint32_t by)
{
  constexpr std::uint32_t most = sizeof(T) * 8 - 1;
  if (by > most) { return static_cast<T>(std::is_signed_v<T> && a < 0 ? -1 : 0); }
  return static_cast<T>(a >> by);
}
template <class T>
T both(T a, T b)
{
  return static_cast<T>(a & b);
}
template <class T>
T either(T a, T b)
{
  return static_cast<T>(a | b);
}
template <class T>
T unequal(T a, T b)
{
  return static_cast<T>(a ^ b);
}
template <class T>
T inverse(T a)
{
  return std::is_same_v<T, bool> ? static_cast<T>(!a) : static_cast<T>(~std::uint64_t{a});
}
template <class T>
T same(T a)
{
  return a;
}
template <class T>
T chosen(T a, T b, bool first)
{
  return first ? a : b;
}
template <class T>
std::uint32_t population(T a)
{
  return static_cast<std::uint32_t>(std::popcount(a));
}
template <class T>
std::uint32_t leading_zeros(T a)
{
  return static_cast<std::uint32_t>(std::countl_zero(a));
}
std::uint32_t reversed(std::uint32_t a)
{
  std::uint32_t result = 0;
  for (unsigned k = 0; k < 32; ++k) { result |= (a >> k & 1U) << (31 - k); }
  return result;
}
// Low `length` bits of a replace those of b from `from` on.
template <class T>
T insert_bits(T a, T b, std::uint32_t from, std::uint32_t length)
{
  from &= 0xFF;
  length &= 0xFF;
  T const mask =
    shift_left(static_cast<T>(length >= sizeof(T) * 8 ? ~T{0} : (T{1} << length) - 1), from);
  return static_cast<T>((b & ~mask) | (shift_left(a, from) & mask));
}
template <class T>
T extract_bits(T a, std::uint32_t from, std::uint32_t length)
{
  from &= 0xFF;
  length &= 0xFF;
  T const mask = static_cast<T>(length >= sizeof(T) * 8 ? ~T{0} : (T{1} << length) - 1);
  return static_cast<T>(shift_right(a, from) & mask);
}
// Byte k of the result is the one that nibble k of the selector names, or its sign where the nibble's high bit is set.
std::uint32_t permuted(std::uint32_t a, std::uint32_t b, std::uint32_t selector)
{
  std::uint64_t const bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result      = 0;
  for (unsigned k = 0; k < 4; ++k) {
    unsigned const nibble = selector >> (4 * k) & 0xFU;
    auto byte             = static_cast<std::uint32_t>(bytes >> (8 * (nibble & 7)) & 0xFF);
    if ((nibble & 8) != 0) { byte = (byte & 0x80) != 0 ? 0xFF : 0; }
    result |= byte << (8 * k);
  }
  return result;
}
std::uint32_t dot_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c)
{
  for (unsigned k = 0; k < 32; k += 8) { c += (a >> k & 0xFFU) * (b >> k & 0xFFU); }
  return c;
}
// 64 bits, high before low, shifted by up to 31.
std::uint32_t funnel_left(std::uint32_t low, std::uint32_t high, std::uint32_t by)
{
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) << (by & 31) >> 32);
}
std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high, std::uint32_t by)
{
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> (by & 31));
}
std::uint32_t looked_up(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table)
{
  std::uint32_t result = 0;
  for (unsigned k = 0; k < 8; ++k) {
    if ((table >> k & 1U) == 0) { continue; }
    result |= ((k & 4) != 0 ? a : ~a) & ((k & 2) != 0 ? b : ~b) & ((k & 1) != 0 ? c : ~c);
  }
  return result;
}

std::uint32_t least_halves(std::uint32_t a, std::uint32_t b)
{
  std::uint32_t const high = least(a >> 16, b >> 16);
  return high << 16 | least(a & 0xffffu, b & 0xffffu);
}
std::uint32_t greatest_halves(std::uint32_t a, std::uint32_t b)
{
  std::uint32_t const high = greatest(a >> 16, b >> 16);
  return high << 16 | greatest(a & 0xffffu, b & 0xffffu);
}

}  // namespace

void add_integer_operations(operation_table& t)
{
  for_integers([&]<class T>(named<T> type) {
    auto const name = std::string{"."} + type.name;
    add<sum<T>, T, T, T>(t, "add" + name);
    add<difference<T>, T, T, T>(t, "sub" + name);
    add<product<T>, T, T, T>(t, "mul.lo" + name);
    add<product_and_sum<T>, T, T, T, T>(t, "mad.lo" + name);
    if constexpr (sizeof(T) < 8) {
      add<high_product<T>, T, T, T>(t, "mul.hi" + name);
      add<wide_product<T>, wider_of<T>, T, T>(t, "mul.wide" + name);
      add<wide_product_and_sum<T>, wider_of<T>, T, T, wider_of<T>>(t, "mad.wide" + name);
    }
    add<quotient<T>, T, T, T>(t, "div" + name);
    add<remainder<T>, T, T, T>(t, "rem" + name);
    add<least<T>, T, T, T>(t, "min" + name);
    add<greatest<T>, T, T, T>(t, "max" + name);
    add<shift_right<T>, T, T, std::uint32_t>(t, "shr" + name);
    add<same<T>, T, T>(t, "mov" + name);
    add<chosen<T>, T, T, T, bool>(t, "selp" + name);
    if constexpr (std::is_signed_v<T>) {
      add<negative<T>, T, T>(t, "neg" + name);
      add<magnitude<T>, T, T>(t, "abs" + name);
    } else if constexpr (sizeof(T) > 2) {
      add<extract_bits<T>, T, T, std::uint32_t, std::uint32_t>(t, "bfe" + name);
    }
  });
  add<least_halves, std::uint32_t, std::uint32_t, std::uint32_t>(t, "min.u16x2");
  add<greatest_halves, std::uint32_t, std::uint32_t, std::uint32_t>(t, "max.u16x2");
  for_bits([&]<class T>(named<T> type) {
    auto const name = std::string{"."} + type.name;
    add<both<T>, T, T, T>(t, "and" + name);
    add<either<T>, T, T, T>(t, "or" + name);
    add<unequal<T>, T, T, T>(t, "xor" + name);
    add<inverse<T>, T, T>(t, "not" + name);
    add<shift_left<T>, T, T, std::uint32_t>(t, "shl" + name);
    add<shift_right<T>, T, T, std::uint32_t>(t, "shr" + name);
    add<same<T>, T, T>(t, "mov" + name);
    add<chosen<T>, T, T, T, bool>(t, "selp" + name);
    if constexpr (sizeof(T) > 2) {
      add<population<T>, std::uint32_t, T>(t, "popc" + name);
      add<leading_zeros<T>, std::uint32_t, T>(t, "clz" + name);
      add<insert_bits<T>, T, T, T, std::uint32_t, std::uint32_t>(t, "bfi" + name);
    }
  });
  add<both<bool>, bool, bool, bool>(t, "and.pred");
  add<either<bool>, bool, bool, bool>(t, "or.pred");
  add<unequal<bool>, bool, bool, bool>(t, "xor.pred");
  add<inverse<bool>, bool, bool>(t, "not.pred");
  add<same<bool>, bool, bool>(t, "mov.pred");
  using u32 = std::uint32_t;
  add<least_above_zero, std::int32_t, std::int32_t, std::int32_t>(t, "min.s32.relu");
  add<reversed, u32, u32>(t, "brev.b32");
  add<permuted, u32, u32, u32, u32>(t, "prmt.b32");
  add<dot_bytes, u32, u32, u32, u32>(t, "dp4a.u32.u32");
  add<funnel_left, u32, u32, u32, u32>(t, "shf.l.wrap.b32");
  add<funnel_right, u32, u32, u32, u32>(t, "shf.r.wrap.b32");
  add<looked_up, u32, u32, u32, u32, u32>(t, "lop3.b32");
}

}  // namespace tersum::simulator
