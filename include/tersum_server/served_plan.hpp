// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which pieces of which tensors workers push and a parameter server answers, in how many bytes.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/description.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/form/publish.hpp>
#include <tersum/status.hpp>
#include <tersum_server/message_header.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tersum::inline v0 {

//! What all workers and the server of a `served_plan` have in common, besides codecs and tensors.
struct served_options {
  int workers        = 1;  //!< 1 to 65534.
  std::uint64_t seed = 0;  //!< The run's.
  //! Tensors of fewer coordinates travel as floats. As BytePS has it: 65,536 bytes.
  std::uint64_t compress_from = 16384;
  //! Tensors are cut into pieces of so many coordinates, which are compressed in parallel. As BytePS has it: 4,096,000 bytes.
  std::uint64_t most_coordinates = 1024000;
};

//! One message of one step: neighbouring coordinates of a tensor.
struct served_piece {
  std::uint32_t tensor;
  std::uint64_t begin;  //!< First coordinate within the tensor.
  std::uint64_t size;   //!< Coordinates.
  //! It travels as floats otherwise, as do pieces whose codes would be larger.
  bool compressed          = false;
  std::uint64_t push_bytes = 0, answer_bytes = 0;  //!< Of payload.
};

//! @brief What workers and the server agree on: made alike by all of them.
//!
//! A piece is encoded by one rank as its whole shard: the codecs are those of `all_gather_values`, one for the way up, one for the way
//! down. It allocates, like all of the parameter server.
//! @tparam Up    A codec with `publish`, of pushes; its feedback, if any, is the workers'.
//! @tparam Down  The same of answers; its feedback is the server's.
template <publishing Up, publishing Down = Up>
class served_plan {
  static_assert(!codes_differences<Up> && !codes_differences<Down>,
                "tersum: a parameter server keeps what codes lost, not what workers hold: "
                "difference_feedback is for all_gather_values");
  static_assert(!in_metric<Up> && !in_metric<Down>,
                "tersum: a parameter server holds no scales of a metric: use plain_metric");

 public:
  static constexpr std::uint64_t most_pieces = std::uint64_t{1} << 20;  //!< Of all tensors.

  //! @param up       Codec of pushes.
  //! @param down     Codec of answers.
  //! @param tensors  Coordinates of each tensor.
  //! @param options  The rest.
  served_plan(Up const& up,
              Down const& down,
              std::span<std::uint64_t const> tensors,
              served_options const& options);

  //! An error that names the argument at fault, where the plan cannot be served.
  [[nodiscard]] status check() const noexcept { return made_; }

  [[nodiscard]] served_options const& options() const noexcept { return options_; }
  //! Coordinates of each tensor.
  [[nodiscard]] std::span<std::uint64_t const> tensors() const noexcept { return tensors_; }
  //! Pieces of all tensors, in their order. Empty tensors have none.
  [[nodiscard]] std::span<served_piece const> pieces() const noexcept { return pieces_; }
  //! A tensor's first piece; of the number of tensors: the number of pieces.
  [[nodiscard]] std::size_t first_piece(std::size_t tensor) const noexcept
  {
    return first_[tensor];
  }

  //! Bytes of the longest message, with its header.
  [[nodiscard]] std::size_t most_message_bytes() const noexcept
  {
    return most_bytes_ + sizeof(message_header);
  }
  //! A hash of all of it: messages of unlike plans are refused.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  //! A message about a piece, which a worker sends or gets.
  [[nodiscard]] message_header header(message_kind kind,
                                      std::size_t piece,
                                      std::size_t worker,
                                      std::uint64_t step) const noexcept
  {
    message_header out;
    out.kind        = kind;
    out.piece       = static_cast<std::uint32_t>(piece);
    out.worker      = static_cast<std::uint32_t>(worker);
    out.step        = step;
    out.fingerprint = fingerprint_;
    return out;
  }

  //! @name Plans of a compressed piece
  //! @{
  [[nodiscard]] plan<Up> up(std::size_t piece) const { return plan_of(up_, piece); }
  [[nodiscard]] plan<Down> down(std::size_t piece) const { return plan_of(down_, piece); }
  //! Of who decodes, and so has no feedback.
  [[nodiscard]] auto up_decoder(std::size_t piece) const { return plan_of(decoder_of(up_), piece); }
  [[nodiscard]] auto down_decoder(std::size_t piece) const
  {
    return plan_of(decoder_of(down_), piece);
  }
  //! @}

 private:
  [[nodiscard]] status check_sizes() const;
  template <class Codec>
  [[nodiscard]] plan<Codec> plan_of(Codec const& codec, std::size_t piece) const
  {
    return codec.plan(layout{pieces_[piece].size}, world{});
  }
  template <class Chunker, class Rotator, class Coder, class Feedback>
  [[nodiscard]] static auto decoder_of(codec<Chunker, Rotator, Coder, publish, Feedback> const& c)
  {
    return codec<Chunker, Rotator, Coder, publish>{
      .chunker = c.chunker, .rotator = c.rotator, .coder = c.coder};
  }

  Up up_;
  Down down_;
  served_options options_;
  std::vector<std::uint64_t> tensors_;
  std::vector<served_piece> pieces_;
  std::vector<std::size_t> first_;
  std::uint64_t most_bytes_ = 0, fingerprint_ = 0;
  status made_;
};

}  // namespace tersum::inline v0

#include <tersum_server/detail/served_plan.ipp>
