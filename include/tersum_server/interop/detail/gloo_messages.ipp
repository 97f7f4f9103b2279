// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of gloo_messages.hpp.

#include <utility>
#include <vector>

namespace tersum::inline v0 {

inline gloo_messages::gloo_messages(std::shared_ptr<::gloo::Context> context,
                                    std::size_t most_bytes,
                                    std::chrono::milliseconds timeout)
  : context_(std::move(context)), most_bytes_(most_bytes), timeout_(timeout)
{
  if (check().ok() && size() > 1) {
    thread_ = std::jthread{[this] { listen(); }};
  }
}

inline gloo_messages::~gloo_messages()
{
  std::scoped_lock const lock{mutex_};
  ends_ = true;
  if (waits_in_ != nullptr) { waits_in_->abortWaitRecv(); }
}

inline status gloo_messages::check() const noexcept
{
  if (!context_) { return {error_code::invalid_argument, "context is a null pointer"}; }
  if (timeout_.count() <= 0) {
    return {error_code::invalid_argument, "timeout must be above zero"};
  }
  if (failed_) {
    return {error_code::transport_failed,
            "Gloo failed: a rank is gone, or a message was not taken within the timeout"};
  }
  return {};
}

//! Other than those of gloo_transport, and of Gloo's collectives.
inline std::uint64_t gloo_messages::slot_of(std::uint32_t part)
{
  return std::uint64_t{::gloo::Slot::build(0x7d, part)};
}

inline void gloo_messages::listen()
{
  std::vector<int> others;
  for (int other = 0; other < size(); ++other) {
    if (other != rank()) { others.push_back(other); }
  }
  // False if it shall end.
  auto const wait = [this](::gloo::transport::UnboundBuffer& in, int* from) {
    {
      std::scoped_lock const lock{mutex_};
      if (ends_) { return false; }
      waits_in_ = &in;
    }
    bool const came = in.waitRecv(from, detail::longest_wait);
    std::scoped_lock const lock{mutex_};
    waits_in_ = nullptr;
    return came && !ends_;
  };
  try {
    while (true) {
      // A message of which the length is not known would end the process, so its length comes first.
      std::uint64_t bytes = 0;
      int from            = -1;
      buffer const length = context_->createUnboundBuffer(&bytes, sizeof bytes);
      length->recv(others, slot_of(0));
      if (!wait(*length, &from)) { return; }
      if (bytes > most_bytes_) { break; }
      std::vector<std::byte> message(bytes);
      if (bytes > 0) {
        buffer const in = context_->createUnboundBuffer(message.data(), bytes);
        in->recv(from, slot_of(1));
        if (!wait(*in, nullptr)) { return; }
      }
      queue_.put(from, std::move(message));
    }
  } catch (...) {
    std::scoped_lock const lock{mutex_};
    waits_in_ = nullptr;
  }
  failed_ = true;
}

inline status gloo_messages::send(int to, std::span<std::byte const> message)
{
  if (status const s = check(); !s.ok()) { return s; }
  if (to < 0 || to >= size()) {
    return {error_code::invalid_argument, "to must be a rank of the context"};
  }
  if (to == rank()) {
    queue_.put(to, {message.begin(), message.end()});
    return {};
  }
  try {
    std::uint64_t bytes = message.size();
    buffer const length = context_->createUnboundBuffer(&bytes, sizeof bytes);
    buffer const out =
      context_->createUnboundBuffer(const_cast<std::byte*>(message.data()), message.size());
    length->send(to, slot_of(0));
    if (bytes > 0) { out->send(to, slot_of(1)); }
    if (length->waitSend(timeout_) && (bytes == 0 || out->waitSend(timeout_))) { return {}; }
  } catch (...) {
  }
  failed_ = true;
  return check();
}

inline status gloo_messages::receive(std::span<std::byte> memory,
                                     std::chrono::microseconds patience,
                                     incoming& what)
{
  if (!context_) { return check(); }
  // What came before a failure is still good.
  queue_.take(memory, failed_ ? std::chrono::microseconds{} : patience, what);
  return what.from >= 0 ? status{} : check();
}

}  // namespace tersum::inline v0
