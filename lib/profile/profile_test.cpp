#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "profile/test_profile.hpp"

namespace elbowroom::profile {
namespace {

using namespace tests;

TEST_CASE("a file says whose profile it is from the start") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  REQUIRE(profile != nullptr);
  const Contents contents(file);
  const Header header = contents.header();
  CHECK(std::string(header.magic, 8) == "ELBPROF1");
  CHECK(header.rank == 2);
  CHECK(header.size == 4);
  CHECK(header.node == 1);
  CHECK(header.nodes == 2);
  CHECK(header.local_rank == 0);
  CHECK(header.local_size == 2);
  CHECK(header.pid == static_cast<std::uint64_t>(getpid()));
  CHECK(header.end_ns == 0);
  CHECK(std::string(header.mpi) == "an MPI");
  CHECK(contents.at<std::int32_t>(header.nodes_offset, 3) == 1);
  CHECK(std::string(contents.at<CallTotals>(header.calls_offset, 1).name) == "MPI_Recv");
  CHECK(contents.bytes.size() == header.records_offset + header.records * 32);
  elbow_profile_free(profile);
}

TEST_CASE("calls add to totals, windows and records") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  const elbow_profile_record kept = send(100);
  const elbow_profile_record dropped = send(20);
  const elbow_profile_record pending = send(3, ELBOW_PROFILE_PENDING);
  CHECK(elbow_profile_add(profile, &kept, 1) == 0);
  CHECK(elbow_profile_add(profile, &dropped, 0) == 0);
  CHECK(elbow_profile_add(profile, &pending, 1) == 0);
  elbow_profile_finish(profile);
  const Contents contents(file);
  const Header header = contents.header();
  CHECK(header.written == 2);
  CHECK(header.lost == 0);
  CHECK(header.calls == 2);
  CHECK(header.mpi_ns == 20);
  CHECK(header.end_ns >= header.start_ns);
  CHECK(contents.at<CallTotals>(header.calls_offset).count == 2);
  CHECK(contents.at<CallTotals>(header.calls_offset).bytes == 120);
  CHECK(contents.record(1).bytes == 3);
  // On a busy machine the calls may lie in several windows.
  std::uint64_t sent_inside = 0;
  for (std::uint64_t window = 0; window < header.windows; ++window) {
    sent_inside += contents.at<elbow_profile_window>(header.windows_offset, window).sent_inside;
  }
  CHECK(sent_inside == 123);
  elbow_profile_free(profile);
}

TEST_CASE("of more records than there is room for the latest are kept, and the others counted") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.records = 4;
  elbow_profile* const profile = elbow_profile_new(&settings);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const elbow_profile_record record = send(i);
    elbow_profile_add(profile, &record, 1);
  }
  const Contents contents(file);
  CHECK(contents.header().written == 10);
  CHECK(contents.header().lost == 6);
  CHECK(contents.record(1).bytes == 9);
  CHECK(contents.record(2).bytes == 6);
  elbow_profile_free(profile);
}

TEST_CASE("records that outgrow the space taken first are all there") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const elbow_profile_record record = send(i);
    REQUIRE(elbow_profile_add(profile, &record, 1) == 0);
  }
  elbow_profile_free(profile);
  const Contents contents(file);
  CHECK(contents.header().written == 50'000);
  for (std::uint64_t i = 0; i < 50'000; i += 999) {
    REQUIRE(contents.record(i).bytes == i);
  }
}

TEST_CASE("a process that is killed leaves its records") {
  const Folder folder;
  const std::string file = folder.file();
  const pid_t child = fork();
  if (child == 0) {
    const elbow_profile_settings settings = settings_for(file);
    elbow_profile* const profile = elbow_profile_new(&settings);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const elbow_profile_record record = send(i);
      elbow_profile_add(profile, &record, 1);
    }
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  const Contents contents(file);
  CHECK(contents.header().written == 100);
  CHECK(contents.record(99).bytes == 99);
  CHECK(contents.header().end_ns == 0);
}

