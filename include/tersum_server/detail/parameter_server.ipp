// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of parameter_server.hpp.

#include <tersum/block/group.hpp>
#include <tersum/quantize/cast.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tersum::inline v0 {

template <publishing Up, publishing Down>
parameter_server<Up, Down>::parameter_server(served_plan<Up, Down> const& plan,
                                             server_options const& options)
  : plan_(plan), options_(options)
{
  if (!check().ok()) { return; }
  options_.deadline = std::min<std::chrono::milliseconds>(options_.deadline, detail::longest_wait);
  options_.idle     = std::min<std::chrono::milliseconds>(options_.idle, detail::longest_wait);
  pushes_.resize(static_cast<std::size_t>(plan_.options().workers));
  has_left_.resize(pushes_.size());
  for (std::size_t number = 0; number < plan_.pieces().size(); ++number) {
    pieces_.push_back(std::make_unique<piece_state>(plan_, number));
  }
  memory_.resize(plan_.most_message_bytes());
  threads_ = std::make_unique<detail::job_threads>(options_.threads);
}

template <publishing Up, publishing Down>
parameter_server<Up, Down>::piece_state::piece_state(served_plan<Up, Down> const& plan,
                                                     std::size_t number)
  : up(plan.up_decoder(number), plan.pieces()[number].compressed, plan.options().seed, 0),
    down(plan.down(number), plan.pieces()[number].compressed, plan.options().seed, 0)
{
  auto const workers = static_cast<std::size_t>(plan.options().workers);
  codes.assign(workers, std::vector<std::byte>(plan.pieces()[number].push_bytes));
  has_come.resize(workers);
  was_in.resize(workers);
  gains.resize(workers);
  wants.resize(workers);
  ahead.resize(workers);
  last_in.resize(workers);
  sum.resize(plan.pieces()[number].size);
  one.resize(sum.size());
  answer.resize(sizeof(message_header) + plan.pieces()[number].answer_bytes);
}

template <publishing Up, publishing Down>
status parameter_server<Up, Down>::check() const noexcept
{
  if (options_.threads < 1 || options_.threads > 4096) {
    return {error_code::invalid_argument, "options.threads must be between 1 and 4096"};
  }
  if (options_.deadline.count() < 0 || options_.idle.count() <= 0) {
    return {error_code::invalid_argument,
            "options.deadline must not be negative, and options.idle must be above zero"};
  }
  if (options_.first_worker < 0) {
    return {error_code::invalid_argument, "options.first_worker must not be negative"};
  }
  return plan_.check();
}

template <publishing Up, publishing Down>
template <message_transport Transport>
status parameter_server<Up, Down>::serve(Transport& transport, std::stop_token stop)
{
  if (status const s = check(); !s.ok()) { return s; }
  if (status const s = transport.check(); !s.ok()) { return s; }
  if (transport.size() - options_.first_worker < plan_.options().workers) {
    return {error_code::invalid_argument,
            "the transport has too few ranks for options.first_worker and the plan's workers"};
  }
  constexpr std::chrono::milliseconds sometimes{20};  // to see that it is stopped
  heard_ = options_.now();
  status outcome;
  while (outcome.ok() && !is_left() && !stop.stop_requested()) {
    outcome = poll(transport, sometimes);
    if (outcome.ok() && under_way_ == 0 && open_.empty() &&
        options_.now() > heard_ + options_.idle) {
      outcome = {error_code::transport_failed, "no worker sent anything for options.idle"};
    }
  }
  threads_->finish();
  return outcome.ok() ? send_done(transport) : outcome;
}

