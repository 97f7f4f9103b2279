// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of entropy_gather.hpp.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tersum::inline v0 {

namespace detail {

//! Steps are the largest magnitude times 2^(-k/16), for k from 0 to this.
inline constexpr int entropy_steps = 16 * 23;

//! Longer gradients have their step found on a sample of every 16th run of so many coordinates.
inline constexpr std::size_t entropy_run = 4096;

//! Messages may always have so many bytes: the first codes are long, because nothing is known of them.
inline constexpr std::size_t least_entropy_room = 256;

//! The step of number k, or 2^-126 if it would be less.
inline float entropy_step(float largest, int k) noexcept
{
  static constexpr std::array<float, 16> roots = {1.f,
                                                  .957603281f,
                                                  .917004043f,
                                                  .878126080f,
                                                  .840896415f,
                                                  .805245166f,
                                                  .771105413f,
                                                  .738413073f,
                                                  .707106781f,
                                                  .677127773f,
                                                  .648419777f,
                                                  .620928906f,
                                                  .594603558f,
                                                  .569394317f,
                                                  .545253866f,
                                                  .522136891f};
  float const step = std::ldexp(largest * roots[static_cast<std::size_t>(k % 16)], -(k / 16));
  return std::max(step, std::numeric_limits<float>::min());
}

//! The nearest multiple of a step above zero; halves go away from zero.
inline std::int32_t entropy_code(float value, float step) noexcept
{
  float const quotient = std::fabs(value) / step;
  auto const code      = static_cast<std::int32_t>(quotient + 0.5f);
  return value < 0 ? -code : code;
}

//! 16 bits that end a message: they depend on the step and on how many codes there are.
inline std::uint32_t entropy_seal(float step, std::size_t codes) noexcept
{
  std::uint64_t const both = (std::uint64_t{std::bit_cast<std::uint32_t>(step)} << 32 ^ codes) + 1;
  return static_cast<std::uint32_t>(both * 0x9e3779b97f4a7c15ull >> 48);
}

//! Codes of values behind their step. Returns how many bytes that are, or 0 if they do not fit.
inline std::size_t entropy_message(std::span<float const> values,
                                   float step,
                                   std::span<std::byte> room)
{
  entropy_encoder coder{room.subspan(sizeof step)};
  code_model model;
  for (float const value : values) {
    model.pass(coder, entropy_code(value, step));
    if (!coder.fits()) { return 0; }
  }
  std::uint32_t const seal = entropy_seal(step, values.size());
  for (int bit = 0; bit < 16; ++bit) { coder.even_bit((seal >> bit & 1) != 0); }
  std::size_t const bytes = coder.finish();
  if (!coder.fits()) { return 0; }
  std::memcpy(room.data(), &step, sizeof step);
  return sizeof step + bytes;
}

//! Adds codes times their step to sums. Returns whether a message is one of so many codes.
inline bool add_entropy_message(std::span<std::byte const> message, std::span<float> sums)
{
  float step = 0;
  if (message.size() < sizeof step) { return false; }
  std::memcpy(&step, message.data(), sizeof step);
  if (message.size() == sizeof step) {
    // All is zero, or nothing of it is finite.
    if (step == 0) { return true; }
    std::fill(sums.begin(), sums.end(), std::numeric_limits<float>::quiet_NaN());
    return std::isnan(step);
  }
  if (!(step >= std::numeric_limits<float>::min()) || std::isinf(step)) { return false; }
  entropy_decoder coder{message.subspan(sizeof step)};
  code_model model;
  for (float& sum : sums) {
    // The product of 24 and 24 bits is exact, so that nothing depends on whether it is contracted.
    sum =
      static_cast<float>(sum + static_cast<double>(model.pass(coder)) * static_cast<double>(step));
  }
  std::uint32_t seal = 0;
  for (unsigned bit = 0; bit < 16; ++bit) { seal |= (coder.even_bit() ? 1u : 0u) << bit; }
  return seal == entropy_seal(step, sums.size());
}

//! The largest number of a step whose codes fit, or -1. More bits are taken for larger numbers.
inline int finest_entropy_step(std::span<float const> values,
                               float largest,
                               std::span<std::byte> room)
{
  int fits = -1;
  int bad  = entropy_steps + 1;
  while (bad - fits > 1) {
    int const middle    = fits + (bad - fits) / 2;
    bool const good     = entropy_message(values, entropy_step(largest, middle), room) > 0;
    (good ? fits : bad) = middle;
  }
  return fits;
}

}  // namespace detail

template <transport Over>
status entropy_gather<Over>::check() const noexcept
{
  if (!(bits_ > 0 && bits_ <= 32)) {
    return {error_code::invalid_argument, "bits of entropy_gather are above 0 and at most 32"};
  }
  return over_->check();
}

