// Which cores the threads of a job share.
#pragma once

#include <string>
#include <vector>

#include "common/gate.hpp"
#include "common/settings.hpp"

namespace elbowroom::program {

// The cores of one rank, by the operating system's numbers of their first processing units.
struct Seat {
  std::string host;
  std::vector<int> comp_cores;
  std::vector<int> comm_cores;
};

// What a rank shares with the others of its host, and with itself.
struct Sharing {
  bool computing = false;           // a computing thread has not its core to itself: what is measured is the scheduler
  bool communicating = false;       // a communication thread has not
  Waiting waiting = Waiting::spin;  // how communication threads wait
  std::vector<int> cores;           // those of the rank that are shared, sorted
};

Sharing sharing_of(const std::vector<Seat>& seats, std::size_t rank);

// This host's answer to a placement: cores that this process may use, none twice. Throws RequestError.
Seat take_seat(const Placement& placement, const std::string& host, bool scheduling);
// The same for a rank that has been, or will be, asked itself: refuses nothing.
Seat seat_as_named(const Placement& placement, const std::string& host);
// The node wanted, kNearest: that of the core. Throws RequestError when there is none of this number.
int node_of(const std::string& field, int wanted, int core);

// Where a rank is.
struct Place {
  Seat seat;
  Sharing sharing;
  int comp_node = 0;
  int comm_node = 0;
};

// That of a rank of a job on those hosts. Throws RequestError where its cores cannot be had, or a computing thread would
// share one unasked.
Place place_of(const Settings& settings, const std::vector<std::string>& hosts, std::size_t rank);

}  // namespace elbowroom::program
