// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a kernel must not do is found, and what it may do is not.

#include "run_ptx.hpp"

#include <doctest/doctest.h>

using namespace tersum::simulator;

static bool says(std::string const& text, std::string const& part)
{
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

// To and from a word of shared memory for each thread, at `from` bytes from its own.
static std::string const to_shared =
  "mov.u32 %r1, memory; add.s32 %r2, %r1, %at; st.shared.u32 [%r2], %tid;";
static std::string const of_other =
  "xor.b32 %r3, %at, 4; add.s32 %r4, %r1, %r3; ld.shared.u32 %r5, [%r4];";

TEST_CASE("[simulator] accesses outside of an allocation")
{
  CHECK(fault_of("st.global.u32 [%mine], %tid;", 64, 64) == "");
  CHECK(says(fault_of("st.global.u32 [%mine], %tid;", 65, 64), "accesses global memory at"));
  CHECK(says(fault_of("st.global.u32 [%mine+-4], %tid;", 1), "no allocation"));
  CHECK(says(fault_of("mov.u64 %rd1, 0; st.global.u32 [%rd1], %tid;", 1),
             "at 0x0, which is no allocation"));
  CHECK(says(fault_of("st.global.u64 [%out+256], %mine;", 1, 65),
             "accesses 8 bytes at 256 of an allocation of 260"));
}

TEST_CASE("[simulator] memory that is mapped once more is the same, and has the same bounds")
{
  device_words const first{1}, second{2};
  auto& memory           = global_memory::get();
  std::uint64_t const at = memory.reserve(2);
  memory.map(at, first.data());
  memory.map(at + (std::uint64_t{1} << 32), second.data());
  auto const to = [&](std::uint64_t rank, std::uint64_t byte) {
    return sentence(
      "mov.u64 %rd1, ", at + (rank << 32) + byte, "; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;");
  };
  CHECK(fault_of(to(1, 4), 1) == "");
  CHECK(second.data()[1] == 7);
  CHECK(says(fault_of(to(0, 4), 1), "which is no allocation"));
  CHECK(says(fault_of(to(2, 0), 1), "where nothing is mapped"));
  memory.unmap(at + (std::uint64_t{1} << 32));
  CHECK(says(fault_of(to(1, 4), 1), "where nothing is mapped"));
}

TEST_CASE("[simulator] accesses outside of shared memory, local memory and parameters")
{
  CHECK(fault_of(to_shared, 32, 1, 128) == "");
  CHECK(says(fault_of(to_shared, 33, 1, 128),
             "accesses 4 bytes of shared memory at 128; the block has 128"));
  CHECK(says(fault_of("ld.param.u32 %r1, [k_param_0+8];", 1), "outside the parameters"));
  std::string const local =
    ".local .align 4 .b8 depot[8]; mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1;";
  CHECK(fault_of(local + "st.local.u32 [%rd1+4], %tid; ld.u32 %r1, [%rd2+4];") == "");
  CHECK(says(fault_of(local + "st.local.u32 [%rd1+8], %tid;"), "outside its own local memory"));
  CHECK(
    says(fault_of(local + "ld.local.u32 %r1, [%rd1];"), "local memory that it has not written"));
}

TEST_CASE("[simulator] accesses that are not aligned")
{
  CHECK(says(fault_of("st.global.u32 [%out+2], %tid;", 1), "4 bytes at an address that is 2 past"));
  CHECK(says(fault_of("st.global.v2.u32 [%out+4], {%tid, %tid};", 1),
             "8 bytes at an address that is 4 past"));
  CHECK(says(fault_of(to_shared + "ld.shared.u16 %h1, [%r2+1];", 1),
             "2 bytes at an address that is 1 past"));
}

TEST_CASE("[simulator] reads of what nobody has written")
{
  CHECK(fault_of("st.global.u32 [%mine], %tid; ld.global.u32 %r1, [%mine];") == "");
  CHECK(says(fault_of("ld.global.u32 %r1, [%mine];"), "global memory that nobody has written"));
  CHECK(
    says(fault_of("st.global.u16 [%mine], 1; ld.global.u32 %r1, [%mine];"), "nobody has written"));
  CHECK(says(fault_of("red.global.add.u32 [%out], 1;"), "nobody has written"));
  CHECK(says(fault_of("mov.u32 %r1, memory; ld.shared.u32 %r2, [%r1];"),
             "shared memory that nobody has written"));
  CHECK(says(fault_of("mov.u32 %r1, memory; atom.shared.add.u32 %r2, [%r1], 1;"),
             "nobody has written"));
}

TEST_CASE("[simulator] races between warps")
{
  // Thread t reads what thread t + 32 wrote.
  std::string const others =
    "xor.b32 %r3, %at, 128; add.s32 %r4, %r1, %r3; ld.shared.u32 %r5, [%r4];";
  CHECK(fault_of(to_shared + "bar.sync 0;" + others, 64) == "");
  CHECK(
    says(fault_of(to_shared + "bar.sync 0; st.shared.u32 [%r2], %tid;" + others, 64), "a race"));
  CHECK(says(fault_of(to_shared + "bar.warp.sync -1;" + others, 64),
             "nobody has written"));  // warp 0 is first
  // The write after the reads needs a barrier of its own.
  CHECK(fault_of(to_shared + "bar.sync 0;" + others + "bar.sync 0; st.shared.u32 [%r2], %r5;",
                 64) == "");
  CHECK(
    says(fault_of(to_shared + "bar.sync 0;" + others + "st.shared.u32 [%r2], %r5;", 64), "a race"));
  // Every other epoch begins with the last warp: here it reads, and the first one writes.
  CHECK(
    says(fault_of(to_shared +
                    "setp.lt.u32 %p1, %tid, 32; xor.b32 %r3, %at, 128; add.s32 %r4, %r1, %r3;"
                    "bar.sync 0; @!%p1 ld.shared.u32 %r5, [%r4]; @%p1 st.shared.u32 [%r2], %tid;",
                  64),
         "read with no barrier"));
  CHECK(says(fault_of("mov.u32 %r1, memory; st.shared.u32 [%r1], %tid;", 64), "a race"));
  std::string const zero =
    "mov.u32 %r1, memory; setp.eq.s32 %p1, %tid, 0; @%p1 st.shared.u32 [%r1], 0;";
  CHECK(fault_of(zero + "bar.sync 0; atom.shared.add.u32 %r2, [%r1], 1;", 64) == "");
  CHECK(says(fault_of(zero + "atom.shared.add.u32 %r2, [%r1], 1;", 64), "a race"));
}

TEST_CASE("[simulator] races within a warp")
{
  CHECK(fault_of(to_shared + "bar.warp.sync -1;" + of_other) == "");
  CHECK(says(fault_of(to_shared + of_other), "a race within the warp"));
  // A shuffle lets lanes meet, but orders no memory.
  CHECK(says(fault_of(to_shared + "shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;" + of_other),
             "a race within the warp"));
  CHECK(says(fault_of(to_shared + "bar.warp.sync -1;" + of_other + "st.shared.u32 [%r2], %r5;"),
             "read with no barrier"));
  CHECK(fault_of(to_shared + "bar.warp.sync -1;" + of_other +
                 "bar.warp.sync -1; st.shared.u32 [%r2], %r5;") == "");
}

TEST_CASE("[simulator] barriers that not all reach")
{
  std::string const half = "and.b32 %r1, %tid, 16; setp.eq.s32 %p1, %r1, 0;";
  CHECK(
    says(fault_of(
           half +
           "@%p1 bra $on; bar.warp.sync -1; $on: mov.u32 %r1, 0; bar.warp.sync 65535; bar.sync 0;"),
         "a deadlock"));
  CHECK(says(fault_of(half + "@%p1 bra $on; bar.sync 0; bra $out; $on: bar.sync 0; $out:"),
             "a deadlock"));
  CHECK(says(
    fault_of(
      "and.b32 %r1, %tid, 32; setp.eq.s32 %p1, %r1, 0; @%p1 bra $on; bar.sync 1; bra $out; $on: bar.sync 2; $out:",
      64),
    "a deadlock: warps wait at barriers 2 and 1"));
  // Whoever has left is not waited for.
  CHECK(fault_of(half + "@%p1 ret; bar.warp.sync -1; bar.sync 0;") == "");
  CHECK(says(fault_of("bar.warp.sync 1;"), "do not name themselves"));
  CHECK(says(fault_of(half + "@%p1 ret; shfl.sync.bfly.b32 %r2, %tid, 16, 31, -1;"),
             "does not take part"));
}

TEST_CASE("[simulator] a launch that overlaps the kernel before waits for it first, in each thread")
{
  auto const overlapping = [](std::string const& body, std::uint32_t blocks = 1) {
    return fault_of(body, 32, 64, 0, blocks, true);
  };
  std::string const wait = "griddepcontrol.wait;", store = "st.global.u32 [%mine], %tid;";
  CHECK(overlapping(wait + store, 2) == "");
  CHECK(says(overlapping(store + wait),
             "accesses global memory before it waits for the kernel before"));
  CHECK(says(overlapping(""), "ends before it waits for the kernel before"));
  CHECK(says(overlapping("griddepcontrol.launch_dependents;"), "ends before it waits"));
  CHECK(says(overlapping("setp.lt.u32 %p1, %tid, 16; @%p1 griddepcontrol.wait;"), "thread 16 at"));
  CHECK(says(overlapping("mov.u32 %r1, %ctaid.x; setp.eq.s32 %p1, %r1, 0; @%p1 " + wait, 2),
             "block (1, 0, 0)"));
  // Without overlap there is nothing to wait for, and it may be asked all the same.
  CHECK(fault_of(store) == "");
  CHECK(fault_of(store + wait + "griddepcontrol.launch_dependents;") == "");
  CHECK(says(fault_of("griddepcontrol.launch;"), "does not know the opcode griddepcontrol.launch"));
}

TEST_CASE("[simulator] what it does not know it names")
{
  CHECK(says(fault_of("sin.approx.f32 %f1, %f2;"), "does not know the opcode sin.approx.f32"));
  CHECK(says(fault_of("mov.u32 %r1, nothing;"), "nothing is not known"));
  for (std::string const name : {"%clock", "%smid", "%cluster_ctaid.x", "%r40", "%r", "%tid2"}) {
    CHECK(says(fault_of("mov.u32 %r1, " + name + ";"), name + " is not known"));
  }
  CHECK(says(fault_of("bra $nowhere;"), "there is no label $nowhere"));
  CHECK(says(fault_of("add.s32 %r1, %r2;"), "it has 2 operands"));
}

TEST_CASE("[simulator] products and sums that may be rounded as one")
{
  auto const found = [](std::string const& body) {
    loaded_module module{one_kernel(body)};
    return module.kernel("k").contractions.size();
  };
  CHECK(found("mul.f32 %f1, %f2, %f3; add.f32 %f4, %f5, %f1;") == 1);
  CHECK(
    found("mul.f32 %f1, %f2, %f3; neg.f32 %f6, %f1; mov.f32 %f7, %f6; sub.f32 %f4, %f7, %f5;") ==
    1);
  CHECK(found("mul.f64 %rd1, %rd2, %rd3; add.f64 %rd4, %rd1, %rd5;") == 1);
  CHECK(found("mul.rn.f32 %f1, %f2, %f3; add.f32 %f4, %f5, %f1;") == 0);
  CHECK(found("mul.f32 %f1, %f2, %f3; add.rn.f32 %f4, %f5, %f1;") == 0);
  CHECK(found("mul.f32 %f1, %f2, %f3; add.f32 %f4, %f5, %f6;") == 0);
}
