// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of mpi.hpp.

namespace tersum::inline v0 {

inline mpi_transport::mpi_transport(MPI_Comm communicator,
                                    std::chrono::milliseconds timeout) noexcept
  : timeout_(timeout)
{
  made_   = own_.make(communicator);
  failed_ = made_.code == error_code::transport_failed;
  counts_.reset(new (std::nothrow) int[4 * static_cast<std::size_t>(size())]);
  words_.reset(new (std::nothrow) std::uint64_t[2]{});
}

inline mpi_transport::~mpi_transport()
{
  if (failed_) {
    static_cast<void>(counts_.release());  // perhaps still read
    static_cast<void>(words_.release());   // and written
  } else if (own_.comm != MPI_COMM_NULL) {
    MPI_Comm_free(&own_.comm);
  }
}

inline status mpi_transport::check() const noexcept
{
  if (!made_.ok()) { return made_; }
  if (counts_ == nullptr || words_ == nullptr) {
    return {error_code::transport_failed, "no memory for the counts of MPI's collectives"};
  }
  if (failed_) {
    return {error_code::transport_failed,
            "an earlier call of MPI failed or did not end in time: make a new transport"};
  }
  return refused_;
}

inline status mpi_transport::exchange_word(int to,
                                           std::uint64_t value,
                                           int from,
                                           std::uint64_t& received) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  // Into memory that stays: otherwise a word that comes after the timeout would be written to the caller's stack.
  words_[0] = value;
  MPI_Request both[2]{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int error = MPI_Irecv(&words_[1], 1, MPI_UINT64_T, from, 0, own_.comm, &both[0]);
  if (error == MPI_SUCCESS) {
    error = MPI_Isend(&words_[0], 1, MPI_UINT64_T, to, 0, own_.comm, &both[1]);
  }
  status const s = finish(error, both, 2);
  if (s.ok()) { received = words_[1]; }
  return s;
}

inline status mpi_transport::all_to_all(std::byte const* data,
                                        rank_blocks const& blocks,
                                        std::byte* received) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  auto const ranks = static_cast<std::size_t>(size());
  if (blocks.count > most - ranks || blocks.size(rank()) > most / ranks) { return too_large(); }
  mpi_element_type const element(blocks.element_bytes);
  if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
  int* const sizes   = counts_.get();
  int* const offsets = sizes + size();
  int* const here    = offsets + size();
  int* const places  = here + size();
  for (int k = 0; k < size(); ++k) {
    sizes[k]   = static_cast<int>(blocks.size(k));
    offsets[k] = static_cast<int>(blocks.begin(k));
    here[k]    = static_cast<int>(blocks.size(rank()));
    places[k]  = k * here[k];
  }
  MPI_Datatype const type = element.get();
  return call(
    MPI_Alltoallv, MPI_Ialltoallv, data, sizes, offsets, type, received, here, places, type);
}

inline status mpi_transport::all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  if (blocks.count > most - static_cast<std::size_t>(size())) { return too_large(); }
  mpi_element_type const element(blocks.element_bytes);
  if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
  int* const sizes   = counts_.get();
  int* const offsets = sizes + size();
  for (int k = 0; k < size(); ++k) {
    sizes[k]   = static_cast<int>(blocks.size(k));
    offsets[k] = static_cast<int>(blocks.begin(k));
  }
  return call(MPI_Allgatherv,
              MPI_Iallgatherv,
              MPI_IN_PLACE,
              0,
              MPI_DATATYPE_NULL,
              data,
              sizes,
              offsets,
              element.get());
}

template <reduce_op Op>
requires(!has_combine_at<Op>) status mpi_transport::all_reduce(wire<Op> const& round)
const noexcept
{
  return with_op<Op>([&](MPI_Datatype type, MPI_Op op) {
    constexpr std::size_t piece = std::size_t{1} << 30;  // MPI counts in int
    status outcome;
    for (std::size_t begin = 0; begin < round.count && outcome.ok(); begin += piece) {
      auto const here = static_cast<int>(std::min(round.count - begin, piece));
      outcome =
        call(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, round.data + begin, here, type, op);
    }
    return outcome;
  });
}

template <class Op, class Body>
status mpi_transport::with_op(Body const& body) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  if constexpr (mpi_knows<Op>) {
    return body(mpi_native_type<typename Op::element>(), mpi_native_op<Op>());
  } else {
    mpi_element_type const element(sizeof(typename Op::element));
    mpi_op<Op> const op;
    if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
    if (op.error() != MPI_SUCCESS) { return answer(op.error()); }
    return body(element.get(), op.get());
  }
}

template <reduce_op Op, class Parts>
requires(!has_combine_at<Op>) status mpi_transport::reduce_scatter(
  summed_wire_of<Op, Parts> const& round)
const noexcept
{
  return with_op<Op>([&](MPI_Datatype type, MPI_Op op) {
    if (round.count > most) { return too_large(); }
    int* const sizes = counts_.get();
    for (int k = 0; k < size(); ++k) { sizes[k] = static_cast<int>(round.size(k)); }
    return call(MPI_Reduce_scatter, MPI_Ireduce_scatter, round.data, round.sum, sizes, type, op);
  });
}

template <class Blocking, class Started, class... Args>
status mpi_transport::call(Blocking blocking, Started started, Args... args) const noexcept
{
  if (!limited()) { return answer(blocking(args..., own_.comm)); }
  MPI_Request request = MPI_REQUEST_NULL;
  int const error     = started(args..., own_.comm, &request);
  return finish(error, &request, 1);
}

inline status mpi_transport::finish(int error, MPI_Request* requests, int count) const noexcept
{
  if (error == MPI_SUCCESS && !limited()) {
    return answer(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
  }
  auto const end = std::chrono::steady_clock::now() + timeout_;
  int done       = 0;
  while (error == MPI_SUCCESS && done == 0 && std::chrono::steady_clock::now() < end) {
    error = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
  }
  if (error == MPI_SUCCESS && done == 0) {
    failed_ = true;
    return {error_code::transport_failed,
            "MPI did not end within the timeout: a rank is gone or late"};
  }
  return answer(error);
}

inline status mpi_transport::answer(int error) const noexcept
{
  if (error != MPI_SUCCESS) { failed_ = true; }
  return detail::mpi_duplicate::of(error);
}

inline status mpi_transport::too_large() noexcept
{
  return {error_code::unsupported,
          "MPI moves at most 2^31 - 1 elements at once: exchange the gradient in parts"};
}

}  // namespace tersum::inline v0
