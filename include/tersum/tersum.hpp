// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Everything that a C++20 compiler can use but transports, which are in interop/. With nvcc, <tersum/tersum.cuh> adds the
//! CUDA executor.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/collective/all_reduce_mean.hpp>
#include <tersum/collective/loopback.hpp>
#include <tersum/collective/served_sum.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>
#include <tersum/status.hpp>
#include <tersum/types.hpp>
#include <tersum/version.hpp>
