// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/dequantize.hpp.

namespace tersum::inline v0 {

namespace detail {

template <int Size, class Quantizer, class Reducer, class Element>
struct dequantize_kernel : chunk_launch<Size> {
  using chunk = block_chunk<Size>;
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
    order::backward(ctx, mine, 0, this->template storage<order>(ctx), v);
    float const step = mine.exists() ? ctx.load(steps + mine.chunk) : 0.0f;
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = Context::multiply(v[i], step); }
    store_chunk(ctx, mine, v, values);
  }
};

}  // namespace detail

template <executor Executor,
          chunker Chunker,
          quantizer Quantizer,
          reducer Reducer,
          writable_values Values>
status dequantize(Executor const& exec,
                  Chunker const& chunker,
                  Quantizer const&,
                  Reducer const& reducer,
                  std::span<std::uint32_t const> words,
                  int world,
                  std::span<float const> steps,
                  Values&& values)
{
  using element      = std::ranges::range_value_t<Values>;
  constexpr int size = Chunker::chunk_size;
  std::span<element> const to{values};
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
          detail::decode_chunk<codes>(
            set, world, 0, chunk, steps[chunk], words.data() + chunk * room, values_of, counts);
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
