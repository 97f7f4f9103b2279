// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of coordinates that a seed draws, on the CPU and as kernels, to the same bits.

#include <tersum/block/block_group.hpp>
#include <tersum/block/detail/eight_values.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/tuning.hpp>
#include <tersum_baselines/detail/cpu_drawn_coordinates.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <drawing Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  cpu_drawn_coordinates<Codec, Element>{work}.encode();
  return {};
}

template <drawing Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  cpu_drawn_coordinates<Codec, Element>{work}.decode();
  return {};
}

template <drawing Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto drawn_values(exchange_args<Codec, Element> const& args)
{
  return reinterpret_cast<typename Codec::quantizer_type::element*>(args.payload);
}

//! @name Kernels
//! Eight coordinates a thread; of an encoding without feedback, eight that travel.
//! @{

//! Coordinates of a thread.
inline constexpr std::uint32_t drawn_at_once = 8;

//! @brief The first coordinate of a thread.
template <class Context>
[[nodiscard]] TERSUM_BODY std::uint64_t first_drawn(Context const& ctx)
{
  return (static_cast<std::uint64_t>(ctx.block_rank()) *
            tuning_of<Context>.cuda.coordinate_threads +
          ctx.thread_rank()) *
         drawn_at_once;
}

//! @brief How many of them there are, of `count`.
[[nodiscard]] TERSUM_INLINE int drawn_left(std::uint64_t first, std::uint64_t count)
{
  return static_cast<int>(minimum<std::uint64_t>(count - first, drawn_at_once));
}

//! @brief Goes through coordinates with the group of neighbours that each belongs to.
template <class Codec, class Element>
class drawn_walk {
 public:
  TERSUM_INLINE drawn_walk(exchange_args<Codec, Element> const& args, std::uint64_t first)
    : args_(args), key_(args.header->sign_key),
      at_(static_cast<std::uint32_t>(first)),  // below 2^31
      group_(at_ / stride()), end_((group_ + 1) * stride())
  {
    draw();
  }

  TERSUM_INLINE void next()
  {
    if (++at_ == end_) {
      ++group_;
      end_ += stride();
      draw();
    }
  }

  [[nodiscard]] TERSUM_INLINE std::uint32_t group() const { return group_; }
  //! Whether this coordinate travels.
  [[nodiscard]] TERSUM_INLINE bool sent() const { return at_ == drawn_; }
  //! Whether its group has all of its neighbours.
  [[nodiscard]] TERSUM_INLINE bool is_whole() const { return end_ <= args_.chunks; }

 private:
  [[nodiscard]] TERSUM_INLINE std::uint32_t stride() const { return args_.codec.chunker.stride; }
  TERSUM_INLINE void draw()
  {
    drawn_ = static_cast<std::uint32_t>(args_.codec.chunker.place(group_, args_.chunks, key_));
  }

  exchange_args<Codec, Element> const& args_;
  std::uint64_t key_;
  std::uint32_t at_, group_, end_;
  std::uint32_t drawn_ = 0;
};

//! @brief Stores up to eight neighbours, at once where they can be.
template <class Element, class Context>
TERSUM_BODY void store_some(Context const& ctx, Element* to, int left, float const (&v)[8])
{
  if (has_eight(left) && moves_at_once<4>(to)) {
    thread_values<8>::store<false>(ctx, v, to);
  } else {
    TERSUM_UNROLL
    for (int j = 0; j < 8; ++j) {
      if (j < left) { ctx.store(to + j, Context::template element<Element>(v[j])); }
    }
  }
}

//! @brief Writes the values of a thread's coordinates, all of which travel; with feedback, of those that do, and keeps the others.
//! @{
template <class Codec, class Element, class Context>
TERSUM_BODY void send_drawn(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  auto const& chunker       = args.codec.chunker;
  std::uint64_t const first = first_drawn(ctx), count = chunker.drawn(args.chunks);
  if (first >= count) { return; }
  int const left          = drawn_left(first, count);
  std::uint64_t const key = args.header->sign_key;
  float v[8];
  TERSUM_UNROLL
  for (int k = 0; k < 8; ++k) {
    v[k] = 0.0f;
    if (k < left) {
      std::uint64_t const from = chunker.place(first + static_cast<unsigned>(k), args.chunks, key);
      v[k]                     = Context::value(ctx.load(args.gradient + from));
    }
  }
  store_some(ctx, drawn_values(args) + first, left, v);
}

