// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A parameter server for gradients: workers push codes, it decodes and adds them, encodes the mean, and workers pull that.

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
#include <span>
#include <stop_token>
#include <vector>

namespace tersum::inline v0 {

//! How a server works; it decides no byte.
struct server_options {
  //! After the first push of a piece and step no longer is waited for the others: the mean is of those that came.
  std::chrono::milliseconds deadline = std::chrono::seconds(1);
  //! `serve` ends with an error if no message came for so long.
  std::chrono::milliseconds idle = std::chrono::seconds(60);
  int threads                    = 1;  //!< That decode and encode: 1 to 4096.
  int first_worker               = 1;  //!< Worker w is rank first_worker + w of the transport.
  //! The clock of deadlines, for tests.
  std::chrono::steady_clock::time_point (*now)() = &std::chrono::steady_clock::now;
};

//! What became of pushes. One push is that of one piece in one step.
struct push_counts {
  std::uint64_t counted = 0;  //!< Are in a mean.
  std::uint64_t missing = 0;  //!< Had not come by the deadline.
  std::uint64_t late    = 0;  //!< Came after it, and were dropped.
  //! Of a later step than the one that is open: their worker has given up on that one and is not waited for. They are kept until their
  //! step begins, unless the worker is in the open one, too.
  std::uint64_t early    = 0;
  std::uint64_t repeated = 0;  //!< Came twice.
  //! Missing, and have not come late: lost, or on their way.
  [[nodiscard]] std::uint64_t lost() const noexcept { return missing > late ? missing - late : 0; }
};

//! What a server has done.
struct server_counts {
  std::uint64_t steps   = 0;  //!< Means, one for each piece and step.
  std::uint64_t answers = 0;  //!< Sent.
  std::uint64_t told    = 0;  //!< Pulls that were answered with the present step.
  std::uint64_t refused = 0;  //!< Messages of no use, see `parameter_server::last_refusal`.
};

//! @brief The server of a `served_plan`.
//!
//! For each piece and step: s = mean of D(c_i) over the workers i whose codes c_i came in time; the answer is c = C(s + gain e), and with
//! feedback in `Down`, e = s + gain e - D(c). Codes are decoded, and added in float in the order of the workers, once the last one has
//! come or the deadline has passed, so that results do not depend on the order of arrival. All workers get the same bytes. Where all
//! workers are in time the mean is that of `all_reduce_mean` with `two_shot` and the same policies, but for the rounding of
//! floats, if the quantizer has no dither; with `cast` of powers of two it has the same bits.
//!
//! Pieces do not wait for each other; each is decoded and encoded by one thread. A piece's step begins with its first push. Steps ascend
//! and may be left out. A push that comes after its deadline is counted and dropped; its worker is told so by the answer. A worker that
//! asks for a step whose mean is gone, or for one that is more than `most_ahead` steps away, is told the present step and takes part in
//! that: so those go on that were late, have lost an answer or were restarted, and so they do if the server was.
//!
//! Messages may hold anything: what does not fit the plan is counted and refused, as are pushes of far steps. They are not authenticated.
//! It allocates in its constructor, for each piece the pushes of all workers and 3 floats a coordinate or less, and for each message.
//!
//! Source: BytePS-Compress and CLAN (Zhong et al., 2021).
template <publishing Up, publishing Down = Up>
class parameter_server {
 public:
  //! How many steps a worker may be ahead of the server's furthest piece: as often it has given up without an answer.
  static constexpr std::uint64_t most_ahead = 8;

  parameter_server(served_plan<Up, Down> const& plan, server_options const& options);

  //! Whether plan and options can be served; if not, which argument is at fault.
  [[nodiscard]] status check() const noexcept;

  //! @brief Serves until all workers have left or it is stopped. One thread calls it, which alone uses the transport.
  //! @param transport  This rank's, from whose other ranks the workers' messages come.
  //! @param stop       Ends it before the workers leave.
  //! @return  The transport's error, or transport_failed if no message came for `idle`.
  template <message_transport Transport>
  [[nodiscard]] status serve(Transport& transport, std::stop_token stop = {});

  //! @brief Does what is to be done now, and takes one message at most: for a server in a loop of yours.
  //! @param transport  As for `serve`.
  //! @param patience   How long to wait for a message; less if a deadline is due before.
  //! @return  The transport's error.
  template <message_transport Transport>
  [[nodiscard]] status poll(Transport& transport, std::chrono::microseconds patience);

