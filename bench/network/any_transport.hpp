// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A transport whose type is forgotten, so that the codecs of the network benchmark are compiled once for all of them.

#pragma once

#include <tersum/interop/transport.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/types.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tersum::network {

//! Models tersum::transport. Reduces in the wire what casts send; all else goes in two shots.
class any_transport {
 public:
  virtual ~any_transport() = default;

  [[nodiscard]] virtual int rank() const     = 0;
  [[nodiscard]] virtual int size() const     = 0;
  [[nodiscard]] virtual status check() const = 0;

  virtual void refuse(status const& why) const = 0;

  [[nodiscard]] virtual status exchange_word(int to,
                                             std::uint64_t value,
                                             int from,
                                             std::uint64_t& received) const = 0;

  [[nodiscard]] virtual status all_to_all(std::byte const* data,
                                          rank_blocks const& blocks,
                                          std::byte* received) const = 0;

  [[nodiscard]] virtual status all_gather(std::byte* data, rank_blocks const& blocks) const = 0;

  [[nodiscard]] virtual status all_reduce(wire<native_sum<float>> const& round) const    = 0;
  [[nodiscard]] virtual status all_reduce(wire<native_sum<half>> const& round) const     = 0;
  [[nodiscard]] virtual status all_reduce(wire<native_sum<bfloat16>> const& round) const = 0;
};

static_assert(transport<any_transport> && has_refusal<any_transport>);

//! A transport, and nothing of its type to see.
template <transport Transport>
requires has_refusal<Transport>
class forgotten final : public any_transport {
 public:
  template <class... Arguments>
  explicit forgotten(Arguments&&... arguments) : to_(std::forward<Arguments>(arguments)...)
  {
  }

  int rank() const override { return to_.rank(); }
  int size() const override { return to_.size(); }
  status check() const override { return to_.check(); }
  void refuse(status const& why) const override { to_.refuse(why); }

  status exchange_word(int to,
                       std::uint64_t value,
                       int from,
                       std::uint64_t& received) const override
  {
    return to_.exchange_word(to, value, from, received);
  }

  status all_to_all(std::byte const* data,
                    rank_blocks const& blocks,
                    std::byte* received) const override
  {
    return to_.all_to_all(data, blocks, received);
  }

  status all_gather(std::byte* data, rank_blocks const& blocks) const override
  {
    return to_.all_gather(data, blocks);
  }

  status all_reduce(wire<native_sum<float>> const& round) const override
  {
    return to_.all_reduce(round);
  }
  status all_reduce(wire<native_sum<half>> const& round) const override
  {
    return to_.all_reduce(round);
  }
  status all_reduce(wire<native_sum<bfloat16>> const& round) const override
  {
    return to_.all_reduce(round);
  }

 private:
  Transport to_;
};

}  // namespace tersum::network