template <publishing Up, publishing Down>
template <message_transport Transport>
status parameter_server<Up, Down>::poll(Transport& transport, std::chrono::microseconds patience)
{
  if (status const s = check(); !s.ok()) { return s; }
  constexpr std::chrono::microseconds soon{100};  // whoever waits for jobs looks for them as often
  if (status const s = send_done(transport); !s.ok()) { return s; }
  patience = std::min(patience, close_due());
  if (under_way_ > 0) { patience = std::min(patience, soon); }
  incoming what;
  if (status const s = transport.receive(memory_, patience, what); !s.ok()) { return s; }
  if (what.from < 0) { return {}; }
  heard_ = options_.now();
  if (what.bytes <= memory_.size()) {
    return take(std::span{memory_}.first(what.bytes), what.from, transport);
  }
  refuse({error_code::invalid_argument, "the message is longer than any of the plan's"});
  return {};
}

template <publishing Up, publishing Down>
status parameter_server<Up, Down>::check_message(message_header const& header, int from) const
{
  constexpr auto invalid = error_code::invalid_argument;
  if (header.worker >= pushes_.size()) {
    return {invalid, "the message is of no worker of the plan"};
  }
  if (from - options_.first_worker != static_cast<int>(header.worker)) {
    return {invalid, "the message names another worker than the one that sent it"};
  }
  if (header.fingerprint != plan_.fingerprint()) {
    return {invalid, "the worker has another plan: codecs, tensors, workers or seed differ"};
  }
  if (header.kind == message_kind::answer || header.kind == message_kind::step) {
    return {invalid, "the message is one of a server"};
  }
  if (header.kind == message_kind::leave) { return {}; }
  if (header.piece >= pieces_.size()) {
    return {invalid, "the message is of no piece of the plan"};
  }
  if (header.kind == message_kind::pull) {
    return header.bytes == 0 ? status{} : status{invalid, "a pull has no payload"};
  }
  if (header.bytes != pieces_[header.piece]->codes[0].size()) {
    return {invalid, "the payload of the push has another length than the plan says"};
  }
  if (!(header.gain >= 0) || !std::isfinite(header.gain)) {
    return {invalid, "the gain of the push is negative or not finite"};
  }
  if (is_far(header.step)) { return {invalid, "the step of the push is far from the present one"}; }
  return {};
}

template <publishing Up, publishing Down>
template <class Transport>
status parameter_server<Up, Down>::take(std::span<std::byte const> message,
                                        int from,
                                        Transport& transport)
{
  message_header header;
  status good = read_header(message, header);
  if (good.ok()) { good = check_message(header, from); }
  if (!good.ok()) {
    refuse(good);
    return {};
  }
  if (header.kind == message_kind::pull) { return take_pull(header, transport); }
  if (header.kind == message_kind::push) {
    take_push(header, message.subspan(sizeof header));
  } else if (has_left_[header.worker] == 0) {
    has_left_[header.worker] = 1;
    ++left_;
    for (std::size_t number = 0; number < pieces_.size(); ++number) {
      piece_state const& piece = *pieces_[number];
      if (piece.now == phase::is_open && is_complete(piece)) { close(number); }
      open_kept(number);
    }
  }
  return {};
}

template <publishing Up, publishing Down>
void parameter_server<Up, Down>::take_push(message_header const& header,
                                           std::span<std::byte const> payload)
{
  piece_state& piece       = *pieces_[header.piece];
  push_counts& counts      = pushes_[header.worker];
  std::size_t const worker = header.worker;
  if (has_left_[worker] != 0) {  // it was restarted
    has_left_[worker] = 0;
    --left_;
  }
  if (piece.now == phase::waits && header.step >= piece.step) { open(header.piece, header.step); }
  bool const is_open = piece.now == phase::is_open;
  auto const put     = [&] {
    piece.gains[worker] = header.gain;
    std::copy(payload.begin(), payload.end(), piece.codes[worker].begin());
  };
  if (is_open && header.step == piece.step && piece.has_come[worker] == 0) {
    piece.has_come[worker] = 1;
    piece.ahead[worker]    = 0;
    put();
  } else if (header.step > piece.step) {
    ++counts.early;
    // It is kept where the worker's codes of this step would be, if those have not come.
    bool const is_used =
      (piece.now == phase::is_added ? piece.was_in : piece.has_come)[worker] != 0;
    if (!is_used) {
      piece.ahead[worker] = header.step + 1;
      put();
    }
  } else {
    // While it waits, `step` is the next one.
    bool const last = header.step + (piece.now == phase::waits ? 1 : 0) == piece.step;
    if (last && piece.has_come[worker] != 0) {
      ++counts.repeated;
    } else {
      ++counts.late;
      if (last) { piece.has_come[worker] = 1; }
    }
    return;
  }
  if (is_open && is_complete(piece)) { close(header.piece); }
}

