// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The functions of tersum_c.h: arguments are checked, exceptions end here, and errors are kept for the thread.

#include "any_codec.hpp"
#include "presets.hpp"
#include "tersum_c.h"

#include <tersum/layout.hpp>
#include <tersum/state.hpp>
#include <tersum/version.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

struct tersum_codec {
  tersum_options options;
  std::string preset;
  std::unique_ptr<shared_library::any_codec> codec;
  std::uint64_t fingerprint;  // of this rank's
};

namespace shared_library {

namespace {

thread_local char const* last_error = "";

int fail(int result, char const* sentence) noexcept
{
  last_error = sentence;
  return result;
}

//! What the library's sentences name, and what that is to callers of this interface. The first that fits is taken.
constexpr std::pair<std::string_view, std::string_view> own_names[] = {
  {"layout.first and coordinates lie beyond layout.whole",
   "options.boundaries must be two ascending coordinates of the gradient"},
  {"layout is a part of a bucket", "options.boundaries name a part of the gradient"},
  {"boundaries must be world.size + 1", "options.boundaries must be options.world + 1"},
  {"world is too large", "options.world is too large"},
  {"the weight of a tensor", "the weight of each of options.tensors"},
  {"the chunker's bits", "options.bits"},
  {"the chunker's weighting", "options.weighting"},
  {"the range's clip", "options.clip"},
  {"cpu_executor.threads", "options.threads"},
  {"for this plan: call initialize", "for this codec: call tersum_initialize"},
  {"layout.coordinates", "options.coordinates"},
  {"layout.tensors", "options.tensors"},
  {"world.size", "options.world"},
  {"world.rank", "options.rank"},
};

//! The sentence with the names of this interface: the literal itself, or memory of the thread, until its next call that fails.
char const* in_own_names(std::string_view sentence) noexcept
{
  thread_local char text[512];
  std::size_t length = 0;
  bool is_other      = false;
  auto const append  = [&](std::string_view part) {
    std::size_t const fits = std::min(part.size(), sizeof text - 1 - length);
    std::copy_n(part.data(), fits, text + length);
    length += fits;
  };
  for (std::size_t at = 0; at < sentence.size();) {
    auto const rest = sentence.substr(at);
    auto const found =
      std::find_if(std::begin(own_names), std::end(own_names), [&](auto const& name) {
        return rest.substr(0, name.first.size()) == name.first;
      });
    if (found != std::end(own_names)) {
      append(found->second);
      at += found->first.size();
      is_other = true;
    } else {
      append(rest.substr(0, 1));
      ++at;
    }
  }
  text[length] = 0;
  return is_other ? text : sentence.data();
}

int report(tersum::status const& s) noexcept
{
  if (s.ok()) { return TERSUM_OK; }
  int result = TERSUM_INVALID_ARGUMENT;
  switch (s.code) {
    case tersum::error_code::world_too_large: result = TERSUM_WORLD_TOO_LARGE; break;
    case tersum::error_code::unsupported: result = TERSUM_UNSUPPORTED; break;
    case tersum::error_code::execution_failed: result = TERSUM_EXECUTION_FAILED; break;
    case tersum::error_code::transport_failed: result = TERSUM_TRANSPORT_FAILED; break;
    default: break;
  }
  return fail(result, in_own_names(s.message));
}

//! Calls a function that returns a status or a result; an exception becomes an error.
template <class Function>
int guarded(Function const& function) noexcept
{
  try {
    return function();
  } catch (std::bad_alloc const&) {
    return fail(TERSUM_OUT_OF_MEMORY, "there is no memory left for the codec");
  } catch (...) {
    return fail(TERSUM_EXECUTION_FAILED, "the library threw an exception");
  }
}

struct preset_text {
  std::string name;
  std::string summary;
};

//! The list is made once, by the first thread that asks for it.
std::vector<preset_text> const& presets()
{
  static std::vector<preset_text> const list = [] {
    std::vector<preset_text> all;
    for_each_preset([&](std::string_view name, std::string_view summary, auto const&) {
      all.push_back({std::string(name), std::string(summary)});
    });
    return all;
  }();
  return list;
}

//! The groups of presets on a device; none if the library was built without it.
std::span<make_codec* const> groups_on(int device)
{
#if defined(TERSUM_EXAMPLE_CUDA)
  static constexpr make_codec* on_cuda[] = {make_summed_on_cuda,
                                            make_choosing_on_cuda,
                                            make_low_rank_on_cuda,
                                            make_two_shot_on_cuda,
                                            make_sharded_on_cuda};
  if (device == TERSUM_CUDA) { return on_cuda; }
#endif
  static constexpr make_codec* on_host[] = {
    make_summed, make_choosing, make_low_rank, make_two_shot, make_sharded};
  if (device == TERSUM_HOST) { return on_host; }
  return {};
}

//! The first bytes of a saved state: what it is, for which codec, and a hash of all of it. Versions of tersum below 1 may change
//! states.
struct saved_header {
  char magic[8];
  std::uint32_t interface_version;
  std::uint32_t library_version;
  std::uint64_t state_fingerprint;
  std::uint64_t preset_hash;
  std::uint64_t coordinates;
  std::uint64_t state_bytes;
  std::uint32_t world;
  std::uint32_t rank;
  std::uint64_t check;  // of these bytes, while it is 0, and of those of the state
};
static_assert(sizeof(saved_header) == 64);

std::uint64_t hash_of(std::string const& text)
{
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (char const c : text) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u; }
  return hash;
}

//! The state's version is in it, so that an older state is not taken for a damaged one.
constexpr std::uint32_t library_version = TERSUM_VERSION_MAJOR * 1000000 +
                                          TERSUM_VERSION_MINOR * 1000 +
                                          static_cast<std::uint32_t>(tersum::state_version);

saved_header header_of(tersum_codec const& codec)
{
  return {.magic             = {'t', 'e', 'r', 's', 't', 'a', 't', 'e'},
          .interface_version = TERSUM_C_VERSION,
          .library_version   = library_version,
          .state_fingerprint = codec.codec->state_fingerprint(),
          .preset_hash       = hash_of(codec.preset),
          .coordinates       = codec.options.coordinates,
          .state_bytes       = codec.codec->state_bytes(),
          .world             = static_cast<std::uint32_t>(codec.options.world),
          .rank              = static_cast<std::uint32_t>(codec.options.rank),
          .check             = 0};
}

//! A hash of a header whose check is 0 and of the bytes behind it. A word that changes always changes it.
std::uint64_t check_of(saved_header const& header, std::byte const* state)
{
  std::uint64_t hash = 0;
  auto const add     = [&](std::byte const* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at, std::min(sizeof word, bytes - at));
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
  };
  add(reinterpret_cast<std::byte const*>(&header), sizeof header);
  add(state, header.state_bytes);
  return hash;
}

