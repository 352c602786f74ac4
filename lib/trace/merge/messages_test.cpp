#include "trace/merge/messages.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "trace/merge/report.hpp"
#include "trace/merge/synthetic_trace.hpp"
#include "trace/merge/test_collected.hpp"
#include "trace/outputs/test_job.hpp"

using namespace elbowroom::trace;

namespace {

struct Job {
  TestFolder folder;
  SyntheticTrace trace;
  std::uint16_t type;

  explicit Job(int ranks, int error = 50)
      : trace(folder.file("trace"), ranks), type(trace.type("m", trace.category("mpi"))) {
    for (int rank = 0; rank < ranks; ++rank) {
      trace.thread(rank, "main");
      for (std::int64_t point = 0; point < 6; ++point) {
        trace.sync(rank, point * 300'000'000, 0, rank == 0 ? 0 : -error, rank == 0 ? 0 : error);
      }
    }
  }
  ReadTrace read() {
    trace.write();
    return ReadTrace(folder.file("trace"));
  }
};

}  // namespace

TEST_CASE("Messages are matched by communicator, ends, tag and number, whatever the order they are recorded in") {
  Job job(2);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    job.trace.send(0, 0, 100 + i, job.type, 1, 10 * i, 5, 2, i);
  }
  job.trace.send(0, 0, 110, job.type, 1, 77, 6, 2, 1);  // another tag
  job.trace.send(0, 0, 111, job.type, 1, 78, 5, 3, 1);  // another communicator
  for (const std::uint32_t i : {3U, 1U, 2U}) {
    job.trace.receive(1, 0, 2000 + i * 0, job.type, 0, 10 * i, 5, 2, i);
  }
  job.trace.receive(1, 0, 2001, job.type, 0, 78, 5, 3, 1);
  job.trace.receive(1, 0, 2002, job.type, 0, 77, 6, 2, 1);
  const ReadTrace read = job.read();
  REQUIRE(read.got.messages.size() == 5);
  for (const MergedMessage& message : read.got.messages) {
    const auto& events = read.got.events;
    const auto of = [&](std::uint8_t kind) {
      return *std::find_if(events.begin(), events.end(), [&](const MergedEvent& event) {
        return event.kind == kind && event.message == message.message;
      });
    };
    CHECK(of(ELBOW_TRACE_SEND).second == message.bytes);
    CHECK(of(ELBOW_TRACE_RECEIVE).second == message.bytes);
    CHECK(of(ELBOW_TRACE_SEND).small == of(ELBOW_TRACE_RECEIVE).small);
    CHECK(of(ELBOW_TRACE_SEND).sequence == of(ELBOW_TRACE_RECEIVE).sequence);
    CHECK(of(ELBOW_TRACE_SEND).time == message.sent);
    CHECK(message.communicator == (message.bytes == 78 ? 3 : 2));
    CHECK(message.flags == 0);
  }
  CHECK(read.merged.messages.totals().unmatched == 0);
}

TEST_CASE("Messages that are not numbered are matched in their order, also those that arrive before they left") {
  Job job(2);
  job.trace.send(0, 0, 100, job.type, 1, 1);
  job.trace.send(0, 0, 5000, job.type, 1, 2);
  job.trace.send(0, 0, 6000, job.type, 1, 3);
  job.trace.receive(1, 0, 600, job.type, 0, 1);
  job.trace.receive(1, 0, 4000, job.type, 0, 2);  // a tachyon
  job.trace.receive(1, 0, 6990, job.type, 0, 3);
  const ReadTrace read = job.read();
  REQUIRE(read.got.messages.size() == 3);
  for (const MergedMessage& message : read.got.messages) {
    CHECK(message.flags == (message.bytes == 2 ? kTachyon : 0));
    CHECK(message.received - message.sent == (message.bytes == 1 ? 500 : message.bytes == 2 ? -1000 : 990));
  }
  const auto pairs = read.merged.messages.pairs();
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].from == 0);
  CHECK(pairs[0].to == 1);
  CHECK(pairs[0].tachyons == 1);
  CHECK(pairs[0].floor == 500);
}

TEST_CASE("Within the clocks' errors an arrival before the departure is suspect, beyond it is a tachyon") {
  Job job(3, 50);
  job.trace.send(0, 0, 1000, job.type, 1, 1);
  job.trace.receive(1, 0, 955, job.type, 0, 1);  // both clocks together: 50 ns and what the line leaves
  job.trace.send(1, 0, 1500, job.type, 2, 2);
  job.trace.receive(2, 0, 1405, job.type, 1, 2);  // 100 ns
  job.trace.send(2, 0, 2000, job.type, 0, 3);
  job.trace.receive(0, 0, 1700, job.type, 2, 3);
  job.trace.send(0, 0, 3000, job.type, 0, 4);  // to itself: one clock, no error
  const ReadTrace read = job.read();
  REQUIRE(read.got.messages.size() == 3);
  CHECK(read.merged.messages.totals().tachyons == 1);
  CHECK(read.merged.messages.totals().suspect == 2);
  CHECK(read.merged.messages.totals().unmatched == 1);
  CHECK(read.warned("1 messages have only one end"));
}

