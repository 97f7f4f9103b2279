// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The shared library on a device: the same presets, opened on the host, say what is expected, bit
//! for bit. Ranks are of this process, each with a stream of its own.

#include "../../examples/shared_library/tersum_c.h"

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tersum::simulator {

//! Makes a stream work as late as it may. There is none on a device.
[[gnu::weak]] void postpone(cudaStream_t stream);

}  // namespace tersum::simulator

namespace {

using bytes = std::vector<std::byte>;

constexpr int world                  = 3;
constexpr std::uint64_t rows         = 72;
constexpr std::uint64_t columns      = 85;
constexpr std::uint64_t tail         = 53;
constexpr std::uint64_t coordinates  = rows * columns + tail;
constexpr tersum_tensor tensors[]    = {{rows, columns, 0, 1, 0}, {1, tail, rows* columns, 1, 0}};
constexpr std::uint64_t boundaries[] = {0, 1000, 4501, coordinates};

void require_ok(int result)
{
  CAPTURE(tersum_last_error());
  REQUIRE(result == TERSUM_OK);
}

void require_ok(cudaError_t error)
{
  CAPTURE(cudaGetErrorString(error));
  REQUIRE(error == cudaSuccess);
}

bool is_refused(int result, int expected, std::string_view word)
{
  return result == expected &&
         std::string_view{tersum_last_error()}.find(word) != std::string_view::npos;
}

//! @brief Copies, on a stream or on the host.
void copy(void* to, void const* from, std::size_t count, cudaStream_t on)
{
  if (on == nullptr) {
    std::memcpy(to, from, count);
  } else {
    require_ok(cudaMemcpyAsync(to, from, count, cudaMemcpyDefault, on));
  }
}

//! @brief Memory of the host or of a device, which nobody has written.
class memory {
 public:
  memory(int device, std::size_t count) : device_{device}, count_{count}
  {
    if (device == TERSUM_CUDA) {
      require_ok(cudaMalloc(&data_, count + 16));
    } else {
      data_ = ::operator new (count + 16, std::align_val_t{16});
      std::memset(data_, 0xa5, count + 16);
    }
  }
  memory(memory const&)            = delete;
  memory& operator=(memory const&) = delete;
  ~memory()
  {
    if (device_ == TERSUM_CUDA) {
      cudaFree(data_);
    } else {
      ::operator delete (data_, std::align_val_t{16});
    }
  }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

  //! Both wait for the stream.
  void write(bytes const& from, cudaStream_t on, std::size_t offset = 0) const
  {
    copy(data() + offset, from.data(), from.size(), on);
    if (on != nullptr) { require_ok(cudaStreamSynchronize(on)); }
  }
  [[nodiscard]] bytes read(cudaStream_t on) const
  {
    bytes out(count_);
    copy(out.data(), data_, count_, on);
    if (on != nullptr) { require_ok(cudaStreamSynchronize(on)); }
    return out;
  }

