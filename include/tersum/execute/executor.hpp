// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an executor must offer, as far as a concept can say without a codec.

#pragma once

#include <tersum/reduce/native.hpp>
#include <tersum/status.hpp>

#include <concepts>
#include <cstddef>

// clang-format off
namespace tersum::inline v0 {

//! @name Atoms of an executor
//! @{
template <class T> concept has_check  = requires(T const e) { { e.check() } -> std::same_as<status>; }; //!< Whether it can run.
template <class T> concept has_copy   = requires(T const e, float* to, float const* from) {
  { e.copy(to, from, std::size_t{}) } -> std::same_as<status>; };               //!< copy(to, from, count), arrays that do not overlap.
template <class T> concept has_reduce = requires(T const e, float* to, float const* from) {
  { e.reduce(native_sum<float>{}, to, from, from, std::size_t{}) } -> std::same_as<status>; }; //!< reduce(op, to, a, b, count); `to` may be `a` or `b`.
//! @}

//! What does the work: `cpu_executor`, `cuda_executor`. Besides these members it has perform(stage, plan, args) for each
//! stage of the codecs that it is used with.
template <class T> concept executor = has_check<T> && has_copy<T> && has_reduce<T>;

}  // namespace tersum::inline v0
// clang-format on
