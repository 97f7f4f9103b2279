// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of exchange.hpp.

namespace tersum::inline v0 {

namespace detail {

//! @brief The arguments of one rank; `initialize` has neither gradient nor workspace.
template <class Codec, class Element>
[[nodiscard]] exchange_args<Codec, Element> make_args(plan<Codec> const& plan,
                                                      Element* gradient,
                                                      std::span<std::byte> state,
                                                      std::span<std::byte> workspace) noexcept
{
  exchange_args<Codec, Element> args{};
  args.gradient = gradient;
  plan.fill(args);
  section_list kept{state}, work{workspace};
  plan.take_state(kept, args);
  plan.take_workspace(work, args);
  return args;
}

//! @brief The arguments with which a rank decodes its shard as a part of the whole: the sums lie where they would if they were of
//! all chunks, and the shard where it would if all coordinates were there. Only what is the shard's is there.
template <summing Codec, class Element>
[[nodiscard]] exchange_args<Codec, Element> as_of_whole(exchange_args<Codec, Element> args) noexcept
{
  auto const before = [](auto* array, std::uint64_t count) {
    using pointer = decltype(array);
    return reinterpret_cast<pointer>(reinterpret_cast<std::uintptr_t>(array) -
                                     static_cast<std::uintptr_t>(count * sizeof *array));
  };
  args.gradient = before(args.gradient, args.parts.begin);
  args.payload  = before(args.parts.received, find_place(args, args.parts.first).word);
  args.chunks   = args.parts.first + args.parts.chunks;
  return args;
}

//! Whether memory of so many bytes serves where `needed` are; the sentences name the argument.
[[nodiscard]] inline status check_memory(std::span<std::byte const> memory,
                                         std::size_t needed,
                                         std::string_view too_small,
                                         std::string_view is_null,
                                         std::string_view misaligned) noexcept
{
  if (memory.size() < needed) { return {error_code::invalid_argument, too_small}; }
  if (needed == 0) { return {}; }
  if (memory.data() == nullptr) { return {error_code::invalid_argument, is_null}; }
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % 16 != 0) {
    return {error_code::invalid_argument, misaligned};
  }
  return {};
}

[[nodiscard]] inline status check_state(std::span<std::byte const> state,
                                        std::size_t needed) noexcept
{
  return check_memory(state,
                      needed,
                      "state is smaller than plan.state_bytes()",
                      "state is a null pointer",
                      "state is not aligned to 16 bytes");
}

[[nodiscard]] inline status check_workspace(std::span<std::byte const> workspace,
                                            std::size_t needed) noexcept
{
  return check_memory(workspace,
                      needed,
                      "workspace is smaller than plan.workspace_bytes()",
                      "workspace is a null pointer",
                      "workspace is not aligned to 16 bytes");
}

//! Whether two arrays of so many bytes have none in common.
[[nodiscard]] inline bool are_apart(void const* a,
                                    std::size_t a_bytes,
                                    void const* b,
                                    std::size_t b_bytes) noexcept
{
  auto const first  = reinterpret_cast<std::uintptr_t>(a);
  auto const second = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes == 0 || b_bytes == 0 || first + a_bytes <= second || second + b_bytes <= first;
}

//! What is said of an array that is not what the plan says.
struct array_sentences {
  std::string_view size, is_null, misaligned, overlaps;
};
inline constexpr array_sentences of_gradient{"gradient.size() differs from the plan's coordinates",
                                             "gradient is a null pointer",
                                             "gradient is not aligned to its element type",
                                             "gradient overlaps state or workspace"};
inline constexpr array_sentences of_values{"values.size() differs from the plan's coordinates",
                                           "values is a null pointer",
                                           "values is not aligned to its element type",
                                           "values overlaps state or workspace"};
inline constexpr array_sentences of_shard{"shard.size() differs from plan.shard_size()",
                                          "shard is a null pointer",
                                          "shard is not aligned to its element type",
                                          "shard overlaps state or workspace"};

//! All arguments of an exchange of one array, which has so many elements.
template <class Codec, class Element>
[[nodiscard]] status check_array(plan<Codec> const& plan,
                                 std::span<Element> array,
                                 std::uint64_t count,
                                 std::span<std::byte const> state,
                                 std::span<std::byte const> workspace,
                                 array_sentences const& say) noexcept
{
  if (status const made = plan.check(); !made.ok()) { return made; }
  if (array.size() != count) { return {error_code::invalid_argument, say.size}; }
  if (array.data() == nullptr && !array.empty()) {
    return {error_code::invalid_argument, say.is_null};
  }
  if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Element) != 0) {
    return {error_code::invalid_argument, say.misaligned};
  }
  std::size_t const kept    = plan.state_bytes();
  std::size_t const scratch = plan.workspace_bytes();
  if (status const s = check_state(state, kept); !s.ok()) { return s; }
  if (status const s = check_workspace(workspace, scratch); !s.ok()) { return s; }
  // Spans may be longer than what is used of them.
  if (!are_apart(state.data(), kept, workspace.data(), scratch)) {
    return {error_code::invalid_argument, "state overlaps workspace"};
  }
  if (!are_apart(array.data(), array.size_bytes(), state.data(), kept) ||
      !are_apart(array.data(), array.size_bytes(), workspace.data(), scratch)) {
    return {error_code::invalid_argument, say.overlaps};
  }
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status check_arguments(plan<Codec> const& plan,
                                     std::span<Element> gradient,
                                     std::span<std::byte const> state,
                                     std::span<std::byte const> workspace) noexcept
{
  return check_array(plan, gradient, plan.coordinates(), state, workspace, of_gradient);
}

