// An operation of MPI beside a fixed amount of computation: what is requested, what is recorded of an iteration, and
// what the messages hold. Nothing here needs MPI.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace elbowroom {

struct Placement;
struct Request;
struct Site;

enum class Operation { pingpong, exchange, bcast, reduce, allreduce, allgather, alltoall, reduce_scatter, barrier };
enum class Form { blocking, nonblocking, persistent };
// Who lets a message progress while the rank computes: nobody before the final wait, the computing thread by a call of
// MPI_Test now and then, a thread of ours on a core of its own, or the library as it was started.
enum class Progress { none, test, thread, library };

std::string name_of(Operation operation);
std::string name_of(Form form);

bool is_collective(Operation operation);
bool reduces(Operation operation);

struct Overlap {
  Operation operation = Operation::allreduce;
  Form form = Form::nonblocking;
  Progress progress = Progress::none;
  int neighbours = 2;               // of an exchange: messages that each rank sends
  double period = 20e-6;            // s between two calls of MPI_Test
  std::vector<int> progress_cores;  // of the progress threads, by rank
  double ratio = 1;                 // duration of the computation alone over that of the operation alone
  std::int64_t iterations = 0;      // of each kind in a repetition; 0: as many as the window has room for
  int late_rank = -1;               // planted: this rank starts each operation late
  double late_seconds = 0;
};

// Bytes of the memory that a rank sends from and receives into.
struct OverlapBytes {
  std::int64_t sent = 0;
  std::int64_t received = 0;
  std::int64_t all() const { return sent + received; }
};
OverlapBytes overlap_bytes(const Overlap& overlap, std::int64_t size, int ranks);

// Where the neighbours of an exchange are: message j goes to rank + offset(j), and comes from rank - offset(j).
int neighbour_offset(int j, int ranks);

// One kind of iteration: the operation alone, the computation alone, both.
enum class Kind { message, computation, together };
inline constexpr std::array<Kind, 3> kKinds = {Kind::message, Kind::computation, Kind::together};

// What one rank did in one iteration. Times are ns of the host's clock; what an iteration of that kind has not is 0.
struct Visit {
  std::int64_t enter = 0;     // before the call that starts the operation, or before the computation
  std::int64_t posted = 0;    // the starting call has returned
  std::int64_t computed = 0;  // the last core has finished the computation
  std::int64_t leave = 0;     // the operation, and the computation, are complete
  std::int64_t tests = 0;     // calls of MPI_Test
  std::int64_t tests_ns = 0;  // in them
};

// The kinds of all iterations in the order of measuring: forwards and backwards in turn, so that what drifts meets all
// kinds alike. Without a computation only messages.
std::vector<Kind> iteration_order(std::int64_t iterations, bool computing);

// Iterations of each kind that fit into `window` seconds of one kind.
std::int64_t iterations_in(double window, double seconds);

// Two comparisons of a host's clock with the reference's: of `local` ns, `offset` ns more.
struct ClockPair {
  std::int64_t local_before = 0;
  std::int64_t offset_before = 0;
  std::int64_t local_after = 0;
  std::int64_t offset_after = 0;
  std::int64_t bound = 0;  // ns, the larger half width of both
  // The reference's time, ns; the offset between both comparisons is taken to change evenly.
  std::int64_t common(std::int64_t local) const;
};

// Visits by kind, [iteration][rank], on one clock.
using Visits = std::array<std::vector<std::vector<Visit>>, 3>;

// Seconds of each iteration from the last arrival to the last departure; of a computation beside an operation (`inner`)
// that of the slowest rank.
std::vector<double> durations(const std::vector<std::vector<Visit>>& visits);
std::vector<double> inner_durations(const std::vector<std::vector<Visit>>& visits);

// Whether no rank left a barrier before the last one entered it; `bound` ns of error.
bool barrier_holds(const std::vector<Visit>& iteration, std::int64_t bound);

// Contents. Operations that move bytes carry fill_message()'s of message_seed(); those that reduce carry floats.
std::uint64_t message_seed(std::uint64_t seed, int from, int to);
// Elements that are written anew for each operation: at most 16, first and last included.
std::vector<std::size_t> stamped_elements(std::size_t count);
// What rank `rank` contributes at an element, and the sum over all ranks; small whole numbers, so that sums are exact.
float contribution(std::size_t element, int rank, std::uint64_t seed);
float contributions(std::size_t element, int ranks, std::uint64_t seed);
// The elements of a reduce-scatter that rank `rank` receives: first and how many.
std::pair<std::size_t, std::size_t> share_of(std::size_t count, int rank, int ranks);

// Checks of a request with an operation beside a computation: what needs no machine, what concerns all ranks, what concerns
// one rank's host. All throw RequestError.
void check_overlap(const Request& request);
void check_overlap_job(const Request& request, const std::vector<std::string>& hosts);
void check_overlap_site(const Request& request, const Placement& placement, const Site& site, int rank, int ranks,
                        int sharers);

}  // namespace elbowroom
