#include "flows.hpp"

#include <algorithm>

namespace elbowroom::broadcast {

Flows::Flows(const Network& network, int processes, bool crossing)
    : network_(network),
      crossing_(crossing),
      up_(static_cast<std::size_t>(processes)),
      down_(static_cast<std::size_t>(processes)),
      busy_until_(static_cast<std::size_t>(processes)) {}

void Flows::push(double at, What what, int flow) {
  queue_.push_back({at, ++pushed_, what, flow});
  std::push_heap(queue_.begin(), queue_.end());
}

int Flows::add(const Content& content, int from, int to, double bytes) {
  if (free_.empty()) {
    free_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int flow = free_.back();
  free_.pop_back();
  flows_[static_cast<std::size_t>(flow)] = {content, from, to, bytes, 0, now_, -1};
  return flow;
}

// When the process has done one more message, and what it was busy with before.
double Flows::occupy(int process) {
  if (network_.overhead == 0) return now_;
  double& until = busy_until_[static_cast<std::size_t>(process)];
  until = std::max(until, now_) + network_.overhead;
  return until;
}

void Flows::send(int from, int to, double bytes, const Content& content) {
  if (node_of(from) == node_of(to)) return post(from, to, bytes, content);
  push(occupy(from) + 2 * network_.latency, What::kBegin, add(content, from, to, bytes));
}

void Flows::post(int from, int to, double bytes, const Content& content) {
  const double at = occupy(from) + 2 * network_.latency + bytes / network_.bandwidth;
  push(at, What::kArrive, add(content, from, to, bytes));
}

void Flows::wake(double at, const Content& content) { push(at, What::kWake, add(content, 0, 0, 0)); }

void Flows::change(Link& link) {
  if (link.changed) return;
  link.changed = true;
  changed_.push_back(&link);
}

// Where a link changed, the links at the other ends of its messages may give more or less to others.
void Flows::spread_changes() {
  const std::size_t own = changed_.size();
  for (std::size_t i = 0; i < own; ++i) {
    for (const int flow : changed_[i]->flows) {
      change(up(flow));
      change(down(flow));
    }
  }
}

// What a link gives to each message that could use it, when the others use no more than they get at their other ends.
double Flows::level(const Link& link) {
  bounds_.clear();
  for (const int flow : link.flows) {
    const Link& other = &up(flow) == &link ? down(flow) : up(flow);
    bounds_.push_back(network_.bandwidth / static_cast<double>(other.flows.size()));
  }
  std::sort(bounds_.begin(), bounds_.end());
  double left = network_.bandwidth;
  std::size_t sharing = bounds_.size();
  for (const double bound : bounds_) {
    if (bound * static_cast<double>(sharing) >= left) break;
    left -= bound;
    --sharing;
  }
  return sharing == 0 ? network_.bandwidth : left / static_cast<double>(sharing);
}

void Flows::set_rate(int number, double rate) {
  Flow& flow = flows_[static_cast<std::size_t>(number)];
  if (rate == flow.rate) return;
  flow.left -= flow.rate * (now_ - flow.since);
  flow.since = now_;
  flow.rate = rate;
  flow.end = now_ + std::max(flow.left, 0.0) / rate;
  push(flow.end, What::kEnd, number);
}

// Gives the messages of changed links their new rates.
void Flows::share() {
  if (crossing_) spread_changes();
  for (Link* const link : changed_) {
    link->level = crossing_ ? level(*link) : network_.bandwidth / static_cast<double>(link->flows.size());
  }
  for (Link* const link : changed_) {
    link->changed = false;
    for (const int flow : link->flows) set_rate(flow, std::min(up(flow).level, down(flow).level));
  }
  changed_.clear();
}

// Whether this was the message's end, and not one that it was expected to have at an earlier rate.
bool Flows::end(int number, Happening& happening) {
  Flow& flow = flows_[static_cast<std::size_t>(number)];
  if (flow.end != now_) return false;
  for (Link* const link : {&up(number), &down(number)}) {
    std::vector<int>& sharing = link->flows;
    *std::find(sharing.begin(), sharing.end(), number) = sharing.back();
    sharing.pop_back();
    change(*link);
  }
  flow.end = -1;
  arrive(number, happening);
  return true;
}

// It has left the links; its receiver has it when it is no longer busy with others.
void Flows::arrive(int number, Happening& happening) {
  const Flow& flow = flows_[static_cast<std::size_t>(number)];
  happening = {true, network_.overhead == 0, flow.content};
  if (happening.received) {
    free_.push_back(number);
  } else {
    push(occupy(flow.to), What::kReceive, number);
  }
}

bool Flows::next(Happening& happening) {
  for (;;) {
    if (!changed_.empty() && (queue_.empty() || queue_.front().at > now_)) share();
    if (queue_.empty()) return false;
    const Event event = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    now_ = event.at;
    Flow& flow = flows_[static_cast<std::size_t>(event.flow)];
    if (event.what == What::kBegin) {
      for (Link* const link : {&up(event.flow), &down(event.flow)}) {
        link->flows.push_back(event.flow);
        change(*link);
      }
    } else if (event.what == What::kEnd) {
      if (end(event.flow, happening)) return true;
    } else if (event.what == What::kArrive) {
      arrive(event.flow, happening);
      return true;
    } else {
      happening = {false, event.what == What::kReceive, flow.content};
      free_.push_back(event.flow);
      return true;
    }
  }
}

}  // namespace elbowroom::broadcast
