// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whole exchanges on a device over NCCL: one of TERSUM_GROUPS groups of presets, TERSUM_GROUP.

#include <tersum/interop/nccl.cuh>
#include <tersum/tersum.cuh>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <interop/nccl_exchanges.hpp>
#include <interop/presets.hpp>
#include <interop/twin.hpp>
#include <limits>
#include <span>
#include <vector>

namespace tersum::tests {

namespace {

class codec_suite {
 public:
  explicit codec_suite(nccl_rank const& on)
    : on_(on), nccl_(on.communicator, on.stream, std::chrono::seconds(60))
  {
    expect(nccl_.check().ok(), "", "the communicator", 0, "is not ready");
  }

  template <class Codec>
  void preset(char const* name, Codec const& codec)
  {
    std::vector<layout> taken(shapes.begin(), shapes.end());
    if (on_.brief) { taken.clear(); }
    taken.push_back({.coordinates = on_.longest});
    for (layout const& shape : taken) {
      if (codec.plan(shape, {.size = on_.ranks, .rank = 0}).check().ok()) {
        exchange(name, codec, shape);
      }
    }
    std::uint64_t passing = decoded_.hash();
    bool all              = true;
    for (int hop = 1; hop < on_.ranks; ++hop) {
      std::uint64_t received = 0;
      int const next = (on_.rank + 1) % on_.ranks, last = (on_.rank + on_.ranks - 1) % on_.ranks;
      all     = nccl_.exchange_word(next, passing, last, received).ok() && all;
      all     = all && received == decoded_.hash();
      passing = received;
    }
    expect(all, name, "any way", 0, "the ranks differ");
  }

  [[nodiscard]] int failures() const { return failures_; }

 private:
  void expect(bool ok, char const* name, char const* way, std::size_t size, char const* what)
  {
    if (ok) { return; }
    ++failures_;
    std::printf(
      "rank %d of %d: %s, %s, %zu coordinates: %s\n", on_.rank, on_.ranks, name, way, size, what);
  }

  template <class Codec>
  void exchange(char const* name, Codec const& codec, layout const& shape)
  {
    auto const plan = codec.plan(shape, {.size = on_.ranks, .rank = on_.rank});
    device_memory const state(plan.state_bytes()), workspace(plan.workspace_bytes()),
      scratch(scratch_bytes(plan)), gradient(shape.coordinates * sizeof(float));
    cuda_executor const exec{on_.stream};
    std::span<float> const values = gradient.floats();
    expectation const& direct     = expected(name, shape, on_.ranks, reduction_order::direct);
    expect(direct.ok, name, "any way", values.size(), "the loopback failed");

    auto const way = [&](char const* how,
                         auto const& reduce,
                         expectation const& want,
                         bool equal      = true,
                         bool from_graph = false) {
      auto const must = [&](bool ok, char const* what) {
        expect(ok, name, how, values.size(), what);
      };
      exchanges means{on_, nccl_, must};
      means.steps = static_cast<std::size_t>(steps);
      means.begin = [&] { return initialize(exec, plan, state.bytes(), 7); };
      means.give  = [&](std::size_t step) {
        gradient.write(make_gradient(values.size(), on_.ranks, on_.rank, static_cast<int>(step)),
                       on_);
      };
      means.check = [&](std::size_t step) {
        auto const mean = gradient.read();
        state_header after;
        cudaMemcpy(&after, state.data, sizeof after, cudaMemcpyDeviceToHost);
        must(!equal || same(mean, want.means[step]), "differs from the loopback");
        must(after.last_was_non_finite() == want.non_finite[step],
             "the flag of the NaN differs from the loopback's");
        for (float const value : mean) {
          decoded_ = {
            "value", decoded_, std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value};
        }
      };
      means.run(
        [&] {
          return all_reduce_mean(exec, plan, values, state.bytes(), workspace.bytes(), reduce);
        },
        from_graph);
    };
    bool const bypasses = !shape.tensors.empty();
    bool const any      = (any_order<Codec>() && !bypasses) || on_.ranks <= 2;
    auto const bytes    = scratch.bytes();
    way("two shots", reduce_over<schedule::direct>(nccl_, exec, bytes), direct);
    way("automatic", reduce_over(nccl_, exec, bytes), direct, any, true);
  }

  nccl_rank const& on_;
  nccl_transport nccl_;
  tersum::description decoded_{"decoded"};
  int failures_ = 0;
};

}  // namespace

template <int Group>
int check_nccl_group(nccl_rank const& on)
{
  codec_suite suite(on);
  for_each_preset<TERSUM_GROUPS, Group>(
    [&](char const* name, auto const& codec) { suite.preset(name, codec); });
  return suite.failures();
}

template int check_nccl_group<TERSUM_GROUP>(nccl_rank const& on);

}  // namespace tersum::tests
