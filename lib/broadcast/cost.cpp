#include "cost.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "message.hpp"

namespace elbowroom::broadcast {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

// Control messages, bytes (message.cpp).
constexpr double kInlined = 18;  // without the data
constexpr double kAnnouncement = 26;
constexpr double kListed = 4;        // a recipient of the subtree
constexpr double kShortRanks = 128;  // ranks from this on take a byte more
constexpr double kAnswer = 10;

// A pipeline of more segments is extended from these two.
constexpr std::uint64_t kMany = 32;
constexpr std::uint64_t kFewer = 16;

constexpr int kNone = -1;

// A child in one tree of the message: the engine's Outgoing at its parent, and Incoming at the child.
struct Edge {
  int parent = kNone;
  int child = 0;
  int stage = 0;
  double list_bytes = 0;      // recipients below the child
  std::vector<int> children;  // edges
  double announced_at = -1;   // s; below 0: not announced
  bool ready = false;
  std::uint64_t next = 0;     // segment that the parent sends next
  std::uint64_t matched = 0;  // segments for which the child had posted a receive, too
  std::uint64_t flying = 0;
  std::uint64_t arrived = 0;  // without a gap
  std::uint64_t beyond = 0;   // of those behind it, a bit each
  bool finished = false;
};

struct Process {
  std::vector<int> outgoing;  // edges, in the order of the engine
  double in_flight = 0;       // bytes
  unsigned missing = 0;       // stripes that are not complete
  std::uint64_t forwarded = 0;
};

enum Kind : int { kAnnounced, kReady, kData, kWake };

// One message on its way.
class Evaluation {
 public:
  Evaluation(const Network& network, const Settings& settings, const Way& way, std::uint64_t size,
             std::size_t recipients);

  Cost run(double limit);
  // s that the root needs to send so many bytes to all its children.
  double least(std::uint64_t many) const {
    return static_cast<double>(many * (first_[0].size() + first_[1].size())) / (stripes_ * bandwidth_);
  }

 private:
  void grow(const Tree& tree, const std::vector<int>& list, int parent, unsigned stripe);
  Edge& edge(int number) { return edges_[static_cast<std::size_t>(number)]; }
  Process& process(int number) { return processes_[static_cast<std::size_t>(number)]; }
  unsigned stripe_of(const Edge& of) const { return static_cast<unsigned>(&of - edges_.data()) < count_ ? 0 : 1; }
  std::uint64_t total(unsigned stripe) const { return (segments_ + stripes_ - 1 - stripe) / stripes_; }
  double bytes(const Edge& of, std::uint64_t index) const;

  void on(const Flows::Happening& happening);
  void adopt(int process, const std::vector<int>& children);
  void announce(int process);
  void on_announced(int number);
  void on_sent(const Flows::Content& content);
  void on_received(const Flows::Content& content);
  void transfer(int number);
  void send_segments(int process);
  void send_segment(int process, int child);
  bool may_send_early(int process, const Edge& to);
  std::uint64_t available(int process, unsigned stripe);
  void check_sent(Edge& to);
  int next_to_send(int process);

