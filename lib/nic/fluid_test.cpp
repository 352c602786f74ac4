#include "nic/fluid.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace elbowroom::nic;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kBandwidth = 1e8;

struct Bench {
  std::unique_ptr<Fluid> fluid = std::make_unique<Fluid>();
  std::int64_t now = 0;

  explicit Bench(std::int64_t latency_ns = 0) { fluid->start({kBandwidth, 65536, latency_ns}, 0); }

  // Bytes that each flow got in this time, all of them asking for as much as there is, every so many ns.
  std::vector<double> greedy(const std::vector<int>& flows, std::int64_t duration, std::int64_t every) {
    std::vector<double> got(flows.size());
    for (const std::int64_t end = now + duration; now < end; now += every) {
      for (std::size_t i = 0; i < flows.size(); ++i) {
        got[i] += static_cast<double>(fluid->take(flows[i], 1 << 20, now).bytes);
      }
    }
    return got;
  }
};

}  // namespace

TEST_CASE("A message on an idle NIC does not wait up to the burst, a larger one waits for the rest of a quantum") {
  Bench bench;
  const int flow = bench.fluid->open(1, 0, 1);
  CHECK(bench.fluid->take(flow, 40000, 0).bytes == 40000);
  const Grant refused = bench.fluid->take(flow, 40000, 0);
  CHECK(refused.bytes == 0);
  CHECK(refused.wait_ns == doctest::Approx((40000 - 25536) / kBandwidth * 1e9).epsilon(0.001));
  CHECK(bench.fluid->take(flow, 40000, refused.wait_ns).bytes == 40000);
}

