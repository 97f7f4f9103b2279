// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Stages of cpu_stages.hpp: values that are converted, and those that bypass the codec.

namespace tersum::inline v0::detail {

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode_cast() const
{
  using wire_element       = typename Codec::quantizer_type::element;
  wire_element* const wire = reinterpret_cast<wire_element*>(args_.payload);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry = args_.table[chunk];
    Element const* from     = args_.gradient + entry.offset;
    if constexpr (selects<Codec>) {
      payload_place const place = find_place(args_, chunk);
      bool const stays          = place.level == 0;
      if (stays && !feeds_back<Codec>) { return; }
      auto* const to = reinterpret_cast<wire_element*>(args_.payload + place.word);
      with_chunk(chunk, [&](auto const* whole) {
        if (!stays) { static_cast<void>(convert_values(set_, whole, to, 1.0f, size)); }
        if constexpr (feeds_back<Codec>) { keep_residual(chunk, whole, stays ? nullptr : to); }
      });
    } else {
      wire_element* to = wire + (entry.offset - args_.records[entry.tensor].bypass);
      static_cast<void>(convert_values(set_, from, to, 1.0f, entry.length));
    }
  });
}

template <class Codec, class Element>
template <class WireElement>
void cpu_stages<Codec, Element>::keep_residual(std::uint64_t chunk,
                                               float const* whole,
                                               WireElement const* sent) const
{
  if (step_is_poisoned(args_)) { return; }
  chunk_entry const entry = args_.table[chunk];
  float* const residual   = args_.residual + entry.offset;
  if constexpr (has_adds_lost<typename Codec::feedback_type>) {
    keep_finite_residual(set_, whole, sent, residual, entry.length);
  } else {
    for (std::uint32_t i = 0; i < entry.length; ++i) {
      float const lost = sent == nullptr ? whole[i] : whole[i] - to_float(sent[i]);
      float const rest = args_.codec.feedback.after(host_group{}, whole[i], lost, residual[i]);
      if (is_finite(rest)) { residual[i] = rest; }
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode_cast() const
{
  using wire_element             = typename Codec::quantizer_type::element;
  wire_element const* const wire = reinterpret_cast<wire_element const*>(args_.payload);
  float const share              = 1.0f / static_cast<float>(args_.world);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry  = args_.table[chunk];
    wire_element const* from = wire + (entry.offset - args_.records[entry.tensor].bypass);
    Element* to              = args_.gradient + entry.offset;
    if constexpr (selects<Codec>) {
      payload_place const place = find_place(args_, chunk);
      if (place.level == 0) {
        fill_chunk(to, entry.length, 0.0f);
        return;
      }
      from = reinterpret_cast<wire_element const*>(args_.payload + place.word);
    }
    if (!convert_values(set_, from, to, share, entry.length)) { raise_flag(args_); }
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode_bypass() const
{
  for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
    tensor_record const& record = args_.records[tensor];
    if (record.chunks != 0) { continue; }
    for (std::uint64_t i = 0; i < record.size; ++i) {
      args_.bypass[record.bypass + i] = to_float(args_.gradient[record.offset + i]);
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode_bypass() const
{
  float const share = 1.0f / static_cast<float>(args_.world);
  for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
    tensor_record const& record = args_.records[tensor];
    if (record.chunks != 0) { continue; }
    for (std::uint64_t i = 0; i < record.size; ++i) {
      float const sum = args_.bypass[record.bypass + i];
      if (!is_finite(sum)) { raise_flag(args_); }
      args_.gradient[record.offset + i] = from_float<Element>(sum * share);
    }
  }
}

}  // namespace tersum::inline v0::detail
