// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The levels of `lloyd_max`. Part of the wire format.

#pragma once

#include <tersum/config.hpp>
#include <tersum/description.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0::detail {

//! @brief The positive levels for 1, 2 ... 8 bits, in root mean squares: those of q bits begin at 2^(q-1) - 1.
//!
//! Every level is the mean of its cell of a normal distribution, whose ends lie midway between levels: Newton's method on
//! Lloyd's conditions in double precision, rounded to float. For 2, 3 and 4 bits it is the float nearest to that whose lowest
//! bits are the level's number, so that kernels take both from one register. A test holds the conditions.
//! Source of the conditions: Lloyd, Least squares quantization in PCM; Max, Quantizing for minimum distortion.
// clang-format off
inline constexpr float lloyd_max_levels[255] = {
  // 1 bit
  .7978846f,
  // 2 bits
  .45278f, 1.5104176f,
  // 3 bits
  .24509418f, .75600535f, 1.343909f, 2.1519458f,
  // 4 bits
  .12839508f, .3880482f, .6567589f, .94234055f, 1.2562308f, 1.6180464f, 2.069017f, 2.7325895f,
  // 5 bits
  .06588966f, .19805183f, .3313783f, .4666995f, .6049336f, .7471357f, .8945651f, 1.0487833f,
  1.2118044f, 1.3863404f, 1.576228f, 1.7872332f, 2.0287285f, 2.3177395f, 2.6911197f, 3.2607324f,
  // 6 bits
  .033409506f, .10027829f, .1672969f, .23456699f, .30219284f, .37028265f, .43894967f, .5083138f,
  .578503f, .6496556f, .7219219f, .7954677f, .8704766f, .94715494f, 1.0257363f, 1.1064882f,
  1.1897202f, 1.2757945f, 1.365141f, 1.4582764f, 1.5558312f, 1.6585889f, 1.7675419f, 1.8839773f,
  2.0096111f, 2.1468103f, 2.2989812f, 2.471305f, 2.6722739f, 2.9174068f, 3.240437f, 3.7441013f,
  // 7 bits
  .01682817f, .050490864f, .08417264f, .11788628f, .15164465f, .18546072f, .21934764f, .25331873f,
  .28738755f, .32156795f, .35587403f, .3903203f, .42492166f, .45969343f, .49465147f, .5298122f,
  .56519264f, .6008105f, .6366843f, .6728333f, .70927787f, .74603915f, .78313965f, .82060295f,
  .8584542f, .89671993f, .9354285f, .97461f, 1.0142967f, 1.0545232f, 1.0953267f, 1.1367474f,
  1.1788286f, 1.2216175f, 1.2651651f, 1.3095276f, 1.3547662f, 1.4009485f, 1.448149f, 1.49645f,
  1.5459437f, 1.5967331f, 1.6489339f, 1.702677f, 1.7581115f, 1.8154078f, 1.8747625f, 1.9364046f,
  2.0006018f, 2.0676715f, 2.1379933f, 2.2120275f, 2.2903392f, 2.3736343f, 2.4628115f, 2.5590405f,
  2.6638865f, 2.7795143f, 2.9090471f, 3.0572462f, 3.231933f, 3.4474304f, 3.7349367f, 4.189694f,
  // 8 bits
  .008446193f, .025339384f, .042234983f, .059134603f, .07603986f, .092952356f, .10987372f,
  .12680559f, .14374956f, .16070732f, .17768049f, .19467075f, .21167976f, .2287092f, .24576078f,
  .26283622f, .27993724f, .2970656f, .31422305f, .3314114f, .34863243f, .365888f, .38317996f,
  .40051022f, .41788065f, .4352932f, .45274988f, .47025266f, .4878036f, .5054048f, .5230583f,
  .5407663f, .55853105f, .5763547f, .5942396f, .6121881f, .6302026f, .6482855f, .6664394f,
  .68466675f, .70297027f, .72135264f, .7398166f, .75836504f, .77700084f, .795727f, .8145467f,
  .833463f, .8524793f, .8715989f, .8908253f, .91016203f, .92961293f, .9491818f, .9688726f,
  .98868936f, 1.0086365f, 1.0287182f, 1.0489392f, 1.0693042f, 1.0898181f, 1.110486f, 1.1313132f,
  1.1523054f, 1.1734682f, 1.1948076f, 1.2163299f, 1.2380418f, 1.2599499f, 1.2820615f, 1.304384f,
  1.3269253f, 1.3496937f, 1.3726976f, 1.3959464f, 1.4194493f, 1.4432166f, 1.4672587f, 1.491587f,
  1.5162132f, 1.5411496f, 1.5664098f, 1.5920075f, 1.6179578f, 1.6442765f, 1.6709803f, 1.6980875f,
  1.7256169f, 1.7535894f, 1.7820269f, 1.8109531f, 1.8403933f, 1.8703752f, 1.900928f, 1.9320842f,
  1.9638784f, 1.9963485f, 2.0295358f, 2.0634851f, 2.0982466f, 2.1338742f, 2.1704283f, 2.2079754f,
  2.24659f, 2.2863545f, 2.3273618f, 2.3697171f, 2.4135387f, 2.4589622f, 2.5061426f, 2.5552595f,
  2.6065214f, 2.660174f, 2.7165077f, 2.7758706f, 2.8386858f, 2.905473f, 2.9768822f, 3.053742f,
  3.1371326f, 3.2285001f, 3.3298485f, 3.4440718f, 3.575588f, 3.7316663f, 3.9256377f, 4.1865954f,
  4.6035357f};
