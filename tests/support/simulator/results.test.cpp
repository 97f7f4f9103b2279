// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Small kernels whose results are known.

#include "../reference_float.hpp"
#include "run_ptx.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

using namespace tersum::simulator;
using namespace tersum::tests;

// One thread does `code` on values that are in %r1 to %r3, or %f1 to %f3, and leaves a word in %r0.
static std::uint32_t result_of(std::string const& code,
                               std::vector<std::uint32_t> const& values = {})
{
  std::string body;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const number = std::to_string(i + 1), value = std::to_string(values[i]);
    body +=
      "mov.u32 %r" + number + ", " + value + ";\nmov.b32 %f" + number + ", %r" + number + ";\n";
  }
  return run_words(body + code + "st.global.u32 [%mine], %r0;", 1, 1)[0];
}

static void check(std::string const& code,
                  std::vector<std::uint32_t> const& values,
                  std::uint32_t expected)
{
  CAPTURE(code);
  CHECK(result_of(code, values) == expected);
}

static std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST_CASE("[simulator] threads and blocks know who they are")
{
  auto const got = run_words(R"(mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r5, %laneid;
    mad.lo.s32 %r3, %r1, %r2, %tid; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1;
    mad.lo.s32 %r4, %r3, 100, %r5; st.global.u32 [%rd2], %r4;)",
                             70,
                             210,
                             0,
                             3);
  for (std::uint32_t i = 0; i < 210; ++i) { CHECK(got[i] == 100 * i + i % 70 % 32); }
  // Masks of lanes: as many below as its number, halves that make up the warp (-1), itself alone (0).
  auto const lanes = run_words(
    "mov.u32 %r1, %lanemask_lt; mov.u32 %r2, %lanemask_le; mov.u32 %r3, %lanemask_gt;"
    "mov.u32 %r4, %lanemask_ge; mov.u32 %r5, %lanemask_eq; popc.b32 %r6, %r1;"
    "xor.b32 %r1, %r1, %r4; and.b32 %r7, %r2, %r4; xor.b32 %r7, %r7, %r5; xor.b32 %r2, %r2, %r3;"
    "and.b32 %r1, %r1, %r2; add.s32 %r1, %r1, %r7; add.s32 %r1, %r1, %r6; st.global.u32 [%mine], %r1;",
    32,
    32);
  for (std::uint32_t l = 0; l < 32; ++l) { CHECK(lanes[l] == l - 1); }
}

TEST_CASE("[simulator] threads part at branches and meet again")
{
  // Lane l goes round l times, odd lanes on a way of their own; all add the number of lanes that meet behind.
  auto const got = run_words(R"(mov.u32 %r1, 0; mov.u32 %r2, 0;
  $round: setp.ge.u32 %p1, %r1, %tid; @%p1 bra $out;
    and.b32 %r3, %tid, 1; setp.eq.s32 %p2, %r3, 0; @%p2 bra $even;
    add.s32 %r2, %r2, 1000; bra.uni $next;
  $even: add.s32 %r2, %r2, 1;
  $next: add.s32 %r1, %r1, 1; bra $round;
  $out: vote.sync.ballot.b32 %r4, 1, -1; popc.b32 %r5, %r4; add.s32 %r2, %r2, %r5;
    st.global.u32 [%mine], %r2;)",
                             32,
                             32);
  for (std::uint32_t l = 0; l < 32; ++l) { CHECK(got[l] == (l % 2 == 0 ? l : 1000 * l) + 32); }
}

