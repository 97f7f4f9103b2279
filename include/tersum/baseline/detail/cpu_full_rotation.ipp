// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Stages of cpu_stages.hpp: the rotation of whole tensors.

namespace tersum::inline v0::detail {

template <class Codec, class Element>
void cpu_stages<Codec, Element>::rotate_all() const
{
  std::uint64_t const key = args_.header->sign_key;
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry = args_.table[chunk];
    float* const to         = args_.rotated + chunk * size;
    for (std::uint32_t i = 0; i < entry.length; ++i) {
      to[i] = to_float(args_.gradient[entry.offset + i]);
    }
    std::fill(to + entry.length, to + size, 0.0f);
    flip_signs<size>(set_, chunk, key, to, to);
  });
  for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
    tensor_record const& record = args_.records[tensor];
    if (record.chunks == 0) { continue; }
    int const log = log2_exact(record.chunks * size);
    for (int first = 0; first < log; first += 5) {
      transform_tensor(record, first, std::min(5, log - first));
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::invert_all() const
{
  std::uint64_t const key = args_.header->sign_key;
  for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
    tensor_record const& record = args_.records[tensor];
    if (record.chunks == 0) { continue; }
    int const log = log2_exact(record.chunks * size);
    for (int first = (log - 1) / 5 * 5; first >= 0; first -= 5) {
      transform_tensor(record, first, std::min(5, log - first));
    }
  }
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry = args_.table[chunk];
    float* const from       = args_.rotated + chunk * size;
    flip_signs<size>(set_, chunk, key, from, from);
    for (std::uint32_t i = 0; i < entry.length; ++i) {
      args_.gradient[entry.offset + i] = finite_from_float<Element>(from[i]);
    }
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::transform_tensor(tensor_record const& record,
                                                  int first,
                                                  int levels) const
{
  std::uint64_t const begin  = record.first_chunk * size;
  std::uint64_t const length = record.chunks * size;
  std::uint64_t const span   = std::uint64_t{1} << (first + levels);
  // Spans are independent; few and long ones are cut across their columns instead.
  std::uint64_t const whole  = std::max<std::uint64_t>(span, std::min<std::uint64_t>(length, 4096));
  std::uint64_t const pieces = length / whole;
  std::uint64_t const columns = first < 10 || pieces > 64 ? 1 : (std::uint64_t{1} << first) / 256;
  parallel_for(threads_, pieces * columns, [&](std::uint64_t i) {
    std::uint64_t const at = begin + i / columns * whole;
    full_pass(set_, args_.rotated, at, at + whole, first, levels, i % columns, columns);
  });
}

}  // namespace tersum::inline v0::detail
