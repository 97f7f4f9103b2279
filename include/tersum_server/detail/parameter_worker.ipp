// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of parameter_worker.hpp.

#include <tersum/block/group.hpp>

#include <algorithm>
#include <cmath>

namespace tersum::inline v0 {

template <publishing Up, publishing Down, message_transport Transport>
parameter_worker<Up, Down, Transport>::parameter_worker(served_plan<Up, Down> const& plan,
                                                        Transport& transport,
                                                        worker_options const& options)
  : plan_(plan), transport_(&transport), options_(options)
{
  if (!check().ok()) { return; }
  options_.patience = std::min<std::chrono::milliseconds>(options.patience, detail::longest_wait);
  options_.again    = std::min<std::chrono::milliseconds>(options.again, detail::longest_wait);
  for (std::size_t number = 0; number < plan_.pieces().size(); ++number) {
    pieces_.push_back(std::make_unique<piece_state>(plan_, number, options));
  }
  memory_.resize(plan_.most_message_bytes());
  threads_ = std::make_unique<detail::job_threads>(options.threads);
}

//! The server's random numbers are those of 0.
template <publishing Up, publishing Down, message_transport Transport>
parameter_worker<Up, Down, Transport>::piece_state::piece_state(served_plan<Up, Down> const& plan,
                                                                std::size_t number,
                                                                worker_options const& options)
  : up(plan.up(number),
       plan.pieces()[number].compressed,
       plan.options().seed,
       static_cast<std::uint64_t>(options.number) + 1),
    down(plan.down_decoder(number), plan.pieces()[number].compressed, plan.options().seed, 0)
{
  push.resize(sizeof(message_header) + plan.pieces()[number].push_bytes);
  answer.resize(plan.pieces()[number].answer_bytes);
  if (feeds_back<Up> && options.takes_back && plan.pieces()[number].compressed) {
    back.emplace(plan.up_decoder(number), true, plan.options().seed, 0);
  }
}

template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::check() const noexcept
{
  constexpr auto invalid = error_code::invalid_argument;
  if (options_.threads < 1 || options_.threads > 4096) {
    return {invalid, "options.threads must be between 1 and 4096"};
  }
  if (options_.patience.count() <= 0 || options_.again.count() <= 0) {
    return {invalid, "options.patience and options.again must be above zero"};
  }
  if (status const s = plan_.check(); !s.ok()) { return s; }
  if (options_.number < 0 || options_.number >= plan_.options().workers) {
    return {invalid, "options.number must be between 0 and the plan's workers - 1"};
  }
  if (status const s = transport_->check(); !s.ok()) { return s; }
  if (options_.server < 0 || options_.server >= transport_->size()) {
    return {invalid, "options.server must be a rank of the transport"};
  }
  return {};
}

template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::push(std::size_t tensor,
                                                   std::span<float> gradient,
                                                   float gain)
{
  constexpr auto invalid = error_code::invalid_argument;
  if (status const s = check(); !s.ok()) { return s; }
  if (tensor >= plan_.tensors().size()) { return {invalid, "tensor is none of the plan's"}; }
  if (gradient.size() != plan_.tensors()[tensor]) {
    return {invalid, "gradient.size() differs from the plan's coordinates of this tensor"};
  }
  if (!(gain >= 0) || !std::isfinite(gain)) {
    return {invalid, "gain must be finite and not negative"};
  }
  std::size_t const first = plan_.first_piece(tensor), last = plan_.first_piece(tensor + 1);
  if (first < last && pieces_[first]->now != phase::idle) {
    return {invalid, "tensor has been pushed in this step: call pull_all first"};
  }
  for (std::size_t number = first; number < last; ++number) {
    piece_state& piece        = *pieces_[number];
    served_piece const& where = plan_.pieces()[number];
    piece.gradient            = gradient.subspan(where.begin, where.size);
    piece.gain                = gain;
    piece.now                 = phase::is_encoded;
    ++under_way_;
    threads_->start(number, [this, &piece] {
      auto const payload = std::span{piece.push}.subspan(sizeof(message_header));
      piece.outcome      = piece.up.encode(step_, piece.gain, piece.gradient, payload);
    });
  }
  return send_done();
}

template <publishing Up, publishing Down, message_transport Transport>
void parameter_worker<Up, Down, Transport>::decode(piece_state& piece) const
{
  piece.outcome = piece.down.decode(step_, piece.answer, piece.gradient);
  if (!piece.in_mean && piece.outcome.ok()) { take_back(piece); }
}

//! Returns to the residual what a push says that is in no mean.
template <publishing Up, publishing Down, message_transport Transport>
void parameter_worker<Up, Down, Transport>::take_back(piece_state& piece) const
{
  piece.outcome = {};
  if constexpr (feeds_back<Up>) {
    if (!piece.back) { return; }
    piece.lost.resize(piece.gradient.size());
    auto const codes = std::span<std::byte const>{piece.push}.subspan(sizeof(message_header));
    piece.outcome    = piece.back->decode(step_, codes, piece.lost);
    auto const kept  = piece.up.kept();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      float const sum = host_group::add(to_float(kept[i]), piece.lost[i]);
      if (std::isfinite(sum)) { kept[i] = from_float<residual_element<Up>>(sum); }
    }
  }
}

