#include "trace/outputs/task_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace elbowroom::trace {
namespace {

constexpr std::uint32_t kNoPoint = 0xFFFFFFFFU;

// The moments of all tasks at which something is waited for: begin, messages in order, end.
class Points {
 public:
  explicit Points(const TaskGraph& graph) {
    using Moment = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::int64_t>;  // task, order, end, elapsed
    std::vector<Moment> moments;
    for (std::uint32_t i = 0; i < graph.messages.size(); ++i) {
      const auto& [sent, received, transfer, bytes] = graph.messages[i];
      moments.emplace_back(sent.task, sent.order, 2 * i, sent.elapsed);
      moments.emplace_back(received.task, received.order, 2 * i + 1, received.elapsed);
    }
    std::sort(moments.begin(), moments.end());
    std::vector<std::uint32_t> of_end(moments.size());
    auto moment = moments.begin();
    for (std::uint32_t task = 0; task < graph.tasks.size(); ++task) {
      begin_.push_back(add(task, 0));
      for (; moment != moments.end() && std::get<0>(*moment) == task; ++moment) {
        of_end[std::get<2>(*moment)] = add(task, std::get<3>(*moment));
      }
      end_.push_back(add(task, graph.tasks[task].run));
    }
    connect(graph, of_end);
  }

  // Values of all points in an order in which none waits for a later one; false where there is none.
  bool follow() {
    std::vector<std::uint32_t> ready;
    for (std::uint32_t point = 0; point < task_.size(); ++point) {
      if (waits_[point] == 0) {
        ready.push_back(point);
      }
    }
    std::size_t done = 0;
    while (!ready.empty()) {
      const std::uint32_t point = ready.back();
      ready.pop_back();
      ++done;
      if (point + 1 < task_.size() && task_[point + 1] == task_[point]) {
        reach(point, point + 1, elapsed_[point + 1] - elapsed_[point], ready);
      }
      for (auto edge = edges_from(point); edge != edges_.end() && edge->from == point; ++edge) {
        reach(point, edge->to, edge->weight, ready);
      }
    }
    return done == task_.size();
  }

  CriticalPath longest() const {
    CriticalPath path;
    std::uint32_t point = kNoPoint;
    for (const std::uint32_t end : end_) {
      if (point == kNoPoint || value_[end] > value_[point]) {
        point = end;
      }
    }
    path.length = point == kNoPoint ? 0 : value_[point];
    for (; point != kNoPoint; point = before_[point]) {
      if (path.tasks.empty() || path.tasks.back() != task_[point]) {
        path.tasks.push_back(task_[point]);
      }
    }
    std::reverse(path.tasks.begin(), path.tasks.end());
    return path;
  }

  // Tasks of which each waits for the one before, and the first for the last.
  std::vector<std::uint32_t> circle() const {
    std::vector<std::uint32_t> waited_by(task_.size(), kNoPoint);
    for (std::uint32_t point = 0; point < task_.size(); ++point) {
      if (waits_[point] == 0) {
        continue;
      }
      if (point + 1 < task_.size() && task_[point + 1] == task_[point]) {
        waited_by[point + 1] = point;
      }
      for (auto edge = edges_from(point); edge != edges_.end() && edge->from == point; ++edge) {
        waited_by[edge->to] = point;
      }
    }
    std::uint32_t point = 0;
    while (waits_[point] == 0) {
      ++point;
    }
    std::vector<bool> reached(task_.size());
    for (; !reached[point]; point = waited_by[point]) {
      reached[point] = true;
    }
    std::vector<std::uint32_t> tasks;
    const std::uint32_t first = point;
    do {
      if (tasks.empty() || tasks.back() != task_[point]) {
        tasks.push_back(task_[point]);
      }
      point = waited_by[point];
    } while (point != first);
    if (tasks.size() > 1 && tasks.front() == tasks.back()) {
      tasks.pop_back();
    }
    std::reverse(tasks.begin(), tasks.end());
    std::rotate(tasks.begin(), std::min_element(tasks.begin(), tasks.end()), tasks.end());
    return tasks;
  }

 private:
  struct Edge {
    std::uint32_t from;
    std::uint32_t to;
    std::int64_t weight;
  };

  std::uint32_t add(std::uint32_t task, std::int64_t elapsed) {
    waits_.push_back(!task_.empty() && task_.back() == task ? 1 : 0);
    task_.push_back(task);
    elapsed_.push_back(elapsed);
    return static_cast<std::uint32_t>(task_.size() - 1);
  }

  void connect(const TaskGraph& graph, const std::vector<std::uint32_t>& of_end) {
    for (const auto& [first, second] : graph.dependencies) {
      edges_.push_back({end_[first], begin_[second], 0});
    }
    for (std::uint32_t i = 0; i < graph.messages.size(); ++i) {
      edges_.push_back({of_end[2 * i], of_end[2 * i + 1], std::max<std::int64_t>(0, graph.messages[i].transfer)});
    }
    std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.from < b.from; });
    for (const Edge& edge : edges_) {
      ++waits_[edge.to];
    }
    value_.assign(task_.size(), 0);
    before_.assign(task_.size(), kNoPoint);
  }

  std::vector<Edge>::const_iterator edges_from(std::uint32_t point) const {
    return std::lower_bound(edges_.begin(), edges_.end(), point,
                            [](const Edge& edge, std::uint32_t from) { return edge.from < from; });
  }

  void reach(std::uint32_t from, std::uint32_t to, std::int64_t weight, std::vector<std::uint32_t>& ready) {
    if (before_[to] == kNoPoint || value_[from] + weight > value_[to]) {
      value_[to] = value_[from] + weight;
      before_[to] = from;
    }
    if (--waits_[to] == 0) {
      ready.push_back(to);
    }
  }

  std::vector<std::uint32_t> begin_, end_;  // points of each task
  std::vector<std::uint32_t> task_, waits_, before_;
  std::vector<std::int64_t> elapsed_, value_;
  std::vector<Edge> edges_;
};

}  // namespace

std::uint32_t TaskGraph::task(std::uint32_t rank, std::uint64_t number) {
  if (rank >= numbers_.size()) {
    numbers_.resize(rank + 1);
  }
  const auto [place, fresh] = numbers_[rank].try_emplace(number, static_cast<std::uint32_t>(tasks.size()));
  if (fresh) {
    GraphTask& one = tasks.emplace_back();
    one.rank = rank;
    one.number = number;
  }
  return place->second;
}

void TaskGraph::depends(std::uint32_t first, std::uint32_t second) { dependencies.emplace_back(first, second); }

void TaskGraph::finish() {
  std::sort(dependencies.begin(), dependencies.end());
  dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());
}

CriticalPath critical_path(const TaskGraph& graph) {
  Points points(graph);
  if (points.follow()) {
    return points.longest();
  }
  CriticalPath path;
  path.circle = points.circle();
  return path;
}

}  // namespace elbowroom::trace
