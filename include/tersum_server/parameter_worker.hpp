// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A worker of a parameter server.

#pragma once

#include <tersum/status.hpp>
#include <tersum_server/detail/job_threads.hpp>
#include <tersum_server/detail/piece_coder.hpp>
#include <tersum_server/message_header.hpp>
#include <tersum_server/message_transport.hpp>
#include <tersum_server/served_plan.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tersum::inline v0 {

//! How a worker works.
struct worker_options {
  int number = 0;  //!< Which worker it is: 0 to the plan's workers - 1.
  int server = 0;  //!< The server's rank in the transport.
  //! How long `pull_all` waits. More than the server's deadline.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
  std::chrono::milliseconds again{500};  //!< After so long without an answer it asks again.
  int threads = 1;                       //!< That encode and decode: 1 to 4096.
  //! A push that is not in the mean goes back into the residual, if pushes have feedback that adds what was lost. Residuals in bfloat16
  //! are rounded to the nearest then.
  bool takes_back = true;
  //! The clock of `patience` and `again`, for tests.
  std::chrono::steady_clock::time_point (*now)() = &std::chrono::steady_clock::now;
};

//! What a worker has seen. One push is that of one piece in one step.
struct worker_counts {
  std::uint64_t pushed      = 0;
  std::uint64_t answered    = 0;
  std::uint64_t left_out    = 0;  //!< Of the answered: pushes that are not in the mean.
  std::uint64_t missed      = 0;  //!< Their mean was gone when it was asked for.
  std::uint64_t unanswered  = 0;  //!< Within `patience`.
  std::uint64_t asked_again = 0;
  std::uint64_t refused     = 0;  //!< Messages that are of no use.
};

//! @brief A worker: p = gradient + gain e, the push is c = C(p), and with feedback in `Up`, e = p - D(c).
//!
//! Every step it pushes each tensor once, whenever its gradient is there, and then pulls all of them:
//!
//!     worker.push(tensor, gradient, gain)     for each tensor, in any order, the same one on no two steps at once
//!     worker.pull_all()                       the gradients become the means
//!
//! Its threads encode and decode; messages are sent and received by the thread that calls, one at a time. It allocates in its
//! constructor and for each message.
//! @tparam Transport  Must outlive it.
template <publishing Up, publishing Down, message_transport Transport>
class parameter_worker {
 public:
  parameter_worker(served_plan<Up, Down> const& plan,
                   Transport& transport,
                   worker_options const& options);

  //! Whether plan, transport and options fit; if not, which argument is at fault.
  [[nodiscard]] status check() const noexcept;

  //! @brief Encodes a tensor's gradient and sends its codes.
  //! @param tensor    Of the plan. Once in a step.
  //! @param gradient  As many coordinates as the plan says. It must live, unchanged, until `pull_all` has returned.
  //! @param gain      Of feedback (`decayed_feedback`), the server's too: the learning rate of the last step over that of this one.
  //! @return  An error if tensor or gradient is not of the plan, if the gain is negative or not finite, or if the tensor has been pushed
  //!          in this step; the transport's errors.
  [[nodiscard]] status push(std::size_t tensor, std::span<float> gradient, float gain = 1);

  //! @brief Waits for the means of all that was pushed, which replace the gradients, and ends the step.
  //! @return  transport_failed if an answer did not come within `patience`, or if the server is at another step, because this worker was
  //!          late, has lost an answer or was restarted: the gradient of the piece is as it was, and the next step may go on with it.
  //!          Then weights lack what the others have added to theirs meanwhile. The transport's errors.
  [[nodiscard]] status pull_all();

  //! Pushes all tensors and pulls them. *Errors*: those of both, and a number of gradients that is not that of the plan's tensors.
  [[nodiscard]] status exchange(std::span<std::span<float> const> gradients, float gain = 1);

  //! Tells the server that nothing more will come. *Errors*: the transport's.
  [[nodiscard]] status leave();

  [[nodiscard]] worker_counts const& counts() const noexcept { return counts_; }
  //! The step of the next exchange: one more than that of the last, or the one that the server has told.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  //! Of workers that were in the last mean of a piece.
  [[nodiscard]] std::uint32_t counted(std::size_t piece) const { return pieces_[piece]->counted; }
  //! What feedback keeps of a compressed piece.
  [[nodiscard]] std::span<residual_element<Up>> kept(std::size_t piece) requires(feeds_back<Up>)
  {
    return pieces_[piece]->up.kept();
  }

 private:
  using clock        = std::chrono::steady_clock;
  using up_decoder   = decltype(std::declval<served_plan<Up, Down> const&>().up_decoder(0));
  using down_decoder = decltype(std::declval<served_plan<Up, Down> const&>().down_decoder(0));

  enum class phase { idle, is_encoded, waits, is_decoded, is_missed };

  struct piece_state {
    piece_state(served_plan<Up, Down> const& plan,
                std::size_t number,
                worker_options const& options);

    phase now = phase::idle;
    std::span<float> gradient;
    float gain = 1;
    std::vector<std::byte> push, answer;  // payloads, the first behind its header
    clock::time_point asked{};
    std::uint32_t counted = 0;
    bool in_mean          = true;
    detail::piece_coder<Up> up;
    std::optional<detail::piece_coder<typename up_decoder::codec_type>> back;
    detail::piece_coder<typename down_decoder::codec_type> down;
    std::vector<float> lost;
    status outcome;
  };

  void decode(piece_state& piece) const;
  void take_back(piece_state& piece) const;
  [[nodiscard]] message_header header_of(message_kind kind, std::size_t number) const
  {
    return plan_.header(kind, number, static_cast<std::size_t>(options_.number), step_);
  }
  [[nodiscard]] status ask(std::size_t number);
  [[nodiscard]] status send_done();
  [[nodiscard]] status take(std::span<std::byte const> message, int from);

  served_plan<Up, Down> plan_;
  Transport* transport_;
  worker_options options_;
  std::vector<std::unique_ptr<piece_state>> pieces_;
  std::vector<std::byte> memory_;
  worker_counts counts_;
  std::uint64_t step_ = 0;
  std::optional<std::uint64_t> told_;  // the present step, if the server has told it
  std::size_t under_way_ = 0, waiting_ = 0;
  std::unique_ptr<detail::job_threads> threads_;  // ends first
};

}  // namespace tersum::inline v0

#include <tersum_server/detail/parameter_worker.ipp>
