// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The roles that policies play, as concepts. Each is made of atoms with one requirement each, so that
//! compilers name what a policy of yours lacks. (nvcc does so where a codec is given the policy; of a static_assert it
//! says only that it failed.) Constants are `static constexpr` members. docs/codecs.md has the policies of each role.

#pragma once

#include <tersum/description.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

namespace tersum::inline v0 {

struct dither_key;
struct philox_block;
struct rotation_key;
//! @brief What a chunker that chooses is told about a chunk besides its energy: the same on every rank.
struct chunk_key {
  std::uint64_t chunk  = 0;  //!< Its number in the gradient.
  std::uint64_t step   = 0;  //!< Exchanges made with this state.
  std::uint64_t random = 0;  //!< A random number of the step.
};

//! What fused kernels can measure for a range, and how the ranks agree on it.
enum class statistic {
  chunk_square_norm,   //!< Sum of squares of each chunk, known before the rotation; the ranks' sum.
  chunk_magnitude,     //!< Largest magnitude of each rotated chunk; the ranks' maximum.
  tensor_square_norm,  //!< Sum of squares of each tensor; the ranks' maximum.
};

namespace detail {

//! Stands for what `for_each_part` is given.
struct any_visitor {
  template <class Op>
  void operator()(Op const&, std::size_t begin, std::size_t end) const;
};

//! Stands for a `group` that policies are given; see block/group.hpp.
struct any_group {
  int rank() const;
  int size() const;
  void sync() const;
  template <class Body>
  void each(int count, Body const& body) const;
  template <class Term>
  auto sum(int, Term const& term) const -> std::remove_cvref_t<decltype(term(0))>;
  template <class Term>
  float maximum(int, Term const& term) const;
  static float add(float a, float b);
  static float subtract(float a, float b);
  static float multiply(float a, float b);
  static float divide(float a, float b);
  static float square_root(float a);
  static float fma(float a, float b, float c);
};

//! A policy of which nothing more is asked. Compilers name what a policy lacks of a requirement, but not of an alternative.
struct any_policy {
  static constexpr int rotation_size = 128;
  template <class Group, class X, class Key>
  void forward(Group const& group, X& x, X& scratch, Key const& key) const;
  template <class Group, class X, class Key>
  void backward(Group const& group, X& x, X& scratch, Key const& key) const;
  static philox_block counter(std::uint64_t block, dither_key const& key);
  static std::uint32_t mask(dither_key const& key);
  float before(any_group const& arithmetic, float gradient, float kept) const;
  float after(any_group const& arithmetic, float value, float lost, float kept) const;
  float least(any_group const& arithmetic, float largest) const;
};

template <bool Asked, class T>
using asked = std::conditional_t<Asked, T, any_policy>;

//! Coordinates of a chunk of which a rotator is asked what it can do.
template <class Rotator>
inline constexpr int probed_size = Rotator::rotation_size > 1 ? Rotator::rotation_size : 128;

}  // namespace detail

// clang-format off
//! What is passed to kernels as it is.
template <class T> concept kernel_value = std::is_trivially_copyable_v<T>;

//! A policy is such a value, and says in `description describe() const` of its own, not of a base, who it is and on what it depends.
template <class T> concept has_describe = requires { { detail::describer(&T::describe) } -> std::same_as<std::remove_cv_t<T>>; };
template <class T> concept policy       = kernel_value<T> && has_describe<T>;

//! @name Atoms
//! @{
template <class T> concept has_bits          = requires { typename std::integral_constant<int, T::bits>; };        //!< Bits of a code, its sign included.
template <class T> concept has_max_level     = requires { typename std::integral_constant<int, T::max_level>; };   //!< Codes lie in +-max_level.
template <class T> concept has_fraction_bits = requires { typename std::integral_constant<int, T::fraction_bits>; }; //!< `encode` gets 2^fraction_bits / step as scale: 0 to 8.
template <class T> concept has_unbiased      = requires { typename std::bool_constant<T::unbiased>; };   //!< Whether the expected value of what is decoded is what was encoded.
template <class T> concept has_rounds        = requires { typename std::integral_constant<int, T::rounds>; };      //!< Rounds of Philox4x32; 0: draws nothing.
template <class T> concept has_draw          = requires(std::uint64_t block, dither_key const& key) {
  { T::counter(block, key) } -> std::same_as<philox_block>;   //!< Counter from which Philox makes the bytes of wire positions 16 block to 16 block + 15.
  { T::mask(key) } -> std::same_as<std::uint32_t>; };         //!< What each word of these bytes is xored with.
template <class T> concept has_chunk_size    = requires { typename std::integral_constant<int, T::chunk_size>; };  //!< Coordinates of a chunk.
template <class T> concept has_by_norm       = requires { typename std::bool_constant<T::by_norm>; };    //!< Whether the ranks agree on the chunks' norms before it chooses.
template <class T> concept has_score         = requires(T const c, chunk_key const& key) { { c.score(std::uint32_t{}, key) } -> std::same_as<std::uint32_t>; }; //!< score(energy, key), below 2^31: chunks of larger scores come first, equal ones take turns. The energy ascends with the agreed norm; without norms it is 0.
template <class T> concept has_level_count   = requires { typename std::integral_constant<int, T::level_count>; }; //!< How many widths a chunk can have besides none: 1 to 7.
template <class T> concept has_several_bits  = requires { typename std::bool_constant<T::several_bits>; }; //!< Whether chunks that travel differ in width, as `widths` says.
template <class T> concept has_widths        = requires(T const c) {
  { T::widths[0] } -> std::convertible_to<int>;               //!< Bits of a code on each of the `level_count` levels, ascending.
  { c.weighting } -> std::convertible_to<float>; };           //!< Exponent of a chunk's energy where gains are compared: 0 to 1.
template <class T> concept has_budget        = requires(T const c) { { c.bits } -> std::convertible_to<float>; }; //!< The budget: most bits per coordinate that does not bypass, norms included.
template <class T> concept has_rotation_size = requires { typename std::integral_constant<int, T::rotation_size>; }; //!< Coordinates of the chunks that it takes; 1: chunks of any size; 0: it rotates whole tensors.
template <class T, int Size = detail::probed_size<T>> concept has_forward = requires(T const r, detail::any_group const& g, float (&x)[Size], rotation_key const& key) {
  r.forward(g, x, x, key); };                                 //!< forward(group, chunk, as many floats of scratch, key): the chunk in the basis in which it is quantized; then a `sync`.
template <class T, int Size = detail::probed_size<T>> concept has_backward = requires(T const r, detail::any_group const& g, float (&x)[Size], rotation_key const& key) {
  r.backward(g, x, x, key); };                                //!< backward(the same): undoes it, times `square_gain`.
template <class T> concept has_square_gain   = requires { typename std::integral_constant<int, T::square_gain>; }; //!< Optional: by how much `forward` multiplies squared norms; 1 without it.
template <class T, int Size> concept has_packed_rotation = requires { typename T::template packed<Size>; };  //!< Optional: `packed<Size>`, the `block_hadamard` that makes the same bits in registers; CPU vectors then do, too.
template <class T> concept has_lane_bits     = requires { typename std::integral_constant<int, T::lane_bits>; };   //!< Bits on the wire of a code, and of a sum of codes: 2, 4, 8, 16 or 32.
template <class T> concept has_biased        = requires { typename std::bool_constant<T::biased>; };     //!< Whether a lane holds code + max_level instead of two's complement.
template <class T> concept has_saturating    = requires { typename std::bool_constant<T::saturating>; }; //!< Whether a sum beyond its lane stays at the limit; the decoder counts those lanes.
template <class T> concept has_element       = requires { typename T::element; };                            //!< The type that a transport sums, and never cuts.
template <class T, int Bits> concept has_with_bits = requires { typename T::template with_bits<Bits>; };     //!< The same policy in another width.
template <class T> concept has_scalar        = requires { typename T::scalar; };                             //!< Type of the agreed scalars, of which each chunk or tensor has one.
template <class T> concept has_measurement   = requires { typename std::integral_constant<statistic, T::measurement>; }; //!< Optional: `measure` is this statistic, which fused kernels compute.
template <class T> concept has_measures_rotated = requires { typename std::bool_constant<T::measures_rotated>; }; //!< Whether `measure` is given the rotated chunk, normalized, or the chunk itself.
template <class T> concept has_measure       = requires(T const r, detail::any_group const& g, float (&x)[128]) {
  { r.measure(g, x, x) } -> std::same_as<float>; };           //!< measure(group, chunk, as many floats of scratch): what is agreed on, not negative, on all threads.
template <class T> concept has_rank_range         = requires(T const r) {
  { r.rank_range(1.0f, 1, 1.0f) } -> std::same_as<float>;  //!< rank_range(agreed scalar, world, coordinates measured): the range of one rank, before `clip`.
  { r.bound(1.0f, 1, 1.0f) } -> std::same_as<float>; }; //!< bound(the same): what no rotated value of any rank exceeds; not finite if a gradient is not.
template <class T> concept has_clip        = requires(T const r) { { r.clip } -> std::convertible_to<float>; }; //!< Where the grid ends, in measured root mean squares or magnitudes.
template <class T> concept has_max_world     = requires { { T::max_world(7) } -> std::same_as<int>; };       //!< max_world(max_level): the most ranks whose codes a lane can sum.
template <class T> concept has_native        = requires { typename std::bool_constant<T::native>; };     //!< Whether transports have it built in: a sum, or what `maximum` says.
template <class T> concept has_associative   = requires { typename std::bool_constant<T::associative>; }; //!< Whether any order of the ranks gives the same bits.
template <class T> concept has_exact         = requires { typename std::bool_constant<T::exact>; };      //!< Whether nothing is rounded or clamped.
template <class T> concept has_enabled       = requires { typename std::bool_constant<T::enabled>; };    //!< Whether the state keeps a float of each coordinate, zero at first; if so, the next two are asked for.
template <class T> concept has_before        = requires(T const f, float v) { { f.before(detail::any_group{}, v, v) } -> std::same_as<float>; };   //!< before(arithmetic of a group, gradient, kept): the value that is encoded.
template <class T> concept has_after         = requires(T const f, float v) { { f.after(detail::any_group{}, v, v, v) } -> std::same_as<float>; }; //!< after(arithmetic, value, what the rank's own codes lost of it, kept): what is kept for the next step.
template <class T> concept has_adds_lost     = requires { requires T::adds_lost; }; //!< Optional, true: `before` is gradient + kept and `after` what was lost; CPU vectors and products of matrices do that.
template <class T> concept has_kept_weight   = requires(T const f, std::uint64_t step, float v) { { f.kept_weight(step, v) } -> std::same_as<float>; };       //!< Optional: kept_weight(exchanges before this one, gain that the caller wrote): what is kept is multiplied by this before `before` and `after` are given it.
template <class T> concept has_ranks_only    = requires { requires T::ranks_only; };  //!< Optional, true: owners of two shots keep nothing.
template <class T> concept has_owners_only   = requires { requires T::owners_only; }; //!< Optional, true: of two shots the owners keep what their encoding lost, and ranks nothing.
template <class T> concept has_stored_residual = requires { typename T::stored_residual; }; //!< Optional: in what the state keeps what is kept: float, as without it, or bfloat16, to which it is rounded at random.
template <class T> concept has_scaled        = requires { typename std::bool_constant<T::scaled>; };     //!< Whether the state keeps a scale of each coordinate, zero at first; if so, the next is asked for.
template <class T> concept has_least         = requires(T const m, float v) { { m.least(detail::any_group{}, v) } -> std::same_as<float>; }; //!< least(arithmetic, largest scale of a chunk): what smaller ones are raised to; above 0, and not above the largest.
template <class T> concept has_update        = requires(T const m, float v) { { m.update(detail::any_group{}, v, v, v) } -> std::same_as<float>; }; //!< Optional: update(arithmetic, decoded mean / scale, scale, steps of training before this one): the scale of the next step. Without it the caller writes scales.
template <class T> concept has_steps_averaged = requires(T const m, float v) { { m.steps_averaged(v) } -> std::same_as<float>; };          //!< Optional, steps_averaged(steps before): `update` is that of `kept_diagonal`, which CPU vectors do.
template <class T> concept has_stored_scale  = requires { typename T::stored_scale; }; //!< Optional: in what the state keeps scales: float, as without it, or bfloat16, to which new scales are rounded at random.
template <class T> concept has_encode        = requires(T const q, float v, std::uint32_t r) { { q.encode(v, v, r) } -> std::integral; }; //!< encode(value, 2^fraction_bits / step, random byte): the code, an integer.
template <class T> concept has_grid          = requires { typename T::grid; T::grid::low; };              //!< Optional: `grid`, the `uniform_grid` to which `encode` rounds; kernels and vectors then round to several codes of a word at once.
template <class T> concept has_ramps         = requires { typename T::ramps; T::ramps::serves; };         //!< Optional: `ramps`, the `lookup_ramps` of the table to whose values `encode` rounds as `lookup_quantizer` does; kernels then go by them.
template <class T> concept has_magnitudes    = requires { typename std::integral_constant<int, T::magnitudes>; };  //!< Number of levels of one sign.
template <class T> concept has_tables        = requires {
  { T::levels() } -> std::convertible_to<float const*>;       //!< The `magnitudes` levels of one sign, in root mean squares of the chunk, ascending.
  { T::boundaries() } -> std::convertible_to<float const*>; }; //!< For each level the least magnitude above its cell; the last is infinite.
template <class T> concept has_levels_of     = requires(T const b, float v, std::uint32_t code) {
  { b.encode(v) } -> std::same_as<std::uint32_t>;             //!< encode(value in root mean squares of the chunk): its code.
  { b.decode(code) } -> std::same_as<float>; };               //!< The level of a code, in the same units.
template <class T> concept has_cells         = requires { typename T::cells; };      //!< Optional, of a codebook whose codes are a sign above the number of a magnitude's cell: `cells`, with cell_of(magnitude) and level_of(number), functions of values.
template <class T> concept has_byte_lines    = requires { typename T::byte_lines; }; //!< Optional: `byte_lines`, the `cell_lines` of a codebook of 8 bits, by which vectors of 16 find cells.
template <class T> concept has_distortion    = requires { { T::distortion() } -> std::convertible_to<float>; }; //!< The mean squared error of normal values over their mean square.
template <class T> concept has_block         = requires { typename std::integral_constant<int, T::block>; };       //!< Coordinates that share a scale.
template <class T> concept has_block_bits    = requires { typename std::integral_constant<int, T::block_bits>; };  //!< Bits on the wire of what each block has of its own, a scale for instance: 8, 16 or 32.
template <class T> concept has_combine       = requires(T const op, typename T::element v) { { op(v, v) } -> std::same_as<typename T::element>; };
template <class T> concept has_combine_at    = requires(T const op, typename T::element v) {
  { op(v, v, std::size_t{}) } -> std::same_as<typename T::element>; //!< op(a, b, index in the array).
  { op.from(std::size_t{}) } -> std::same_as<T>;              //!< The same for the elements from an index on, counted from there.
  op.for_each_part(std::size_t{}, detail::any_visitor{}); };  //!< for_each_part(count, visit): visit(op, begin, end) for stretches in which one operation of two elements does.
template <class T> concept has_factor        = requires(T const h) { { h.factor(1, 1.0f) } -> std::convertible_to<float>; };     //!< factor(world, sqrt(|sum|^2 / energy of one rank) of the last exchange): the range of the sum over one rank's.
template <class T> concept has_tracked       = requires { typename std::bool_constant<T::tracked>; };    //!< Whether `factor` uses its second argument, which the decoder then measures.
//! @}

//! Where rounding randomness comes from: `independent`, `stratified`, `no_dither`. One of no rounds draws nothing.
template <class T> concept dither_source = policy<T> && has_rounds<T> && has_draw<detail::asked<T::rounds != 0, T>>;

//! What a transport must do with two elements on the wire. `native` says whether transports have it built in. A
//! reduction that also takes the element's position is used through `wire::op`, which knows the parts of the payload.
template <class T> concept reduce_op = kernel_value<T> && has_element<T> && has_native<T> && has_associative<T> && has_exact<T>
                                      && (has_combine<T> || has_combine_at<T>);

//! Which coordinates share a step: `fixed_chunks` and the chunkers that choose.
template <class T> concept chunker = policy<T> && has_chunk_size<T>;

//! A chunker that chooses under a budget of bits: `top_chunks`, `allocated_chunks`, `random_chunks`.
template <class T> concept selecting_chunker = chunker<T> && has_by_norm<T> && has_score<T> && has_level_count<T> && has_budget<T> && has_several_bits<T>
                                              && (!T::several_bits || has_widths<T>);

//! The basis of a chunk: `no_rotation`, `partial_hadamard`. One whose `rotation_size` is 0 rotates whole tensors, in stages of its own.
template <class T> concept rotator = policy<T> && has_rotation_size<T> && has_forward<detail::asked<T::rotation_size != 0, T>> && has_backward<detail::asked<T::rotation_size != 0, T>>;

namespace detail {

//! @brief By how much a rotator's `forward` multiplies squared norms.
template <class Rotator> inline constexpr int square_gain = 1;
template <class Rotator> requires(has_square_gain<Rotator>) inline constexpr int square_gain<Rotator> = Rotator::square_gain;

}  // namespace detail

//! How much wider the range of the sum is than that of one rank: `no_headroom`, `fixed_headroom`, `tracked_correlation`.
//! If it has a `check()`, plans pass that status on: for parameters that can be wrong.
template <class T> concept headroom = policy<T> && has_factor<T> && has_tracked<T>;

//! @name Atoms that are policies themselves
//! @{
template <class T> concept has_dither        = requires { requires dither_source<typename T::dither>; };
template <class T> concept has_op            = requires { requires reduce_op<typename T::op>; };
template <class T> concept has_headroom      = requires(T const r) { requires headroom<typename T::headroom_type>; { r.headroom } -> std::convertible_to<typename T::headroom_type>; };
//! @}

//! How the ranks agree on a step: `rms_range`, `absmax_range`, `global_range`.
template <class T> concept quantization_range = policy<T> && has_scalar<T> && has_op<T> && has_headroom<T> && has_clip<T>
                                               && has_measures_rotated<T> && has_measure<T> && has_rank_range<T>;

//! Which code a value gets: `encode(value, 2^fraction_bits / step, random byte)` lies in +-max_level for every float, NaN
//! included. Without NDEBUG `cpu_executor` asserts it where it calls `encode`; with NDEBUG, and in kernels, a code beyond it is cut
//! to the low bits of its lane. tests/conformance/quantizer_conformance.hpp checks it, so call that for one of yours.
template <class T> concept quantizer = policy<T> && has_bits<T> && has_max_level<T> && has_fraction_bits<T> && has_unbiased<T>
                                      && has_dither<T> && has_encode<T>;

//! Which code a value gets, and which value a code, by tables symmetric about zero, which kernels and vectors look up:
//! `lloyd_max`. `allocated_chunks` take no other codebooks.
template <class T> concept table_codebook = policy<T> && has_bits<T> && has_magnitudes<T> && has_unbiased<T> && has_tables<T> && has_distortion<T>;

//! Which code a value gets, and which value a code: for `scaled_codes`, of which values are added instead of codes. The plain form is
//! `encode` and `decode` of an object without data; tables are optional beside it.
template <class T> concept codebook = table_codebook<T> || (policy<T> && std::is_empty_v<T> && has_bits<T> && has_unbiased<T> && has_levels_of<T>);

//! No codes: coordinates travel as `element`, of `bits` bits: `cast`.
template <class T> concept conversion = policy<T> && has_bits<T> && has_element<T>;

//! The same in blocks with numbers of their own, such as scales, which lie behind the codes, for the same codecs. The header of such a
//! quantizer has its kernels: specializations of `detail::chunk_codes` and `detail::part_codes`.
template <class T> concept block_quantizer = policy<T> && has_bits<T> && has_unbiased<T> && has_block<T> && has_block_bits<T> && has_dither<T>;

//! What `two_shot`, `gather`, `shard` and `publish` take, which decode before they add.
template <class T> concept part_quantizer = codebook<T> || block_quantizer<T> || conversion<T>;

//! How packed codes are summed: `saturating_sum`, `widening_sum`, `guard_lanes`.
template <class T> concept reducer = policy<T> && has_lane_bits<T> && has_op<T> && has_max_world<T> && has_biased<T> && has_saturating<T>;

//! What becomes of what a step loses: `no_feedback`, `error_feedback`.
template <class T> concept feedback = policy<T> && has_enabled<T> && has_before<detail::asked<T::enabled, T>> && has_after<detail::asked<T::enabled, T>>;

//! In which units an error counts: `plain_metric`, `given_diagonal` or `kept_diagonal`.
template <class T> concept metric = policy<T> && has_scaled<T> && has_least<detail::asked<T::scaled, T>>;

}  // namespace tersum::inline v0
// clang-format on