 private:
  int device_;
  std::size_t count_;
  void* data_ = nullptr;
};

//! @brief A stream that works late, if the device lets it.
class stream {
 public:
  explicit stream(bool late = true)
  {
    require_ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    if (late && tersum::simulator::postpone != nullptr) { tersum::simulator::postpone(stream_); }
  }
  stream(stream const&)            = delete;
  stream& operator=(stream const&) = delete;
  ~stream() { cudaStreamDestroy(stream_); }

  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

//! @brief What one stream does from here on comes after what the other was given.
void follow(cudaStream_t later, cudaStream_t earlier)
{
  cudaEvent_t event = nullptr;
  require_ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  require_ok(cudaEventRecord(event, earlier));
  require_ok(cudaStreamWaitEvent(later, event, 0));
  require_ok(cudaEventDestroy(event));
}

using codec_handle = std::shared_ptr<tersum_codec>;

tersum_options options_of(
  char const* preset, int device, int element = TERSUM_FLOAT, int ranks = 1, int rank = 0)
{
  tersum_options o;
  tersum_default_options(&o);
  o.preset       = preset;
  o.coordinates  = coordinates;
  o.tensors      = tensors;
  o.tensor_count = 2;
  o.element      = element;
  o.device       = device;
  o.world        = ranks;
  o.rank         = rank;
  // Of other presets they would name a part.
  std::string_view const name{o.preset};
  if (ranks == world && (name.starts_with("sharded_") || name.starts_with("summed_shards_"))) {
    o.boundaries = boundaries;
  }
  return o;
}

codec_handle open(tersum_options const& options)
{
  tersum_codec* codec = nullptr;
  require_ok(tersum_open(&options, &codec));
  return {codec, tersum_close};
}

//! @brief The number of the exchange in which the last rank has an Inf.
constexpr int not_finite = 3;

//! @brief A gradient that is the same everywhere, half of it small.
bytes gradient_of(int rank, int number, int element)
{
  std::size_t const size = element == TERSUM_FLOAT ? 4 : 2;
  bytes out(coordinates * size);
  for (std::size_t i = 0; i < coordinates; ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u +
                      static_cast<std::uint32_t>(rank) * 97u +
                      static_cast<std::uint32_t>(number) * 7919u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    float value = (static_cast<float>(x >> 8) / 8388608.0f - 1.0f) * (i % 300 < 150 ? 1.0f : 0.01f);
    if (number == not_finite && rank == world - 1 && i == 1234) {
      value = std::numeric_limits<float>::infinity();
    }
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (element == TERSUM_BFLOAT16) { bits >>= 16; }
    std::memcpy(out.data() + i * size, &bits, size);  // little endian
  }
  return out;
}

//! @brief A mean in which every NaN is the same: which bits one has is not specified.
bytes with_one_nan(bytes mean, int element)
{
  std::size_t const size       = element == TERSUM_FLOAT ? 4 : 2;
  std::uint32_t const infinity = element == TERSUM_FLOAT ? 0x7f800000u : 0x7f80u;
  std::uint32_t const largest =
    element == TERSUM_FLOAT ? 0x7fffffffu : 0x7fffu;  // but for the sign
  for (std::size_t at = 0; at < mean.size(); at += size) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &mean[at], size);
    if ((bits & largest) > infinity) { bits = infinity + 1; }
    std::memcpy(&mean[at], &bits, size);
  }
  return mean;
}

//! @brief One rank with its memory.
struct member {
  int rank;
  int element;
  codec_handle codec;
  std::unique_ptr<stream> own_stream;  // none on the host
  cudaStream_t on;
  memory gradient, state, workspace;

  //! With a codec that was opened with these options.
  member(tersum_options const& options, codec_handle of, bool late)
    : rank{options.rank}, element{options.element}, codec{std::move(of)},
      own_stream{options.device == TERSUM_CUDA ? std::make_unique<stream>(late) : nullptr},
      on{own_stream != nullptr ? own_stream->get() : nullptr},
      gradient{options.device, coordinates * (element == TERSUM_FLOAT ? 4 : 2)},
      state{options.device, tersum_state_bytes(codec.get())}, workspace{
                                                                options.device,
                                                                tersum_workspace_bytes(codec.get())}
  {
    require_ok(tersum_initialize(codec.get(), state.data(), 42, on));
  }

  explicit member(tersum_options const& options, bool late = true)
    : member{options, open(options), late}
  {
  }

  void run(std::size_t index) const
  {
    require_ok(tersum_run(codec.get(), index, gradient.data(), state.data(), workspace.data(), on));
  }

  //! All steps of a world of one rank, in which no round does anything but to bring parts to itself.
  void run_alone() const
  {
    for (std::size_t i = 0; i < tersum_step_count(codec.get()); ++i) {
      tersum_step const step = at(i);
      std::size_t const size = step.count * step.element_bytes;
      if (step.kind == TERSUM_CALL) { run(i); }
      if (step.kind == TERSUM_SCATTER) {
        copy(workspace.data() + step.received_offset, workspace.data() + step.offset, size, on);
      }
      if (step.kind == TERSUM_SHARDS) {
        std::size_t offset = 0, part = 0;
        require_ok(tersum_get_part(codec.get(), i, 0, &offset, &part));
        copy(workspace.data() + step.received_offset, workspace.data() + offset, part, on);
      }
    }
  }

