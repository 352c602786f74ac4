#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/merge/sink.hpp"
#include "trace/outputs/outputs.hpp"
#include "trace/outputs/task_graph.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {
namespace {

// What is not in the graph, and is said of it.
struct LeftOut {
  std::uint64_t messages = 0;  // at least one of their ends is in no task
  std::uint64_t ends = 0;      // of tasks that had not begun
  std::uint64_t events = 0;    // lost
};

// Those of Okabe and Ito (Color Universal Design, 2008), lightened so that black text can be read on them.
constexpr std::array<const char*, 7> kFills = {"#F6C9A8", "#A9D3EA", "#9ADBC5", "#F5DC9B",
                                               "#EACBDB", "#F8F3A1", "#D5D9DE"};
constexpr std::size_t kNamed = 8;

std::string dot_duration(std::int64_t ns) {
  const auto [scale, unit] = ns < 1'000           ? std::pair{1.0, "ns"}
                             : ns < 1'000'000     ? std::pair{1e3, "us"}
                             : ns < 1'000'000'000 ? std::pair{1e6, "ms"}
                                                  : std::pair{1e9, "s"};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", static_cast<double>(ns) / scale, unit);
  return text.data();
}

// Inside a quoted string; what ends a line or is not text becomes a space.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result;
}

class Dot {
 public:
  Dot(WholeFile& file, const MergedJob& job, const TaskGraph& graph, const LeftOut& left_out)
      : file_(file), job_(job), graph_(graph), left_out_(left_out), path_(critical_path(graph)) {
    critical_.resize(graph.tasks.size());
    for (std::size_t i = 0; i < path_.tasks.size(); ++i) {
      critical_[path_.tasks[i]] = true;
      if (i > 0) {
        steps_.emplace(path_.tasks[i - 1], path_.tasks[i]);
      }
    }
  }

