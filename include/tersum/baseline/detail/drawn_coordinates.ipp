// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of coordinates that a seed draws, on the CPU and as kernels, to the same bits.

#include <tersum/block/block_group.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_launches.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The neighbours of a coordinate, and whether it is the one of them that travels.
struct drawn_place {
  std::uint64_t group;
  std::uint32_t neighbours;
  bool sent;
};

template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE drawn_place place_of(exchange_args<Codec, Element> const& args,
                                                 std::uint64_t i)
{
  auto const& chunker       = args.codec.chunker;
  std::uint64_t const group = static_cast<std::uint32_t>(i) / chunker.stride;  // below 2^31
  return {group,
          chunker.scaled ? chunker.neighbours(group, args.chunks) : 1u,
          chunker.place(group, args.chunks, args.header->sign_key) == i};
}

template <drawing Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto drawn_values(exchange_args<Codec, Element> const& args)
{
  return reinterpret_cast<typename Codec::quantizer_type::element*>(args.payload);
}

//! @name On the CPU
//! @{

//! @brief Calls body(j, begin, end, drawn) with the number of each group of neighbours, its coordinates, and the one that travels.
template <class Codec, class Element, class Body>
void for_each_group(cpu_work<Codec, Element> const& work, Body const& body)
{
  auto const& args            = work.args;
  auto const& chunker         = args.codec.chunker;
  std::uint64_t const groups  = chunker.drawn(args.chunks);
  std::uint64_t const stretch = work.numbers.coordinate_stretch / chunker.stride + 1;
  parallel_for(work.threads, (groups + stretch - 1) / stretch, [&](std::uint64_t part) {
    std::uint64_t const end = std::min(groups, (part + 1) * stretch);
    for (std::uint64_t j = part * stretch; j < end; ++j) {
      std::uint64_t const begin = j * chunker.stride;
      body(j,
           begin,
           begin + chunker.neighbours(j, args.chunks),
           chunker.place(j, args.chunks, args.header->sign_key));
    }
  });
}

template <drawing Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  using wire_element = typename Codec::quantizer_type::element;
  auto const& args   = work.args;
  auto* const values = drawn_values(args);
  for_each_group(
    work,
    [&](std::uint64_t j,
        [[maybe_unused]] std::uint64_t begin,
        [[maybe_unused]] std::uint64_t end,
        std::uint64_t drawn) {
      if constexpr (feeds_back<Codec>) {
        host_group const math{};
        for (std::uint64_t i = begin; i < end; ++i) {
          float const kept = weighed<Codec>(math, weight_of_kept(args), to_float(args.residual[i]));
          float const whole = args.codec.feedback.before(math, to_float(args.gradient[i]), kept);
          float lost        = whole;
          if (i == drawn) {
            values[j] = sendable_from_float<wire_element>(whole);
            lost      = whole - to_float(values[j]);
          }
          float const rest = args.codec.feedback.after(math, whole, lost, kept);
          if (is_sendable<wire_element>(whole) && is_finite(rest)) {
            args.residual[i] =
              kept_value<residual_element<Codec>>(rest, draw_of_kept(args, i, args.rank));
          }
        }
      } else {
        values[j] = from_float<wire_element>(to_float(args.gradient[drawn]));
      }
    });
  return {};
}

template <drawing Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  auto const& args         = work.args;
  auto const* const values = drawn_values(args);
  float const share        = 1.0f / static_cast<float>(args.world);
  for_each_group(
    work, [&](std::uint64_t j, std::uint64_t begin, std::uint64_t end, std::uint64_t drawn) {
      float const sum = to_float(values[j]);
      if (!is_finite(sum)) { raise_flag(args); }
      std::fill(args.gradient + begin, args.gradient + end, Element{});
      float const neighbours = static_cast<float>(end - begin);
      float const times =
        args.codec.chunker.scaled ? neighbours / static_cast<float>(args.world) : share;
      args.gradient[drawn] = from_float<Element>(sum * times);
    });
  return {};
}
//! @}

//! @name Kernels
//! One thread a coordinate; of an encoding without feedback, one a coordinate that travels.
//! @{
template <class Context>
[[nodiscard]] TERSUM_BODY std::uint64_t drawn_thread(Context const& ctx)
{
  return static_cast<std::uint64_t>(ctx.block_rank()) * tuning_of<Context>.cuda.coordinate_threads +
         ctx.thread_rank();
}

template <class Codec, class Element, class Context>
TERSUM_BODY void send_drawn(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  using wire_element = typename Codec::quantizer_type::element;
  auto* const values = drawn_values(args);
  std::uint64_t i    = drawn_thread(ctx);
  if constexpr (feeds_back<Codec>) {
    if (i >= args.chunks) { return; }
    context_arithmetic<Context> const math{};
    drawn_place const place  = place_of(args, i);
    float const raw          = Context::value(ctx.load(args.residual + i));
    float const kept         = weighed<Codec>(math, weight_of_kept(args), raw);
    float const own          = Context::value(ctx.load(args.gradient + i));
    float const whole        = args.codec.feedback.before(math, own, kept);
    bool const sendable      = is_sendable<wire_element>(whole);
    wire_element const value = Context::template finite_element<wire_element>(
      sendable ? whole : Context::from_bits(0x7fffffffu));
    if (place.sent) { ctx.store(values + place.group, value); }
    float const lost = place.sent ? Context::subtract(whole, Context::value(value)) : whole;
    float const rest = args.codec.feedback.after(math, whole, lost, kept);
    bool const known = sendable && is_finite(rest);
    ctx.store(
      args.residual + i,
      kept_value<residual_element<Codec>>(known ? rest : raw, draw_of_kept(args, i, args.rank)));
  } else {
    auto const& chunker = args.codec.chunker;
    if (i >= chunker.drawn(args.chunks)) { return; }
    std::uint64_t const from = chunker.place(i, args.chunks, args.header->sign_key);
    float const value        = Context::value(ctx.load(args.gradient + from));
    ctx.store(values + i, Context::template element<wire_element>(value));
  }
}

template <class Codec, class Element, class Context>
TERSUM_BODY void receive_drawn(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const i = drawn_thread(ctx);
  if (i >= args.chunks) { return; }
  drawn_place const place = place_of(args, i);
  float mean              = 0.0f;
  if (place.sent) {
    float const sum = Context::value(ctx.load(drawn_values(args) + place.group));
    if (!is_finite(sum)) { raise_flag(args); }
    float const share =
      Context::divide(static_cast<float>(place.neighbours), static_cast<float>(args.world));
    mean = Context::multiply(sum, share);
  }
  ctx.store(args.gradient + i, Context::template element<Element>(mean));
}

struct send_drawn_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  TERSUM_RUNS(send_drawn(ctx, args))
};

struct receive_drawn_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  TERSUM_RUNS(receive_drawn(ctx, args))
};

template <class Executor, drawing Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, launch_list<Executor, Codec, Element>& launches)
{
  auto const& plan = launches.plan();
  launches.threads(send_drawn_kernel{}, feeds_back<Codec> ? plan.chunks() : plan.chosen());
  return launches.result();
}

template <class Executor, drawing Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, launch_list<Executor, Codec, Element>& launches)
{
  launches.threads(receive_drawn_kernel{}, launches.plan().chunks());
  return launches.result();
}
//! @}

}  // namespace tersum::inline v0::detail