  [[nodiscard]] tersum_step at(std::size_t index) const
  {
    tersum_step step{};
    require_ok(tersum_get_step(codec.get(), index, &step));
    return step;
  }

  [[nodiscard]] bytes save() const
  {
    bytes out(tersum_saved_bytes(codec.get()));
    require_ok(tersum_save(codec.get(), state.data(), out.data(), out.size(), on));
    return out;
  }

  [[nodiscard]] int load(bytes const& saved) const
  {
    return tersum_load(codec.get(), saved.data(), saved.size(), state.data(), on);
  }
};

//! @brief Ranks that meet.
class ranks_of_test {
 public:
  ranks_of_test(char const* preset, int element, int device)
  {
    std::size_t most = 0;
    for (int rank = 0; rank < world; ++rank) {
      ranks_.push_back(std::make_unique<member>(options_of(preset, device, element, world, rank)));
      most = std::max(most, tersum_workspace_bytes(ranks_.back()->codec.get()));
    }
    sum_ = std::make_unique<memory>(device, most);
  }

  member const& operator[](int rank) const { return *ranks_[static_cast<std::size_t>(rank)]; }

  void exchange(int number) const
  {
    for (auto const& r : ranks_) {
      r->gradient.write(gradient_of(r->rank, number, r->element), r->on);
    }
    for (std::size_t i = 0; i < tersum_step_count(ranks_[0]->codec.get()); ++i) {
      if (ranks_[0]->at(i).kind == TERSUM_CALL) {
        for (auto const& r : ranks_) { r->run(i); }
      } else {
        meet(i);
      }
    }
  }

 private:
  //! On the stream of the first rank, after those of all, which go on behind it.
  void meet(std::size_t index) const
  {
    cudaStream_t const on = ranks_[0]->on;
    for (auto const& r : ranks_) {
      if (r->on != on) { follow(on, r->on); }
    }
    tersum_step const step = ranks_[0]->at(index);
    std::size_t const size = step.count * step.element_bytes;
    switch (step.kind) {
      case TERSUM_REDUCE: reduce(index, size, on); break;
      case TERSUM_SHARDS: exchange_shards(index, on); break;
      case TERSUM_SCATTER:
        for (auto const& to : ranks_) {
          for (auto const& from : ranks_) {
            copy(to->workspace.data() + step.received_offset + part_of(*from) * size,
                 from->workspace.data() + step.offset + part_of(*to) * size,
                 size,
                 on);
          }
        }
        break;
      default:
        for (auto const& to : ranks_) {
          for (auto const& from : ranks_) {
            std::size_t const at = step.offset + part_of(*from) * size;
            if (to != from) {
              copy(to->workspace.data() + at, from->workspace.data() + at, size, on);
            }
          }
        }
    }
    for (auto const& r : ranks_) {
      if (r->on != on) { follow(r->on, on); }
    }
  }

  static std::size_t part_of(member const& r) { return static_cast<std::size_t>(r.rank); }

  //! In the order of the ranks, in two pieces, as an operation may depend on the position.
  void reduce(std::size_t index, std::size_t size, cudaStream_t on) const
  {
    copy(sum_->data(), ranks_[0]->workspace.data() + ranks_[0]->at(index).offset, size, on);
    for (std::size_t k = 1; k < ranks_.size(); ++k) {
      member const& r        = *ranks_[k];
      tersum_step const step = r.at(index);
      std::size_t const cut  = step.count / 3;
      for (auto const& [first, count] :
           {std::pair{std::size_t{0}, cut}, std::pair{cut, step.count - cut}}) {
        std::byte* const to = sum_->data() + first * step.element_bytes;
        require_ok(tersum_add(r.codec.get(),
                              index,
                              r.workspace.data(),
                              to,
                              to,
                              r.workspace.data() + step.offset + first * step.element_bytes,
                              first,
                              count,
                              on));
      }
    }
    for (auto const& r : ranks_) {
      copy(r->workspace.data() + r->at(index).offset, sum_->data(), size, on);
    }
  }

