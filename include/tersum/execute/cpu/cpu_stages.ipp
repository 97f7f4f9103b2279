// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cpu_stages.hpp.

namespace tersum::inline v0::detail {

template <class Codec, class Element>
void cpu_stages<Codec, Element>::initialize(plan<Codec> const& plan, std::uint64_t seed) const
{
  *args_.header        = {.seed            = seed,
                          .step            = 0,
                          .non_finite_step = 0,
                          .tensors         = args_.tensors,
                          .chunks          = args_.chunks,
                          .coordinates     = plan.coordinates(),
                          .sign_key        = sign_key(0, seed),
                          .reserved        = 0};
  std::uint32_t number = 0;
  plan.for_each_record([&](tensor_record const& record) {
    args_.records[number] = record;
    for (std::uint64_t i = 0; i < record.chunks; ++i) {
      std::uint64_t const begin           = std::min<std::uint64_t>(i * size, record.size);
      args_.table[record.first_chunk + i] = {
        .offset = record.offset + begin,
        .length = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, record.size - begin)),
        .tensor = number};
    }
    ++number;
  });
  if constexpr (Codec::feeds_back) { std::fill_n(args_.residual, plan.coordinates(), 0.0f); }
  if constexpr (recompressing<Codec>) {
    if (Codec::owner_feeds_back) {
      std::fill_n(args_.parts.owner_residual, plan.owned_chunks() * size, 0.0f);
    }
  }
}

template <class Codec, class Element>
template <class Body>
void cpu_stages<Codec, Element>::with_chunk(std::uint64_t chunk, Body const& body) const
{
  if constexpr (Codec::rotates_all) {
    body(static_cast<float const*>(args_.rotated + chunk * size));
  } else {
    chunk_entry const entry    = args_.table[chunk];
    Element const* const whole = args_.gradient + entry.offset;
    int const length           = static_cast<int>(entry.length);
    if constexpr (!Codec::feeds_back) {
      if (length == size) {
        body(whole);
        return;
      }
    }
    alignas(64) float copy[size];
    for (int i = 0; i < length; ++i) { copy[i] = to_float(whole[i]); }
    if constexpr (Codec::feeds_back) {
      for (int i = 0; i < length; ++i) {
        copy[i] = copy[i] + args_.residual[entry.offset + static_cast<unsigned>(i)];
      }
    }
    std::fill(copy + length, copy + size, 0.0f);
    body(static_cast<float const*>(copy));
  }
}