std::span<std::byte> bytes_at(void* memory, std::size_t bytes)
{
  return {static_cast<std::byte*>(memory), memory == nullptr ? 0 : bytes};
}

bool is_aligned(void const* memory, std::size_t alignment) noexcept
{
  return reinterpret_cast<std::uintptr_t>(memory) % alignment == 0;
}

template <class T>
bool is_placed(T const* memory) noexcept
{
  return memory != nullptr && is_aligned(memory, alignof(T));
}

int check_state_memory(void const* state) noexcept
{
  if (state != nullptr && is_aligned(state, 16)) { return TERSUM_OK; }
  return fail(TERSUM_INVALID_ARGUMENT, "state is a null pointer or not aligned to 16 bytes");
}

int check_workspace(tersum_codec const& codec, void const* workspace) noexcept
{
  bool const is_there = workspace != nullptr || codec.codec->workspace_bytes() == 0;
  if (is_there && is_aligned(workspace, 16)) { return TERSUM_OK; }
  return fail(TERSUM_INVALID_ARGUMENT, "workspace is a null pointer or not aligned to 16 bytes");
}

//! How far exchanges have come that have begun and not ended, by the workspaces that they are in, of the host or of a device. What a
//! call reads there says how far it reads, so that no call may come before those that write it.
class exchanges_under_way {
 public:
  //! Whether the last call in this workspace was the one before step `index`.
  [[nodiscard]] bool is_next(tersum_codec const& codec, void const* workspace, std::size_t index)
  {
    while (index > 0 && codec.codec->step(index - 1).kind != TERSUM_CALL) { --index; }
    if (index == 0 || codec.codec->workspace_bytes() == 0) { return true; }
    std::lock_guard const lock{mutex_};
    auto const found = all_.find(workspace);
    return found != all_.end() && found->second == std::pair{codec.fingerprint, index};
  }

