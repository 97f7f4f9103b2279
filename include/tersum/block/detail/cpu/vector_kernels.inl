// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of one instruction set. Included once for each by vector_kernels.hpp, which sets TERSUM_SIMD_WIDTH (floats in a
//! vector), TERSUM_SIMD (attributes of functions within kernels) and TERSUM_TARGET (those of kernels).

// clang-format off
#include <tersum/block/detail/cpu/vector_target.inl>
#include <tersum/block/detail/cpu/vector_arithmetic.inl>
#include <tersum/block/detail/cpu/vector_elements.inl>
#include <tersum/block/detail/cpu/vector_arrays.inl>
#include <tersum/block/detail/cpu/vector_rows.inl>
#include <tersum/block/detail/cpu/vector_encode.inl>
#include <tersum/block/detail/cpu/vector_decode.inl>
#include <tersum/block/detail/cpu/vector_measure.inl>
#include <tersum/block/detail/cpu/vector_full_rotation.inl>
#include <tersum/block/detail/cpu/codebook_kernels.inl>
// clang-format on
