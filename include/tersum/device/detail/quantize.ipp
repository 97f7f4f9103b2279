// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/quantize.hpp.

#include <tersum/block/block_values.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/config.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/quantize/detail/coding.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>

namespace tersum::inline v0 {

namespace detail {

template <int Size, class Quantizer, class Reducer, class Element>
struct quantize_kernel : chunk_launch<Size> {
  using chunk = block_chunk<Size>;
  using array = block_values<Size, true>;
  using order = block_hadamard<Size, false>;
  using codes = block_codes<Size, Quantizer, Reducer>;

  Quantizer quantizer;
  Element const* values;
  std::uint64_t count;
  float const* scales;
  dither_key key;
  std::uint32_t* words;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    chunk const mine = chunk::of(ctx, count);
    float v[32];
    std::uint32_t packed[codes::words];
    array::load(ctx, mine, values, v);
    order::template to_wire<striped<Element>>(
      ctx, v, tile_storage<order>(ctx), mine.thread, mine.first);
    float const scale = mine.exists() ? ctx.load(scales + mine.chunk) : 0.0f;
    codes{quantizer}.encode(ctx, mine, key, scale, v, packed);
    codes::store(ctx, mine, packed, words);
  }
};

//! Whether arrays can be quantized or dequantized; if not, the sentence names the argument. `factors` are scales or steps.
template <class Chunker, class Reducer, class Element, class Word>
[[nodiscard]] argument_check check_codes(Chunker const& chunker,
                                         Reducer const& reducer,
                                         std::span<Element> values,
                                         std::span<Word> words,
                                         std::span<float const> factors,
                                         std::string_view wrong_count,
                                         std::string_view wrong_address)
{
  static_assert(Chunker::chunk_size >= 128,
                "tersum: codes are those of chunks of 128 coordinates and more");
  std::size_t const size   = packed_words(chunker, reducer, values.size());
  std::size_t const chunks = size / (Chunker::chunk_size / 32 * Reducer::lane_bits);
  return argument_check{}
    .require(words.size() == size,
             "words has not packed_words(chunker, reducer, values.size()) elements")
    .require(factors.size() == chunks, wrong_count)
    .chunks(chunks)
    .address(values, alignof(Element), "values is a null pointer, or not aligned to its elements")
    .address(factors, alignof(float), wrong_address)
    .address(words, 16, "words is a null pointer, or not aligned to 16 bytes")
    .require(are_disjoint(values, words), "words overlaps values");
}

template <int Size, class Quantizer, class Reducer, class Element>
struct dequantize_kernel : chunk_launch<Size> {
  using chunk = block_chunk<Size>;
  using array = block_values<Size, true>;
  using order = block_hadamard<Size, false>;
  using codes = block_codes<Size, Quantizer, Reducer>;

  std::uint32_t const* words;
  int world;
  float const* steps;
  Element* values;
  std::uint64_t count;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    chunk const mine = chunk::of(ctx, count);
    float v[32];
    std::uint32_t packed[codes::words];
    codes::load(ctx, mine, words, packed);
    codes::decode(ctx, packed, world, v);
    float* const tile = tile_storage<order>(ctx);
    order::template to_loaded<0, 0, striped<Element>>(ctx, v, tile, mine.thread, mine.first);
    float const step = mine.exists() ? ctx.load(steps + mine.chunk) : 0.0f;
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = Context::multiply(v[i], step); }
    array::store(ctx, mine, v, values);
  }
};

}  // namespace detail

template <executor Executor,
          chunker Chunker,
          quantizer Quantizer,
          reducer Reducer,
          gradient_values Values>
status quantize(Executor const& exec,
                Chunker const& chunker,
                Quantizer const& quantizer,
                Reducer const& reducer,
                Values const& values,
                std::span<float const> scales,
                dither_key const& key,
                std::span<std::uint32_t> words)
{
  constexpr int size = Chunker::chunk_size;
  auto const from    = detail::span_of(values);
  using element      = typename decltype(from)::value_type;
  status const s     = detail::check_codes(chunker,
                                       reducer,
                                       from,
                                       words,
                                       scales,
                                       "scales has not one element for each chunk of values",
                                       "scales is a null pointer, or not aligned to its elements")
                     .require(detail::are_disjoint(scales, words), "words overlaps scales")
                     .result();
  if (!s.ok()) { return s; }
  return detail::perform(
    exec,
    [&](int threads, auto set) {
      constexpr int room = size / 32 * Reducer::lane_bits;
      detail::coding<size, Quantizer, Reducer> const codes{.coder = {.quantizer = quantizer}};
      detail::parallel_for(threads, scales.size(), [&](std::uint64_t chunk) {
        detail::with_whole_chunk<size>(from, chunk, [&]<class From>(From const* of) {
          detail::chunk_source<From> const source{of, nullptr};
          std::uint32_t* const to = words.data() + chunk * room;
          detail::encode_chunk(
            set, codes, key, std::uint64_t{0}, chunk, scales[chunk], of, source, to, nullptr);
        });
      });
    },
    [&](auto const& on) {
      using kernel = detail::quantize_kernel<size, Quantizer, Reducer, element>;
      return on.run(
        kernel{{}, quantizer, from.data(), from.size(), scales.data(), key, words.data()},
        kernel::chunk::blocks(from.size()));
    });
}

template <executor Executor,
          chunker Chunker,
          quantizer Quantizer,
          reducer Reducer,
          gradient_memory Values>
status dequantize(Executor const& exec,
                  Chunker const& chunker,
                  Quantizer const&,
                  Reducer const& reducer,
                  std::span<std::uint32_t const> words,
                  int world,
                  std::span<float const> steps,
                  Values&& values)
{
  constexpr int size = Chunker::chunk_size;
  auto const to      = detail::span_of(values);
  using element      = typename decltype(to)::value_type;
  if (world > Reducer::max_world(Quantizer::max_level)) {
    return {error_code::world_too_large, "world is too large for the reducer's lanes"};
  }
  status const s = detail::check_codes(chunker,
                                       reducer,
                                       to,
                                       words,
                                       steps,
                                       "steps has not one element for each chunk of values",
                                       "steps is a null pointer, or not aligned to its elements")
                     .require(world >= 1, "world must be 1 or more")
                     .require(detail::are_disjoint(steps, to), "values overlaps steps")
                     .result();
  if (!s.ok()) { return s; }
  return detail::perform(
    exec,
    [&](int threads, auto set) {
      using codes        = detail::coding<size, Quantizer, Reducer>;
      constexpr int room = size / 32 * Reducer::lane_bits;
      detail::parallel_for(threads, steps.size(), [&](std::uint64_t chunk) {
        detail::write_whole_chunk<size>(to, chunk, [&](element* values_of) {
          chunk_step counts{};
          detail::decode_chunk<codes>(set,
                                      world,
                                      std::uint64_t{0},
                                      chunk,
                                      steps[chunk],
                                      words.data() + chunk * room,
                                      values_of,
                                      counts);
        });
      });
    },
    [&](auto const& on) {
      using kernel = detail::dequantize_kernel<size, Quantizer, Reducer, element>;
      return on.run(kernel{{}, words.data(), world, steps.data(), to.data(), to.size()},
                    kernel::chunk::blocks(to.size()));
    });
}

}  // namespace tersum::inline v0
