// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The caller's memory as a list of named sections, from which sizes, offsets and pointers follow.

#pragma once

#include <tersum/description.hpp>
#include <tersum/detail/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief What a section is called: the hash of its name, FNV-1a. Who takes a section names it; two of one plan differ.
struct section {
  std::uint64_t hash = 0xcbf29ce484222325u;

  constexpr section() = default;
  consteval section(char const* name) noexcept : hash(named(name)) {}
  friend constexpr bool operator==(section, section) noexcept = default;
};

//! What kernels are given of a policy that has no arguments.
struct nothing {};

//! One section: an array, or another name for a section that is listed before it.
struct section_entry {
  section name;
  section place;  //!< The section in whose place it lies: itself, or the other one.
  std::size_t begin   = 0;
  std::uint64_t bytes = 0;
  std::size_t element = 0;      //!< Bytes of what it is an array of.
  bool cleared        = false;  //!< `initialize` makes it zeros.
  std::uint64_t owner = 0;      //!< Which rank of which world it is of; 0: any.
};

//! @brief Sections in the order of memory, one after the other, each at a multiple of 16 bytes. Policies take what they need of it, and
//! get a pointer if there is memory, which is not listed; without, sections are only listed and counted.
class section_list {
 public:
  static constexpr std::size_t alignment = 16;

  constexpr section_list() noexcept : entries_{}, lists_{true} {}
  explicit section_list(std::span<std::byte> memory) noexcept : none_{}, memory_{memory.data()} {}

  //! An array of so many bytes, which may end within an element.
  template <class T>
  constexpr T* take_bytes(section name, std::uint64_t bytes, bool cleared = false) noexcept
  {
    std::size_t const begin = round_up(end_, alignment);
    if (lists_) { entries_[size_++] = {name, name, begin, bytes, sizeof(T), cleared}; }
    end_ = begin + bytes;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + begin);
  }
  template <class T>
  constexpr T* take(section name, std::uint64_t count) noexcept
  {
    return take_bytes<T>(name, count * sizeof(T));
  }
  //! The same, which `initialize` fills with zeros.
  template <class T>
  constexpr T* keep(section name, std::uint64_t count) noexcept
  {
    return take_bytes<T>(name, count * sizeof(T), true);
  }
  //! Another name for a section, which is not needed any more or not at the same time.
  constexpr void share(section other, section name) noexcept
  {
    if (lists_) { entries_[size_++] = {name, other, offset(other), 0, 0, false}; }
  }

  //! The section that was taken last is of what no other rank has.
  constexpr void own_last(std::uint64_t owner) noexcept
  {
    if (lists_) { entries_[size_ - 1].owner = owner; }
  }

  [[nodiscard]] constexpr std::span<section_entry const> entries() const noexcept
  {
    return {entries_, size_};
  }
  //! The first byte of a section; 0 for one that is not listed, which has no bytes.
  [[nodiscard]] constexpr std::size_t offset(section name) const noexcept
  {
    for (section_entry const& e : entries()) {
      if (e.name == name) { return e.begin; }
    }
    return 0;
  }
  //! Bytes of all sections and of the gaps between them.
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return end_; }

  //! Calls visit(offset, bytes) for what `initialize` fills with zeros, with the gaps behind it.
  template <class Visitor>
  constexpr void for_each_cleared(Visitor visit) const
  {
    for (std::size_t i = 0; i < size_; ++i) {
      std::size_t const begin = entries_[i].begin;
      std::size_t const end   = i + 1 < size_ ? entries_[i + 1].begin : end_;
      if (entries_[i].cleared && begin < end) { visit(begin, end - begin); }
    }
  }

  //! Names, elements, sizes, begins and owners.
  constexpr description describe() const
  {
    description all{"sections"};
    for (section_entry const& e : entries()) {
      all = {"section", all, e.name.hash, e.place.hash, e.element, e.bytes, e.begin};
      if (e.bytes > 0) { all = {"owner", all, e.owner}; }
    }
    return all;
  }

 private:
  union {
    section_entry entries_[12];
    nothing none_;
  };
  std::byte* memory_ = nullptr;
  bool lists_        = false;
  std::size_t size_  = 0;
  std::size_t end_   = 0;
};

}  // namespace tersum::inline v0::detail
