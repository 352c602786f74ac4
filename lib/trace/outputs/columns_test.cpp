#include "trace/outputs/columns.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/test_job.hpp"

namespace elbowroom::trace {
namespace {

const std::map<std::string, std::size_t> kColumnSizes = {{"EVNT", sizeof(ColumnEvent)},
                                                         {"MESG", sizeof(ColumnMessage)},
                                                         {"GAPS", sizeof(ColumnGap)},
                                                         {"DONE", sizeof(ColumnTotals)}};

// The records of each tag, one after the other.
std::map<std::string, std::string> blocks_of(const std::string& bytes) {
  std::map<std::string, std::string> result;
  std::size_t at = bytes.find('\n') + 1;
  while (at < bytes.size()) {
    ColumnBlock head;
    std::memcpy(&head, bytes.data() + at, sizeof(head));
    const std::string tag(head.tag, 4);
    const std::size_t size = head.records * kColumnSizes.at(tag);
    result[tag] += bytes.substr(at + sizeof(head), size);
    at += sizeof(head) + size;
  }
  REQUIRE(at == bytes.size());
  return result;
}

template <class Record>
Record record(const std::string& bytes, std::size_t index) {
  Record result;
  REQUIRE(bytes.size() >= (index + 1) * sizeof(Record));
  std::memcpy(&result, bytes.data() + index * sizeof(Record), sizeof(Record));
  return result;
}

TEST_CASE("columns hold the job, every event, message and gap") {
  const TestFolder folder;
  MergedJob job = test_job();
  job.texts = {{1, 0, 17, "solve(1, 2)"}};
  job.warnings = {"rank 1 was killed"};
  const auto sink = columns_output(folder.file("c"));
  sink->begin(job);
  sink->event(test_event(-5, 1, 5, ELBOW_TRACE_COUNTER, static_cast<std::uint64_t>(-3)));
  test_message(*sink, 1, 10, 0, 20, 1, 400);
  sink->gap({1, 30, 40, 2});
  CHECK(!std::filesystem::exists(folder.file("c")));
  sink->end();

  const std::string bytes = read_whole(folder.file("c"));
  const auto line = nlohmann::json::parse(bytes.substr(0, bytes.find('\n')));
  CHECK(line["job"] == job.job);
  CHECK(line["types"][0]["fields"][2] == "cells");
  CHECK(line["ranks"][1]["syncs"][0]["high"] == 1010);
  CHECK(line["threads"][1]["tid"] == 201);
  CHECK(line["texts"][0]["text"] == "solve(1, 2)");
  CHECK(line["warnings"][0] == "rank 1 was killed");
  const auto blocks = blocks_of(bytes);
  const auto first = record<ColumnEvent>(blocks.at("EVNT"), 0);
  CHECK(first.time == -5);
  CHECK(first.first == static_cast<std::uint64_t>(-3));
  CHECK(record<ColumnEvent>(blocks.at("EVNT"), 2).message == 1);
  CHECK(record<ColumnMessage>(blocks.at("MESG"), 0).received == 20);
  CHECK(record<ColumnGap>(blocks.at("GAPS"), 0).lost == 2);
  const auto totals = record<ColumnTotals>(blocks.at("DONE"), 0);
  CHECK(totals.events == 3);
  CHECK(totals.messages == 1);
  CHECK(totals.gaps == 1);
}

TEST_CASE("columns of many events keep their order over blocks") {
  const TestFolder folder;
  const auto sink = columns_output(folder.file("c"));
  sink->begin(test_job());
  constexpr std::size_t kCount = 40'000;
  for (std::size_t i = 0; i < kCount; ++i) {
    sink->event(test_event(static_cast<std::int64_t>(i), 0, 0, ELBOW_TRACE_EVENT, i * i));
  }
  sink->end();
  const auto blocks = blocks_of(read_whole(folder.file("c")));
  REQUIRE(blocks.at("EVNT").size() == kCount * sizeof(ColumnEvent));
  for (std::size_t i = 0; i < kCount; i += 997) {
    CHECK(record<ColumnEvent>(blocks.at("EVNT"), i).first == i * i);
  }
}

TEST_CASE("columns of names that are no UTF-8 are still JSON") {
  const TestFolder folder;
  MergedJob job = test_job();
  job.threads[0].name = "w\xff\xfe";
  const auto sink = columns_output(folder.file("c"));
  sink->begin(job);
  sink->end();
  const std::string bytes = read_whole(folder.file("c"));
  CHECK(nlohmann::json::accept(bytes.substr(0, bytes.find('\n'))));
}

TEST_CASE("columns that are not ended leave nothing behind") {
  const TestFolder folder;
  {
    const auto sink = columns_output(folder.file("c"));
    sink->begin(test_job());
  }
  CHECK(folder.empty());
}

TEST_CASE("columns that cannot be written say where and a hint") {
  CHECK_THROWS_WITH_AS(
      columns_output("/nowhere/at/all/c"),
      "out '/nowhere/at/all/c': cannot be written (No such file or directory); its parent folder must exist",
      std::runtime_error);
  const TestFolder folder;
  std::filesystem::create_directory(folder.file("taken"));
  CHECK_THROWS_AS(columns_output(folder.file("taken")), std::runtime_error);
}

}  // namespace
}  // namespace elbowroom::trace