template <class Codec, class Element, class Context>
requires feeds_back<Codec> TERSUM_BODY void send_drawn(Context const& ctx,
                                                       exchange_args<Codec, Element> const& args)
{
  using wire_element        = typename Codec::quantizer_type::element;
  std::uint64_t const first = first_drawn(ctx);
  if (first >= args.chunks) { return; }
  context_arithmetic<Context> const math{};
  int const left     = drawn_left(first, args.chunks);
  float const weight = weight_of_kept(args);
  float raw[8], own[8];
  load_some(ctx, args.residual + first, left, raw);
  load_some(ctx, args.gradient + first, left, own);
  drawn_walk<Codec, Element> walk{args, first};
  TERSUM_UNROLL
  for (int j = 0; j < 8; ++j) {
    float const kept         = weighed<Codec>(math, weight, raw[j]);
    float const whole        = args.codec.feedback.before(math, own[j], kept);
    bool const sendable      = is_sendable<wire_element>(own[j]);
    wire_element const value = Context::template element<wire_element>(
      bounded(sendable ? whole : Context::from_bits(0x7fffffffu), args.parts.largest));
    bool const sent = walk.sent();
    if (sent && j < left) { ctx.store(drawn_values(args) + walk.group(), value); }
    float const lost         = sent ? Context::subtract(whole, Context::value(value)) : whole;
    float const rest         = args.codec.feedback.after(math, whole, lost, kept);
    bool const known         = sendable && is_finite(rest);
    std::uint32_t const draw = draw_of_kept(args, first + static_cast<unsigned>(j), args.rank);
    raw[j]                   = round_to_kept<residual_element<Codec>>(known ? rest : raw[j], draw);
    walk.next();
  }
  store_some(ctx, args.residual + first, left, raw);
}
//! @}

template <class Codec, class Element, class Context>
TERSUM_BODY void receive_drawn(Context const& ctx, exchange_args<Codec, Element> const& args)
{
  std::uint64_t const first = first_drawn(ctx);
  if (first >= args.chunks) { return; }
  int const left = drawn_left(first, args.chunks);
  // The last group may have fewer neighbours.
  auto const& chunker = args.codec.chunker;
  float const world   = static_cast<float>(args.world);
  auto const rest     = static_cast<std::uint32_t>(args.chunks) % chunker.stride;
  float const share =
    Context::divide(chunker.scaled ? static_cast<float>(chunker.stride) : 1.0f, world);
  float const last_share = Context::divide(chunker.scaled ? static_cast<float>(rest) : 1.0f, world);
  drawn_walk<Codec, Element> walk{args, first};
  float mean[8];
  bool sound = true;
  TERSUM_UNROLL
  for (int j = 0; j < 8; ++j) {
    mean[j] = 0.0f;
    if (walk.sent() && j < left) {
      float const sum = Context::value(ctx.load(drawn_values(args) + walk.group()));
      sound           = sound && is_finite(sum);
      mean[j]         = Context::multiply(sum, walk.is_whole() ? share : last_share);
    }
    walk.next();
  }
  if (!sound) { raise_flag(args); }
  store_some(ctx, args.gradient + first, left, mean);
}

struct send_drawn_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  TERSUM_RUNS(send_drawn(ctx, args))
};

struct receive_drawn_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  TERSUM_RUNS(receive_drawn(ctx, args))
};

//! Threads for `count` coordinates.
[[nodiscard]] constexpr std::uint64_t drawn_threads(std::uint64_t count) noexcept
{
  return (count + drawn_at_once - 1) / drawn_at_once;
}

template <class Executor, drawing Codec, class Element>
void run_stage(stage::encode, launch_list<Executor, Codec, Element>& launches)
{
  auto const& plan = launches.plan();
  launches.threads(send_drawn_kernel{},
                   drawn_threads(feeds_back<Codec> ? plan.chunks() : plan.chosen()));
}

template <class Executor, drawing Codec, class Element>
void run_stage(stage::decode, launch_list<Executor, Codec, Element>& launches)
{
  launches.threads(receive_drawn_kernel{}, drawn_threads(launches.plan().chunks()));
}
//! @}

}  // namespace tersum::inline v0::detail
