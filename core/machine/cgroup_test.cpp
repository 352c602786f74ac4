#include "base/cgroup.hpp"

#include <doctest/doctest.h>

#include "machine/test_tree.hpp"

using namespace elbowroom;

TEST_CASE("version 2: the tightest limit on the way to the root counts") {
  FakeTree tree;
  tree.add("proc/self/cgroup", "0::/job/step")
      .add("sys/fs/cgroup/cgroup.controllers", "cpu memory cpuset")
      .add("sys/fs/cgroup/job/cpu.max", "150000 100000")
      .add("sys/fs/cgroup/job/cpu.stat", "usage_usec 7\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9")
      .add("sys/fs/cgroup/job/memory.max", "4096000")
      .add("sys/fs/cgroup/job/memory.current", "1000")
      .add("sys/fs/cgroup/job/memory.stat", "anon 500\ninactive_file 400")
      .add("sys/fs/cgroup/job/step/cpu.max", "max 100000")
      .add("sys/fs/cgroup/job/step/memory.max", "max")
      .add("sys/fs/cgroup/job/step/cpuset.cpus.effective", "0-3");
  const auto group = read_cgroup(tree.roots());
  CHECK(group.version == 2);
  CHECK(group.unknown.empty());
  CHECK(group.cpus == doctest::Approx(1.5));
  CHECK(group.periods == 40);
  CHECK(group.throttled_periods == 30);
  CHECK(group.memory == 4096000u);
  CHECK(group.memory_used == 1000u);
  CHECK(group.reclaimable == 400);
  CHECK(group.cpuset == "0-3");
}

TEST_CASE("version 2: no limit is not an unknown limit") {
  FakeTree tree;
  tree.add("proc/self/cgroup", "0::/").add("sys/fs/cgroup/cgroup.controllers", "cpu");
  const auto group = read_cgroup(tree.roots());
  CHECK(group.unknown.empty());
  CHECK_FALSE(group.cpus.has_value());
  CHECK_FALSE(group.memory.has_value());
}

TEST_CASE("version 1: quota and memory come from their own hierarchies, joint mounts included") {
  FakeTree tree;
  tree.add("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/slice\n1:cpuset:/\n0::/")
      .add("sys/fs/cgroup/cpu,cpuacct/slice/cpu.cfs_quota_us", "50000")
      .add("sys/fs/cgroup/cpu,cpuacct/slice/cpu.cfs_period_us", "100000")
      .add("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712")
      .add("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576")
      .add("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1");
  const auto group = read_cgroup(tree.roots());
  CHECK(group.version == 1);
  CHECK(group.cpus == doctest::Approx(0.5));
  CHECK(group.memory == 1048576u);
  CHECK(group.cpuset == "0-1");
}

TEST_CASE("a path outside the mount, as in containers, means the mount itself") {
  FakeTree tree;
  tree.add("proc/self/cgroup", "0::/../../elsewhere")
      .add("sys/fs/cgroup/cgroup.controllers", "cpu")
      .add("sys/fs/cgroup/cpu.max", "200000 100000");
  CHECK(read_cgroup(tree.roots()).cpus == doctest::Approx(2.0));
}

TEST_CASE("a process whose /sys has no groups reads them where one that started it sees them") {
  FakeTree tree;
  tree.add("proc/self/cgroup", "1:cpu:/host\n0::/")
      .add("proc/self/status", "Name:\tprobe\nPPid:\t12")
      .link("proc/self/ns/cgroup", "cgroup:[1]")
      .add("proc/12/status", "Name:\tip\nPPid:\t7")
      .link("proc/12/ns/cgroup", "cgroup:[1]")
      .add("proc/7/status", "Name:\tsshd\nPPid:\t1")
      .link("proc/7/ns/cgroup", "cgroup:[1]")
      .add("proc/7/root/sys/fs/cgroup/cpu/host/cpu.cfs_quota_us", "2000")
      .add("proc/7/root/sys/fs/cgroup/cpu/host/cpu.cfs_period_us", "200000")
      .add("proc/7/root/sys/fs/cgroup/cpu/host/cpu.stat", "nr_periods 50\nnr_throttled 49\nthrottled_time 9");
  const auto group = read_cgroup(tree.roots());
  CHECK(group.unknown.empty());
  CHECK(group.cpus == doctest::Approx(0.01));
  CHECK(group.periods == 50);
  CHECK(group.throttled_periods == 49);
}

TEST_CASE("groups of another cgroup namespace are not taken for those of this process") {
  FakeTree tree;
  tree.add("proc/self/cgroup", "1:cpu:/")
      .add("proc/self/status", "PPid:\t12")
      .link("proc/self/ns/cgroup", "cgroup:[2]")
      .add("proc/12/status", "PPid:\t0")
      .link("proc/12/ns/cgroup", "cgroup:[1]")
      .add("proc/12/root/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "2000")
      .add("proc/12/root/sys/fs/cgroup/cpu/cpu.cfs_period_us", "200000");
  const auto group = read_cgroup(tree.roots());
  CHECK_FALSE(group.cpus.has_value());
  CHECK(group.unknown.find("is mounted") != std::string::npos);
}

TEST_CASE("without control groups the limits are unknown, with the reason") {
  FakeTree tree;
  CHECK(read_cgroup(tree.roots()).unknown.find("self/cgroup") != std::string::npos);
}
