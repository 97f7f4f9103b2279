// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of streams in an exchange: from the gradient, to the residual, and from the streams of all ranks to the mean, as
//! threads of kernels have them. On the CPU `cpu/cpu_streams.hpp` does the same.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/streams.hpp>
#include <tersum/entropy_codec.hpp>
#include <tersum/exchange/detail/block_kept.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/stream_codes.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Some streams of an exchange with their memory. Streams lie in `words`.
//! @tparam InTurns  Whether the values of 32 chunks lie in turns, as warps like it. It is not seen outside of the workspace.
template <bool InTurns, int Size>
struct stream_span {
  static constexpr std::uint32_t size = static_cast<std::uint32_t>(Size);

  stream_set set;
  stream_memory memory;
  std::uint32_t* words;

  [[nodiscard]] TERSUM_INLINE chunk_values<InTurns, Size> values(std::uint32_t stream,
                                                                 std::uint32_t index) const
  {
    return {memory.values, std::uint64_t{stream} * set.slots + index};
  }
  //! The word of a chunk of a part in `stream_memory::bits`.
  [[nodiscard]] TERSUM_INLINE std::uint32_t* bits(std::uint32_t part, std::uint32_t index) const
  {
    return memory.bits + (std::uint64_t{part} * set.slots + index);
  }
  //! Begins with its two steps.
  [[nodiscard]] TERSUM_INLINE std::uint32_t* part(std::uint32_t number) const
  {
    return words + std::uint64_t{number} * set.words;
  }
  [[nodiscard]] TERSUM_INLINE std::uint16_t* length(std::uint32_t part_number,
                                                    std::uint32_t index) const
  {
    return reinterpret_cast<std::uint16_t*>(part(part_number) + 2) + index;
  }
};

//! @brief Whether a part is to be recompressed now: with the last of its words, since where chunks lie depends on all before.
template <scattering Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool completes_part(exchange_args<Codec, Element> const& args)
{
  return args.parts.recompressed.end >= args.parts.part_words;
}

//! @brief Where the owner of a chunk keeps what a coordinate of it lost.
//! @param index  Of the chunk, among those that the rank owns.
template <class Codec>
[[nodiscard]] TERSUM_INLINE std::uint64_t owned_place(std::uint32_t index, std::uint32_t coordinate)
{
  return std::uint64_t{index} * static_cast<std::uint32_t>(Codec::chunk_size) + coordinate;
}

//! @brief What a code stands for: its magnitude times the step, where that is a float.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine>
[[nodiscard]] TERSUM_INLINE float value_of_code(Machine const&, std::uint32_t code, float step)
{
  return minimum(Machine::multiply(static_cast<float>(code), step), bits_float(0x7f7fffffu));
}

//! Whether four floats can be had in one access.
template <class T>
[[nodiscard]] TERSUM_INLINE bool are_four(T const* values, std::uint32_t count)
{
  return std::is_same_v<T, float> && count >= 4 &&
         reinterpret_cast<std::uintptr_t>(values) % 16 == 0;
}

//! @brief Up to four values as the bits of floats; zeros behind their end.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class T>
[[nodiscard]] TERSUM_INLINE word4 load_four(Machine const& machine,
                                            T const* values,
                                            std::uint32_t count)
{
  if (are_four(values, count)) { return machine.load(reinterpret_cast<word4 const*>(values)); }
  return {count > 0 ? float_bits(Machine::value(machine.load(values))) : 0u,
          count > 1 ? float_bits(Machine::value(machine.load(values + 1))) : 0u,
          count > 2 ? float_bits(Machine::value(machine.load(values + 2))) : 0u,
          count > 3 ? float_bits(Machine::value(machine.load(values + 3))) : 0u};
}

//! @brief Four values of a chunk, with what was kept of them: zeros behind its end.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Span, class Codec, class Element>
TERSUM_INLINE void fill_quad(Machine const& machine,
                             exchange_args<Codec, Element> const& args,
                             Span const& span,
                             std::uint32_t stream,
                             std::uint32_t index,
                             std::uint32_t quad)
{
  chunk_entry const entry   = machine.load(args.table + span.set.chunk(stream, index));
  std::uint32_t const count = entry.length > 4 * quad ? entry.length - 4 * quad : 0u;
  std::uint64_t const first = entry.offset + 4 * quad;
  word4 four                = load_four(machine, args.gradient + first, count);
  if constexpr (feeds_back<Codec>) {
    word4 const kept = [&] {
      if constexpr (keeps_blocks<Codec>) {
        return load_four_of_block(machine, args.residual + span.set.chunk(stream, index), quad);
      } else {
        return load_four(machine, args.residual + first, count);
      }
    }();
    float const weight = weight_of_kept(args);
    auto const add     = [&](std::uint32_t& value, std::uint32_t of_kept) {
      float const before = weighed<Codec>(machine, weight, bits_float(of_kept));
      value = float_bits(args.codec.feedback.before(machine, bits_float(value), before));
    };
    if (count > 0) { add(four.x, kept.x); }
    if (count > 1) { add(four.y, kept.y); }
    if (count > 2) { add(four.z, kept.z); }
    if (count > 3) { add(four.w, kept.w); }
  }
  machine.store(span.values(stream, index).quad(quad), four);
}

