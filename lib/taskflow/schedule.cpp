#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bounds.hpp"
#include "broadcast/engine.hpp"
#include "recipients.hpp"

namespace elbowroom::taskflow {
namespace {

using Number = std::size_t;
constexpr Number kNone = static_cast<Number>(-1);
// Of the engine: messages of a process besides the first, how many times as long as the last ones one may take, and s/B at first.
constexpr std::size_t kBesides = 4;
constexpr double kMuch = 4;
constexpr double kSlowest = 1e-7;

// What a process has of a version.
struct Copy {
  bool there = false;
  std::size_t uses = 0;             // tasks that read it and messages that send it, which are not over
  std::vector<Number> readers;      // tasks that wait for it
  std::vector<Number> overwriters;  // tasks that wait until it is used no more
  Number next = kNone;              // the version whose message waits for that
};

struct Present {
  int holder = 0;  // that made it
  int owner = 0;   // that sends it to the recipients
  double bytes = 0;
  std::size_t missing =
      2;  // until the holder can send it to the owner: it is there, and the version before is not used
  Recipients recipients;
  std::map<int, Copy> copies;  // by rank
};

struct Task {
  int rank = 0;
  int priority = 0;
  double seconds = 0;
  std::size_t missing = 0;
  std::vector<Number> reads;   // versions
  std::vector<Number> writes;  // versions
};

struct Message {
  Number version = 0;
  int from = 0;
  int to = 0;
  int place = -1;  // of the receiver in the tree; -1: the owner, to which the holder sends
  int priority = 0;
  double begun = 0;  // s
};

class Scheduler {
 public:
  Scheduler(const Problem& problem, const Costs& costs)
      : problem_(problem),
        costs_(costs),
        ranks_(static_cast<std::size_t>(problem.grid.size())),
        flows_(costs.network, problem.grid.size(), true) {
    for (Rank& rank : ranks_) rank.free = costs.workers;
  }

  double run() {
    read_graph();
    for (Number i = 0; i < versions_.size(); ++i) close(i);
    for (Number i = 0; i < problem_.data(); ++i) send_on(i, -1);
    for (Number i = 0; i < tasks_.size(); ++i) satisfy(i);
    for (int rank = 0; rank < problem_.grid.size(); ++rank) start_tasks(rank);
    broadcast::Flows::Happening happening;
    while (flows_.next(happening)) {
      const Number number = happening.content.segment;
      switch (static_cast<What>(happening.content.kind)) {
        case What::kTaskOver: finish(number); break;
        case What::kAnswered: queue(number); break;
        case What::kLook: send_next(static_cast<int>(number)); break;
        case What::kMessage: deliver(number, happening); break;
      }
    }
    return flows_.now();
  }

 private:
  enum class What : int { kTaskOver, kAnswered, kMessage, kLook };
  using Line = std::priority_queue<std::tuple<int, std::ptrdiff_t, Number>>;  // by priority, then the first one
  using Waiting = std::set<std::pair<int, Number>>;  // messages: by priority, negated, then the first one
  struct Rank {
    std::size_t free = 0;  // workers
    Line ready;
    Waiting waiting;
    std::vector<Number> flying;       // messages
    std::optional<Number> in_window;  // the one of these that others wait for
    double rate = kSlowest;           // s/B of the last message
    double moved = 0;                 // s, when a message began or ended
    double looks_at = -1;             // s, whether another may go besides
  };

  // All tasks in sequence: recipients are gathered long before their data are ready.
  void read_graph() {
    std::vector<Number> present(problem_.data());
    for (Data data = 0; data < problem_.data(); ++data) {
      present[data] = add_version(data, problem_.owner(data), kNone);
      versions_.back().copies[versions_.back().owner].there = true;
    }
    enumerate(problem_, [&](const Call& call) {
      Task task{call.rank, call.priority, costs_.times[static_cast<std::size_t>(call.step)], 1, {}, {}};
      for (const auto& [data, mode] : call.used()) {
        Copy& copy = versions_[present[data]].copies[call.rank];
        if (mode != Mode::kWrite) read(present[data], call, copy, task);
        if (mode == Mode::kRead) {
          ++copy.uses;
          task.reads.push_back(present[data]);
        } else {
          copy.overwriters.push_back(tasks_.size());
          ++task.missing;
          task.writes.push_back(present[data] = add_version(data, call.rank, present[data]));
        }
      }
      tasks_.push_back(std::move(task));
    });
  }

