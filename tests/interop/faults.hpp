// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every form of exchange over any transport, for tests in which a rank is late, stopped, killed, or has another plan.

#pragma once

#include <functional>
#include <interop/any_transport.hpp>

namespace tersum::tests {

//! How ranks exchange a gradient, or find out whether they can.
enum class way {
  in_wire,    //!< all_reduce_mean, reduced by the transport's own all-reduce
  direct,     //!< all_reduce_mean, all-to-all and all-gather of the transport
  two_shots,  //!< all_reduce_mean of a codec whose parts are scattered and gathered
  gathered,   //!< all_reduce_mean of a codec whose payloads are gathered
  shards,     //!< reduce_scatter_mean
  values,     //!< all_gather_values
  in_parts,   //!< measure, encode, decode, and between them the wires
  in_pieces,  //!< all_reduce_mean of two halves of the gradient by two threads, each with a transport of its own
  agreement  //!< agree_on
};
inline constexpr way all_forms[]{way::in_wire,
                                 way::direct,
                                 way::two_shots,
                                 way::gathered,
                                 way::shards,
                                 way::values,
                                 way::in_parts,
                                 way::in_pieces,
                                 way::agreement};
[[nodiscard]] char const* name_of(way how);

//! What an exchange left behind on this rank.
struct trial {
  status outcome;    //!< of pieces: the first that is not ok
  bool kept = true;  //!< the gradient of each exchange that failed is what it was
  bool means =
    true;  //!< each exchange that succeeded has left the mean, within the error of the codec
};

//! @brief One exchange. All memory is kept for ever, since a transport may use it after a call that did not end.
//! @param how             The way.
//! @param first, second   Transports; the second is used in pieces only.
//! @param odd             Whether this rank has another plan than the other ranks.
//! @param before_payload  Called once, before the first message that carries codes, or before agree_on.
[[nodiscard]] trial exchange(way how,
                             any_transport const& first,
                             any_transport const& second,
                             bool odd,
                             std::function<void()> const& before_payload);

//! agree_on for the plan of a way, over both transports.
[[nodiscard]] status agree(way how,
                           any_transport const& first,
                           any_transport const& second,
                           bool odd);

}  // namespace tersum::tests
