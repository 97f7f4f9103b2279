// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an executor that launches kernels derives from, so that exchanges can be performed on it.

#pragma once

#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/status.hpp>

namespace tersum::inline v0 {

//! @brief The stages of an exchange as launches of kernels: `cuda_executor` derives from it, and so can an executor of your
//! own, such as one that counts launches or runs kernels on another machine.
//!
//! `Executor` models `launching_executor` and also has run(kernel, blocks, args) for the kernels of exchanges: it calls kernel(context,
//! args) in that many blocks of `Kernel::threads<Codec>` threads with `Kernel::shared<Codec>` bytes of shared memory, and nothing for 0
//! blocks. The context models `block_context`. An executor that can have blocks resident together also has `run_together`, with the same
//! arguments and on a `grid_context` (`has_run_together`); without it one block makes a selection, however many chunks there are.
//! @tparam Executor  The class that derives from this one.
template <class Executor>
struct exchange_launches {
  //! @brief Launches the kernels of a stage of `Codec::stages`, or of `stage::initialize`.
  //!
  //! Enqueued in the order of the calls; does not synchronize. *Errors*: that of the first launch that fails; it is the last.
  template <class Stage, class Codec, class Element>
  [[nodiscard]] status perform(Stage const& stage,
                               plan<Codec> const& plan,
                               detail::exchange_args<Codec, Element> const& args) const
  {
    auto const& self = static_cast<Executor const&>(*this);
    detail::launch_list<Executor, Codec, Element> launches{self, plan, args};
    run_stage(stage, launches);
    return launches.result();
  }
};

}  // namespace tersum::inline v0