  Number add_version(Data data, int holder, Number before) {
    Present& added = versions_.emplace_back();
    added.holder = holder;
    added.owner = problem_.owner(data);
    added.bytes = static_cast<double>(problem_.is_factor(data) ? costs_.factor : costs_.tile);
    if (before != kNone && holder != added.owner) versions_[before].copies[added.owner].next = versions_.size() - 1;
    return versions_.size() - 1;
  }

  void read(Number version, const Call& call, Copy& copy, Task& task) {
    if (!copy.there) {
      copy.readers.push_back(tasks_.size());
      ++task.missing;
    }
    Present& now = versions_[version];
    if (call.rank != now.holder && call.rank != now.owner) {
      now.recipients.add(call.rank, call.priority, problem_.grid.size(), false, counters_);
    }
  }

  // The order of a version's recipients, and the messages that each process is to send.
  void close(Number version) {
    Present& now = versions_[version];
    std::vector<Destination>& list = now.recipients.bag;
    std::stable_sort(list.begin(), list.end(),
                     [](const Destination& one, const Destination& other) { return one.priority > other.priority; });
    if (now.holder != now.owner) ++now.copies[now.holder].uses;
    now.copies[now.owner].uses += children_of(list.size())[0].size();
    for (std::size_t place = 0; place < list.size(); ++place) {
      now.copies[list[place].rank].uses += children_of(list.size())[place + 1].size();
    }
    for (auto& [rank, copy] : now.copies) {
      if (copy.uses == 0) release(copy);
    }
  }

  // The copy may be written.
  void release(Copy& copy) {
    for (const Number task : std::exchange(copy.overwriters, {})) satisfy(task);
    if (copy.next != kNone) return_to_owner(std::exchange(copy.next, kNone));
  }

  void end_use(Number version, int rank) {
    Copy& copy = versions_[version].copies[rank];
    if (--copy.uses == 0) release(copy);
  }

  void satisfy(Number number) {
    Task& task = tasks_[number];
    if (--task.missing > 0) return;
    ranks_[static_cast<std::size_t>(task.rank)].ready.emplace(task.priority, -++count_, number);
  }

  void start_tasks(int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    for (; rank.free > 0 && !rank.ready.empty(); --rank.free) {
      const Number task = std::get<Number>(rank.ready.top());
      rank.ready.pop();
      flows_.wake(flows_.now() + tasks_[task].seconds, {static_cast<int>(What::kTaskOver), 0, task});
    }
  }

  void finish(Number number) {
    const Task& task = tasks_[number];
    ++ranks_[static_cast<std::size_t>(task.rank)].free;
    for (const Number version : task.reads) end_use(version, task.rank);
    for (const Number version : task.writes) {
      provide(version, task.rank);
      const Present& now = versions_[version];
      now.holder == now.owner ? send_on(version, -1) : return_to_owner(version);
    }
    start_tasks(task.rank);
  }

  void provide(Number version, int rank) {
    Copy& copy = versions_[version].copies[rank];
    copy.there = true;
    for (const Number task : std::exchange(copy.readers, {})) satisfy(task);
  }

  void return_to_owner(Number version) {
    Present& now = versions_[version];
    if (--now.missing == 0) post({version, now.holder, now.owner, -1, 0, 0}, 0);
  }

  // To the children of that place; -1: of the owner.
  void send_on(Number version, int place) {
    const Present& now = versions_[version];
    const std::vector<Destination>& list = now.recipients.bag;
    const int from = place < 0 ? now.owner : list[static_cast<std::size_t>(place)].rank;
    for (const int child : children_of(list.size())[static_cast<std::size_t>(place + 1)]) {
      const auto& [rank, priority] = list[static_cast<std::size_t>(child)];
      post({version, from, rank, child, 0, 0}, priority);
    }
  }

  // Large data wait until the receiver answers their announcement. Those that it has room for go with it, where nothing waits.
  void post(const Message& message, int priority) {
    const Number number = messages_.size();
    messages_.push_back(message);
    messages_.back().priority = priority;
    Rank& rank = rank_of(message.from);
    const double room = static_cast<double>(settings_.pool) / (2 * static_cast<double>(ranks_.size()));
    if (!rank.in_window && rank.waiting.empty() && bytes_of(message) <= room) {
      rank.in_window = number;
      send(rank, number);
    } else {
      const double round_trip = 4 * (costs_.network.latency + costs_.network.overhead);
      flows_.wake(flows_.now() + round_trip, {static_cast<int>(What::kAnswered), 0, number});
    }
  }

