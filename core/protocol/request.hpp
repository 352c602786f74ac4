// A request of docs/reference/protocol.md, read and checked completely before anything starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/request_error.hpp"
#include "protocol/extraneous.hpp"
#include "protocol/overlap.hpp"

namespace elbowroom {

enum class Phase { computation, communication, together, sleep };
enum class Pattern { pingpong, receive, bidirectional, ring };
enum class Reuse { same, rotate, off_cache };

std::string name_of(Phase phase);  // A, B, AB, S
std::string name_of(Pattern pattern);
std::string name_of(Reuse reuse);
bool computes(Phase phase);
bool communicates(Phase phase);

// Where one rank computes and communicates; cores and nodes are the operating system's numbers.
struct Placement {
  std::vector<int> comp_cores;
  std::vector<int> comm_cores;
  int comp_node = 0;
  int comm_node = 0;
};

struct Request {
  std::string point;
  std::int64_t repetition = 0;
  std::vector<Phase> sequence;
  std::string kernel = "none";
  int cursor = 1;
  Placement first;              // rank 0
  std::vector<int> peer_cores;  // communication cores of other ranks on rank 0's host
  bool all_compute = false;
  std::int64_t working_set = 0;  // bytes per computing core
  Pattern pattern = Pattern::pingpong;
  std::int64_t size = 0;  // bytes
  Reuse reuse = Reuse::same;
  bool latency = false;
  double window = 0.12;  // s
  double period = 0;     // s from one message's due time to the next; 0: batches as fast as they go
  std::size_t steady_window = 7;
  double steady_cov = 0.05;
  double steady_limit = 1.0;  // s
  std::vector<std::string> observe;
  std::vector<std::pair<int, Placement>> placements;  // by rank; overrides the placement above
  int hosts = 1;                                      // hosts needed, at least
  bool scheduling =
      false;  // a thread beside a computing thread on one core is wanted (flagged, docs/design/method.md, rule 4)
  std::optional<Extraneous> extraneous;  // in place of a kernel: accesses between one-way messages from rank 0 to 1
  std::optional<Overlap> overlap;        // in place of a pattern: an operation of MPI beside a fixed computation
  std::string settings;                  // JSON: frequencies, turbo and governor that every host holds; empty: none
  // For tests. "message", "early_stop", "late": breaks a rule on purpose; "counters": counts time in place of misses.
  std::string fault;
};

// Reads types and names; throws RequestError. Does not look at any machine.
Request read_request(const nlohmann::json& json);
// The part of it that needs no JSON: kernel, cursor, working set, size, metric. Throws RequestError.
void check_request(const Request& request);

// What a request is checked against on one host; a plain structure, so that the checks can be tested on any machine.
struct SiteCore {
  int number;
  std::vector<int> pus;
  bool allowed;
};
struct SiteNode {
  int number;
  std::int64_t memory;  // bytes that one rank may use there
};
struct Site {
  std::vector<SiteCore> cores;
  std::vector<SiteNode> nodes;
  // The core of a processing unit, nullptr if there is none.
  const SiteCore* core(int pu) const;
  bool same_core(int one, int other) const { return core(one) != nullptr && core(one) == core(other); }
};

// Placement of one rank. `same_host` says whether it shares rank 0's host.
Placement placement_of(const Request& request, int rank, bool same_host);
bool rank_computes(const Request& request, int rank);
bool rank_communicates(const Request& request, int rank);

// Checks one rank's placement against its own host: cores, nodes and memory. `sharers` ranks of this request use the
// same host. Throws RequestError.
void check_placement(const Request& request, const Placement& placement, bool computing, const Site& site, int sharers);

// Checks what concerns several ranks: how many there are, on how many hosts, and that no core is used by two of them in a
// way that would measure the scheduler. `hosts[r]` is the host of rank r. Throws RequestError.
void check_job(const Request& request, const std::vector<std::string>& hosts);

// True when communication threads of two ranks share a core of one host (a documented configuration of small machines).
bool shares_communication_core(const Request& request, const std::vector<std::string>& hosts);

// True when a thread of any rank shares the core of a computing thread: what is measured then is the scheduler.
bool shares_computing_core(const Request& request, const std::vector<std::string>& hosts);

}  // namespace elbowroom