// clang-format on

//! @brief Levels for normal values on three lines: number n lies at x = n `step` and is the largest of x, 2 x - 1.71875 and
//! 8 x - 16.15625 root mean squares. It takes no table.
//!
//! The best levels of many bits are exp(x^2 / 6) as far apart at x root mean squares as at zero, and lose 2.72 / 4^Bits (Panter and
//! Dite, Quantization distortion in pulse-count modulation with nonuniform spacing of levels, 1951). Here the distances are `step` up
//! to 1.72, twice that up to 3.09 and eight times that up to 5.84, and the loss is 3.47 / 4^Bits. Levels at equal distances up
//! to 5.84 would lose 11.4 / 4^Bits.
//!
//! A number is what lies above 1.5 2^23 in the bits of a float, a *place*. All that a level is made of is exact.
template <int Bits>
struct level_lines {
  static constexpr int count                 = 1 << (Bits - 1);  //!< Levels of one sign.
  static constexpr float step                = 2.75f / count;
  static constexpr float inverse             = count / 2.75f;
  static constexpr float lift                = 12582912.0f;  //!< 1.5 2^23.
  static constexpr std::uint32_t first_place = 0x4b400000u;
  static constexpr std::uint32_t last_place  = first_place + count - 1;
  constexpr description describe() const { return {"level_lines", step, below_2, below_8}; }

  //! @name Where the second and the third line begin: their level at x = 0, below zero, and the number at which it would be zero
  //! @{
  static constexpr float below_2 = 1.71875f;
  static constexpr float below_8 = 16.15625f;
  static constexpr int start_2   = count / 16 * 5;
  static constexpr int start_8   = count / 64 * 47;
  //! @}

  //! @brief The number of a magnitude's level, the nearest on its line.
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static words_of<Value> cell_of(Value const& magnitude)
  {
    auto const one   = from_bits(rounded_bits<0>(magnitude, inverse));
    auto const two   = from_bits(rounded_bits<start_2>(magnitude, inverse / 2));
    auto const eight = from_bits(rounded_bits<start_8>(magnitude, inverse / 8));
    return to_bits(
             smaller_size(smaller_size(one, two), smaller_size(eight, bits_float(last_place)))) -
           first_place;
  }

  //! @brief The level of a number.
  TERSUM_OF_VALUES
  template <class Words>
  [[nodiscard]] TERSUM_INLINE static auto level_of(Words const& cell)
  {
    auto const x     = (from_bits(cell + first_place) - lift) * step;
    auto const two   = x * 2.0f - below_2;
    auto const eight = x * 8.0f - below_8;
    return larger_size(larger_size(x, two), eight);
  }

  //! @brief The mean squared error of normal values over their mean square: between levels, and beyond the last one.
  [[nodiscard]] static constexpr float distortion() noexcept
  {
    constexpr auto levels = static_cast<float>(count);
    return .8665f / (levels * levels) + 2.64e-10f;
  }
};

}  // namespace tersum::inline v0::detail
