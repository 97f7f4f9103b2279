// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of plan_fingerprint.hpp.

#include <tersum/block/group.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/rotate/rotation_key.hpp>

#include <bit>
#include <concepts>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! @brief A hash of 64 bits over numbers: FNV-1a a byte, then a finalizer.
class fingerprint_hash {
 public:
  constexpr void add(std::uint64_t value) noexcept
  {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (value >> (8 * byte) & 0xff)) * 0x100000001b3ull;
    }
  }
  constexpr void add(float value) noexcept
  {
    add(static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(value)));
  }
  template <class T>
  requires(std::integral<T> || std::is_enum_v<T>) constexpr void add(T value) noexcept
  {
    add(static_cast<std::uint64_t>(value));
  }

  [[nodiscard]] constexpr std::uint64_t result() const noexcept
  {
    std::uint64_t const mixed = (hash_ ^ hash_ >> 32) * 0xd6e8feb86659fd93ull;
    return mixed ^ mixed >> 32;
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

//! An element of a wire: its bytes, and how they are read.
template <class T>
constexpr void add_element(fingerprint_hash& hash) noexcept
{
  hash.add(sizeof(T));
  hash.add(std::is_same_v<T, bfloat16> ? 3 : std::is_floating_point_v<T> ? 2 : std::is_signed_v<T>);
}

template <class Op>
void add_op(fingerprint_hash& hash) noexcept
{
  add_element<typename Op::element>(hash);
  hash.add(Op::native);
  hash.add(Op::associative);
  hash.add(Op::exact);
  if constexpr (std::integral<typename Op::element> && has_combine<Op>) {
    // Two words whose reduction tells a sum from a maximum, and lanes of one width from lanes of another.
    auto const word = static_cast<typename Op::element>(0x6712345667123456ull);
    hash.add(Op{}(word, word));
  } else if constexpr (std::same_as<typename Op::element, float>) {
    hash.add(Op{}(1.0f, 1.0f));
  }
}

template <class Dither>
void add_dither(fingerprint_hash& hash)
{
  hash.add(Dither::rounds);
  if constexpr (requires(dither_key const& key) { Dither::mask(key); }) {
    dither_key const key{.seed = 1, .step = 2, .rank = 3};
    hash.add(Dither::mask(key));
    for (std::uint32_t const word : Dither::counter(5, key).word) { hash.add(word); }
  }
}

//! Policies are told apart by what they do to a few values, so that ranks of different compilers agree.
template <class Quantizer>
void add_quantizer(fingerprint_hash& hash, Quantizer const& quantizer)
{
  if constexpr (requires { typename Quantizer::element; }) {
    add_element<typename Quantizer::element>(hash);
  } else if constexpr (table_codebook<Quantizer>) {
    hash.add(Quantizer::bits);
    for (int i = 0; i < Quantizer::magnitudes; ++i) {
      hash.add(Quantizer::levels()[i]);
      hash.add(Quantizer::boundaries()[i]);
    }
  } else if constexpr (codebook<Quantizer>) {
    hash.add(Quantizer::bits);
    for (std::uint32_t code = 0; code < 1u << Quantizer::bits; ++code) {
      hash.add(quantizer.decode(code));
    }
    for (int i = -64; i <= 64; ++i) { hash.add(quantizer.encode(static_cast<float>(i) / 16)); }
  } else if constexpr (block_quantizer<Quantizer>) {
    hash.add(Quantizer::bits);
    hash.add(Quantizer::block);
    hash.add(Quantizer::block_bits);
    auto const add = [&](float number) { hash.add(number); };
    if constexpr (requires { Quantizer::describe(add); }) { Quantizer::describe(add); }
    add_dither<typename Quantizer::dither>(hash);
  } else {
    using dither = typename Quantizer::dither;
    hash.add(Quantizer::bits);
    hash.add(Quantizer::max_level);
    hash.add(Quantizer::fraction_bits);
    for (int i = 0; i < 64; ++i) {
      float const value = static_cast<float>(Quantizer::max_level * (i - 32)) / 29.0f;
      auto const random = static_cast<std::uint32_t>(i) * 37u & 0xffu;
      hash.add(quantizer.encode(value, static_cast<float>(1 << Quantizer::fraction_bits), random));
    }
    add_dither<dither>(hash);
  }
}

//! A few numbers, none of which the others tell.
template <std::size_t Size>
void fill_sample(float (&x)[Size])
{
  constexpr int size = static_cast<int>(Size);
  for (int i = 0; i < size; ++i) { x[i] = static_cast<float>(i * 37 % 128 - 50) * 0.125f; }
}

//! Which library rotation it is or, of one without a packed form, what it makes of some chunk.
template <int Size, class Rotator>
void add_rotator(fingerprint_hash& hash, [[maybe_unused]] Rotator const& rotator)
{
  hash.add(Rotator::rotation_size);
  if constexpr (!has_packed_rotation<Rotator, Size>) {
    float x[extent(Size)], scratch[extent(Size)];
    fill_sample(x);
    rotator.forward(host_group{}, x, scratch, rotation_key{.step = 3, .chunk = 5});
    hash.add(square_gain<Rotator>);
    for (int i = 0; i < Size; i += Size / 8) { hash.add(x[i]); }
  }
}

//! Whether there is feedback, and what it does that is not `error_feedback`.
template <class Feedback>
void add_feedback(fingerprint_hash& hash, Feedback const& feedback)
{
  hash.add(Feedback::enabled);
  hash.add(of_differences<Feedback>);
  if constexpr (Feedback::enabled && !has_adds_lost<Feedback>) {
    hash.add(feedback.before(host_group{}, 3.0f, 7.0f));
    hash.add(feedback.after(host_group{}, 3.0f, 7.0f, 11.0f));
  }
  if constexpr (Feedback::enabled && has_kept_weight<Feedback>) {
    hash.add(feedback.kept_weight(1, 3.0f));
  }
  if constexpr (requires { feedback.reset_every; }) { hash.add(feedback.reset_every); }
}

//! What a metric does to a scale.
template <class Metric>
void add_metric(fingerprint_hash& hash, Metric const& metric)
{
  if constexpr (Metric::scaled) {
    hash.add(metric.least(host_group{}, 3.0f));
    hash.add(has_update<Metric>);
    if constexpr (has_update<Metric>) {
      for (float const steps : {0.0f, 1e6f}) {
        hash.add(metric.update(host_group{}, 3.0f, 7.0f, steps));
      }
    }
  }
}

//! What the library measures for a range, or else what its plain form makes of some chunk.
template <class Range>
void add_range(fingerprint_hash& hash, Range const& range)
{
  if constexpr (has_measurement<Range>) {
    hash.add(Range::measurement);
  } else {
    float x[128], scratch[128];
    fill_sample(x);
    float const measured = range.measure(host_group{}, x, scratch);
    hash.add(Range::measures_rotated);
    hash.add(measured);
    hash.add(range.rank_range(measured, 3, 128));
    hash.add(range.bound(measured, 3, 128));
  }
}

template <class Codec>
void add_codec(fingerprint_hash& hash, Codec const& codec)
{
  hash.add(Codec::chunk_size);
  if constexpr (requires { typename Codec::payload_op::element; }) {
    add_op<typename Codec::payload_op>(hash);
  }
  if constexpr (requires { typename Codec::agreed_op; }) {
    add_op<typename Codec::agreed_op>(hash);
  }
  if constexpr (is_low_rank<Codec>) {
    hash.add(Codec::rank);
    hash.add(codec.low_rank.least_saving);
    using orthogonalizer = typename Codec::low_rank_type::orthogonalizer_type;
    if constexpr (requires { orthogonalizer::max_passes; }) {
      hash.add(orthogonalizer::max_passes);
    }
  }
  add_feedback(hash, codec.feedback);
  if constexpr (requires { codec.metric; }) { add_metric(hash, codec.metric); }
  if constexpr (requires { typename Codec::rotator_type; }) {
    add_rotator<Codec::chunk_size>(hash, codec.rotator);
  }
  if constexpr (requires { typename Codec::range_type::scalar; }) {
    add_range(hash, codec.coder.range);
    hash.add(tracks<Codec>);
    hash.add(codec.coder.range.clip);
    // Probed in a small and in a large world. Limits of a factor show in one of the two, and a fixed multiple can be
    // mistaken for the square root of one of them at most.
    auto const& headroom = codec.coder.range.headroom;
    for (int const ranks : {5, 65521}) {
      for (float const ratio : {3.0f, 3000.0f}) {
        hash.add(static_cast<float>(headroom.factor(ranks, ratio)));
      }
    }
    add_element<typename Codec::norm_scalar>(hash);
  }
  if constexpr (requires { typename Codec::reducer_type::op; }) {
    hash.add(Codec::reducer_type::lane_bits);
    hash.add(Codec::zero_word);
    hash.add(requires { typename Codec::reducer_type::stages_after_sum; });
  }
  if constexpr (requires { codec.coder.quantizer; }) {
    add_quantizer(hash, codec.coder.quantizer);
  } else if constexpr (requires { typename Codec::quantizer_type; }) {
    add_quantizer(hash, typename Codec::quantizer_type{});
  }
  if constexpr (ways_differ<Codec>) { add_quantizer(hash, typename Codec::mean_quantizer_type{}); }
  if constexpr (requires { codec.chunker.drawn(std::uint64_t{}); }) {
    hash.add(codec.chunker.stride);
    hash.add(codec.chunker.scaled);
  }
  if constexpr (selects<Codec>) {
    hash.add(codec.chunker.bits);
    hash.add(Codec::chunker_type::by_norm);
    hash.add(first_tie(1, 0xffffffffu));  // ranks of version 0.1.0 break ties in another way
    if constexpr (several_bits<Codec>) {
      hash.add(codec.chunker.weighting);
      for (int const width : Codec::chunker_type::widths) { hash.add(width); }
    }
  }
}

template <transport Transport>
void refuse([[maybe_unused]] Transport const& over, [[maybe_unused]] status const& why) noexcept
{
  if constexpr (has_refusal<Transport>) { over.refuse(why); }
}

//! agree_on, but for what the transport remembers of it.
template <transport Transport, class Codec>
[[nodiscard]] status ask_all(Transport const& over, plan<Codec> const& plan, std::uint64_t seed);

}  // namespace detail