  //! Of the first `steps` that have been done, or 0 if one has failed.
  void set(tersum_codec const& codec, void const* workspace, std::size_t steps)
  {
    std::lock_guard const lock{mutex_};
    if (steps == 0 || steps == codec.codec->step_count()) {
      all_.erase(workspace);
    } else {
      all_.insert_or_assign(workspace, std::pair{codec.fingerprint, steps});
    }
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void const*, std::pair<std::uint64_t, std::size_t>> all_;
};

exchanges_under_way& under_way =
  *new exchanges_under_way;  // threads may call while static objects end

int check_order(tersum_codec const& codec, void const* workspace, std::size_t index)
{
  if (under_way.is_next(codec, workspace, index)) { return TERSUM_OK; }
  return fail(TERSUM_INVALID_ARGUMENT,
              "steps are out of order: the last call in this workspace was not the one before");
}

int check_codec(tersum_codec const* codec) noexcept
{
  if (codec != nullptr) { return TERSUM_OK; }
  return fail(TERSUM_INVALID_ARGUMENT, "codec is a null pointer");
}

//! Reads a tensor only if those before it are what they should be, so that a wrong count ends where the tensors do.
int check_tensors(tersum_options const& options) noexcept
{
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < options.tensor_count; ++i) {
    tersum_tensor const& t   = options.tensors[i];
    std::uint64_t const left = options.coordinates - end;
    bool const fits          = t.columns == 0 || t.rows <= left / t.columns;
    if (t.offset != end || !fits) {
      return fail(
        TERSUM_INVALID_ARGUMENT,
        "options.tensors must cover options.coordinates without gaps, in ascending order");
    }
    end += t.rows * t.columns;
  }
  return TERSUM_OK;  // whether they end where the gradient does the plan says
}

int check_stream(tersum_codec const& codec, void* stream) noexcept
{
  bool const given = stream != nullptr;
  if (codec.options.device == TERSUM_HOST && given) {
    return fail(TERSUM_INVALID_ARGUMENT, "stream must be NULL on TERSUM_HOST");
  }
  if (codec.options.device == TERSUM_CUDA && !given) {
    return fail(TERSUM_INVALID_ARGUMENT,
                "stream is NULL: name one, cudaStreamLegacy for the default one");
  }
  return TERSUM_OK;
}

int run_at(tersum_codec const& codec,
           std::size_t index,
           void* gradient,
           void* state,
           void* workspace,
           void* stream) noexcept
{
  any_codec const& of         = *codec.codec;
  std::size_t const alignment = codec.options.element != TERSUM_FLOAT ? 2 : 4;
  if (of.coordinates() > 0 && gradient == nullptr) {
    return fail(TERSUM_INVALID_ARGUMENT, "gradient is a null pointer");
  }
  if (!is_aligned(gradient, alignment)) {
    return fail(TERSUM_INVALID_ARGUMENT, "gradient is not aligned to its element type");
  }
  if (int const r = check_state_memory(state); r != TERSUM_OK) { return r; }
  if (int const r = check_workspace(codec, workspace); r != TERSUM_OK) { return r; }
  if (int const r = check_stream(codec, stream); r != TERSUM_OK) { return r; }
  if (int const r = check_order(codec, workspace, index); r != TERSUM_OK) { return r; }
  return guarded([&] {
    under_way.set(codec, workspace, 0);
    int const result = report(of.run(
      index,
      {gradient, bytes_at(state, of.state_bytes()), bytes_at(workspace, of.workspace_bytes())},
      stream));
    if (result == TERSUM_OK) { under_way.set(codec, workspace, index + 1); }
    return result;
  });
}

