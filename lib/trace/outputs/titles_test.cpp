#include "trace/outputs/titles.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "trace/outputs/line.hpp"
#include "trace/outputs/paje_text.hpp"
#include "trace/outputs/spans.hpp"
#include "trace/outputs/test_job.hpp"

namespace elbowroom::trace {
namespace {

MergedEvent begun(std::uint32_t type, std::uint64_t task) { return test_event(1, 0, type, ELBOW_TRACE_BEGIN, task); }
MergedEvent ended(std::uint32_t type, std::uint64_t task) { return test_event(2, 0, type, ELBOW_TRACE_END, task); }

TEST_CASE("bytes that are no UTF-8 become one replacement character each") {
  CHECK(valid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(valid_utf8("\xFF") == replaced);
  CHECK(valid_utf8("\xC3") == replaced);                                               // ends early
  CHECK(valid_utf8("\xC0\x80") == replaced + replaced);                                // longer than needed
  CHECK(valid_utf8("\xED\xA0\x80") == replaced + replaced + replaced);                 // half a pair
  CHECK(valid_utf8("\xF4\x90\x80\x80") == replaced + replaced + replaced + replaced);  // beyond Unicode
  CHECK(valid_utf8("").empty());
}

TEST_CASE("times are written with all digits, on both sides of zero") {
  const auto written = [](std::int64_t ns) {
    Line line;
    line.decimal<3>(ns) << ' ';
    line.decimal<9>(ns);
    return std::string(line.text());
  };
  CHECK(written(0) == "0.000 0.000000000");
  CHECK(written(1'234'567'890'123) == "1234567890.123 1234.567890123");
  CHECK(written(-1) == "-0.001 -0.000000001");
  CHECK(written(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775.808 -9223372036.854775808");
}

TEST_CASE("an end belongs to the innermost span of its type, of tasks to that of its number") {
  const MergedJob job = test_job();
  Spans spans(job);
  for (const std::uint64_t task : {7, 8, 9}) {
    CHECK(spans.begin(begun(0, task)));
  }
  CHECK(spans.ending(ended(0, 9)) == 0);
  CHECK(spans.ending(ended(0, 7)) == 2);
  CHECK(spans.ending(ended(0, 6)) == -1);
  CHECK(spans.ending(ended(1, 7)) == -1);
  spans.end(ended(0, 7), 2);
  CHECK(spans.open(0).size() == 2);
  CHECK(spans.open(0).front().first == 8);
  CHECK(spans.begin(begun(3, 1)));
  CHECK(spans.ending(ended(3, 2)) == 0);  // no task: its fields may change meanwhile
}

TEST_CASE("begins that never end do not fill memory") {
  const MergedJob job = test_job();
  Spans spans(job);
  for (std::size_t i = 0; i < kDeepestShown; ++i) {
    CHECK(spans.begin(begun(0, i)));
  }
  CHECK_FALSE(spans.begin(begun(0, kDeepestShown)));
  CHECK(spans.open(0).size() == kDeepestShown);
  CHECK(spans.ending(ended(0, kDeepestShown)) == -1);  // of the one that was too deep
  spans.end(ended(0, kDeepestShown), -1);
  CHECK(spans.ending(ended(0, kDeepestShown - 1)) == 0);
}

TEST_CASE("processes and threads get numbers of their own, whatever hosts gave them") {
  MergedJob job = test_job(3);
  job.threads.erase(job.threads.begin() + 1);  // rank 1 has none
  job.threads.push_back(job.threads.back());
  const Numbers numbers(job);
  CHECK(numbers.process == std::vector<std::int32_t>{1, 2, 3});
  CHECK(numbers.thread == std::vector<std::int32_t>{1, 3, 4});
  CHECK(numbers.next == 5);
}

TEST_CASE("a text names the task of its number in its process, others by their type") {
  MergedJob job = test_job();
  job.texts = {{0, 1, 7, "potrf"}, {0, 3, 7, "of a send"}};
  const Texts texts(job);
  CHECK(texts.of(begun(0, 7)) == "potrf");
  CHECK(texts.of(test_event(1, 1, 0, ELBOW_TRACE_BEGIN, 7)).empty());  // another process
  CHECK(texts.of(begun(3, 7)) == "of a send");
  CHECK(texts.of(begun(4, 7)).empty());
}

TEST_CASE("Paje's names stay on their line and between their quotes") {
  CHECK(paje_quoted("a\"b\nc\\") == "\"a'b c\\\"");
  CHECK(paje_quoted("") == "\"-\"");
  CHECK(paje_color(0) != paje_color(1));
}

TEST_CASE("fields whose names are Paje's own, equal or no words are told apart") {
  MergedJob job = test_job();
  job.types = {{"odd", 1, {"Value", "a b", "a-b"}}};
  const std::string text = paje_definitions(job);
  CHECK(text.find("% Value_ string\n% a_b string\n% a_b_ string\n") != std::string::npos);
}

}  // namespace
}  // namespace elbowroom::trace