  void write() {
    const std::string text = summary();
    file_.write("digraph tasks {\n");
    file_.write("  graph [label=\"" + escaped(text) + "\", labelloc=t, fontname=\"sans-serif\"];\n");
    file_.write("  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11];\n");
    file_.write("  edge [color=\"#5B6470\", fontname=\"sans-serif\", fontsize=9];\n");
    std::vector<std::vector<std::uint32_t>> of_rank(job_.ranks.size());
    for (std::uint32_t task = 0; task < graph_.tasks.size(); ++task) {
      of_rank[graph_.tasks[task].rank].push_back(task);
    }
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      if (!of_rank[rank].empty()) {
        write_rank(job_.ranks[rank], of_rank[rank]);
      }
    }
    for (const auto& [first, second] : graph_.dependencies) {
      const char* marked = steps_.contains({first, second}) ? " [color=\"#D55E00\", penwidth=3]" : "";
      file_.write("  " + node(first) + " -> " + node(second) + marked + ";\n");
    }
    for (const TaskMessage& message : graph_.messages) {
      write_message(message);
    }
    file_.write("}\n");
  }

 private:
  std::string node(std::uint32_t task) const {
    const GraphTask& one = graph_.tasks[task];
    return std::string("r") + std::to_string(job_.ranks[one.rank].rank) + "_t" + std::to_string(one.number);
  }

  std::string name(std::uint32_t task) const {
    const GraphTask& one = graph_.tasks[task];
    if (!one.name.empty()) {
      return std::string(one.name);
    }
    return (one.begun ? job_.types[one.type].name : std::string("task")) + " " + std::to_string(one.number);
  }

  std::string full_name(std::uint32_t task) const {
    return name(task) + " (rank " + std::to_string(job_.ranks[graph_.tasks[task].rank].rank) + ")";
  }

  std::string names(const std::vector<std::uint32_t>& tasks, const char* between) const {
    std::string result;
    for (std::size_t i = 0; i < tasks.size() && i < kNamed; ++i) {
      result += (i > 0 ? between : "") + full_name(tasks[i]);
    }
    return result + (tasks.size() > kNamed ? between + std::string("...") : "");
  }

  std::string summary() const {
    std::vector<std::uint32_t> unknown;
    std::vector<std::uint32_t> open;
    for (std::uint32_t task = 0; task < graph_.tasks.size(); ++task) {
      if (!graph_.tasks[task].begun) {
        unknown.push_back(task);
      } else if (graph_.tasks[task].open) {
        open.push_back(task);
      }
    }
    std::string text = std::to_string(graph_.tasks.size()) + " tasks, " + std::to_string(graph_.dependencies.size()) +
                       " dependencies, " + std::to_string(graph_.messages.size()) + " messages between tasks. ";
    text += path_.circle.empty() ? "Critical path: " + dot_duration(path_.length) + " through " +
                                       std::to_string(path_.tasks.size()) + " tasks."
                                 : "Critical path: n/a, these wait for each other: " + names(path_.circle, ", ") + ".";
    text += unknown.empty() ? "" : " Waited for, or waiting, but never begun: " + names(unknown, ", ") + ".";
    text += open.empty() ? "" : " Not ended (at least as long): " + names(open, ", ") + ".";
    text += counted(left_out_.messages, "messages of which an end is in no task");
    text += counted(left_out_.ends, "ends of tasks that had not begun");
    text += counted(left_out_.events, "events that were lost");
    return text;
  }

  static std::string counted(std::uint64_t count, const char* what) {
    return count == 0 ? "" : " Left out: " + std::to_string(count) + " " + what + ".";
  }

  void write_rank(const MergedRank& rank, const std::vector<std::uint32_t>& tasks) {
    const std::string number = std::to_string(rank.rank);
    file_.write("  subgraph cluster_rank_" + number + " {\n");
    file_.write("    label=\"rank " + number + ", " + escaped(rank.host) + "\";\n");
    for (const std::uint32_t task : tasks) {
      const GraphTask& one = graph_.tasks[task];
      if (!one.begun) {
        file_.write("    " + node(task) + " [label=\"" + escaped(name(task)) + "\\nnever begun\", style=dashed];\n");
        continue;
      }
      const std::string run = std::to_string(one.run);
      file_.write("    " + node(task) + " [label=\"" + escaped(name(task)) + "\\n" + (one.open ? "> " : "") +
                  dot_duration(one.run) + "\", fillcolor=\"" + kFills[one.type % kFills.size()] + "\", type=\"" +
                  escaped(job_.types[one.type].name) + "\", begin_ns=" + std::to_string(one.begin) + ", run_ns=" + run +
                  (critical_[task] ? ", critical=true, color=\"#D55E00\", penwidth=3" : "") + "];\n");
    }
    file_.write("  }\n");
  }

  void write_message(const TaskMessage& message) {
    const auto [from, to] = std::pair{message.sent.task, message.received.task};
    const bool marked = steps_.contains({from, to});
    file_.write("  " + node(from) + " -> " + node(to) + " [style=dashed, constraint=false, label=\"" +
                std::to_string(message.bytes) + " B\", transfer_ns=" + std::to_string(message.transfer) +
                (marked ? ", color=\"#D55E00\", penwidth=3" : "") + "];\n");
  }

  WholeFile& file_;
  const MergedJob& job_;
  const TaskGraph& graph_;
  LeftOut left_out_;
  CriticalPath path_;
  std::vector<bool> critical_;                               // of each task
  std::set<std::pair<std::uint32_t, std::uint32_t>> steps_;  // of the critical path
};

// A cluster for each rank; the critical path is marked, circles and tasks that nobody ran are named.
void write_dot(WholeFile& file, const MergedJob& job, const TaskGraph& graph, const LeftOut& left_out) {
  Dot(file, job, graph, left_out).write();
}

// The tasks that each thread has begun and not ended, and how long the innermost ran.
class OpenTasks {
 public:
  OpenTasks(TaskGraph& graph, std::size_t threads) : graph_(&graph), stacks_(threads) {}

  void begin(const MergedEvent& event, std::uint32_t task) {
    pause(event.thread, event.time);
    GraphTask& begun = graph_->tasks[task];
    if (!begun.begun) {
      begun.begun = true;
      begun.begin = event.time;
      begun.thread = event.thread;
      begun.type = event.type;
    }
    begun.open = true;
    stacks_[event.thread].open.push_back(task);
  }

  // False: it had not begun. Those begun after it on this thread end with it: their ends are missing.
  bool end(const MergedEvent& event, std::uint32_t task) {
    pause(event.thread, event.time);
    auto& open = stacks_[event.thread].open;
    const auto entry = std::find(open.rbegin(), open.rend(), task);
    if (entry == open.rend()) {
      return false;
    }
    open.erase(entry.base() - 1, open.end());
    graph_->tasks[task].open = false;
    return true;
  }