//! Whether nobody needs to be waited for.
template <publishing Up, publishing Down>
bool parameter_server<Up, Down>::is_complete(piece_state const& piece) const
{
  for (std::size_t worker = 0; worker < pushes_.size(); ++worker) {
    if (piece.has_come[worker] == 0 && has_left_[worker] == 0 && piece.ahead[worker] == 0) {
      return false;
    }
  }
  return true;
}

template <publishing Up, publishing Down>
void parameter_server<Up, Down>::open(std::size_t number, std::uint64_t step)
{
  piece_state& piece = *pieces_[number];
  piece.now          = phase::is_open;
  piece.step         = step;
  piece.end          = options_.now() + options_.deadline;
  present_           = std::max(present_, step);
  open_.push_back(number);
  for (std::size_t worker = 0; worker < pushes_.size(); ++worker) {
    piece.has_come[worker] = piece.ahead[worker] == step + 1 ? 1 : 0;
    if (piece.ahead[worker] <= step + 1) { piece.ahead[worker] = 0; }
  }
}

//! Begins a step with pushes that came early, if it is the next one or nobody is left who could begin another one before.
template <publishing Up, publishing Down>
void parameter_server<Up, Down>::open_kept(std::size_t number)
{
  piece_state& piece  = *pieces_[number];
  std::uint64_t first = 0;
  bool all            = true;
  for (std::size_t worker = 0; worker < pushes_.size(); ++worker) {
    std::uint64_t const after = piece.ahead[worker];
    if (after != 0 && (first == 0 || after < first)) { first = after; }
    all = all && (after != 0 || has_left_[worker] != 0);
  }
  if (piece.now != phase::waits || first == 0 || (first != piece.step + 1 && !all)) { return; }
  open(number, first - 1);
  if (is_complete(piece)) { close(number); }
}

template <publishing Up, publishing Down>
void parameter_server<Up, Down>::close(std::size_t number)
{
  piece_state& piece = *pieces_[number];
  piece.now          = phase::is_added;
  piece.was_in       = piece.has_come;
  // The gain is that of the first worker who is in the mean, whoever comes first.
  auto const first = std::find(piece.was_in.begin(), piece.was_in.end(), char{1});
  piece.gain       = piece.gains[static_cast<std::size_t>(first - piece.was_in.begin())];
  for (std::size_t worker = 0; worker < pushes_.size(); ++worker) {
    if (piece.was_in[worker] != 0) {
      piece.last_in[worker] = piece.step + 1;
      ++pushes_[worker].counted;
    } else if (has_left_[worker] == 0) {
      ++pushes_[worker].missing;
    }
  }
  std::erase(open_, number);
  ++under_way_;
  threads_->start(number, [&piece] { add(piece); });
}

//! Closes what is due, and says when the next one will be.
template <publishing Up, publishing Down>
std::chrono::microseconds parameter_server<Up, Down>::close_due()
{
  auto const now = options_.now();
  auto next      = std::chrono::microseconds::max();
  for (std::size_t i = open_.size(); i-- > 0;) {
    std::size_t const number = open_[i];
    auto const left =
      std::chrono::duration_cast<std::chrono::microseconds>(pieces_[number]->end - now);
    if (left.count() <= 0) {
      close(number);
    } else {
      next = std::min(next, left);
    }
  }
  return next;
}

