#include "elbowroom/trace.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "trace/reader.hpp"

namespace fs = std::filesystem;
using namespace elbowroom::trace;

namespace {

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "elbow-trace-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

// A process is traced once: each test's is a child. Returns how it ended, as waitpid says.
int in_child(const std::function<void()>& program) {
  std::fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    program();
    std::exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  std::vector<char> text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

std::vector<nlohmann::json> lines_of(const std::string& path, const std::string& record) {
  std::ifstream file(path);
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(file, line);) {
    const auto told = nlohmann::json::parse(line);
    if (told.at("record") == record) {
      found.push_back(told);
    }
  }
  return found;
}

RingContents contents_of(const std::vector<std::byte>& bytes) {
  RingContents contents;
  REQUIRE(read_ring(bytes, contents));
  return contents;
}

// Fails the child, which the parent sees.
void must(bool holds) {
  if (!holds) {
    std::fprintf(stderr, "in the child: %s\n", elbow_trace_error());
    _exit(1);
  }
}

elbow_trace_settings settings_in(const std::string& directory, const std::string& memory) {
  elbow_trace_settings settings{};
  settings.directory = directory.c_str();
  settings.memory = memory.c_str();
  return settings;
}

}  // namespace

TEST_CASE("What is recorded is read again, in order and to the bit") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          const auto settings = settings_in(directory, folder.path.string());
          must(elbow_trace_start(&settings) == 0);
          const auto* type = elbow_trace_type_new("solve", elbow_trace_category("task"), "block", "row", "cells");
          must(type != nullptr && elbow_trace_thread("main") == 0);
          for (std::uint32_t i = 0; i < 1000; ++i) {
            elbow_trace_begin(type, i, i * 3ULL, ~0ULL - i);
          }
          elbow_trace_summary summary;
          must(elbow_trace_stop(&summary) == 0);
          must(summary.recorded == 1000 && summary.kept == 1000 && summary.lost == 0 && summary.threads == 1);
        }) == 0);
  const auto bytes = bytes_of(folder / "trace/rank-00000.thread-00000.ring");
  const RingContents contents = contents_of(bytes);
  CHECK(contents.damage.empty());
  CHECK(contents.ended);
  CHECK(std::string(contents.header.name) == "main");
  REQUIRE(contents.events.size() == 1000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    CHECK(contents.events[i].small == i);
    CHECK(contents.events[i].first == i * 3ULL);
    CHECK(contents.events[i].second == ~0ULL - i);
    CHECK(contents.events[i].kind == ELBOW_TRACE_BEGIN);
  }
  const auto types = lines_of(folder / "trace/rank-00000.jsonl", "type");
  CHECK(types.back().at("name") == "solve");
  CHECK(types.back().at("number") == contents.events[0].type);
  CHECK(lines_of(folder / "trace/rank-00000.jsonl", "end").at(0).at("kept") == 1000);
  // Nothing stays in memory.
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

TEST_CASE("A full ring keeps the first events, and counts the others") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          auto settings = settings_in(directory, folder.path.string());
          settings.bytes = 64 * 32;
          must(elbow_trace_start(&settings) == 0);
          const auto* type = elbow_trace_type_new("a", elbow_trace_category("c"), nullptr, "i", nullptr);
          for (std::uint64_t i = 0; i < 1000; ++i) {
            elbow_trace_event(type, 0, i, 0);
          }
          elbow_trace_summary summary;
          must(elbow_trace_stop(&summary) == 0);
          must(summary.recorded == 1000 && summary.kept == 64 && summary.lost == 936);
          must(summary.advised == 1024 * 32);
        }) == 0);
  const auto bytes = bytes_of(folder / "trace/rank-00000.thread-00000.ring");
  const RingContents contents = contents_of(bytes);
  REQUIRE(contents.events.size() == 64);
  CHECK(contents.lost == 936);
  CHECK(contents.events.front().first == 0);
  CHECK(contents.events.back().first == 63);
}

TEST_CASE("A flight recorder keeps the last events, in order") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          auto settings = settings_in(directory, folder.path.string());
          settings.bytes = 64 * 32;
          settings.policy = ELBOW_TRACE_OVERWRITE;
          must(elbow_trace_start(&settings) == 0);
          const auto* type = elbow_trace_type_new("a", elbow_trace_category("c"), nullptr, "i", nullptr);
          for (std::uint64_t i = 0; i < 1000; ++i) {
            elbow_trace_event(type, 0, i, 0);
          }
          elbow_trace_summary summary;
          must(elbow_trace_stop(&summary) == 0);
          must(summary.kept == 64 && summary.lost == 936);
        }) == 0);
  const auto bytes = bytes_of(folder / "trace/rank-00000.thread-00000.ring");
  const RingContents contents = contents_of(bytes);
  CHECK(contents.damage.empty());
  REQUIRE(contents.events.size() == 64);
  CHECK(contents.events.front().first == 936);
  CHECK(contents.events.back().first == 999);
}