  void exchange_shards(std::size_t index, cudaStream_t on) const
  {
    for (auto const& to : ranks_) {
      std::byte* at = to->workspace.data() + to->at(index).received_offset;
      for (auto const& from : ranks_) {
        std::size_t offset = 0, size = 0;
        require_ok(tersum_get_part(from->codec.get(), index, to->rank, &offset, &size));
        copy(at, from->workspace.data() + offset, size, on);
        at += size;
      }
    }
  }

  std::vector<std::unique_ptr<member>> ranks_;
  std::unique_ptr<memory> sum_;
};

//! @brief Checks that all ranks have on the device what they have on the host: gradients, and states as they are saved.
void compare(ranks_of_test const& device, ranks_of_test const& host)
{
  for (int k = 0; k < world; ++k) {
    CAPTURE(k);
    int const element = device[k].element;
    CHECK(with_one_nan(device[k].gradient.read(device[k].on), element) ==
          with_one_nan(host[k].gradient.read(nullptr), element));
    CHECK(device[k].save() == host[k].save());
  }
}

//! @brief Checks that the codecs say the same of themselves.
void compare_codecs(member const& device, member const& host)
{
  tersum_codec const* const a = device.codec.get();
  tersum_codec const* const b = host.codec.get();
  CHECK(tersum_state_bytes(a) == tersum_state_bytes(b));
  CHECK(tersum_workspace_bytes(a) == tersum_workspace_bytes(b));
  CHECK(tersum_fingerprint(a, 3) == tersum_fingerprint(b, 3));
  CHECK(tersum_residual_offset(a) == tersum_residual_offset(b));
  CHECK(tersum_shard_begin(a) == tersum_shard_begin(b));
  CHECK(tersum_shard_size(a) == tersum_shard_size(b));
  REQUIRE(tersum_step_count(a) == tersum_step_count(b));
  for (std::size_t i = 0; i < tersum_step_count(a); ++i) {
    tersum_step const of_a = device.at(i), of_b = host.at(i);
    CHECK(of_a.kind == of_b.kind);
    CHECK(of_a.operation == of_b.operation);
    CHECK(of_a.element == of_b.element);
    CHECK(of_a.count == of_b.count);
    CHECK(of_a.offset == of_b.offset);
    CHECK(of_a.received_offset == of_b.received_offset);
  }
}