template <class Codec, class Element>
template <class Term>
double cpu_stages<Codec, Element>::tensor_sum(tensor_record const& record, Term const& term)
{
  constexpr int lanes = 1024;
  double sums[lanes]  = {};
  for (std::uint64_t i = 0; i < record.chunks; ++i) {
    sums[i % lanes] = term(sums[i % lanes], record.first_chunk + i);
  }
  for (int half_of = lanes / 2; half_of > 0; half_of /= 2) {
    for (int i = 0; i < half_of; ++i) { sums[i] = sums[i] + sums[i + half_of]; }
  }
  return sums[0];
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::measure() const
{
  if constexpr (!has_steps<Codec>) {
    measure_norms();
  } else {
    measure_ranges();
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::measure_norms() const
{
  using scalar         = typename Codec::norm_scalar;
  scalar* const agreed = static_cast<scalar*>(args_.agreed);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    with_chunk(chunk, [&](auto const* from) {
      agreed[chunk] = to_agreed_norm<scalar>(square_norm<size>(set_, from), args_.world);
    });
  });
  // Half an element is left when the chunks are odd.
  if (std::is_same_v<scalar, norm_log> && args_.chunks % 2 != 0) { agreed[args_.chunks] = {}; }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::select() const
{
  if constexpr (Codec::selects) {
    selection_args const& selection = args_.selection;
    auto const energy               = [&](std::uint64_t chunk) {
      if constexpr (!Codec::chunker_type::by_norm) {
        return random_energy(chunk, args_.header->sign_key);
      } else {
        using scalar = typename Codec::norm_scalar;
        return weighted_energy(args_, chunk, static_cast<scalar const*>(args_.agreed)[chunk]);
      }
    };
    select_chunks(selection.rule,
                  args_.chunks,
                  energy,
                  selection.scratch->histogram[0],
                  selection.scratch->header,
                  selection.places);
    if constexpr (!has_parts<Codec>) {
      std::uint64_t const words =
        static_cast<std::uint64_t>(selection.rule.capacity) * selection.rule.unit_words;
      std::uint64_t const used = selection.scratch->header.base[0];
      std::fill(args_.payload + used, args_.payload + words, 0u);
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::measure_ranges() const
{
  using range  = typename Codec::range_type;
  using scalar = typename range::scalar;
  if constexpr (Codec::rotates_all) { rotate_all(); }
  constexpr bool norms = range::measurement != statistic::chunk_magnitude || Codec::tracks;
  scalar* const agreed = static_cast<scalar*>(args_.agreed);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    with_chunk(chunk, [&](auto const* from) {
      if constexpr (range::measurement == statistic::chunk_magnitude) {
        float magnitude =
          bits_float(largest_magnitude<Codec>(set_, args_.header->sign_key, chunk, from));
        if constexpr (Codec::rotates_chunks || Codec::rotates_all) {
          magnitude =
            magnitude / rotation_root<Codec>(args_.records[args_.table[chunk].tensor].chunks);
        }
        agreed[chunk] = to_agreed<scalar>(magnitude, true);
      }
      if constexpr (norms) {
        float norm = square_norm<size>(set_, from);
        if constexpr (Codec::rotates_all) { norm = norm / rotated_length(chunk); }
        if constexpr (range::measurement == statistic::chunk_square_norm) {
          agreed[chunk] = to_agreed<scalar>(norm, false);
        } else {
          args_.steps[chunk].encode = norm;
        }
      }
    });
  });
  if constexpr (norms && range::measurement != statistic::chunk_square_norm) { tensor_norms(); }
}

template <class Codec, class Element>
float cpu_stages<Codec, Element>::rotated_length(std::uint64_t chunk) const
{
  return static_cast<float>(args_.records[args_.table[chunk].tensor].chunks * size);
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::tensor_norms() const
{
  using scalar = typename Codec::range_type::scalar;
  scalar* const agreed =
    static_cast<scalar*>(args_.agreed) + (Codec::per_tensor ? 0 : args_.chunks);
  parallel_for(threads_, args_.tensors, [&](std::uint64_t tensor) {
    double const sum = tensor_sum(args_.records[tensor], [&](double so_far, std::uint64_t chunk) {
      return so_far + static_cast<double>(args_.steps[chunk].encode);
    });
    agreed[tensor]   = to_agreed<scalar>(static_cast<float>(sum), true);
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::settle() const
{
  using scalar               = typename Codec::norm_scalar;
  scalar const* const agreed = static_cast<scalar const*>(args_.agreed);
  bool poisoned              = false;
  for (std::uint64_t chunk = 0; chunk < args_.chunks; ++chunk) {
    if constexpr (!has_steps<Codec>) {
      poisoned =
        poisoned || (has_agreed(args_) && energy_bits(agreed[chunk], args_.world) == 0x7f800000u);
    } else {
      std::uint32_t const tensor  = args_.table[chunk].tensor;
      tensor_record const& record = args_.records[tensor];
      float const measured =
        has_agreed(args_) ? to_float(agreed[Codec::per_tensor ? tensor : chunk]) : 0.0f;
      args_.steps[chunk] = settle_on_level(args_.codec,
                                           find_place(args_, chunk).level,
                                           args_.world,
                                           measured,
                                           record.ratio,
                                           record.chunks);
      poisoned           = poisoned || is_poisoned(args_.steps[chunk]);
    }
  }
  if (poisoned) { args_.header->non_finite_step = args_.header->step + 1; }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode() const
{
  dither_key const key = key_of(args_);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_step const step             = args_.steps[chunk];
    payload_place const place         = find_place(args_, chunk);
    std::uint32_t* const words        = args_.payload + place.word;
    [[maybe_unused]] bool const stays = Codec::selects && place.level == 0;
    if (stays && !Codec::feeds_back) { return; }
    with_chunk(chunk, [&](auto const* from) {
      alignas(64) float own[Codec::feeds_back ? size : 1];
      if (!stays) {
        at_level(args_.codec, place.level, [&](auto const& codec) {
          encode_chunk(set_,
                       codec,
                       key,
                       args_.header->sign_key,
                       chunk,
                       step.encode,
                       from,
                       words,
                       Codec::feeds_back ? own : nullptr);
        });
      }
      if constexpr (Codec::feeds_back) {
        if (step_is_poisoned(args_)) { return; }
        chunk_entry const entry = args_.table[chunk];
        float* const residual   = args_.residual + entry.offset;
        int const length        = static_cast<int>(entry.length);
        if (stays) {
          std::copy_n(from, length, residual);
        } else {
          float const own_step = -(step.decode * static_cast<float>(args_.world));
          fused_add(set_, own_step, own, from, length, residual);
        }
      }
    });
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode() const
{
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_step& step                 = args_.steps[chunk];
    payload_place const place        = find_place(args_, chunk);
    std::uint32_t const* const words = args_.payload + place.word;
    std::uint64_t const key          = args_.header->sign_key;
    if constexpr (Codec::rotates_all) {
      decode_chunk<Codec>(
        set_, args_.world, key, chunk, step.decode, words, args_.rotated + chunk * size, step);
    } else {
      chunk_entry const entry = args_.table[chunk];
      Element* const to       = args_.gradient + entry.offset;
      if (Codec::selects && place.level == 0) {
        // Zeros, or NaN where a gradient was not finite.
        fill_chunk(to, entry.length, 0.0f * step.decode);
        return;
      }
      at_level(args_.codec, place.level, [&](auto const& codec) {
        using level_codec = std::remove_cvref_t<decltype(codec)>;
        if (entry.length == size) {
          decode_chunk<level_codec>(set_, args_.world, key, chunk, step.decode, words, to, step);
        } else {
          Element copy[size];
          decode_chunk<level_codec>(set_, args_.world, key, chunk, step.decode, words, copy, step);
          std::memcpy(to, copy, entry.length * sizeof(Element));
        }
      });
    }
  });
  if constexpr (Codec::rotates_all) { invert_all(); }
}

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
      args_.gradient[entry.offset + i] = from_float<Element>(from[i]);
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

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode_cast() const
{
  using wire_element       = typename Codec::quantizer_type::element;
  wire_element* const wire = reinterpret_cast<wire_element*>(args_.payload);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_entry const entry = args_.table[chunk];
    Element const* from     = args_.gradient + entry.offset;
    if constexpr (Codec::selects) {
      payload_place const place = find_place(args_, chunk);
      bool const stays          = place.level == 0;
      if (stays && !Codec::feeds_back) { return; }
      auto* const to = reinterpret_cast<wire_element*>(args_.payload + place.word);
      with_chunk(chunk, [&](auto const* whole) {
        if (!stays) { static_cast<void>(convert_values(set_, whole, to, 1.0f, size)); }
        if constexpr (Codec::feeds_back) { keep_rest(chunk, whole, stays ? nullptr : to); }
      });
    } else {
      wire_element* to = wire + (entry.offset - args_.records[entry.tensor].bypass);
      static_cast<void>(convert_values(set_, from, to, 1.0f, entry.length));
    }
  });
}

template <class Codec, class Element>
template <class WireElement>
void cpu_stages<Codec, Element>::keep_rest(std::uint64_t chunk,
                                           float const* whole,
                                           WireElement const* sent) const
{
  if (step_is_poisoned(args_)) { return; }
  chunk_entry const entry = args_.table[chunk];
  float* const residual   = args_.residual + entry.offset;
  for (std::uint32_t i = 0; i < entry.length; ++i) {
    float const rest = sent == nullptr ? whole[i] : whole[i] - to_float(sent[i]);
    if (is_finite(rest)) { residual[i] = rest; }
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
    if constexpr (Codec::selects) {
      payload_place const place = find_place(args_, chunk);
      if (place.level == 0) {
        fill_chunk(to, entry.length, 0.0f);
        return;
      }
      from = reinterpret_cast<wire_element const*>(args_.payload + place.word);
    }
    if (!convert_values(set_, from, to, share, entry.length)) { raise_flag(); }
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
      if (!is_finite(sum)) { raise_flag(); }
      args_.gradient[record.offset + i] = from_float<Element>(sum * share);
    }
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::raise_flag() const
{
  // Threads that race write the same value.
  std::uint64_t const number = args_.header->step + 1;
  __atomic_store_n(&args_.header->non_finite_step, number, __ATOMIC_RELAXED);
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::finish() const
{
  if constexpr (has_steps<Codec>) {
    using range                = typename Codec::range_type;
    using scalar               = typename range::scalar;
    scalar const* const agreed = static_cast<scalar const*>(args_.agreed);
    parallel_for(threads_, args_.tensors, [&](std::uint64_t tensor) {
      tensor_record& record = args_.records[tensor];
      if constexpr (Codec::saturates) {
        std::uint64_t saturated = 0;
        for (std::uint64_t i = 0; i < record.chunks; ++i) {
          saturated += args_.steps[record.first_chunk + i].saturated;
        }
        record.saturated = saturated;
      }
      if constexpr (Codec::tracks) {
        double const of_sum = tensor_sum(record, [&](double so_far, std::uint64_t chunk) {
          return is_poisoned(args_.steps[chunk]) ? so_far : add_energy(so_far, args_.steps[chunk]);
        });
        double energy       = 0;
        if constexpr (range::measurement == statistic::chunk_square_norm) {
          energy = tensor_sum(record,
                              [&](double so_far, std::uint64_t chunk) {
                                if (stays_behind<Codec>(args_.steps[chunk])) { return so_far; }
                                return so_far + static_cast<double>(to_float(agreed[chunk]));
                              }) /
                   args_.world;
        } else {
          energy =
            static_cast<double>(to_float(agreed[(Codec::per_tensor ? 0 : args_.chunks) + tensor]));
        }
        record.ratio =
          correlation_ratio<Codec>(of_sum, energy, args_.world, record.chunks, record.ratio);
      }
    });
  }
  args_.header->step     = args_.header->step + 1;
  args_.header->sign_key = sign_key(args_.header->step, args_.header->seed);
}

}  // namespace tersum::inline v0::detail
