// broadcast-bench: how long broadcasts take on the ranks of this job, by tree, beside MPI's own. Rank 0 reads one JSON
// document, a line of standard input, and prints one (docs/reference/broadcast.md).
#include <sched.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

#include "bench.hpp"
#include "mpi_document.hpp"

namespace {

using namespace elbowroom::broadcast::bench;
using nlohmann::json;

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Request {
  std::vector<Case> cases;
  bool beside = true;         // MPI's own broadcasts, too
  std::size_t exchanges = 0;  // of a message of `latency_size` bytes there and back; 0: none
  std::size_t latency_size = 4;
  int blocks = 5;
  int open_sends = 0;  // that nobody receives yet
  int waits = 0;       // messages that are only waited for
  int computing = 0;   // repetitions of a message while another rank computes
};

// A whole number of an object; `least` and `most` are allowed.
long long number(const json& object, const char* key, long long fallback, long long least, long long most) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (!found->is_number_integer() || found->get<long long>() < least || found->get<long long>() > most) {
    throw Refused(std::string(key) + " " + found->dump() + ": give a whole number from " + std::to_string(least) +
                  " to " + std::to_string(most));
  }
  return found->get<long long>();
}

Case read_case(const json& object, int ranks) {
  constexpr long long kMost = 1LL << 30;  // bytes: counts of MPI's own broadcasts are int
  Case one;
  one.size = static_cast<std::size_t>(number(object, "size", 0, 0, kMost));
  one.recipients = static_cast<int>(number(object, "recipients", ranks - 1, 1, ranks - 1));
  one.tree = object.value("tree", one.tree);
  one.segment = static_cast<std::size_t>(number(object, "segment", 0, 0, kMost));
  one.window = static_cast<std::size_t>(number(object, "window", 0, 0, kMost));
  one.repeat = static_cast<int>(number(object, "repeat", one.repeat, 1, 1'000'000));
  const std::string priorities = object.value("priorities", "equal");
  if (priorities != "equal" && priorities != "rising") throw Refused("priorities " + priorities + ": equal or rising");
  one.rising = priorities == "rising";
  one.speeds = object.value("speeds", one.speeds);
  if (!one.speeds.empty() && one.speeds.size() != static_cast<std::size_t>(ranks)) {
    throw Refused("speeds: has " + std::to_string(one.speeds.size()) + " entries; give one for each of the " +
                  std::to_string(ranks) + " ranks");
  }
  return one;
}

Request read(const std::string& text, int ranks) {
  if (ranks < 2) throw Refused("ranks " + std::to_string(ranks) + ": a broadcast needs 2 at least");
  const json document = json::parse(text);
  Request request;
  for (const json& object : document.value("cases", json::array())) request.cases.push_back(read_case(object, ranks));
  request.beside = document.value("beside", true);
  const json latency = document.value("latency", json::object());
  request.exchanges = static_cast<std::size_t>(number(latency, "exchanges", 0, 0, 10'000'000));
  request.latency_size = static_cast<std::size_t>(number(latency, "size", 4, 0, 1 << 30));
  request.blocks = static_cast<int>(number(latency, "blocks", 5, 1, 10'000));
  const json open = document.value("open", json::object());
  request.open_sends = static_cast<int>(number(open, "sends", 0, 0, 1'000'000));
  request.waits = static_cast<int>(number(open, "waits", 0, 0, 100'000'000));
  request.computing = static_cast<int>(number(open, "computing", 0, 0, 1'000));
  return request;
}

// Ranks and cores of the host that has the fewest cores for a rank.
struct Crowd {
  int ranks = 0;
  int cores = 0;
};

// To one core, in turns: two ranks that the system puts on one core while another is free wait milliseconds for each other.
void bind(int place, const cpu_set_t& cores) {
  int left = place % CPU_COUNT(&cores);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// Binds this rank, too.
Crowd bind_ranks() {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  // All cores that the host's ranks may use: some launchers bind them.
  MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, host);
  int own[2] = {0, CPU_COUNT(&cores)};
  MPI_Comm_size(host, &own[0]);
  int place = 0;
  MPI_Comm_rank(host, &place);
  bind(place, cores);
  MPI_Comm_free(&host);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> all(2 * static_cast<std::size_t>(ranks));
  MPI_Allgather(own, 2, MPI_INT, all.data(), 2, MPI_INT, MPI_COMM_WORLD);
  Crowd worst{own[0], own[1]};
  for (std::size_t i = 0; i < all.size(); i += 2) {
    if (all[i] * worst.cores > worst.ranks * all[i + 1]) worst = {all[i], all[i + 1]};
  }
  return worst;
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int size = 0;
  MPI_Get_library_version(text, &size);
  std::istringstream words(std::string(text, static_cast<std::size_t>(size)));
  std::string line;
  std::getline(words, line);
  words = std::istringstream(line.substr(0, line.find(',')));
  std::string name;
  for (std::string word; words >> word;) name += (name.empty() ? "" : " ") + word;  // some have tabs
  return name;
}

json measure(const Request& request, int ranks) {
  const Crowd crowd = bind_ranks();
  Clock clock(MPI_COMM_WORLD);
  json document = {{"ranks", ranks}, {"host_ranks", crowd.ranks}, {"host_cores", crowd.cores}, {"mpi", mpi_version()}};
  const Measured measured = measure_broadcasts(request.cases, request.beside, clock);
  document["clock_error"] = clock.error();
  document["cases"] = json::array();
  for (const Times& times : measured.cases) {
    document["cases"].push_back({{"received", times.received}, {"released", times.released}});
  }
  document["beside"] = json::array();
  for (const Baseline& one : measured.baselines) {
    document["beside"].push_back({{"size", one.size},
                                  {"recipients", one.recipients},
                                  {"bcast", one.bcast},
                                  {"ibcast", one.ibcast},
                                  {"sends", one.sends}});
  }
  if (request.exchanges > 0) {
    const Latency latency = measure_latency(request.latency_size, static_cast<int>(request.exchanges), request.blocks);
    document["latency"] = {{"mpi", latency.mpi}, {"library", latency.library}};
  }
  if (request.open_sends + request.waits + request.computing > 0) {
    constexpr double kComputing = 0.1;  // s
    const Open open = measure_open(request.open_sends, request.waits, request.computing, kComputing);
    document["open"] = {{"send", open.send},
                        {"wait", open.wait},
                        {"memory", open.memory},
                        {"alone", open.alone},
                        {"beside", open.beside}};
  }
  return document;
}

}  // namespace

int main(int argc, char** argv) {
  return elbowroom::answer_document(argc, argv, [](const std::string& text) {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return measure(read(text, ranks), ranks);
  });
}
