// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Seconds of one exchange of a codec: coding, and the collectives of its rounds.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/model/network.hpp>

#include <algorithm>

namespace tersum::inline v0 {

namespace model {

//! @brief How a payload meets the payloads of other ranks.
enum class meeting : unsigned char {
  summed,     //!< It is all-reduced.
  scattered,  //!< Its parts go to owners, which decode, add and encode them again.
  gathered,   //!< All ranks get all of it.
};

//! @brief What one rank gives to the collectives.
struct volume {
  double coordinates = 0;
  double agreed      = 0;  //!< Bytes that the ranks agree on first: norms, or P of factors.
  double payload     = 0;  //!< Bytes of codes, or Q of factors.
  double bypass      = 0;  //!< Bytes of coordinates that are not compressed.
  meeting meets      = meeting::summed;

  [[nodiscard]] constexpr double bytes() const noexcept { return agreed + payload + bypass; }
};

//! @brief The volume of a plan, which is exact.
template <class Plan>
[[nodiscard]] constexpr volume volume_of(Plan const& plan) noexcept
{
  using codec = typename Plan::codec_type;
  return {.coordinates = static_cast<double>(plan.coordinates()),
          .agreed      = static_cast<double>(plan.agreed_bytes()),
          .payload     = static_cast<double>(plan.counted_payload_bytes()),
          .bypass      = static_cast<double>(plan.bypass_bytes()),
          .meets       = gathering<codec> || copying<codec> ? meeting::gathered
                         : scattering<codec>                ? meeting::scattered
                                                            : meeting::summed};
}

//! @brief What coding costs one rank that has a core, or a device, for itself: seconds for each coordinate of the gradient.
struct coding {
  double encode = 0;  //!< From the gradient to the payload, what is agreed on included.
  double reduce =
    0;  //!< Adding another rank's payload, or decoding, adding and encoding the parts that a rank owns.
  double decode =
    0;  //!< From the reduced payload to the mean; of a gathered one, the payload of one rank.
};

//! @brief Who computes where. On a device of its own each rank has one core.
struct host {
  int ranks        = 1;          //!< Ranks that compute at the same time on this host.
  int cores        = 1;          //!< Cores (or devices) that they share.
  double copy_rate = unlimited;  //!< Bytes per second that one core carries through the transport.
  double cache     = 1 << 20;    //!< Bytes that one core keeps near, whatever others do.

  //! @brief How much longer computing takes where ranks share cores.
  [[nodiscard]] constexpr double slowdown() const noexcept
  {
    return ranks > cores ? static_cast<double>(ranks) / cores : 1.0;
  }
};

//! @brief The parts of an exchange, one rank's seconds.
struct exchange_time {
  double encode  = 0;
  double network = 0;
  double reduce  = 0;
  double decode  = 0;
  double waits   = 0;  //!< Of the network's seconds, the latency of the messages.

  [[nodiscard]] constexpr double coding() const noexcept { return encode + reduce + decode; }
  [[nodiscard]] constexpr double whole() const noexcept { return coding() + network; }
};

//! @brief Messages in a row of all rounds. A round without bytes is not made.
[[nodiscard]] constexpr int exchange_messages(volume const& sent, route way, int ranks) noexcept
{
  int const round = all_reduce_messages(way, ranks);
  int messages    = (sent.agreed > 0 ? round : 0) + (sent.bypass > 0 ? round : 0);
  if (sent.payload > 0) { messages += sent.meets == meeting::gathered ? round / 2 : round; }
  return messages;
}

//! @brief Bytes that one rank sends in all rounds.
[[nodiscard]] constexpr double exchange_traffic(volume const& sent, route way, int ranks) noexcept
{
  double const reduced = sent.agreed + sent.bypass;
  double const payload = sent.meets == meeting::gathered
                           ? (ranks - 1) * sent.payload
                           : all_reduce_traffic(way, sent.payload, ranks);
  return all_reduce_traffic(way, reduced, ranks) + payload;
}

//! @brief Seconds of all rounds on the network, one after the other. A round has the burst anew, since ranks compute and
//! wait before it. Where owners add blocks between an all-to-all and an all-gather, a token bucket fills again meanwhile.
//! @param adding  Seconds that they take for the payload.
[[nodiscard]] constexpr double rounds_seconds(
  volume const& sent, network const& net, route way, int ranks, double adding = 0) noexcept
{
  double seconds = 0;
  for (volume const& round : {volume{.agreed = sent.agreed},
                              volume{.bypass = sent.bypass},
                              volume{.payload = sent.payload, .meets = sent.meets}}) {
    double const bytes = exchange_traffic(round, way, ranks);
    bool const in_halves =
      way == route::direct && round.payload > 0 && round.meets != meeting::gathered;
    double const first = in_halves ? bytes / 2 : bytes;
    seconds += send_seconds(net, exchange_messages(round, way, ranks), first);
    if (in_halves && bytes > first) {
      network rest = net;
      rest.burst   = std::min(net.burst, std::max(0.0, net.burst - first) + adding * net.bandwidth);
      seconds += send_seconds(rest, 0, bytes - first);
    }
  }
  return seconds;
}

//! @brief The parts of one exchange. A rank adds (p - 1) / p of a summed payload, and decodes p gathered ones.
[[nodiscard]] constexpr exchange_time exchange_parts(volume const& sent,
                                                     coding const& costs,
                                                     network const& net,
                                                     host const& on,
                                                     route way,
                                                     int ranks) noexcept
{
  double const unit   = sent.coordinates * on.slowdown();
  double const adds   = sent.meets == meeting::summed ? 1.0 - 1.0 / std::max(1, ranks) : 1.0;
  double const many   = sent.meets == meeting::gathered ? ranks : 1.0;
  double const adding = costs.reduce * unit * adds;
  return {.encode  = costs.encode * unit,
          .network = rounds_seconds(sent, net, way, ranks, adding),
          .reduce  = adding,
          .decode  = costs.decode * unit * many,
          .waits   = exchange_messages(sent, way, ranks) * net.latency};
}

//! @brief The bandwidth at which two exchanges take the same time, bytes per second: below it the one that sends less is faster. Both cost
//! `fixed` seconds and send `traffic` bytes. Infinite where the one that sends less costs no more either, 0 where none sends less.
[[nodiscard]] constexpr double break_even_bandwidth(double reference_fixed,
                                                    double reference_traffic,
                                                    double fixed,
                                                    double traffic) noexcept
{
  double const saved = reference_traffic - traffic;
  double const costs = fixed - reference_fixed;
  if (saved <= 0) { return 0; }
  return costs <= 0 ? unlimited : saved / costs;
}

}  // namespace model

}  // namespace tersum::inline v0
