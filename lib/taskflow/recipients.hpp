// The processes that read one version of data, as the process that sends it knows them (Swartvagher 2022, section 4.2.1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace elbowroom::taskflow {

struct Destination {
  std::int32_t rank = 0;
  std::int32_t priority = 0;
};

struct Counters {
  std::uint64_t tasks = 0;       // executed here
  std::uint64_t data = 0;        // versions that other processes read
  std::uint64_t broadcasts = 0;  // versions that several others read
  std::uint64_t complete = 0;    // of these, sent to all at once
  std::uint64_t late = 0;        // recipients that came after their version was sent
  std::uint64_t messages = 0;    // point-to-point messages that would be needed without broadcasts
  std::uint64_t most = 0;        // recipients of one version
};

struct Recipients {
  enum class Added : std::uint8_t { kKnown, kGathered, kLate };

  // A process reads the version; `late` where the bag was sent already. Of one that is known, the priority may rise.
  Added add(int rank, int priority, int processes, bool late, Counters& counters) {
    holders.resize(static_cast<std::size_t>(processes));
    if (holders[static_cast<std::size_t>(rank)]) {
      for (Destination& known : bag) {
        if (known.rank == rank) known.priority = std::max(known.priority, priority);
      }
      return Added::kKnown;
    }
    holders[static_cast<std::size_t>(rank)] = true;
    count_one(late, counters);
    if (late) return Added::kLate;
    bag.push_back({rank, priority});
    return Added::kGathered;
  }

  std::vector<Destination> bag;  // not sent to yet
  std::vector<bool> holders;     // by rank; empty: none
  std::size_t count = 0;
  bool complete = true;  // none was late

 private:
  void count_one(bool late, Counters& counters) {
    ++count;
    ++counters.messages;
    counters.data += count == 1;
    counters.broadcasts += count == 2;
    counters.complete += count == 2 && complete && !late;
    counters.most = std::max<std::uint64_t>(counters.most, count);
    if (!late) return;
    ++counters.late;
    counters.complete -= count > 2 && complete;
    complete = false;
  }
};

}  // namespace elbowroom::taskflow
