// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Everything: what <tersum/tersum.hpp> has, and the CUDA executor.

#pragma once

#if !defined(__CUDACC__)
#error "tersum/tersum.cuh needs nvcc; include <tersum/tersum.hpp> from other compilers"
#endif

#include <tersum/execute/cuda_executor.cuh>
#include <tersum/tersum.hpp>
