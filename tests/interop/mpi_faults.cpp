// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Three ranks over MPI, the last of which is late, stopped, killed, or has another plan, in each way of exchange. What
//! must hold: nobody hangs or dies with it, all who miss it are told, and no gradient is lost. No verdict depends on a time,
//! but that each rank has two minutes. Start it with mpirun --enable-recovery.
//!
//!     tersum.test.interop.mpi_faults late|too_late|stopped|killed|refused

#include <tersum/interop/mpi.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <interop/faults.hpp>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace tersum;
using tests::way;
using namespace std::chrono_literals;

// Two transports for each way, made while all ranks live, and never destroyed: MPI may hold their memory.
struct transports {
  explicit transports(std::chrono::milliseconds timeout)
    : one(MPI_COMM_WORLD, timeout), two(MPI_COMM_WORLD, timeout)
  {
  }
  mpi_transport one, two;
};

bool with_threads = false;

std::vector<way> forms()
{
  std::vector<way> all;
  for (way const how : tests::all_forms) {
    if (how != way::in_pieces || with_threads) { all.push_back(how); }
  }
  return all;
}

class rank_of_three {
 public:
  explicit rank_of_three(tests::fault_name fault) : fault_(std::move(fault))
  {
    MPI_Comm_rank(MPI_COMM_WORLD, &me_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  int run()
  {
    int const pid = static_cast<int>(getpid());
    pids_.resize(static_cast<std::size_t>(ranks_));
    MPI_Allgather(&pid, 1, MPI_INT, pids_.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::vector<transports*> over;
    for (way const how : forms()) {
      over.push_back(new transports(tests::fails(fault_, how) ? 400ms : 60s));
    }
    for (std::size_t k = 0; k < forms().size(); ++k) { attempt(forms()[k], *over[k]); }
    finish();
    return failures_;
  }

 private:
  [[nodiscard]] bool is_last() const { return me_ == ranks_ - 1; }

  void misbehave()
  {
    if (!is_last()) { return; }
    if (fault_ == "late") { std::this_thread::sleep_for(200ms); }
    if (fault_ == "killed") { std::raise(SIGKILL); }
    if (misbehaved_) { return; }
    misbehaved_ = true;
    if (fault_ == "stopped") { std::raise(SIGSTOP); }
    if (fault_ == "too_late") {  // until the others have given up in every form
      for (int k = 0; k < ranks_ - 1; ++k) {
        MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
  }

  void attempt(way how, transports const& over)
  {
    // The last one finds messages of those that have given up.
    failures_ += tests::check_fault(
      fault_,
      how,
      tests::forget_type(over.one),
      tests::forget_type(over.two),
      !is_last(),
      [this] { misbehave(); },
      [&] { return over.one.check().ok() && over.two.check().ok(); });
  }

  // Leaves nobody behind.
  void finish()
  {
    constexpr int done = 1, over = 2;
    int const last = ranks_ - 1;
    if (fault_ == "killed") {
      if (is_last()) { std::raise(SIGKILL); }  // it was the others that were late
      return;
    }
    if (fault_ == "too_late" && !is_last()) {
      MPI_Send(nullptr, 0, MPI_INT, last, done, MPI_COMM_WORLD);
    }
    if (fault_ == "stopped" && me_ == 0) {
      // Until it says that it has ended: it may stop only now, where the others gave up before.
      int ended = 0;
      while (ended == 0) {
        kill(static_cast<pid_t>(pids_.back()), SIGCONT);
        std::this_thread::sleep_for(50ms);
        MPI_Iprobe(last, over, MPI_COMM_WORLD, &ended, MPI_STATUS_IGNORE);
      }
    }
    if (is_last()) {
      for (int k = 0; k < last; ++k) { MPI_Send(&failures_, 1, MPI_INT, k, over, MPI_COMM_WORLD); }
    } else {
      int others = 0;
      MPI_Recv(&others, 1, MPI_INT, last, over, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      failures_ += others;
    }
  }

  tests::fault_name fault_;
  int me_ = 0, ranks_ = 1, failures_ = 0;
  bool misbehaved_ = false;
  std::vector<int> pids_;
};

}  // namespace

int main(int argc, char** argv)
{
  alarm(120);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  with_threads = provided == MPI_THREAD_MULTIPLE;
  if (argc != 2) { return std::printf("which fault?\n"), 1; }
  rank_of_three here{argv[1]};
  int const failures = here.run();
  int rank           = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (failures == 0) { std::printf("rank %d, %s, each form: ok\n", rank, argv[1]); }
  std::fflush(stdout);
  _exit(failures == 0 ? 0 : 1);  // MPI_Finalize would wait for calls that did not end
}
