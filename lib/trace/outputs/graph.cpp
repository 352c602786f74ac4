#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/task_dot.hpp"
#include "trace/outputs/task_graph.hpp"
#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {
namespace {

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
