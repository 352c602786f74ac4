// The kernel's text files (/proc, /sys): reading and parsing. Paths are below a root given by the caller, so that
// tests use a recorded tree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elbowroom {

// Where the kernel's trees are mounted; tests give their own.
struct SystemRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

// The whole file without trailing white space; nothing when it cannot be read.
std::optional<std::string> read_text(const std::string& path);
std::optional<std::int64_t> read_number(const std::string& path);

// Names in a directory, sorted; empty when it cannot be read.
std::vector<std::string> list_directory(const std::string& path);
// Last component of what a symbolic link points to; empty when it is none.
std::string link_name(const std::string& path);

// "0-3,8" to {0,1,2,3,8} and back. Throws std::invalid_argument on anything else.
std::vector<int> parse_cpu_list(std::string_view text);
std::string format_cpu_list(std::vector<int> numbers);

// Lines "Name: 12 kB" of /proc/meminfo, or "Node 0 Name: 12 kB" of a node's meminfo, in bytes (counts as they are).
std::map<std::string, std::uint64_t> parse_meminfo(std::string_view text);

// "key : value" lines of /proc/cpuinfo; the first processor's.
std::map<std::string, std::string> parse_cpuinfo(std::string_view text);

struct LoadAverage {
  double one = 0;
  double five = 0;
  double fifteen = 0;
  int running = 0;  // tasks able to run now, the caller's included
  int tasks = 0;
};
std::optional<LoadAverage> parse_loadavg(std::string_view text);

// Seconds stolen by the hypervisor since start-up, per processing unit (/proc/stat). `ticks_per_second` is
// sysconf(_SC_CLK_TCK).
std::map<int, double> parse_steal(std::string_view stat, double ticks_per_second);

// Interrupts since start-up, summed over all sources, per processing unit (/proc/interrupts).
std::map<int, std::uint64_t> parse_interrupts(std::string_view text);

}  // namespace elbowroom
