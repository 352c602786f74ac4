// What the profile's tests share: a folder of their own, settings of a small job, and what a file holds.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "c_interface.hpp"
#include "profile/layout.hpp"

namespace elbowroom::profile::tests {

namespace fs = std::filesystem;

inline constexpr const char* kCalls[] = {"MPI_Send", "MPI_Recv"};
inline constexpr std::int32_t kNodes[] = {0, 0, 1, 1};

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "profile-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string file() const { return (path / "rank-000002.profile").string(); }
};

inline elbow_profile_settings settings_for(const std::string& file) {
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

inline elbow_profile_record send(std::uint64_t bytes, std::uint8_t flags = ELBOW_PROFILE_INSIDE) {
  const std::uint64_t now = elbow_profile_now();
  return {now, now + 10, bytes, 3, 0, ELBOW_PROFILE_SEND, flags};
}

}  // namespace elbowroom::profile::tests