template <class Codec>
std::uint64_t fingerprint(plan<Codec> const& plan, std::uint64_t seed)
{
  detail::fingerprint_hash hash;
  hash.add(TERSUM_VERSION_MAJOR);
  hash.add(TERSUM_VERSION_MINOR);
  hash.add(seed);
  hash.add(plan.ranks().size);
  hash.add(plan.wire_bytes());
  layout const& gradient = plan.gradient();
  hash.add(gradient.coordinates);
  hash.add(gradient.bypass_below);
  hash.add(gradient.bypass_vectors);
  hash.add(gradient.bypass_unpaid);
  hash.add(gradient.tensors.size());
  hash.add(gradient.first);
  hash.add(gradient.whole);
  for (tensor const& t : gradient.tensors) {
    hash.add(t.rows);
    hash.add(t.columns);
    hash.add(t.offset);
    hash.add(t.weight);
  }
  if constexpr (requires { plan.shard_begin(0); }) {
    for (int rank = 0; rank <= plan.ranks().size; ++rank) { hash.add(plan.shard_begin(rank)); }
  }
  // What memory is made of says what kind of codec it is. Shards of unlike sizes were added above.
  auto const first = plan.codec().plan(gradient, world{.size = plan.ranks().size, .rank = 0});
  hash.add(first.state_sections().fingerprint(first.workspace_sections().fingerprint(0)));
  detail::add_codec(hash, plan.codec());
  return hash.result();
}