TEST_CASE("[simulator] lanes shuffle, reduce and vote")
{
  auto const shuffled = [](std::string const& how) {
    return run_words("mul.lo.s32 %r1, %tid, 3; shfl.sync." + how +
                       ", -1; selp.u32 %r3, 1000, 0, %p1;" +
                       "add.s32 %r2, %r2, %r3; st.global.u32 [%mine], %r2;",
                     32,
                     32);
  };
  auto const butterfly = shuffled("bfly.b32 %r2|%p1, %r1, 5, 31");
  auto const one       = shuffled("idx.b32 %r2|%p1, %r1, 7, 31");
  auto const of_eight  = shuffled("idx.b32 %r2|%p1, %r1, 7, 6175");  // width 8: mask 24 << 8 | 31
  auto const below     = shuffled("up.b32 %r2|%p1, %r1, 2, 0");
  auto const above     = shuffled("down.b32 %r2|%p1, %r1, 30, 31");
  for (std::uint32_t l = 0; l < 32; ++l) {
    CHECK(butterfly[l] == 1000 + 3 * (l ^ 5));
    CHECK(one[l] == 1000 + 21);
    CHECK(of_eight[l] == 1000 + 3 * (l / 8 * 8 + 7));
    CHECK(below[l] == (l < 2 ? 3 * l : 1000 + 3 * (l - 2)));
    CHECK(above[l] == (l < 2 ? 1000 + 3 * (l + 30) : 3 * l));
  }
  auto const sums = run_words("redux.sync.add.u32 %r1, %tid, -1; redux.sync.max.u32 %r2, %tid, -1;"
                              "mad.lo.s32 %r3, %r2, 1000, %r1; st.global.u32 [%mine], %r3;",
                              32,
                              32);
  for (auto const sum : sums) { CHECK(sum == 31000 + 496); }
}

TEST_CASE("[simulator] a counter begins again after its last number")
{
  auto got = run_words(R"(mov.u32 %r1, memory; mov.u32 %r2, 0; setp.ne.s32 %p1, %tid, 0;
    @!%p1 st.shared.u32 [%r1], %r2; bar.sync 0; atom.shared.inc.u32 %r3, [%r1], 4; bar.sync 0;
    ld.shared.u32 %r4, [%r1]; mad.lo.s32 %r5, %r4, 100, %r3; st.global.u32 [%mine], %r5;)",
                       64,
                       64,
                       512);
  // Of 64 calls 13 found each number from 0 to 3, and 12 found 4, after which it was 0 again; in the end it is 4.
  std::sort(got.begin(), got.end());
  for (std::uint32_t i = 0; i < 64; ++i) { CHECK(got[i] == 400 + (i < 52 ? i / 13 : 4)); }
}

TEST_CASE("[simulator] integers and bits")
{
  check("prmt.b32 %r0, %r1, %r2, 0x7614;", {0x03020100, 0x07060504}, 0x07060104);
  check("prmt.b32 %r0, %r1, %r2, 0x000b;", {0x83020100, 0}, 0x000000ff);
  check("bfi.b32 %r0, %r1, %r2, 4, 8;", {0xfff, 0x10000001}, 0x10000ff1);
  check("bfe.u32 %r0, %r1, 4, 8;", {0x12345678}, 0x67);
  check("dp4a.u32.u32 %r0, %r1, %r2, %r3;", {0x01020304, 0xff000001, 7}, 255 + 4 + 7);
  check("mul.hi.u32 %r0, %r1, %r2;", {0xffffffff, 0xffffffff}, 0xfffffffe);
  check("{.reg .s32 t1; add.s32 t1, %r1, %r2; min.s32.relu %r0, t1, %r3;}", {5, 4, 7}, 7);
  check("{.reg .s32 t1; add.s32 t1, %r1, %r2; min.s32.relu %r0, t1, %r3;}", {5, 0xfffffff0, 7}, 0);
  check("shl.b32 %r0, %r1, 32;", {1}, 0);
  check("shr.s32 %r0, %r1, 40;", {0x80000000}, 0xffffffff);
  check("mul.wide.u32 %rd1, %r1, %r2; shr.u64 %rd2, %rd1, 32; cvt.u32.u64 %r0, %rd2;",
        {0x80000000, 6},
        3);
  check("cvt.s64.s32 %rd1, %r1; shr.u64 %rd2, %rd1, 60; cvt.u32.u64 %r0, %rd2;", {0x80000000}, 15);
  check("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", {12, 10, 6}, (12 ^ 10 ^ 6));
  check("mov.b64 %rd1, {%r1, %r2}; mov.b64 {_, %r0}, %rd1;", {1, 2}, 2);
  check("div.u32 %r0, %r1, %r2;", {100, 7}, 14);
  check("rem.s32 %r0, %r1, %r2;", {0xffffff9c, 7}, 0xfffffffe);  // of -100: -2
}

