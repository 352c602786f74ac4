// The mapped file of a profile: created as a whole, its disk space taken before its memory is written, since a mapping of a
// full file system ends the program with SIGBUS.
#pragma once

#include <string>

#include "c_interface.hpp"
#include "profile/layout.hpp"

namespace elbowroom::profile {

using c_interface::Refusal;

class ProfileFile {
 public:
  // With a valid header; throws Refusal, and leaves no file then.
  explicit ProfileFile(const elbow_profile_settings& settings);
  ~ProfileFile();
  ProfileFile(const ProfileFile&) = delete;
  ProfileFile& operator=(const ProfileFile&) = delete;

  Header* header() const { return reinterpret_cast<Header*>(memory_); }
  CallTotals* calls() const { return reinterpret_cast<CallTotals*>(memory_ + places_.calls); }
  elbow_profile_window* windows() const { return reinterpret_cast<elbow_profile_window*>(memory_ + places_.windows); }
  elbow_profile_record* records() const { return reinterpret_cast<elbow_profile_record*>(memory_ + places_.records); }
  // Takes the space of some more records, and gives how many there is space for now: as many as before where there is no more.
  std::uint64_t grow();

 private:
  // 0, or the errno of why not.
  int take_space(std::uint64_t from, std::uint64_t to) const;
  void fill(const elbow_profile_settings& settings);

  std::string path_;  // absolute; opened for each growth, as programs may close descriptors that they do not know
  Places places_;
  std::uint64_t taken_ = 0;  // bytes of the file
  char* memory_ = nullptr;
};

}  // namespace elbowroom::profile
