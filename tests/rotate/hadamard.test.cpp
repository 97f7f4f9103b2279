// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rotations as a codec applies them are orthonormal Hadamard transforms with signs, forward and back.

#include "support/chunk_rotation.hpp"
#include "support/staged_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum_baselines/full_hadamard.hpp>

#include <cmath>
#include <random>

using namespace tersum;

namespace {

constexpr std::uint64_t key = 0xfeedu;

// Rounding to nearest on +-127 steps of the largest magnitude: rotated integers with a largest one of 127 are kept.
template <int Size, class Rotator = partial_hadamard<Size>>
using exact_codec =
  codec<fixed_chunks<Size>,
        Rotator,
        summed_codes<absmax_range<no_headroom>, nearest_quantizer<8>, widening_sum<8, 16>>,
        in_wire>;

// The orthonormal transform in double.
std::vector<double> hadamard(std::vector<double> const& in)
{
  auto x = tests::hadamard_transform(in);
  for (double& value : x) { value /= std::sqrt(static_cast<double>(x.size())); }
  return x;
}

template <int Size>
double sign_of(std::size_t i)
{
  using order         = chunk_order<Size>;
  std::size_t const j = i % Size;
  std::uint32_t const word =
    sign_bits(i / Size * (Size / 32) + order::sign_word(j), sign_key(0, key));
  return (word >> order::sign_bit(j) & 1) == 0 ? 1.0 : -1.0;
}

template <class Codec>
void run_step(tests::staged_run<Codec>& run, std::vector<float> const& gradient)
{
  run.measure({gradient});
  run.agree(reduction_order::ring);
  run.encode();
  run.reduce(reduction_order::ring);
  run.decode();
}

// Gradients whose rotation, `length` coordinates at a time, is known to be integers travel without loss.
template <int Size, class Codec = exact_codec<Size>>
void check_round_trip(std::size_t length = Size, std::size_t rotations = 2)
{
  CAPTURE(Size);
  CAPTURE(length);
  std::size_t const count = rotations * length;
  std::mt19937 random(Size);
  std::vector<int> integers(count);
  std::vector<float> gradient(count);
  std::vector<double> truth(count);
  for (std::size_t begin = 0; begin < count; begin += length) {
    std::vector<double> rotated(length);
    for (std::size_t i = 0; i < length; ++i) {
      // Every chunk has a 127, so that its step is one.
      int const q         = i % Size == 5 ? -127 : static_cast<int>(random() % 255) - 127;
      integers[begin + i] = q;
      rotated[i]          = q;
    }
    auto const back = hadamard(rotated);
    for (std::size_t i = 0; i < length; ++i) {
      truth[begin + i]    = back[i] * sign_of<Size>(begin + i);
      gradient[begin + i] = static_cast<float>(truth[begin + i]);
    }
  }
  tests::staged_run<Codec> run{Codec{}, layout{count}, 1, key};
  run_step(run, gradient);

  // Forward: log2 N roundings of 2^-24 |x|, |x| about 73 sqrt(N), and 127 of 127 steps: far from the next half.
  auto const codes = run.codes(0, 1);
  bool same        = true;
  for (std::size_t p = 0; p < count; ++p) {
    std::size_t const i =
      p / Size * Size + chunk_order<Size>::coordinate(p % static_cast<std::size_t>(Size));
    same = same && codes[p] == integers[i];
  }
  CHECK(same);

  // Back: the same error again, and that of the step.
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    lost += std::pow(static_cast<double>(run.values(0)[i]) - truth[i], 2);
    all += truth[i] * truth[i];
  }
  CHECK(std::sqrt(lost / all) < 1e-6 * std::log2(static_cast<double>(length)));
}

}  // namespace

TEST_CASE("[rotate] every partial_hadamard is an orthonormal Hadamard transform, forward and back")
{
  check_round_trip<128>();
  check_round_trip<256>();
  check_round_trip<512>();
  check_round_trip<1024>();
  check_round_trip<2048>();
  check_round_trip<4096>();
  check_round_trip<8192>();
  check_round_trip<16384>();
  check_round_trip<32768>();
}

TEST_CASE("[rotate] full_hadamard is one over a power of two of chunks, forward and back")
{
  for (std::size_t const chunks : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) {
    check_round_trip<256, exact_codec<256, full_hadamard>>(256 * chunks, 1);
  }
}
