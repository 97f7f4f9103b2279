// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of served_plan.hpp.

#include <tersum/detail/plan_checks.hpp>

#include <algorithm>

namespace tersum::inline v0 {

template <publishing Up, publishing Down>
served_plan<Up, Down>::served_plan(Up const& up,
                                   Down const& down,
                                   std::span<std::uint64_t const> tensors,
                                   served_options const& options)
  : up_(up), down_(down), options_(options), tensors_(tensors.begin(), tensors.end())
{
  if (options.most_coordinates > 0) {
    for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      first_.push_back(pieces_.size());
      std::uint64_t const size = tensors_[tensor];
      for (std::uint64_t begin = 0; begin < size; begin += options.most_coordinates) {
        pieces_.push_back({static_cast<std::uint32_t>(tensor),
                           begin,
                           std::min(options.most_coordinates, size - begin),
                           size >= options.compress_from});
      }
    }
    first_.push_back(pieces_.size());
  }
  auto const add = [this](std::uint64_t value) { fingerprint_ = detail::mix(fingerprint_, value); };
  add(static_cast<std::uint64_t>(options.workers));
  add(options.compress_from);
  add(options.most_coordinates);
  add(tensors_.size());
  for (std::uint64_t const size : tensors_) { add(size); }
  layout const one{Up::chunk_size};  // a plan's codec, whatever its length
  add(tersum::fingerprint(up_.plan(one, world{}), options.seed));
  add(tersum::fingerprint(down_.plan(one, world{}), options.seed));
  made_ = check_plans();
}

template <publishing Up, publishing Down>
status served_plan<Up, Down>::check_plans() const
{
  if (options_.workers < 1 || options_.workers > 65534) {
    return {error_code::invalid_argument, "options.workers must be between 1 and 65534"};
  }
  if (options_.most_coordinates == 0) {
    return {error_code::invalid_argument, "options.most_coordinates must be above zero"};
  }
  if (pieces_.size() > 0xffffffffu) {
    return {error_code::invalid_argument, "the tensors are cut into more than 2^32 pieces"};
  }
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    if (!pieces_[piece].compressed) { continue; }
    if (status const s = up(piece).check(); !s.ok()) { return s; }
    if (status const s = down(piece).check(); !s.ok()) { return s; }
  }
  return {};
}

template <publishing Up, publishing Down>
std::size_t served_plan<Up, Down>::push_bytes(std::size_t piece) const
{
  if (!pieces_[piece].compressed) { return pieces_[piece].size * sizeof(float); }
  return up(piece).payload_bytes();
}

template <publishing Up, publishing Down>
std::size_t served_plan<Up, Down>::answer_bytes(std::size_t piece) const
{
  if (!pieces_[piece].compressed) { return pieces_[piece].size * sizeof(float); }
  return down(piece).payload_bytes();
}

template <publishing Up, publishing Down>
std::size_t served_plan<Up, Down>::most_message_bytes() const
{
  std::size_t most = 0;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    most = std::max({most, push_bytes(piece), answer_bytes(piece)});
  }
  return most + sizeof(message_header);
}

}  // namespace tersum::inline v0
