// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A transport whose type is forgotten, so that the codecs of the conformance suite are compiled once for all of them.

#pragma once

#include <tersum/interop/transport.hpp>
#include <tersum/presets.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum_baselines/presets.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::tests {

template <class Op>
struct can_reduce {
  [[nodiscard]] virtual status all_reduce(wire<Op> const& round) const = 0;

 protected:
  ~can_reduce() = default;
};

template <class... Ops>
struct can_reduce_all : can_reduce<Ops>... {
  using can_reduce<Ops>::all_reduce...;
};

//! Models tersum::transport for every operation that a preset has.
class any_transport : public can_reduce_all<native_sum<float>,
                                            native_sum<half>,
                                            native_sum<bfloat16>,
                                            native_sum<std::int8_t>,
                                            native_max<float>,
                                            native_max<std::uint8_t>,
                                            saturating_add<2>,
                                            saturating_add<4>,
                                            saturating_add<8>> {
 public:
  virtual ~any_transport() = default;
  //! Whether the transport has an all-reduce of its own.
  [[nodiscard]] virtual bool reduces() const = 0;
  //! Whether it does all operations here.
  [[nodiscard]] virtual bool reduces_all() const                                            = 0;
  [[nodiscard]] virtual int rank() const                                                    = 0;
  [[nodiscard]] virtual int size() const                                                    = 0;
  [[nodiscard]] virtual status check() const                                                = 0;
  virtual void refuse(status const& why) const                                              = 0;
  [[nodiscard]] virtual status exchange_word(int to,
                                             std::uint64_t value,
                                             int from,
                                             std::uint64_t& received) const                 = 0;
  [[nodiscard]] virtual status all_to_all(std::byte const* data,
                                          rank_blocks const& blocks,
                                          std::byte* received) const                        = 0;
  [[nodiscard]] virtual status all_gather(std::byte* data, rank_blocks const& blocks) const = 0;
};

static_assert(transport<any_transport>);
static_assert(has_refusal<any_transport>);
static_assert(reduces_in_wire<any_transport, saturating_add<4>>);

namespace detail {

template <class Transport, class... Ops>
class forwards : public any_transport {
 public:
  explicit forwards(Transport const& to) : to_(to) {}

  bool reduces() const override { return reduces_in_wire<Transport, native_sum<float>>; }
  bool reduces_all() const override { return true; }
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
  using any_transport::all_reduce;

 protected:
  Transport const& to_;
};

template <class Transport, class Op, class... Rest>
class forwards<Transport, Op, Rest...> : public forwards<Transport, Rest...> {
 public:
  using forwards<Transport, Rest...>::forwards;
  using forwards<Transport, Rest...>::all_reduce;
  bool reduces_all() const override
  {
    return reduces_in_wire<Transport, Op> && forwards<Transport, Rest...>::reduces_all();
  }
  status all_reduce([[maybe_unused]] wire<Op> const& round) const override
  {
    if constexpr (reduces_in_wire<Transport, Op>) {
      return this->to_.all_reduce(round);
    } else {
      return {error_code::unsupported, "this transport has no all-reduce of its own"};
    }
  }
};

template <class Transport, class... Ops>
forwards<Transport, Ops...> forward_all(Transport const& to, can_reduce_all<Ops...> const*)
{
  return forwards<Transport, Ops...>{to};
}

}  // namespace detail

//! Forgets the type of a transport, which must outlive the result.
template <class Transport>
[[nodiscard]] auto forget_type(Transport const& to)
{
  return detail::forward_all(to, static_cast<any_transport const*>(nullptr));
}

}  // namespace tersum::tests
