// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! `any_codec` of one codec type on one kind of executor: the walk over its stages, as numbered steps.

#pragma once

#include "any_codec.hpp"

#include <tersum/exchange/check_state.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/types.hpp>

#include <optional>
#include <type_traits>
#include <vector>

namespace shared_library {

//! @brief A call of tersum/exchange/exchange.hpp, to be done on an executor.
template <tersum::exchange_part Part, class Codec>
struct exchange_call {
  static constexpr auto part = Part;

  tersum::plan<Codec> const& plan;
  std::span<float> gradient;
  std::span<std::byte> state;
  std::span<std::byte> workspace;

  template <class Executor>
  [[nodiscard]] tersum::status operator()(Executor const& exec) const
  {
    if constexpr (Part == tersum::exchange_part::measure) {
      return measure(exec, plan, gradient, state, workspace);
    } else if constexpr (Part == tersum::exchange_part::encode) {
      return encode(exec, plan, gradient, state, workspace);
    } else if constexpr (Part == tersum::exchange_part::recompress) {
      return recompress(exec, plan, gradient, state, workspace);
    } else if constexpr (tersum::ending_in_shards<Codec>) {
      auto const shard = gradient.subspan(plan.shard_begin(plan.ranks().rank), plan.shard_size());
      return decode_shard(exec, plan, shard, state, workspace);
    } else {
      return decode(exec, plan, gradient, state, workspace);
    }
  }
};

//! @brief Adds up the parts that ranks have sent of this rank's shard, in their order: a reduce-scatter is an all-to-all, whose parts
//! arrive behind the codec's own workspace, and this call.
template <class Codec>
struct adding_call {
  static constexpr auto part = tersum::exchange_part::recompress;

  tersum::plan<Codec> const& plan;
  std::span<std::byte> workspace;

  [[nodiscard]] static std::size_t received_offset(tersum::plan<Codec> const& plan)
  {
    return (plan.workspace_bytes() + 15) / 16 * 16;
  }

  //! Of the whole workspace.
  [[nodiscard]] static std::size_t bytes(tersum::plan<Codec> const& plan)
  {
    auto const [ranks, rank] = plan.ranks();
    if (!plan.check().ok()) { return 0; }
    return received_offset(plan) +
           static_cast<std::size_t>(ranks) * plan.part_words(rank) * sizeof(std::uint32_t);
  }

  //! The all-to-all before.
  [[nodiscard]] auto moved() const
  {
    using counts = typename Codec::counts_type;
    return tersum::shards_wire_of<std::uint32_t, counts>{
      .sent     = reinterpret_cast<std::uint32_t const*>(summed_wire(plan, workspace).data),
      .received = reinterpret_cast<std::uint32_t*>(workspace.data() + received_offset(plan)),
      .count    = plan.payload_bytes() / sizeof(std::uint32_t),
      .ranks    = plan.ranks().size,
      .parts    = plan};
  }

