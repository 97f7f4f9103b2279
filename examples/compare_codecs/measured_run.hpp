// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every measurement has, whatever is exchanged: memory of the ranks, several steps, and the time of a copy.

#pragma once

#include "codecs.hpp"
#include "measured_estimates.hpp"

#include <tersum/status.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace compare_codecs {

//! The seed of all states.
inline constexpr unsigned seed = 20241118;

//! @brief One measurement.
//!
//! A `Device` has an `executor`, a `buffer` of memory that it can read, `upload`, `download`, and `best_ns(repeat, prepare,
//! work)`, the least time of `work`.
template <class Device>
class measured_run {
 public:
  //! Where a rank's estimate lies, in the order of its coordinates: in one array, or in several shards.
  using estimate_parts = std::vector<std::span<float>>;

  measured_run(Device const& device,
               std::vector<std::vector<float>> const& gradients,
               run_settings const& settings)
    : device_(device), gradients_(gradients), settings_(settings)
  {
    auto& m              = outcome_.value;
    m.saturated_fraction = m.reduce_ns = std::numeric_limits<double>::quiet_NaN();
  }

  [[nodiscard]] Device const& device() const { return device_; }
  [[nodiscard]] run_settings const& settings() const { return settings_; }
  [[nodiscard]] std::size_t ranks() const { return gradients_.size(); }
  [[nodiscard]] std::size_t coordinates() const { return gradients_[0].size(); }
  [[nodiscard]] measurement& measured() { return outcome_.value; }

  //! @name Memory of the device, for as long as this lives
  //! @{
  [[nodiscard]] std::span<std::byte> allocate(std::size_t bytes)
  {
    memory_.push_back(device_.allocate(bytes));
    return {memory_.back().data(), bytes};
  }
  [[nodiscard]] std::span<float> allocate_floats(std::size_t count)
  {
    return {reinterpret_cast<float*>(allocate(count * sizeof(float)).data()), count};
  }
  //! @}

  //! Copies the beginning of a rank's gradient to the device.
  void upload(std::size_t rank, std::span<float> to) const
  {
    device_.upload(to.data(), gradients_[rank].data(), to.size_bytes());
  }

  //! @brief Takes the status of a call. The run ends with the first that is not ok.
  //! @return  Whether all were ok.
  bool keep(tersum::status const& s)
  {
    if (!s.ok() && outcome_.error.empty()) { outcome_.error = std::string(s.message); }
    return outcome_.error.empty();
  }

  //! @brief Measures the errors of all steps.
  //! @param step   One exchange, from the upload of gradients to the estimates; returns a status.
  //! @param ranks  Of each rank that has an estimate of its own.
  //! @return       Whether all went well.
  template <class Step>
  bool run_steps(std::vector<layer> const& layers,
                 std::span<estimate_parts const> ranks,
                 Step const& step)
  {
    measured_estimates estimates(gradients_, settings_.steps);
    std::vector<float> first(coordinates()), other(coordinates());
    measured().ranks_identical = true;
    for (int i = 0; i < settings_.steps; ++i) {
      if (!keep(step())) { return false; }
      download(ranks[0], first);
      for (auto const& of_rank : ranks.subspan(1)) {
        download(of_rank, other);
        measured().ranks_identical =
          measured().ranks_identical &&
          std::memcmp(first.data(), other.data(), coordinates() * sizeof(float)) == 0;
      }
      estimates.add(first);
    }
    estimates.report(layers, measured());
    return true;
  }

  //! The least time of `work`, before each of which `prepare` is called.
  template <class Prepare, class Work>
  [[nodiscard]] double best_ns(Prepare const& prepare, Work const& work) const
  {
    return device_.best_ns(settings_.repeat, prepare, work);
  }

  //! @brief Takes the time of a copy of `source`, and ends the run.
  template <class Prepare>
  [[nodiscard]] run_outcome finish(std::span<float> source, Prepare const& prepare)
  {
    auto const target = allocate(source.size_bytes());
    measured().memcpy_ns =
      best_ns(prepare, [&] { device_.copy(target.data(), source.data(), source.size_bytes()); });
    return failed() ? fail() : outcome_;
  }

  [[nodiscard]] bool failed() const { return !outcome_.error.empty(); }
  //! The run that ends with a fault.
  [[nodiscard]] run_outcome fail() const { return {{}, outcome_.error}; }

 private:
  void download(estimate_parts const& from, std::vector<float>& to) const
  {
    float* at = to.data();
    for (auto const part : from) {
      device_.download(at, part.data(), part.size_bytes());
      at += part.size();
    }
  }

  Device const& device_;
  std::vector<std::vector<float>> const& gradients_;
  run_settings const& settings_;
  std::vector<typename Device::buffer> memory_;
  run_outcome outcome_;
};

}  // namespace compare_codecs
