// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of zstd.hpp.

namespace tersum::inline v0 {

namespace detail {

//! Messages of fewer bytes travel as they are, without their length.
inline constexpr std::size_t least_compressed = 64;

}  // namespace detail

template <transport Over>
zstd_transport<Over>::zstd_transport(Over const& over, int level) noexcept
  : over_(&over), level_(level), compressor_(ZSTD_createCCtx()), decompressor_(ZSTD_createDCtx())
{
}

template <transport Over>
status zstd_transport<Over>::check() const noexcept
{
  if (!compressor_ || !decompressor_) {
    return {error_code::transport_failed, "Zstandard has no memory for its contexts"};
  }
  if (level_ < ZSTD_minCLevel() || level_ > ZSTD_maxCLevel()) {
    return {error_code::invalid_argument, "level is none of Zstandard's: 1 to 19 are usual"};
  }
  return over_->check();
}

template <transport Over>
typename zstd_transport<Over>::message zstd_transport<Over>::compress(
  std::byte const* data, std::size_t bytes, std::vector<std::byte>& room) const
{
  if (bytes < detail::least_compressed) { return {data, bytes}; }
  // What does not become smaller is not worth more room.
  if (room.size() < bytes) { room.resize(bytes); }
  std::size_t const made =
    ZSTD_compressCCtx(compressor_.get(), room.data(), bytes - 1, data, bytes, level_);
  if (ZSTD_isError(made) != 0) { return {data, bytes}; }
  return {room.data(), made};
}

template <transport Over>
status zstd_transport<Over>::exchange(int to,
                                      message const& sent,
                                      int from,
                                      std::uint64_t arriving,
                                      std::byte* received,
                                      std::size_t received_bytes) const
{
  if (arriving > received_bytes || (arriving == 0) != (received_bytes == 0)) {
    return {
      error_code::transport_failed,
      "a message of another rank is longer than what it stands for: do all ranks use zstd_transport?"};
  }
  bool const as_it_is = arriving == received_bytes;
  if (!as_it_is && arrived_.size() < arriving) { arrived_.resize(arriving); }
  std::byte* const into = as_it_is ? received : arrived_.data();
  sent_ += sent.bytes;
  if (status const s = over_->send_receive(to, sent.data, sent.bytes, from, into, arriving);
      !s.ok()) {
    return s;
  }
  if (as_it_is) { return {}; }
  std::size_t const made =
    ZSTD_decompressDCtx(decompressor_.get(), received, received_bytes, into, arriving);
  if (made == received_bytes) { return {}; }
  return {error_code::transport_failed, "a message of another rank is not what Zstandard made"};
}

template <transport Over>
status zstd_transport<Over>::send_receive(int to,
                                          std::byte const* sent,
                                          std::size_t sent_bytes,
                                          int from,
                                          std::byte* received,
                                          std::size_t received_bytes) const
{
  if (status const s = check(); !s.ok()) { return s; }
  rooms_.resize(static_cast<std::size_t>(size()));
  message const out       = compress(sent, sent_bytes, rooms_[0]);
  std::uint64_t arriving  = received_bytes;
  std::size_t const told  = sent_bytes < detail::least_compressed ? 0 : sizeof out.bytes;
  std::size_t const heard = received_bytes < detail::least_compressed ? 0 : sizeof arriving;
  given_ += sent_bytes;
  sent_ += told;
  if (status const s = over_->send_receive(to,
                                           reinterpret_cast<std::byte const*>(&out.bytes),
                                           told,
                                           from,
                                           reinterpret_cast<std::byte*>(&arriving),
                                           heard);
      !s.ok()) {
    return s;
  }
  return exchange(to, out, from, arriving, received, received_bytes);
}

template <transport Over>
status zstd_transport<Over>::all_to_all(std::byte const* data,
                                        rank_blocks const& blocks,
                                        std::byte* received) const
{
  if (status const s = check(); !s.ok()) { return s; }
  int const n             = size();
  int const me            = rank();
  auto const ranks        = static_cast<std::size_t>(n);
  std::size_t const bytes = blocks.bytes(me);
  rooms_.resize(ranks);
  messages_.resize(ranks);
  lengths_.assign(ranks, 0);
  lengths_of_others_.assign(ranks, 0);
  for (int to = 0; to < n; ++to) {
    if (to == me) { continue; }
    auto const k = static_cast<std::size_t>(to);
    messages_[k] = compress(data + blocks.begin_byte(to), blocks.bytes(to), rooms_[k]);
    lengths_[k]  = messages_[k].bytes;
    given_ += blocks.bytes(to);
  }
  rank_blocks const words{.count = ranks, .element_bytes = sizeof(std::uint64_t), .ranks = n};
  sent_ += sizeof(std::uint64_t) * (ranks - 1);
  if (status const s = over_->all_to_all(reinterpret_cast<std::byte const*>(lengths_.data()),
                                         words,
                                         reinterpret_cast<std::byte*>(lengths_of_others_.data()));
      !s.ok()) {
    return s;
  }
  if (bytes > 0) {
    std::memcpy(
      received + static_cast<std::size_t>(me) * bytes, data + blocks.begin_byte(me), bytes);
  }
  for (int hop = 1; hop < n; ++hop) {
    int const to   = (me + hop) % n;
    int const from = (me - hop + n) % n;
    auto const k   = static_cast<std::size_t>(from);
    status const s = exchange(to,
                              messages_[static_cast<std::size_t>(to)],
                              from,
                              lengths_of_others_[k],
                              received + k * bytes,
                              bytes);
    if (!s.ok()) { return s; }
  }
  return {};
}

template <transport Over>
status zstd_transport<Over>::all_gather(std::byte* data, rank_blocks const& blocks) const
{
  if (status const s = check(); !s.ok()) { return s; }
  int const n      = size();
  int const me     = rank();
  auto const ranks = static_cast<std::size_t>(n);
  rooms_.resize(ranks);
  lengths_of_others_.assign(ranks, 0);
  message const own = compress(data + blocks.begin_byte(me), blocks.bytes(me), rooms_[0]);
  lengths_of_others_[static_cast<std::size_t>(me)] = own.bytes;
  rank_blocks const words{.count = ranks, .element_bytes = sizeof(std::uint64_t), .ranks = n};
  given_ += blocks.bytes(me) * (ranks - 1);
  sent_ += sizeof(std::uint64_t) * (ranks - 1);
  if (status const s =
        over_->all_gather(reinterpret_cast<std::byte*>(lengths_of_others_.data()), words);
      !s.ok()) {
    return s;
  }
  for (int hop = 1; hop < n; ++hop) {
    int const from = (me - hop + n) % n;
    status const s = exchange((me + hop) % n,
                              own,
                              from,
                              lengths_of_others_[static_cast<std::size_t>(from)],
                              data + blocks.begin_byte(from),
                              blocks.bytes(from));
    if (!s.ok()) { return s; }
  }
  return {};
}

}  // namespace tersum::inline v0