int run_named(tersum_codec const* codec,
              char const* name,
              void* gradient,
              void* state,
              void* workspace,
              void* stream) noexcept
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  for (std::size_t i = 0; i < codec->codec->step_count(); ++i) {
    tersum_step const step = codec->codec->step(i);
    if (step.kind == TERSUM_CALL && std::strcmp(step.name, name) == 0) {
      return run_at(*codec, i, gradient, state, workspace, stream);
    }
  }
  return fail(TERSUM_UNSUPPORTED, "this preset has no such call: tersum_get_step lists its own");
}

}  // namespace

}  // namespace shared_library

using namespace shared_library;

extern "C" {

char const* tersum_version(void)
{
#define TERSUM_TEXT_OF(number) #number
#define TERSUM_TEXT(number)    TERSUM_TEXT_OF(number)
  return TERSUM_TEXT(TERSUM_VERSION_MAJOR) "." TERSUM_TEXT(TERSUM_VERSION_MINOR) "." TERSUM_TEXT(
    TERSUM_VERSION_PATCH);
}

int tersum_c_version(void) { return TERSUM_C_VERSION; }

int tersum_has_cuda(void) { return groups_on(TERSUM_CUDA).empty() ? 0 : 1; }

size_t tersum_preset_count(void) { return presets().size(); }

char const* tersum_preset_name(size_t index)
{
  return index < presets().size() ? presets()[index].name.c_str() : nullptr;
}

char const* tersum_preset_summary(size_t index)
{
  return index < presets().size() ? presets()[index].summary.c_str() : nullptr;
}

char const* tersum_last_error(void) { return last_error; }

void tersum_default_options(tersum_options* options)
{
  if (options == nullptr) { return; }
  *options                = tersum_options{};
  options->struct_bytes   = sizeof(tersum_options);
  options->bypass_vectors = 1;
  options->world          = 1;
  options->rank           = -1;
  options->threads        = 1;
  options->weighting      = -1;
  options->clip           = -1;
}

int tersum_open(tersum_options const* options, tersum_codec** codec)
{
  if (!is_placed(codec)) {
    return fail(TERSUM_INVALID_ARGUMENT, "codec is a null pointer or not aligned");
  }
  *codec = nullptr;
  if (!is_placed(options)) {
    return fail(TERSUM_INVALID_ARGUMENT, "options is a null pointer or not aligned");
  }
  if (options->struct_bytes != sizeof(tersum_options)) {
    return fail(TERSUM_INVALID_ARGUMENT,
                "options.struct_bytes is not the size of this library's tersum_options: call "
                "tersum_default_options first");
  }
  if (options->preset == nullptr) {
    return fail(TERSUM_INVALID_ARGUMENT, "options.preset is a null pointer");
  }
  if (options->tensor_count > 0 && !is_placed(options->tensors)) {
    return fail(TERSUM_INVALID_ARGUMENT, "options.tensors is a null pointer or not aligned");
  }
  if (options->boundaries != nullptr && !is_placed(options->boundaries)) {
    return fail(TERSUM_INVALID_ARGUMENT, "options.boundaries is not aligned");
  }
  if (options->element < TERSUM_FLOAT || options->element > TERSUM_BFLOAT16) {
    return fail(TERSUM_INVALID_ARGUMENT,
                "options.element must be TERSUM_FLOAT, TERSUM_HALF or TERSUM_BFLOAT16");
  }
  if (options->threads < 1 || options->threads > 4096) {
    return fail(TERSUM_INVALID_ARGUMENT, "options.threads must be between 1 and 4096");
  }
  if (options->device != TERSUM_HOST && options->device != TERSUM_CUDA) {
    return fail(TERSUM_INVALID_ARGUMENT, "options.device must be TERSUM_HOST or TERSUM_CUDA");
  }
  if (options->device == TERSUM_CUDA && tersum_has_cuda() == 0) {
    return fail(TERSUM_UNSUPPORTED, "this library was built without CUDA");
  }
  // How many boundaries there are follows from the world.
  auto const ranks =
    tersum::detail::with_only_rank({.size = options->world, .rank = options->rank});
  if (int const r = report(tersum::detail::check_world(ranks)); r != TERSUM_OK) { return r; }
  if (int const r = check_tensors(*options); r != TERSUM_OK) { return r; }
  return guarded([&] {
    made_codec made;
    for (make_codec* const make : groups_on(options->device)) {
      made = make(*options);
      if (made.status.message != no_such_preset) { break; }
    }
    if (!made.status.ok()) { return report(made.status); }
    auto opened            = std::make_unique<tersum_codec>();
    opened->options        = *options;
    opened->options.rank   = options->world == 1 ? 0 : options->rank;
    opened->preset         = options->preset;
    opened->options.preset = nullptr;
    // The caller's, who need not keep them.
    opened->options.tensors    = nullptr;
    opened->options.boundaries = nullptr;
    opened->codec              = std::move(made.codec);
    opened->fingerprint =
      opened->codec->fingerprint(static_cast<std::uint64_t>(opened->options.rank));
    *codec = opened.release();
    return static_cast<int>(TERSUM_OK);
  });
}

void tersum_close(tersum_codec* codec) { delete codec; }

size_t tersum_state_bytes(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : codec->codec->state_bytes();
}

size_t tersum_workspace_bytes(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : codec->codec->workspace_bytes();
}

double tersum_bits_per_coordinate(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : codec->codec->bits_per_coordinate();
}

int tersum_travels(tersum_codec const* codec)
{
  return codec != nullptr && codec->codec->travels() ? 1 : 0;
}

uint64_t tersum_fingerprint(tersum_codec const* codec, uint64_t seed)
{
  return codec == nullptr ? 0 : codec->codec->fingerprint(seed);
}

size_t tersum_step_count(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : codec->codec->step_count();
}

int tersum_get_step(tersum_codec const* codec, size_t index, tersum_step* step)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (!is_placed(step)) {
    return fail(TERSUM_INVALID_ARGUMENT, "step is a null pointer or not aligned");
  }
  if (index >= codec->codec->step_count()) {
    return fail(TERSUM_INVALID_ARGUMENT, "index is not below tersum_step_count");
  }
  *step = codec->codec->step(index);
  return TERSUM_OK;
}