//! @brief Three exchanges, of which the last one is done once more with states that were saved: those
//! of the host on the device, and the other way round. Then one with an Inf, and one more.
void check_exchanges(std::string const& preset, int element)
{
  CAPTURE(preset);
  CAPTURE(element);
  ranks_of_test const device{preset.c_str(), element, TERSUM_CUDA};
  ranks_of_test const host{preset.c_str(), element, TERSUM_HOST};
  for (int k = 0; k < world; ++k) { compare_codecs(device[k], host[k]); }
  for (int number = 0; number < 2; ++number) {
    device.exchange(number);
    host.exchange(number);
    compare(device, host);
  }
  std::vector<bytes> of_device, of_host;
  for (int k = 0; k < world; ++k) {
    of_device.push_back(device[k].save());
    of_host.push_back(host[k].save());
  }
  device.exchange(2);
  std::vector<bytes> went_on;
  for (int k = 0; k < world; ++k) { went_on.push_back(device[k].gradient.read(device[k].on)); }
  for (std::size_t k = 0; k < world; ++k) {
    require_ok(device[static_cast<int>(k)].load(of_host[k]));
    require_ok(host[static_cast<int>(k)].load(of_device[k]));
  }
  device.exchange(2);
  host.exchange(2);
  compare(device, host);
  for (int k = 0; k < world; ++k) {
    CHECK(device[k].gradient.read(device[k].on) == went_on[static_cast<std::size_t>(k)]);
  }
  auto const flagged = [&](std::uint64_t steps) {
    int ranks = 0;
    for (int k = 0; k < world; ++k) {
      bytes const state = device[k].state.read(device[k].on);
      CHECK(tersum_steps_done(device[k].codec.get(), state.data()) == steps);
      ranks += tersum_was_non_finite(device[k].codec.get(), state.data());
    }
    return ranks;
  };
  CHECK(flagged(3) == 0);
  device.exchange(not_finite);
  host.exchange(not_finite);
  compare(device, host);
  // Every rank learns of the Inf of another one; of shards only the rank that it goes to; and nobody
  // who does not look where nothing is chosen, as randomkc_*.
  if (preset.substr(0, 9) != "randomkc_") {
    CHECK(flagged(4) == (preset.substr(0, 8) == "sharded_" ? 1 : world));
  }
  device.exchange(4);
  host.exchange(4);
  compare(device, host);
  CHECK(flagged(5) == 0);
}

//! @brief What is saved of the device is believed if no bit has changed, and so is a state of the device.
void check_damage(char const* preset)
{
  CAPTURE(std::string{preset});
  member const of{options_of(preset, TERSUM_CUDA, TERSUM_FLOAT, world, 1)};
  member const on_host{options_of(preset, TERSUM_HOST, TERSUM_FLOAT, world, 1)};
  member const other{options_of(preset, TERSUM_CUDA, TERSUM_FLOAT, world, 2)};
  tersum_codec const* const codec = of.codec.get();
  bytes const state               = of.state.read(of.on);
  bytes const saved               = of.save();
  std::size_t const header        = saved.size() - state.size();

  tersum_seal seal{}, seal_of_host{};
  require_ok(tersum_seal_state(codec, of.state.data(), &seal, of.on));
  require_ok(tersum_seal_state(on_host.codec.get(), on_host.state.data(), &seal_of_host, nullptr));
  CHECK(seal.check == seal_of_host.check);
  CHECK(seal.bytes == state.size());
  CHECK(tersum_check_state(codec, of.state.data(), nullptr, of.on) == TERSUM_OK);
  CHECK(tersum_check_state(codec, of.state.data(), &seal, of.on) == TERSUM_OK);
  CHECK(is_refused(other.load(saved), TERSUM_INVALID_ARGUMENT, "another rank"));

  int loaded = 0, believed = 0;
  for (std::size_t const at : {std::size_t{0},
                               header - 1,
                               header,
                               header + 41,
                               header + state.size() / 2,
                               saved.size() - 1}) {
    bytes damaged = saved;
    damaged[at] ^= std::byte{1} << at % 8;
    loaded += of.load(damaged) == TERSUM_OK ? 1 : 0;
    if (at < header) { continue; }
    of.state.write({damaged[at]}, of.on, at - header);
    believed += tersum_check_state(codec, of.state.data(), &seal, of.on) == TERSUM_OK ? 1 : 0;
    of.state.write({saved[at]}, of.on, at - header);
  }
  CHECK(loaded == 0);
  CHECK(believed == 0);
  CHECK(of.state.read(of.on) == state);

  // The number of coordinates is held to the codec's without a seal; what is damaged is saved as it is, and not loaded.
  of.state.write({state[41] ^ std::byte{1}}, of.on, 41);
  CHECK(is_refused(tersum_check_state(codec, of.state.data(), nullptr, of.on),
                   TERSUM_INVALID_ARGUMENT,
                   "damaged"));
  bytes const saved_damage = of.save();
  CHECK(tersum_check_saved(nullptr, saved_damage.data(), saved_damage.size()) == TERSUM_OK);
  CHECK(is_refused(of.load(saved_damage), TERSUM_INVALID_ARGUMENT, "damaged"));
  require_ok(of.load(saved));
  CHECK(of.state.read(of.on) == state);
}