TEST_CASE("The rings of a process that was killed are read where they were") {
  Folder folder;
  const int status = in_child([&] {
    const std::string directory = folder / "trace";
    const auto settings = settings_in(directory, folder.path.string());
    must(elbow_trace_start(&settings) == 0);
    const auto* type = elbow_trace_type_new("a", elbow_trace_category("c"), nullptr, "i", nullptr);
    for (std::uint64_t i = 0; i < 500; ++i) {
      elbow_trace_event(type, 0, i, 0);
    }
    elbow_trace_text(type, 7, "seven");
    kill(getpid(), SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  const auto told = lines_of(folder / "trace/rank-00000.jsonl", "trace").at(0);
  const auto bytes = bytes_of(told.at("memory").get<std::string>() + "/thread-00000.ring");
  const RingContents contents = contents_of(bytes);
  CHECK_FALSE(contents.ended);
  CHECK(contents.damage.empty());
  CHECK(contents.events.size() == 500);
  REQUIRE(contents.texts.size() == 1);
  CHECK(contents.texts[0].text == "seven");
}

TEST_CASE("Categories and types that are off are not recorded; a change of the mask is an event") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          auto settings = settings_in(directory, folder.path.string());
          settings.categories = "task,mpi";
          must(elbow_trace_start(&settings) == 0);
          const int task = elbow_trace_category("task");
          const int noise = elbow_trace_category("noise");
          const auto* wanted = elbow_trace_type_new("wanted", task, nullptr, nullptr, nullptr);
          const auto* other = elbow_trace_type_new("other", task, nullptr, nullptr, nullptr);
          const auto* off = elbow_trace_type_new("off", noise, nullptr, nullptr, nullptr);
          elbow_trace_event(wanted, 1, 0, 0);
          elbow_trace_event(off, 2, 0, 0);
          must(elbow_trace_filter(other, 0) == 0);
          elbow_trace_event(other, 3, 0, 0);
          must(elbow_trace_filter(other, 1) == 0);
          elbow_trace_event(other, 4, 0, 0);
          elbow_trace_set_mask(1ULL << noise);
          elbow_trace_event(off, 5, 0, 0);
          elbow_trace_event(wanted, 6, 0, 0);
        }) == 0);
  const auto bytes = bytes_of(folder / "trace/rank-00000.thread-00000.ring");
  std::vector<std::uint32_t> seen;
  for (const auto& event : contents_of(bytes).events) {
    seen.push_back(event.kind == ELBOW_TRACE_MASK ? 100 : event.small);
  }
  CHECK(seen == std::vector<std::uint32_t>{1, 4, 100, 5});
}

TEST_CASE("Each thread has its ring, and none loses an event of another") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          const auto settings = settings_in(directory, folder.path.string());
          must(elbow_trace_start(&settings) == 0);
          const auto* type = elbow_trace_type_new("a", elbow_trace_category("c"), "thread", "i", nullptr);
          std::vector<std::thread> threads;
          for (std::uint32_t thread = 0; thread < 4; ++thread) {
            threads.emplace_back([=] {
              elbow_trace_thread(("worker " + std::to_string(thread)).c_str());
              for (std::uint64_t i = 0; i < 20'000; ++i) {
                elbow_trace_event(type, thread, i, 0);
              }
            });
          }
          for (auto& thread : threads) {
            thread.join();
          }
          elbow_trace_summary summary;
          must(elbow_trace_stop(&summary) == 0);
          must(summary.threads == 4 && summary.kept == 80'000);
        }) == 0);
  for (int thread = 0; thread < 4; ++thread) {
    const std::string name = "trace/rank-00000.thread-0000" + std::to_string(thread) + ".ring";
    const auto bytes = bytes_of(folder / name.c_str());
    const RingContents contents = contents_of(bytes);
    REQUIRE(contents.events.size() == 20'000);
    for (std::uint64_t i = 0; i < 20'000; i += 999) {
      CHECK(contents.events[i].first == i);
      CHECK(contents.events[i].small == contents.events[0].small);
    }
  }
}

namespace {
const elbow_trace_type* in_handler = nullptr;
volatile sig_atomic_t handled = 0;
void record_in_handler(int) {
  elbow_trace_event(in_handler, 9, 0, 0);
  handled = handled + 1;
}
}  // namespace