  template <class Executor>
  [[nodiscard]] tersum::status operator()(Executor const& exec) const
  {
    auto const wire        = summed_wire(plan, workspace);
    using op               = typename decltype(wire)::op_type;
    auto const* received   = reinterpret_cast<typename op::element const*>(moved().received);
    std::size_t const each = wire.size(plan.ranks().rank);
    if (each == 0) { return {}; }
    if (wire.ranks == 1) { return exec.copy(wire.sum, received, each); }
    auto const* left = received;
    for (int rank = 1; rank < wire.ranks; ++rank) {
      received += each;
      if (auto const s = exec.reduce(op{}, wire.sum, left, received, each); !s.ok()) { return s; }
      left = wire.sum;
    }
    return {};
  }
};

//! @brief Calls visit with the all-to-all and the call that the round is. (It depends on the round, so that compilers do not look at it
//! for codecs without.)
template <class Round, class Codec, class Visit>
void visit_sums(Round,
                tersum::plan<Codec> const& plan,
                std::span<std::byte> workspace,
                Visit& visit)
{
  adding_call<Codec> const sum{plan, workspace};
  auto const parts = sum.moved();
  if (parts.count == 0) { return; }
  visit(parts);
  visit(sum);
}

//! @brief Calls visit with each step of an exchange in order: an `exchange_call`, or a wire that has elements. A round of
//! factors that are exchanged by a codec of their own is the steps of that one.
template <class Codec, class Visit>
void for_each_step(tersum::plan<Codec> const& plan,
                   std::span<float> gradient,
                   std::span<std::byte> state,
                   std::span<std::byte> workspace,
                   Visit&& visit)
{
  std::optional<tersum::exchange_part> last;
  static_cast<void>(walk(typename Codec::stages{}, [&]<class Entry>(Entry entry) {
    if constexpr (std::is_same_v<Entry, tersum::rounds::sum_shards>) {
      visit_sums(entry, plan, workspace, visit);
    } else if constexpr (tersum::is_round<Entry>) {
      auto const wire = wire_of(entry, plan, workspace);
      if (wire.count > 0) { visit(wire); }
    } else if (last != Entry::part) {
      last = Entry::part;
      visit(exchange_call<Entry::part, Codec>{plan, gradient, state, workspace});
    }
    return tersum::status{};
  }));
}

template <class Element>
[[nodiscard]] constexpr int element_code()
{
  if constexpr (std::is_same_v<Element, float>) {
    return TERSUM_FLOAT;
  } else if constexpr (std::is_same_v<Element, tersum::half>) {
    return TERSUM_HALF;
  } else if constexpr (std::is_same_v<Element, tersum::bfloat16>) {
    return TERSUM_BFLOAT16;
  } else if constexpr (std::is_integral_v<Element>) {
    int const log2 = sizeof(Element) == 1   ? 0
                     : sizeof(Element) == 2 ? 1
                     : sizeof(Element) == 4 ? 2
                                            : 3;
    return (std::is_signed_v<Element> ? TERSUM_INT8 : TERSUM_UINT8) + log2;
  } else {
    return TERSUM_BLOCK;
  }
}

template <class Op>
[[nodiscard]] constexpr int operation_code()
{
  if constexpr (!Op::native) {
    return TERSUM_OTHER;
  } else if constexpr (std::is_same_v<Op, tersum::native_max<typename Op::element>>) {
    return TERSUM_MAX;
  } else {
    return TERSUM_SUM;
  }
}

//! What an interface of C says of a step. Offsets count from `base`.
template <class Step>
[[nodiscard]] tersum_step describe(Step const& step, [[maybe_unused]] std::byte const* base)
{
  tersum_step out{};
  if constexpr (requires { Step::part; }) {
    constexpr char const* names[] = {"measure", "encode", "recompress", "decode"};
    out.kind                      = TERSUM_CALL;
    out.name                      = names[static_cast<int>(Step::part)];
  } else {
    using element = typename Step::element;
    auto const at = [&](void const* place) {
      return static_cast<std::size_t>(static_cast<std::byte const*>(place) - base);
    };
    out.element       = element_code<element>();
    out.element_bytes = sizeof(element);
    out.count         = step.count;
    if constexpr (requires { step.op; }) {
      out.kind        = TERSUM_REDUCE;
      out.operation   = operation_code<typename Step::op_type>();
      out.associative = Step::associative ? 1 : 0;
      out.offset      = at(step.data);
      out.name        = "reduce";
    } else if constexpr (requires { step.parts; }) {
      out.kind            = TERSUM_SHARDS;
      out.offset          = at(step.sent);
      out.received_offset = at(step.received);
      out.name            = "shards";
    } else if constexpr (requires { step.sent; }) {
      out.kind            = TERSUM_SCATTER;
      out.offset          = at(step.sent);
      out.received_offset = at(step.received);
      out.name            = "scatter";
    } else {
      out.kind   = TERSUM_GATHER;
      out.offset = at(step.gathered);
      out.name   = "gather";
    }
  }
  return out;
}

//! @name Conversions of gradients
//! Items of `executor::each`. What is decoded beyond the largest half becomes the largest half, as in the library.
//! @{
template <class Element>
struct to_floats {
  Element const* from;
  float* to;

  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const&, std::size_t i) const
  {
    to[i] = tersum::to_float(from[i]);
  }
};

