// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which policies go together.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/form/form.hpp>

#include <string_view>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! Empty, or the sentence of the form or of the metric that needs what the others do not give; without `Ask` the compiler says it. Plans
//! check what feedback needs: the codecs of one width that `allocated_chunks` is made of leave no chunk out themselves.
template <bool Ask,
          class Chunker,
          class Rotator,
          class Coder,
          class Form,
          class Feedback,
          class Metric>
[[nodiscard]] constexpr std::string_view refuses() noexcept
{
  constexpr std::string_view form =
    Form::template suits<Ask, Chunker, Rotator, Coder, Feedback, Metric>();
  if constexpr (!form.empty()) { return form; }
  TERSUM_NEEDS("tersum: a metric with scales takes chunks of up to 1024 coordinates",
               !Metric::scaled || Chunker::chunk_size <= 1024);
  using scale = typename scale_of<Metric>::type;
  TERSUM_NEEDS("tersum: stored_scale of a metric must be float or bfloat16",
               std::is_same_v<scale, float> || std::is_same_v<scale, bfloat16>);
  return {};
}

}  // namespace detail

//! @brief Why the compiler refuses the codec of these policies: the sentence that it says, or nothing if they go together.
template <chunker Chunker,
          rotator Rotator,
          coder Coder,
          form Form,
          feedback Feedback,
          metric Metric>
[[nodiscard]] constexpr std::string_view refusal_of() noexcept
{
  constexpr std::string_view sentence =
    detail::refuses<true, Chunker, Rotator, Coder, Form, Feedback, Metric>();
  if (!sentence.empty()) { return sentence; }
  using kind               = typename Form::template payload_kind<Coder>;
  constexpr bool owners    = std::is_same_v<kind, payload::parts> && !selecting_chunker<Chunker>;
  constexpr bool published = std::is_same_v<kind, payload::published>;
  return detail::suits_feedback<true, owners, published, Feedback>();
}

}  // namespace tersum::inline v0
