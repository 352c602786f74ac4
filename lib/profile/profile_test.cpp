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

#include "c_interface.hpp"
#include "profile/layout.hpp"
#include "profile/ticks.hpp"

namespace elbowroom::profile {
namespace {

namespace fs = std::filesystem;

const char* const kCalls[] = {"MPI_Send", "MPI_Recv"};
constexpr std::int32_t kNodes[] = {0, 0, 1, 1};

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "profile-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string file() const { return (path / "rank-000002.profile").string(); }
};

elbow_profile_settings settings_for(const std::string& file) {
  auto settings = elbowroom::c_interface::sized<elbow_profile_settings>();
  settings.path = file.c_str();
  settings.rank = 2;
  settings.ranks = 4;
  settings.nodes = kNodes;
  settings.mpi = "an MPI";
  settings.calls = kCalls;
  settings.call_kinds = 2;
  return settings;
}

struct Contents {
  std::string bytes;
  explicit Contents(const std::string& file) {
    // At once: byte by byte, the 32 MiB of each file take seconds without optimisation.
    std::ifstream stream(file, std::ios::binary);
    bytes.resize(fs::file_size(file));
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(stream.good());
  }
  template <typename Item>
  Item at(std::uint64_t offset, std::uint64_t index = 0) const {
    Item item;
    std::memcpy(&item, bytes.data() + offset + index * sizeof item, sizeof item);
    return item;
  }
  Header header() const { return at<Header>(0); }
  elbow_profile_record record(std::uint64_t index) const {
    return at<elbow_profile_record>(header().records_offset, index);
  }
};

elbow_profile_record send(std::uint64_t bytes, std::uint8_t flags = ELBOW_PROFILE_INSIDE) {
  const std::uint64_t now = elbow_profile_now();
  return {now, now + 10, bytes, 3, 0, ELBOW_PROFILE_SEND, flags};
}

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

TEST_CASE("threads are there with their cores and the time that they ran, also when they have ended") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  REQUIRE(profile != nullptr);
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) {
    ++core;
  }
  std::thread pinned([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    elbow_profile_look_at_threads(profile);
  });
  pinned.join();
  elbow_profile_look_at_threads(profile);
  const Contents contents(file);
  const Header header = contents.header();
  REQUIRE(header.threads >= 2);
  std::size_t alone = 0;
  for (std::uint32_t i = 0; i < header.threads; ++i) {
    const auto place = contents.at<ThreadPlace>(header.threads_offset, i);
    CHECK(place.cpus >= 1);
    CHECK(place.cpu >= static_cast<std::int32_t>(place.first));
    CHECK(place.cpu <= static_cast<std::int32_t>(place.last));
    alone += place.thread != getpid() && place.cpus == 1 && place.first == static_cast<std::uint32_t>(core) ? 1 : 0;
    if (place.thread == getpid()) {
      CHECK(place.cpus == static_cast<std::uint32_t>(CPU_COUNT(&before)));
      CHECK(place.first == static_cast<std::uint32_t>(core));
    }
  }
  CHECK(alone == 1);
  elbow_profile_free(profile);
}

[[gnu::noinline]] const void* caller() {
  asm volatile("");  // else calls of it are one
  return __builtin_return_address(0);
}

TEST_CASE("a place that calls has one site for each call, with its module and its address there") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  const void* const one = caller();
  const void* const other = caller();
  REQUIRE(one != other);
  const int first = elbow_profile_site(profile, 0, one);
  CHECK(first == 2);
  CHECK(elbow_profile_site(profile, 0, other) == 3);
  CHECK(elbow_profile_site(profile, 1, one) == 4);
  CHECK(elbow_profile_site(profile, 0, one) == first);
  CHECK(elbow_profile_site(profile, 1, nullptr) == 1);
  CHECK(elbow_profile_site(profile, 2, one) == -1);
  CHECK(errno == EINVAL);
  elbow_profile_record record = send(100);
  record.call = static_cast<std::uint16_t>(first);
  CHECK(elbow_profile_add(profile, &record, 1) == 0);
  const Contents contents(file);
  const Header header = contents.header();
  REQUIRE(header.sites == 3);
  REQUIRE(header.modules == 1);
  const auto site = contents.at<SiteTotals>(header.sites_offset, 0);
  const auto module = contents.at<Module>(header.modules_offset, 0);
  CHECK(site.call == 0);
  CHECK(site.count == 1);
  CHECK(site.bytes == 100);
  CHECK(site.module == 0);
  CHECK(site.offset + module.bias == reinterpret_cast<std::uintptr_t>(one));
  CHECK(fs::equivalent(std::string(module.path), "/proc/self/exe"));
  CHECK(module.size == fs::file_size(module.path));
  CHECK(contents.at<SiteTotals>(header.sites_offset, 2).call == 1);
  CHECK(header.calls == 1);
  elbow_profile_free(profile);
}

