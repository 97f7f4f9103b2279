// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cpu_stages.hpp: how an exchange begins and ends, and what the stages share.

namespace tersum::inline v0::detail {

template <class Codec, class Element>
void cpu_stages<Codec, Element>::initialize(plan<Codec> const& plan, std::uint64_t seed) const
{
  *args_.header =
    first_header(args_, seed, plan.coordinates(), sign_key(0, seed), plan.state_fingerprint());
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
  if constexpr (feeds_back<Codec>) { std::fill_n(args_.residual, plan.coordinates(), 0.0f); }
  if constexpr (scattering<Codec>) {
    if (owner_feeds_back<Codec>) {
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
    if constexpr (!feeds_back<Codec>) {
      if (length == size) {
        body(whole);
        return;
      }
    }
    alignas(64) float copy[size];
    if constexpr (feeds_back<Codec>) {
      float const* const kept = args_.residual + entry.offset;
      if constexpr (has_adds_lost<typename Codec::feedback_type>) {
        add_residual(set_, whole, kept, copy, entry.length);
      } else {
        for (int i = 0; i < length; ++i) {
          copy[i] = args_.codec.feedback.before(host_group{}, to_float(whole[i]), kept[i]);
        }
      }
    } else {
      for (int i = 0; i < length; ++i) { copy[i] = to_float(whole[i]); }
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
void cpu_stages<Codec, Element>::finish() const
{
  if constexpr (has_steps<Codec>) {
    using range                = typename Codec::range_type;
    using scalar               = typename range::scalar;
    scalar const* const agreed = static_cast<scalar const*>(args_.agreed);
    parallel_for(threads_, args_.tensors, [&](std::uint64_t tensor) {
      tensor_record& record = args_.records[tensor];
      if constexpr (saturates<Codec>) {
        std::uint64_t saturated = 0;
        for (std::uint64_t i = 0; i < record.chunks; ++i) {
          saturated += args_.steps[record.first_chunk + i].saturated;
        }
        record.saturated = saturated;
      }
      if constexpr (tracks<Codec>) {
        double const of_sum = tensor_sum(record, [&](double so_far, std::uint64_t chunk) {
          return is_poisoned(args_.steps[chunk]) ? so_far : add_energy(so_far, args_.steps[chunk]);
        });
        double energy       = 0;
        if constexpr (norms_travel<Codec>) {
          energy = tensor_sum(record,
                              [&](double so_far, std::uint64_t chunk) {
                                if (stays_behind<Codec>(args_.steps[chunk])) { return so_far; }
                                return so_far + static_cast<double>(to_float(agreed[chunk]));
                              }) /
                   args_.world;
        } else {
          energy =
            static_cast<double>(to_float(agreed[(per_tensor<Codec> ? 0 : args_.chunks) + tensor]));
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
