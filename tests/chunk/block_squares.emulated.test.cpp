// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Squared norms of chunks as threads and lanes add them up, against the tree of the wire format, bit for bit.

#include "support/emulator.hpp"
#include "support/mismatches.hpp"

#include <tersum/exchange/detail/block_measure.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace tersum;
using emulator::host_context;
using tersum::tests::mismatches;

template <int Size>
using codec_of = codec<top_chunks<Size>, no_rotation, cast<half>, in_wire>;

// 256 sums, or as many as a chunk fills, then pairs of neighbours.
template <class Element>
float reference(Element const* chunk, std::size_t size)
{
  std::vector<float> sums(std::min<std::size_t>(size, 256), 0.0f);
  for (std::size_t i = 0; i < size; ++i) {
    float const value = to_float(chunk[i]);
    float& sum        = sums[i % 256];
    sum               = std::fma(value, value, sum);
  }
  for (std::size_t count = sums.size(); count > 1; count /= 2) {
    for (std::size_t i = 0; i < count / 2; ++i) { sums[i] = sums[2 * i] + sums[2 * i + 1]; }
  }
  return sums[0];
}

// What a warp has to measure, of bits at random that are finite. Upper bits of a chunk are all different, mostly alike, or
// alike: sums of squares then end anywhere, also where squares are subnormal.
template <class Element>
std::vector<Element> any_values(std::size_t count, std::size_t size, std::mt19937& random)
{
  auto const any = [&] { return static_cast<std::uint32_t>(random()); };
  std::vector<Element> all(count);
  std::uint32_t alike = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % size == 0) { alike = any() & ~(1u << 26); }  // or no half would be finite
    do {
      std::size_t const kind    = i / size % 3;
      bool const free           = kind == 0 || (kind == 1 && any() % 64 == 0);
      std::uint32_t const low   = 0xffffffffu >> (free ? 0 : 6);
      std::uint32_t const upper = ((any() & low) | (alike & ~low)) >> (32 - 8 * sizeof(Element));
      std::memcpy(&all[i], &upper, sizeof(Element));
    } while (!std::isfinite(to_float(all[i])));
  }
  return all;
}

template <int Size, class Element>
void compare(mismatches& wrong)
{
  using codec_type = codec_of<Size>;
  using share      = detail::codec_norm_shape<codec_type, Element>;
  std::mt19937 random(Size);
  for (int round = 0; round < 8; ++round) {
    auto gradient = any_values<Element>(share::chunks_per_warp * Size, Size, random);
    std::vector<float> norms(share::chunks_per_warp);
    detail::exchange_args<codec_type, Element> args{};
    args.gradient = gradient.data();
    emulator::launch({}, emulator::shuffled(1), [&](host_context& ctx) {
      unsigned const member = ctx.thread_rank() % share::lanes;
      unsigned const first  = ctx.thread_rank() / share::lanes * share::chunks;
      float parts[share::chunks][share::rows];
      for (unsigned i = 0; i < share::chunks; ++i) {
        detail::add_squares<false>(
          ctx, args, (first + i) * Size + member * share::row, Size, parts[i]);
      }
      detail::add_lanes<share::lanes>(ctx, member, parts);
      for (unsigned i = member; i < share::chunks; i += share::lanes) {
        norms[first + i] = parts[i / share::lanes][0];
      }
    });
    for (std::size_t chunk = 0; chunk < norms.size(); ++chunk) {
      wrong.expect(std::bit_cast<std::uint32_t>(norms[chunk]),
                   std::bit_cast<std::uint32_t>(reference(&gradient[chunk * Size], Size)),
                   Size,
                   round,
                   chunk);
    }
  }
}

TEST_CASE_TEMPLATE("[kernels] squared norms of whole chunks", Element, float, half, bfloat16)
{
  mismatches wrong;
  compare<32, Element>(wrong);
  compare<64, Element>(wrong);
  compare<128, Element>(wrong);
  compare<256, Element>(wrong);
  compare<512, Element>(wrong);
  compare<1024, Element>(wrong);
  compare<4096, Element>(wrong);
  CHECK(wrong.report() == "");
}

}  // namespace