int tersum_get_part(
  tersum_codec const* codec, size_t index, int rank, size_t* offset, size_t* bytes)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (!is_placed(offset) || !is_placed(bytes)) {
    return fail(TERSUM_INVALID_ARGUMENT, "offset or bytes is a null pointer or not aligned");
  }
  if (index >= codec->codec->step_count() || codec->codec->step(index).kind != TERSUM_SHARDS) {
    return fail(TERSUM_INVALID_ARGUMENT, "index is not that of a step of kind TERSUM_SHARDS");
  }
  if (rank < 0 || rank >= codec->options.world) {
    return fail(TERSUM_INVALID_ARGUMENT, "rank is not one of the world");
  }
  part_place const place = codec->codec->part(index, rank);
  *offset                = place.offset;
  *bytes                 = place.bytes;
  return TERSUM_OK;
}

uint64_t tersum_shard_begin(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : codec->codec->shard_begin();
}

uint64_t tersum_shard_size(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : codec->codec->shard_size();
}

int tersum_initialize(tersum_codec const* codec, void* state, uint64_t seed, void* stream)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (int const r = check_state_memory(state); r != TERSUM_OK) { return r; }
  if (int const r = check_stream(*codec, stream); r != TERSUM_OK) { return r; }
  return guarded([&] {
    return report(
      codec->codec->initialize(bytes_at(state, codec->codec->state_bytes()), seed, stream));
  });
}

int tersum_run(tersum_codec const* codec,
               size_t index,
               void* gradient,
               void* state,
               void* workspace,
               void* stream)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (index >= codec->codec->step_count() || codec->codec->step(index).kind != TERSUM_CALL) {
    return fail(TERSUM_INVALID_ARGUMENT, "index is not that of a step of kind TERSUM_CALL");
  }
  return run_at(*codec, index, gradient, state, workspace, stream);
}