//! Sends what has been encoded.
template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::send_done()
{
  for (std::size_t const number : threads_->done()) {
    piece_state& piece = *pieces_[number];
    --under_way_;
    phase const was = std::exchange(piece.now, phase::idle);
    if (!piece.outcome.ok()) { return piece.outcome; }
    if (was == phase::is_decoded) { ++counts_.answered; }
    if (was != phase::is_encoded) { continue; }
    message_header header = header_of(message_kind::push, number);
    header.bytes          = piece.push.size() - sizeof header;
    header.gain           = piece.gain;
    write_header(header, piece.push);
    piece.now = phase::waits;
    ++waiting_;
    ++counts_.pushed;
    if (status const s = transport_->send(options_.server, piece.push); !s.ok()) { return s; }
    if (status const s = ask(number); !s.ok()) { return s; }
  }
  return {};
}

template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::ask(std::size_t number)
{
  std::byte message[sizeof(message_header)];
  write_header(header_of(message_kind::pull, number), message);
  pieces_[number]->asked = options_.now();
  return transport_->send(options_.server, message);
}

template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::take(std::span<std::byte const> message, int from)
{
  message_header header;
  bool good = read_header(message, header).ok() && from == options_.server &&
              (header.kind == message_kind::answer || header.kind == message_kind::step) &&
              header.fingerprint == plan_.fingerprint() &&
              header.worker == static_cast<std::uint32_t>(options_.number) &&
              header.piece < pieces_.size();
  bool const is_answer = header.kind == message_kind::answer;
  good = good && header.bytes == (is_answer ? pieces_[header.piece]->answer.size() : 0);
  if (!good) {
    ++counts_.refused;
    return {};
  }
  piece_state& piece = *pieces_[header.piece];
  // It may come twice, after it was given up, or be for the worker that this one takes the place of.
  if (header.step != step_ || piece.now != phase::waits) { return {}; }
  piece.in_mean = header.in_mean != 0;
  --waiting_;
  if (!is_answer) {
    ++counts_.missed;
    told_     = std::max(told_.value_or(0), header.present);
    piece.now = piece.in_mean || !piece.back ? phase::idle : phase::is_missed;
    if (piece.now == phase::idle) { return {}; }
    ++under_way_;
    threads_->start(header.piece, [this, &piece] { take_back(piece); });
    return {};
  }
  auto const payload = message.subspan(sizeof header);
  std::copy(payload.begin(), payload.end(), piece.answer.begin());
  piece.counted = header.counted;
  if (!piece.in_mean) { ++counts_.left_out; }
  piece.now = phase::is_decoded;
  ++under_way_;
  threads_->start(header.piece, [this, &piece] { decode(piece); });
  return {};
}

template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::pull_all()
{
  if (status const s = check(); !s.ok()) { return s; }
  constexpr std::chrono::microseconds soon{100};
  auto const end = options_.now() + options_.patience;
  status outcome;
  while (outcome.ok()) {
    if (outcome = send_done(); !outcome.ok()) { break; }
    if (waiting_ == 0) {
      if (under_way_ == 0) { break; }
      threads_->wait_for_one();
      continue;
    }
    auto const now = options_.now();
    if (now >= end) {
      outcome = {error_code::transport_failed, "the server did not answer within options.patience"};
      break;
    }
    auto patience = std::chrono::duration_cast<std::chrono::microseconds>(end - now);
    for (std::size_t number = 0; number < pieces_.size() && outcome.ok(); ++number) {
      piece_state& piece = *pieces_[number];
      if (piece.now != phase::waits) { continue; }
      if (now >= piece.asked + options_.again) {
        ++counts_.asked_again;
        outcome = ask(number);
      }
      auto const next = piece.asked + options_.again - now;
      patience = std::min(patience, std::chrono::duration_cast<std::chrono::microseconds>(next));
    }
    if (!outcome.ok()) { break; }
    if (under_way_ > 0) { patience = std::min(patience, soon); }
    incoming what;
    patience = std::max(patience, soon);
    if (outcome = transport_->receive(memory_, patience, what); !outcome.ok()) { break; }
    if (what.from < 0) { continue; }
    if (what.bytes > memory_.size()) {
      ++counts_.refused;
    } else {
      outcome = take(std::span{memory_}.first(what.bytes), what.from);
    }
  }
  // Whatever happened, the step is over, and no thread works on the gradients.
  threads_->finish();
  for (std::size_t const number : threads_->done()) {
    if (pieces_[number]->now == phase::is_decoded && pieces_[number]->outcome.ok()) {
      ++counts_.answered;
    }
  }
  for (auto const& piece : pieces_) {
    if (piece->now == phase::waits) { ++counts_.unanswered; }
    piece->now = phase::idle;
  }
  under_way_ = waiting_ = 0;
  if (told_ && outcome.ok()) {
    outcome = {error_code::transport_failed,
               "the server is at another step than this worker was: the worker goes on with that"};
  }
  step_ = std::exchange(told_, std::nullopt).value_or(step_ + 1);
  return outcome;
}

template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::exchange(std::span<std::span<float> const> gradients,
                                                       float gain)
{
  if (gradients.size() != plan_.tensors().size()) {
    return {error_code::invalid_argument, "gradients.size() differs from the plan's tensors"};
  }
  status outcome;
  for (std::size_t tensor = 0; tensor < gradients.size() && outcome.ok(); ++tensor) {
    outcome = push(tensor, gradients[tensor], gain);
  }
  status const pulled = pull_all();
  return outcome.ok() ? pulled : outcome;
}

template <publishing Up, publishing Down, message_transport Transport>
status parameter_worker<Up, Down, Transport>::leave()
{
  if (status const s = check(); !s.ok()) { return s; }
  std::byte message[sizeof(message_header)];
  write_header(header_of(message_kind::leave, 0), message);
  return transport_->send(options_.server, message);
}

}  // namespace tersum::inline v0
