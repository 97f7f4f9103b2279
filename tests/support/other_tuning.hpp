// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A tuning of which no number is a default.

#pragma once

#include <tersum/tuning.hpp>

namespace tersum::tests {

//! So few chunks a block that several blocks select where the defaults have one.
struct other_tuning {
  static constexpr tuning tuned{.cpu  = {.item_stretch       = 7,
                                         .step_stretch       = 3,
                                         .coordinate_stretch = 11,
                                         .least_selected     = 5,
                                         .least_reduced      = 64},
                                .cuda = {.step_threads            = 32,
                                         .cast_threads            = 64,
                                         .part_threads            = 32,
                                         .pass_threads            = 64,
                                         .coordinate_threads      = 128,
                                         .item_threads            = 32,
                                         .record_threads          = 64,
                                         .bypass_threads          = 32,
                                         .derive_in_encode        = 0,
                                         .overlap_launches        = false,
                                         .reduce_threads          = 64,
                                         .reduce_vectors          = 2,
                                         .select_threads          = 64,
                                         .select_alone            = 3,
                                         .select_chunks           = 1,
                                         .select_blocks           = 1,
                                         .select_blocks_of_widths = 1,
                                         .encode_blocks_of_widths = 1,
                                         .decode_blocks_of_widths = 1,
                                         .decode_blocks           = 1,
                                         .decode_blocks_of_scales = 1,
                                         .product_blocks          = 1,
                                         .factor_blocks           = 1,
                                         .rebuild_blocks          = 1,
                                         .small_blocks            = 1}};
};

}  // namespace tersum::tests
