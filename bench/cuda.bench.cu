// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The parts of an exchange on a CUDA device, timed by events, each beside a device-to-device copy of its input.
//! Without a device there is nothing to run.

#include "support/cuda_bench.cuh"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

using namespace tersum_bench;

struct operation {
  std::string_view name;
  bool agrees;   // local part of the first round
  bool encodes;  // codes
  bool decodes;
};

constexpr operation norms_operation{"norms", true, false, false};
constexpr operation encode_operation{"encode", false, true, false};
constexpr operation local_operation{"local", true, true, false};
constexpr operation decode_operation{"decode", false, false, true};

template <class Element>
struct rank_memory {
  std::span<Element> gradient;
  std::span<Element> copy;
  bytes state;
  bytes workspace;
};

template <class Element, class Codec>
void run_exchange_part(benchmark::State& state,
                       operation const& what,
                       Codec const& codec,
                       std::uint64_t n)
{
  auto const plan = codec.plan(tersum::layout{n}, tersum::world{});
  traffic<Codec, Element> const moved{plan};
  std::size_t const turns = turns_for(n * sizeof(Element));
  timed_stream stream;
  device_memory room;
  tersum::cuda_executor const exec{stream.get()};
  using memory     = rank_memory<Element>;
  auto const agree = [&](memory const& m) {
    require(encode(exec, plan, m.gradient, m.state, m.workspace));
  };
  auto const codes = [&](memory const& m) {
    require(advance(exec, plan, m.gradient, m.state, m.workspace));
  };
  auto const run = [&](memory const& m) {
    // Where nothing is agreed on, the first call makes the codes; there is no second one.
    if (what.agrees || (!Codec::agrees && what.encodes)) { agree(m); }
    if (what.encodes) { codes(m); }
    if (what.decodes) { require(decode(exec, plan, m.gradient, m.state, m.workspace)); }
  };

  std::vector<memory> ranks;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    memory const m{room.take<Element>(n),
                   room.take<Element>(n),
                   room.take<std::byte>(plan.state_bytes()),
                   room.take<std::byte>(plan.workspace_bytes())};
    fill_gradient(stream, m.gradient);
    require(initialize(exec, plan, m.state, 1));
    agree(m);
    codes(m);
    ranks.push_back(m);
  }
  stream.wait();
  memory const& first = ranks[0];
  bytes const out     = what.decodes ? std::as_writable_bytes(first.gradient)
                        : what.encodes
                          ? first.workspace.subspan(plan.payload_offset(), plan.payload_bytes())
                          : first.workspace.subspan(plan.agreed_offset(), plan.agreed_bytes());
  // Larger sizes run the same kernels; their outputs would take longer to fetch than all the rest.
  if (n <= large && !writes_all(stream, out, first.state, [&] { run(first); })) {
    throw std::runtime_error{"some of the output was not written"};
  }

  auto const [work_ns, copy_ns] = alternate(
    state,
    stream,
    turns,
    [&](std::size_t turn) { run(ranks[turn]); },
    [&](std::size_t turn) {
      memory const& m = ranks[turn];
      require(exec.copy(m.copy.data(), m.gradient.data(), n));
    });
  bool const norms = what.agrees && Codec::agrees;
  set_counters(state,
               n,
               plan.bits_per_coordinate(),
               (norms ? moved.norms() : 0) + (what.encodes ? moved.encode() : 0) +
                 (what.decodes ? moved.decode() : 0),
               moved.gradient(),
               work_ns,
               copy_ns);
}