int tersum_measure(
  tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream)
{
  return run_named(codec, "measure", gradient, state, workspace, stream);
}

int tersum_encode(
  tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream)
{
  return run_named(codec, "encode", gradient, state, workspace, stream);
}

int tersum_recompress(
  tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream)
{
  return run_named(codec, "recompress", gradient, state, workspace, stream);
}

int tersum_decode(
  tersum_codec const* codec, void* gradient, void* state, void* workspace, void* stream)
{
  return run_named(codec, "decode", gradient, state, workspace, stream);
}

int tersum_add(tersum_codec const* codec,
               size_t index,
               void* workspace,
               void* to,
               void const* a,
               void const* b,
               size_t first,
               size_t count,
               void* stream)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  any_codec const& of = *codec->codec;
  if (index >= of.step_count() || of.step(index).kind != TERSUM_REDUCE) {
    return fail(TERSUM_INVALID_ARGUMENT, "index is not that of a step of kind TERSUM_REDUCE");
  }
  std::size_t const elements = of.step(index).count;
  if (first > elements || count > elements - first) {
    return fail(TERSUM_INVALID_ARGUMENT, "first + count is beyond the elements of the round");
  }
  if (int const r = check_workspace(*codec, workspace); r != TERSUM_OK) { return r; }
  if (count > 0 && (to == nullptr || a == nullptr || b == nullptr)) {
    return fail(TERSUM_INVALID_ARGUMENT, "to, a or b is a null pointer");
  }
  std::size_t const alignment = of.alignment(index);
  if (!is_aligned(to, alignment) || !is_aligned(a, alignment) || !is_aligned(b, alignment)) {
    return fail(TERSUM_INVALID_ARGUMENT, "to, a or b is not aligned to the elements of the round");
  }
  if (int const r = check_stream(*codec, stream); r != TERSUM_OK) { return r; }
  if (int const r = check_order(*codec, workspace, index); r != TERSUM_OK) { return r; }
  return guarded([&] {
    return report(
      of.add(index, bytes_at(workspace, of.workspace_bytes()), to, a, b, first, count, stream));
  });
}

size_t tersum_saved_bytes(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : sizeof(saved_header) + codec->codec->state_bytes();
}

int tersum_save(
  tersum_codec const* codec, void const* state, void* saved, size_t saved_bytes, void* stream)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (int const r = check_state_memory(state); r != TERSUM_OK) { return r; }
  if (saved == nullptr) { return fail(TERSUM_INVALID_ARGUMENT, "saved is a null pointer"); }
  if (saved_bytes != tersum_saved_bytes(codec)) {
    return fail(TERSUM_INVALID_ARGUMENT, "saved_bytes differs from tersum_saved_bytes()");
  }
  if (int const r = check_stream(*codec, stream); r != TERSUM_OK) { return r; }
  saved_header header = header_of(*codec);
  auto* const to      = static_cast<std::byte*>(saved);
  return guarded([&] {
    int const copied = report(codec->codec->copy(to + sizeof header,
                                                 static_cast<std::byte const*>(state),
                                                 codec->codec->state_bytes(),
                                                 stream));
    if (copied != TERSUM_OK) { return copied; }
    header.check = check_of(header, to + sizeof header);
    std::memcpy(to, &header, sizeof header);
    return static_cast<int>(TERSUM_OK);
  });
}

int tersum_load(
  tersum_codec const* codec, void const* saved, size_t saved_bytes, void* state, void* stream)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (int const r = check_state_memory(state); r != TERSUM_OK) { return r; }
  if (int const r = check_stream(*codec, stream); r != TERSUM_OK) { return r; }
  if (int const r = tersum_check_saved(codec, saved, saved_bytes); r != TERSUM_OK) { return r; }
  return guarded([&] {
    return report(codec->codec->copy(static_cast<std::byte*>(state),
                                     static_cast<std::byte const*>(saved) + sizeof(saved_header),
                                     codec->codec->state_bytes(),
                                     stream));
  });
}

