// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every form of exchange over any transport, for tests in which a rank is late, stopped, killed, or has another plan.

#pragma once

#include <functional>
#include <interop/any_transport.hpp>
#include <string>

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

//! @brief A fault: `late`, `too_late`, `stopped`, `killed`, `refused`, which is that of a rank with another plan of which agree_on is told
//! first, or `unlike`, of which it is not.
using fault_name = std::string;

//! Whether transports fail by a fault in a form of exchange.
[[nodiscard]] bool fails(fault_name const& fault, way how);

//! @brief What ranks must be told of a fault in one form of exchange; how many expectations failed. All memory is kept for ever, since a
//! transport may use it after a call that did not end.
//! @param first, second  Transports; the second is used in pieces only.
//! @param told           Whether this rank must be told where transports fail.
//! @param misbehave      Called once, before the first message that carries codes, or before agree_on.
//! @param usable         Whether the transports can be used; called after they have failed.
[[nodiscard]] int check_fault(fault_name const& fault,
                              way how,
                              any_transport const& first,
                              any_transport const& second,
                              bool told,
                              std::function<void()> const& misbehave,
                              std::function<bool()> const& usable);

}  // namespace tersum::tests
