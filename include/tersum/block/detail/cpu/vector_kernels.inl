// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of one instruction set, for instruction_sets.inl.

// clang-format off
#include <tersum/block/detail/cpu/vectors.inl>
#include <tersum/block/detail/cpu/vector_arrays.inl>
#include <tersum/block/detail/cpu/group_permutations.inl>
#include <tersum/block/detail/cpu/chunk_rows.inl>
#include <tersum/block/detail/cpu/summed_codes.inl>
#include <tersum/block/detail/cpu/codebook_rows.inl>
// clang-format on