template <class Element>
struct from_floats {
  float const* from;
  Element* to;

  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const&, std::size_t i) const
  {
    float value = from[i];
    if constexpr (std::is_same_v<Element, tersum::half>) {
      value = value > 65504.0f ? 65504.0f : value < -65504.0f ? -65504.0f : value;
    }
    to[i] = tersum::from_float<Element>(value);
  }
};
//! @}

//! @brief One codec on one device. A `Device` makes an executor of a stream, copies, and checks states.
template <class Codec, class Device>
class codec_of final : public any_codec {
 public:
  codec_of(Codec const& codec, tersum_options const& options)
    : device_{options.threads}, element_(options.element), tensors_(tensors_of(options)),
      boundaries_(boundaries_of(options)), plan_(plan_of(codec, options))
  {
    if (!plan_.check().ok()) { return; }
    alignas(16) static std::byte base[1];
    for_each_step(plan_, {}, {base, 0}, {base, 0}, [&]<class Step>(Step const& step) {
      steps_.push_back(describe(step, base));
      if constexpr (requires { typename Step::element; }) {
        alignments_.push_back(alignof(typename Step::element));
      } else {
        alignments_.push_back(1);
      }
    });
  }

  [[nodiscard]] tersum::status check() const override { return plan_.check(); }
  [[nodiscard]] std::size_t state_bytes() const override { return plan_.state_bytes(); }
  [[nodiscard]] std::size_t workspace_bytes() const override
  {
    return element_ == TERSUM_FLOAT ? codec_workspace_bytes()
                                    : floats_offset() + plan_.coordinates() * sizeof(float);
  }
  [[nodiscard]] std::size_t residual_offset() const override
  {
    if constexpr (tersum::feeds_back<Codec>) {
      return plan_.offset("residual");
    } else {
      return 0;
    }
  }
  [[nodiscard]] double bits_per_coordinate() const override { return plan_.bits_per_coordinate(); }
  [[nodiscard]] bool travels() const override { return plan_.travels(); }
  [[nodiscard]] std::uint64_t fingerprint(std::uint64_t seed) const override
  {
    return tersum::fingerprint(plan_, seed);
  }
  [[nodiscard]] std::uint64_t state_fingerprint() const override
  {
    return plan_.state_fingerprint();
  }
  [[nodiscard]] std::size_t step_count() const override { return steps_.size(); }
  [[nodiscard]] tersum_step step(std::size_t index) const override { return steps_[index]; }
  [[nodiscard]] std::size_t alignment(std::size_t index) const override
  {
    return alignments_[index];
  }
  [[nodiscard]] std::uint64_t coordinates() const override { return plan_.coordinates(); }
  [[nodiscard]] std::uint64_t shard_begin() const override
  {
    if constexpr (tersum::ending_in_shards<Codec>) {
      return plan_.shard_begin(plan_.ranks().rank);
    } else {
      return 0;
    }
  }
  [[nodiscard]] std::uint64_t shard_size() const override
  {
    if constexpr (tersum::ending_in_shards<Codec>) {
      return plan_.shard_size();
    } else {
      return plan_.coordinates();
    }
  }
  [[nodiscard]] part_place part(std::size_t index, int rank) const override
  {
    if constexpr (tersum::ending_in_shards<Codec>) {
      constexpr std::size_t word = sizeof(std::uint32_t);
      return {steps_[index].offset + plan_.part_word(rank) * word, plan_.part_words(rank) * word};
    } else {
      return {};
    }
  }

  [[nodiscard]] tersum::status initialize(std::span<std::byte> state,
                                          std::uint64_t seed,
                                          void* stream) const override
  {
    return tersum::initialize(device_.executor(stream), plan_, state, seed);
  }

