#include "trace/outputs/whole_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "trace/outputs/outputs.hpp"
#include "trace/outputs/test_job.hpp"

namespace elbowroom::trace {
namespace {

namespace fs = std::filesystem;

void write_whole(const std::string& path, const std::string& bytes) {
  WholeFile file(path);
  file.write(bytes);
  file.keep();
}

void put(const std::string& path, const std::string& bytes) { std::ofstream(path) << bytes; }

TEST_CASE("a symbolic link stays, and the file that it leads to is replaced") {
  const TestFolder folder;
  fs::create_directory(folder.file("elsewhere"));
  put(folder.file("elsewhere/target"), "before");
  fs::create_symlink("elsewhere/target", folder.file("link"));
  fs::create_symlink("link", folder.file("second"));
  write_whole(folder.file("second"), "after");
  CHECK(fs::is_symlink(folder.file("second")));
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(read_whole(folder.file("elsewhere/target")) == "after");
}

TEST_CASE("a symbolic link to nothing gets its file where it leads") {
  const TestFolder folder;
  fs::create_symlink("new", folder.file("link"));
  write_whole(folder.file("link"), "after");
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(read_whole(folder.file("new")) == "after");
}

TEST_CASE("symbolic links in a circle are refused") {
  const TestFolder folder;
  fs::create_symlink("b", folder.file("a"));
  fs::create_symlink("a", folder.file("b"));
  CHECK_THROWS_WITH_AS(WholeFile(folder.file("a")), doctest::Contains("lead in a circle"), std::runtime_error);
}

TEST_CASE("a device is written into and stays a device") {
  const TestFolder folder;
  const std::string device = folder.file("null");
  if (::mknod(device.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) {
    MESSAGE("skipped: devices cannot be made here");
    return;
  }
  const int probe = ::open(device.c_str(), O_WRONLY);
  if (probe < 0) {
    MESSAGE("skipped: devices cannot be opened here");
    return;
  }
  ::close(probe);
  write_whole(device, "nothing");
  CHECK(fs::is_character_file(device));
  fs::create_symlink("null", folder.file("link"));
  write_whole(folder.file("link"), "nothing");
  CHECK(fs::is_character_file(device));
  CHECK(fs::is_symlink(folder.file("link")));
}

TEST_CASE("a full device is an error and stays") {
  CHECK_THROWS_WITH_AS(write_whole("/dev/full", "something"), doctest::Contains("No space left on device"),
                       std::runtime_error);
  CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE("a pipe gets all bytes, also when its reader comes later") {
  const TestFolder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] { got = read_whole(pipe); });
  write_whole(pipe, std::string(3'000'000, 'x'));
  reader.join();
  CHECK(got.size() == 3'000'000);
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("a file that another name in /proc has open is written where it is") {
  const TestFolder folder;
  put(folder.file("file"), "");
  const int file = ::open(folder.file("file").c_str(), O_RDWR);
  REQUIRE(file >= 0);
  write_whole("/dev/fd/" + std::to_string(file), "after");
  char got[8] = {};
  CHECK(::pread(file, got, sizeof got, 0) == 5);
  CHECK(std::string(got) == "after");
  ::close(file);
}

TEST_CASE("a file that is replaced keeps its permissions and owner") {
  const TestFolder folder;
  put(folder.file("file"), "before");
  REQUIRE(::chmod(folder.file("file").c_str(), 0640) == 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    REQUIRE(::chown(folder.file("file").c_str(), 12, 34) == 0);
  }
  write_whole(folder.file("file"), "after");
  struct stat result {};
  REQUIRE(::stat(folder.file("file").c_str(), &result) == 0);
  CHECK((result.st_mode & 07777) == 0640);
  CHECK(read_whole(folder.file("file")) == "after");
  if (root) {
    CHECK(result.st_uid == 12);
    CHECK(result.st_gid == 34);
  }
}

TEST_CASE("an archive of OTF2 appears where a symbolic link leads, and never in the place of a file") {
  const TestFolder folder;
  fs::create_directory(folder.file("empty"));
  fs::create_symlink("empty", folder.file("link"));
  const MergedJob job = test_job();
  const auto sink = otf2_output(folder.file("link"));
  sink->begin(job);
  sink->end();
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(fs::exists(folder.file("empty/traces.otf2")));
  put(folder.file("file"), "");
  CHECK_THROWS_WITH_AS(otf2_output(folder.file("file")), doctest::Contains("is not a folder"), std::runtime_error);
  CHECK_THROWS_WITH_AS(otf2_output("/dev/null"), doctest::Contains("is not a folder"), std::runtime_error);
  CHECK(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace elbowroom::trace