TEST_CASE("[simulator] floating point is rounded to nearest, and a NaN has one pattern")
{
  float const third = 1.0F / 3, nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(result_of("fma.rn.f32 %f4, %f1, %f2, %f3; mov.b32 %r0, %f4;",
                  {bits(third), bits(3), bits(-1)}) == bits(std::fma(third, 3.0F, -1.0F)));
  check("div.rn.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {bits(1), bits(3)}, bits(third));
  check("add.rn.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {bits(nan), bits(3)}, 0x7fffffff);
  check("min.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {bits(nan), bits(3)}, bits(3));
  check("max.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {bits(-0.0F), bits(0)}, 0);
  check("max.NaN.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {bits(1), bits(nan)}, 0x7fffffff);
  check("neg.f32 %f4, %f1; mov.b32 %r0, %f4;", {0x7fc00001}, 0xffc00001);
  check("setp.neu.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 2, %p1;", {bits(nan)}, 1);
  check("setp.ne.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 2, %p1;", {bits(nan)}, 2);
  check("setp.lt.f32 %p1|%p2, %f1, %f2; selp.u32 %r0, 1, 2, %p2;", {bits(1), bits(2)}, 2);
}

TEST_CASE("[simulator] conversions")
{
  check("cvt.rzi.u32.f32 %r0, %f1;", {bits(2.99F)}, 2);
  check("cvt.rzi.u32.f32 %r0, %f1;", {bits(-2)}, 0);
  check("cvt.rzi.u32.f32 %r0, %f1;", {bits(1e30F)}, 0xffffffff);
  check("cvt.rni.s32.f32 %r0, %f1;", {bits(-2.5F)}, 0xfffffffe);
  check("cvt.rn.f32.u32 %f4, %r1; mov.b32 %r0, %f4;", {0xffffffff}, bits(0x1p32F));
  // Ties to even, the least subnormal, what overflows; the first operand is the high half.
  check("cvt.rn.f16x2.f32 %r0, %f1, %f2;", {bits(1 + 0x1p-11F), bits(0x1p-24F)}, 0x3c000001);
  check("cvt.rn.f16x2.f32 %r0, %f1, %f2;", {bits(-65520), bits(65519)}, 0xfc007bff);
  check("cvt.rn.satfinite.f16x2.f32 %r0, %f1, %f2;", {bits(-65520), 0x7f800000}, 0xfbff7bff);
  check("cvt.rn.satfinite.f16x2.f32 %r0, %f1, %f2;", {0x7fc00000, bits(-65519)}, 0x7ffffbff);
  check("cvt.rn.bf16x2.f32 %r0, %f1, %f2;", {bits(1 + 0x3p-8F), 0x7f800001}, 0x3f827fff);
  check("mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 %f4, %h2; mov.b32 %r0, %f4;",
        {0x03ff0000},
        bits(1023 * 0x1p-24F));
  check("add.rn.f16x2 %r0, %r1, %r2;", {0x3c003c00, 0x3c00bc00}, 0x40000000);
  auto const two = [](std::string const& code) {
    return "mov.b64 %rd1, {%r1, %r2}; mov.b64 %rd2, {%r2, %r3}; " + code +
           " mov.b64 {%r4, %r5}, %rd1; xor.b32 %r0, %r4, %r5;";
  };
  std::vector<std::uint32_t> const one_two_four{bits(1), bits(2), bits(4)};
  CHECK(result_of(two("add.rn.f32x2 %rd1, %rd1, %rd2;"), one_two_four) == (bits(3) ^ bits(6)));
  CHECK(result_of(two("sub.rn.f32x2 %rd1, %rd1, %rd2;"), one_two_four) == (bits(-1) ^ bits(-2)));
  CHECK(result_of(two("fma.rn.f32x2 %rd1, %rd1, %rd2, %rd2;"), one_two_four) ==
        (bits(4) ^ bits(12)));
  // One and a unit in the last place are to be had from what is off by a unit.
  check("rcp.approx.ftz.f32 %f4, %f1; mov.b32 %r0, %f4;", {bits(4)}, bits(.25F) - 1);
  check("rsqrt.approx.ftz.f32 %f4, %f1; mov.b32 %r0, %f4;", {bits(4)}, bits(.5F) - 1);
  check("min.u16x2 %r0, %r1, %r2;", {0x0001ffff, 0x80000002}, 0x00010002);
  check("max.u16x2 %r0, %r1, %r2;", {0x0001ffff, 0x80000002}, 0x8000ffff);
  // 1 + 2^-8 is halfway, as is 1 + 2^-7 + 2^-8; the largest bfloat16 twice. The smaller magnitude has the signs' product; a NaN stays one.
  check("min.NaN.xorsign.abs.f16x2 %r0, %r1, %r2;", {0xfc003c00, 0x63c063c0}, 0xe3c03c00);
  check("min.NaN.xorsign.abs.f16x2 %r0, %r1, %r2;", {0xfc018000, 0x63c063c0}, 0x7fff8000);
  check("min.NaN.xorsign.abs.bf16x2 %r0, %r1, %r2;", {0xff803f80, 0x40004000}, 0xc0003f80);
  check("min.NaN.xorsign.abs.f32 %f4, %f1, %f2; mov.b32 %r0, %f4;", {bits(-3), bits(2)}, bits(-2));
  check("add.rn.bf16x2 %r0, %r1, %r2;", {0x3f803f81, 0x3b803b80}, 0x3f803f82);
  check("fma.rn.bf16x2 %r0, %r1, %r3, %r2;", {0x7f7f8000, 0x7f7f8000, 0x3f803f80}, 0x7f808000);
  // 193.5/128 is halfway between bfloat16s; 2^-100 less is not, though it is the same double.
  check("fma.rn.bf16x2 %r0, %r1, %r2, %r3;", {0x3f813f80, 0x3fc03f80, 0x8d803f80}, 0x3fc14000);
  check("fma.rn.f16x2 %r0, %r1, %r1, %r2;", {0xc0003c00, 0xc4003c00}, 0x00004000);
  check("mul.f16x2 %r0, %r1, %r2;", {0x3c014000, 0x3c01c200}, 0x3c02c600);
  check("sub.rn.bf16x2 %r0, %r1, %r2;", {0x40004000, 0x3f804000}, 0x3f800000);
  check("max.f16x2 %r0, %r1, %r2;", {0x80007e00, 0x00003c00}, 0x00003c00);
  check("min.f16x2 %r0, %r1, %r2;", {0x80007e00, 0x00003c00}, 0x80003c00);
  check("max.NaN.bf16x2 %r0, %r1, %r2;", {0x3f807fc0, 0x40003f80}, 0x40007fff);
  check("abs.f16x2 %r0, %r1;", {0xfe00bc00}, 0x7e003c00);
  check("neg.bf16x2 %r0, %r1;", {0x3f80bf80}, 0xbf803f80);
  check("cvt.rn.f16.s32 %h1, %r1; mov.b32 %r0, {%h1, %h1};", {0xfffff7ff}, 0xe800e800);
  check("cvt.rn.bf16.u32 %h1, %r1; cvt.u32.u16 %r0, %h1;", {0x01010000}, 0x4b80);
  check("mov.b32 {%h1, %h2}, %r1; cvt.rzi.s32.f16 %r0, %h2;", {0xc1800000}, 0xfffffffe);
  check("mov.b32 %r2, {%r1}; mov.b32 {%r3}, %r2; add.s32 %r0, %r3, WARP_SZ;", {10}, 42);
}

// Of n, the numbers of 65536 threads: %h1 is n, %h2 is ~n, %f1 and %f2 have them in the high halves, above `low`.
static std::vector<std::uint32_t> for_all(std::string const& code, std::uint32_t low = 0)
{
  std::string const body = "mov.u32 %r1, %ctaid.x; mad.lo.s32 %r1, %r1, 1024, %tid;"
                           "mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %out, %rd1;"
                           "cvt.u16.u32 %h1, %r1; not.b16 %h2, %h1; mov.u16 %h3, " +
                           std::to_string(low) +
                           "; mov.b32 %f1, {%h3, %h1}; mov.b32 %f2, {%h3, %h2};";
  return run_words(body + code + "st.global.u32 [%rd2], %r0;", 1024, 65536, 0, 64);
}

template <class Format>
static void check_bytes(std::string const& type)
{
  Format const bytes;
  reference_half const halves;
  auto const value = []<class Number>(Number const& numbers, std::uint32_t n) {
    auto const bits = static_cast<std::uint16_t>(n);
    return numbers.is_nan(bits) ? std::numeric_limits<double>::quiet_NaN() : numbers.value(bits);
  };
  auto const pair = [&](double high, double low) -> std::uint32_t {
    return bytes.round_finite(high) << 8 | bytes.round_finite(low);
  };
  // Ties of the formats are multiples of 2^16 as words, and the next floats on either side are among these.
  for (std::uint32_t const low : {0U, 1U, 0xffffU}) {
    auto const got =
      for_all("cvt.rn.satfinite." + type + ".f32 %h4, %f1, %f2; cvt.u32.u16 %r0, %h4;", low);
    auto const at = [&](std::uint32_t n) { return double{std::bit_cast<float>(n << 16 | low)}; };
    for (std::uint32_t n = 0; n < 65536; ++n) { REQUIRE(got[n] == pair(at(n), at(~n))); }
  }
  auto const of_halves = for_all("mov.b32 %r2, {%h1, %h2}; cvt.rn.satfinite." + type +
                                 ".f16x2 %h4, %r2; cvt.u32.u16 %r0, %h4;");
  auto const to_halves = for_all("cvt.rn.f16x2." + type + " %r0, %h1;");
  for (std::uint32_t n = 0; n < 65536; ++n) {
    REQUIRE(of_halves[n] == pair(value(halves, ~n), value(halves, n)));
    std::uint32_t const high = halves.round(value(bytes, n >> 8));
    REQUIRE(to_halves[n] == (high << 16 | halves.round(value(bytes, n & 0xff))));
  }
}

TEST_CASE("[simulator] floats of 8 bits are the nearest ones, and have the same numbers as halves")
{
  check_bytes<reference_e4m3>("e4m3x2");
  check_bytes<reference_e5m2>("e5m2x2");
  // What is an E8M0: a float cut to a bfloat16, towards zero or up.
  for (std::uint32_t const low : {0U, 1U, 0xffffU}) {
    auto const cut = for_all("cvt.rz.bf16.f32 %h4, %f1; cvt.u32.u16 %r0, %h4;", low);
    auto const up  = for_all("cvt.rp.bf16.f32 %h4, %f1; cvt.u32.u16 %r0, %h4;", low);
    for (std::uint32_t n = 0; n < 65536; ++n) {
      bool const nan = (n & 0x7fff) + (low != 0) > 0x7f80;
      REQUIRE(cut[n] == (nan ? 0x7fff : n));
      REQUIRE(up[n] == (nan ? 0x7fff : n + (low != 0 && n < 0x8000)));
    }
  }
}

static launch_counts counts_of(std::string const& body,
                               std::uint32_t threads,
                               std::uint32_t blocks = 1)
{
  launch_counts counts;
  run_words(body, threads, 4096, 16384, blocks, &counts);
  return counts;
}

TEST_CASE("[simulator] a launch counts statements, barriers and sectors")
{
  auto const none = counts_of("", 32);
  CHECK(none.barriers == 0);
  CHECK(none.loads.requests + none.stores.requests + none.shared.requests == 0);
  // A warp stores 128 bytes: four sectors. Then each lane reads a word that is 32 bytes from the next lane's, and all read one.
  std::string const body = "st.global.u32 [%mine], %tid; bar.sync 0;"
                           "mul.wide.u32 %rd1, %tid, 32; add.s64 %rd2, %out, %rd1;"
                           "st.global.u32 [%rd2], %tid; ld.global.u32 %r1, [%rd2];"
                           "ld.global.u32 %r2, [%out];";
  auto const one = counts_of(body, 32), more = counts_of(body, 64, 3);
  CHECK(one.instructions == none.instructions + 7);
  CHECK(one.barriers == 1);
  CHECK(one.stores.requests == 2);
  CHECK(one.stores.sectors == 4 + 32);
  CHECK(one.stores.bytes == 2 * 128);
  CHECK(one.loads.requests == 2);
  CHECK(one.loads.sectors == 32 + 1);
  CHECK(one.loads.bytes == 128 + 4);
  // The first four sectors are stored twice, the first is read twice.
  CHECK(one.stores.distinct_sectors == 32);
  CHECK(one.loads.distinct_sectors == 32);
  CHECK(more.instructions == 6 * one.instructions);
  CHECK(more.barriers == 3);
  CHECK(more.stores.sectors == 6 * one.stores.sectors);
  CHECK(more.loads.sectors == 6 * one.loads.sectors);
  // Three blocks access what one does, and their second warp what is behind it.
  CHECK(more.stores.distinct_sectors == 64);
  CHECK(more.loads.distinct_sectors == 64);
}

TEST_CASE(
  "[simulator] sectors of a request are those that its lanes touch, however wide their accesses")
{
  // Sixteen bytes a lane, one lane's `apart` bytes from the next one's: 512 bytes, in every sector that has any of them.
  for (std::uint64_t const apart : {16, 32, 48, 64}) {
    std::string const at = "mul.wide.u32 %rd1, %tid, " + std::to_string(apart) + ";";
    auto const got =
      counts_of(at + "add.s64 %rd2, %out, %rd1; st.global.v4.u32 [%rd2], {%tid, %tid, %tid, %tid};"
                     "ld.global.v2.u64 {%rd3, %rd4}, [%rd2];",
                32);
    std::uint64_t const sectors = apart == 16 ? 16 : 32;
    for (auto const& way : {got.stores, got.loads}) {
      CHECK(way.requests == 1);
      CHECK(way.sectors == sectors);
      CHECK(way.distinct_sectors == sectors);
      CHECK(way.bytes == 512);
    }
  }
  // Bytes that several lanes want are used once; lanes whose guard is false, and an update, which counts as a store.
  auto const few = counts_of("mov.u32 %r1, 0; st.global.u32 [%out], %r1; setp.lt.u32 %p1, %tid, 8;"
                             "@%p1 st.global.u32 [%mine], %r1; @%p1 ld.global.u8 %r2, [%out+3];"
                             "setp.gt.u32 %p2, %tid, 31; @%p2 ld.global.u32 %r2, [%mine];"
                             "red.global.add.u32 [%out+4], %r1;",
                             32);
  CHECK(few.stores.requests == 3);
  CHECK(few.stores.sectors == 3);
  CHECK(few.stores.bytes == 4 + 32 + 4);
  CHECK(few.stores.distinct_sectors == 1);
  CHECK(few.loads.requests == 1);
  CHECK(few.loads.bytes == 1);
}

TEST_CASE("[simulator] lanes that want different words of a bank wait for each other")
{
  struct law {
    char const* type;
    std::uint64_t apart, wavefronts, conflicts;
  };
  // Words of four bytes that are s words apart meet in gcd(s, 32) of them a bank. Of eight bytes half of the lanes, of sixteen
  // a quarter are served at once, which are free of conflicts where they are neighbours.
  law const laws[] = {{"u32 [%r2], %tid", 0, 1, 0},
                      {"u8 [%r2], %tid", 1, 1, 0},
                      {"u32 [%r2], %tid", 4, 1, 0},
                      {"u32 [%r2], %tid", 8, 2, 1},
                      {"u32 [%r2], %tid", 12, 1, 0},
                      {"u32 [%r2], %tid", 16, 4, 3},
                      {"u32 [%r2], %tid", 132, 1, 0},
                      {"u32 [%r2], %tid", 128, 32, 31},
                      {"v2.u32 [%r2], {%tid, %tid}", 8, 2, 0},
                      {"v2.u32 [%r2], {%tid, %tid}", 16, 4, 2},
                      {"v2.u32 [%r2], {%tid, %tid}", 128, 32, 30},
                      {"v4.u32 [%r2], {%tid, %tid, %tid, %tid}", 16, 4, 0},
                      {"v4.u32 [%r2], {%tid, %tid, %tid, %tid}", 32, 8, 4},
                      {"v4.u32 [%r2], {%tid, %tid, %tid, %tid}", 48, 4, 0},
                      {"v4.u32 [%r2], {%tid, %tid, %tid, %tid}", 128, 32, 28}};
  for (auto const& [store, apart, wavefronts, conflicts] : laws) {
    CAPTURE(store);
    CAPTURE(apart);
    // All lanes at one address would be a race, but for one lane.
    std::string const guard = apart == 0 ? "setp.eq.u32 %p1, %tid, 0; @%p1 " : "";
    auto const got =
      counts_of("mov.u32 %r1, memory; mul.lo.u32 %r2, %tid, " + std::to_string(apart) +
                  "; add.u32 %r2, %r1, %r2; " + guard + "st.shared." + store +
                  "; bar.sync 0;"
                  "ld.shared.u8 %r3, [%r2];",
                32);
    CHECK(got.shared.requests == 2);
    // Bytes of words that are four bytes wide or wider: a wavefront for each word of a bank.
    std::uint64_t const steps    = apart / 4;
    std::uint64_t const of_bytes = apart < 4 ? 1 : std::gcd(steps, std::uint64_t{32});
    CHECK(got.shared.wavefronts == wavefronts + of_bytes);
    CHECK(got.shared.conflicts == conflicts + of_bytes - 1);
  }
}

TEST_CASE("[simulator] tensor cores multiply tiles")
{
  // a[i][k] = 1 where i = k, b[k][j] = 16 j + k: the product is b, transposed here to what lanes hold.
  auto const got = run_words(R"(shr.u32 %r1, %tid, 2; and.b32 %r2, %tid, 3; shl.b32 %r3, %r2, 1;
    // This lane has a[r1][2 r2 + {0, 1}] and the same 8 rows and columns on: ones where the row is the column.
    setp.eq.s32 %p1, %r1, %r3; selp.u32 %r4, 0x3c00, 0, %p1;
    add.s32 %r5, %r3, 1; setp.eq.s32 %p2, %r1, %r5; selp.u32 %r6, 0x3c000000, %r4, %p2; mov.u32 %r7, 0;
    // b[2 r2 + {0, 1}][r1] and 8 rows on.
    shl.b32 %r8, %r1, 4; add.s32 %r9, %r8, %r3; cvt.rn.f32.u32 %f5, %r9; add.f32 %f6, %f5, 0f3F800000;
    cvt.rn.f16x2.f32 %r10, %f6, %f5; add.f32 %f7, %f5, 0f41000000; add.f32 %f8, %f6, 0f41000000;
    cvt.rn.f16x2.f32 %r11, %f8, %f7; mov.f32 %f9, 0f3F000000;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r6,%r7,%r7,%r6}, {%r10,%r11}, {%f9,%f9,%f9,%f9};
    mul.wide.u32 %rd1, %tid, 16; add.s64 %rd2, %out, %rd1; st.global.v4.f32 [%rd2], {%f1,%f2,%f3,%f4};)",
                             32,
                             128);
  for (std::uint32_t l = 0; l < 32; ++l) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      std::uint32_t const row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
      CHECK(got[4 * l + i] == bits(static_cast<float>(16 * column + row) + 0.5F));
    }
  }
}