//! @brief Whether this rank has coded a chunk with the finer of its steps.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Span, class Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool has_finer_step(Machine const& machine,
                                                exchange_args<Codec, Element> const& args,
                                                Span const& span,
                                                std::uint32_t stream,
                                                std::uint32_t index)
{
  return span.set.turn(stream, index, args.header->step) <
         machine.load(&span.memory.searches[stream].finer);
}

//! @brief Writes what the codes of four values lost to the residual.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Span, class Codec, class Element>
TERSUM_INLINE void keep_quad(Machine const& machine,
                             exchange_args<Codec, Element> const& args,
                             Span const& span,
                             std::uint32_t stream,
                             std::uint32_t index,
                             std::uint32_t quad)
{
  using kept_type           = residual_element<Codec>;
  std::uint64_t const chunk = span.set.chunk(stream, index);
  chunk_entry const entry   = machine.load(args.table + chunk);
  bool const finer          = has_finer_step(machine, args, span, stream, index);
  float const step          = bits_float(machine.load(span.part(stream) + (finer ? 1 : 0)));
  bool const sent           = machine.load(span.length(stream, index)) != 0;
  float const inverse       = sent ? Machine::divide(1.0f, step) : 0.0f;
  float const weight        = weight_of_kept(args);
  std::uint32_t const draw  = draw_of_kept(args, chunk, args.rank);
  auto const keep           = [&](std::uint32_t place, std::uint32_t bits) {
    if (place >= entry.length) { return; }
    float const value         = bits_float(bits);
    kept_type* const residual = args.residual + entry.offset + place;
    float const before = weighed<Codec>(machine, weight, Machine::value(machine.load(residual)));
    float const own =
      value_of_code(machine, code_magnitude(machine, value, inverse), sent ? step : 0.0f);
    float const lost = Machine::subtract(value, bits >> 31 != 0 ? -own : own);
    float const next = args.codec.feedback.after(machine, value, lost, before);
    machine.store(residual, kept_value<kept_type>(next, draw + place * draw_stride));
  };
  word4 const four = machine.load(span.values(stream, index).quad(quad));
  keep(4 * quad, four.x);
  keep(4 * quad + 1, four.y);
  keep(4 * quad + 2, four.z);
  keep(4 * quad + 3, four.w);
}

//! @brief Decodes a chunk of the parts of a stream, and adds up their shares of the mean in the order of the parts. Where one
//! of them was not finite it is NaN.
TERSUM_EXEC_CHECK_DISABLE
template <int Size, class Machine, class Span>
TERSUM_INLINE void add_chunk(Machine const& machine,
                             Span const& span,
                             std::uint32_t stream,
                             std::uint32_t index)
{
  float const share = Machine::divide(1.0f, static_cast<float>(span.set.copies));
  auto const sums   = span.values(stream, index);
  bool finite       = true;
  for (std::uint32_t quad = 0; quad < sums.quads; ++quad) {
    machine.store(sums.quad(quad), word4{});
  }
  for (std::uint32_t copy = 0; copy < span.set.copies; ++copy) {
    std::uint32_t const part   = stream * span.set.copies + copy;
    std::uint32_t const length = machine.load(span.length(part, index));
    if (length == stream_set::not_finite) { finite = false; }
    if (length == 0 || !finite) { continue; }
    std::uint32_t const* const words = span.part(part);
    float const coarse               = Machine::multiply(bits_float(machine.load(words)), share);
    float const fine = Machine::multiply(bits_float(machine.load(words + 1)), share);
    read_codes<static_cast<std::uint32_t>(Size)>(
      machine,
      words + span.set.head,
      span.set.words - span.set.head,
      machine.load(span.bits(part, index)),
      length,
      [&](std::uint32_t place, std::uint32_t code, bool minus, bool finer) {
        float const own  = value_of_code(machine, code, finer ? fine : coarse);
        float* const sum = sums.at(place);
        machine.store(sum, Machine::add(machine.load(sum), minus ? -own : own));
      });
  }
  if (!finite) {
    constexpr std::uint32_t nan = 0x7fffffffu;
    for (std::uint32_t quad = 0; quad < sums.quads; ++quad) {
      machine.store(sums.quad(quad), word4{nan, nan, nan, nan});
    }
  }
}

//! @brief Four values of the mean.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Span, class Codec, class Element>
TERSUM_INLINE void return_quad(Machine const& machine,
                               exchange_args<Codec, Element> const& args,
                               Span const& span,
                               std::uint32_t stream,
                               std::uint32_t index,
                               std::uint32_t quad)
{
  chunk_entry const entry   = machine.load(args.table + span.set.chunk(stream, index));
  std::uint32_t const count = entry.length > 4 * quad ? entry.length - 4 * quad : 0u;
  Element* const to         = args.gradient + (entry.offset + 4 * quad);
  word4 const four          = machine.load(span.values(stream, index).quad(quad));
  auto const look           = [&](std::uint32_t mean) { return is_finite(bits_float(mean)); };
  if (!(look(four.x) && look(four.y) && look(four.z) && look(four.w))) { raise_flag(args); }
  if (are_four(to, count)) {
    machine.store(reinterpret_cast<word4*>(to), four);
    return;
  }
  auto const give = [&](std::uint32_t place, std::uint32_t mean) {
    if (place < count) {
      machine.store(to + place, Machine::template finite_element<Element>(bits_float(mean)));
    }
  };
  give(0, four.x);
  give(1, four.y);
  give(2, four.z);
  give(3, four.w);
}

}  // namespace tersum::inline v0::detail