// A limit of the size of files stands for a full file system: both refuse the space.
TEST_CASE("a file that there is no space for is not made, and the reason is told") {
  const Folder folder;
  const std::string file = folder.file();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const elbow_profile_settings settings = settings_for(file);
    const bool refused = elbow_profile_new(&settings) == nullptr && errno == EFBIG &&
                         std::string(elbow_profile_error()).find(file) != std::string::npos;
    _exit(refused ? 7 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("where there is no space for more records totals go on, and lost records are counted") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  // The file ends with the space that it has, and nobody finds it by its name.
  const std::string away = file + ".away";
  fs::resize_file(file, Contents(file).header().records_offset + 2 * (256 << 10));  // taken at first, in two steps
  fs::rename(file, away);
  int refusals = 0;
  for (int i = 0; i < 40'000; ++i) {
    const elbow_profile_record record = send(1);
    refusals += elbow_profile_add(profile, &record, 1) != 0 ? 1 : 0;
  }
  const Header header = Contents(away).header();
  CHECK(refusals == 1);
  CHECK(header.calls == 40'000);
  CHECK(header.written + header.lost == 40'000);
  CHECK(header.lost > 0);
  elbow_profile_free(profile);
}

TEST_CASE("a file that is there already is left alone") {
  const Folder folder;
  const std::string file = folder.file();
  std::ofstream(file) << "mine";
  const elbow_profile_settings settings = settings_for(file);
  CHECK(elbow_profile_new(&settings) == nullptr);
  CHECK(errno == EEXIST);
  CHECK(Contents(file).bytes == "mine");
}

TEST_CASE("settings that cannot be met are refused") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.records = 3;
  CHECK(elbow_profile_new(&settings) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("NULL and settings without a size are errors, not crashes") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_record record = send(1);
  CHECK(elbow_profile_new(nullptr) == nullptr);
  CHECK(errno == EINVAL);
  elbow_profile_settings settings = settings_for(file);
  settings.size = 0;
  CHECK(elbow_profile_new(&settings) == nullptr);
  CHECK(std::string(elbow_profile_error()).find("settings.size 0") != std::string::npos);
  CHECK(elbow_profile_add(nullptr, &record, 1) == -1);
  CHECK(errno == EINVAL);
  CHECK(elbow_profile_finish(nullptr) == -1);
  settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  CHECK(elbow_profile_add(profile, nullptr, 1) == -1);
  CHECK(elbow_profile_finish(profile) == 0);
  elbow_profile_free(profile);
  CHECK(std::string(elbow_profile_version()) == ELBOWROOM_VERSION);
}

TEST_CASE("threads add at once, and nothing is lost or torn") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.threads = 1;
  settings.window_ns = 1000;
  settings.windows = 4;
  elbow_profile* const profile = elbow_profile_new(&settings);
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([profile, thread] {
      for (int i = 0; i < kEach; ++i) {
        elbow_profile_record record = send(static_cast<std::uint64_t>(thread));
        record.peer = thread;
        elbow_profile_add(profile, &record, 1);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  elbow_profile_free(profile);
  const Contents contents(file);
  const Header header = contents.header();
  CHECK(header.written == kThreads * kEach);
  std::vector<int> found(kThreads);
  for (std::uint64_t i = 0; i < header.written; ++i) {
    const elbow_profile_record record = contents.record(i);
    REQUIRE(record.bytes == static_cast<std::uint64_t>(record.peer));
    ++found[static_cast<std::size_t>(record.peer)];
  }
  CHECK(found == std::vector<int>(kThreads, kEach));
  std::uint64_t messages = 0;
  for (std::uint32_t i = 0; i < header.windows; ++i) {
    messages += contents.at<elbow_profile_window>(header.windows_offset, i).messages;
  }
  CHECK(messages == kThreads * kEach);
}

TEST_CASE("the time is that of the kernel's clock") {
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_MONOTONIC, &before);
  const std::uint64_t now = elbow_profile_now();
  clock_gettime(CLOCK_MONOTONIC, &after);
  const auto ns = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  constexpr std::uint64_t kTolerance = 20'000;
  CHECK(now + kTolerance >= ns(before));
  CHECK(now <= ns(after) + kTolerance);
}

TEST_CASE("a record of a call that is not in the list is refused, and nothing is written") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  REQUIRE(profile != nullptr);
  elbow_profile_record record = send(8);
  record.call = 2;
  CHECK(elbow_profile_add(profile, &record, 1) == -1);
  CHECK(errno == EINVAL);
  elbow_profile_free(profile);
  CHECK(Contents(file).header().written == 0);
  CHECK(Contents(file).header().calls == 0);
}

TEST_CASE("more records than any file can have are refused") {
  const Folder folder;
  const std::string file = folder.file();
  for (const int power : {41, 59, 60, 63}) {
    elbow_profile_settings settings = settings_for(file);
    settings.records = std::uint64_t{1} << power;
    CHECK(elbow_profile_new(&settings) == nullptr);
    CHECK(errno == EINVAL);
    CHECK(!fs::exists(file));
  }
}

TEST_CASE("a profile whose nodes are not known yet is no file to read before they are") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.nodes = nullptr;
  elbow_profile* const profile = elbow_profile_new(&settings);
  REQUIRE(profile != nullptr);
  CHECK(Contents(file).header().magic[0] == '\0');
  elbow_profile_set_nodes(profile, kNodes);
  const Header header = Contents(file).header();
  CHECK(std::memcmp(header.magic, kMagic, sizeof kMagic) == 0);
  CHECK(header.node == 1);
  CHECK(header.local_rank == 0);
  CHECK(header.start_ns > 0);
  elbow_profile_free(profile);
}

TEST_CASE("a file that was renamed goes on, and another of its name is left alone") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  REQUIRE(profile != nullptr);
  const std::string moved = file + ".moved";
  fs::rename(file, moved);
  std::ofstream(file) << "another";
  constexpr std::uint64_t kMany = 30'000;  // more than there was space for at first
  const elbow_profile_record record = send(8);
  for (std::uint64_t i = 0; i < kMany; ++i) {
    CHECK(elbow_profile_add(profile, &record, 1) == 0);
  }
  elbow_profile_free(profile);
  CHECK(fs::file_size(file) == 7);
  CHECK(Contents(moved).header().written == kMany);
  CHECK(Contents(moved).header().lost == 0);
  CHECK(Contents(moved).record(kMany - 1).bytes == 8);
}

}  // namespace
}  // namespace elbowroom::profile