TEST_CASE("Flows of a node get equal parts of its bandwidth, all of it together") {
  for (const int count : {1, 2, 3, 8}) {
    CAPTURE(count);
    Bench bench;
    std::vector<int> flows;
    for (int i = 0; i < count; ++i) {
      flows.push_back(bench.fluid->open(i + 1, 0, 1 + i % 3));
    }
    for (const double got : bench.greedy(flows, kSecond, 100'000)) {
      CHECK(got == doctest::Approx(kBandwidth / count).epsilon(0.02));
    }
  }
}

TEST_CASE("A process that rarely gets a core has its part all the same, as far as the window reaches") {
  Bench bench;
  const std::vector<int> flows = {bench.fluid->open(1, 0, 1), bench.fluid->open(2, 0, 1)};
  double often = 0;
  double rarely = 0;
  for (std::int64_t now = 0; now < kSecond; now += 100'000) {
    often += static_cast<double>(bench.fluid->take(flows[0], 1 << 20, now).bytes);
    if (now % 3'000'000 == 0) {
      rarely += static_cast<double>(bench.fluid->take(flows[1], 1 << 20, now).bytes);
    }
  }
  CHECK(rarely / often == doctest::Approx(1).epsilon(0.03));
}

TEST_CASE("The ingress of a node limits what several nodes send to it, and the others' part is for whom it serves") {
  Bench bench;
  // Nodes 0 and 1 send to node 2; node 1 to node 3, too.
  const std::vector<int> flows = {bench.fluid->open(1, 0, 2), bench.fluid->open(2, 1, 2), bench.fluid->open(3, 1, 3)};
  for (const double got : bench.greedy(flows, kSecond, 100'000)) {
    CHECK(got == doctest::Approx(kBandwidth / 2).epsilon(0.02));
  }
  Bench other;
  // Three flows to node 2, one of them from node 1, which has 2/3 left for its flow to node 3.
  const std::vector<int> more = {other.fluid->open(1, 0, 2), other.fluid->open(2, 0, 2), other.fluid->open(3, 1, 2),
                                 other.fluid->open(4, 1, 3)};
  const std::vector<double> got = other.greedy(more, kSecond, 100'000);
  CHECK(got[2] == doctest::Approx(kBandwidth / 3).epsilon(0.02));
  CHECK(got[3] == doctest::Approx(kBandwidth * 2 / 3).epsilon(0.02));
}

TEST_CASE("The directions of a node are independent of each other") {
  Bench bench;
  const std::vector<int> flows = {bench.fluid->open(1, 0, 1), bench.fluid->open(2, 1, 0)};
  for (const double got : bench.greedy(flows, kSecond, 100'000)) {
    CHECK(got == doctest::Approx(kBandwidth).epsilon(0.02));
  }
}

TEST_CASE("A flow whose process ended while it waited takes no more than its window from the others") {
  Bench bench;
  const int dead = bench.fluid->open(1, 0, 1);
  const int other = bench.fluid->open(2, 0, 1);
  bench.fluid->take(dead, 1 << 20, 0);
  bench.fluid->take(dead, 1 << 20, 0);
  const double got = bench.greedy({other}, kSecond, 100'000).front();
  CHECK(got > kBandwidth - kLargestWindow - kQuantum);
  bench.fluid->close(dead);
  CHECK(bench.fluid->open(3, 0, 1) == dead);
}

TEST_CASE("The first bytes of a stream wait for the latency, the next ones of the same stream do not") {
  Bench bench(500'000);
  const int flow = bench.fluid->open(1, 0, 1);
  const Grant first = bench.fluid->take(flow, 100, 0);
  CHECK(first.bytes == 0);
  CHECK(first.wait_ns >= 500'000);
  CHECK(bench.fluid->take(flow, 100, 499'999).bytes == 0);
  CHECK(bench.fluid->take(flow, 100, 500'000).bytes == 100);
  CHECK(bench.fluid->take(flow, 100, 600'000).bytes == 100);
  CHECK(bench.fluid->take(flow, 100, 600'000 + 2 * kContinues).bytes == 0);
}

TEST_CASE("Bytes that were given back are granted again at once") {
  Bench bench;
  const int flow = bench.fluid->open(1, 0, 1);
  CHECK(bench.fluid->take(flow, 65536, 0).bytes == 65536);
  bench.fluid->give_back(flow, 65536);
  CHECK(bench.fluid->take(flow, 65536, 1).bytes == 65536);
}

TEST_CASE("A grant says when its bytes were first wanted") {
  Bench bench;
  const int flow = bench.fluid->open(1, 0, 1);
  CHECK(bench.fluid->take(flow, 65536, 1000).since_ns == 1000);
  CHECK(bench.fluid->take(flow, 65536, 2000).bytes == 0);
  const Grant later = bench.fluid->take(flow, 65536, 1'000'000);
  CHECK(later.bytes == 65536);
  CHECK(later.since_ns == 2000);
}

TEST_CASE("A grant says when its bytes were carried, however late its process asks") {
  for (const std::int64_t late : {0, 1'000'000, 50'000'000}) {
    CAPTURE(late);
    Bench bench;
    const int flow = bench.fluid->open(1, 0, 1);
    CHECK(bench.fluid->take(flow, 65536, 0).ended_ns == 655'360);  // the burst takes its time, too
    const Grant refused = bench.fluid->take(flow, 100'000, 1000);
    CHECK(refused.bytes == 0);
    const Grant first = bench.fluid->take(flow, 100'000, 1'001'000 + late);
    CHECK(first.bytes == 100'000);
    CHECK(first.ended_ns == doctest::Approx(1'001'000).epsilon(1e-4));
  }
}

TEST_CASE("Bytes of two flows are carried in twice the time") {
  Bench bench;
  const std::vector<int> flows = {bench.fluid->open(1, 0, 1), bench.fluid->open(2, 0, 1)};
  bench.fluid->take(flows[0], 65536, 0);
  for (const int flow : flows) {
    CHECK(bench.fluid->take(flow, 50'000, 0).bytes == 0);
  }
  for (const int flow : flows) {
    const Grant grant = bench.fluid->take(flow, 50'000, 30'000'000);
    CHECK(grant.since_ns == 0);
    CHECK(grant.ended_ns == doctest::Approx(1'000'000).epsilon(1e-3));
  }
}

TEST_CASE("There is a last flow") {
  Bench bench;
  for (int i = 0; i < kFlows; ++i) {
    CHECK(bench.fluid->open(1, 0, 1) == i);
  }
  CHECK(bench.fluid->open(1, 0, 1) == -1);
}
