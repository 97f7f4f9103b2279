// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantized codec as its formulas say it: in double, one coordinate at a time, Hadamard by definition.

#pragma once

#include <tersum/block/chunk_order.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/single_process/loopback.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! @brief One exchange of a gradient that is one vector, stage by stage. Each stage takes what the stage before gave, so
//! that a test can hand it the library's own and bound the rounding of a single stage.
template <class Codec>
class reference_codec {
 public:
  using vector = std::vector<double>;
  using range  = typename Codec::range_type;

  static constexpr std::size_t chunk = Codec::chunk_size;  //!< Coordinates in a chunk.
  static constexpr int limit         = Codec::quantizer_type::max_level;
  static constexpr double unit       = 1 << Codec::quantizer_type::fraction_bits;

  //! Neighbouring chunks that are rotated, and under `full_hadamard` measured, as one.
  struct piece {
    std::size_t begin;  //!< First padded coordinate.
    std::size_t size;   //!< Padded coordinates.
  };

  reference_codec(Codec const& codec, std::size_t coordinates, int world, std::uint64_t seed)
    : codec_(codec), world_(world), seed_(seed), padded_((coordinates + chunk - 1) / chunk * chunk)
  {
    for (std::size_t begin = 0; begin < padded_; begin += pieces_.back().size) {
      std::size_t size = chunk;
      while (Codec::rotates_all && 2 * size <= padded_ - begin) { size *= 2; }
      pieces_.push_back({begin, size});
    }
  }

  [[nodiscard]] std::size_t chunks() const { return padded_ / chunk; }
  [[nodiscard]] std::vector<piece> const& pieces() const { return pieces_; }

  //! The piece that a chunk belongs to.
  [[nodiscard]] piece const& piece_of(std::size_t number) const
  {
    return *std::find_if(pieces_.begin(), pieces_.end(), [&](piece const& p) {
      return number * chunk < p.begin + p.size;
    });
  }

  //! The padded coordinate at a position of the payload.
  [[nodiscard]] static std::size_t coordinate(std::size_t position)
  {
    return position / chunk * chunk + chunk_order<Codec::chunk_size>::coordinate(position % chunk);
  }

  //! +1 or -1 for a padded coordinate.
  [[nodiscard]] double sign(std::size_t i, std::uint64_t step) const
  {
    std::size_t const j = i % chunk;
    std::uint64_t const word =
      i / chunk * (chunk / 32) + chunk_order<Codec::chunk_size>::sign_word(j);
    std::uint32_t const bits = sign_bits(word, sign_key(step, seed_));
    return (bits >> chunk_order<Codec::chunk_size>::sign_bit(j) & 1) == 0 ? 1.0 : -1.0;
  }

  //! Signs and orthonormal Hadamard transform of a gradient, padded with zeros.
  [[nodiscard]] vector rotate(vector x, std::uint64_t step) const
  {
    x.resize(padded_);
    if constexpr (!Codec::rotates_chunks && !Codec::rotates_all) { return x; }
    for (std::size_t i = 0; i < padded_; ++i) { x[i] *= sign(i, step); }
    return transform(x);
  }

  //! Its inverse.
  [[nodiscard]] vector rotate_back(vector const& x, std::uint64_t step) const
  {
    if constexpr (!Codec::rotates_chunks && !Codec::rotates_all) { return x; }
    vector out = transform(x);
    for (std::size_t i = 0; i < padded_; ++i) { out[i] *= sign(i, step); }
    return out;
  }

  //! The agreed scalars after their reduction, from all ranks' rotated gradients.
  [[nodiscard]] vector agree(std::vector<vector> const& rotated) const
  {
    vector out;
    if constexpr (range::measurement == statistic::tensor_square_norm) {
      append_norms(rotated, out);
    } else {
      for (std::size_t begin = 0; begin < padded_; begin += chunk) {
        double scalar = 0;
        for (vector const& x : rotated) {
          if constexpr (range::measurement == statistic::chunk_square_norm) {
            scalar += square_norm(x, begin, chunk);
          } else {
            for (std::size_t i = begin; i < begin + chunk; ++i) {
              scalar = std::max(scalar, std::abs(x[i]));
            }
          }
        }
        out.push_back(scalar);
      }
      if constexpr (tracks<Codec> && range::measurement == statistic::chunk_magnitude) {
        append_norms(rotated, out);
      }
    }
    return out;
  }

  //! The step of every chunk from the reduced scalars and the tensor's ratio.
  [[nodiscard]] vector derive_steps(vector const& agreed, double ratio) const
  {
    vector out;
    for (std::size_t c = 0; c < chunks(); ++c) {
      double reach, bound;
      if constexpr (range::measurement == statistic::chunk_square_norm) {
        reach = std::sqrt(agreed[c] / (world_ * static_cast<double>(chunk)));
        bound = std::sqrt(agreed[c]);
      } else if constexpr (range::measurement == statistic::chunk_magnitude) {
        reach = bound = agreed[c];
      } else {
        std::size_t const record = Codec::rotates_all ? number_of(piece_of(c)) : 0;
        double const size = static_cast<double>(Codec::rotates_all ? piece_of(c).size : padded_);
        reach             = std::sqrt(agreed[record] / size);
        bound             = std::sqrt(agreed[record]);
      }
      double const step =
        std::max(reach * static_cast<double>(codec_.coder.range.clip) * headroom(ratio) / limit,
                 bound * unit * 0x1p-23);
      out.push_back(step < 0x1p-100 ? 0 : step);
    }
    return out;
  }