template <class Codec>
void run_reduce(benchmark::State& state, Codec const& codec, std::uint64_t n)
{
  using op                   = typename Codec::payload_op;
  using element              = typename op::element;
  auto const plan            = codec.plan(tersum::layout{n}, tersum::world{});
  std::size_t const size     = plan.payload_bytes();
  std::size_t const elements = size / sizeof(element);
  std::size_t const turns    = turns_for(size);
  timed_stream stream;
  device_memory room;
  tersum::cuda_executor const exec{stream.get()};
  struct memory {
    std::span<element> a, b, to;
  };
  std::vector<memory> pairs;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    memory const m{
      room.take<element>(elements), room.take<element>(elements), room.take<element>(elements)};
    // Ordinary numbers and codes in every format that is summed here.
    require(cudaMemsetAsync(m.a.data(), 0x11, size, stream.get()));
    require(cudaMemsetAsync(m.b.data(), 0x31, size, stream.get()));
    pairs.push_back(m);
  }
  // Where each chunk has a width of its own, a choice says where the payload changes it.
  op sum{};
  if constexpr (Codec::several_bits) {
    auto const gradient  = room.take<float>(n);
    auto const state_of  = room.take<std::byte>(plan.state_bytes());
    auto const workspace = room.take<std::byte>(plan.workspace_bytes());
    fill_gradient(stream, gradient);
    require(initialize(exec, plan, state_of, 1));
    require(encode(exec, plan, gradient, state_of, workspace));
    require(advance(exec, plan, gradient, state_of, workspace));
    sum = payload_wire(plan, workspace).op;
  }
  auto const run = [&](std::size_t turn) {
    memory const& m = pairs[turn];
    require(exec.reduce(sum, m.to.data(), m.a.data(), m.b.data(), elements));
  };
  if (n <= large && !writes_all(stream, std::as_writable_bytes(pairs[0].to), {}, [&] { run(0); })) {
    throw std::runtime_error{"some of the output was not written"};
  }
  auto const [work_ns, copy_ns] = alternate(state, stream, turns, run, [&](std::size_t turn) {
    require(exec.copy(pairs[turn].to.data(), pairs[turn].a.data(), elements));
  });
  auto const payload            = static_cast<double>(size);
  set_counters(state, n, plan.bits_per_coordinate(), 3 * payload, payload, work_ns, copy_ns);
}

constexpr std::uint64_t sizes[] = {bucket, large, std::uint64_t{1} << 28};

template <class Element, class Codec>
void add_exchange_part(operation const& what,
                       std::string_view shown_as,
                       std::string_view preset,
                       Codec const& codec)
{
  for (std::uint64_t const n : sizes) {
    add(shown_as, preset, element_name<Element>, n, [=](benchmark::State& state) {
      run_exchange_part<Element>(state, what, codec, n);
    });
  }
}

void add_exchange_part(operation const& what)
{
  for_each_preset([&](std::string_view preset, auto const& codec) {
    if (!codec.agrees && !what.encodes && !what.decodes) { return; }  // no norms
    add_exchange_part<float>(what, what.name, preset, codec);
  });
  auto const& codec = tersum::presets::rotated_sat4;
  add_exchange_part<tersum::half>(what, what.name, "rotated_sat4", codec);
  add_exchange_part<tersum::bfloat16>(what, what.name, "rotated_sat4", codec);
  if (what.encodes) {
    auto const& on_tensor_cores = tersum::presets::rotated_sat4_tc;
    add_exchange_part<tersum::half>(what, what.name, "rotated_sat4_tc", on_tensor_cores);
    add_exchange_part<tersum::bfloat16>(what, what.name, "rotated_sat4_tc", on_tensor_cores);
  }
}

void add_reduce(std::string_view preset, auto const& codec)
{
  for (std::uint64_t const n : sizes) {
    add(
      "reduce", preset, "float", n, [=](benchmark::State& state) { run_reduce(state, codec, n); });
  }
}

[[maybe_unused]] bool const registered = [] {
  if (!find_device()) { return false; }
  add_exchange_part(encode_operation);
  add_exchange_part(local_operation);
  add_exchange_part(norms_operation);
  add_exchange_part(decode_operation);
  for_each_rotator([](std::string_view rotator, auto const& codec) {
    add_exchange_part<float>(local_operation, "rotate", rotator, codec);
  });
  add_reduce("fp32", tersum::presets::fp32);
  for_each_preset([&](std::string_view preset, auto const& codec) {
    // Those with feedback and the literal ones send the same words as others here.
    if (preset != "thc_sat4" && preset != "rotated_sat4_ef") { add_reduce(preset, codec); }
  });
  return true;
}();

}  // namespace