TEST_CASE("code that belongs to no module keeps its address, and places without room are the call's alone") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.sites = 2;
  elbow_profile* const profile = elbow_profile_new(&settings);
  const auto place = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  CHECK(elbow_profile_site(profile, 1, place(16)) == 2);
  CHECK(elbow_profile_site(profile, 1, place(32)) == 3);
  CHECK(elbow_profile_site(profile, 1, place(48)) == 1);
  CHECK(elbow_profile_site(profile, 0, place(48)) == 0);
  CHECK(elbow_profile_site(profile, 1, place(32)) == 3);
  const Contents contents(file);
  const auto site = contents.at<SiteTotals>(contents.header().sites_offset, 1);
  CHECK(site.module == kNoModule);
  CHECK(site.offset == 32);
  elbow_profile_free(profile);
}

TEST_CASE("threads that see the same places first have the same sites") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.threads = 1;
  elbow_profile* const profile = elbow_profile_new(&settings);
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kPlaces = 200;
  std::vector<std::vector<int>> found(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<int>& own : found) {
    threads.emplace_back([profile, &own] {
      for (std::size_t i = 0; i < kPlaces; ++i) {
        own.push_back(elbow_profile_site(profile, 1, reinterpret_cast<const void*>(64 * (i + 1))));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // A thread that cannot have the table in time does without a site.
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const int again = elbow_profile_site(profile, 1, reinterpret_cast<const void*>(64 * (i + 1)));
    for (const std::vector<int>& own : found) {
      CHECK((own[i] == again || own[i] == 1));
    }
  }
  CHECK(Contents(file).header().sites == kPlaces);
  elbow_profile_free(profile);
}

std::uint64_t compute_for(std::uint64_t ns) {
  const std::uint64_t begin = elbow_profile_now();
  std::uint64_t end = begin;
  while (end - begin < ns) {
    end = elbow_profile_now();
  }
  return end - begin;
}

TEST_CASE("samples of a thread say how long it ran and waited, and the rest is sleep") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  REQUIRE(elbow_profile_sample(profile) == 0);
  compute_for(20'000'000);
  REQUIRE(elbow_profile_sample(profile) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  REQUIRE(elbow_profile_sample(profile) == 0);
  const Contents contents(file);
  const elbow_profile_record first = contents.record(0);
  const bool waited = contents.record(1).kind == ELBOW_PROFILE_WAITED;
  const elbow_profile_record second = contents.record(waited ? 2 : 1);
  CHECK(first.kind == ELBOW_PROFILE_RAN);
  CHECK(second.kind == ELBOW_PROFILE_RAN);
  CHECK(first.peer >= 0);
  CHECK(second.begin_ns == first.end_ns);
  std::uint64_t accounted = first.bytes;
  if (waited) {
    CHECK(contents.record(1).end_ns == first.end_ns);
    accounted += contents.record(1).bytes;
  }
  if ((first.flags & ELBOW_PROFILE_UNFINISHED) == 0) {
    // Without a sleep the thread ran or waited.
    const std::uint64_t wall = first.end_ns - first.begin_ns;
    CHECK(accounted + wall / 10 > wall);
    CHECK(accounted < wall + wall / 10);
  }
  CHECK(second.bytes < 20'000'000);
  CHECK(contents.header().calls == 0);
  const auto place = contents.at<ThreadPlace>(contents.header().threads_offset, first.call);
  CHECK(place.thread == getpid());
  elbow_profile_free(profile);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_CASE("threads that have ended leave no descriptor open") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.threads = 1;
  elbow_profile* const profile = elbow_profile_new(&settings);
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    std::thread([profile] {
      elbow_profile_sample(profile);
      elbow_profile_sample(profile);
    }).join();
  }
  CHECK(open_descriptors() == before);
  const Contents contents(file);
  std::uint64_t known = 0;
  for (std::uint64_t i = 0; i < contents.header().written; ++i) {
    const elbow_profile_record record = contents.record(i);
    known += record.kind == ELBOW_PROFILE_RAN && (record.flags & ELBOW_PROFILE_UNFINISHED) == 0 ? 1 : 0;
  }
  CHECK((known == 100 || !fs::exists("/proc/self/schedstat")));
  elbow_profile_free(profile);
}

TEST_CASE("a program that closes the descriptor of samples keeps what it opens by that number") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  const int own = dup(STDOUT_FILENO);
  std::thread([&] {
    elbow_profile_sample(profile);
    for (int number = 3; number < 1024; ++number) {
      if (number != own) {
        close(number);
      }
    }
    for (int number = 3; number < 1024; ++number) {
      dup2(own, number);
    }
    elbow_profile_sample(profile);
  }).join();
  int open = 0;
  for (int number = 3; number < 1024; ++number) {
    open += fcntl(number, F_GETFD) >= 0 ? 1 : 0;
    close(number);
  }
  CHECK(open == 1024 - 3);
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
