// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Saved states of a device: which are believed. Expected are the host's state, its seal, and what is said of the same bytes there.

#include "support/compare_executors.cuh"

#include <tersum/tersum.cuh>

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tersum::simulator {

//! Makes a stream work as late as it may. There is none on a device.
[[gnu::weak]] void postpone(cudaStream_t stream);

}  // namespace tersum::simulator

using namespace tersum;
using namespace tersum::tests;

namespace {

// With a residual its state takes several of the pieces that are read.
tensor const bucket[] = {{"a", 10, 100, 0}, {"b", 1, 7, 1000}, {"c", 300, 100, 1007, 2}};
constexpr layout gradient{31007, bucket};
constexpr world ranks{.size = 3, .rank = 1};

bool is_refused(status const& s, std::string_view word)
{
  return s.code == error_code::invalid_argument && s.message.find(word) != std::string_view::npos;
}

template <class Codec>
std::vector<word4> made_on_host(plan<Codec> const& plan)
{
  std::vector<word4> words(plan.state_bytes() / sizeof(word4) + 1);
  REQUIRE(initialize(cpu_executor{}, plan, std::as_writable_bytes(std::span{words}), 7) ==
          status{});
  return words;
}

// The state is made on the device and damaged in every byte of what is trusted, then here and there.
template <class Codec>
void check_on_device(Codec const& codec)
{
  auto const plan         = codec.plan(gradient, ranks);
  std::size_t const bytes = plan.state_bytes();
  stream const on;
  if (simulator::postpone != nullptr) { simulator::postpone(on.get()); }
  cuda_executor const exec{on.get()};
  device_buffer const memory{bytes, 0, std::byte{0xa5}};
  auto const state = memory.contents();

  std::vector<word4> words = made_on_host(plan);
  auto const host          = std::as_writable_bytes(std::span{words}).first(bytes);
  state_seal const made    = seal_state(plan, host);

  // Nothing waits in between: the calls are in the order of the stream.
  state_seal seal{};
  REQUIRE(initialize(exec, plan, state, 7) == status{});
  REQUIRE(seal_state(exec, plan, state, seal) == status{});
  CHECK(seal.version == made.version);
  CHECK(seal.bytes == made.bytes);
  CHECK(seal.check == made.check);
  CHECK(check_state(exec, plan, state) == status{});
  CHECK(check_state(exec, plan, state, seal) == status{});

  std::size_t believed = 0, unlike_host = 0, refused_unsealed = 0;
  std::size_t const trusted = bytes < 640 ? bytes : 640;
  for (std::size_t at = 0; at < bytes; at += at < trusted ? 1 : 4093) {
    std::byte const kept = host[at];
    host[at] ^= std::byte{1} << at % 8;
    memory.write({&host[at], 1}, at);
    believed += check_state(exec, plan, state, seal).ok() ? 1 : 0;
    status const unsealed = check_state(exec, plan, state);
    unlike_host += unsealed == check_state(plan, host) ? 0 : 1;
    refused_unsealed += unsealed.ok() ? 0 : 1;
    host[at] = kept;
    memory.write({&host[at], 1}, at);
  }
  CHECK(believed == 0);
  CHECK(unlike_host == 0);
  CHECK(refused_unsealed >= sizeof(state_header) / 2);
  CHECK(check_state(exec, plan, state, seal) == status{});

  // The last byte of all is read, too.
  memory.write({std::vector<std::byte>{host[bytes - 1] ^ std::byte{128}}.data(), 1}, bytes - 1);
  CHECK_FALSE(check_state(exec, plan, state, seal).ok());
}

}  // namespace

TEST_CASE("[check_device_state] seals are those of the host, and every flipped bit is found")
{
  SUBCASE("chunks with feedback") { check_on_device(presets::rotated_sat4_ef); }
  SUBCASE("shards") { check_on_device(presets::sharded<4, error_feedback>{}); }
}