//! @brief Two exchanges of a world of one rank on the host: their gradients, and the state that they leave.
std::vector<bytes> alone_on_host(char const* preset)
{
  member const of{options_of(preset, TERSUM_HOST)};
  std::vector<bytes> out;
  for (int number = 0; number < 2; ++number) {
    of.gradient.write(gradient_of(0, number, TERSUM_FLOAT), nullptr);
    of.run_alone();
    out.push_back(of.gradient.read(nullptr));
  }
  out.push_back(of.save());
  return out;
}

}  // namespace

TEST_CASE("[shared_library] means and states on a device have the bits of those on the host")
{
  REQUIRE(tersum_has_cuda() == 1);
  for (std::size_t i = 0; i < tersum_preset_count(); ++i) {
    for (int const element : {TERSUM_FLOAT, TERSUM_BFLOAT16}) {
      check_exchanges(tersum_preset_name(i), element);
    }
  }
}

TEST_CASE("[shared_library] what has changed of a state of the device is refused")
{
  for (std::size_t i = 0; i < tersum_preset_count(); ++i) { check_damage(tersum_preset_name(i)); }
}

TEST_CASE("[shared_library] calls on a device only enqueue: a graph of them gives the same bits")
{
  char const* const preset          = "rotated_sat4";
  std::vector<bytes> const expected = alone_on_host(preset);
  member const of{options_of(preset, TERSUM_CUDA), false};
  tersum_codec const* const codec = of.codec.get();
  bytes saved                     = of.save();
  tersum_seal seal{};
  cudaGraph_t graph         = nullptr;
  cudaGraphExec_t ready     = nullptr;
  void* const state         = of.state.data();
  int const refused         = TERSUM_UNSUPPORTED;
  std::string_view const by = "captured";
  require_ok(cudaStreamBeginCapture(of.on, cudaStreamCaptureModeThreadLocal));
  of.run_alone();
  // What waits would break the capture.
  CHECK(is_refused(tersum_save(codec, state, saved.data(), saved.size(), of.on), refused, by));
  CHECK(is_refused(of.load(saved), refused, by));
  CHECK(is_refused(tersum_seal_state(codec, state, &seal, of.on), refused, by));
  CHECK(is_refused(tersum_check_state(codec, state, nullptr, of.on), refused, by));
  require_ok(cudaStreamEndCapture(of.on, &graph));
  require_ok(cudaGraphInstantiate(&ready, graph, 0));
  for (int number = 0; number < 2; ++number) {
    of.gradient.write(gradient_of(0, number, TERSUM_FLOAT), of.on);
    require_ok(cudaGraphLaunch(ready, of.on));
    CHECK(of.gradient.read(of.on) == expected[static_cast<std::size_t>(number)]);
  }
  CHECK(of.save() == expected[2]);
  require_ok(cudaGraphExecDestroy(ready));
  require_ok(cudaGraphDestroy(graph));
}