  const Settings& settings_;
  Flows flows_;
  double bandwidth_;
  std::uint64_t size_;
  std::uint64_t segment_;
  std::uint64_t segments_;
  unsigned stripes_ = 1;
  bool inlined_;
  std::size_t count_;
  double bytes_listed_;
  std::vector<std::uint16_t> groups_;  // by process; empty: one group
  std::vector<Edge> edges_;            // of recipient i: i - 1, and count_ + i - 1 in the second tree
  std::vector<int> first_[2];
  std::vector<Process> processes_;
  std::size_t waiting_;
  Cost cost_;
};

Evaluation::Evaluation(const Network& network, const Settings& settings, const Way& way, std::uint64_t size,
                       std::size_t recipients)
    : settings_(settings),
      flows_(network, static_cast<int>(recipients) + 1, way.two_trees),
      bandwidth_(network.bandwidth),
      size_(size),
      segment_(way.segment == 0 ? size : std::min<std::uint64_t>(way.segment, size)),
      inlined_(size <= settings.inline_limit),
      count_(recipients),
      bytes_listed_(kListed + std::max(0.0, 1 - kShortRanks / static_cast<double>(recipients + 1))),
      processes_(recipients + 1),
      waiting_(recipients) {
  segments_ = inlined_ ? 1 : segments(size_, segment_);
  const std::set<std::uint16_t> racks(settings.groups.begin(), settings.groups.end());
  for (std::size_t i = 0; i <= count_ && !racks.empty(); ++i) {
    groups_.push_back(static_cast<std::uint16_t>(i * racks.size() / (count_ + 1)));
  }
  Tree tree = way.tree;
  if (way.two_trees && !inlined_) {
    tree = parse_tree("delegate-binary");
    tree.two_level = !settings.groups.empty();
    stripes_ = segments_ > 1 ? 2 : 1;
  }
  edges_.resize(count_ * stripes_);
  std::vector<int> list(count_);
  std::iota(list.begin(), list.end(), 1);
  for (unsigned stripe = 0; stripe < stripes_; ++stripe) {
    grow(tree, list, kNone, stripe);
    std::reverse(list.begin(), list.end());
  }
  for (Process& process : processes_) process.missing = stripes_;
}

void Evaluation::grow(const Tree& tree, const std::vector<int>& list, int parent, unsigned stripe) {
  const std::uint16_t own =
      groups_.empty() ? 0 : groups_[parent == kNone ? 0 : static_cast<std::size_t>(edge(parent).child)];
  std::vector<std::uint16_t> groups;
  for (const int recipient : list) {
    if (tree.two_level && !groups_.empty()) groups.push_back(groups_[static_cast<std::size_t>(recipient)]);
  }
  for (const Branch& branch : branches(tree, list.size(), groups, own)) {
    const int child = list[branch.child];
    const int number = static_cast<int>(stripe * count_) + child - 1;
    Edge& made = edge(number);
    made.parent = parent == kNone ? 0 : edge(parent).child;
    made.child = child;
    made.stage = branch.stage;
    made.list_bytes = static_cast<double>(branch.subtree.size()) * bytes_listed_;
    (parent == kNone ? first_[stripe] : edge(parent).children).push_back(number);
    std::vector<int> below;
    below.reserve(branch.subtree.size());
    for (const std::size_t place : branch.subtree) below.push_back(list[place]);
    if (!below.empty()) grow(branch.tree, below, number, stripe);
  }
}

double Evaluation::bytes(const Edge& of, std::uint64_t index) const {
  const std::uint64_t offset = (index * stripes_ + stripe_of(of)) * segment_;
  return static_cast<double>(std::min(segment_, size_ - offset));
}

Cost Evaluation::run(double limit) {
  if (least(size_) > limit) return {kForever, kForever, 0};
  for (unsigned stripe = 0; stripe < stripes_; ++stripe) adopt(0, first_[stripe]);
  announce(0);
  Flows::Happening happening;
  while (flows_.next(happening)) {
    if (waiting_ > 0 && flows_.now() > limit) return {kForever, kForever, 0};
    on(happening);
  }
  for (std::size_t recipient = 1; recipient <= count_; ++recipient) {
    cost_.forwarded = std::max(cost_.forwarded, processes_[recipient].forwarded);
  }
  return cost_;
}

void Evaluation::on(const Flows::Happening& happening) {
  const Flows::Content& content = happening.content;
  if (content.kind == kWake) {
    send_segments(content.edge);
  } else if (content.kind == kData) {
    if (happening.sent) on_sent(content);
    if (happening.received) on_received(content);
  } else if (happening.received && content.kind == kAnnounced) {
    on_announced(content.edge);
  } else if (happening.received) {
    // Several answers may arrive at one time: the first child is served first.
    edge(content.edge).ready = true;
    check_sent(edge(content.edge));
    flows_.wake(flows_.now(), {kWake, edge(content.edge).parent, 0});
  }
}

void Evaluation::adopt(int number, const std::vector<int>& children) {
  std::vector<int>& outgoing = process(number).outgoing;
  outgoing.insert(outgoing.end(), children.begin(), children.end());
}

// As Engine::announce: to the children of the first stage that is not over.
void Evaluation::announce(int number) {
  int stage = INT32_MAX;
  for (const int child : process(number).outgoing) {
    if (!inlined_ && !edge(child).finished) stage = std::min(stage, edge(child).stage);
  }
  for (const int child : process(number).outgoing) {
    Edge& to = edge(child);
    if (to.announced_at >= 0 || to.stage > stage) continue;
    to.announced_at = flows_.now();
    const double head = inlined_ ? kInlined + static_cast<double>(size_) : kAnnouncement;
    if (inlined_) {
      to.finished = true;
      if (number != 0) process(number).forwarded += size_;
    }
    flows_.send(number, to.child, head + to.list_bytes, {kAnnounced, child, 0});
    if (may_send_early(number, to)) send_segment(number, child);
  }
}

// As Engine::may_send_early.
bool Evaluation::may_send_early(int number, const Edge& to) {
  if (inlined_ || settings_.late != Late::kStoreForward || available(number, stripe_of(to)) == 0) return false;
  const double first = bytes(to, 0);
  const double in_flight = process(number).in_flight;
  return first * 2 * static_cast<double>(count_ + 1) <= static_cast<double>(settings_.pool) &&
         (in_flight == 0 || in_flight + first <= static_cast<double>(settings_.window));
}

// Segments that a process has.
std::uint64_t Evaluation::available(int number, unsigned stripe) {
  return number == 0 ? total(stripe) : edge(static_cast<int>(stripe * count_) + number - 1).arrived;
}

void Evaluation::send_segment(int number, int child) {
  Process& self = process(number);
  Edge& to = edge(child);
  const double many = bytes(to, to.next);
  ++to.next;
  ++to.flying;
  self.in_flight += many;
  if (number != 0) self.forwarded += static_cast<std::uint64_t>(many);
  transfer(child);
}

void Evaluation::on_announced(int number) {
  const int self = edge(number).child;
  adopt(self, edge(number).children);
  announce(self);
  if (!inlined_) {
    const bool all = edge(number).next == total(stripe_of(edge(number)));
    if (!all || !edge(number).children.empty()) flows_.send(self, edge(number).parent, kAnswer, {kReady, number, 0});
    return;
  }
  --waiting_;
  cost_.received = std::max(cost_.received, flows_.now());
  cost_.released = cost_.received;
}

void Evaluation::on_sent(const Flows::Content& content) {
  Edge& to = edge(content.edge);
  process(to.parent).in_flight -= bytes(to, content.segment);
  cost_.released = std::max(cost_.released, flows_.now());
  --to.flying;
  check_sent(to);
  send_segments(to.parent);
}

void Evaluation::check_sent(Edge& to) {
  const bool all = to.next == total(stripe_of(to)) && (to.ready || to.children.empty());
  if (to.finished || to.flying > 0 || !all) return;
  to.finished = true;
  announce(to.parent);
}

void Evaluation::on_received(const Flows::Content& content) {
  Edge& from = edge(content.edge);
  from.beyond |= std::uint64_t{1} << (content.segment - from.arrived);
  for (; (from.beyond & 1) != 0; from.beyond >>= 1) ++from.arrived;
  transfer(content.edge);
  if (from.arrived == total(stripe_of(from)) && --process(from.child).missing == 0) {
    --waiting_;
    cost_.received = flows_.now();
    cost_.released = std::max(cost_.released, cost_.received);
  }
  send_segments(from.child);
}

// A transfer begins when the parent has sent the segment and the child has posted a receive for it.
void Evaluation::transfer(int number) {
  Edge& to = edge(number);
  while (to.matched < std::min(to.next, to.arrived + settings_.posted)) {
    const std::uint64_t index = to.matched++;
    flows_.send(to.parent, to.child, bytes(to, index), {kData, number, index});
  }
}

void Evaluation::send_segments(int number) {
  Process& self = process(number);
  for (;;) {
    const int chosen = next_to_send(number);
    if (chosen == kNone) return;
    const Edge& to = edge(chosen);
    const double many = bytes(to, to.next);
    if (self.in_flight != 0 && self.in_flight + many > static_cast<double>(settings_.window)) return;
    send_segment(number, chosen);
  }
}

// As Engine::next_to_send for one message.
int Evaluation::next_to_send(int number) {
  int chosen = kNone;
  for (const int child : process(number).outgoing) {
    const Edge& to = edge(child);
    if (!to.ready) {
      if (chosen != kNone || to.announced_at < 0 || to.next > 0) continue;
      const double until = to.announced_at + settings_.patience;
      if (flows_.now() >= until) continue;
      flows_.wake(until, {kWake, number, 0});
      break;
    }
    if (to.next < available(number, stripe_of(to)) && (chosen == kNone || to.next < edge(chosen).next)) chosen = child;
  }
  return chosen;
}

}  // namespace

Cost cost(const Network& network, const Settings& settings, const Way& way, std::size_t size, std::size_t recipients,
          double limit) {
  const std::uint64_t segment = way.segment == 0 ? size : way.segment;
  if (size <= settings.inline_limit || segments(size, segment) <= kMany + kFewer) {
    return Evaluation(network, settings, way, size, recipients).run(limit);
  }
  Evaluation first(network, settings, way, kMany * segment, recipients);
  const double least = first.least(size - kMany * segment);
  const Cost many = first.run(limit - least);
  if (many.received == kForever) return many;
  const Cost fewer = Evaluation(network, settings, way, kFewer * segment, recipients).run(kForever);
  const double rest = (static_cast<double>(size) / static_cast<double>(segment) - kMany) / (kMany - kFewer);
  return {many.received + std::max(least, rest * (many.received - fewer.received)),
          many.released + std::max(least, rest * (many.released - fewer.released)),
          many.forwarded / (kMany * segment) * size};
}

}  // namespace elbowroom::broadcast
