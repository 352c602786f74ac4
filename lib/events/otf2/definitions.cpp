#include "events/otf2/definitions.hpp"

#include <algorithm>
#include <memory>

namespace elbowroom::events {

namespace {

Otf2Definitions& definitions_of(void* data) { return *static_cast<Otf2Definitions*>(data); }

OTF2_CallbackCode string(void* data, OTF2_StringRef number, const char* text) {
  definitions_of(data).strings[number] = text;
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode region(void* data, OTF2_RegionRef number, OTF2_StringRef name, OTF2_StringRef, OTF2_StringRef,
                         OTF2_RegionRole role, OTF2_Paradigm paradigm, OTF2_RegionFlag, OTF2_StringRef, std::uint32_t,
                         std::uint32_t) {
  const auto [at, is_new] =
      definitions_of(data).region_numbers.try_emplace(number, static_cast<int>(definitions_of(data).regions.size()));
  if (is_new) {
    definitions_of(data).regions.emplace_back();
  }
  definitions_of(data).regions[static_cast<std::size_t>(at->second)] = {name, role, paradigm};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode location(void* data, OTF2_LocationRef number, OTF2_StringRef name, OTF2_LocationType type,
                           std::uint64_t events, OTF2_LocationGroupRef group) {
  const auto [at, is_new] =
      definitions_of(data).location_numbers.try_emplace(number, definitions_of(data).locations.size());
  if (is_new) {
    definitions_of(data).locations.emplace_back();
  }
  definitions_of(data).locations[at->second] = {number, name, type, events, group};
  return OTF2_CALLBACK_SUCCESS;
}

#if OTF2_VERSION_MAJOR >= 3
OTF2_CallbackCode group(void* data, OTF2_LocationGroupRef number, OTF2_StringRef name, OTF2_LocationGroupType type,
                        OTF2_SystemTreeNodeRef, OTF2_LocationGroupRef creator) {
  definitions_of(data).groups[number] = {name, type == OTF2_LOCATION_GROUP_TYPE_ACCELERATOR ? creator : number};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode clock(void* data, std::uint64_t resolution, std::uint64_t, std::uint64_t, std::uint64_t) {
  definitions_of(data).resolution = std::max(resolution, std::uint64_t{1});
  return OTF2_CALLBACK_SUCCESS;
}
#else
OTF2_CallbackCode group(void* data, OTF2_LocationGroupRef number, OTF2_StringRef name, OTF2_LocationGroupType,
                        OTF2_SystemTreeNodeRef) {
  definitions_of(data).groups[number] = {name, number};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode clock(void* data, std::uint64_t resolution, std::uint64_t, std::uint64_t) {
  definitions_of(data).resolution = std::max(resolution, std::uint64_t{1});
  return OTF2_CALLBACK_SUCCESS;
}
#endif

}  // namespace

bool Otf2Definitions::read(OTF2_Reader* reader) {
  OTF2_GlobalDefReader* definitions = OTF2_Reader_GetGlobalDefReader(reader);
  if (definitions == nullptr) {
    return false;
  }
  const std::unique_ptr<OTF2_GlobalDefReaderCallbacks, decltype(&OTF2_GlobalDefReaderCallbacks_Delete)> callbacks(
      OTF2_GlobalDefReaderCallbacks_New(), &OTF2_GlobalDefReaderCallbacks_Delete);
  OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks.get(), &string);
  OTF2_GlobalDefReaderCallbacks_SetRegionCallback(callbacks.get(), &region);
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks.get(), &location);
  OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(callbacks.get(), &group);
  OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(callbacks.get(), &clock);
  OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks.get(), this);
  std::uint64_t count = 0;
  return OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &count) == OTF2_SUCCESS;
}

std::string Otf2Definitions::text(OTF2_StringRef number, const std::string& otherwise) const {
  const auto at = strings.find(number);
  return at == strings.end() ? otherwise : at->second;
}

std::string Otf2Definitions::process(const Location& location) const {
  OTF2_LocationGroupRef number = location.group;
  auto at = groups.find(number);
  if (at != groups.end() && at->second.creator != number && groups.contains(at->second.creator)) {
    number = at->second.creator;
    at = groups.find(number);
  }
  const std::string unnamed = "process " + std::to_string(number);
  return at == groups.end() ? unnamed : text(at->second.name, unnamed);
}

}  // namespace elbowroom::events