  // The innermost task, if there is one, and how long it ran until now.
  bool moment(const MergedEvent& event, TaskMoment& result) {
    pause(event.thread, event.time);
    const auto& open = stacks_[event.thread].open;
    if (open.empty()) {
      return false;
    }
    result = {open.back(), graph_->tasks[open.back()].run, ++order_};
    return true;
  }

  void pause(std::uint32_t thread, std::int64_t now) {
    auto& [open, since] = stacks_[thread];
    if (!open.empty()) {
      graph_->tasks[open.back()].run += now - since;
    }
    since = now;
  }

 private:
  struct Stack {
    std::vector<std::uint32_t> open;
    std::int64_t since = 0;
  };

  TaskGraph* graph_;
  std::vector<Stack> stacks_;
  std::uint64_t order_ = 0;
};

class Graph : public Sink {
 public:
  explicit Graph(const std::string& path) : path_(path), file_(path) {}

  void begin(const MergedJob& job) override {
    job_ = job;
    open_ = std::make_unique<OpenTasks>(graph_, job.threads.size());
    for (const MergedType& type : job.types) {
      const bool task = job.categories[type.category] == "task";
      roles_.push_back(!task ? Role::kOther : type.name == "dependency" ? Role::kDependency : Role::kTask);
    }
    for (const MergedText& text : job.texts) {
      if (roles_[text.type] == Role::kTask) {
        names_[{job.threads[text.thread].rank, text.key}] = text.text;
      }
    }
  }

  void event(const MergedEvent& event) override {
    const std::uint32_t rank = job_.threads[event.thread].rank;
    const Role role = roles_[event.type];
    if (role == Role::kDependency && event.kind == ELBOW_TRACE_EVENT) {
      const std::uint32_t first = graph_.task(rank, event.first);
      graph_.depends(first, graph_.task(rank, event.second));
    } else if (role == Role::kTask && event.kind == ELBOW_TRACE_BEGIN) {
      open_->begin(event, graph_.task(rank, event.first));
    } else if (role == Role::kTask && event.kind == ELBOW_TRACE_END) {
      unbegun_ += open_->end(event, graph_.task(rank, event.first)) ? 0 : 1;
    } else if (event.message != 0) {
      message_end(event);
    }
    last_ = event.time;
  }

  void message(const MergedMessage& message) override {
    const auto sent = sent_.extract(message.message);
    const auto received = received_.extract(message.message);
    if (sent.empty() || received.empty()) {
      ++outside_;
      return;
    }
    graph_.messages.push_back({sent.mapped(), received.mapped(), message.received - message.sent, message.bytes});
  }

  void gap(const MergedGap& gap) override { lost_ += gap.lost; }

  void end() override {
    if (graph_.tasks.empty()) {
      throw std::runtime_error(
          "out '" + path_ +
          "': the trace has no tasks (events of category 'task'); trace a program of StarPU or OpenMP "
          "tasks, or begin and end them as include/elbowroom/trace.h says");
    }
    for (std::uint32_t thread = 0; thread < job_.threads.size(); ++thread) {
      open_->pause(thread, last_);  // of tasks that are open still: at least as long as the trace goes
    }
    graph_.finish();
    for (GraphTask& task : graph_.tasks) {
      if (const auto name = names_.find({task.rank, task.number}); name != names_.end()) {
        task.name = name->second;
      }
    }
    write_dot(file_, job_, graph_, {outside_, unbegun_, lost_});
    file_.keep();
  }

 private:
  enum class Role { kOther, kTask, kDependency };

  void message_end(const MergedEvent& event) {
    TaskMoment moment;
    if (open_->moment(event, moment)) {
      (event.kind == ELBOW_TRACE_SEND ? sent_ : received_)[event.message] = moment;
    }
  }

  std::string path_;
  WholeFile file_;
  MergedJob job_;
  TaskGraph graph_;
  std::unique_ptr<OpenTasks> open_;
  std::vector<Role> roles_;  // of each type
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string_view> names_;
  std::unordered_map<std::uint64_t, TaskMoment> sent_, received_;  // of messages whose other end has not been told
  std::int64_t last_ = 0;
  std::uint64_t outside_ = 0, unbegun_ = 0, lost_ = 0;
};

}  // namespace

std::unique_ptr<Sink> graph_output(const std::string& path) { return std::make_unique<Graph>(path); }

}  // namespace elbowroom::trace
