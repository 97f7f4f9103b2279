// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies of codecs in a metric make the bytes of the CPU.

#include "support/compare_kernels.hpp"

#include <tersum/feedback/byte_blocks.hpp>
#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/metric/factored.hpp>
#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

using namespace tersum;

namespace {

template <int Size, feedback Feedback = no_feedback>
using shot =
  two_shot_codec<fixed_chunks<Size>, partial_hadamard<Size>, lloyd_max<2>, Feedback, kept_diagonal>;
template <feedback Feedback>
using in_16_bits = two_shot_codec<fixed_chunks<256>,
                                  partial_hadamard<256>,
                                  lloyd_max<2>,
                                  Feedback,
                                  kept_diagonal_in<bfloat16>>;
template <class Range, feedback Feedback = no_feedback>
using in_lanes = codec<fixed_chunks<256>,
                       partial_hadamard<256>,
                       Range,
                       stochastic_quantizer<4>,
                       saturating_sum<4>,
                       Feedback,
                       kept_diagonal>;

TEST_CASE("[execute] two shots in a metric have the same bytes in kernels")
{
  tests::compare_sizes<float>(shot<1024>{});
  tests::compare_orders<bfloat16>(shot<256>{}, 3, true);
  tests::compare_buckets<float>(shot<256, error_feedback>{});
  tests::compare_offsets<float>(shot<256, error_feedback>{});
}

TEST_CASE("[execute] scales in bfloat16 have the same bytes in kernels")
{
  tests::compare_buckets<float>(in_16_bits<no_feedback>{});
  tests::compare_orders<float>(in_16_bits<error_feedback>{}, 3, true);
}

TEST_CASE("[execute] codes that are summed in a metric have the same bytes in kernels")
{
  tests::compare_orders<float>(in_lanes<rms_range<tracked_correlation>, error_feedback>{}, 3, true);
  tests::compare_buckets<tersum::half>(in_lanes<absmax_range<fixed_headroom>>{});
  tests::compare_offsets<tersum::half>(in_lanes<absmax_range<fixed_headroom>>{});
}

TEST_CASE("[execute] chunks of several widths in a metric have the same bytes in kernels")
{
  using codec_type = gathered_codec<allocated_chunks<512, 1, 2, 4, 8>,
                                    partial_hadamard<512>,
                                    lloyd_max<8>,
                                    error_feedback,
                                    kept_diagonal>;
  tests::compare_orders<float>(codec_type{.chunker = {.bits = 2}}, 2, true);
}

TEST_CASE("[execute] casts in a metric have the same bytes in kernels")
{
  using halves = cast_codec<tersum::half, top_chunks<128>, error_feedback, kept_diagonal>;
  tests::compare_buckets<float>(halves{.chunker = {.bits = 4}});
  tests::compare_orders<tersum::half>(halves{.chunker = {.bits = 2}}, 3, true);
  using in_blocks = cast_codec<tersum::half, top_chunks<256>, kept_in<byte_blocks>, kept_diagonal>;
  tests::compare_buckets<float>(in_blocks{.chunker = {.bits = 4}});
  using logarithms =
    cast_codec<float, top_chunks<512, norm_log>, kept_in<bfloat16>, given_diagonal>;
  tests::compare_buckets<bfloat16>(logarithms{.chunker = {.bits = 12}});
  // Without norms a payload alone says what is not finite.
  using at_random =
    cast_codec<bfloat16, random_chunks<256>, no_feedback, kept_diagonal_in<bfloat16>>;
  tests::compare_places<float>(at_random{.chunker = {.bits = 6}});
  using factored = cast_codec<bfloat16, top_chunks<1024, float>, decayed_feedback, kept_factors>;
  tests::compare_buckets<float>(factored{.chunker = {.bits = 8}});
}

TEST_CASE("[execute] rows and columns have the same bytes in kernels")
{
  using codec_type = two_shot_codec<fixed_chunks<256>,
                                    partial_hadamard<256>,
                                    lloyd_max<2>,
                                    no_feedback,
                                    kept_factors>;
  tests::compare_buckets<float>(codec_type{});
  using in_sums = codec<fixed_chunks<256>,
                        partial_hadamard<256>,
                        rms_range<tracked_correlation>,
                        stochastic_quantizer<4>,
                        saturating_sum<4>,
                        error_feedback,
                        kept_factors>;
  tests::compare_orders<bfloat16>(in_sums{}, 3, true);
  // All chunks but the last ones are regular. Four neighbours lie in a row of some matrices only.
  std::vector<tensor> tensors;
  std::uint64_t end = 0;
  for (std::uint64_t const columns : {1u, 3u, 4u, 12u, 13u, 100u, 255u, 1030u, 1500u}) {
    tensors.push_back({.rows = 1540 / columns / 4 * 4 + 4, .columns = columns, .offset = end});
    end += tensors.back().size();
  }
  layout const matrices{.coordinates = end, .tensors = tensors, .bypass_vectors = false};
  tests::compare_kernels<codec_type, float>({.codec = {}, .gradient = matrices, .steps = 2});
  tests::compare_kernels<in_sums, float>({.codec = {}, .gradient = matrices, .steps = 2});
}

TEST_CASE("[execute] codes of unlike lengths in a metric have the same bytes in kernels")
{
  using kept = entropy_codec<error_feedback, 512, kept_diagonal>;
  tests::compare_buckets<float>(kept{});
  tests::compare_offsets<float>(kept{});
  using in_16_bits = entropy_codec<kept_in<bfloat16>, 1024, kept_diagonal_in<bfloat16>>;
  tests::compare_orders<bfloat16>(in_16_bits{.bits = 3}, 3, true);
  using in_blocks = entropy_codec<kept_in<byte_blocks>, 256, kept_diagonal>;
  tests::compare_orders<float>(in_blocks{}, 3, true);
  using dealt = entropy_two_shot_codec<kept_by_ranks<>, 128, kept_factors>;
  tests::compare_orders<tersum::half>(dealt{}, 3, true);
  tests::compare_buckets<float>(dealt{});
}

// Sums of the squares of a tensor's lines: by tiles on the CPU, in a kernel, and a line at a time.
template <class Element>
void compare_line_squares(detail::line_piece piece, std::uint64_t row_stretch)
{
  using codec_type = decltype(presets::factored_2);
  using plain_type = std::remove_const_t<codec_type>;
  using items      = detail::add_line_squares<plain_type, Element>;
  piece.derive();
  if (row_stretch > 0) { piece.row_stretch = row_stretch; }
  std::vector<Element> mean;
  for (std::uint64_t i = 0; i < piece.offset + piece.size; ++i) {
    mean.push_back(
      from_float<Element>(std::ldexp(static_cast<float>(i * 7919 % 4099) - 2000.0f, -9)));
  }
  std::vector<double> sums[3];
  detail::exchange_args<plain_type, Element> args{};
  args.gradient   = mean.data();
  auto const plan = plain_type{}.plan(layout{.coordinates = mean.size()}, world{});
  cpu_tuning const numbers{};
  for (int way = 0; way < 3; ++way) {
    sums[way].assign(piece.first_sum + piece.sums(), -1.0);
    args.metric.sums = sums[way].data();
    if (way == 0) {
      for (std::uint64_t item = 0; item < items::items(piece); ++item) {
        items::of_piece(detail::host_memory{}, args, piece, item);
      }
    } else if (way == 1) {
      detail::cpu_work<plain_type, Element> const work{
        1, best_instruction_set(), plan, args, numbers};
      for (std::uint64_t tile = 0; tile < piece.tiles(); ++tile) {
        detail::add_tile(work, piece, tile);
      }
    } else {
      detail::line_squares_kernel kernel{};
      kernel.batch.pieces[kernel.batch.count++] = piece;
      auto const blocks = kernel.batch.number<detail::line_squares<plain_type, Element>>();
      CHECK(tests::emulated_executor{}.run(kernel, blocks, args).ok());
    }
  }
  CAPTURE(piece.columns);
  CHECK(sums[1] == sums[0]);
  CHECK(sums[2] == sums[0]);
}

TEST_CASE("[execute] tiles add up rows and columns as lines do, in one read")
{
  detail::line_piece piece{};
  piece.first_sum = 3;
  for (std::uint64_t const columns : {9u, 64u, 77u, 100u, 256u, 300u}) {
    piece.columns = columns;
    for (std::uint64_t const skip : {std::uint64_t{0}, columns - 1, columns / 2 / 4 * 4}) {
      piece.skip   = skip;
      piece.size   = 70 * columns - columns / 3;
      piece.offset = skip % 4;
      compare_line_squares<float>(piece, 0);
      compare_line_squares<bfloat16>(piece, 0);
    }
    piece.size = columns / 3;
    piece.skip = 1;
    compare_line_squares<float>(piece, 0);
  }
  // Stretches of more columns than are added at a time.
  piece.columns = 700;
  piece.skip    = 40;
  piece.size    = 100 * 700 - 50;
  compare_line_squares<float>(piece, 512);
}

}  // namespace