//! Of a thread: it touches what is only the piece's and what nobody else touches until it is done.
template <publishing Up, publishing Down>
void parameter_server<Up, Down>::add(piece_state& piece)
{
  piece.counted = 0;
  for (std::size_t worker = 0; worker < piece.codes.size(); ++worker) {
    if (piece.was_in[worker] == 0) { continue; }
    auto& to      = piece.counted == 0 ? piece.sum : piece.one;
    piece.outcome = piece.up.decode(piece.step, piece.codes[worker], to);
    if (!piece.outcome.ok()) { return; }
    for (std::size_t i = 0; piece.counted > 0 && i < piece.sum.size(); ++i) {
      piece.sum[i] = host_group::add(piece.sum[i], piece.one[i]);
    }
    ++piece.counted;
  }
  float const share = 1.0f / static_cast<float>(piece.counted);
  for (float& v : piece.sum) { v = host_group::multiply(v, share); }
  auto const payload = std::span{piece.answer}.subspan(sizeof(message_header));
  piece.outcome      = piece.down.encode(piece.step, piece.gain, piece.sum, payload);
}

template <publishing Up, publishing Down>
template <class Transport>
status parameter_server<Up, Down>::send_done(Transport& transport)
{
  for (std::size_t const number : threads_->done()) {
    piece_state& piece = *pieces_[number];
    --under_way_;
    ++counts_.steps;
    if (!piece.outcome.ok()) { return piece.outcome; }
    piece.now        = phase::waits;
    piece.has_answer = true;
    piece.answered   = piece.step;
    piece.step       = piece.step + 1;
    present_         = std::max(present_, piece.step);
    for (std::size_t worker = 0; worker < piece.wants.size(); ++worker) {
      if (piece.wants[worker] == 0 || piece.wants[worker] > piece.step) { continue; }
      std::uint64_t const asked = std::exchange(piece.wants[worker], 0) - 1;
      status const s            = asked == piece.answered ? answer(piece, number, worker, transport)
                                                          : tell_step(piece, number, worker, asked, transport);
      if (!s.ok()) { return s; }
    }
    open_kept(number);
  }
  return {};
}

template <publishing Up, publishing Down>
template <class Transport>
status parameter_server<Up, Down>::take_pull(message_header const& header, Transport& transport)
{
  piece_state& piece = *pieces_[header.piece];
  if (piece.has_answer && header.step == piece.answered && piece.now != phase::is_added) {
    return answer(piece, header.piece, header.worker, transport);
  }
  if (header.step < piece.step || is_far(header.step)) {
    return tell_step(piece, header.piece, header.worker, header.step, transport);
  }
  // It has come before the mean, or before the first push. A later one stays.
  piece.wants[header.worker] = std::max(piece.wants[header.worker], header.step + 1);
  return {};
}

template <publishing Up, publishing Down>
template <class Transport>
status parameter_server<Up, Down>::answer(piece_state& piece,
                                          std::size_t number,
                                          std::size_t worker,
                                          Transport& transport)
{
  message_header header = plan_.header(message_kind::answer, number, worker, piece.answered);
  header.bytes          = piece.answer.size() - sizeof header;
  header.counted        = piece.counted;
  header.in_mean        = piece.last_in[worker] == piece.answered + 1 ? 1 : 0;
  write_header(header, piece.answer);
  ++counts_.answers;
  return transport.send(options_.first_worker + static_cast<int>(worker), piece.answer);
}

//! Tells a worker which step is the present one, as the mean that it asks for is gone, or far.
template <publishing Up, publishing Down>
template <class Transport>
status parameter_server<Up, Down>::tell_step(piece_state const& piece,
                                             std::size_t number,
                                             std::size_t worker,
                                             std::uint64_t asked,
                                             Transport& transport)
{
  message_header header = plan_.header(message_kind::step, number, worker, asked);
  header.in_mean        = piece.last_in[worker] == asked + 1 ? 1 : 0;
  header.present        = present_;
  std::byte message[sizeof header];
  write_header(header, message);
  ++counts_.told;
  return transport.send(options_.first_worker + static_cast<int>(worker), message);
}

}  // namespace tersum::inline v0
