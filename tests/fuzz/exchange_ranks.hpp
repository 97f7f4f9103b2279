// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The ranks of an exchange behind an interface that does not name the codec: programs with all codecs compile each once.

#pragma once

#include <tersum/exchange/check_state.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/layout.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tersum::tests {

//! One vector for each rank.
using gradients = std::vector<std::vector<float>>;

//! May overwrite what a rank has received, and what it has made of it.
using tampering = std::function<void(std::span<std::byte>)>;

//! What no result may depend on, apart from the order and the tampering.
struct exchange_settings {
  int threads                  = 1;
  instruction_set instructions = best_instruction_set();
  std::byte filling            = {};  //!< What the workspace holds before an exchange.
  int shift             = 0;  //!< Elements by which gradients begin behind a multiple of 64 bytes.
  reduction_order order = reduction_order::ring;
  tampering tamper      = {};
};

//! All ranks of one exchange, with their memory.
class tried_ranks {
 public:
  virtual ~tried_ranks() = default;

  //! Of the plans. If it is not ok, the ranks have no memory and nothing else may be called.
  [[nodiscard]] virtual status check() const                  = 0;
  [[nodiscard]] virtual status initialize(exchange_settings const& settings,
                                          std::uint64_t seed) = 0;

  //! @brief Replaces all gradients by their means. Of shards, the mean consists of what the ranks end with.
  //! @param values  Rounded to the type of the elements, before and after.
  [[nodiscard]] virtual status exchange(exchange_settings const& settings, gradients& values) = 0;

  //! The values as the ranks see them.
  virtual void round(gradients& values) const = 0;

  [[nodiscard]] virtual std::span<std::byte> state(int rank)                       = 0;
  [[nodiscard]] virtual state_seal seal_state(int rank) const                      = 0;
  [[nodiscard]] virtual status check_state(int rank) const                         = 0;
  [[nodiscard]] virtual status check_state(int rank, state_seal const& seal) const = 0;
  //! Bytes at the beginning of a state that are the same on all ranks.
  [[nodiscard]] virtual std::size_t common_bytes() const                 = 0;
  [[nodiscard]] virtual std::span<float const> residual(int rank)        = 0;
  [[nodiscard]] virtual std::span<tensor_record const> records(int rank) = 0;
  [[nodiscard]] virtual std::span<chunk_entry const> table(int rank)     = 0;
  //! Whether anything of what is compressed is sent.
  [[nodiscard]] virtual bool travels() const = 0;
  //! Whether anything is sent as codes, factors or chosen coordinates.
  [[nodiscard]] virtual bool compresses() const = 0;
  [[nodiscard]] virtual int world() const       = 0;
  //! Whether no byte beside the memory was written.
  [[nodiscard]] virtual bool intact() const = 0;

  [[nodiscard]] state_header const& header(int rank)
  {
    return *reinterpret_cast<state_header const*>(state(rank).data());
  }
  //! Whether a rank saw a value that is not finite in the last exchange.
  [[nodiscard]] bool flagged()
  {
    for (int rank = 0; rank < world(); ++rank) {
      if (header(rank).last_was_non_finite()) { return true; }
    }
    return false;
  }
};

//! How far a coordinate that is not finite reaches.
enum class reach {
  coordinate,  //!< It alone becomes NaN.
  chunk,       //!< Its chunk.
  tensor,      //!< Its tensor, or its piece of one under `full_hadamard`.
  codes,       //!< Its chunk becomes NaN, and other chunks may have other codes.
};

//! A codec as the programs know it.
struct tried_codec {
  std::string_view name;
  std::string_view element;
  std::unique_ptr<tried_ranks> (*make)(layout const& gradient, int world, int shift);
  bool feeds_back;
  bool tracks;
  bool keeps_scales;   //!< Of a metric.
  bool keeps_values;   //!< What all ranks hold, of which codes are differences.
  bool needs_tensors;  //!< Low-rank factors.
  bool sees_all;       //!< A NaN is noticed wherever it is.
  bool flags_shards;   //!< Each rank flags what is in its shard.
  bool publishes;      //!< What is exchanged are the values of shards, not means.
  reach far;
};

//! All that this program was built with.
[[nodiscard]] std::vector<tried_codec> tried_codecs();

}  // namespace tersum::tests
