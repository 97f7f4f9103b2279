// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Everything but what is in interop/: what <tersum/tersum.hpp> has, the CUDA executor, checks of
//! states on a device, and the pieces for kernels of one's own.

#pragma once

#if !defined(__CUDACC__)
#error "tersum/tersum.cuh needs nvcc; include <tersum/tersum.hpp> from other compilers"
#endif

#include <tersum/block/block_scan.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/cuda_context.cuh>
#include <tersum/exchange/check_device_state.cuh>
#include <tersum/execute/cuda_executor.cuh>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/thread_hadamard.hpp>
#include <tersum/tersum.hpp>