  //! Whether a mean is being made, which `poll` will answer with.
  [[nodiscard]] bool is_adding() const noexcept { return under_way_ > 0; }
  //! Whether all workers have left.
  [[nodiscard]] bool is_left() const noexcept { return left_ == pushes_.size(); }

  //! @name What it has done
  //! To be asked by the thread that serves, or after that.
  //! @{
  [[nodiscard]] server_counts const& counts() const noexcept { return counts_; }
  //! What became of a worker's pushes.
  [[nodiscard]] push_counts const& pushes(int worker) const
  {
    return pushes_[static_cast<std::size_t>(worker)];
  }
  //! Why the last message was refused; ok if none was.
  [[nodiscard]] status last_refusal() const noexcept { return refusal_; }
  //! What feedback keeps of a compressed piece.
  [[nodiscard]] std::span<residual_element<Down>> kept(std::size_t piece) requires(feeds_back<Down>)
  {
    return pieces_[piece]->down.kept();
  }
  //! @}

 private:
  using clock      = std::chrono::steady_clock;
  using up_decoder = decltype(std::declval<served_plan<Up, Down> const&>().up_decoder(0));

  enum class phase { waits, is_open, is_added };

  struct piece_state {
    piece_state(served_plan<Up, Down> const& plan, std::size_t number);

    phase now          = phase::waits;
    std::uint64_t step = 0;   // that is open or added, or the next one
    clock::time_point end{};  // its deadline
    float gain = 1;           // of the mean that is made
    // Of each worker: its codes and their gain, whether it has come in this step, and whether it is in the mean that is made.
    std::vector<std::vector<std::byte>> codes;
    std::vector<float> gains;
    std::vector<char> has_come, was_in;
    // Of each worker the step after the one that it has asked for, that its codes are of if it is ahead, that it was in last; or 0.
    std::vector<std::uint64_t> wants, ahead, last_in;
    std::vector<float> sum, one;
    std::vector<std::byte> answer;  // message of the last step that was answered
    bool has_answer        = false;
    std::uint64_t answered = 0;
    std::uint32_t counted  = 0;
    detail::piece_coder<typename up_decoder::codec_type> up;
    detail::piece_coder<Down> down;
    status outcome;
  };

  void take_push(message_header const& header, std::span<std::byte const> payload);
  template <class Transport>
  [[nodiscard]] status take_pull(message_header const& header, Transport& transport);
  void open(std::size_t number, std::uint64_t step);
  void open_kept(std::size_t number);
  [[nodiscard]] bool is_complete(piece_state const& piece) const;
  [[nodiscard]] bool is_far(std::uint64_t step) const noexcept
  {
    return step > present_ && step - present_ > most_ahead;
  }
  void close(std::size_t number);
  static void add(piece_state& piece);
  template <class Transport>
  [[nodiscard]] status answer(piece_state& piece,
                              std::size_t number,
                              std::size_t worker,
                              Transport& transport);
  template <class Transport>
  [[nodiscard]] status tell_step(piece_state const& piece,
                                 std::size_t number,
                                 std::size_t worker,
                                 std::uint64_t asked,
                                 Transport& transport);
  template <class Transport>
  [[nodiscard]] status send_done(Transport& transport);
  template <class Transport>
  [[nodiscard]] status take(std::span<std::byte const> message, int from, Transport& transport);
  [[nodiscard]] status check_message(message_header const& header, int from) const;
  void refuse(status const& why)
  {
    refusal_ = why;
    ++counts_.refused;
  }
  [[nodiscard]] std::chrono::microseconds close_due();

  served_plan<Up, Down> plan_;
  server_options options_;
  std::vector<std::unique_ptr<piece_state>> pieces_;
  std::vector<std::size_t> open_;  // pieces that are
  std::vector<push_counts> pushes_;
  std::vector<char> has_left_;
  std::uint64_t present_ = 0;  // the furthest of the pieces' steps
  server_counts counts_;
  status refusal_;
  std::vector<std::byte> memory_;  // of the message that comes
  clock::time_point heard_{};      // when the last one came
  std::size_t left_ = 0, under_way_ = 0;
  std::unique_ptr<detail::job_threads> threads_;  // ends first
};

}  // namespace tersum::inline v0

#include <tersum_server/detail/parameter_server.ipp>
