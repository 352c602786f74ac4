#include "observe/tracing.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>

namespace elbowroom {
namespace {

// A computing thread records some 2000 events in a second.
constexpr std::size_t kRingBytes = std::size_t{32} << 20;

// Of no category: never recorded.
constexpr elbow_trace_type kOff{};

constexpr auto kTracedKinds = static_cast<std::size_t>(Traced::count);
std::array<const elbow_trace_type*, kTracedKinds> types = [] {
  std::array<const elbow_trace_type*, kTracedKinds> none{};
  none.fill(&kOff);
  return none;
}();
std::atomic<bool> on{false};
std::mutex types_mutex;
std::map<std::string, const elbow_trace_type*> types_by_name;

const elbow_trace_type* new_type(const char* name, const char* category, const char* first, const char* second) {
  const elbow_trace_type* type = elbow_trace_type_new(name, elbow_trace_category(category), nullptr, first, second);
  return type == nullptr ? &kOff : type;
}

const elbow_trace_type* by_name(const std::string& name, const char* category, const char* first, const char* second) {
  if (!tracing()) return &kOff;
  const std::lock_guard lock(types_mutex);
  const elbow_trace_type*& type = types_by_name[name];
  if (type == nullptr) type = new_type(name.c_str(), category, first, second);
  return type;
}

void put(Traced what, const elbow_trace_type* type) { types[static_cast<std::size_t>(what)] = type; }

}  // namespace

void start_tracing(const std::string& directory, int rank, int ranks, std::uint64_t job) {
  elbow_trace_settings settings{};
  settings.size = sizeof settings;
  settings.directory = directory.c_str();
  settings.bytes = kRingBytes;
  settings.job = job;
  settings.rank = rank;
  settings.ranks = ranks;
  if (elbow_trace_start(&settings) != 0) throw std::runtime_error(std::string("trace: ") + elbow_trace_error());
  on = true;
  put(Traced::repetition, new_type("repetition", "protocol", "number", nullptr));
  put(Traced::settling, new_type("until steady", "protocol", nullptr, nullptr));
  put(Traced::alone, new_type("A: computation alone", "protocol", "index", nullptr));
  put(Traced::messages, new_type("B: communication alone", "protocol", "index", nullptr));
  put(Traced::together, new_type("AB: together", "protocol", "index", nullptr));
  put(Traced::sleep, new_type("S: sleep", "protocol", "index", nullptr));
  put(Traced::announcement, new_type("announcement of a batch", "message", nullptr, nullptr));
}

void stop_tracing() {
  if (!on.exchange(false)) return;
  if (elbow_trace_stop(nullptr) != 0) throw std::runtime_error(std::string("trace: ") + elbow_trace_error());
}

bool tracing() { return on; }

void trace_thread(const std::string& name) {
  if (tracing()) elbow_trace_thread(name.c_str());
}

const elbow_trace_type* traced_chunk(const std::string& kernel) {
  return by_name(kernel, "computation", "items", nullptr);
}

const elbow_trace_type* traced_batch(const std::string& pattern) {
  return by_name(pattern, "communication", "bytes", "iterations");
}

const elbow_trace_type* traced(Traced what) { return types[static_cast<std::size_t>(what)]; }

void trace_point(std::uint64_t repetition, const std::string& point) {
  if (tracing()) elbow_trace_text(traced(Traced::repetition), repetition, point.c_str());
}

}  // namespace elbowroom