template <transport Over>
void entropy_gather<Over>::encode(std::span<float const> gradient, std::span<float> residual) const
{
  std::size_t const d = gradient.size();
  values_.assign(gradient.begin(), gradient.end());
  float largest = 0;
  bool finite   = true;
  for (std::size_t i = 0; i < d; ++i) {
    if (!residual.empty()) { values_[i] += residual[i]; }
    finite  = finite && std::isfinite(values_[i]);
    largest = std::max(largest, std::fabs(values_[i]));
  }
  auto& message     = messages_[static_cast<std::size_t>(over_->rank())];
  auto const budget = std::max(detail::least_entropy_room,
                               static_cast<std::size_t>(bits_ / 8 * static_cast<double>(d)));
  message.resize(budget);
  float step        = finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  std::size_t bytes = 0;
  if (finite && largest >= std::numeric_limits<float>::min()) {
    // On a sample first, which has its share of the budget.
    std::span<float const> tried{values_};
    if (d >= 64 * detail::entropy_run) {
      sample_.clear();
      for (std::size_t i = 0; i < d; i += 16 * detail::entropy_run) {
        auto const from = values_.begin() + static_cast<std::ptrdiff_t>(i);
        sample_.insert(sample_.end(),
                       from,
                       from + static_cast<std::ptrdiff_t>(std::min(detail::entropy_run, d - i)));
      }
      tried = sample_;
    }
    auto const share = static_cast<std::size_t>(
      static_cast<double>(budget) / static_cast<double>(d) * static_cast<double>(tried.size()));
    auto const room = std::span{message}.first(tried.size() == d ? budget : share);
    auto const make = [&](int k) {
      step  = detail::entropy_step(largest, std::max(0, k));
      bytes = detail::entropy_message(values_, step, message);
    };
    int const k = detail::finest_entropy_step(tried, largest, room);
    make(k);
    if (bytes == 0) { make(k - 1); }
    // A sample that is not like the rest.
    if (bytes == 0) { make(detail::finest_entropy_step(values_, largest, message)); }
    if (bytes == 0) { step = 0; }
  }
  if (bytes == 0) {
    std::memcpy(message.data(), &step, sizeof step);
    bytes = sizeof step;
  }
  message.resize(bytes);
  if (residual.empty() || !finite) { return; }
  for (std::size_t i = 0; i < d; ++i) {
    double const sent = step > 0 ? detail::entropy_code(values_[i], step) : 0;
    residual[i]       = static_cast<float>(values_[i] - sent * static_cast<double>(step));
  }
}

template <transport Over>
status entropy_gather<Over>::exchange(std::size_t coordinates) const
{
  int const n      = over_->size();
  int const me     = over_->rank();
  auto const ranks = static_cast<std::size_t>(n);
  std::vector<std::uint64_t> told(2 * ranks);  // coordinates and bytes of each rank
  auto const index        = [](int rank) { return static_cast<std::size_t>(rank); };
  told[2 * index(me)]     = coordinates;
  told[2 * index(me) + 1] = messages_[index(me)].size();
  rank_blocks const pairs{.count = ranks, .element_bytes = 2 * sizeof told[0], .ranks = n};
  sent_ += 2 * sizeof told[0] * (ranks - 1);
  if (status const s = over_->all_gather(reinterpret_cast<std::byte*>(told.data()), pairs);
      !s.ok()) {
    return s;
  }
  for (std::size_t k = 0; k < ranks; ++k) {
    if (told[2 * k] != coordinates) {
      return {error_code::invalid_argument, "ranks gave entropy_gather gradients of unlike sizes"};
    }
    // At 32 bits the largest budget.
    if (told[2 * k + 1] >
        std::max<std::uint64_t>(detail::least_entropy_room, 4 * std::uint64_t{coordinates})) {
      return {error_code::transport_failed,
              "a message of another rank is longer than any of entropy_gather"};
    }
  }
  for (int hop = 1; hop < n; ++hop) {
    int const from  = (me - hop + n) % n;
    auto const& own = messages_[index(me)];
    auto& arriving  = messages_[index(from)];
    arriving.resize(told[2 * index(from) + 1]);
    sent_ += own.size();
    if (status const s = over_->send_receive(
          (me + hop) % n, own.data(), own.size(), from, arriving.data(), arriving.size());
        !s.ok()) {
      return s;
    }
  }
  return {};
}

template <transport Over>
status entropy_gather<Over>::all_reduce_mean(std::span<float> gradient,
                                             std::span<float> residual) const
{
  if (status const s = check(); !s.ok()) { return s; }
  if (!residual.empty() && residual.size() != gradient.size()) {
    return {error_code::invalid_argument,
            "a residual has as many coordinates as the gradient, or none"};
  }
  messages_.resize(static_cast<std::size_t>(over_->size()));
  encode(gradient, residual);
  if (status const s = exchange(gradient.size()); !s.ok()) { return s; }
  std::fill(gradient.begin(), gradient.end(), 0.f);
  for (auto const& message : messages_) {
    if (!detail::add_entropy_message(message, gradient)) {
      return {error_code::transport_failed,
              "a message of another rank is not what entropy_gather made"};
    }
  }
  auto const ranks = static_cast<float>(over_->size());
  for (float& mean : gradient) { mean /= ranks; }
  return {};
}

}  // namespace tersum::inline v0