TEST_CASE("A message much faster than any of thousands before it is suspect") {
  Job job(2, 10);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const int from = static_cast<int>(i % 2);
    const std::uint64_t flight = i == 2900 ? 40 : 1000 + i % 7;
    job.trace.send(from, 0, 10'000 * i + 1, job.type, 1 - from, 8);
    job.trace.receive(1 - from, 0, 10'000 * i + 1 + flight, job.type, from, 8);
  }
  const ReadTrace read = job.read();
  CHECK(read.merged.messages.totals().suspect == 1);
  CHECK(read.merged.messages.totals().tachyons == 0);
  CHECK(read.merged.messages.pairs().at(0).floor == 1000);
}

TEST_CASE("Where events were lost, messages without numbers are matched up to there and not by guess") {
  Job job(2);
  for (std::uint64_t i = 0; i < 64; ++i) {
    job.trace.send(0, 0, 100 + 100 * i, job.type, 1, i);  // then the ring is full
  }
  job.trace.lose(0, 0, 10);
  for (std::uint64_t i = 0; i < 74; ++i) {
    job.trace.receive(1, 0, 150 + 100 * i, job.type, 0, i);
  }
  const ReadTrace read = job.read();
  CHECK(read.got.messages.size() == 64);
  CHECK(read.merged.messages.totals().unmatched == 10);
  CHECK(read.warned("10 messages of ranks that lost events are not numbered"));
  for (const MergedMessage& message : read.got.messages) {
    CHECK(message.received - message.sent == 50);
  }
}

TEST_CASE("A flight recorder's messages are matched by their numbers, and by nothing else") {
  for (const bool numbered : {false, true}) {
    Job job(2);
    const int ring = job.trace.thread(0, "flight", ELBOW_TRACE_OVERWRITE);
    for (std::uint32_t i = 64; i < 128; ++i) {
      job.trace.send(0, ring, 100 + 100 * i, job.type, 1, i, 0, 0, numbered ? i + 1 : 0);
    }
    job.trace.lose(0, ring, 64);
    for (std::uint32_t i = 0; i < 128; ++i) {
      job.trace.receive(1, 0, 150 + 100 * i, job.type, 0, i, 0, 0, numbered ? i + 1 : 0);
    }
    const ReadTrace read = job.read();
    CHECK(read.got.messages.size() == (numbered ? 64 : 0));
    CHECK(read.merged.messages.totals().unmatched == (numbered ? 64 : 192));
    for (const MergedMessage& message : read.got.messages) {
      CHECK(message.received - message.sent == 50);
    }
  }
}

TEST_CASE("Of tachyons put into a hundred thousand messages each is found, and no other message is called one") {
  constexpr int kRanks = 4;
  constexpr std::uint64_t kMessages = 100'000;
  Job job(kRanks, 100);
  std::mt19937_64 random(1);
  std::uint64_t put_in = 0;
  std::uint64_t inside = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    const int from = static_cast<int>(random() % kRanks);
    const int to = static_cast<int>((static_cast<std::uint64_t>(from) + 1 + random() % (kRanks - 1)) % kRanks);
    const std::uint64_t time = 10'000 + i * 10'000;
    const auto tag = static_cast<int>(random() % 3);
    const bool odd = random() % 100 == 0;
    const bool within = random() % 100 == 0;  // as late as the errors of both clocks may make a message of 300 ns
    put_in += odd ? 1 : 0;
    inside += within && !odd ? 1 : 0;
    const std::uint64_t left = time + (odd ? 1000 + random() % 1000 : within ? 30 : 0);
    job.trace.send(from, 0, left, job.type, to, 8, tag);
    job.trace.receive(to, 0, time + (odd || within ? 0 : 300 + random() % 3000), job.type, from, 8, tag);
  }
  const ReadTrace read = job.read();
  CHECK(read.merged.messages.totals().messages == kMessages);
  CHECK(read.merged.messages.totals().tachyons == put_in);
  CHECK(read.merged.messages.totals().suspect == inside);
  CHECK(put_in > 900);
}

TEST_CASE("Messages under way are a bounded table: the oldest are given up, the others found") {
  OpenMessages open(1000);
  std::mt19937_64 random(3);
  std::vector<MessageKey> keys;
  for (std::uint64_t i = 1; i <= 1500; ++i) {
    keys.push_back({random(), random() % 4, i});
    open.add({keys.back(), static_cast<std::int64_t>(i), 0, i, 0, 0, true});
  }
  CHECK(open.size() + open.given_up() == 1500);
  CHECK(open.size() <= 1000);
  CHECK(open.find(keys[0]) == nullptr);
  std::size_t result = 0;
  for (const MessageKey& key : keys) {
    OpenEnd* end = open.find(key);
    if (end != nullptr) {
      CHECK(end->key == key);
      open.remove(end);
      ++result;
    }
  }
  CHECK(result + open.given_up() == 1500);
  CHECK(open.size() == 0);
}