TEST_CASE("A signal handler may record in the middle of an event: none is lost, none is torn") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          auto settings = settings_in(directory, folder.path.string());
          settings.bytes = 64U << 20;
          must(elbow_trace_start(&settings) == 0);
          in_handler = elbow_trace_type_new("a", elbow_trace_category("c"), nullptr, "i", nullptr);
          elbow_trace_thread("main");
          signal(SIGALRM, record_in_handler);
          const itimerval often{{0, 100}, {0, 100}};
          setitimer(ITIMER_REAL, &often, nullptr);
          std::uint64_t count = 0;
          while (handled < 50 && count < 2'000'000) {
            elbow_trace_event(in_handler, 1, count++, 0);
          }
          const itimerval never{};
          setitimer(ITIMER_REAL, &never, nullptr);
          elbow_trace_summary summary;
          must(elbow_trace_stop(&summary) == 0);
          must(summary.recorded == count + static_cast<std::uint64_t>(handled));
        }) == 0);
  const auto bytes = bytes_of(folder / "trace/rank-00000.thread-00000.ring");
  const RingContents contents = contents_of(bytes);
  CHECK(contents.unfinished == 0);
  std::uint64_t next = 0;
  for (const auto& event : contents.events) {
    if (event.small == 1) {
      CHECK(event.first == next);
      ++next;
    }
  }
}

TEST_CASE("A child of fork records nothing into its parent's rings") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          const auto settings = settings_in(directory, folder.path.string());
          must(elbow_trace_start(&settings) == 0);
          const auto* type = elbow_trace_type_new("a", elbow_trace_category("c"), nullptr, nullptr, nullptr);
          elbow_trace_event(type, 1, 0, 0);
          const pid_t child = fork();
          if (child == 0) {
            elbow_trace_event(type, 2, 0, 0);
            std::exit(0);
          }
          waitpid(child, nullptr, 0);
          elbow_trace_summary summary;
          must(elbow_trace_stop(&summary) == 0);
          must(summary.recorded == 1);
        }) == 0);
}

TEST_CASE("What cannot be is refused with a sentence") {
  Folder folder;
  CHECK(in_child([&] {
          must(elbow_trace_stop(nullptr) == -1 && errno == EINVAL);
          const std::string nowhere = folder / "no/such";
          const std::string directory = folder / "trace";
          auto settings = settings_in(directory, nowhere);
          must(elbow_trace_start(&settings) == -1 && errno == ENOENT);
          must(std::string(elbow_trace_error()).find("cannot be written") != std::string::npos);
          settings = settings_in(directory, folder.path.string());
          settings.rank = 2;
          must(elbow_trace_start(&settings) == -1 && errno == EINVAL);
          settings.rank = 0;
          settings.bytes = 100;
          must(elbow_trace_start(&settings) == -1);
          settings.bytes = 0;
          must(elbow_trace_start(&settings) == 0);
          must(elbow_trace_start(&settings) == -1 && errno == EBUSY);
          must(elbow_trace_type_new("x", 12, nullptr, nullptr, nullptr) == nullptr);
          for (int i = 0; i < 63; ++i) {
            must(elbow_trace_category(std::to_string(i).c_str()) == i);
          }
          must(elbow_trace_category("one more") == -1 && errno == ENOSPC);
          must(elbow_trace_thread("a") == 0 && elbow_trace_thread("b") == -1);
        }) == 0);
}

TEST_CASE("Damaged and truncated rings are read up to the damage, which is named") {
  Folder folder;
  CHECK(in_child([&] {
          const std::string directory = folder / "trace";
          const auto settings = settings_in(directory, folder.path.string());
          must(elbow_trace_start(&settings) == 0);
          const auto* type = elbow_trace_type_new("a", elbow_trace_category("c"), nullptr, "i", nullptr);
          for (std::uint64_t i = 0; i < 100; ++i) {
            elbow_trace_event(type, 0, i, 0);
          }
          elbow_trace_text(type, 1, "text");
        }) == 0);
  auto bytes = bytes_of(folder / "trace/rank-00000.thread-00000.ring");
  RingContents contents;
  REQUIRE(read_ring(bytes, contents));
  CHECK(contents.damage.empty());
  const std::span<const std::byte> whole(bytes);
  REQUIRE(read_ring(whole.first(kHeaderBytes + 50 * 32 + 7), contents));
  CHECK(contents.events.size() == 50);
  CHECK(contents.damage.find("after 50 of 100 events") != std::string::npos);
  CHECK_FALSE(read_ring(whole.first(100), contents));
  CHECK(contents.damage.find("inside its header") != std::string::npos);
  auto changed = bytes;
  changed[kHeaderBytes + 20 * 32 + 10] = std::byte{200};  // its kind
  REQUIRE(read_ring(changed, contents));
  CHECK(contents.events.size() == 20);
  CHECK(contents.damage.find("event 20 is of kind 200") != std::string::npos);
  changed = bytes;
  changed[8] = std::byte{9};  // version
  CHECK_FALSE(read_ring(changed, contents));
  CHECK(contents.damage.find("is of version 9") != std::string::npos);
  // Any byte may be anything: no crash, no hang.
  std::uint64_t state = 1;
  for (int trial = 0; trial < 3000; ++trial) {
    changed = bytes;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::size_t place = (state >> 33) % (trial % 2 == 0 ? sizeof(RingHeader) : changed.size());
      changed[place] = static_cast<std::byte>(state >> 20);
    }
    read_ring(changed, contents);
    CHECK(contents.events.size() <= 100);
  }
}
