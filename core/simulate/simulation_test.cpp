#include "simulate/simulation.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace elbowroom::simulate;

namespace {

Node two_sockets() {
  Node node;
  node.sockets = 2;
  node.uplink_read = 300;
  node.uplink_write = 600;
  node.link_line = 2'000;
  node.link_request = 400;
  node.link_credits = 256;
  node.root_line = 1'000;
  node.channels = 6;
  node.banks = 32;
  node.row = 45'000;
  node.read_line = 3'500;
  node.write_line = 5'000;
  node.turnaround = 15'000;
  node.write_batch = 16;
  node.read_queue = 48;
  node.write_queue = 48;
  node.lookahead = 8;
  return node;
}

Source cores(int count, Access access = Access::store, int node = 0) {
  Source source;
  source.count = count;
  source.node = node;
  source.window = 10;
  source.pattern = {access};
  source.read = {40'000, node == 0 ? 0 : 30'000, 40'000};
  source.write = {60'000, node == 0 ? 0 : 30'000, 60'000};
  return source;
}

Source nic(int credits) {
  Source source;
  source.device = true;
  source.window = credits;
  source.pattern = {Access::store};
  source.interval = 5'600;
  source.write = {150'000, 0, 150'000};
  return source;
}

Experiment experiment(const std::vector<Source>& sources, std::uint64_t seed = 1) {
  Experiment result;
  result.seed = seed;
  result.jitter = 0.1;
  result.sources = sources;
  return result;
}

// Lines in a microsecond.
double rate(const SourceResult& source, const Experiment& settings) {
  return static_cast<double>(source.lines) / (1e-6 * static_cast<double>(settings.measure));
}

}  // namespace

TEST_CASE("one core gets its line-fill buffers divided by the latency") {
  Experiment settings = experiment({cores(1)});
  settings.jitter = 0;
  const Result result = simulate(two_sockets(), settings);
  const double latency_us = (60'000 + 600 + 60'000) * 1e-6;
  CHECK(rate(result.sources[0], settings) == doctest::Approx(10 / latency_us).epsilon(0.06));
  CHECK(result.sources[0].mean_latency >= 1e6 * latency_us);
}

TEST_CASE("Little's law holds: rate times mean latency is what is under way") {
  for (const int count : {1, 6, 18}) {
    for (const Access access : {Access::read, Access::store}) {
      for (const int node : {0, 1}) {
        const Experiment settings = experiment({cores(count, access, node)});
        const SourceResult source = simulate(two_sockets(), settings).sources[0];
        CHECK(rate(source, settings) * 1e-6 * source.mean_latency == doctest::Approx(10 * count).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("no station carries more than its capacity, and a saturated one just that") {
  const Experiment settings = experiment({cores(18), nic(60)});
  const Result result = simulate(two_sockets(), settings);
  const double most = 6.0 * 1e6 / 5'000;
  const double sum = rate(result.sources[0], settings) + rate(result.sources[1], settings);
  CHECK(sum <= 1.005 * most);
  CHECK(sum >= 0.98 * most);
  CHECK(result.memories[0] > 0.99);
  CHECK(result.memories[1] == 0.0);

  const Experiment far = experiment({cores(18, Access::store, 1)});
  const Result remote = simulate(two_sockets(), far);
  CHECK(rate(remote.sources[0], far) == doctest::Approx(1e6 / 2'000).epsilon(0.01));
  CHECK(remote.links[1] > 0.99);
  CHECK(remote.links[2] == 0.0);
}

TEST_CASE("every line comes back: what is under way never gets lost") {
  // After a lost line its source would have one fewer for ever, and ten times as long would not be ten times as much.
  for (const Access access : {Access::read, Access::store, Access::allocate}) {
    Experiment settings = experiment({cores(12, access), cores(12, access, 1), nic(60)});
    const Result once = simulate(two_sockets(), settings);
    settings.measure *= 10;
    const Result longer = simulate(two_sockets(), settings);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(static_cast<double>(longer.sources[i].lines) ==
            doctest::Approx(10.0 * static_cast<double>(once.sources[i].lines)).epsilon(0.03));
    }
  }
}

TEST_CASE("the same seed gives the same result, another one another") {
  const Node node = two_sockets();
  const std::vector<Source> sources{cores(15), nic(60)};
  const Result first = simulate(node, experiment(sources)), again = simulate(node, experiment(sources));
  CHECK(first.requests == again.requests);
  CHECK(first.sources[0].mean_latency == again.sources[0].mean_latency);
  CHECK(first.sources[0].mean_latency != simulate(node, experiment(sources, 2)).sources[0].mean_latency);
}

TEST_CASE("the NIC loses for want of credits, and with enough of them it does not") {
  const Node node = two_sockets();
  const auto kept = [&node](int credits) {
    const Experiment alone = experiment({nic(credits)}), together = experiment({cores(18), nic(credits)});
    return rate(simulate(node, together).sources[1], together) / rate(simulate(node, alone).sources[0], alone);
  };
  CHECK(kept(57) < 0.9);
  CHECK(kept(200) > 0.99);
}

TEST_CASE("a core that thinks for longer than a line takes is not slowed down by others") {
  Source thinking = cores(18);
  thinking.think = 100'000;
  const Experiment settings = experiment({thinking, nic(60)});
  const Result result = simulate(two_sockets(), settings);
  CHECK(rate(result.sources[0], settings) == doctest::Approx(18 * 10.0).epsilon(0.02));
}

TEST_CASE("a store that allocates takes two lines, one read and one written") {
  const Experiment settings = experiment({cores(18, Access::allocate)});
  const Result result = simulate(two_sockets(), settings);
  // Channels read for 3.5 ns and write for 5 ns in turns, and turn round between batches of 16.
  const double most = 6.0 * 2e6 / (3'500 + 5'000 + 2.0 * 15'000 / 16);
  CHECK(rate(result.sources[0], settings) <= 1.01 * 6.0 * 2e6 / 8'500);
  CHECK(rate(result.sources[0], settings) == doctest::Approx(most).epsilon(0.15));
}

TEST_CASE("a message takes its accesses, its pause and its lines; threads overlap theirs") {
  Source source = nic(60);
  Messages messages;
  messages.lines = 100;
  messages.accesses = 2;
  messages.pause = 500'000;
  messages.way = {20'000, 0, 20'000};
  source.messages = messages;
  Experiment settings = experiment({source});
  settings.jitter = 0;
  settings.measure = 200'000'000;
  const auto of = [&] { return simulate(two_sockets(), settings).sources[0]; };
  const SourceResult one = of();
  // Two accesses of 40 ns, a row to open and a line; the pause; 100 lines of 5.6 ns; the way of the last one.
  const double us = 2 * (0.04 + 0.045 + 0.0035) + 0.5 + 100 * 0.0056 + 0.3;
  CHECK(static_cast<double>(one.messages) == doctest::Approx(200 / us).epsilon(0.05));
  CHECK(one.lines == doctest::Approx(100.0 * static_cast<double>(one.messages)).epsilon(0.01));
  settings.sources[0].messages->threads = 2;
  CHECK(static_cast<double>(of().messages) > 1.5 * static_cast<double>(one.messages));
}

TEST_CASE("a link without credits holds up those behind it, whatever they want there") {
  Node node = two_sockets();
  node.nodes_per_socket = 2;
  node.write_line = 30'000;
  // Node 2 is saturated from afar; the NIC's lines for node 3 cross the same link.
  Source device = nic(60);
  device.node = 3;
  device.write = {100'000, 50'000, 150'000};
  const auto kept = [&](int credits) {
    node.link_credits = credits;
    const Experiment alone = experiment({device}), together = experiment({cores(18, Access::store, 2), device});
    return rate(simulate(node, together).sources[1], together) / rate(simulate(node, alone).sources[0], alone);
  };
  CHECK(kept(1'000) > 0.95);
  CHECK(kept(64) < 0.7);
}

TEST_CASE("entries that take turns protect the NIC from many cores") {
  Node node = two_sockets();
  const Experiment settings = experiment({cores(18), nic(57)});
  const double fifo = rate(simulate(node, settings).sources[1], settings);
  node.round_robin = true;
  CHECK(rate(simulate(node, settings).sources[1], settings) > 1.05 * fifo);
}
