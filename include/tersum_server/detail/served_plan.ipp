// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of served_plan.hpp.

#include <tersum/layout.hpp>
#include <tersum/version.hpp>

#include <algorithm>

namespace tersum::inline v0 {

template <publishing Up, publishing Down>
served_plan<Up, Down>::served_plan(Up const& up,
                                   Down const& down,
                                   std::span<std::uint64_t const> tensors,
                                   served_options const& options)
  : up_(up), down_(down), options_(options), tensors_(tensors.begin(), tensors.end())
{
  made_ = check_sizes();
  if (made_.ok()) {
    for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      first_.push_back(pieces_.size());
      std::uint64_t const size = tensors_[tensor];
      for (std::uint64_t begin = 0; begin < size;) {
        std::uint64_t const of_piece = std::min(options.most_coordinates, size - begin);
        auto const pushes            = up.plan(layout{of_piece}, {});
        auto const answers           = down.plan(layout{of_piece}, {});
        served_piece piece{
          .tensor = static_cast<std::uint32_t>(tensor), .begin = begin, .size = of_piece};
        piece.compressed =
          size >= options.compress_from && !pushes.all_bypass() && !answers.all_bypass();
        if (piece.compressed) {
          if (made_.ok()) { made_ = pushes.check(); }
          if (made_.ok()) { made_ = answers.check(); }
        }
        piece.push_bytes   = piece.compressed ? pushes.payload_bytes() : 4 * of_piece;
        piece.answer_bytes = piece.compressed ? answers.payload_bytes() : 4 * of_piece;
        most_bytes_        = std::max({most_bytes_, piece.push_bytes, piece.answer_bytes});
        pieces_.push_back(piece);
        begin += of_piece;
      }
    }
    first_.push_back(pieces_.size());
  }
  description all{"served_plan", TERSUM_VERSION_MAJOR, TERSUM_VERSION_MINOR, up_, down_};
  all = {"of", all, options.workers, options.seed, options.compress_from, options.most_coordinates};
  for (std::uint64_t const size : tensors_) { all = {"tensor", all, size}; }
  fingerprint_ = all.hash();
}

//! Whether the tensors can be cut, before memory is taken for the pieces.
template <publishing Up, publishing Down>
status served_plan<Up, Down>::check_sizes() const
{
  if (options_.workers < 1 || options_.workers > 65534) {
    return {error_code::invalid_argument, "options.workers must be between 1 and 65534"};
  }
  if (options_.most_coordinates == 0) {
    return {error_code::invalid_argument, "options.most_coordinates must be above zero"};
  }
  std::uint64_t pieces = 0;
  for (std::uint64_t const size : tensors_) {
    if (size > std::uint64_t{1} << 48) {
      return {error_code::invalid_argument, "a tensor has more than 2^48 coordinates"};
    }
    std::uint64_t const whole = size / options_.most_coordinates;
    pieces += whole + (size % options_.most_coordinates == 0 ? 0 : 1);
    if (pieces > most_pieces) {
      return {error_code::invalid_argument,
              "options.most_coordinates cuts the tensors into more than 2^20 pieces"};
    }
  }
  return {};
}

}  // namespace tersum::inline v0
