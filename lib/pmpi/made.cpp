// The begin and the end of MPI; communicators, windows, collective operations.
#include <algorithm>

#include "pmpi/messages.hpp"
#include "pmpi/special.hpp"

namespace elbowroom::pmpi {
namespace {

// A call of MPI_Init that MPI makes for another one is not the program's.
std::atomic<bool> starting{false};
std::atomic<bool> asked{false};

// A root below 0 is MPI_ROOT or MPI_PROC_NULL: then count and type may be anything, and are not looked at.
About collective(MPI_Comm handle, int root, MPI_Count count, MPI_Datatype type) {
  About about{kNobody, kForeign, 0};
  in_books([&](Books& books) {
    const Communicator& communicator = *books.communicators.find(handle);
    about.communicator = communicator.number;
    about.peer = root < 0 ? kNobody : communicator.peer(root);
    about.span = communicator.span;
  });
  if (root >= 0 || root == kNoRoot) {
    about.bytes = bytes_of(count, type);
  }
  return about;
}

void add(MPI_Comm communicator, std::uint32_t number, int result) {
  if (result == MPI_SUCCESS) {
    add_communicator(communicator, number);
  }
}

std::uint32_t number_for_child(MPI_Comm parent) {
  std::uint32_t number = kForeign;
  in_books([&](Books& books) { number = Communicators::number_for_child(*books.communicators.find(parent)); });
  return number;
}

Place place_in_world() {
  Place place;
  int level = MPI_THREAD_SINGLE;
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Query_thread(&level);
  PMPI_Comm_get_parent(&parent);
  PMPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &place.ranks);
  place.threads = level == MPI_THREAD_MULTIPLE;
  place.spawned = parent != MPI_COMM_NULL;
  return place;
}

}  // namespace

void add_communicator(MPI_Comm handle, std::uint32_t number) {
  with_memory([&] {
    if (CommunicatorPointer made = describe(handle, number)) {
      in_books([&](Books& books) { books.communicators.add(handle, std::move(made)); });
    }
  });
}

std::atomic<bool> initialised{false};

bool start_tool(const Place& place) {
  if (asked.exchange(true)) {
    return listening;
  }
  set_threaded(place.threads);
  return tool_started(place);
}

Initialising::Initialising(int number) : number_(number), outermost_(!starting.exchange(true)) {
  if (outermost_ && listening) {
    call_.emplace(number);
  } else if (outermost_ && !asked && tool_starting()) {
    done_ = true;
    tool_enter(number_, {}, inside.caller);
  }
}

void Initialising::done(int result) {
  if (!outermost_ || result != MPI_SUCCESS) {
    return;
  }
  initialised = true;
  const bool wanted = start_tool(place_in_world());
  add_communicator(MPI_COMM_WORLD, 0);
  add_communicator(MPI_COMM_SELF, 1);
  listening = wanted;
}

Initialising::~Initialising() {
  if (done_) {
    tool_leave(number_, {});
  }
  starting = starting && !outermost_;
}

Finalising::Finalising(int number) : Call(number) {
  leave_open();
  tool_finishing();
}

void Finalising::done(int) {
  listening = false;
  initialised = false;
}

Collective::Collective(int number, MPI_Count count, MPI_Datatype type, int root, MPI_Comm communicator)
    : Call(number, [&] { return collective(communicator, root, count, type); }) {}

void Collective::posted(int result, const Request& request) { follow(result, request, number_, about_); }

void Collective::made(int result, const Request& request) { follow(result, request, number_, about_, true); }

// All processes must agree on which barriers these are, also one whose books are incomplete: the handle says it.
Barrier::Barrier(int number, MPI_Comm communicator)
    : Collective(number, 0, MPI_DATATYPE_NULL, kNoRoot, communicator), world_(communicator == MPI_COMM_WORLD) {}

void Barrier::done(int result) {
  if (result == MPI_SUCCESS && world_) {
    tool_world_barrier();
  }
}

int peers(MPI_Comm communicator) {
  int count = 0;
  in_books([&](Books& books) { count = books.communicators.find(communicator)->world.size(); });
  return count;
}

int members(MPI_Comm communicator) {
  int count = 0;
  in_books([&](Books& books) { count = books.communicators.find(communicator)->members; });
  return count;
}

