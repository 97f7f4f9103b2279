// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Registers every operation for the codecs of a user's `add_presets`: part of the target tersum::bench.

#include "support/cpu_bench.hpp"
#include "support/operation.hpp"

namespace {

[[maybe_unused]] bool const registered = [] {
  using namespace tersum_bench;
  for (operation const& what : {operation{"norms", part::norms},
                                operation{"encode", part::encode},
                                operation{"encode_feedback", part::encode_feedback},
                                operation{"local", part::local},
                                operation{"recompress", part::recompress},
                                operation{"reduce", part::reduce},
                                operation{"decode", part::decode},
                                operation{"exchange", part::exchange}}) {
    add_presets(what);
  }
  return name_compiler();
}();

}  // namespace
