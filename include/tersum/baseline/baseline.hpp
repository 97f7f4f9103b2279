// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the library is compared with: older codecs and exchanges, made of the same pieces. <tersum/tersum.hpp> has the
//! codecs that it recommends.

#pragma once

#include <tersum/baseline/drawn_coordinates.hpp>
#include <tersum/baseline/float_levels.hpp>
#include <tersum/baseline/full_hadamard.hpp>
#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/group_two_means.hpp>
#include <tersum/baseline/lookup_sum.hpp>
#include <tersum/baseline/majority_lanes.hpp>
#include <tersum/baseline/mean_magnitude_range.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/baseline/served_sum.hpp>
#include <tersum/baseline/sign_quantizer.hpp>
#include <tersum/baseline/top_coordinates.hpp>
