// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums and copies on a CUDA device: definitions of cuda_executor.cuh.

namespace tersum::inline v0 {

template <tuning_holder... Of>
template <reduce_op Op>
status basic_cuda_executor<Of...>::reduce([[maybe_unused]] Op const& op,
                                          typename Op::element* to,
                                          typename Op::element const* a,
                                          typename Op::element const* b,
                                          std::size_t count) const
{
  using element = typename Op::element;
  if constexpr (requantizing<Op>) {
    return requantize_array(*this, detail::array_operands<Op>{to, a, b, count});
  } else if constexpr (has_combine_at<Op>) {
    constexpr std::size_t a_block = tuned.cuda.reduce_threads * 4;
    return launch(detail::reduce_segments_kernel<Op, Of...>,
                  (count + a_block - 1) / a_block,
                  tuned.cuda.reduce_threads,
                  0,
                  op,
                  to,
                  a,
                  b,
                  count);
  } else {
    using vector = detail::element_vector<element>;
    auto const misplace =
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(a) |
       reinterpret_cast<std::uintptr_t>(b)) %
      16;
    std::size_t const vectors   = misplace == 0 ? count / vector::count : 0;
    std::size_t const done      = vectors * vector::count;
    constexpr std::size_t block = tuned.cuda.reduce_threads * tuned.cuda.reduce_vectors;
    if (auto const s = launch(detail::reduce_vectors_kernel<Op, Of...>,
                              (vectors + block - 1) / block,
                              tuned.cuda.reduce_threads,
                              0,
                              reinterpret_cast<vector*>(to),
                              reinterpret_cast<vector const*>(a),
                              reinterpret_cast<vector const*>(b),
                              vectors);
        !s.ok()) {
      return s;
    }
    return launch(detail::reduce_elements_kernel<Op, Of...>,
                  (count - done + tuned.cuda.reduce_threads - 1) / tuned.cuda.reduce_threads,
                  tuned.cuda.reduce_threads,
                  0,
                  to + done,
                  a + done,
                  b + done,
                  count - done);
  }
}

template <tuning_holder... Of>
template <class Item>
status basic_cuda_executor<Of...>::each(Item const& item, std::size_t count) const
{
  return launch(detail::item_kernel<Item, Of...>,
                (count + tuned.cuda.item_threads - 1) / tuned.cuda.item_threads,
                tuned.cuda.item_threads,
                0,
                item,
                count);
}

template <tuning_holder... Of>
template <class T>
status basic_cuda_executor<Of...>::copy(T* to, T const* from, std::size_t count) const
{
  if (count == 0) { return {}; }
  return detail::cuda_status(
    cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream));
}

template <tuning_holder... Of>
template <class T>
status basic_cuda_executor<Of...>::clear(T* to, std::size_t count) const
{
  if (count == 0) { return {}; }
  return detail::cuda_status(cudaMemsetAsync(to, 0, count * sizeof(T), stream));
}

}  // namespace tersum::inline v0