TEST_CASE("[check_device_state] header, records and table are held to the plan without a seal")
{
  auto const plan      = presets::rotated_sat4_ef.plan(gradient, ranks);
  auto const unfed     = presets::rotated_sat4.plan(gradient, ranks);
  auto const words     = made_on_host(plan);
  auto const host      = std::as_bytes(std::span{words}).first(plan.state_bytes());
  state_seal const own = seal_state(plan, host);
  stream const on;
  cuda_executor const exec{on.get()};
  device_buffer const memory{plan.state_bytes(), 0, std::byte{0}};
  auto const state = memory.contents();
  memory.write(host);
  auto const with = [&](std::size_t at) {
    std::byte const flipped = host[at] ^ std::byte{4};
    memory.write({&flipped, 1}, at);
    status const said = check_state(exec, plan, state);
    memory.write({&host[at], 1}, at);
    return said;
  };
  CHECK(is_refused(with(offsetof(state_header, layout)), "another version"));
  CHECK(is_refused(with(offsetof(state_header, layout) + 1), "another plan"));
  CHECK(is_refused(with(offsetof(state_header, step)), "header"));
  CHECK(is_refused(with(plan.offset("records") + offsetof(tensor_record, first_chunk)), "record"));
  CHECK(is_refused(with(plan.offset("records") + 2 * sizeof(tensor_record)), "record"));
  CHECK(is_refused(with(plan.offset("table")), "table"));
  CHECK(is_refused(with(plan.offset("residual") - 4), "table"));
  CHECK(check_state(exec, plan, state, own) == status{});
  // A state of another plan, and one of which the end is missing.
  CHECK(is_refused(check_state(exec, unfed, state), "another plan"));
  CHECK(is_refused(check_state(exec, plan, state.first(100)), "smaller"));
  CHECK(is_refused(check_state(exec, plan, state.first(100), own), "smaller"));
  CHECK(is_refused(check_state(exec, plan, {}, own), "smaller"));
  state_seal seal{1, 2, 3};
  CHECK(is_refused(seal_state(exec, plan, state.first(100), seal), "smaller"));
  CHECK(is_refused(
    check_state(exec, plan, state, state_seal{own.version + 1, own.bytes, own.check}), "version"));
  CHECK(is_refused(
    check_state(exec, plan, state, state_seal{own.version, own.bytes - 1, own.check}), "cut"));
  CHECK(is_refused(check_state(exec, plan, state, state_seal{own.version, own.bytes, ~own.check}),
                   "sealed"));
  CHECK(seal.check == 3);
}

TEST_CASE("[check_device_state] a state that has exchanged is sealed as on the host")
{
  auto const plan = presets::rotated_sat4_ef.plan(gradient, {});
  stream const on;
  cuda_executor const exec{on.get()};
  device_buffer const state{plan.state_bytes(), 0, std::byte{0}};
  device_buffer const work{plan.workspace_bytes(), 0, std::byte{0}};
  device_buffer const values{plan.coordinates() * sizeof(float), 0, std::byte{0x3c}};
  std::span<float> const mean{reinterpret_cast<float*>(values.contents().data()),
                              plan.coordinates()};
  state_seal before{}, after{};
  REQUIRE(initialize(exec, plan, state.contents(), 7) == status{});
  REQUIRE(seal_state(exec, plan, state.contents(), before) == status{});
  REQUIRE(measure(exec, plan, mean, state.contents(), work.contents()) == status{});
  REQUIRE(encode(exec, plan, mean, state.contents(), work.contents()) == status{});
  REQUIRE(decode(exec, plan, mean, state.contents(), work.contents()) == status{});
  REQUIRE(seal_state(exec, plan, state.contents(), after) == status{});
  byte_string const copy = state.read(0, plan.state_bytes());
  std::span const bytes  = std::as_bytes(std::span{copy});
  CHECK(after.check == seal_state(plan, bytes).check);
  CHECK(check_state(exec, plan, state.contents(), after) == status{});
  CHECK(check_state(plan, bytes, after) == status{});
  CHECK(is_refused(check_state(exec, plan, state.contents(), before), "sealed"));
}

TEST_CASE("[check_device_state] what the CUDA runtime refuses comes back as a status")
{
  auto const plan = presets::rotated_sat4.plan(gradient, ranks);
  device_buffer const state{plan.state_bytes(), 0, std::byte{0}};
  // While a stream is captured that waits for the default stream, nobody may use the latter.
  cudaStream_t blocking = nullptr;
  cudaGraph_t graph     = nullptr;
  REQUIRE(cudaStreamCreate(&blocking) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  cuda_executor const exec{static_cast<cudaStream_t>(nullptr)};
  state_seal seal{1, 2, 3};
  status const sealed  = seal_state(exec, plan, state.contents(), seal);
  status const checked = check_state(exec, plan, state.contents());
  (void)cudaStreamEndCapture(blocking, &graph);
  (void)cudaGetLastError();
  for (status const& s : {checked, sealed}) {
    CHECK(s.code == error_code::execution_failed);
    CHECK(s.native == static_cast<int>(cudaErrorStreamCaptureImplicit));
  }
  CHECK(seal.check == 3);
  if (graph != nullptr) { CHECK(cudaGraphDestroy(graph) == cudaSuccess); }
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
}

TEST_CASE("[check_device_state] a stream that is captured is refused, and its capture goes on")
{
  auto const plan = presets::rotated_sat4.plan(gradient, ranks);
  stream const on;
  cuda_executor const exec{on.get()};
  device_buffer const state{plan.state_bytes(), 0, std::byte{0}};
  state_seal seal{};
  REQUIRE(initialize(exec, plan, state.contents(), 7) == status{});
  REQUIRE(cudaStreamSynchronize(on.get()) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  status const checked     = check_state(exec, plan, state.contents());
  status const sealed      = seal_state(exec, plan, state.contents(), seal);
  status const initialized = initialize(exec, plan, state.contents(), 8);
  REQUIRE(cudaStreamEndCapture(on.get(), &graph) == cudaSuccess);
  for (status const& s : {checked, sealed}) {
    CHECK(s.code == error_code::unsupported);
    CHECK(s.message.find("captured") != std::string_view::npos);
  }
  CHECK(initialized == status{});
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(check_state(exec, plan, state.contents()) == status{});
}
