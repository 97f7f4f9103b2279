// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of gloo.hpp.

namespace tersum::inline v0 {

inline gloo_transport::gloo_transport(std::shared_ptr<::gloo::Context> context,
                                      std::chrono::milliseconds timeout,
                                      cpu_executor const& exec) noexcept
  : context_(std::move(context)), timeout_(timeout), exec_(exec)
{
}

inline status gloo_transport::check() const noexcept
{
  if (!context_) { return {error_code::invalid_argument, "context is a null pointer"}; }
  if (timeout_.count() <= 0) {
    return {error_code::invalid_argument, "timeout must be above zero"};
  }
  return exec_.check();
}

inline status gloo_transport::exchange_word(int to,
                                            std::uint64_t value,
                                            int from,
                                            std::uint64_t& received) const noexcept
{
  return send_receive(to,
                      reinterpret_cast<std::byte const*>(&value),
                      sizeof value,
                      from,
                      reinterpret_cast<std::byte*>(&received),
                      sizeof received);
}

inline status gloo_transport::send_receive(int to,
                                           std::byte const* sent,
                                           std::size_t sent_bytes,
                                           int from,
                                           std::byte* received,
                                           std::size_t received_bytes) const noexcept
{
  return caught([&] {
    std::uint64_t const slot = slot_of(0);
    auto const in            = context_->createUnboundBuffer(received, received_bytes);
    auto const out = context_->createUnboundBuffer(const_cast<std::byte*>(sent), sent_bytes);
    if (received_bytes > 0) { in->recv(from, slot); }
    if (sent_bytes > 0) { out->send(to, slot); }
    return (sent_bytes == 0 || out->waitSend(timeout_)) &&
           (received_bytes == 0 || in->waitRecv(timeout_));
  });
}

inline status gloo_transport::all_to_all(std::byte const* data,
                                         rank_blocks const& blocks,
                                         std::byte* received) const noexcept
{
  std::size_t const here = blocks.bytes(rank());
  if (here > 0) {
    std::memcpy(
      received + here * static_cast<std::size_t>(rank()), data + blocks.begin_byte(rank()), here);
  }
  auto const part = [here](int from) { return block{here * static_cast<std::size_t>(from), here}; };
  auto const sent = [&blocks](int to) { return block{blocks.begin_byte(to), blocks.bytes(to)}; };
  return with_all(1, data, sent, received, part);
}

inline status gloo_transport::all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
{
  auto const part = [&blocks](int rank) {
    return block{blocks.begin_byte(rank), blocks.bytes(rank)};
  };
  return with_all(
    2, data, [&](int) { return part(rank()); }, data, part);
}

template <reduce_op Op>
requires(!has_combine_at<Op>) status gloo_transport::all_reduce(wire<Op> const& round)
const noexcept
{
  using element = typename Op::element;
  return caught([&] {
    ::gloo::AllreduceOptions options(context_);
    options.setOutput(round.data, round.count);
    options.setReduceFunction([this](void* to, void const* a, void const* b, std::size_t count) {
      static_cast<void>(exec_.reduce(Op{},
                                     static_cast<element*>(to),
                                     static_cast<element const*>(a),
                                     static_cast<element const*>(b),
                                     count));
    });
    options.setTimeout(timeout_);
    ::gloo::allreduce(options);
    return true;
  });
}

inline std::uint64_t gloo_transport::slot_of(std::uint32_t kind)
{
  return ::gloo::Slot::build(0x7e, kind);
}

template <class Sent, class Received>
status gloo_transport::with_all(std::uint32_t kind,
                                std::byte const* from,
                                Sent const& sent,
                                std::byte* to,
                                Received const& received) const noexcept
{
  return caught([&] {
    int const n              = size();
    std::uint64_t const slot = slot_of(kind);
    auto const in =
      context_->createUnboundBuffer(to, received(n - 1).begin + received(n - 1).bytes);
    auto const out = context_->createUnboundBuffer(const_cast<std::byte*>(from),
                                                   sent(n - 1).begin + sent(n - 1).bytes);
    int arriving = 0, leaving = 0;
    for (int k = 1; k < n; ++k) {
      int const peer = (rank() + n - k) % n;
      block const b  = received(peer);
      if (b.bytes == 0) { continue; }
      in->recv(peer, slot, b.begin, b.bytes);
      ++arriving;
    }
    for (int k = 1; k < n; ++k) {
      int const peer = (rank() + k) % n;
      block const b  = sent(peer);
      if (b.bytes == 0) { continue; }
      out->send(peer, slot, b.begin, b.bytes);
      ++leaving;
    }
    auto const end  = std::chrono::steady_clock::now() + timeout_;
    auto const left = [&] {
      return std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    };
    for (; arriving > 0; --arriving) {
      if (left().count() <= 0 || !in->waitRecv(left())) { return false; }
    }
    for (; leaving > 0; --leaving) {
      if (left().count() <= 0 || !out->waitSend(left())) { return false; }
    }
    return true;
  });
}

template <class Body>
status gloo_transport::caught(Body const& body) noexcept
{
  try {
    if (body()) { return {}; }
  } catch (...) {
  }
  return {error_code::transport_failed,
          "Gloo failed: a rank is gone, or did not come within the timeout"};
}

}  // namespace tersum::inline v0
