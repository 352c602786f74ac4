// Traces that are damaged, mixed, incomplete, or none.
#include "trace/merge/files.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trace/merge/report.hpp"
#include "trace/merge/synthetic_trace.hpp"
#include "trace/merge/test_collected.hpp"
#include "trace/outputs/test_job.hpp"

using namespace elbowroom::trace;
namespace fs = std::filesystem;

namespace {

constexpr const char* kRing = "rank-00000.thread-00000.ring";

// A rank with a thread of a hundred events and a text for each tenth.
struct Small {
  TestFolder folder;
  std::string directory = folder.file("trace");
  SyntheticTrace trace{directory};
  std::uint16_t type = trace.type("step", trace.category("work"), {"", "i", ""});

  Small() {
    trace.thread(0, "main");
    for (std::uint64_t i = 0; i < 100; ++i) {
      trace.add(0, 0, 1000 + i, type, ELBOW_TRACE_EVENT, 0, i);
      if (i % 10 == 0) {
        trace.text(0, 0, type, i, "step " + std::to_string(i));
      }
    }
  }
  void write() { trace.write(); }
  std::string ring() const { return trace.ring(0, 0); }
};

void change(const std::string& path, std::uint64_t place, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(place));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void append(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }

std::string refusal(const std::string& directory) {
  try {
    open_trace(directory);
  } catch (const Refused& refused) {
    return refused.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("A whole trace has its events, texts and totals, and no warning") {
  Small small;
  small.write();
  const ReadTrace read(small.directory);
  CHECK(read.got.events.size() == 100);
  REQUIRE(read.got.job.texts.size() == 10);
  CHECK(read.got.job.texts[3].text == "step 30");
  CHECK(read.got.job.texts[3].key == 30);
  CHECK(read.got.job.types[read.got.job.texts[3].type].name == "step");
  CHECK(read.got.job.warnings.empty());
  CHECK(read.trace->damage.empty());
  CHECK(doubts(*read.trace, read.merged).empty());
}

TEST_CASE("What is not a folder of a trace is refused with a sentence") {
  TestFolder folder;
  CHECK(has(refusal(folder.file("nowhere")), "there is no such folder; name the folder"));
  append(folder.file("file"), "x");
  CHECK(has(refusal(folder.file("file")), "is a file, and a trace is a folder"));
  fs::create_directory(folder.file("empty"));
  CHECK(has(refusal(folder.file("empty")), "has no files of a trace"));
  append(folder.file("empty/rank-x.jsonl"), "{}");
  append(folder.file("empty/rank-00000.thread-00000.ring.tmp"), "");
  CHECK(has(refusal(folder.file("empty")), "has no files of a trace"));
}

TEST_CASE("Files that may not be read are named" * doctest::skip(::geteuid() == 0)) {
  Small small;
  small.write();
  ::chmod(small.ring().c_str(), 0);
  const ReadTrace read(small.directory);
  CHECK(read.trace->damage.at(0).file == kRing);
  CHECK(has(read.trace->damage.at(0).what, "cannot be read (Permission denied)"));
  ::chmod(small.directory.c_str(), 0);
  CHECK(has(refusal(small.directory), "cannot be read (Permission denied)"));
  ::chmod(small.directory.c_str(), 0700);
}

TEST_CASE("What stands where a file should be is named") {
  Small small;
  small.write();
  fs::create_directory(small.directory + "/rank-00000.thread-00001.ring");
  const ReadTrace read(small.directory);
  CHECK(read.got.events.size() == 100);
  CHECK(read.trace->damage.at(0).file == "rank-00000.thread-00001.ring");
  CHECK(has(read.trace->damage.at(0).what, "cannot be read"));
}

TEST_CASE("A truncated ring is read up to its end, which is named") {
  Small small;
  small.write();
  fs::resize_file(small.ring(), kHeaderBytes + 50 * 32 + 7);
  const ReadTrace read(small.directory);
  CHECK(read.got.events.size() == 50);
  CHECK(read.trace->damage.at(0).file == kRing);
  CHECK(has(read.trace->damage.at(0).what, "the file ends after 50 of 100 events, at byte 5703"));
  CHECK(has(read.got.job.threads.at(0).damage, "the file ends after 50"));
  CHECK(read.got.job.threads.at(0).lost == 50);
  CHECK(read.warned("rank 0 reported at its end that it kept 100 of 100 events; its files hold 50 of 100"));
  CHECK_FALSE(doubts(*read.trace, read.merged).empty());
  fs::resize_file(small.ring(), 100);
  const ReadTrace less(small.directory);
  CHECK(less.got.events.empty());
  CHECK(has(less.trace->damage.at(0).what, "the file ends inside its header, after 100 bytes"));
}

TEST_CASE("A damaged slot ends what is read of its thread, and is named with its place") {
  Small small;
  small.trace.thread(0, "other");
  small.trace.add(0, 1, 5000, small.type, ELBOW_TRACE_EVENT);
  small.write();
  change(small.ring(), kHeaderBytes + 20 * 32 + offsetof(elbow_trace_slot, kind), "\xC8");
  const ReadTrace read(small.directory);
  CHECK(read.got.events.size() == 21);
  CHECK(read.trace->damage.at(0).what ==
        "event 20, at byte 4736, is of kind 200, which does not exist; the events before it were read");
  const auto report = check_report(*read.trace, read.merged);
  CHECK(report["kept"] == 21);
  CHECK(report["lost"] == 80);
  CHECK(report["events"] == 101);
  CHECK(report["damage"][0]["file"] == kRing);
}

TEST_CASE("A ring of another version, or with a damaged header, is left out and named") {
  Small small;
  small.write();
  change(small.ring(), offsetof(RingHeader, version), std::string("\x09\0\0\0", 4));
  CHECK(has(ReadTrace(small.directory).trace->damage.at(0).what, "has version 9, but this release reads 1"));
  change(small.ring(), 0, "nothing");
  CHECK(has(ReadTrace(small.directory).trace->damage.at(0).what, "is not a ring of a trace"));
}

TEST_CASE("Lines of another version are refused, with what this release reads") {
  Small small;
  small.write();
  std::string text = read_whole(small.trace.lines(0));
  text.replace(text.find("\"format\":1"), 10, "\"format\":7");
  std::ofstream(small.trace.lines(0), std::ios::trunc) << text;
  CHECK(has(refusal(small.directory), "rank-00000.jsonl: has version 7, but this release reads 1; read it with"));
}

TEST_CASE("Files of different jobs are refused with both numbers") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"), 2, 7);
  trace.job_of(1, 99);
  trace.thread(0, "main");
  trace.thread(1, "main");
  trace.write();
  const std::string sentence = refusal(folder.file("trace"));
  CHECK(has(sentence, "has files of different jobs: rank-00000.jsonl is of job 7 and rank-00001.jsonl of job 99"));
}

TEST_CASE("A ring that strayed in from another job is refused, too, and so are other numbers of ranks") {
  Small small;
  small.write();
  TestFolder folder;
  SyntheticTrace other(folder.file("trace"), 2, 7);
  other.thread(0, "main");
  other.thread(0, "main");
  other.write();
  fs::copy(other.ring(0, 1), small.directory + "/rank-00000.thread-00001.ring");
  CHECK(has(refusal(small.directory), "is of job 7 with 1 ranks and rank-00000.thread-00001.ring with 2"));
}

TEST_CASE("A missing rank is named, and the others are merged") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"), 3);
  trace.leave_out(1);
  const auto type = trace.type("a", trace.category("c"));
  for (const int rank : {0, 2}) {
    trace.thread(rank, "main");
    trace.sync(rank, 0, 0, 0, 0);
    trace.sync(rank, 1000, 0, 0, 0);
    trace.add(rank, 0, 500, type, ELBOW_TRACE_EVENT);
  }
  trace.write();
  const ReadTrace read(folder.file("trace"));
  CHECK(read.got.events.size() == 2);
  CHECK(read.warned("rank 1 of 3 is missing"));
  CHECK(check_report(*read.trace, read.merged)["missing"] == nlohmann::ordered_json({1}));
  CHECK_FALSE(doubts(*read.trace, read.merged).empty());
}

TEST_CASE("A killed rank's rings are found in memory, or in a copy of that folder beside its lines") {
  for (const bool copied : {false, true}) {
    TestFolder folder;
    SyntheticTrace trace(folder.file("trace"), 2);
    trace.kill(1, folder.file("memory"));
    const auto type = trace.type("a", trace.category("c"));
    for (const int rank : {0, 1}) {
      trace.thread(rank, "main");
      trace.sync(rank, 0, 0, 0, 0);
      for (std::uint64_t i = 1; i <= 70; ++i) {
        trace.add(rank, 0, i, type, ELBOW_TRACE_EVENT);
      }
    }
    trace.text(1, 0, type, 5, "last words");
    trace.write();
    if (copied) {
      fs::rename(folder.file("memory"), folder.file("trace/memory"));
    }
    const ReadTrace read(folder.file("trace"));
    CHECK(read.got.events.size() == 140);
    CHECK(read.got.job.texts.at(0).text == "last words");
    CHECK_FALSE(read.got.job.ranks.at(1).ended);
    CHECK(read.warned("rank 1 was killed before its trace was stopped; 1 of its threads were recovered from memory"));
    CHECK(check_report(*read.trace, read.merged)["killed"] == nlohmann::ordered_json({1}));
    CHECK(read.trace->damage.empty());
    fs::remove_all(folder.file(copied ? "trace/memory" : "memory"));
    CHECK(ReadTrace(folder.file("trace")).warned("its rings are not here; copy"));
  }
}

TEST_CASE("Events of a type that no line tells are shown by its number") {
  Small small;
  small.trace.add(0, 0, 2000, 17, ELBOW_TRACE_EVENT);
  small.write();
  const ReadTrace read(small.directory);
  const MergedEvent& last = read.got.events.back();
  CHECK(read.got.job.types.at(last.type).name == "type 17 (unknown)");
  CHECK(read.got.job.categories.at(read.got.job.types.at(last.type).category) == "unknown");
  CHECK(read.warned("type 17 is unknown"));
}

TEST_CASE("Lines damaged in the middle are named, and the others read") {
  Small small;
  small.write();
  std::string text = read_whole(small.trace.lines(0));
  const std::size_t line = text.find("{\"record\":\"type\",\"number\":1") == std::string::npos
                               ? text.find('\n', text.find('\n') + 1) + 1
                               : text.find("{\"record\":\"type\",\"number\":1");
  text[line] = '?';
  std::ofstream(small.trace.lines(0), std::ios::trunc) << text;
  const ReadTrace read(small.directory);
  CHECK(read.got.events.size() == 100);
  CHECK(read.trace->damage.at(0).file == "rank-00000.jsonl");
  CHECK(has(read.trace->damage.at(0).what, "line 3, at byte " + std::to_string(line) + ", is damaged"));
}

TEST_CASE("Without its lines a ring is read by its own header") {
  Small small;
  small.write();
  fs::remove(small.trace.lines(0));
  const ReadTrace read(small.directory);
  CHECK(read.got.events.size() == 100);
  CHECK(has(read.got.job.types.at(read.got.events[0].type).name, "(unknown)"));
  CHECK(read.got.job.ranks.at(0).host == "node0");
}

TEST_CASE("Sync points of another clock, or that contradict themselves, are not used") {
  Small small;
  small.write();
  append(small.trace.lines(0), R"({"record":"sync","local":5,"offset":9,"low":8,"high":10,"same_source":false})"
                               "\n"
                               R"({"record":"sync","local":5,"offset":9,"low":11,"high":10,"same_source":true})"
                               "\n"
                               R"({"record":"sync","local":5,"offset":4e18,"low":0,"high":10,"same_source":true})"
                               "\n");
  const ReadTrace read(small.directory);
  CHECK(read.warned("1 sync points are of another clock"));
  CHECK(has(read.trace->damage.at(0).what, "is damaged, and 1 more"));
  CHECK(sync_report(*read.trace)["ranks"][0]["points"][0]["used"] == false);
}

TEST_CASE("Whatever bytes are changed, reading ends, and what it delivers is in order and adds up") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"), 2);
  const auto type = trace.type("a", trace.category("c"), {"x", "", ""});
  for (const int rank : {0, 1}) {
    trace.thread(rank, "main", rank == 0 ? ELBOW_TRACE_STOP : ELBOW_TRACE_OVERWRITE);
    trace.sync(rank, 0, 0, -5, 5);
    trace.sync(rank, 1'000'000, 0, -5, 5);
    for (std::uint32_t i = 1; i <= 64; ++i) {
      trace.send(rank, 0, 100 * i, type, 1 - rank, i, 0, 0, i % 2);
      trace.text(rank, 0, type, i, "text");
    }
  }
  trace.lose(1, 0, 64);
  trace.write();
  std::vector<std::string> paths = {trace.ring(0, 0), trace.ring(1, 0), trace.lines(0), trace.lines(1)};
  std::uint64_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % below;
  };
  std::size_t refused = 0;
  std::size_t events = 0;
  constexpr int kTrials = 1500;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::string& path = paths[random(paths.size())];
    const std::string sound = read_whole(path);
    std::string changed = sound;
    for (std::uint64_t i = 0; i <= random(4); ++i) {
      const bool front = changed.size() > kHeaderBytes && random(2) == 0;
      changed[random(front ? sizeof(RingHeader) : changed.size())] = static_cast<char>(random(256));
    }
    if (random(8) == 0) {
      changed.resize(random(changed.size()));
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
    try {
      const ReadTrace read(folder.file("trace"), 3);
      const auto report = check_report(*read.trace, read.merged);
      events += read.got.events.size();
      CHECK(read.merged.monotone);
      CHECK(report["kept"] == read.got.events.size());
      CHECK(report["events"].get<std::uint64_t>() ==
            report["kept"].get<std::uint64_t>() + report["lost"].get<std::uint64_t>());
      stat_report(*read.trace, read.merged);
      sync_report(*read.trace);
    } catch (const Refused&) {
      ++refused;
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << sound;
  }
  CHECK(refused > 0);
  CHECK(refused < kTrials / 2);
  CHECK(events > kTrials * 32);
}