std::vector<bool> places_of_neighbours(MPI_Comm communicator) {
  int topology = MPI_UNDEFINED;
  int count = 0;
  PMPI_Topo_test(communicator, &topology);
  if (topology == MPI_CART) {
    PMPI_Cartdim_get(communicator, &count);
    std::vector<bool> places;
    for (int dimension = 0; dimension < count; ++dimension) {
      int before = MPI_PROC_NULL;
      int after = MPI_PROC_NULL;
      PMPI_Cart_shift(communicator, dimension, 1, &before, &after);
      places.push_back(before != MPI_PROC_NULL);
      places.push_back(after != MPI_PROC_NULL);
    }
    return places;
  }
  if (topology == MPI_GRAPH) {
    int rank = 0;
    PMPI_Comm_rank(communicator, &rank);
    PMPI_Graph_neighbors_count(communicator, rank, &count);
  } else if (topology == MPI_DIST_GRAPH) {
    int sources = 0;
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(communicator, &sources, &count, &weighted);
  }
  return std::vector<bool>(static_cast<std::size_t>(count), true);
}

int neighbours(MPI_Comm communicator) {
  const std::vector<bool> places = places_of_neighbours(communicator);
  return static_cast<int>(std::count(places.begin(), places.end(), true));
}

Accessing::Accessing(int number, MPI_Count count, MPI_Datatype type, int target, MPI_Win window)
    : Call(number, [&] {
        About about{kNobody, kForeign, bytes_of(count, type)};
        in_books([&](Books& books) {
          if (target >= 0) {
            const auto known = books.windows.find(key_of(window));
            about.peer = known != books.windows.end() ? known->second->peer(target) : kElsewhere;
          }
        });
        return about;
      }) {}

void Accessing::done(int result, const Request& request) { follow(result, request, number_, about_); }

void WindowMaking::done(int result, MPI_Win window) {
  if (result == MPI_SUCCESS) {
    in_books([&](Books& books) { books.windows[key_of(window)] = books.communicators.find(communicator_); });
  }
}

WindowFreeing::WindowFreeing(int number, MPI_Win window) : Call(number) {
  in_books([&](Books& books) { books.windows.erase(key_of(window)); });
}

CommunicatorMaking::CommunicatorMaking(int number, MPI_Comm parent)
    : Call(number), communicator_number_(number_for_child(parent)) {}

void CommunicatorMaking::done(int result, MPI_Comm communicator) { add(communicator, communicator_number_, result); }

GroupMaking::GroupMaking(int number, MPI_Comm parent, MPI_Group group, int tag) : Call(number) {
  with_memory([&] {
    const std::vector<int> ranks = world_ranks(group);
    in_books([&](Books& books) {
      Communicators& all = books.communicators;
      communicator_number_ = all.number_for_group(all.find(parent)->number, ranks, tag);
    });
  });
}

void GroupMaking::done(int result, MPI_Comm communicator) { add(communicator, communicator_number_, result); }

void InterMaking::done(int result, MPI_Comm communicator) {
  if (result != MPI_SUCCESS || communicator == MPI_COMM_NULL) {
    return;
  }
  std::uint32_t number = kForeign;
  with_memory([&] {
    MPI_Group remote = MPI_GROUP_NULL;
    PMPI_Comm_remote_group(communicator, &remote);
    std::vector<int> first = own_ranks(communicator);
    std::vector<int> second = world_ranks(remote);
    PMPI_Group_free(&remote);
    if (second < first) {
      std::swap(first, second);
    }
    first.insert(first.end(), second.begin(), second.end());
    in_books([&](Books& books) { number = books.communicators.number_for_group(0, first, tag_); });
  });
  add_communicator(communicator, number);
}

void ForeignMaking::done(int result, MPI_Comm communicator) { add(communicator, kForeign, result); }

DuplicateMaking::DuplicateMaking(int number, MPI_Comm parent)
    : Call(number), communicator_number_(number_for_child(parent)) {}

void DuplicateMaking::done(int result, MPI_Comm* where, const Request& request) {
  later(result, where, false, request);
}

void DuplicateMaking::done(int result, void* where, const Request& request) { later(result, where, true, request); }

void DuplicateMaking::later(int result, void* where, bool fortran, const Request& request) const {
  if (result != MPI_SUCCESS) {
    return;
  }
  in_books([&](Books& books) {
    Operations::Entry& entry = books.operations.make();
    entry.operation.kind = Operation::duplicate;
    entry.operation.number = communicator_number_;
    entry.operation.where = where;
    entry.operation.fortran = fortran;
    books.operations.add(entry, key_of(request.handle), request.fortran);
  });
}

CommunicatorFreeing::CommunicatorFreeing(int number, MPI_Comm communicator) : Call(number) {
  in_books([&](Books& books) { books.communicators.remove(communicator); });
}

}  // namespace elbowroom::pmpi
