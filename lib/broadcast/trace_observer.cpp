#include <dlfcn.h>

#include <map>
#include <string>

#include "elbowroom/trace.h"
#include "observer.hpp"

namespace elbowroom::broadcast {
namespace {

// The functions of libelbow_trace in this process; it is preloaded, or the program's own.
struct Recorder {
  decltype(&elbow_trace_category) category = nullptr;
  decltype(&elbow_trace_type_new) type_new = nullptr;
  decltype(&elbow_trace_thread) thread = nullptr;
  decltype(&elbow_trace_record) record = nullptr;

  bool found() const { return category && type_new && thread && record; }
};

template <typename Function>
void look_up(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

Recorder recorder_here() {
  Recorder recorder;
  look_up(recorder.category, "elbow_trace_category");
  look_up(recorder.type_new, "elbow_trace_type_new");
  look_up(recorder.thread, "elbow_trace_thread");
  look_up(recorder.record, "elbow_trace_record");
  return recorder;
}

// The number by which both ends of an edge know its tree: parents and children, tags and sequence numbers may be the same
// in trees of several roots, contexts and stripes. Communicators of MPI are numbered from 0 on.
std::uint32_t communicator_of(const Announcement& announcement) {
  std::uint32_t hash = 2166136261U;
  for (const std::uint32_t part : {announcement.key.context, static_cast<std::uint32_t>(announcement.key.root),
                                   static_cast<std::uint32_t>(announcement.stripe)}) {
    hash = (hash ^ part) * 16777619U;
  }
  return hash | 0x80000000U;
}

class TraceObserver : public Observer {
 public:
  TraceObserver(const Recorder& recorder, int category)
      : recorder_(recorder),
        category_(category),
        edge_(recorder.type_new("tree edge", category, "tag", nullptr, nullptr)) {}

  void thread_started() override { recorder_.thread("broadcast"); }

  void announced(int child, const Announcement& announcement) override {
    record_edge(ELBOW_TRACE_SEND, child, announcement);
  }
  void was_announced(int parent, const Announcement& announcement) override {
    record_edge(ELBOW_TRACE_RECEIVE, parent, announcement);
  }
  void received(const Passage& passage) override { record_state("received", received_, passage); }
  void released(const Passage& passage) override { record_state("released", released_, passage); }

 private:
  using Types = std::map<std::string, const elbow_trace_type*>;

  // Bytes are those of the data that follow, of this stripe of them.
  void record_edge(int kind, int peer, const Announcement& announcement) const {
    if (edge_ == nullptr) return;
    const std::uint64_t place = static_cast<std::uint64_t>(communicator_of(announcement)) << 32;
    recorder_.record(edge_, kind, static_cast<std::uint32_t>(announcement.key.tag),
                     place | static_cast<std::uint32_t>(peer),
                     elbow_trace_numbered(static_cast<std::uint32_t>(announcement.receiver.serial),
                                          announcement.size / announcement.stripes));
  }

  void record_state(const char* state, Types& types, const Passage& passage) {
    const std::string tree = passage.stripes > 1 ? "two trees" : format_tree(passage.tree) + " tree";
    const auto [found, is_new] = types.try_emplace(tree);
    if (is_new) {
      const std::string name = std::string(state) + " (" + tree + ")";
      found->second = recorder_.type_new(name.c_str(), category_, "tag", "root", "bytes");
    }
    if (found->second == nullptr) return;
    recorder_.record(found->second, ELBOW_TRACE_EVENT, static_cast<std::uint32_t>(passage.key.tag),
                     static_cast<std::uint64_t>(passage.key.root), passage.size);
  }

  Recorder recorder_;
  int category_;
  const elbow_trace_type* edge_;
  Types received_;
  Types released_;
};

}  // namespace

std::unique_ptr<Observer> make_trace_observer() {
  const Recorder recorder = recorder_here();
  const int category = recorder.found() ? recorder.category("broadcast") : -1;
  return category < 0 ? nullptr : std::make_unique<TraceObserver>(recorder, category);
}

}  // namespace elbowroom::broadcast
