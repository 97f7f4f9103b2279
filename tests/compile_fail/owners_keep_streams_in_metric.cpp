// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback of owners in a metric where codes have unlike lengths.
// expected: tersum: in a metric entropy_two_shot_codec takes feedback that ranks keep

#include <tersum/entropy_codec.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/metric/diagonal.hpp>

tersum::entropy_two_shot_codec<tersum::error_feedback, 512, tersum::kept_diagonal> const codec{};
