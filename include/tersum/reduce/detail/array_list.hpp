// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arrays that one launch reduces.

#pragma once

namespace tersum::inline v0::detail {

//! @brief Arrays that one launch reduces, of which more than `most` take several launches.
template <class Element>
struct array_list {
  static constexpr int most = 64;
  Element const* array[most];
  int count;
};

}  // namespace tersum::inline v0::detail
