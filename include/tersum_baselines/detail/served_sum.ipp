// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of served_sum.hpp.

namespace tersum::inline v0 {

template <class Executor, looking_up Codec>
status pack_indices(Executor const& exec,
                    plan<Codec> const& plan,
                    std::span<std::byte const> workspace,
                    std::span<std::byte> indices)
{
  using item = detail::pack_item<lookup_sum_of<Codec>>;
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  if (status const s =
        detail::check_memory(workspace, plan.workspace_bytes(), detail::of_workspace);
      !s.ok()) {
    return s;
  }
  if (status const s = detail::check_memory(indices,
                                            index_bytes(plan),
                                            {"indices is smaller than index_bytes(plan)",
                                             "indices is a null pointer",
                                             "indices is not aligned to 16 bytes"});
      !s.ok()) {
    return s;
  }
  if (plan.chunks() == 0) { return {}; }
  auto const* const codes = workspace.data() + plan.offset("payload");
  return exec.each(item{.codes   = reinterpret_cast<word4 const*>(codes),
                        .indices = reinterpret_cast<word4*>(indices.data())},
                   index_bytes(plan) / sizeof(word4));
}

template <class Executor, looking_up Codec>
status unpack_sums(Executor const& exec,
                   plan<Codec> const& plan,
                   std::span<std::byte> workspace,
                   std::span<std::byte const> sums,
                   std::span<std::uint16_t const> arrived)
{
  using item = detail::unpack_item<lookup_sum_of<Codec>, Codec::chunk_size>;
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (status const s = exec.check(); !s.ok()) { return s; }
  if (status const s =
        detail::check_memory(workspace, plan.workspace_bytes(), detail::of_workspace);
      !s.ok()) {
    return s;
  }
  if (status const s = detail::check_memory(sums,
                                            plan.payload_bytes(),
                                            {"sums is smaller than plan.payload_bytes()",
                                             "sums is a null pointer",
                                             "sums is not aligned to 16 bytes"});
      !s.ok()) {
    return s;
  }
  if (arrived.size() != plan.chunks()) {
    return {error_code::invalid_argument, "arrived.size() differs from plan.chunks()"};
  }
  if (plan.chunks() == 0) { return {}; }
  if (arrived.data() == nullptr) {
    return {error_code::invalid_argument, "arrived is a null pointer"};
  }
  return exec.each(
    item{.sums    = reinterpret_cast<word4 const*>(sums.data()),
         .codes   = reinterpret_cast<word4*>(workspace.data() + plan.offset("payload")),
         .steps   = reinterpret_cast<chunk_step*>(workspace.data()),
         .arrived = arrived.data(),
         .world   = plan.ranks().size},
    plan.payload_bytes() / sizeof(word4));
}

}  // namespace tersum::inline v0
