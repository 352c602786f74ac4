#include "bounds.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "recipients.hpp"

namespace elbowroom::taskflow {
namespace {

using Write = std::uint64_t;  // the number of a write among all

class Search {
 public:
  Search(const Problem& problem, const Costs& costs)
      : problem_(problem),
        costs_(costs),
        work_(static_cast<std::size_t>(problem.grid.size())),
        out_(work_.size()),
        in_(work_.size()),
        present_(problem.data()) {
    for (Data data = 0; data < problem.data(); ++data) present_[data].holder = problem.owner(data);
    owners_.reserve(present_.size());
    for (const Present& one : present_) owners_.push_back(one.holder);
  }

  Bounds run() {
    enumerate(problem_, [this](const Call& call) { gather(call); });
    writes_ = 0;
    for (Data data = 0; data < present_.size(); ++data) present_[data] = {0, owners_[data], 0, {}, {}};
    enumerate(problem_, [this](const Call& call) { follow(call); });
    for (const double seconds : work_) {
      bounds_.work = std::max(bounds_.work, seconds / static_cast<double>(costs_.workers));
    }
    for (const auto* links : {&out_, &in_}) {
      for (const double bytes : *links) bounds_.links = std::max(bounds_.links, bytes / costs_.network.bandwidth);
    }
    return bounds_;
  }

 private:
  struct Present {
    Write write = 0;
    int holder = 0;                 // that has it first
    double ready = 0;               // s, there
    std::map<int, double> arrived;  // s, by rank
    std::map<int, double> used;     // s, by rank: until then its copy is read or sent, and must not be written
  };

  // Who reads which version.
  void gather(const Call& call) {
    for (const auto& [data, mode] : call.used()) {
      Present& now = present_[data];
      if (mode != Mode::kWrite && call.rank != now.holder && call.rank != owners_[data]) {
        recipients_[{data, now.write}].add(call.rank, call.priority, problem_.grid.size(), false, counters_);
      }
      if (mode != Mode::kRead) now = {++writes_, call.rank, 0, {}, {}};
    }
  }

  // When each task can end, if all workers and links are free.
  void follow(const Call& call) {
    double end = 0;
    for (const auto& [data, mode] : call.used()) {
      const Present& now = present_[data];
      if (mode != Mode::kWrite) end = std::max(end, at(now.arrived, call.rank, now.ready));
      if (mode != Mode::kRead) end = std::max(end, at(now.used, call.rank, 0));
    }
    const double seconds = costs_.times[static_cast<std::size_t>(call.step)];
    work_[static_cast<std::size_t>(call.rank)] += seconds;
    end += seconds;
    bounds_.path = std::max(bounds_.path, end);
    for (const auto& [data, mode] : call.used()) {
      if (mode == Mode::kRead) {
        use(present_[data], call.rank, end);
      } else {
        present_[data] = {++writes_, call.rank, end, {}, {}};
        spread(data);
      }
    }
  }

  static double at(const std::map<int, double>& times, int rank, double otherwise) {
    const auto time = times.find(rank);
    return time == times.end() ? otherwise : time->second;
  }

  static void use(Present& data, int rank, double until) {
    double& used = data.used[rank];
    used = std::max(used, until);
  }

  // The way of a new version, to its owner and from there to all that read it.
  void spread(Data data) {
    Present& now = present_[data];
    const double bytes = static_cast<double>(problem_.is_factor(data) ? costs_.factor : costs_.tile);
    const int owner = owners_[data];
    if (now.holder != owner) {
      now.arrived[owner] = carry(now.holder, owner, bytes, now.ready, 1);
      use(now, now.holder, now.arrived[owner]);
    }
    const auto found = recipients_.find({data, now.write});
    if (found == recipients_.end()) return;
    std::vector<Destination>& list = found->second.bag;
    std::stable_sort(list.begin(), list.end(),
                     [](const Destination& one, const Destination& other) { return one.priority > other.priority; });
    const double start = now.holder == owner ? now.ready : now.arrived.at(owner);
    for (const auto& [from, to, depth, order] : edges_of(list.size())) {
      const int sender = from < 0 ? owner : list[static_cast<std::size_t>(from)].rank;
      const int receiver = list[static_cast<std::size_t>(to)].rank;
      now.arrived[receiver] = carry(sender, receiver, bytes, start, order);
      use(now, sender, now.arrived[receiver]);
    }
  }

  // When a message is there that is sent in step `order` of a tree whose root has the data at `start`.
  double carry(int from, int to, double bytes, double start, int order) {
    const broadcast::Network& network = costs_.network;
    const double step = bytes / network.bandwidth + 2 * (network.latency + network.overhead);
    const auto sender = static_cast<std::size_t>(from / network.sharing);
    const auto receiver = static_cast<std::size_t>(to / network.sharing);
    if (sender != receiver) {
      out_[sender] += bytes;
      in_[receiver] += bytes;
    }
    return start + order * step;
  }

  const std::vector<broadcast::Edge>& edges_of(std::size_t count) {
    std::vector<broadcast::Edge>& edges = edges_[count];
    if (edges.empty()) {
      edges = broadcast::edges(costs_.shape(), count);
    }
    return edges;
  }

  const Problem& problem_;
  const Costs& costs_;
  std::vector<double> work_;  // s, by rank
  std::vector<double> out_;   // bytes, by node
  std::vector<double> in_;
  std::vector<Present> present_;  // by data
  std::vector<int> owners_;
  std::map<std::pair<Data, Write>, Recipients> recipients_;
  std::unordered_map<std::size_t, std::vector<broadcast::Edge>> edges_;  // by recipients
  Counters counters_;
  Write writes_ = 0;
  Bounds bounds_;
};

}  // namespace

Bounds find_bounds(const Problem& problem, const Costs& costs) { return Search(problem, costs).run(); }

}  // namespace elbowroom::taskflow
