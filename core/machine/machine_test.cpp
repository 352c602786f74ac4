#include "machine/machine.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/system_files.hpp"
#include "machine/pages.hpp"

using namespace elbowroom;

namespace {

const CoreInfo& allowed_core() {
  for (const auto& core : Machine::here().cores()) {
    if (core.allowed) {
      return core;
    }
  }
  throw std::runtime_error("no core is allowed");
}

template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every core is named by its first processing unit, and every unit finds its core") {
  const auto& machine = Machine::here();
  REQUIRE_FALSE(machine.cores().empty());
  for (const auto& core : machine.cores()) {
    CHECK(core.number == core.pus.front());
    for (const int unit : core.pus) {
      REQUIRE(machine.core(unit) != nullptr);
      CHECK(machine.core(unit)->number == core.number);
    }
  }
  CHECK(machine.core(100000) == nullptr);
  CHECK(machine.core(-1) == nullptr);
}

TEST_CASE("every core's node exists and has memory available within the cgroup's limit") {
  const auto& machine = Machine::here();
  REQUIRE_FALSE(machine.nodes().empty());
  for (const auto& core : machine.cores()) {
    CHECK(machine.node(core.node) != nullptr);
  }
  const auto total = parse_meminfo(read_text("/proc/meminfo").value()).at("MemTotal");
  for (const auto& node : machine.nodes()) {
    CHECK(machine.available_memory(node.number) <= total);
  }
  CHECK(machine.available_memory(machine.nodes().front().number) > 0);
}

TEST_CASE("PCI devices are seen where the kernel has some") { CHECK(Machine::here().sees_pci()); }

TEST_CASE("the topology is written as hwloc's XML with its PCI devices") {
  const auto file = std::filesystem::temp_directory_path() / "elbowroom-topology-test.xml";
  Machine::here().write_xml(file.string());
  const auto text = read_text(file.string()).value();
  std::filesystem::remove(file);
  CHECK(text.find("<topology version=\"2") != std::string::npos);
  CHECK(text.find("NUMANode") != std::string::npos);
}

TEST_CASE("a topology that cannot be written says where") {
  CHECK(message_of([] { Machine::here().write_xml("/proc/no/such.xml"); }).find("/proc/no/such.xml") !=
        std::string::npos);
}

TEST_CASE("a bound thread runs on the core it was bound to") {
  int where = -1;
  std::thread([&] {
    Machine::here().bind_this_thread(allowed_core().number);
    where = sched_getcpu();
  }).join();
  CHECK(where == allowed_core().number);
}

TEST_CASE("binding to a core that does not exist names it and the cores there are") {
  const auto message = message_of([] { Machine::here().bind_this_thread(99999); });
  CHECK(message.find("core 99999 does not exist") != std::string::npos);
  CHECK(message.find("cores here: 0") != std::string::npos);
}

TEST_CASE("an arena is 2 MiB aligned, writable, and its touched pages are on the wanted node") {
  const int node = allowed_core().node;
  Arena arena(std::size_t{8} << 20, node);
  CHECK(reinterpret_cast<std::uintptr_t>(arena.data()) % (std::size_t{2} << 20) == 0);
  CHECK(arena.size() >= std::size_t{8} << 20);
  CHECK(arena.node() == node);
  std::memset(arena.data(), 1, arena.size());
  const auto report = arena.verify(arena.size());
  CHECK(report.wanted == node);
  CHECK(report.page_size >= 4096);
  if (report.unknown.empty()) {
    CHECK(report.share == 1.0);
    CHECK(report.looked_at > 0);
    CHECK(report.looked_at <= 256);
  }
  CHECK(report.huge_share <= 1.0);
}

TEST_CASE("pages nobody touched are not counted as placed") {
  Arena arena(std::size_t{4} << 20, allowed_core().node);
  const auto report = arena.verify(arena.size());
  CHECK(report.share == 0.0);
  CHECK(report.looked_at == 0);
  CHECK_FALSE(report.unknown.empty());
  CHECK(report.huge_share < 0);
}

TEST_CASE("a moved arena leaves nothing behind") {
  Arena first(4096, allowed_core().node);
  void* data = first.data();
  Arena second(std::move(first));
  CHECK(second.data() == data);
  CHECK(first.data() == nullptr);  // NOLINT(bugprone-use-after-move): what is tested
}

TEST_CASE("an arena on a node that does not exist names the node and those there are") {
  const auto message = message_of([] { Arena arena(4096, 77); });
  CHECK(message.find("NUMA node 77 does not exist") != std::string::npos);
  CHECK(message.find("nodes here: 0") != std::string::npos);
}

TEST_CASE("an arena larger than the node's memory is refused with both figures") {
  const std::size_t huge = std::size_t{1} << 46;
  const auto message = message_of([&] { Arena arena(huge, allowed_core().node); });
  CHECK(message.find(std::to_string(huge)) != std::string::npos);
  CHECK(message.find("available") != std::string::npos);
  CHECK_FALSE(message_of([] { Arena arena(0, allowed_core().node); }).empty());
}

TEST_CASE("pages elsewhere lower the share, absent ones do not count") {
  const auto report = count_pages({1, 1, 0, -2, 1}, 1);
  CHECK(report.looked_at == 4);
  CHECK(report.share == doctest::Approx(0.75));
  CHECK(count_pages({-2, -14}, 0).unknown == "no page of it was touched");
}

TEST_CASE("the share of huge pages counts the mappings inside the range only") {
  const auto* smaps =
      "1000-2000 rw-p 00000000 00:00 0\nRss:       400 kB\nAnonHugePages:   100 kB\n"
      "2000-3000 rw-p 00000000 00:00 0\nRss:       800 kB\nAnonHugePages:   800 kB\n";
  CHECK(huge_share_in(smaps, 0x1000, 0x2000) == doctest::Approx(0.25));
  CHECK(huge_share_in(smaps, 0x1000, 0x3000) == doctest::Approx(0.75));
  CHECK(huge_share_in(smaps, 0x9000, 0xa000) < 0);
}
