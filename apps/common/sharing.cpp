#include "common/sharing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "machine/machine.hpp"

namespace elbowroom::program {
namespace {

struct Users {
  int computing = 0;
  int communicating = 0;
};

Users users_of(const std::vector<Seat>& seats, const std::string& host, int core) {
  Users users;
  for (const Seat& seat : seats) {
    if (seat.host == host) {
      users.computing += static_cast<int>(std::count(seat.comp_cores.begin(), seat.comp_cores.end(), core));
      users.communicating += static_cast<int>(std::count(seat.comm_cores.begin(), seat.comm_cores.end(), core));
    }
  }
  return users;
}

// The operating system's number of a core by any of its processing units.
std::vector<int> known_cores(const std::vector<int>& wanted, const std::string& field) {
  const Machine& machine = Machine::here();
  std::vector<int> known;
  for (const int number : wanted) {
    const CoreInfo* core = machine.core(number);
    if (core == nullptr) {
      throw RequestError(field, std::to_string(number), fmt::format("core {} does not exist", number),
                         fmt::format("there are {} cores here", machine.cores().size()));
    }
    if (!core->allowed) {
      throw RequestError(field, std::to_string(number),
                         fmt::format("core {} is outside the cpuset of this process", number),
                         "choose a core that the launcher grants");
    }
    if (std::find(known.begin(), known.end(), core->number) != known.end()) {
      throw RequestError(field, std::to_string(number), fmt::format("core {} is used twice", number),
                         "name each core once");
    }
    known.push_back(core->number);
  }
  if (known.empty()) {
    throw RequestError(field, "", fmt::format("a rank needs {}", field), "name one core or more");
  }
  return known;
}

}  // namespace

Sharing sharing_of(const std::vector<Seat>& seats, std::size_t rank) {
  const Seat& own = seats[rank];
  Sharing sharing;
  std::set<int> shared;
  for (const int core : own.comp_cores) {
    const Users users = users_of(seats, own.host, core);
    if (users.computing + users.communicating > 1) {
      sharing.computing = true;
      shared.insert(core);
    }
  }
  for (const int core : own.comm_cores) {
    const Users users = users_of(seats, own.host, core);
    if (users.computing + users.communicating > 1) {
      sharing.communicating = true;
      shared.insert(core);
      sharing.waiting = users.computing > 0 ? Waiting::sleep : std::max(sharing.waiting, Waiting::yield);
    }
  }
  sharing.cores.assign(shared.begin(), shared.end());
  return sharing;
}

Seat take_seat(const Placement& placement, const std::string& host, bool scheduling) {
  Seat seat{host, known_cores(placement.comp_cores, "comp_cores"), known_cores(placement.comm_cores, "comm_cores")};
  const auto taken = std::find_first_of(seat.comm_cores.begin(), seat.comm_cores.end(), seat.comp_cores.begin(),
                                        seat.comp_cores.end());
  if (taken != seat.comm_cores.end() && !scheduling) {
    throw RequestError("comm_cores", std::to_string(*taken), fmt::format("core {} is used twice", *taken),
                       "name another core, or \"scheduling\": true to have both threads on it");
  }
  return seat;
}

Seat seat_as_named(const Placement& placement, const std::string& host) {
  const auto by_core = [](std::vector<int> numbers) {
    for (int& number : numbers) {
      const CoreInfo* core = Machine::here().core(number);
      number = core == nullptr ? number : core->number;
    }
    return numbers;
  };
  return {host, by_core(placement.comp_cores), by_core(placement.comm_cores)};
}

int node_of(const std::string& field, int wanted, int core) {
  const Machine& machine = Machine::here();
  if (wanted == kNearest) {
    const CoreInfo* here = machine.core(core);
    return here == nullptr || here->node < 0 ? machine.nodes().front().number : here->node;
  }
  if (machine.node(wanted) == nullptr) {
    throw RequestError(field, std::to_string(wanted), fmt::format("NUMA node {} does not exist", wanted),
                       fmt::format("there are {} nodes here", machine.nodes().size()));
  }
  return wanted;
}

Place place_of(const Settings& settings, const std::vector<std::string>& hosts, std::size_t rank) {
  const auto placement = [&](std::size_t of) {
    return settings.placement(static_cast<int>(of), hosts[of] == hosts.front());
  };
  std::vector<Seat> seats;
  for (std::size_t other = 0; other < hosts.size(); ++other) {
    seats.push_back(seat_as_named(placement(other), hosts[other]));
  }
  const Placement own = placement(rank);
  Place place{take_seat(own, hosts[rank], settings.scheduling), sharing_of(seats, rank)};
  if (place.sharing.computing && !settings.scheduling) {
    throw RequestError("comp_cores", fmt::format("{}", fmt::join(place.sharing.cores, ",")),
                       "a core would run a computing thread beside another thread",
                       "give each rank cores of its own (placements), or \"scheduling\": true to measure that");
  }
  place.comp_node = node_of("comp_node", own.comp_node, place.seat.comp_cores.front());
  place.comm_node = node_of("comm_node", own.comm_node, place.seat.comm_cores.front());
  return place;
}

}  // namespace elbowroom::program
