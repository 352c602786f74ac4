#include "graph.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>

#include "factorization.hpp"
#include "test_programs.hpp"

namespace elbowroom::taskflow {
namespace {

TEST_CASE("Random programs give the results of their tasks in sequence, and leave nothing") {
  const char* const text = std::getenv("ELBOWROOM_SCHEDULES");
  const std::uint64_t count = text != nullptr ? std::strtoull(text, nullptr, 10) : 1000;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const Program program = random_program(seed);
    if (const auto fault = run(program)) {
      const Program smallest = shrunk(program);
      FAIL(*fault << "\n" << describe(smallest) << run(smallest).value_or(""));
    }
  }
}

// Notes what the graph asks for; nothing is sent.
class Notes : public Actions {
 public:
  struct Sent {
    Data data;
    std::vector<Destination> recipients;
  };

  void run(Task& task) override { ready.push_back(&task); }
  Operation receive(int, Data, std::span<std::byte>) override {
    ++receives;
    return ++last;
  }
  Operation send(Data data, std::span<const std::byte>, std::span<const Destination> recipients) override {
    sent.push_back({data, {recipients.begin(), recipients.end()}});
    return ++last;
  }

  std::vector<Task*> ready;
  std::vector<Sent> sent;
  int receives = 0;
  Operation last = 0;
};

constexpr Use kReads[] = {{0, Mode::kRead}};
constexpr Use kChanges[] = {{0, Mode::kReadWrite}};

// Rank 0 of four processes, which has data 0.
struct Owner {
  explicit Owner(const Settings& settings = {}) : graph(notes, copies, 0, 4, settings) { graph.add(&memory, 1, 0); }

  void change() { graph.submit(nullptr, {}, kChanges, 0, 0); }
  void read(int rank, int priority = 0) { graph.submit(nullptr, {}, kReads, priority, rank); }
  void finish() {
    Task* const task = notes.ready.back();
    notes.ready.pop_back();
    graph.finish(*task);
  }

  std::byte memory{};
  Notes notes;
  Memory copies;
  Graph graph;
};

Counters counted(const Problem& problem) {
  Counters all;
  std::byte memory{};
  for (int rank = 0; rank < problem.grid.size(); ++rank) {
    Notes notes;
    Memory copies;
    Graph graph(notes, copies, rank, problem.grid.size(), {});
    for (Data data = 0; data < problem.data(); ++data) graph.add(&memory, 1, problem.owner(data));
    enumerate(problem, [&](const Call& call) { graph.submit(nullptr, {}, call.used(), call.priority, call.rank); });
    const Counters& own = graph.counters();
    all.tasks += own.tasks;
    all.data += own.data;
    all.broadcasts += own.broadcasts;
    all.complete += own.complete;
    all.messages += own.messages;
    all.most = std::max(all.most, own.most);
  }
  return all;
}

}  // namespace

TEST_CASE("Readers that are known before the data are ready get them by one broadcast") {
  Owner owner;
  owner.change();
  owner.read(1, 2);
  owner.read(2);
  owner.read(1, 5);
  CHECK(owner.notes.sent.empty());
  owner.finish();
  REQUIRE(owner.notes.sent.size() == 1);
  REQUIRE(owner.notes.sent[0].recipients.size() == 2);
  CHECK(owner.notes.sent[0].recipients[0].rank == 1);
  CHECK(owner.notes.sent[0].recipients[0].priority == 5);
  CHECK(owner.graph.counters().complete == 1);
}

TEST_CASE("A reader that comes after the data were sent gets a message of its own, and the broadcast is incomplete") {
  Owner owner;
  owner.change();
  owner.read(1);
  owner.read(2);
  owner.finish();
  owner.read(3);
  owner.read(3);
  REQUIRE(owner.notes.sent.size() == 2);
  CHECK(owner.notes.sent[1].recipients[0].rank == 3);
  CHECK(owner.graph.counters().broadcasts == 1);
  CHECK(owner.graph.counters().complete == 0);
  CHECK(owner.graph.counters().late == 1);
  CHECK(owner.graph.counters().messages == 3);
}

TEST_CASE("A write waits until the data are sent, forwarded and read") {
  Owner owner;
  owner.change();
  owner.read(0);
  owner.read(1);
  owner.change();
  REQUIRE(owner.notes.ready.size() == 1);
  owner.finish();
  REQUIRE(owner.notes.ready.size() == 1);  // the reader
  owner.finish();
  CHECK(owner.notes.ready.empty());
  owner.graph.received(owner.notes.last);
  owner.graph.released(owner.notes.last);
  CHECK(owner.notes.ready.size() == 1);
}

