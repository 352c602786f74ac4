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
  // With a valid header once the nodes are set; throws Refusal, and leaves no file then.
  explicit ProfileFile(const elbow_profile_settings& settings);
  ~ProfileFile();
  ProfileFile(const ProfileFile&) = delete;
  ProfileFile& operator=(const ProfileFile&) = delete;

  Header* header() const { return reinterpret_cast<Header*>(memory_); }
  ThreadPlace* threads() const { return reinterpret_cast<ThreadPlace*>(memory_ + places_.threads); }
  Module* modules() const { return reinterpret_cast<Module*>(memory_ + places_.modules); }
  CallTotals* calls() const { return reinterpret_cast<CallTotals*>(memory_ + places_.calls); }
  SiteTotals* sites() const { return reinterpret_cast<SiteTotals*>(memory_ + places_.sites); }
  elbow_profile_window* windows() const { return reinterpret_cast<elbow_profile_window*>(memory_ + places_.windows); }
  elbow_profile_record* records() const { return reinterpret_cast<elbow_profile_record*>(memory_ + places_.records); }
  // The node of each rank: the file is whole from now on.
  void set_nodes(const std::int32_t* nodes);
  // Takes the space of some more records, and gives how many there is space for now: as many as before where there is no more.
  std::uint64_t grow();

 private:
  // Whether there is space for what is mapped there.
  bool take_more(std::uint64_t from, std::uint64_t to) const;
  void fill(const elbow_profile_settings& settings);

  // Absolute; opened for growths where the kernel cannot take space for mapped memory, as programs may close descriptors that
  // they do not know. Another file may have that name by then.
  std::string path_;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  Places places_;
  std::uint64_t taken_ = 0;  // bytes of the file
  char* memory_ = nullptr;
};

}  // namespace elbowroom::profile
