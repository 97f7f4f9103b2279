// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges by a parameter server, on the CPU.

#pragma once

#include "codecs.hpp"
#include "measured_run.hpp"
#include "time_parts.hpp"

#include <tersum/block/group.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum_server/loopback_messages.hpp>
#include <tersum_server/parameter_server.hpp>
#include <tersum_server/parameter_worker.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <thread>
#include <vector>

namespace compare_codecs {

//! Codes that workers push, and that a server answers.
template <class Up, class Down>
struct through_server {
  Up up;
  Down down;
};
template <class Up, class Down>
through_server(Up, Down) -> through_server<Up, Down>;

//! @brief One rank that has all values of a codec, as a piece of a parameter server has it.
template <class Device, class Plan>
[[nodiscard]] auto lone_rank(measured_run<Device>& run, Plan const& plan, std::span<float> values)
{
  auto const state = run.allocate(plan.state_bytes());
  run.keep(initialize(run.device().executor, plan, state, seed));
  return tersum::loopback_shard<typename Plan::codec_type, float>{
    plan, values, values, state, run.allocate(plan.workspace_bytes())};
}

//! @brief Runs workers and a parameter server, whose whole gradient is one piece. Bits are those that a worker pushes; `bits_pulled`
//! those that it pulls. The time of reducing is that of the server.
template <class Device, class Up, class Down>
run_outcome run_exchange(Device const& device,
                         through_server<Up, Down> const& codes,
                         std::vector<std::vector<float>> const& gradients,
                         std::vector<layer> const& layers,
                         run_settings const& settings)
{
  using namespace tersum;
  measured_run<Device> run{device, gradients, settings};
  std::size_t const d        = run.coordinates();
  std::uint64_t const all[1] = {d};
  served_plan<Up, Down> const plan{
    codes.up,
    codes.down,
    all,
    {.workers = settings.ranks, .seed = seed, .compress_from = 0, .most_coordinates = d}};
  if (!run.keep(plan.check())) { return run.fail(); }
  loopback_post post{settings.ranks + 1};
  using worker_type = parameter_worker<Up, Down, loopback_messages>;
  std::deque<loopback_messages> messages;
  std::deque<worker_type> workers;
  std::vector<std::vector<std::span<float>>> estimates;
  for (int k = 0; k <= settings.ranks; ++k) { messages.emplace_back(post, k); }
  for (int k = 0; k < settings.ranks; ++k) {
    workers.emplace_back(
      plan, messages[static_cast<std::size_t>(k) + 1], worker_options{.number = k});
    estimates.push_back({run.allocate_floats(d)});
  }
  status served_outcome;
  {
    std::jthread const serving{[&] {
      // The mean is of all workers, however long they are held up.
      parameter_server<Up, Down> server{plan, {.deadline = std::chrono::minutes(1)}};
      served_outcome = server.serve(messages[0]);
    }};
    // Workers wait for each other.
    auto const step = [&]() -> status {
      std::vector<status> outcomes(workers.size());
      {
        std::vector<std::jthread> working;
        for (std::size_t k = 0; k < workers.size(); ++k) {
          working.emplace_back([&, k] {
            auto const gradient = estimates[k][0];
            run.upload(k, gradient);
            outcomes[k] = workers[k].exchange(std::span{&gradient, 1});
          });
        }
      }
      for (status const& s : outcomes) {
        if (!s.ok()) { return s; }
      }
      return {};
    };
    run.run_steps(layers, estimates, step);
    for (auto& worker : workers) { run.keep(worker.leave()); }
  }
  if (!run.keep(served_outcome)) { return run.fail(); }
  auto& out             = run.measured();
  auto const per_number = [&](std::size_t bytes) {
    return 8 * static_cast<double>(bytes) / static_cast<double>(d);
  };
  out.bits_per_coordinate = per_number(plan.pieces()[0].push_bytes);
  out.bits_pulled         = per_number(plan.pieces()[0].answer_bytes);

  auto const sum = run.allocate_floats(d), own = run.allocate_floats(d);
  auto const values = estimates[0][0];
  auto const up     = time_values(run, lone_rank(run, plan.up(0), values));
  out.encode_ns     = up.encode;
  out.decode_ns     = time_values(run, lone_rank(run, plan.down_decoder(0), values)).decode;
  // What the server does: the first push is decoded to where the others are added.
  auto const adding = run.best_ns([] {},
                                  [&] {
                                    for (std::size_t i = 0; i < d; ++i) {
                                      sum[i] = host_group::add(sum[i], own[i]);
                                    }
                                  });
  out.reduce_ns     = settings.ranks * up.decode + (settings.ranks - 1) * adding +
                  time_values(run, lone_rank(run, plan.down(0), sum)).encode;
  return run.finish(values, [&] { run.upload(0, values); });
}

}  // namespace compare_codecs
