// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/transports.md.

#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

using codec = std::remove_const_t<decltype(tersum::presets::rotated_sat4)>;

void exchange(tersum::cpu_executor const& exec,
              tersum::plan<codec> const& plan,
              std::span<float> gradient,
              std::span<std::byte> state,
              std::span<std::byte> workspace,
              std::span<std::byte> scratch,
              std::uint64_t seed)
{
  tersum::status status;
  // code 1
}

// code 2: struct piece {

void overlap(tersum::cpu_executor const& exec,
             std::vector<piece>& pieces,
             std::vector<std::unique_ptr<tersum::mpi_transport>> const& transports,
             std::vector<tersum::status>& outcome)
{
  // code 2: std::mutex computing
}
