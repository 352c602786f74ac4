#include "base/system_files.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace elbowroom;

TEST_CASE("a list of processing units is read and written alike") {
  CHECK(parse_cpu_list("0-3,8,10-11\n") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(format_cpu_list({11, 3, 2, 1, 0, 8, 10, 3}) == "0-3,8,10-11");
  CHECK(parse_cpu_list("").empty());
  CHECK(format_cpu_list({}).empty());
}

TEST_CASE("a damaged list of processing units is refused") {
  for (const auto* text : {"a", "3-1", "1-", "0,,2", "-1", "1;2"}) {
    CHECK_THROWS_AS(parse_cpu_list(text), std::invalid_argument);
  }
}

TEST_CASE("the load average is read whole or not at all") {
  const auto load = parse_loadavg("0.25 1.50 2.75 3/412 9951\n");
  REQUIRE(load.has_value());
  CHECK(load->one == 0.25);
  CHECK(load->five == 1.5);
  CHECK(load->fifteen == 2.75);
  CHECK(load->running == 3);
  CHECK(load->tasks == 412);
  CHECK_FALSE(parse_loadavg("0.25 1.50").has_value());
  CHECK_FALSE(parse_loadavg("0.25 1.50 x 3/412 1").has_value());
}

TEST_CASE("steal time is read per processing unit and not from the sum") {
  const auto steal =
      parse_steal("cpu  1 2 3 4 5 6 7 99 0 0\ncpu0 1 2 3 4 5 6 7 50 0 0\ncpu12 1 2 3 4 5 6 7 49 0 0\nintr 8\n", 100);
  CHECK(steal.size() == 2);
  CHECK(steal.at(0) == doctest::Approx(0.5));
  CHECK(steal.at(12) == doctest::Approx(0.49));
}

TEST_CASE("interrupts are summed per column, also when a unit is offline") {
  const auto totals = parse_interrupts(
      "           CPU0       CPU2\n"
      " 24:          1          4  IO-APIC   5-edge      ACPI:Ged\n"
      "LOC:         10         20   Local timer interrupts\n"
      "ERR:          7\n");
  CHECK(totals.size() == 2);
  CHECK(totals.at(0) == 11);
  CHECK(totals.at(2) == 24);
}

TEST_CASE("memory lines are in bytes, those of a node without its prefix") {
  const auto values = parse_meminfo("MemTotal:  2 kB\nHugePages_Total:   3\n");
  CHECK(values.at("MemTotal") == 2048);
  CHECK(values.at("HugePages_Total") == 3);
  CHECK(parse_meminfo("Node 0 Active(file):  1 kB\n").at("Active(file)") == 1024);
}

TEST_CASE("the first processor of cpuinfo is kept") {
  const auto values = parse_cpuinfo("processor\t: 0\nmodel name\t: A: B\n\nprocessor\t: 1\n");
  CHECK(values.at("processor") == "0");
  CHECK(values.at("model name") == "A: B");
}

TEST_CASE("what cannot be read is absent") {
  CHECK_FALSE(read_text("/proc/no-such-file").has_value());
  CHECK_FALSE(read_number("/proc/version").has_value());
  CHECK(list_directory("/proc/no-such-folder").empty());
  CHECK(link_name("/proc/version").empty());
}
