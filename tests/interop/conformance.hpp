// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every transport must do: each of its ranks calls these with a transport that has just been made.

#pragma once

#include <interop/any_transport.hpp>

namespace tersum::tests {

//! @brief Every preset, each way to reduce, sizes with tails, a bucket, and a rank with NaN, against a loopback, on all ranks.
//! @param brief  Only the last shape of which something travels, the bucket if it does.
//! @return  How many checks failed on this rank; each is printed.
[[nodiscard]] int check_presets(any_transport const& over, bool brief = false);

//! @brief Ranks with unlike plans are told so on every rank, and can go on.
[[nodiscard]] int check_agreement(any_transport const& over);

//! @brief One exchange of `rotated_sat4_ef`, after `before_payload` was called between its first two rounds. Its memory is
//! kept, since a transport may go on using it after a call that did not end.
//! @param in_wire  By the transport's own all-reduce, rather than `schedule::direct`.
//! @return  The status; `gradient_kept` tells whether the gradient is what it was before.
[[nodiscard]] status exchange_once(any_transport const& over,
                                   bool in_wire,
                                   void (*before_payload)(int rank),
                                   bool& gradient_kept);

}  // namespace tersum::tests
