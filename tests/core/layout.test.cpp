// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which tensors of a bucket bypass the codec, what a wire says of its reduction, and what a status compares.

#include <tersum/layout.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/status.hpp>
#include <tersum/types.hpp>
#include <tersum/wire.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <type_traits>

namespace {

using tersum::layout;
using tersum::tensor;

TEST_CASE("[layout] a tensor has rows times columns coordinates, also beyond 32 bits")
{
  static_assert(tensor{.name = "w", .rows = 3, .columns = 5}.size() == 15);
  static_assert(tensor{.rows = 7}.size() == 7);
  static_assert(tensor{}.size() == 0);
  static_assert(tensor{.rows = 1u << 20, .columns = 1u << 20}.size() == std::uint64_t{1} << 40);
}

TEST_CASE("[layout] vectors bypass unless told otherwise, and tensors below the threshold always")
{
  tensor const row{.rows = 1, .columns = 100}, column{.rows = 100},
    matrix{.rows = 10, .columns = 10};
  layout const usual{};
  CHECK(usual.bypasses(row));
  CHECK(usual.bypasses(column));
  CHECK_FALSE(usual.bypasses(matrix));

  layout const all{.bypass_vectors = false};
  CHECK_FALSE(all.bypasses(row));
  CHECK_FALSE(all.bypasses(column));
  CHECK_FALSE(all.bypasses(matrix));

  CHECK_FALSE(layout{.bypass_below = 100, .bypass_vectors = false}.bypasses(matrix));
  CHECK(layout{.bypass_below = 101, .bypass_vectors = false}.bypasses(matrix));
  CHECK(layout{.bypass_below = 101, .bypass_vectors = false}.bypasses(row));
  CHECK(layout{.bypass_below = 1}.bypasses(tensor{.rows = 0, .columns = 8}));
}

TEST_CASE("[wire] its bytes are its elements', and its reduction's properties its own")
{
  using packed = tersum::wire<tersum::saturating_add<4>>;
  using halves = tersum::wire<tersum::native_sum<tersum::half>>;
  using words  = tersum::wire<tersum::native_sum<std::uint64_t>>;
  static_assert(std::is_same_v<packed::element, std::uint32_t>);
  static_assert(!packed::native && !packed::associative && !packed::exact);
  static_assert(halves::native && !halves::associative && !halves::exact);
  static_assert(words::native && words::associative && words::exact);
  CHECK(packed{.count = 5}.bytes() == 20);
  CHECK(halves{.count = 5}.bytes() == 10);
  CHECK(words{.count = 5}.bytes() == 40);
  CHECK(words{}.bytes() == 0);
}

TEST_CASE("[status] is ok until told otherwise, and compares by all that it says")
{
  using tersum::error_code;
  using tersum::status;
  static_assert(status{}.ok());
  static_assert(status{}.message.empty() && status{}.native == 0);
  static_assert(*status{}.message.data() == '\0');  // so that it can be printed as it is
  static_assert(status{} == status{});

  status const failed = tersum::transport_error(7);
  CHECK_FALSE(failed.ok());
  CHECK(failed.code == error_code::transport_failed);
  CHECK(failed.native == 7);
  CHECK_FALSE(failed.message.empty());
  CHECK(failed == tersum::transport_error(7));
  CHECK_FALSE(failed == tersum::transport_error(8));
  CHECK_FALSE(status{error_code::unsupported, "a"} == status{error_code::unsupported, "b"});
  CHECK_FALSE(status{error_code::unsupported, "a"} == status{error_code::invalid_argument, "a"});
}

}  // namespace
