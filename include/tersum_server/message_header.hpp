// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What workers and a parameter server say to each other.

#pragma once

#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tersum::inline v0 {

//! What a message is.
enum class message_kind : std::uint32_t {
  push   = 1,  //!< Worker to server: the codes of a piece of its gradient.
  pull   = 2,  //!< Worker to server: it asks for the mean of a piece.
  answer = 3,  //!< Server to worker: the codes of the mean.
  leave  = 4,  //!< Worker to server: nothing more will come.
  //! Server to worker: which step is the present one. The one that the worker asked for is over, or far ahead.
  step = 5,
};

//! @brief The first bytes of every message, in the byte order of the machine; the payload follows at once.
//!
//! The payload of a push or an answer is the part of the only rank under `publish`, or float32 where the piece is not compressed; the
//! others have none. Signs follow from the message's step and the plan's seed. The dither of worker i has that seed plus
//! (i + 1) 0x9e3779b97f4a7c15, modulo 2^64, as its own; that of the server has the plan's.
struct message_header {
  static constexpr std::uint32_t expected_magic = 0x31737074;  //!< "tps1": the 1 is the version.

  std::uint32_t magic  = expected_magic;
  message_kind kind    = message_kind::push;
  std::uint32_t piece  = 0;  //!< Of the `served_plan`.
  std::uint32_t worker = 0;  //!< Who sends it; of an answer: who gets it.
  std::uint64_t step   = 0;  //!< Exchange, from 0. Of a message of kind `step`: the one asked for.
  std::uint64_t fingerprint = 0;  //!< `served_plan::fingerprint()`.
  std::uint64_t bytes       = 0;  //!< Of the payload.
  float gain                = 1;  //!< Of a push: the gain of feedback, of the server's, too.
  std::uint32_t counted     = 0;  //!< Of an answer: how many workers are in the mean.
  //! Of an answer or a message of kind `step`: 1 if what the worker who gets it has pushed in this step is in the mean.
  std::uint32_t in_mean  = 0;
  std::uint32_t reserved = 0;
  std::uint64_t present  = 0;  //!< Of a message of kind `step`: the one to go on with.
};
static_assert(sizeof(message_header) == 64);

//! @brief Reads the header of a message that may hold anything.
//! @param message  As it came.
//! @param header   Receives the header, if the result is ok.
//! @return  What is wrong: it is shorter than a header, begins otherwise, is of no kind, or its payload has another length than it says.
[[nodiscard]] inline status read_header(std::span<std::byte const> message,
                                        message_header& header) noexcept
{
  if (message.size() < sizeof header) {
    return {error_code::invalid_argument, "the message is shorter than a header"};
  }
  message_header read;
  std::memcpy(&read, message.data(), sizeof read);
  if (read.magic != message_header::expected_magic) {
    return {error_code::invalid_argument,
            "the message is none of a parameter server's, or of another version"};
  }
  auto const kind = static_cast<std::uint32_t>(read.kind);
  if (kind < 1 || kind > 5) { return {error_code::invalid_argument, "the message is of no kind"}; }
  if (read.bytes != message.size() - sizeof header) {
    return {error_code::invalid_argument, "the message has another length than its header says"};
  }
  header = read;
  return {};
}

//! Writes a header to the beginning of a message, which has room for it.
inline void write_header(message_header const& header, std::span<std::byte> message) noexcept
{
  std::memcpy(message.data(), &header, sizeof header);
}

}  // namespace tersum::inline v0
