// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of sorted.hpp.

#include <tersum/sort/detail/line_work.hpp>

namespace tersum::inline v0 {

namespace detail {

//! Checks the arguments, and performs what make(args) makes of them.
template <class Executor, class Codec, class Gradient, class Make>
[[nodiscard]] status perform_on_lines(Executor const& exec,
                                      plan<Codec> const& plan,
                                      Gradient& gradient,
                                      std::span<std::byte> state,
                                      std::span<std::byte> workspace,
                                      Make const& make)
{
  auto const values = span_of(gradient);
  if (status const s = check_arguments(plan, values, state, workspace); !s.ok()) { return s; }
  return perform(exec, make(plan.line_arguments(values.data(), state, workspace)));
}

}  // namespace detail

template <executor Executor, sorting Codec>
status initialize(Executor const& exec,
                  plan<Codec> const& plan,
                  std::span<std::byte> state,
                  std::uint64_t seed)
{
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (status const s = detail::check_state(state, plan.state_bytes()); !s.ok()) { return s; }
  if (status const s = initialize(exec, plan.inner(), plan.inner_state(state), seed); !s.ok()) {
    return s;
  }
  if constexpr (in_metric<Codec>) {
    using scale       = metric_scale<Codec>;
    auto* const first = reinterpret_cast<scale*>(state.data() + plan.scales_offset());
    if (status const s =
          detail::perform(exec, detail::clear_scales_work<scale>{first, plan.scales()});
        !s.ok()) {
      return s;
    }
  }
  auto* const records = reinterpret_cast<line_record*>(state.data() + plan.line_table_offset());
  return detail::perform(exec, detail::write_lines_work{records, [&](auto const& visit) {
                                                          plan.for_each_line_record(visit);
                                                        }});
}

template <executor Executor, sorting Codec, gradient_memory Gradient>
status measure_lines(Executor const& exec,
                     plan<Codec> const& plan,
                     Gradient&& gradient,
                     std::span<std::byte> state,
                     std::span<std::byte> workspace)
{
  return detail::perform_on_lines(
    exec, plan, gradient, state, workspace, []<class Units>(detail::line_args<Units> const& args) {
      return detail::measure_lines_work<Units>{args};
    });
}

template <sorting Codec>
wire<native_max<std::uint8_t>> lines_wire(plan<Codec> const& plan,
                                          std::span<std::byte> workspace) noexcept
{
  return {.data  = reinterpret_cast<std::uint8_t*>(workspace.data() + plan.line_keys_offset()),
          .count = static_cast<std::size_t>(plan.lines_bytes()),
          .op    = {},
          .ranks = plan.ranks().size};
}

template <executor Executor, sorting Codec, gradient_memory Gradient>
status sort_matrices(Executor const& exec,
                     plan<Codec> const& plan,
                     Gradient&& gradient,
                     std::span<std::byte> state,
                     std::span<std::byte> workspace)
{
  return detail::perform_on_lines(
    exec, plan, gradient, state, workspace, []<class Units>(detail::line_args<Units> const& args) {
      return detail::sort_work<Codec::strip, Units>{args};
    });
}

template <executor Executor, sorting Codec, gradient_memory Gradient>
status restore_matrices(Executor const& exec,
                        plan<Codec> const& plan,
                        Gradient&& gradient,
                        std::span<std::byte> state,
                        std::span<std::byte> workspace)
{
  return detail::perform_on_lines(
    exec, plan, gradient, state, workspace, []<class Units>(detail::line_args<Units> const& args) {
      return detail::restore_work<Codec::strip, Units>{args};
    });
}

template <executor Executor, sorting Codec, gradient_memory Gradient, class Reduce>
status all_reduce_mean(Executor const& exec,
                       plan<Codec> const& plan,
                       Gradient&& gradient,
                       std::span<std::byte> state,
                       std::span<std::byte> workspace,
                       Reduce&& reduce)
{
  if (status const s = measure_lines(exec, plan, gradient, state, workspace); !s.ok()) { return s; }
  if (status const s = detail::reduce_round(reduce, lines_wire(plan, workspace)); !s.ok()) {
    return s;
  }
  if (status const s = sort_matrices(exec, plan, gradient, state, workspace); !s.ok()) { return s; }
  if (status const s = all_reduce_mean(exec,
                                       plan.inner(),
                                       plan.sorted(workspace),
                                       plan.inner_state(state),
                                       plan.inner_workspace(workspace),
                                       reduce);
      !s.ok()) {
    return s;
  }
  return restore_matrices(exec, plan, gradient, state, workspace);
}

}  // namespace tersum::inline v0
