// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of one instruction set. Included once for each by vector_kernels.hpp, which sets TERSUM_SIMD_WIDTH (floats in a
//! vector), TERSUM_SIMD (attributes of functions within kernels) and TERSUM_TARGET (those of kernels).

// clang-format off
#include <tersum/execute/cpu/vector_target.ipp>
#include <tersum/execute/cpu/vector_arithmetic.ipp>
#include <tersum/execute/cpu/vector_elements.ipp>
#include <tersum/execute/cpu/vector_arrays.ipp>
#include <tersum/execute/cpu/vector_rows.ipp>
#include <tersum/execute/cpu/vector_encode.ipp>
#include <tersum/execute/cpu/vector_decode.ipp>
#include <tersum/execute/cpu/vector_measure.ipp>
#include <tersum/execute/cpu/vector_full_rotation.ipp>
#include <tersum/execute/cpu/codebook_kernels.ipp>
#include <tersum/execute/cpu/block_kernels.ipp>
// clang-format on
