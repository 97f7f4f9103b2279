// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Launches of one exchange of chunks, with their grids.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Launches the kernels of one exchange, one after the other. After a failure it launches nothing more.
template <class Executor, class Codec, class Element>
class launch_list {
 public:
  using codec_type = Codec;

  launch_list(Executor const& executor,
              tersum::plan<Codec> const& plan,
              exchange_args<Codec, Element> const& args)
    : executor_{executor}, plan_{plan}, args_{args}
  {
  }

  [[nodiscard]] tersum::plan<Codec> const& plan() const { return plan_; }
  [[nodiscard]] exchange_args<Codec, Element> const& args() const { return args_; }

  //! The first failure.
  [[nodiscard]] status result() const { return result_; }

  template <class Kernel>
  void operator()(Kernel const& kernel, std::uint64_t blocks)
  {
    if (result_.ok()) { result_ = executor_.run(kernel, blocks, args_); }
  }

  //! The same as a function object, which returns a status.
  [[nodiscard]] auto each()
  {
    return [this](auto const& kernel, std::uint64_t blocks) {
      (*this)(kernel, blocks);
      return result_;
    };
  }

  //! One thread for each of `count`.
  template <class Kernel>
  void threads(Kernel const& kernel, std::uint64_t count)
  {
    constexpr std::uint64_t a_block = Kernel::template threads<Codec, tuning_of<Executor>>;
    (*this)(kernel, (count + a_block - 1) / a_block);
  }

  //! Launches Kernel<false> for the regular chunks and Kernel<true> for the edges, each over the chunks that may be such.
  template <template <bool> class Kernel>
  void chunks(std::uint64_t a_block = grid_of<Codec>.chunks_a_block)
  {
    auto const from = [&]<bool Edge>(Kernel<Edge> kernel, std::uint64_t first, std::uint64_t end) {
      kernel.first = first;
      (*this)(kernel, (end - first + a_block - 1) / a_block);
    };
    std::uint64_t const all = plan_.chunks();
    if constexpr (Codec::rotates_all) {
      from(Kernel<false>{}, 0, all);
    } else {
      // In a gradient that is one vector only the last chunk can be short. In a bucket, tensors begin and end anywhere.
      bool const aligned        = reinterpret_cast<std::uintptr_t>(args_.gradient) % 16 == 0;
      bool const one            = plan_.gradient().tensors.empty();
      std::uint64_t const whole = plan_.coordinates() / Codec::chunk_size;
      if (!one || aligned) { from(Kernel<false>{}, 0, one ? whole : all); }
      from(Kernel<true>{}, one && aligned ? whole - whole % a_block : 0, all);
    }
  }

  //! Launches a kernel over as many chunks as a rank may own.
  template <class Kernel>
  void owned(Kernel const& kernel)
  {
    constexpr std::uint64_t a_block = grid_of<Codec>.chunks_a_block;
    (*this)(kernel, (plan_.owned_chunks() + a_block - 1) / a_block);
  }

  void norms() { chunks<norms_kernel>(norms_grid<Codec, Element>.chunks_a_block); }

  void bypass(auto const& kernel)
  {
    if (plan_.bypassed() > 0) { (*this)(kernel, plan_.tensors()); }
  }

  template <bool Encode>
  void cast()
  {
    std::uint64_t blocks = plan_.chunks();
    if constexpr (selects<Codec>) { blocks = selected_blocks<Codec>(blocks, numbers); }
    (*this)(cast_kernel<Encode>{}, blocks);
  }

  //! Sets `count` elements to zero.
  template <class T>
  void clear(T* to, std::uint64_t count)
  {
    if (result_.ok()) { result_ = executor_.clear(to, count); }
  }

  template <class T>
  void copy(T* to, T const* from, std::uint64_t count)
  {
    if (result_.ok()) { result_ = executor_.copy(to, from, count); }
  }

  //! Selects chunks: in one launch for all phases by a single block, or in one launch for each phase by several.
  void select(std::uint64_t blocks)
  {
    if (blocks == 0) { return; }
    auto& histogram = args_.selection.scratch->histogram;
    clear(&histogram[0][0], sizeof(histogram) / sizeof(histogram[0][0]));
    each_select_launch(blocks, [&](int first, int last) {
      (*this)(select_kernel{{}, first, last}, blocks);
    });
  }

  void select() { select(select_blocks(plan_.chunks(), numbers)); }

  void encode_parts()
  {
    if (plan_.payload_bytes() == 0) { return; }
    std::uint64_t const words = plan_.payload_bytes() / sizeof(std::uint32_t);
    if constexpr (requantizing<Codec> && !tiling<Codec>) {
      // The last block may have chunks to spare.
      constexpr std::uint64_t block = Codec::payload_op::element::words;
      clear(args_.payload + words - block, block);
    } else {
      auto parts = static_cast<std::uint64_t>(plan_.ranks().size);
      if constexpr (requantizing<Codec>) { parts = plan_.tiles(); }
      (*this)(clear_parts_kernel{{}, args_.payload, 0}, parts);
    }
    chunks<encode_parts_kernel>();
    if constexpr (sharding<Codec>) {
      (*this)(share_cut_kernel{}, static_cast<std::uint64_t>(plan_.ranks().size));
      if constexpr (feeds_back<Codec>) { chunks<keep_residual_kernel>(); }
    }
  }

  void decode_parts()
  {
    threads(inspect_parts_kernel{}, plan_.chunks());
    if constexpr (feeds_back<Codec>) { chunks<keep_residual_kernel>(); }
    if constexpr (owner_feeds_back<Codec>) { owned(keep_owner_residual_kernel{}); }
    chunks<decode_parts_kernel>();
  }

 private:
  static constexpr cuda_tuning numbers = tuning_of<Executor>.cuda;

  Executor const& executor_;
  tersum::plan<Codec> const& plan_;
  exchange_args<Codec, Element> const& args_;
  status result_{};
};

template <class T>
inline constexpr bool is_launch_list = false;
template <class Executor, class Codec, class Element>
inline constexpr bool is_launch_list<launch_list<Executor, Codec, Element>> = true;

template <class T>
concept launching = is_launch_list<T>;

}  // namespace tersum::inline v0::detail
