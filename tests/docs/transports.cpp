// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/transports.md.

#include <tersum/tersum.hpp>
#include <tersum_baselines/presets.hpp>

#include <concepts>
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

// code 2

static_assert(requires { native_operation<tersum::native_sum<float>>(); });
template MPI_Op native_operation<tersum::native_max<float>>();
template MPI_Op native_operation<tersum::native_sum<std::uint32_t>>();

template <class Element, class Op>
requires requires(Op op, Element v) { op(v, v); }
tersum::status my_all_reduce(Element*, std::size_t, Op);
tersum::status my_all_to_all(std::uint32_t const*, std::uint32_t*, std::size_t);
template <class Round>
tersum::status my_all_to_all_v(Round const&);
template <class Round>
tersum::status my_all_gather_v(Round const&);
template <class Round>
tersum::status my_reduce_scatter_v(Round const&);
tersum::status my_all_gather(std::uint32_t*, std::size_t);

template <class Codec>
tersum::status exchange_by_hand(tersum::cpu_executor const& exec,
                                tersum::plan<Codec> const& plan,
                                std::span<float> gradient,
                                std::span<std::byte> state,
                                std::span<std::byte> workspace)
{
  // code 3
  return all_reduce_mean(exec, plan, gradient, state, workspace, reduce);
}

// One codec of each kind of rounds.
template tersum::status exchange_by_hand(
  tersum::cpu_executor const&,
  tersum::plan<std::remove_const_t<decltype(tersum::presets::rotated_sat4)>> const&,
  std::span<float>,
  std::span<std::byte>,
  std::span<std::byte>);
template tersum::status exchange_by_hand(
  tersum::cpu_executor const&,
  tersum::plan<std::remove_const_t<decltype(tersum::presets::thc_sat4)>> const&,
  std::span<float>,
  std::span<std::byte>,
  std::span<std::byte>);
template tersum::status exchange_by_hand(
  tersum::cpu_executor const&,
  tersum::plan<std::remove_const_t<decltype(tersum::presets::allocated_sat_4)>> const&,
  std::span<float>,
  std::span<std::byte>,
  std::span<std::byte>);
template tersum::status exchange_by_hand(
  tersum::cpu_executor const&,
  tersum::plan<std::remove_const_t<decltype(tersum::presets::allocated_4)>> const&,
  std::span<float>,
  std::span<std::byte>,
  std::span<std::byte>);
template tersum::status exchange_by_hand(
  tersum::cpu_executor const&,
  tersum::plan<std::remove_const_t<decltype(tersum::presets::topk_b2)>> const&,
  std::span<float>,
  std::span<std::byte>,
  std::span<std::byte>);
template tersum::status exchange_by_hand(
  tersum::cpu_executor const&,
  tersum::plan<std::remove_const_t<decltype(tersum::presets::powersgd_r4)>> const&,
  std::span<float>,
  std::span<std::byte>,
  std::span<std::byte>);

// code 4: struct piece {

void overlap(tersum::cpu_executor const& exec,
             std::vector<piece>& pieces,
             std::vector<std::unique_ptr<tersum::mpi_transport>> const& transports,
             std::vector<tersum::status>& outcome)
{
  // code 4: std::mutex computing
}