TEST_CASE("[shared_library] faults have a sentence, and the next call works")
{
  char const* const preset          = "rotated_sat4";
  std::vector<bytes> const expected = alone_on_host(preset);
  member const of{options_of(preset, TERSUM_CUDA), false};
  tersum_codec const* const codec = of.codec.get();
  void* const gradient            = of.gradient.data();
  void* const state               = of.state.data();
  void* const workspace           = of.workspace.data();
  int const invalid               = TERSUM_INVALID_ARGUMENT;

  tersum_codec* unknown = nullptr;
  tersum_options o      = options_of("no_such_preset", TERSUM_CUDA);
  CHECK(is_refused(tersum_open(&o, &unknown), invalid, "preset"));
  o        = options_of(preset, TERSUM_CUDA);
  o.device = 2;
  CHECK(is_refused(tersum_open(&o, &unknown), invalid, "device"));
  CHECK(unknown == nullptr);
  CHECK(is_refused(tersum_initialize(codec, state, 1, nullptr), invalid, "stream is NULL"));
  CHECK(is_refused(
    tersum_measure(codec, gradient, state, workspace, nullptr), invalid, "stream is NULL"));
  CHECK(is_refused(tersum_check_state(codec, state, nullptr, nullptr), invalid, "stream is NULL"));
  CHECK(is_refused(
    tersum_measure(codec, of.gradient.data() + 2, state, workspace, of.on), invalid, "aligned"));
  CHECK(is_refused(
    tersum_decode(codec, gradient, state, workspace, of.on), invalid, "steps are out of order"));

  // An error of the CUDA runtime: waiting has broken the capture of this stream.
  cudaGraph_t graph = nullptr;
  require_ok(cudaStreamBeginCapture(of.on, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaStreamSynchronize(of.on) != cudaSuccess);
  CHECK(is_refused(tersum_measure(codec, gradient, state, workspace, of.on),
                   TERSUM_EXECUTION_FAILED,
                   "CUDA runtime"));
  CHECK(cudaStreamEndCapture(of.on, &graph) != cudaSuccess);

  // A sentence stays until the next fault; a call that works returns nothing of what was before.
  std::string const sentence = tersum_last_error();
  require_ok(tersum_initialize(codec, state, 42, of.on));
  for (int number = 0; number < 2; ++number) {
    of.gradient.write(gradient_of(0, number, TERSUM_FLOAT), of.on);
    of.run_alone();
    CHECK(of.gradient.read(of.on) == expected[static_cast<std::size_t>(number)]);
  }
  CHECK(of.save() == expected[2]);
  CHECK(tersum_last_error() == sentence);
}

TEST_CASE("[shared_library] the default stream has a name")
{
  char const* const preset          = "fp16";
  std::vector<bytes> const expected = alone_on_host(preset);
  member of{options_of(preset, TERSUM_CUDA), false};
  require_ok(cudaStreamSynchronize(of.on));
  of.on = cudaStreamLegacy;
  for (int number = 0; number < 2; ++number) {
    of.gradient.write(gradient_of(0, number, TERSUM_FLOAT), of.on);
    of.run_alone();
    CHECK(of.gradient.read(of.on) == expected[static_cast<std::size_t>(number)]);
  }
  CHECK(of.save() == expected[2]);
}

TEST_CASE("[shared_library] threads use one codec at the same time, each on a stream of its own")
{
  for (char const* const preset : {"rotated_sat4", "allocated_2"}) {
    CAPTURE(preset);
    constexpr int threads             = 4;
    std::vector<bytes> const expected = alone_on_host(preset);
    tersum_options const options      = options_of(preset, TERSUM_CUDA);
    codec_handle const codec          = open(options);
    std::atomic<int> wrong            = 0;
    std::vector<std::thread> running;
    for (int k = 0; k < threads; ++k) {
      running.emplace_back([&, k] {
        auto const expect = [&](bool right) { wrong += right ? 0 : 1; };
        bool const fails  = k % 2 == 1;
        member const own{options, codec, false};
        if (fails) {
          int const result = tersum_measure(codec.get(), nullptr, nullptr, nullptr, own.on);
          expect(is_refused(result, TERSUM_INVALID_ARGUMENT, "gradient"));
        }
        for (int number = 0; number < 2; ++number) {
          own.gradient.write(gradient_of(0, number, TERSUM_FLOAT), own.on);
          own.run_alone();
          expect(own.gradient.read(own.on) == expected[static_cast<std::size_t>(number)]);
        }
        expect(own.save() == expected[2]);
        expect(tersum_check_state(codec.get(), own.state.data(), nullptr, own.on) == TERSUM_OK);
        expect(own.load(expected[2]) == TERSUM_OK);
        expect(std::string_view{tersum_last_error()}.empty() == !fails);
      });
    }
    for (auto& thread : running) { thread.join(); }
    CHECK(wrong == 0);
  }
}