  //! What is rounded at a position of the payload, in units of 1/256 of a step (nearest: of a step).
  [[nodiscard]] double scaled(vector const& rotated,
                              vector const& steps,
                              std::size_t position) const
  {
    double const step = steps[position / chunk];
    return step == 0 ? 0 : rotated[coordinate(position)] / step * unit;
  }

  //! Its code.
  [[nodiscard]] int code(double y, std::size_t position, int rank, std::uint64_t step) const
  {
    double code = std::nearbyint(y);
    if constexpr (Codec::quantizer_type::fraction_bits > 0) {
      dither_key const key{.seed = seed_, .step = step, .rank = static_cast<std::uint32_t>(rank)};
      code = std::floor((code + dither_byte<typename Codec::dither_type>(position, key)) / unit);
    }
    return static_cast<int>(std::clamp(code, -1.0 * limit, 1.0 * limit));
  }

  //! All ranks' codes added lane by lane: `order` decides where a saturating sum begins.
  [[nodiscard]] std::vector<int> reduce(std::vector<std::vector<int>> const& codes,
                                        reduction_order order) const
  {
    constexpr int lane_limit   = (1 << (Codec::reducer_type::lane_bits - 1)) - 1;
    std::size_t const ranks    = codes.size();
    std::size_t const per_word = 32 / Codec::reducer_type::lane_bits;
    std::vector<int> out(padded_);
    for (std::size_t p = 0; p < padded_; ++p) {
      // In a ring block k, which begins at word k words / n, starts at rank k.
      std::size_t const words = padded_ / per_word;
      std::size_t first       = 0;
      while (order == reduction_order::ring && first + 1 < ranks &&
             p / per_word >= words * (first + 1) / ranks) {
        ++first;
      }
      int sum = codes[first][p];
      for (std::size_t hop = 1; hop < ranks; ++hop) {
        sum += codes[(first + hop) % ranks][p];
        if constexpr (saturates<Codec>) { sum = std::clamp(sum, -lane_limit, lane_limit); }
      }
      out[p] = sum;
    }
    return out;
  }

  //! What codes stand for, in the basis of the gradient; `share` is the number of ranks that a sum is divided by.
  [[nodiscard]] vector decode(std::vector<int> const& codes,
                              vector const& steps,
                              std::uint64_t step,
                              int share) const
  {
    vector rotated(padded_);
    for (std::size_t p = 0; p < padded_; ++p) {
      rotated[coordinate(p)] = codes[p] * steps[p / chunk] / share;
    }
    return rotate_back(rotated, step);
  }

  //! sqrt(|sum|^2 / energy of one rank) of an exchange, which is the head-room of the next.
  [[nodiscard]] double ratio(std::vector<int> const& sum,
                             vector const& steps,
                             vector const& agreed) const
  {
    double of_sum = 0, energy = 0;
    for (std::size_t p = 0; p < padded_; ++p) { of_sum += std::pow(sum[p] * steps[p / chunk], 2); }
    if constexpr (range::measurement == statistic::chunk_square_norm) {
      for (double const norm : agreed) { energy += norm / world_; }
    } else {
      energy = agreed.back();
    }
    return std::sqrt(of_sum / energy);
  }

 private:
  [[nodiscard]] static double square_norm(vector const& x, std::size_t begin, std::size_t size)
  {
    double sum = 0;
    for (std::size_t i = begin; i < begin + size; ++i) { sum += x[i] * x[i]; }
    return sum;
  }

  //! The largest squared norm among the ranks: of each piece under `full_hadamard`, otherwise of the vector.
  void append_norms(std::vector<vector> const& rotated, vector& out) const
  {
    std::vector<piece> const whole{{0, padded_}};
    for (piece const& p : Codec::rotates_all ? pieces_ : whole) {
      double most = 0;
      for (vector const& x : rotated) { most = std::max(most, square_norm(x, p.begin, p.size)); }
      out.push_back(most);
    }
  }

  [[nodiscard]] std::size_t number_of(piece const& p) const
  {
    return static_cast<std::size_t>(&p - pieces_.data());
  }

  //! The factor of the three head-room policies.
  [[nodiscard]] double headroom(double ratio) const
  {
    if constexpr (requires { codec_.coder.range.headroom.margin; }) {
      return std::clamp(
        ratio * static_cast<double>(codec_.coder.range.headroom.margin), 1.0, 1.0 * world_);
    } else if constexpr (requires { codec_.coder.range.headroom.multiple; }) {
      double const multiple = static_cast<double>(codec_.coder.range.headroom.multiple);
      return multiple > 0 ? multiple : std::sqrt(world_);
    } else {
      return 1;
    }
  }

  //! H(i, j) = (-1)^(bits that i and j share) / sqrt(N), on every piece.
  [[nodiscard]] vector transform(vector const& x) const
  {
    vector out(x.size());
    for (piece const& p : pieces_) {
      for (std::size_t i = 0; i < p.size; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < p.size; ++j) {
          sum += std::popcount(i & j) % 2 == 0 ? x[p.begin + j] : -x[p.begin + j];
        }
        out[p.begin + i] = sum / std::sqrt(static_cast<double>(p.size));
      }
    }
    return out;
  }

  Codec codec_;
  int world_;
  std::uint64_t seed_;
  std::size_t padded_;
  std::vector<piece> pieces_;
};

}  // namespace tersum::tests
