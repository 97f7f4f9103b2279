// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What examples/compare_codecs reads: `.npy` files, folders of them, layers.csv.

#include "../../examples/compare_codecs/gradient_sets.cpp"
#include "../../examples/compare_codecs/npy.cpp"
#include "../../examples/compare_codecs/text.cpp"

#include <doctest/doctest.h>

#include <stdlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace cc = compare_codecs;
namespace fs = std::filesystem;

// A folder of its own for each test case, removed afterwards.
class scratch {
 public:
  scratch()
  {
    auto pattern = (fs::temp_directory_path() / "compare_codecs_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  scratch(scratch const&)            = delete;
  scratch& operator=(scratch const&) = delete;
  ~scratch()
  {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path const& folder() const { return folder_; }

  fs::path write(std::string_view name, std::string_view bytes) const
  {
    std::ofstream{folder_ / name, std::ios::binary} << bytes;
    return folder_ / name;
  }

 private:
  fs::path folder_;
};

template <typename T>
std::string raw(std::vector<T> const& values)
{
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
}

std::string npy(std::string_view header, std::string_view data, int version = 1)
{
  auto const size    = static_cast<std::uint32_t>(header.size());
  std::string result = "\x93NUMPY";
  result += {static_cast<char>(version), '\0'};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    result += static_cast<char>(size >> (8 * i) & 0xff);
  }
  return result.append(header).append(data);
}

std::string header_of(std::string_view type, std::string_view shape)
{
  return "{'descr': '" + std::string{type} +
         "', 'fortran_order': False, 'shape': " + std::string{shape} + ", }    \n";
}

std::string floats(std::vector<float> const& values)
{
  return npy(header_of("<f4", "(" + std::to_string(values.size()) + ",)"), raw(values));
}

bool contains(std::string_view text, std::string_view part)
{
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("[compare_codecs] every float16 becomes the float32 of the same value")
{
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    CAPTURE(bits);
    auto const value    = cc::float_from_half(static_cast<std::uint16_t>(bits));
    int const exponent  = static_cast<int>(bits >> 10 & 31);
    int const fraction  = static_cast<int>(bits & 1023);
    bool const negative = bits >> 15 != 0;
    REQUIRE(std::signbit(value) == negative);
    if (exponent == 31) {
      REQUIRE((fraction == 0 ? std::isinf(value) : std::isnan(value)));
    } else {
      auto const size =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      REQUIRE(static_cast<double>(value) == (negative ? -size : size));
    }
  }
}

TEST_CASE("[compare_codecs] a vector is read from every format version and every spelling")
{
  scratch const files;
  std::vector<float> const values{1, -2.5f, 0x1p-149f, std::numeric_limits<float>::max()};
  auto const data = raw(values);
  for (int const version : {1, 2, 3}) {
    auto const file = files.write("a.npy", npy(header_of("<f4", "(4,)"), data, version));
    CHECK(cc::read_npy(file).value == values);
  }
  for (std::string_view const header : {"{'shape':(4,),'fortran_order':True,'descr':'<f4'}",
                                        "{\"descr\" : \"<f4\", 'fortran_order':False , "
                                        "\"shape\": ( 4 , ) } \n"}) {
    auto const read = cc::read_npy(files.write("b.npy", npy(header, data)));
    CHECK(read.error == "");
    CHECK(read.value == values);
  }
  std::vector<std::uint16_t> const halves{0x3c00, 0xc000, 0x0001};
  auto const half = cc::read_npy(files.write("h.npy", npy(header_of("<f2", "(3,)"), raw(halves))));
  CHECK(half.value == std::vector<float>{1, -2, 0x1p-24f});
  auto const empty = cc::read_npy(files.write("e.npy", npy(header_of("<f4", "(0,)"), "")));
  CHECK(empty.error == "");
  CHECK(empty.value.empty());
}

TEST_CASE("[compare_codecs] a bad file gives one sentence that names it")
{
  scratch const files;
  auto const four = raw(std::vector<float>{1, 2, 3, 4});
  auto const good = floats({1, 2, 3, 4});
  auto const nan  = std::numeric_limits<float>::quiet_NaN();
  auto const inf  = std::numeric_limits<float>::infinity();
  struct bad_file {
    std::string bytes;
    std::string_view reason;
  };
  std::vector<bad_file> cases{
    {"", "not an .npy file"},
    {"name,rows,columns,offset\n", "not an .npy file"},
    {good.substr(0, 9), "cut short inside its header"},
    {good.substr(0, 30), "cut short inside its header"},
    {npy(header_of("<f4", "(4,)"), four, 2).substr(0, 11), "cut short inside its header"},
    {npy(header_of("<f4", "(4,)"), four, 4), "version 4.0"},
    {npy(header_of("<f4", "(4,)"), four, 0), "version 0.0"},
    {good.substr(0, good.size() - 1), "announces 4 coordinates, its data hold 3"},
    {good + '\0', "1 bytes after its last coordinate"},
    {npy(header_of("<f4", "(18446744073709551615,)"), four), "cut short"},
    {npy(header_of("<f4", "(4611686018427387908,)"), four), "cut short"},
    {npy(header_of("<f4", "(99999999999999999999,)"), four), "malformed"},
    {npy(header_of("<f4", "(-4,)"), four), "malformed"},
    {npy(header_of("<f4", "(4)"), four), "malformed"},
    {npy(header_of("<f4", "(,)"), four), "malformed"},
    {npy(header_of("<f4", "(2 2)"), four), "malformed"},
    {npy(header_of("<f4", "(2, 2)"), four), "is 2-D"},
    {npy(header_of("<f4", "()"), four), "is 0-D"},
    {npy(header_of(">f4", "(4,)"), four), "'>f4'"},
    {npy(header_of("<f8", "(2,)"), four), "'<f8'"},
    {npy(header_of("\n\x1b[2J", "(2,)"), four), "'??[2J'"},
    {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}", four), "records"},
    {npy("{'descr': '<f4', 'shape': (4,)}", four), "malformed"},
    {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (4,)}", four), "malformed"},
    {npy("{'descr': '<f4' 'fortran_order': True, 'shape': (4,)}", four), "malformed"},
    {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': True, 'shape': (4,)}", four),
     "malformed"},
    {npy("{'descr': '<f4, 'fortran_order': True, 'shape': (4,)}", four), "malformed"},
    {npy(header_of("<f4", "(4,)") + "x", four), "malformed"},
    {npy("", four), "malformed"},
    {floats({1, 2, nan, 4}), "coordinate 2"},
    {floats({1, inf, nan, 4}), "coordinate 1"},
    {npy(header_of("<f2", "(1,)"), std::string{"\0\x7c", 2}), "coordinate 0"}};
  auto huge_header = npy(header_of("<f4", "(4,)"), four, 2);
  for (std::size_t i = 8; i < 12; ++i) { huge_header[i] = '\xff'; }
  cases.push_back({huge_header, "cut short inside its header"});

  for (auto const& bad : cases) {
    auto const file = files.write("bad.npy", bad.bytes);
    auto const read = cc::read_npy(file);
    CAPTURE(bad.reason);
    CHECK_MESSAGE(contains(read.error, bad.reason), read.error);
    CHECK(read.error.starts_with(file.string() + " "));
    CHECK(read.value.empty());
  }
  // Whatever is cut off or changed in the header, the answer is a sentence or the same vector.
  for (std::size_t i = 0; i < good.size() - four.size(); ++i) {
    CHECK(!cc::read_npy(files.write("bad.npy", good.substr(0, i))));
    for (char const c : {'\0', '\xff', '(', '\'', '9', '}'}) {
      auto changed    = good;
      changed[i]      = c;
      auto const read = cc::read_npy(files.write("bad.npy", changed));
      CHECK((!read || read.value == std::vector<float>{1, 2, 3, 4}));
    }
  }
  CHECK(contains(cc::read_npy(files.folder() / "none.npy").error, "does not exist"));
  CHECK(contains(cc::read_npy(files.folder()).error, "is not a file"));
}

TEST_CASE("[compare_codecs] numbers in names are ordered by value")
{
  std::vector<std::string> const ordered{"",
                                         "a",
                                         "a01",
                                         "a1",
                                         "a2",
                                         "a10",
                                         "a10b",
                                         "b",
                                         "step020",
                                         "step20",
                                         "step300",
                                         "step99999999999999999998",
                                         "step99999999999999999999"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) {
      CAPTURE(ordered[i]);
      CAPTURE(ordered[j]);
      CHECK(cc::natural_less(ordered[i], ordered[j]) == (i < j));
    }
  }
}

TEST_CASE("[compare_codecs] files are grouped by set and read in the order of the workers")
{
  scratch const files;
  CHECK(contains(cc::list_gradient_sets(files.folder(), {}).error, "has no file named"));
  CHECK(contains(cc::list_gradient_sets(files.folder() / "none", {}).error, "cannot list"));
  for (auto const* const other : {"README", "a_worker.npy", "a_worker1.npz", "a_worker1x.npy"}) {
    files.write(other, "");
  }
  CHECK(contains(cc::list_gradient_sets(files.folder(), {}).error, "has no file named"));
  for (auto const* const meant :
       {"_worker0.npy", "a_worker-1.npy", "a_worker1.5.npy", "a_worker 1.npy"}) {
    scratch const misnamed;
    misnamed.write(meant, "");
    CHECK(contains(cc::list_gradient_sets(misnamed.folder(), {}).error, "is no worker's"));
  }

  for (int worker = 0; worker < 11; ++worker) {
    auto const end = "_worker" + std::to_string(worker) + ".npy";
    files.write("step300" + end, floats({static_cast<float>(worker), 1}));
    if (worker < 2) { files.write("step20" + end, floats({1, 2, 3})); }
  }
  auto const sets = cc::list_gradient_sets(files.folder(), {});
  REQUIRE(sets.error == "");
  REQUIRE(sets.value.size() == 2);
  CHECK(sets.value[0].name == "step20");
  CHECK(sets.value[1].name == "step300");
  auto const read = cc::read_gradient_set(sets.value[1]);
  REQUIRE(read.value.size() == 11);
  CHECK(read.value[10] == std::vector<float>{10, 1});

  auto const two = cc::list_gradient_sets(files.folder(), 2);
  REQUIRE(two.value.size() == 2);
  CHECK(two.value[1].files.size() == 2);
  CHECK(contains(cc::list_gradient_sets(files.folder(), 3).error, "step20 has 2 worker files"));

  files.write("step20_worker1.npy", floats({1, 2}));
  CHECK(contains(cc::read_gradient_set(sets.value[0]).error, "step20_worker1.npy has 2"));
  files.write("step20_worker1.npy", floats({}));
  CHECK(contains(cc::read_gradient_set(sets.value[0]).error, "has no coordinates"));
  files.write("step20_worker01.npy", floats({1, 2}));
  CHECK(contains(cc::list_gradient_sets(files.folder(), {}).error, "are the same worker"));
  fs::remove(files.folder() / "step20_worker01.npy");
  fs::remove(files.folder() / "step300_worker4.npy");
  CHECK(
    contains(cc::list_gradient_sets(files.folder(), {}).error, "step300_worker4.npy is missing"));
  files.write("x_worker99999999999999999999.npy", "");
  CHECK(!cc::list_gradient_sets(files.folder(), {}));
}

TEST_CASE("[compare_codecs] layers must cover the gradient exactly")
{
  scratch const files;
  CHECK(cc::read_layers(files.folder(), 10).error == "");
  CHECK(cc::read_layers(files.folder(), 10).value.empty());
  auto const read = [&files](std::string const& rows,
                             std::string const& first = "name,rows,columns,offset\n") {
    files.write("layers.csv", first + rows);
    return cc::read_layers(files.folder(), 10);
  };
  auto const good = read("b,2,2,6\r\na,x,3,2,0\n\n", "name,rows,columns,offset\r\n");
  REQUIRE(good.error == "");
  REQUIRE(good.value.size() == 2);
  CHECK(good.value[0].name == "a,x");
  CHECK(good.value[1].offset == 6);
  CHECK(read("a,5,2,0").error == "");
  for (auto const* const rows : {"",
                                 "a,5,2",
                                 "a,5,2,0,",
                                 "a,5,2,-1\n",
                                 "a,5,2.0,0\n",
                                 "a,0,2,0\na,5,2,0\n",
                                 "a,4,2,0\n",
                                 "a,6,2,0\n",
                                 "a,2,2,0\nb,2,2,6\n",
                                 "a,3,2,0\nb,3,2,4\n",
                                 "a,5,2,1\n",
                                 "a,4294967296,4294967296,0\n",
                                 "a,2,2,0\nb,9223372036854775807,2,4\n"}) {
    CAPTURE(rows);
    CHECK(read(rows).error.starts_with((files.folder() / "layers.csv").string()));
  }
  CHECK(contains(read("a,5,2,0\n", "").error, "does not start with"));
}
