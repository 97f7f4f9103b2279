// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Loads, stores, atomic updates, and addresses.

#include "operations.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace tersum::simulator {

namespace {

// d, [a] of up to four elements at once.
template <class T>
void load(warp& w, instruction const& i, lane_set active)
{
  unsigned const count            = i.what->count;
  std::uint64_t const* const base = w.lanes(i.slots[count]);
  for_lanes(active, [&](unsigned l) {
    std::uint64_t const address = base[l] + static_cast<std::uint64_t>(i.offset);
    std::byte const* const from = w.reach(i, l, address, count * sizeof(T), access::read);
    for (unsigned k = 0; k < count; ++k) {
      T element;
      std::memcpy(&element, from + k * sizeof(T), sizeof(T));
      w.lanes(i.slots[k])[l] = static_cast<std::uint64_t>(element);
    }
  });
}

template <class T>
void store(warp& w, instruction const& i, lane_set active)
{
  unsigned const count            = i.what->count;
  std::uint64_t const* const base = w.lanes(i.slots[0]);
  for_lanes(active, [&](unsigned l) {
    std::uint64_t const address = base[l] + static_cast<std::uint64_t>(i.offset);
    std::byte* const to         = w.reach(i, l, address, count * sizeof(T), access::write);
    for (unsigned k = 0; k < count; ++k) {
      auto const element = static_cast<T>(w.lanes(i.slots[1 + k])[l]);
      std::memcpy(to + k * sizeof(T), &element, sizeof(T));
    }
  });
}

// Threads of the host may run kernels at the same time.
template <auto Function, class T, bool Returns>
void update(warp& w, instruction const& i, lane_set active)
{
  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t const* const base  = w.lanes(i.slots[Returns ? 1 : 0]);
  std::uint64_t const* const value = w.lanes(i.slots[Returns ? 2 : 1]);
  for_lanes(active, [&](unsigned l) {
    std::uint64_t const address = base[l] + static_cast<std::uint64_t>(i.offset);
    std::byte* const to         = w.reach(i, l, address, sizeof(T), access::update);
    std::atomic_ref<word> const target{*reinterpret_cast<word*>(to)};
    word old = target.load();
    while (!target.compare_exchange_weak(
      old, static_cast<word>(bits_of<T>(Function(value_of<T>(old), value_of<T>(value[l])))))) {}
    if (Returns) { w.lanes(i.slots[0])[l] = old; }
  });
}

template <class T>
void compare_and_swap(warp& w, instruction const& i, lane_set active)
{
  for_lanes(active, [&](unsigned l) {
    std::uint64_t const address = w.lanes(i.slots[1])[l] + static_cast<std::uint64_t>(i.offset);
    std::byte* const to         = w.reach(i, l, address, sizeof(T), access::update);
    auto expected               = static_cast<T>(w.lanes(i.slots[2])[l]);
    std::atomic_ref<T>{*reinterpret_cast<T*>(to)}.compare_exchange_strong(
      expected, static_cast<T>(w.lanes(i.slots[3])[l]));
    w.lanes(i.slots[0])[l] = expected;
  });
}

// [to], [from], bytes
void copy_out(warp& w, instruction const& i, lane_set active)
{
  for_lanes(active, [&](unsigned l) {
    w.copy_out(l, w.lanes(i.slots[0])[l], w.lanes(i.slots[1])[l], w.lanes(i.slots[2])[l]);
  });
}

void commit_copies(warp& w, instruction const&, lane_set active) { w.commit_copies(active); }

// How many groups may go on.
void end_copies(warp& w, instruction const& i, lane_set active)
{
  for_lanes(active, [&](unsigned l) { w.end_copies(l, w.lanes(i.slots[0])[l]); });
}

void show_shared(warp& w, instruction const&, lane_set active) { w.show_shared(active); }

template <std::uint64_t Window, int Sign>
std::uint64_t moved(std::uint64_t address)
{
  return address + static_cast<std::uint64_t>(Sign) * Window;
}

struct named_space {
  char const* name;
  space where;
};
// Constants are in device memory.
constexpr named_space spaces[] = {{"", space::generic},
                                  {".global", space::global},
                                  {".const", space::global},
                                  {".shared", space::shared},
                                  {".local", space::local},
                                  {".param", space::param}};

template <class T>
void add_accesses(operation_table& t, std::string const& type)
{
  for (auto const& [name, where] : spaces) {
    for (auto const count : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{4}}) {
      if (count * sizeof(T) > 16) { continue; }
      std::string const rest =
        name + (count == 1 ? std::string{} : ".v" + std::to_string(count)) + "." + type;
      auto const one = count == 1;
      t["ld" + rest] = {.run   = &load<T>,
                        .form  = one ? "da" : "Da",
                        .where = where,
                        .count = count,
                        .bytes = sizeof(T)};
      t["st" + rest] = {.run   = &store<T>,
                        .form  = one ? "as" : "aS",
                        .where = where,
                        .count = count,
                        .bytes = sizeof(T)};
    }
  }
}