int tersum_check_saved(tersum_codec const* codec, void const* saved, size_t saved_bytes)
{
  if (saved == nullptr) { return fail(TERSUM_INVALID_ARGUMENT, "saved is a null pointer"); }
  saved_header header{};
  if (saved_bytes < sizeof header) {
    return fail(TERSUM_INVALID_ARGUMENT, "saved_bytes is less than the header of a saved state");
  }
  auto const* const bytes = static_cast<std::byte const*>(saved);
  std::memcpy(&header, bytes, sizeof header);
  if (std::string_view{header.magic, sizeof header.magic} != "terstate") {
    return fail(TERSUM_INVALID_ARGUMENT, "saved is not a state that tersum_save wrote");
  }
  if (header.interface_version != TERSUM_C_VERSION || header.library_version != library_version) {
    return fail(TERSUM_INVALID_ARGUMENT, "saved is a state of another version of the library");
  }
  if (header.state_bytes != saved_bytes - sizeof header) {
    return fail(TERSUM_INVALID_ARGUMENT,
                "saved_bytes is not what was saved: the state was cut, or its header is damaged");
  }
  saved_header written = header;
  written.check        = 0;
  if (check_of(written, bytes + sizeof header) != header.check) {
    return fail(TERSUM_INVALID_ARGUMENT,
                "saved is damaged: its bytes have changed since tersum_save wrote them");
  }
  if (codec == nullptr) { return TERSUM_OK; }
  saved_header const mine = header_of(*codec);
  if (header.world != mine.world || header.rank != mine.rank) {
    return fail(TERSUM_INVALID_ARGUMENT, "saved is a state of another rank or world");
  }
  if (header.preset_hash != mine.preset_hash ||
      header.state_fingerprint != mine.state_fingerprint ||
      header.coordinates != mine.coordinates || header.state_bytes != mine.state_bytes) {
    return fail(TERSUM_INVALID_ARGUMENT, "saved is a state of another codec or gradient");
  }
  // What was damaged before it was saved.
  return guarded([&] {
    return report(codec->codec->check_copy({bytes + sizeof header, codec->codec->state_bytes()}));
  });
}

int tersum_seal_state(tersum_codec const* codec, void const* state, tersum_seal* seal, void* stream)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (int const r = check_state_memory(state); r != TERSUM_OK) { return r; }
  if (!is_placed(seal)) {
    return fail(TERSUM_INVALID_ARGUMENT, "seal is a null pointer or not aligned");
  }
  if (int const r = check_stream(*codec, stream); r != TERSUM_OK) { return r; }
  return guarded([&] {
    tersum::state_seal made{};
    int const result = report(codec->codec->seal_state(
      {static_cast<std::byte const*>(state), codec->codec->state_bytes()}, made, stream));
    if (result == TERSUM_OK) { *seal = {made.version, made.bytes, made.check}; }
    return result;
  });
}

int tersum_check_state(tersum_codec const* codec,
                       void const* state,
                       tersum_seal const* seal,
                       void* stream)
{
  if (int const r = check_codec(codec); r != TERSUM_OK) { return r; }
  if (int const r = check_state_memory(state); r != TERSUM_OK) { return r; }
  if (int const r = check_stream(*codec, stream); r != TERSUM_OK) { return r; }
  return guarded([&] {
    tersum::state_seal const given =
      seal == nullptr ? tersum::state_seal{}
                      : tersum::state_seal{seal->version, seal->bytes, seal->check};
    return report(
      codec->codec->check_state({static_cast<std::byte const*>(state), codec->codec->state_bytes()},
                                seal == nullptr ? nullptr : &given,
                                stream));
  });
}

size_t tersum_residual_offset(tersum_codec const* codec)
{
  return codec == nullptr ? 0 : codec->codec->residual_offset();
}

uint64_t tersum_steps_done(tersum_codec const*, void const* state)
{
  tersum::state_header header{};
  if (state != nullptr) { std::memcpy(&header, state, sizeof header); }
  return header.step;
}

int tersum_was_non_finite(tersum_codec const*, void const* state)
{
  tersum::state_header header{};
  if (state != nullptr) { std::memcpy(&header, state, sizeof header); }
  return header.last_was_non_finite() ? 1 : 0;
}

}  // extern "C"