  void queue(Number number) {
    const Message& message = messages_[number];
    rank_of(message.from).waiting.emplace(-message.priority, number);
    send_next(message.from);
  }

  double bytes_of(const Message& message) const { return versions_[message.version].bytes; }
  Rank& rank_of(int number) { return ranks_[static_cast<std::size_t>(number)]; }

  // A process sends one message at a time. While that takes longer than the grace, others go besides, each to a process that
  // gets none, and in a tree of another version; one that takes much longer than the last ones is waited for no more
  // (Engine::make_room).
  void send_next(int number) {
    Rank& rank = rank_of(number);
    for (;;) {
      if (!rank.in_window) {
        const Waiting::iterator next = next_of(rank, false);
        if (next == rank.waiting.end()) return;
        rank.in_window = rank.waiting.extract(next).value().second;
        send(rank, *rank.in_window);
      }
      if (rank.waiting.empty()) return;
      if (const double grace_ends = rank.moved + settings_.grace; flows_.now() < grace_ends) {
        if (std::exchange(rank.looks_at, grace_ends) == grace_ends) return;
        flows_.wake(grace_ends, {static_cast<int>(What::kLook), 0, static_cast<Number>(number)});
        return;
      }
      rank.moved = flows_.now();
      const Message& first = messages_[*rank.in_window];
      if (flows_.now() >= first.begun + std::max(2 * settings_.grace, kMuch * bytes_of(first) * rank.rate)) {
        rank.in_window.reset();
      } else if (rank.flying.size() <= kBesides) {
        const Waiting::iterator next = next_of(rank, true);
        if (next != rank.waiting.end()) send(rank, rank.waiting.extract(next).value().second);
      }
    }
  }

  // The first one that may go.
  Waiting::iterator next_of(Rank& rank, bool besides) {
    return std::find_if(rank.waiting.begin(), rank.waiting.end(), [&](const auto& entry) {
      const Message& message = messages_[entry.second];
      return std::none_of(rank.flying.begin(), rank.flying.end(), [&](Number other) {
        const bool in_tree = besides && costs_.tree && messages_[other].version == message.version;
        return in_tree || messages_[other].to == message.to;
      });
    });
  }

  void send(Rank& rank, Number number) {
    rank.flying.push_back(number);
    rank.moved = flows_.now();
    Message& message = messages_[number];
    message.begun = flows_.now();
    flows_.send(message.from, message.to, bytes_of(message), {static_cast<int>(What::kMessage), 0, number});
  }

  void deliver(Number number, const broadcast::Flows::Happening& happening) {
    const Message message = messages_[number];
    if (happening.sent) {
      Rank& rank = rank_of(message.from);
      std::erase(rank.flying, number);
      if (rank.in_window == number) rank.in_window.reset();
      rank.moved = flows_.now();
      rank.rate = std::min((flows_.now() - message.begun) / bytes_of(message), 2 * rank.rate);
      end_use(message.version, message.from);
      send_next(message.from);
      start_tasks(message.from);
    }
    if (!happening.received) return;
    provide(message.version, message.to);
    send_on(message.version, message.place);
    start_tasks(message.to);
  }

  // By place + 1, of the owner first: whom each sends to among so many recipients.
  const std::vector<std::vector<int>>& children_of(std::size_t count) {
    std::vector<std::vector<int>>& children = children_[count];
    if (children.empty()) {
      children.resize(count + 1);
      for (const broadcast::Edge& edge : broadcast::edges(costs_.shape(), count)) {
        children[static_cast<std::size_t>(edge.from + 1)].push_back(edge.to);
      }
    }
    return children;
  }

  const Problem& problem_;
  const Costs& costs_;
  std::vector<Task> tasks_;
  std::vector<Present> versions_;
  std::vector<Message> messages_;
  std::vector<Rank> ranks_;
  broadcast::Flows flows_;
  broadcast::Settings settings_;
  std::unordered_map<std::size_t, std::vector<std::vector<int>>> children_;  // by recipients
  Counters counters_;
  std::ptrdiff_t count_ = 0;
};

}  // namespace

double find_schedule(const Problem& problem, const Costs& costs) { return Scheduler(problem, costs).run(); }

}  // namespace elbowroom::taskflow