template <auto Function, class T>
void add_update(operation_table& t, std::string const& name)
{
  for (auto const& [in, where] : spaces) {
    if (where > space::shared) { continue; }
    t[std::string{"atom"} + in + name] = {
      .run = &update<Function, T, true>, .form = "das", .where = where, .bytes = sizeof(T)};
    t[std::string{"red"} + in + name] = {
      .run = &update<Function, T, false>, .form = "as", .where = where, .bytes = sizeof(T)};
  }
}

template <class T>
void add_updates(operation_table& t, std::string const& type)
{
  add_update<[](T a, T b) { return static_cast<T>(a + b); }, T>(t, ".add." + type);
  add_update<[](T a, T b) { return std::min(a, b); }, T>(t, ".min." + type);
  add_update<[](T a, T b) { return std::max(a, b); }, T>(t, ".max." + type);
  if constexpr (std::is_same_v<T, std::uint32_t>) {
    add_update<[](T a, T b) { return a >= b ? 0 : a + 1; }, T>(t, ".inc." + type);
  }
}

template <class T>
void add_bit_updates(operation_table& t, std::string const& type)
{
  add_update<[](T a, T b) { return a & b; }, T>(t, ".and." + type);
  add_update<[](T a, T b) { return a | b; }, T>(t, ".or." + type);
  add_update<[](T a, T b) { return a ^ b; }, T>(t, ".xor." + type);
  add_update<[](T, T b) { return b; }, T>(t, ".exch." + type);
  for (auto const& [in, where] : spaces) {
    if (where > space::shared) { continue; }
    t[std::string{"atom"} + in + ".cas." + type] = {
      .run = &compare_and_swap<T>, .form = "dass", .where = where, .bytes = sizeof(T)};
  }
}

template <std::uint64_t Window>
void add_window(operation_table& t, std::string const& name)
{
  using u64 = std::uint64_t;
  add<moved<Window, 1>, u64, u64>(t, "cvta." + name + ".u64");
  add<moved<Window, -1>, u64, u64>(t, "cvta.to." + name + ".u64");
}

}  // namespace

void add_memory_operations(operation_table& t)
{
  for_integers([&]<class T>(named<T> type) { add_accesses<T>(t, type.name); });
  for_bits([&]<class T>(named<T> type) { add_accesses<T>(t, type.name); });
  add_accesses<std::uint8_t>(t, "u8");
  add_accesses<std::uint8_t>(t, "b8");
  add_accesses<std::int8_t>(t, "s8");
  add_accesses<std::uint32_t>(t, "f32");
  add_accesses<std::uint64_t>(t, "f64");
  add_updates<std::uint32_t>(t, "u32");
  add_updates<std::int32_t>(t, "s32");
  add_updates<std::uint64_t>(t, "u64");
  add_updates<std::int64_t>(t, "s64");
  add_update<[](float a, float b) { return a + b; }, float>(t, ".add.f32");
  add_bit_updates<std::uint32_t>(t, "b32");
  add_bit_updates<std::uint64_t>(t, "b64");
  t["fence.proxy.async.shared::cta"]               = {.run = &show_shared, .form = ""};
  t["cp.async.bulk.commit_group"]                  = {.run = &commit_copies, .form = ""};
  t["cp.async.bulk.wait_group.read"]               = {.run = &end_copies, .form = "s"};
  t["cp.async.bulk.global.shared::cta.bulk_group"] = {
    .run = &copy_out, .form = "aas", .where = space::global};
  add_window<0>(t, "global");
  add_window<0>(t, "const");
  add_window<shared_window>(t, "shared");
  add_window<local_window>(t, "local");
  add_window<param_window>(t, "param");
}

}  // namespace tersum::simulator
