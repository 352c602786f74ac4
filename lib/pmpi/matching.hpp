// Which message a receive got: numbers that sender and receiver give it alike, without a word between them.
//
// A sender numbers its messages in the order it posts them, for each communicator, destination and tag. MPI matches the
// messages of one sender, communicator and tag in that order, and receives that could have the same message in the order they
// were posted (MPI 4.0, section 3.5). So of the receives that got messages of one sender and tag, the k-th by posting got the
// k-th message, in whichever order they complete.
//
// What a pending receive with MPI_ANY_SOURCE or MPI_ANY_TAG will get is not known before it completes. One that was posted
// before a receive that completes now is asked (MPI_Request_get_status); while it is not complete, it is taken not to have
// got a message of the same sender and tag. Where it did (a long message is still on its way, and a later one was faster),
// the two receives have each other's number: `swapped` counts them. No MPI here: handles are numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pmpi/counts.hpp"

namespace elbowroom::pmpi {

constexpr int kAny = std::numeric_limits<int>::min();  // any source, any tag

// A receive that was posted; `serial` is its place in the order of posting.
struct Posted {
  std::uint64_t serial = 0;
  int source = kAny;
  int tag = kAny;

  bool wild() const { return source == kAny || tag == kAny; }
};

// Receives of one communicator in one process.
class Matching {
 public:
  // The source and tag of what a pending receive got, if it is complete.
  using Ask = std::function<std::optional<std::pair<int, int>>(const Posted& receive, std::uintptr_t request)>;

  // The next place in the order of posting, for a receive that nothing can overtake before it completes.
  Posted place(int source, int tag) { return {++posted_, source, tag}; }
  // The same, and it is pending from now on.
  Posted post(int source, int tag);
  // By which request a pending receive of any source or tag can be asked; 0, its state before, is not asked.
  void name(const Posted& receive, std::uintptr_t request);
  // A receive got a message of `source` and `tag`: its number, from 1.
  std::uint32_t complete(const Posted& receive, int source, int tag, const Ask& ask);
  // It got none, and never will.
  void cancel(const Posted& receive) { remove(receive); }

  std::uint64_t swapped() const { return swapped_; }

  static constexpr std::size_t kFewStreams = 1024;

 private:
  struct Wild {
    Posted receive;
    std::uintptr_t request;
  };
  // Messages of one source and tag: receives for just these, pending, by place; numbers that are given. Where nothing is
  // pending, the count of messages says it all.
  struct Stream {
    std::vector<std::uint64_t> pending;
    std::uint32_t free = 1;            // the least number that nobody has
    std::vector<std::uint32_t> given;  // those above it that somebody has, ascending
    std::uint32_t highest = 0;         // of all numbers given, and the last place of those that raised it
    std::uint64_t latest = 0;

    std::uint32_t take(std::size_t after);
  };

  Stream& stream(int source, int tag);
  void remove(const Posted& receive);
  std::vector<Wild>::iterator find(const Posted& receive);
  // Keeps of streams where nothing is pending their counts only.
  void fold_idle();

  std::unordered_map<std::uint64_t, Stream, Mixed> streams_;
  std::size_t most_streams_ = kFewStreams;  // before they are folded
  Counts counts_;                           // of other streams
  std::vector<Wild> wild_;                  // pending, by place
  std::uint64_t posted_ = 0;
  std::uint64_t swapped_ = 0;
};

}  // namespace elbowroom::pmpi
