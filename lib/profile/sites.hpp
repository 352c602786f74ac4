// The places in the program that call, by their return addresses. Finding one that is known takes some ns and no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "profile/profile_file.hpp"

namespace elbowroom::profile {

class Sites {
 public:
  explicit Sites(const ProfileFile& file);

  // The `call` of a record of a call from there. Any thread.
  std::uint16_t find(std::uint16_t call, const void* caller) {
    const std::uint64_t key = reinterpret_cast<std::uintptr_t>(caller) ^ (std::uint64_t{call} << kAddressBits);
    for (std::uint64_t slot = place_of(key);; ++slot) {
      const Slot& there = slots_[slot & mask_];
      const std::uint64_t known = there.key.load(std::memory_order_acquire);
      if (known == key) [[likely]] {
        return there.site;
      }
      if (known == 0) {
        return caller == nullptr || full_.load(std::memory_order_relaxed) ? call : add(call, caller, key);
      }
    }
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::uint16_t site = 0;
  };
  static constexpr int kAddressBits = 48;

  std::uint64_t place_of(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15U) >> shift_; }
  std::uint16_t add(std::uint16_t call, const void* caller, std::uint64_t key);
  // The number of the module that has this code, and its virtual address there.
  std::uint32_t module_of(std::uint64_t address, std::uint64_t& offset);
  std::uint32_t add_module(std::uint64_t address, std::uint64_t bias);

  Header* header_;
  Module* modules_;
  SiteTotals* sites_;
  int shift_;
  std::uint64_t mask_;
  std::vector<Slot> slots_;  // at most half of them are used
  std::atomic<bool> full_{false};
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::uint64_t unloads_ = 0;  // of libraries, so far
  std::uint32_t first_ = 0;    // module that was added after the last of them
};

}  // namespace elbowroom::profile
