// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cpu_low_rank.hpp.

namespace tersum::inline v0::detail {

//! The type whose members follow.
#define TERSUM_LOW_RANK_TEMPLATE                                                                   \
  template <class LowRank,                                                                         \
            class Wire,                                                                            \
            low_rank_schedule Schedule,                                                            \
            class Feedback,                                                                        \
            class Metric,                                                                          \
            class Element>
#define TERSUM_LOW_RANK_STAGES                                                                     \
  cpu_stages<low_rank_codec<LowRank, Wire, Schedule, Feedback, Metric>, Element>

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::initialize(plan<codec_type> const& plan, std::uint64_t seed) const
{
  *args_.header = first_header(args_, seed, plan.coordinates(), 0, plan.state_fingerprint());
  args_.bypassed.first_gain();
  tensor_record* record = args_.records;
  plan.for_each_record([&](tensor_record const& r) { *record++ = r; });
  matrix_record* matrix = args_.matrices;
  plan.for_each_matrix([&](matrix_record const& m) { *matrix++ = m; });
  plan.state_sections().for_each_cleared([&](std::size_t begin, std::size_t bytes) {
    std::fill_n(reinterpret_cast<std::byte*>(args_.header) + begin, bytes, std::byte{});
  });
  parallel_for(
    threads_, args_.chunks, [&](std::uint64_t i) { refresh(args_.matrices[i], 1, 0, paired); });
}

TERSUM_LOW_RANK_TEMPLATE
template <bool Multiplied>
void TERSUM_LOW_RANK_STAGES::load(std::uint64_t begin, int count, float* to) const
{
  Element const* const from = args_.gradient + begin;
  auto const size           = static_cast<std::size_t>(count);
  if constexpr (has_adds_lost<Feedback> && !weighs_kept<codec_type>) {
    float const above = Multiplied ? 0x1p127f / multiplied_below<Wire> * 2 : 1.0f;
    (void)convert_values(set_, from, to, above, size);
    fused_add(set_, 1 / above, to, args_.residual + begin, count, to);
  } else if constexpr (Feedback::enabled) {
    for (std::size_t i = 0; i < size; ++i) {
      float const value = gradient_of<Multiplied, Wire>(host_group{}, to_float(from[i]));
      to[i]             = args_.feedback.before(host_group{}, value, kept(begin + i));
    }
  } else if constexpr (std::is_same_v<Element, float>) {
    std::copy_n(from, size, to);
  } else {
    (void)convert_values(set_, from, to, 1.0f, size);
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::find_largest_scales() const
{
  std::fill_n(args_.metric.largest, args_.chunks, 0u);
  parallel_for(threads_, args_.row_blocks, [&](std::uint64_t number) {
    auto const first          = [](matrix_record const& m) { return m.first_rows; };
    matrix_record const& m    = matrix_of(number, first);
    std::uint64_t const begin = (number - first(m)) * block;
    std::uint64_t const rows  = minimum<std::uint64_t>(block, m.rows - begin);
    std::uint32_t const bits  = float_bits(
      largest_of(set_, args_.metric.scales + m.offset + begin * m.columns, rows * m.columns));
    std::atomic_ref<std::uint32_t> const all{args_.metric.largest[&m - args_.matrices]};
    std::uint32_t before = all.load(std::memory_order_relaxed);
    while (before < bits && !all.compare_exchange_weak(before, bits, std::memory_order_relaxed)) {}
  });
}

TERSUM_LOW_RANK_TEMPLATE
float TERSUM_LOW_RANK_STAGES::least_scale_of([[maybe_unused]] matrix_record const& m) const
{
  if constexpr (in_metric<codec_type>) {
    float const largest = bits_float(args_.metric.largest[&m - args_.matrices]);
    return least_scale(host_group{}, args_.codec.metric, largest);
  }
  return 1.0f;
}

TERSUM_LOW_RANK_TEMPLATE
float TERSUM_LOW_RANK_STAGES::first_scale_of(matrix_record const& m, int turn) const
{
  if (!is_unknown_scale(bits_float(args_.metric.largest[&m - args_.matrices]))) { return -1.0f; }
  std::uint64_t const length = m.length(turn);
  float const* column        = args_.factor[1] + m.slot[turn];
  double square              = 0;
  for (std::uint32_t k = 0; k < m.rank; ++k, column += length) {
    square = square + dot_product(set_, column, column, length);
  }
  return std::sqrt(static_cast<float>(square) / static_cast<float>(m.rows * m.columns));
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::follow(
  std::uint64_t begin, int count, float const* means, float least, float first) const
{
  float* const scales = args_.metric.scales + begin;
  float const steps   = static_cast<float>(args_.header->step);
  for (int i = 0; i < count; ++i) {
    float next = first;
    if (first < 0) {
      next =
        args_.codec.metric.update(host_group{}, means[i], raised_scale(scales[i], least), steps);
    }
    scales[i] = kept_scale<float>(next, scales[i], 0);
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::load_scaled([[maybe_unused]] float least,
                                         std::uint64_t begin,
                                         int count,
                                         float* to) const
{
  load<true>(begin, count, to);
  if constexpr (in_metric<codec_type>) {
    float const* const scales = args_.metric.scales + begin;
    if (count == block) {
      load_whole(set_, divided<float, float>{to, scales, least}, to, count);
    } else {
      for (int i = 0; i < count; ++i) { to[i] = to[i] / raised_scale(scales[i], least); }
    }
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::keep(std::uint64_t begin,
                                  int count,
                                  float const* whole,
                                  float const* sent) const
{
  float* const residual = args_.residual + begin;
  auto const size       = static_cast<std::size_t>(count);
  if constexpr (has_adds_lost<Feedback>) {
    keep_bounded_residual(set_, whole, sent, residual, size);
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      float const rest =
        args_.feedback.after(host_group{}, whole[i], whole[i] - sent[i], kept(begin + i));
      residual[i] = kept_of_matrix(rest);
    }
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::refresh(matrix_record const& m,
                                     int turn,
                                     std::uint64_t turns,
                                     bool normalize) const
{
  std::uint64_t const length = m.length(turn);
  float* const values        = args_.warm + m.slot[turn];
  cpu_factor factor{set_, values, length, static_cast<int>(m.rank)};
  for (std::uint32_t k = 0; k < m.rank; ++k) {
    int const column = static_cast<int>(k);
    double square    = factor.dot(column, column);
    if (!(square > zero_below)) {
      // A column of zeros would stay so. It starts again from a random direction, the same on all ranks.
      float* const to = values + k * length;
      for (std::uint64_t i = 0; i < length; ++i) {
        std::uint64_t const at  = m.slot[turn] + k * length + i;
        philox_block const draw = philox4x32<7>({{static_cast<std::uint32_t>(at),
                                                  static_cast<std::uint32_t>(at >> 32),
                                                  static_cast<std::uint32_t>(turns),
                                                  0x6c6f7772u}},
                                                args_.header->seed);
        to[i] = static_cast<float>(static_cast<std::int32_t>(draw.word[0])) * 0x1p-31f;
      }
      square = factor.dot(column, column);
    }
    if (normalize && square > zero_below) { factor.scale(column, 1.0 / std::sqrt(square)); }
  }
}

TERSUM_LOW_RANK_TEMPLATE
bool TERSUM_LOW_RANK_STAGES::receive(
  matrix_record const& m, int turn, Wire const* wire, float share, float* factor) const
{
  std::uint64_t const begin = m.slot[turn];
  std::uint64_t const end   = begin + m.rank * m.length(turn);
  bool finite               = true;
  for (std::uint64_t i = begin; i < end; ++i) {
    float const sum = to_float(wire[i]);
    finite          = finite && is_finite(sum);
    factor[i]       = sum * share;
  }
  return finite;
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::orthonormalize() const
{
  if constexpr (paired) {
    orthonormalize_sum();
  } else {
    orthonormalize_warm();
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::orthonormalize_sum() const
{
  parallel_for(threads_, args_.chunks, [&](std::uint64_t i) {
    matrix_record const& m = args_.matrices[i];
    bool const finite      = receive(m, 0, args_.wire[0], 1.0f, args_.factor[0]);
    args_.poisoned[i]      = finite ? 0 : 1;
    float* const values    = args_.factor[0] + m.slot[0];
    if (finite) {
      cpu_factor factor{set_, values, m.rows, static_cast<int>(m.rank)};
      LowRank::orthogonalizer_type::orthogonalize(factor);
    } else {
      raise_flag(args_);
      std::fill_n(values, m.rank * m.rows, 0.0f);
    }
  });
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::orthonormalize_warm() const
{
  int const before = 1 - turn();
  parallel_for(threads_, args_.chunks, [&](std::uint64_t i) {
    matrix_record const& m     = args_.matrices[i];
    std::uint64_t const length = m.length(before);
    float* const values        = args_.factor[0] + m.slot[before];
    std::copy_n(args_.warm + m.slot[before], m.rank * length, values);
    cpu_factor factor{set_, values, length, static_cast<int>(m.rank)};
    LowRank::orthogonalizer_type::orthogonalize(factor);
    args_.poisoned[i] = 0;
  });
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::encode() const
{
  int const now = turn();
  multiply(now, args_.factor[0]);
  if constexpr (paired) { return; }
  std::uint64_t used = 0;
  if (args_.chunks > 0) {
    matrix_record const& last = args_.matrices[args_.chunks - 1];
    used                      = last.slot[now] + last.rank * last.length(now);
  }
  std::fill_n(args_.wire[1] + used, args_.elements - used, Wire{});
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::decode() const
{
  int const now     = turn();
  float const share = 1.0f / static_cast<float>(args_.world);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t i) {
    if (!receive(args_.matrices[i], now, args_.wire[1], share, args_.factor[1])) {
      args_.poisoned[i] = 1;
      raise_flag(args_);
    }
  });
  bool const keeps = !step_is_poisoned(args_);
  parallel_for(threads_, args_.row_blocks, [&](std::uint64_t number) {
    auto const first       = [](matrix_record const& m) { return m.first_rows; };
    matrix_record const& m = matrix_of(number, first);
    reconstruct(m, now, (number - first(m)) * block, keeps);
  });
  if (keeps) {
    parallel_for(
      threads_, args_.chunks, [&](std::uint64_t i) { keep_warm(args_.matrices[i], now); });
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::rebuild(matrix_record const& m,
                                     int turn,
                                     float const* sent,
                                     std::uint64_t begin,
                                     std::uint64_t at,
                                     float* product) const
{
  int const rows     = static_cast<int>(std::min<std::uint64_t>(block, m.rows - begin));
  int const lanes    = static_cast<int>(std::min<std::uint64_t>(block, m.columns - at));
  int const rank     = static_cast<int>(m.rank);
  float const* now   = sent + m.slot[turn];
  float const* other = args_.factor[0] + m.slot[1 - turn];
  float const* left  = m.sends_rows(turn) ? now : other;
  float const* right = m.sends_rows(turn) ? other : now;
  alignas(64) float tile[max_rank * block];
  for (int k = 0; k < rank; ++k) {
    float* const end =
      std::copy_n(right + static_cast<unsigned>(k) * m.columns + at, lanes, tile + k * block);
    std::fill(end, tile + (k + 1) * block, 0.0f);
  }
  std::fill_n(product, rows * block, 0.0f);
  multiply_block(set_, left + begin, 1, m.rows, rows, rank, tile, product);
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::reconstruct(matrix_record const& m,
                                         int turn,
                                         std::uint64_t begin,
                                         bool keeps) const
{
  int const rows      = static_cast<int>(std::min<std::uint64_t>(block, m.rows - begin));
  bool const poisoned = args_.poisoned[&m - args_.matrices] != 0;
  float const least   = least_scale_of(m);
  [[maybe_unused]] float first_scale = 0;
  if constexpr (keeps_metric<codec_type>) { first_scale = keeps ? first_scale_of(m, turn) : 0; }
  alignas(64) float product[block * block];
  alignas(64) float whole[Feedback::enabled ? block : 1];
  for (std::uint64_t at = 0; at < m.columns; at += block) {
    int const lanes = static_cast<int>(std::min<std::uint64_t>(block, m.columns - at));
    if (poisoned) {
      std::fill_n(product, rows * block, std::numeric_limits<float>::quiet_NaN());
    } else {
      rebuild(m, turn, args_.factor[1], begin, at, product);
    }
    for (int row = 0; row < rows; ++row) {
      std::uint64_t const first = m.offset + (begin + static_cast<unsigned>(row)) * m.columns + at;
      Element* const to         = args_.gradient + first;
      float* const mean         = product + row * block;
      if constexpr (Feedback::enabled) {
        if (keeps) { load<false>(first, lanes, whole); }
      }
      if constexpr (in_metric<codec_type>) {
        float const* const scales = args_.metric.scales + first;
        auto const size           = static_cast<std::size_t>(lanes);
        alignas(64) float units[block];
        std::copy_n(mean, lanes, units);
        multiply_by_scales(set_, units, scales, least, mean, size);
        if constexpr (keeps_metric<codec_type>) {
          if (keeps) { follow(first, lanes, units, least, first_scale); }
        }
      }
      for (int i = 0; i < lanes; ++i) { to[i] = finite_from_float<Element>(mean[i]); }
      if constexpr (Feedback::enabled) {
        if (!keeps) { continue; }
        if constexpr (!std::is_same_v<Element, float>) {
          for (int i = 0; i < lanes; ++i) { mean[i] = to_float(to[i]); }
        }
        keep(first, lanes, whole, mean);
      }
    }
  }
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::keep_warm(matrix_record& m, int turn) const
{
  std::copy_n(args_.factor[1] + m.slot[turn], m.rank * m.length(turn), args_.warm + m.slot[turn]);
  ++m.turns;
  refresh(m, turn, m.turns, paired);
}

TERSUM_LOW_RANK_TEMPLATE
auto TERSUM_LOW_RANK_STAGES::bypass_args() const -> exchange_args<floats_in_wire, Element>
{
  exchange_args<floats_in_wire, Element> out{};
  out.gradient = args_.gradient;
  out.header   = args_.header;
  out.records  = args_.records;
  out.bypass   = args_.bypass;
  out.tensors  = args_.tensors;
  out.world    = args_.world;
  return out;
}

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::encode_bypass() const { detail::encode_bypass(bypass_args()); }

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::decode_bypass() const { detail::decode_bypass(bypass_args()); }

TERSUM_LOW_RANK_TEMPLATE
void TERSUM_LOW_RANK_STAGES::multiply(int turn, float const* from) const
{
  parallel_for(threads_, args_.blocks[turn], [&](std::uint64_t number) {
    auto const first       = [turn](matrix_record const& m) { return m.first_block[turn]; };
    matrix_record const& m = matrix_of(number, first);
    float const least      = least_scale_of(m);
    auto const of_matrix   = [&](std::uint64_t begin, int count, float* to) {
      load_scaled(least, m.offset + begin, count, to);
    };
    cpu_product<decltype(of_matrix)> product{set_,
                                             of_matrix,
                                             m.rows,
                                             m.columns,
                                             static_cast<int>(m.rank),
                                             m.sends_rows(turn),
                                             (number - first(m)) * block};
    product.run(
      m.slices(turn), from + m.slot[1 - turn], args_.wire[turn] + m.slot[turn], args_.largest);
  });
}

#undef TERSUM_LOW_RANK_TEMPLATE
#undef TERSUM_LOW_RANK_STAGES

}  // namespace tersum::inline v0::detail