  [[nodiscard]] tersum::status run(std::size_t index,
                                   arrays const& memory,
                                   void* stream) const override
  {
    auto const exec = device_.executor(stream);
    if (element_ == TERSUM_HALF) {
      return run_on(exec, index, memory, static_cast<tersum::half*>(memory.gradient));
    }
    if (element_ == TERSUM_BFLOAT16) {
      return run_on(exec, index, memory, static_cast<tersum::bfloat16*>(memory.gradient));
    }
    return perform(exec, index, memory, static_cast<float*>(memory.gradient));
  }

  [[nodiscard]] tersum::status add(std::size_t index,
                                   std::span<std::byte> workspace,
                                   void* to,
                                   void const* a,
                                   void const* b,
                                   std::size_t first,
                                   std::size_t count,
                                   void* stream) const override
  {
    auto const exec = device_.executor(stream);
    tersum::status result{};
    std::size_t at = 0;
    for_each_step(plan_, {}, unused_state(), workspace, [&](auto const& step) {
      if (at++ != index) { return; }
      if constexpr (requires { step.op; }) {
        using element = typename std::remove_cvref_t<decltype(step)>::element;
        auto op       = step.op;
        if constexpr (tersum::has_combine_at<decltype(op)>) { op = op.from(first); }
        result = exec.reduce(op,
                             static_cast<element*>(to),
                             static_cast<element const*>(a),
                             static_cast<element const*>(b),
                             count);
      }
    });
    return result;
  }

  [[nodiscard]] tersum::status check_state(std::span<std::byte const> state,
                                           tersum::state_seal const* seal,
                                           void* stream) const override
  {
    return device_.check(plan_, state, seal, stream);
  }

  [[nodiscard]] tersum::status seal_state(std::span<std::byte const> state,
                                          tersum::state_seal& seal,
                                          void* stream) const override
  {
    return device_.seal(plan_, state, seal, stream);
  }

  [[nodiscard]] tersum::status check_copy(std::span<std::byte const> state) const override
  {
    return tersum::check_state(plan_, state);
  }

  [[nodiscard]] tersum::status copy(std::byte* to,
                                    std::byte const* from,
                                    std::size_t bytes,
                                    void* stream) const override
  {
    return device_.copy(to, from, bytes, stream);
  }

 private:
  [[nodiscard]] static std::vector<std::uint64_t> boundaries_of(tersum_options const& options)
  {
    if (options.boundaries == nullptr) { return {}; }
    return {options.boundaries,
            options.boundaries + (tersum::ending_in_shards<Codec> ? options.world + 1 : 2)};
  }

  //! Of the tensors and boundaries that this codec keeps.
  [[nodiscard]] tersum::plan<Codec> plan_of(Codec const& codec, tersum_options const& options) const
  {
    tersum::layout const layout{.coordinates    = options.coordinates,
                                .tensors        = tensors_,
                                .bypass_below   = options.bypass_below,
                                .bypass_vectors = options.bypass_vectors != 0};
    tersum::world const ranks{.size = options.world, .rank = options.rank};
    if constexpr (tersum::ending_in_shards<Codec>) {
      return codec.plan(layout, ranks, boundaries_);
    } else if (!boundaries_.empty()) {
      return codec.plan(layout.part(boundaries_[0], boundaries_[1]), ranks);
    } else {
      return codec.plan(layout, ranks);
    }
  }

  [[nodiscard]] static std::vector<tersum::tensor> tensors_of(tersum_options const& options)
  {
    std::vector<tersum::tensor> out;
    if constexpr (!tersum::gathering<Codec>) {
      for (std::size_t i = 0; i < options.tensor_count; ++i) {
        tersum_tensor const& t = options.tensors[i];
        out.push_back(
          {.rows = t.rows, .columns = t.columns, .offset = t.offset, .weight = t.weight});
      }
    }
    return out;
  }

  // Rounds do not depend on the state, but the plans of factors cut it.
  [[nodiscard]] std::span<std::byte> unused_state() const
  {
    alignas(16) static std::byte base[1];
    return {base, plan_.state_bytes()};
  }