template <transport Transport, class Codec>
status agree_on(Transport const& over, plan<Codec> const& plan, std::uint64_t seed)
{
  detail::refuse(over, {});
  status const outcome = detail::ask_all(over, plan, seed);
  if (!outcome.ok()) {
    detail::refuse(
      over,
      {outcome.code,
       "agree_on has refused the plans of these ranks: until it accepts, nothing is exchanged",
       outcome.native});
  }
  return outcome;
}

template <transport Transport, class Codec>
status detail::ask_all(Transport const& over, plan<Codec> const& plan, std::uint64_t seed)
{
  if (status const s = over.check(); !s.ok()) { return s; }
  int const n             = over.size();
  int const me            = over.rank();
  status outcome          = plan.check();
  bool const of_this_rank = plan.ranks().size == n && plan.ranks().rank == me;
  if (outcome.ok() && !of_this_rank) {
    outcome = {error_code::invalid_argument,
               "plan: its world is not {.size = over.size(), .rank = over.rank()}"};
  }
  // A rank that found a fault sends a number that no other has, so that all ranks notice.
  std::uint64_t const mine = outcome.ok() ? fingerprint(plan, seed)
                                          : 0x9e3779b97f4a7c15ull * (static_cast<unsigned>(me) + 1);
  std::uint64_t passing    = mine;
  for (int hop = 1; hop < n; ++hop) {
    std::uint64_t received = 0;
    if (status const s = over.exchange_word((me + 1) % n, passing, (me + n - 1) % n, received);
        !s.ok()) {
      return s;
    }
    if (outcome.ok() && received != mine) {
      outcome = {
        error_code::invalid_argument,
        "another rank has another plan or seed: codec, layout, world.size and seed must be the same"};
    }
    passing = received;
  }
  return outcome;
}

}  // namespace tersum::inline v0
