// libFuzzer: any bytes as the files of a trace of two ranks. The input is split by a line of its own: two files of lines,
// two rings. Everything is opened, merged, and told.
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trace/merge/merge.hpp"
#include "trace/merge/report.hpp"

namespace {

constexpr std::string_view kSplit = "\n--elbow--\n";

struct Checking : elbowroom::trace::Sink {
  std::int64_t last = 0;
  void begin(const elbowroom::trace::MergedJob& of) override { job = &of; }
  void event(const elbowroom::trace::MergedEvent& event) override {
    if (event.time < last || event.type >= job->types.size() || event.thread >= job->threads.size()) {
      __builtin_trap();
    }
    last = event.time;
  }
  void message(const elbowroom::trace::MergedMessage& message) override {
    if (message.from >= job->threads.size() || message.to >= job->threads.size()) {
      __builtin_trap();
    }
  }
  void gap(const elbowroom::trace::MergedGap& gap) override {
    if (gap.end < gap.begin || gap.thread >= job->threads.size()) {
      __builtin_trap();
    }
  }
  void end() override {}
  const elbowroom::trace::MergedJob* job = nullptr;
};

const std::string& folder() {
  static const std::string name = [] {
    std::string name = "/dev/shm/elbow-fuzz-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  return name;
}

void write(const char* name, std::string_view bytes) {
  std::ofstream(folder() + "/" + name, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace elbowroom::trace;
  std::string_view left(reinterpret_cast<const char*>(data), size);
  for (const char* name :
       {"rank-00000.jsonl", "rank-00001.jsonl", "rank-00000.thread-00000.ring", "rank-00001.thread-00000.ring"}) {
    const std::size_t end = left.find(kSplit);
    write(name, left.substr(0, end));
    left = end == std::string_view::npos ? std::string_view() : left.substr(end + kSplit.size());
  }
  try {
    const auto trace = open_trace(folder());
    Merged merged(*trace, 3);
    Checking sink;
    merge(*trace, &sink, merged);
    check_report(*trace, merged, true);
    stat_report(*trace, merged);
    sync_report(*trace);
  } catch (const Refused&) {
    return 0;
  }
  return 0;
}
