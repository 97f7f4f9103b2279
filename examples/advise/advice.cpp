// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What advice.hpp declares.

#include "advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace advise {

namespace model = tersum::model;

namespace {

// Casts, fp16 among them, take what every transport offers; codes are exchanged directly.
model::route route_of(candidate const& codec)
{
  bool const cast = codec.name == "fp16" || codec.name == "bf16" || codec.name == "fp32";
  return cast ? model::route::ring : model::route::direct;
}

std::string number(char const* format, double value)
{
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

bool pays(std::vector<candidate> const& all, setup const& in, double most_error)
{
  return &best_of(all, in, most_error) != &all.front();
}

}  // namespace

prediction predict(candidate const& codec, candidate const& fp16, setup const& in)
{
  model::host const on{.ranks = in.ranks_of_host, .cores = in.cores};
  auto const parts = [&](candidate const& c) {
    return model::exchange_parts(c.sent, c.costs, in.net, on, route_of(c), in.ranks);
  };
  auto const fixed = [&](candidate const& c) {
    return parts(c).coding() +
           model::exchange_messages(c.sent, route_of(c), in.ranks) * in.net.latency;
  };
  auto const traffic = [&](candidate const& c) {
    return model::exchange_traffic(c.sent, route_of(c), in.ranks);
  };
  auto const whole = parts(codec);
  prediction out{.coding     = whole.coding(),
                 .network    = whole.network,
                 .traffic    = traffic(codec),
                 .plain      = model::step_seconds(in.work, whole.whole()),
                 .break_even = model::break_even_bandwidth(
                   fixed(fp16), traffic(fp16), fixed(codec), traffic(codec))};
  // Equal buckets: each has its share of the bytes and all of the messages.
  double const bytes = codec.sent.coordinates * sizeof(float);
  auto const buckets = static_cast<std::size_t>(std::ceil(std::max(1.0, bytes / in.bucket_bytes)));
  double const share = 1 / static_cast<double>(buckets);
  model::computing work = in.work;
  work.backward += whole.coding() / work.overlap_slowdown;
  std::vector<double> const sizes(buckets, codec.sent.coordinates * share);
  std::vector<double> const exchanges(
    buckets,
    model::send_seconds(in.net,
                        model::exchange_messages(codec.sent, route_of(codec), in.ranks),
                        out.traffic * share));
  out.overlapped = model::overlapped_step_seconds(work, sizes, exchanges);
  return out;
}

candidate const& best_of(std::vector<candidate> const& all, setup const& in, double most_error)
{
  auto const& fp16       = all.front();
  double const reference = predict(fp16, fp16, in).overlapped;
  auto const* best       = &fp16;
  double least           = .98 * reference;
  for (candidate const& codec : all) {
    if (codec.error.value_or(0) > most_error) { continue; }
    double const step = predict(codec, fp16, in).overlapped;
    if (step < least) {
      least = step;
      best  = &codec;
    }
  }
  return *best;
}

std::string answer(std::vector<candidate> const& all, setup const& in, double most_error)
{
  auto const& fp16       = all.front();
  auto const& best       = best_of(all, in, most_error);
  double const reference = predict(fp16, fp16, in).overlapped;
  double const step      = predict(best, fp16, in).overlapped;
  std::string text;
  if (&best == &fp16) {
    text = "Do not compress: no codec that errs by at most " + number("%g", most_error) +
           " is predicted to save 2 % of the " + number("%.1f", 1e3 * reference) +
           " ms that a step with fp16 takes.";
  } else {
    text = "Use " + best.name + ": a step is predicted to take " + number("%.1f", 1e3 * step) +
           " ms, " + number("%.2f", reference / step) + " times as fast as the " +
           number("%.1f", 1e3 * reference) + " ms with fp16.";
  }
  // Where the answer changes, on a grid of a tenth of an octave.
  auto with = in;
  double at = 0;
  for (double gigabits = .01; gigabits < 2000; gigabits *= std::exp2(.1)) {
    with.net.bandwidth = gigabits / 8e-9;
    if (pays(all, with, most_error)) { at = gigabits; }
  }
  if (at == 0) {
    return text + " With " + std::to_string(in.ranks) +
           " ranks fp16 is the better choice at any bandwidth.";
  }
  text += " With " + std::to_string(in.ranks) + " ranks fp16 is the better choice above " +
          number("%.2g", at) + " Gbit/s";
  with      = in;
  int least = 0;
  for (int ranks = 2; ranks <= 4096 && least == 0; ranks += std::max(1, ranks / 8)) {
    with.ranks = ranks;
    if (pays(all, with, most_error)) { least = ranks; }
  }
  if (least == 0) {
    text +=
      ", and at " + number("%.3g", 8e-9 * in.net.bandwidth) + " Gbit/s with any number of ranks";
  } else if (least > 2) {
    text += ", and at " + number("%.3g", 8e-9 * in.net.bandwidth) + " Gbit/s below " +
            std::to_string(least) + " ranks";
  }
  return text + ".";
}

}  // namespace advise