TEST_CASE("A peer that the job does not have is warned of") {
  Job job(2);
  job.trace.send(0, 0, 100, job.type, 5, 1);
  job.trace.receive(1, 0, 200, job.type, -1, 1);
  const ReadTrace read = job.read();
  CHECK(read.merged.messages.totals().unmatched == 2);
  CHECK(read.warned("2 messages go to or come from ranks that this job does not have"));
  CHECK(read.got.events.at(0).flags == kUnmatched);
}

TEST_CASE("A send whose receive is missing is marked when it is delivered") {
  for (const bool numbered : {false, true}) {
    Job job(2);
    for (std::uint32_t i = 1; i <= 100; ++i) {
      job.trace.send(0, 0, 100 * i, job.type, 1, 8, 5, 0, numbered ? i : 0);
    }
    for (std::uint32_t i = 1; i <= 100; ++i) {
      if (numbered ? i != 40 : i < 98) {  // without numbers it is the last ones that are missing
        job.trace.receive(1, 0, 100 * i + 50, job.type, 0, 8, 5, 0, numbered ? i : 0);
      }
    }
    const ReadTrace read = job.read();
    std::size_t marked = 0;
    for (const MergedEvent& event : read.got.events) {
      CHECK(((event.flags & kUnmatched) != 0) == (event.message == 0));
      marked += (event.flags & kUnmatched) != 0 ? 1 : 0;
    }
    CHECK(marked == (numbered ? 1 : 3));
    CHECK(read.merged.messages.totals().unmatched == marked);
    CHECK(read.got.messages.size() == 100 - marked);
  }
}

TEST_CASE("A receive whose send is missing is marked") {
  Job job(2);
  job.trace.receive(1, 0, 100, job.type, 0, 8, 5, 0, 1);
  job.trace.send(0, 0, 200, job.type, 1, 8, 5, 0, 2);
  job.trace.receive(1, 0, 300, job.type, 0, 8, 5, 0, 2);
  const ReadTrace read = job.read();
  CHECK(read.got.events.at(0).flags == kUnmatched);
  CHECK(read.got.events.at(1).flags == 0);
}

TEST_CASE("Ends of one message with different sizes are mismatched, and the clocks are not blamed") {
  Job job(2);
  job.trace.send(0, 0, 10'000, job.type, 1, 100, 5, 0, 1);
  job.trace.send(0, 0, 11'000, job.type, 1, 4000, 5, 0, 2);
  job.trace.send(0, 0, 12'000, job.type, 1, 8, 5, 0, 3);
  job.trace.receive(1, 0, 10'500, job.type, 0, 4000, 5, 0, 1);
  job.trace.receive(1, 0, 10'600, job.type, 0, 100, 5, 0, 2);  // "before it left"
  job.trace.receive(1, 0, 12'700, job.type, 0, 8, 5, 0, 3);
  const ReadTrace read = job.read();
  CHECK(read.merged.messages.totals().mismatched == 2);
  CHECK(read.merged.messages.pairs().at(0).mismatched == 2);
  CHECK(read.merged.messages.pairs().at(0).floor == 700);
  CHECK((read.got.messages.at(0).flags & kMismatched) != 0);
  CHECK(read.got.messages.at(2).flags == 0);
  CHECK(read.warned("threads that share requests"));
  CHECK(read.warned("this does not concern the clocks"));
  CHECK_FALSE(doubts(*read.trace, read.merged).empty());
  CHECK(check_report(*read.trace, read.merged)["mismatched"] == 2);
}

TEST_CASE("Above 1 % of ends without the other a trace is not trusted, and says how many these are") {
  for (const std::uint32_t one_ended : {2U, 3U}) {  // of 2 * 100 and these
    Job job(2);
    for (std::uint32_t i = 0; i < 100 + one_ended; ++i) {
      job.trace.send(0, 0, 100 + 100 * i, job.type, 1, 8, 0, 0, i + 1);
      if (i < 100) {
        job.trace.receive(1, 0, 150 + 100 * i, job.type, 0, 8, 0, 0, i + 1);
      }
    }
    const ReadTrace read = job.read();
    const std::vector<std::string> found = doubts(*read.trace, read.merged);
    CHECK(found.size() == (one_ended > 2 ? 1 : 0));
    CHECK((found.empty() || found.front() == "3 of 203 ends of messages (1.48 %) have no other end here"));
  }
}

TEST_CASE("An end that does not know its size has that of the other end") {
  for (const bool receiver_first : {false, true}) {
    Job job(2);
    job.trace.send(0, 0, 200, job.type, 1, 800, 0, 0, 1);
    job.trace.receive(1, 0, receiver_first ? 100 : 300, job.type, 0, ~std::uint64_t{0}, 0, 0, 1);
    const ReadTrace read = job.read();
    CHECK(read.merged.messages.totals().mismatched == 0);
    REQUIRE(read.got.messages.size() == 1);
    CHECK(read.got.messages.front().bytes == 800);
  }
}