  //! What the codec's own steps use.
  [[nodiscard]] std::size_t codec_workspace_bytes() const
  {
    if constexpr (tersum::summing<Codec>) {
      return adding_call<Codec>::bytes(plan_);
    } else {
      return plan_.workspace_bytes();
    }
  }

  //! Where the gradient's floats lie in the workspace, if it has other elements.
  [[nodiscard]] std::size_t floats_offset() const
  {
    return (codec_workspace_bytes() + 15) / 16 * 16;
  }

  template <class Executor>
  [[nodiscard]] tersum::status perform(Executor const& exec,
                                       std::size_t index,
                                       arrays const& memory,
                                       float* gradient) const
  {
    tersum::status result{};
    std::size_t at = 0;
    for_each_step(plan_,
                  std::span<float>{gradient, plan_.coordinates()},
                  memory.state,
                  memory.workspace,
                  [&](auto const& step) {
                    if (at++ != index) { return; }
                    if constexpr (requires { step(exec); }) { result = step(exec); }
                  });
    return result;
  }

  template <class Executor, class Element>
  [[nodiscard]] tersum::status run_on(Executor const& exec,
                                      std::size_t index,
                                      arrays const& memory,
                                      Element* gradient) const
  {
    auto* const floats = reinterpret_cast<float*>(memory.workspace.data() + floats_offset());
    if (index == 0) {
      if (auto const s = exec.each(to_floats<Element>{gradient, floats}, plan_.coordinates());
          !s.ok()) {
        return s;
      }
    }
    arrays inner    = memory;
    inner.workspace = memory.workspace.first(codec_workspace_bytes());
    if (auto const s = perform(exec, index, inner, floats); !s.ok()) { return s; }
    if (index + 1 < steps_.size()) { return {}; }
    // Under sharded codecs the rest of the gradient stays as it was.
    std::uint64_t const begin = shard_begin();
    return exec.each(from_floats<Element>{floats + begin, gradient + begin}, shard_size());
  }

  Device device_;
  int element_;
  std::vector<tersum::tensor> tensors_;
  std::vector<std::uint64_t> boundaries_;
  tersum::plan<Codec> plan_;
  std::vector<tersum_step> steps_;
  std::vector<std::size_t> alignments_;  // of their elements
};

//! @brief Sets the parameters of a preset that the options name. The sentence of a status says which one it lacks.
template <class Codec>
[[nodiscard]] tersum::status adapt(Codec& codec, tersum_options const& options)
{
  using tersum::error_code;
  if (options.bits != 0) {
    if constexpr (requires { codec.chunker.bits = 1.0f; }) {
      codec.chunker.bits = options.bits;
    } else {
      return {error_code::unsupported, "options.bits is set, but the preset has no budget"};
    }
  }
  if (options.weighting >= 0) {
    if constexpr (requires { codec.chunker.weighting = 1.0f; }) {
      codec.chunker.weighting = options.weighting;
    } else {
      return {error_code::unsupported,
              "options.weighting is set, but the preset does not give chunks widths of their own"};
    }
  }
  if (options.clip >= 0) {
    if constexpr (requires { codec.coder.range.clip = 1.0f; }) {
      codec.coder.range.clip = options.clip;
    } else {
      return {error_code::unsupported, "options.clip is set, but the preset has no range"};
    }
  }
  return {};
}

//! @brief Makes the codec of a name, out of a group of presets.
template <class Device, class ForEach>
[[nodiscard]] made_codec make_named(ForEach const& for_each, tersum_options const& options)
{
  made_codec made{{}, {tersum::error_code::invalid_argument, no_such_preset}};
  std::string_view const name = options.preset;
  for_each([&]<class Codec>(std::string_view candidate, std::string_view, Codec const& preset) {
    if (candidate != name) { return; }
    Codec codec = preset;
    made.status = adapt(codec, options);
    if (!made.status.ok()) { return; }
    made.codec  = std::make_unique<codec_of<Codec, Device>>(codec, options);
    made.status = made.codec->check();
  });
  return made;
}

}  // namespace shared_library