TEST_CASE("A number of ranks that no job has is damage, and missing ranks are one sentence") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"), 30);
  for (int rank = 1; rank < 30; ++rank) {
    trace.leave_out(rank);
  }
  trace.thread(0, "main");
  trace.write();
  const ReadTrace read(folder.file("trace"));
  CHECK(read.warned("rank 1 of 30 and all after it are missing"));
  CHECK(read.trace->job.ranks.size() == 1);
  const nlohmann::json report = check_report(*read.trace, read.merged);
  CHECK(report["ranks"] == 30);
  CHECK(report["missing"].size() == 29);
  CHECK(report["missing"].front() == 1);
  CHECK(report["missing"].back() == 29);
  CHECK(has(doubts(*read.trace, read.merged).at(1), "29 of 30 ranks have no files here"));
  fs::remove(trace.lines(0));
  change(trace.ring(0, 0), offsetof(RingHeader, ranks), "\xFF\xFF\xFF\x7F");
  CHECK(has(ReadTrace(folder.file("trace")).trace->damage.at(0).what,
            "is thread 0 of rank 0 of 2147483647 by its header"));
}

TEST_CASE("Of a million missing ranks the first ones are listed") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"), 1 << 20);
  for (int rank = 1; rank < 1 << 20; ++rank) {
    trace.leave_out(rank);
  }
  trace.thread(0, "main");
  trace.write();
  const ReadTrace read(folder.file("trace"));
  const nlohmann::json report = check_report(*read.trace, read.merged);
  CHECK(read.trace->ranks.size() == 1);
  CHECK(report["ranks"] == 1 << 20);
  CHECK(report["missing"].size() == 4096);
  CHECK(report["missing"].front() == 1);
}

TEST_CASE("A name that claims the millionth rank takes no memory for those before it") {
  TestFolder folder;
  SyntheticTrace trace(folder.file("trace"), 1 << 20);
  for (int rank = 0; rank < (1 << 20) - 1; ++rank) {
    trace.leave_out(rank);
  }
  trace.thread((1 << 20) - 1, "main");
  trace.write();
  CHECK_THROWS_WITH_AS(open_trace(folder.file("trace")), doctest::Contains("has files of rank 1048575, and of 1 ranks"),
                       Refused);
}