TEST_CASE("Ready data wait for the recipients of a few more tasks where they are to, but not for a write or the end") {
  Settings settings;
  settings.hold = 2;
  for (const char* const end : {"tasks", "write", "close"}) {
    Owner owner(settings);
    owner.change();
    owner.read(1);
    owner.finish();
    owner.read(2);
    CHECK(owner.notes.sent.empty());
    if (*end == 'w') owner.change();
    if (*end == 'c') owner.graph.close();
    if (*end == 't') owner.read(2), owner.read(2);
    REQUIRE(owner.notes.sent.size() == 1);
    CHECK(owner.notes.sent[0].recipients.size() == 2);
  }
}

TEST_CASE("Announced recipients are waited for, though the data are ready") {
  Owner owner;
  owner.graph.expect(0, 2);
  owner.read(1);
  CHECK(owner.notes.sent.empty());
  owner.read(2);
  REQUIRE(owner.notes.sent.size() == 1);
  CHECK(owner.notes.sent[0].recipients.size() == 2);
}

TEST_CASE("What waits for announced recipients is sent at the next write, and at the end of the submission") {
  Owner writes;
  writes.graph.expect(0, 3);
  writes.read(1);
  writes.change();
  CHECK(writes.notes.sent.size() == 1);
  Owner ends;
  ends.graph.expect(0, 3);
  ends.read(1);
  ends.graph.close();
  CHECK(ends.notes.sent.size() == 1);
}

TEST_CASE("Without broadcasts each recipient gets a message of its own") {
  Settings settings;
  settings.broadcasts = false;
  Owner owner(settings);
  owner.change();
  owner.read(1);
  owner.read(2);
  owner.finish();
  CHECK(owner.notes.sent.size() == 2);
}

TEST_CASE("Readers wait for RELEASED where they are not to start early") {
  for (const bool early : {true, false}) {
    Settings settings;
    settings.early = early;
    Notes notes;
    Memory copies;
    Graph graph(notes, copies, 1, 2, settings);
    graph.add(nullptr, 1, 0);
    graph.submit(nullptr, {}, kReads, 0, 1);
    graph.received(notes.last);
    CHECK(notes.ready.size() == (early ? 1 : 0));
    graph.released(notes.last);
    CHECK(notes.ready.size() == 1);
  }
}

TEST_CASE("Copies are freed when their data are flushed, and are then not read any more") {
  Owner owner;
  owner.graph.flush(0);
  CHECK_NOTHROW(owner.read(0));
  CHECK_THROWS_AS(owner.read(1), std::invalid_argument);
  owner.change();
  CHECK_NOTHROW(owner.read(1));
}

TEST_CASE("What cannot be a task is refused with the number and a hint") {
  Owner owner;
  constexpr Use kUnknown[] = {{7, Mode::kRead}};
  constexpr Use kTwice[] = {{0, Mode::kRead}, {0, Mode::kReadWrite}};
  CHECK_THROWS_WITH(owner.graph.submit(nullptr, {}, kUnknown, 0, 0), "data 7: are not registered; 1 are");
  CHECK_THROWS_WITH(owner.graph.submit(nullptr, {}, kTwice, 0, 0),
                    "data 0: are used twice by one task; name them once, with the stronger mode");
  CHECK_THROWS_WITH(owner.graph.submit(nullptr, {}, kReads, 0, 4), "rank 4: is not a process; use 0 to 3");
  CHECK_THROWS_WITH(owner.graph.submit(nullptr, {}, kReads, -1, 0), "priority -1: is negative; use 0 or more");
  CHECK_THROWS_WITH(owner.graph.add(nullptr, 1, 0), "memory: is NULL on the owner; give the data");
  CHECK_THROWS_WITH(owner.graph.add(nullptr, 1, 9), "owner 9: is not a process; use 0 to 3");
}

TEST_CASE("The broadcasts of Cholesky's factorization are those of the thesis") {
  Problem problem;
  problem.rows = problem.columns = 120;
  problem.grid = {14, 14};
  const Counters counters = counted(problem);
  CHECK(counters.data == 7259);
  CHECK(counters.broadcasts == 7257);
  CHECK(counters.complete == 7257);
  CHECK(counters.messages == 167648);
  CHECK(counters.most == 26);  // P + Q - 2 (section 4.4.2)
}

TEST_CASE("No version of Cholesky's has more recipients than P + Q - 2") {
  for (const Grid grid : {Grid{1, 5}, Grid{4, 3}, Grid{20, 20}}) {
    Problem problem;
    problem.rows = problem.columns = 44;
    problem.grid = grid;
    CHECK(counted(problem).most == static_cast<std::uint64_t>(grid.rows + grid.columns - 2));
  }
}

TEST_CASE("QR's on one row of processes sends each column to all others") {
  Problem problem;
  problem.factorization = Factorization::kQr;
  problem.rows = 4;
  problem.columns = 200;
  problem.grid = {1, 196};
  const Counters counters = counted(problem);
  CHECK(counters.most == 195);
  CHECK(counters.broadcasts == 20);  // 10 tiles below and on the diagonal, each with its T
  CHECK(counters.messages == 20 * 195);
}

}  // namespace elbowroom::taskflow
