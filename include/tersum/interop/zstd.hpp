// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Lossless compression around a transport of host memory, with Zstandard. Link with libzstd.

#pragma once

#include <tersum/exchange/rank_blocks.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/interop/transport.hpp>
#include <tersum/status.hpp>

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace tersum::inline v0 {

//! @brief Has another transport carry what Zstandard makes of every message, so that codes of many zeros take less of the wire.
//!
//! Codecs, payloads and means stay what they are; only the bytes between ranks get fewer, by what the codes have in common. It
//! serves gradients with many exact zeros, of embeddings and behind ReLU, in codes that are not rotated, such as those of
//! `group_absmax`: a rotation spreads what is left over all coordinates of a chunk, and rotated codes hardly shrink. It pays
//! where the network is slower than the compression: see docs/transports.md.
//!
//! Messages of less than 64 bytes go as they are. Before a longer one its length travels, in a message of 8 bytes; what would not
//! shrink goes as it is. Each rank sends to one rank after the other. Ranks must wrap their transports alike. Sums are not
//! made in the wire: `schedule::automatic` becomes `schedule::direct`. Memory for messages is allocated as it is needed and
//! kept. Faults of the other transport come back as its status; a message that is no compressed one, or of another
//! length, is `transport_failed`.
//! @tparam Over  Of host memory, such as `mpi_transport`, `gloo_transport` or `loopback_transport`.
template <transport Over>
class zstd_transport {
 public:
  //! @param over   Must outlive this.
  //! @param level  Zstandard's: larger is smaller and slower; `check` names one that it does not know.
  explicit zstd_transport(Over const& over, int level = 1) noexcept;

  //! @name Those of the other transport
  //! @{
  [[nodiscard]] int rank() const noexcept { return over_->rank(); }
  [[nodiscard]] int size() const noexcept { return over_->size(); }
  [[nodiscard]] status check() const noexcept;
  void refuse(status const& why) const noexcept requires(has_refusal<Over>) { over_->refuse(why); }
  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const
  {
    return over_->exchange_word(to, value, from, received);
  }
  //! @}

  [[nodiscard]] status send_receive(int to,
                                    std::byte const* sent,
                                    std::size_t sent_bytes,
                                    int from,
                                    std::byte* received,
                                    std::size_t received_bytes) const;

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const;

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const;

  //! Bytes that this rank was given to send to others, since it was made.
  [[nodiscard]] std::uint64_t bytes_given() const noexcept { return given_; }
  //! Bytes that it sent in their place, lengths included.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return sent_; }

 private:
  static_assert(
    !requires(Over const& over) { over.check_stream(nullptr); },
    "tersum: zstd_transport compresses host memory, and this transport has a stream of a device");

  // A message as it travels: what was given, or what became of it.
  struct message {
    std::byte const* data;
    std::uint64_t bytes;
  };

  [[nodiscard]] message compress(std::byte const* data,
                                 std::size_t bytes,
                                 std::vector<std::byte>& room) const;
  // Sends a message to one rank and receives that of another, of which it is known how long it is and how long it will be.
  [[nodiscard]] status exchange(int to,
                                message const& sent,
                                int from,
                                std::uint64_t arriving,
                                std::byte* received,
                                std::size_t received_bytes) const;

  struct freed {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  Over const* over_;
  int level_;
  std::unique_ptr<ZSTD_CCtx, freed> compressor_;
  std::unique_ptr<ZSTD_DCtx, freed> decompressor_;
  // Written by calls that are const: a transport is used by one thread.
  mutable std::vector<std::vector<std::byte>> rooms_;  // of messages to each rank
  mutable std::vector<std::byte> arrived_;
  mutable std::vector<message> messages_;
  mutable std::vector<std::uint64_t> lengths_, lengths_of_others_;
  mutable std::uint64_t given_ = 0, sent_ = 0;
};

}  // namespace tersum::inline v0

#include <tersum/interop/detail/zstd.ipp>
