// A temporary tree that stands for /proc and /sys in tests.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/system_files.hpp"

namespace elbowroom {

class FakeTree {
 public:
  FakeTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "elbowroom-XXXXXX").string();
    base_ = mkdtemp(pattern.data());
  }
  ~FakeTree() { std::filesystem::remove_all(base_); }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  // `path` starts with proc/ or sys/.
  FakeTree& add(const std::string& path, const std::string& text) {
    const auto file = base_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
    return *this;
  }
  FakeTree& link(const std::string& path, const std::string& target) {
    const auto file = base_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(target, file);
    return *this;
  }
  SystemRoots roots() const { return {(base_ / "proc").string(), (base_ / "sys").string()}; }

 private:
  std::filesystem::path base_;
};

}  // namespace elbowroom
