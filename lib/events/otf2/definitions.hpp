// What an archive of OTF2 defines, as far as trace overlap needs it.
#pragma once

#include <otf2/otf2.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace elbowroom::events {

struct Otf2Definitions {
  struct Region {
    OTF2_StringRef name;
    std::uint8_t role, paradigm;
  };
  struct Location {
    OTF2_LocationRef number;
    OTF2_StringRef name;
    OTF2_LocationType type;
    std::uint64_t events;
    OTF2_LocationGroupRef group;
  };
  struct Group {
    OTF2_StringRef name;
    OTF2_LocationGroupRef creator;  // of a device's group; itself otherwise
  };

  std::unordered_map<OTF2_StringRef, std::string> strings;
  std::vector<Region> regions;
  std::unordered_map<OTF2_RegionRef, std::int32_t> region_numbers;  // places in `regions`
  std::vector<Location> locations;
  std::unordered_map<OTF2_LocationRef, std::size_t> location_numbers;
  std::unordered_map<OTF2_LocationGroupRef, Group> groups;
  std::uint64_t resolution = 1'000'000'000;  // ticks in a second

  // False where they cannot be read.
  bool read(OTF2_Reader* reader);

  std::string text(OTF2_StringRef number, const std::string& otherwise = {}) const;
  // The name of a location's process; of a device's location that of the process which created its group.
  std::string process(const Location& location) const;
};

}  // namespace elbowroom::events
