// An archive of OTF2 that is there whole or not at all: a folder made beside its place, under its name once it is complete.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace elbowroom::trace {

class Otf2Archive {
 public:
  // What cannot be written is an std::runtime_error, here and below. An empty folder at `path` is
  // replaced, and its permissions are kept; symbolic links to it stay.
  explicit Otf2Archive(std::string path);
  ~Otf2Archive();
  Otf2Archive(const Otf2Archive&) = delete;
  Otf2Archive& operator=(const Otf2Archive&) = delete;

  // Opens it for so many writers of events; memory stays below 2 chunks for each.
  void open(std::size_t locations);
  OTF2_EvtWriter* events(OTF2_LocationRef location);
  // No events from here on; returns how many each location has.
  std::vector<std::uint64_t> close_events(std::size_t locations);
  OTF2_Archive* handle() const { return archive_; }
  // All is written, and the folder gets its name.
  void keep();

  void check(OTF2_ErrorCode code) const {
    if (code != OTF2_SUCCESS) {
      refused(code);
    }
  }

 private:
  struct Chunks {
    std::vector<std::unique_ptr<std::byte[]>> used;
    std::vector<std::unique_ptr<std::byte[]>> spare;
  };
  static void* allocate(void* own, OTF2_FileType kind, OTF2_LocationRef location, void** of_buffer,
                        std::uint64_t bytes);
  static void free_all(void* own, OTF2_FileType kind, OTF2_LocationRef location, void** of_buffer, bool final);
  [[noreturn]] void refused(OTF2_ErrorCode code) const;

  std::string path_;
  std::string target_;                                                    // what `path_` leads to
  std::filesystem::perms permissions_ = std::filesystem::perms::unknown;  // of the empty folder that is replaced
  std::filesystem::path temporary_;                                       // empty: kept
  OTF2_Archive* archive_ = nullptr;
};

}  // namespace elbowroom::trace
