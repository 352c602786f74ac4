#include "profile/sites.hpp"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

namespace elbowroom::profile {
namespace {

constexpr int kTriesToAdd = 10'000;

struct Loaded {
  std::uint64_t address;
  bool found = false;
  std::uint64_t bias = 0;
  std::uint64_t unloads = 0;
};

int visit_object(dl_phdr_info* object, std::size_t bytes, void* given) {
  Loaded& loaded = *static_cast<Loaded*>(given);
  if (bytes >= offsetof(dl_phdr_info, dlpi_subs) + sizeof object->dlpi_subs) {
    loaded.unloads = object->dlpi_subs;
  }
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const std::uint64_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && loaded.address >= begin && loaded.address < begin + part.p_memsz) {
      loaded.found = true;
      loaded.bias = object->dlpi_addr;
      return 1;
    }
  }
  return 0;
}

// The file that is mapped there, as the kernel names it: the loader has no name for the program, and relative ones. Empty where
// there is none, or no room for its name.
template <std::size_t size>
void file_at(std::uint64_t address, char (&path)[size]) {
  path[0] = '\0';
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "rce"), std::fclose);
  char line[size + 200];
  while (maps != nullptr && std::fgets(line, sizeof line, maps.get()) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    int name = 0;
    if (std::sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &name) == 2 && address >= begin &&
        address < end) {
      const std::size_t length = std::strcspn(line + name, "\n");
      if (line[name] == '/' && length < size) {
        std::memcpy(path, line + name, length);
        path[length] = '\0';
      }
      return;
    }
  }
}

}  // namespace

Sites::Sites(const ProfileFile& file)
    : header_(file.header()),
      modules_(file.modules()),
      sites_(file.sites()),
      slots_(std::bit_ceil(2 * std::max<std::size_t>(header_->site_room, 1))) {
  mask_ = slots_.size() - 1;
  shift_ = 64 - std::countr_zero(slots_.size());
}

// Held for the time that a place takes at first sight. Who cannot have it does without: a thread that was stopped here (by a
// signal whose handler calls MPI, or never returns) would not let go of it.
std::uint16_t Sites::add(std::uint16_t call, const void* caller, std::uint64_t key) {
  for (int i = 0; taken_.test_and_set(std::memory_order_acquire); ++i) {
    if (i == kTriesToAdd) {
      return call;
    }
    std::this_thread::yield();
  }
  std::uint16_t result = call;
  std::uint64_t slot = place_of(key);
  std::uint64_t known = 0;
  while ((known = slots_[slot & mask_].key.load(std::memory_order_relaxed)) != 0 && known != key) {
    ++slot;
  }
  Slot& place = slots_[slot & mask_];
  const std::uint32_t number = header_->sites;
  if (known == key) {
    result = place.site;
  } else if (number < header_->site_room) {
    SiteTotals& site = sites_[number];
    site.call = call;
    site.module = module_of(reinterpret_cast<std::uintptr_t>(caller), site.offset);
    result = static_cast<std::uint16_t>(header_->call_kinds + number);
    // A reader sees no site that is not whole.
    std::atomic_ref(header_->sites).store(number + 1, std::memory_order_release);
    place.site = result;
    place.key.store(key, std::memory_order_release);
  } else {
    full_.store(true, std::memory_order_relaxed);
  }
  taken_.clear(std::memory_order_release);
  return result;
}

std::uint32_t Sites::module_of(std::uint64_t address, std::uint64_t& offset) {
  Loaded loaded{address};
  dl_iterate_phdr(visit_object, &loaded);
  offset = address - loaded.bias;
  if (!loaded.found) {
    return kNoModule;
  }
  if (loaded.unloads != unloads_) {
    // Another library may be where one was.
    unloads_ = loaded.unloads;
    first_ = header_->modules;
  }
  for (std::uint32_t i = first_; i < header_->modules; ++i) {
    if (modules_[i].bias == loaded.bias) {
      return i;
    }
  }
  return add_module(address, loaded.bias);
}

std::uint32_t Sites::add_module(std::uint64_t address, std::uint64_t bias) {
  const std::uint32_t number = header_->modules;
  if (number == header_->module_room) {
    return kNoModule;
  }
  Module& module = modules_[number];
  struct stat status {};
  module.bias = bias;
  file_at(address, module.path);
  if (stat(module.path, &status) == 0) {
    module.size = static_cast<std::uint64_t>(status.st_size);
    module.mtime_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  std::atomic_ref(header_->modules).store(number + 1, std::memory_order_release);
  return number;
}

}  // namespace elbowroom::profile