//! Whether a codec has the parts of an exchange; if not, that is a compile error.
template <class Codec>
[[nodiscard]] constexpr bool has_parts_of_its_own() noexcept
{
  static_assert(!publishing<Codec>,
                "tersum: values are exchanged by all_gather_values; in parts by encode_shard "
                "and decode_values");
  return true;
}

//! @brief The stages of one part, with an array whose arguments were checked.
template <exchange_part Part, class Executor, class Codec, class Element>
[[nodiscard]] status perform_checked(status const& checked,
                                     Executor const& exec,
                                     plan<Codec> const& plan,
                                     std::span<Element> array,
                                     std::span<std::byte> state,
                                     std::span<std::byte> workspace)
{
  if (!checked.ok()) { return checked; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  auto const args = make_args(plan, array.data(), state, workspace);
  return walk_part<Part>(typename Codec::stages{},
                         [&](auto stage) { return exec.perform(stage, plan, args); });
}

//! The same of the gradient.
template <exchange_part Part, class Executor, class Codec, class Element>
[[nodiscard]] status perform_part(Executor const& exec,
                                  plan<Codec> const& plan,
                                  std::span<Element> gradient,
                                  std::span<std::byte> state,
                                  std::span<std::byte> workspace)
{
  static_assert(has_parts_of_its_own<Codec>());
  status const checked = check_arguments(plan, gradient, state, workspace);
  return perform_checked<Part>(checked, exec, plan, gradient, state, workspace);
}

//! The elements of a gradient as a span.
template <class Gradient>
[[nodiscard]] auto span_of(Gradient&& gradient)
{
  if constexpr (viewed_memory<Gradient>) {
    return gradient_view<std::remove_cvref_t<Gradient>>::of(gradient);
  } else {
    return std::span<std::ranges::range_value_t<Gradient>>{gradient};
  }
}

}  // namespace detail

template <executor Executor, class Codec>
status initialize(Executor const& exec,
                  plan<Codec> const& plan,
                  std::span<std::byte> state,
                  std::uint64_t seed)
{
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  if (status const s = detail::check_state(state, plan.state_bytes()); !s.ok()) { return s; }
  if (status const s = detail::check_arithmetic(); !s.ok()) { return s; }
  auto const args = make_args(plan, static_cast<float*>(nullptr), state, std::span<std::byte>{});
  if (status const s = exec.perform(stage::initialize{seed}, plan, args); !s.ok()) { return s; }
  if constexpr (!host_executor<Executor>) {
    auto* const header = reinterpret_cast<state_header*>(state.data());
    return exec.each(detail::probe_arithmetic{header}, 1);
  }
  return {};
}

template <executor Executor, class Codec, gradient_memory Gradient>
status measure(Executor const& exec,
               plan<Codec> const& plan,
               Gradient&& gradient,
               std::span<std::byte> state,
               std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::measure>(
    exec, plan, detail::span_of(gradient), state, workspace);
}

template <executor Executor, class Codec, gradient_memory Gradient>
status encode(Executor const& exec,
              plan<Codec> const& plan,
              Gradient&& gradient,
              std::span<std::byte> state,
              std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::encode>(
    exec, plan, detail::span_of(gradient), state, workspace);
}

template <executor Executor, scattering Codec, gradient_memory Gradient>
status recompress(Executor const& exec,
                  plan<Codec> const& plan,
                  Gradient&& gradient,
                  std::span<std::byte> state,
                  std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::recompress>(
    exec, plan, detail::span_of(gradient), state, workspace);
}

template <executor Executor, class Codec, gradient_memory Gradient>
status decode(Executor const& exec,
              plan<Codec> const& plan,
              Gradient&& gradient,
              std::span<std::byte> state,
              std::span<std::byte> workspace)
{
  return detail::perform_part<exchange_part::decode>(
    exec, plan, detail::span_of(gradient), state, workspace);
}

}  // namespace tersum::inline v0
