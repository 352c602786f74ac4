// What the outputs for viewers hold where their own tools (tests/unit/trace/test_trace_outputs.py) do not look.
#include <doctest/doctest.h>
#include <otf2/otf2.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/test_job.hpp"

namespace elbowroom::trace {
namespace {

using Maker = std::unique_ptr<Sink> (*)(const std::string&);
constexpr Maker kMakers[] = {perfetto_output, chrome_output, otf2_output, paje_output};

nlohmann::json events_of(const std::string& path) { return nlohmann::json::parse(read_whole(path))["traceEvents"]; }

TEST_CASE("numbers that a double would round are strings in JSON, but for values of counters") {
  const TestFolder folder;
  const MergedJob job = test_job();
  const auto sink = chrome_output(folder.file("t"));
  sink->begin(job);
  sink->event(test_event(1, 0, 0, ELBOW_TRACE_EVENT, (1ULL << 53) + 1, 1ULL << 53));
  sink->event(test_event(1, 0, 5, ELBOW_TRACE_COUNTER, (1ULL << 53) + 1));
  sink->end();
  for (const auto& event : events_of(folder.file("t"))) {
    if (event["ph"] == "i") {
      CHECK(event["args"]["task"] == "9007199254740993");
      CHECK(event["args"]["cells"] == 9007199254740992);
    } else if (event["ph"] == "C") {
      CHECK(event["args"]["value"] == 9007199254740993);
    }
  }
}

TEST_CASE("arrows of JSON lead from the sender's time to the receiver's, of tachyons back") {
  const TestFolder folder;
  const MergedJob job = test_job();
  const auto sink = chrome_output(folder.file("t"));
  sink->begin(job);
  test_message(*sink, 1, 100, 0, 200, 1, 64);
  test_message(*sink, 2, 300, 1, 250, 0, 64);
  sink->end();
  std::string text;
  for (const auto& event : events_of(folder.file("t"))) {
    if (event["ph"] == "s" || event["ph"] == "f") {
      text += event["ph"].get<std::string>() + event["id"].dump() + " " + event["ts"].dump() + " ";
    }
  }
  CHECK(text == "s1 0.1 f1 0.2 s2 0.3 f2 0.25 ");
}

TEST_CASE("an output that is given up leaves nothing behind") {
  for (const Maker make : kMakers) {
    const TestFolder folder;
    const MergedJob job = test_job();
    {
      const auto sink = make(folder.file("t"));
      sink->begin(job);
      sink->event(test_event(1, 0, 0, ELBOW_TRACE_BEGIN, 1));
    }
    CHECK(folder.empty());
  }
}

TEST_CASE("spans nested more deeply than viewers show are no error") {
  const TestFolder folder;
  const MergedJob job = test_job();
  for (const Maker make : kMakers) {
    const auto sink = make(folder.file("t"));
    sink->begin(job);
    for (int i = 0; i < 2000; ++i) {
      sink->event(test_event(i, 0, 0, ELBOW_TRACE_BEGIN, static_cast<std::uint64_t>(i)));
    }
    for (int i = 2000; i-- > 0;) {
      sink->event(test_event(4000 - i, 0, 0, ELBOW_TRACE_END, static_cast<std::uint64_t>(i)));
    }
    CHECK_NOTHROW(sink->end());
    std::filesystem::remove_all(folder.file("t"));
  }
}

struct Read {
  std::vector<std::uint64_t> times;
};

OTF2_CallbackCode entered(OTF2_LocationRef, OTF2_TimeStamp time, void* read, OTF2_AttributeList*, OTF2_RegionRef) {
  static_cast<Read*>(read)->times.push_back(time);
  return OTF2_CALLBACK_SUCCESS;
}

// The times of all begins as a reader that applies ClockOffset records has them.
std::vector<std::uint64_t> corrected_times(const std::string& path) {
  Read read;
  OTF2_Reader* reader = OTF2_Reader_Open((path + "/traces.otf2").c_str());
  REQUIRE(reader != nullptr);
  OTF2_Reader_SetSerialCollectiveCallbacks(reader);
  OTF2_Reader_SelectLocation(reader, 0);
  OTF2_Reader_OpenDefFiles(reader);
  std::uint64_t count = 0;
  OTF2_DefReader* definitions = OTF2_Reader_GetDefReader(reader, 0);
  OTF2_Reader_ReadAllLocalDefinitions(reader, definitions, &count);
  OTF2_Reader_CloseDefReader(reader, definitions);
  OTF2_Reader_CloseDefFiles(reader);
  OTF2_Reader_OpenEvtFiles(reader);
  OTF2_Reader_GetEvtReader(reader, 0);
  OTF2_GlobalEvtReader* events = OTF2_Reader_GetGlobalEvtReader(reader);
  OTF2_GlobalEvtReaderCallbacks* callbacks = OTF2_GlobalEvtReaderCallbacks_New();
  OTF2_GlobalEvtReaderCallbacks_SetEnterCallback(callbacks, &entered);
  OTF2_Reader_RegisterGlobalEvtCallbacks(reader, events, callbacks, &read);
  OTF2_GlobalEvtReaderCallbacks_Delete(callbacks);
  OTF2_Reader_ReadAllGlobalEvents(reader, events, &count);
  OTF2_Reader_Close(reader);
  return read.times;
}

TEST_CASE("readers of OTF2 correct times to those of the merge, between, before and behind its comparisons") {
  const TestFolder folder;
  MergedJob job = test_job(1);
  // A clock 2 h behind that is 30 ppm fast, then slow; a comparison that was rejected in between.
  const std::int64_t h = 3'600'000'000'000;
  std::vector<MergedSync>& syncs = job.ranks[0].syncs;
  syncs = {{h, 2 * h, 2 * h - 10, 2 * h + 10, true},
           {h + 500'000'000, 77, 0, 100, false},
           {h + 1'000'000'003, 2 * h - 30'001, 2 * h - 30'011, 2 * h - 29'991, true},
           {h + 3'000'000'001, 2 * h + 12'345, 2 * h, 2 * h + 20'000, true}};
  job.start = 3 * h - 5'000'000'000;
  const auto corrected = [&](std::int64_t local) {
    const MergedSync* left = &syncs[0];
    const MergedSync* right = &syncs[2];
    if (local > right->local) {
      left = right;
      right = &syncs[3];
    }
    if (local <= left->local || local >= right->local) {
      return local + (local <= left->local ? left : right)->offset;
    }
    __extension__ using Wide = __int128;
    const Wide rise = Wide{right->offset - left->offset} * (local - left->local);
    return local + left->offset + static_cast<std::int64_t>(rise / (right->local - left->local));
  };
  const auto sink = otf2_output(folder.file("t"));
  sink->begin(job);
  std::vector<std::int64_t> wanted;
  for (std::int64_t local = h - 4'000'000'000; local < h + 9'000'000'000; local += 9'999'991) {
    MergedEvent event = test_event(corrected(local) - job.start, 0, 0, ELBOW_TRACE_EVENT);
    event.stamp = static_cast<std::uint64_t>(local);
    sink->event(event);
    wanted.push_back(corrected(local));
  }
  sink->end();
  const std::vector<std::uint64_t> read = corrected_times(folder.file("t"));
  REQUIRE(read.size() == wanted.size());
  std::int64_t most = 0;
  for (std::size_t i = 0; i < read.size(); ++i) {
    most = std::max(most, std::abs(static_cast<std::int64_t>(read[i]) - wanted[i]));
  }
  CHECK(most <= 1);
}

TEST_CASE("an event whose stamp is wrong is where the event before is, and moves none behind it") {
  const TestFolder folder;
  MergedJob job = test_job(1);
  job.ranks[0].syncs.clear();
  const auto sink = otf2_output(folder.file("t"));
  sink->begin(job);
  for (const auto& [time, stamp, flags] : {std::tuple{10, 5000ULL, 0}, {10, ~0ULL >> 2, +kMoved}, {30, 5020ULL, 0}}) {
    MergedEvent event = test_event(time, 0, 0, ELBOW_TRACE_EVENT);
    event.stamp = stamp;
    event.flags = static_cast<std::uint8_t>(flags);
    sink->event(event);
  }
  sink->end();
  const std::uint64_t start = static_cast<std::uint64_t>(job.start);
  CHECK(corrected_times(folder.file("t")) == std::vector<std::uint64_t>{start + 10, start + 10, start + 30});
}

TEST_CASE("a process without comparisons keeps the times that the merge gave it") {
  const TestFolder folder;
  MergedJob job = test_job(1);
  job.ranks[0].syncs.clear();
  const auto sink = otf2_output(folder.file("t"));
  sink->begin(job);
  sink->gap({0, 0, 10, 3});  // a flight recorder's: told before any event
  MergedEvent event = test_event(10, 0, 0, ELBOW_TRACE_EVENT);
  event.stamp = 5000;
  event.flags = kUnsynced;
  sink->event(event);
  event.time = 30;
  event.stamp = 5020;
  sink->event(event);
  sink->end();
  const std::uint64_t start = static_cast<std::uint64_t>(job.start);
  CHECK(corrected_times(folder.file("t")) == std::vector<std::uint64_t>{start + 10, start + 30});
}

}  // namespace
}  // namespace elbowroom::trace
