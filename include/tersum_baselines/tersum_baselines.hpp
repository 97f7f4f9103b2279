// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the library is compared with: older codecs and exchanges, made of the same pieces. <tersum/tersum.hpp> has the
//! codecs that it recommends.

#pragma once

#include <tersum_baselines/drawn_coordinates.hpp>
#include <tersum_baselines/float_levels.hpp>
#include <tersum_baselines/full_hadamard.hpp>
#include <tersum_baselines/group_absmax.hpp>
#include <tersum_baselines/group_quantizer.hpp>
#include <tersum_baselines/group_two_means.hpp>
#include <tersum_baselines/lookup_sum.hpp>
#include <tersum_baselines/majority_lanes.hpp>
#include <tersum_baselines/mean_magnitude_range.hpp>
#include <tersum_baselines/presets.hpp>
#include <tersum_baselines/served_sum.hpp>
#include <tersum_baselines/sign_quantizer.hpp>
#include <tersum_baselines/top_coordinates.hpp>
