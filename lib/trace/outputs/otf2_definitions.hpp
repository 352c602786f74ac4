// What the events of an OTF2 archive refer to: numbers are given as they are needed, the definitions written at the end.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/merge/sink.hpp"
#include "trace/outputs/otf2_archive.hpp"
#include "trace/outputs/titles.hpp"

namespace elbowroom::trace {

// Attributes that are no fields of a type, in this order.
enum class Otf2Attribute : std::uint32_t {
  kFlags,
  kType,
  kText,
  kLost,
  kMessage,
  kSequence,
  kPeer,
  kCommunicator,
  kTag,
  kBytes
};
constexpr std::uint32_t kOtf2Attributes = 10;

class Otf2Definitions {
 public:
  explicit Otf2Definitions(const MergedJob& job);

  // A region for spans of the type, one for its events (entered and left at once), one for tasks of that name.
  OTF2_RegionRef span(std::uint32_t thread, std::uint32_t type, std::uint64_t first);
  OTF2_RegionRef instant(std::uint32_t type) const { return 2 * type + 1; }
  OTF2_CommRef communicator(std::uint32_t number);
  OTF2_MetricRef counter(std::uint32_t type, std::uint32_t which);
  OTF2_StringRef string(std::string_view text);
  // Of each type its fields' attributes; OTF2_UNDEFINED_ATTRIBUTE: none.
  const std::array<OTF2_AttributeRef, 3>& fields(std::uint32_t type) const { return fields_[type]; }
  const Texts& texts() const { return texts_; }

  // Threads, then one for each process without any: what number of a communicator it is stays known.
  std::size_t locations() const { return job_.threads.size() + without_.size(); }
  void write(Otf2Archive& archive, const std::vector<std::uint64_t>& events, std::int64_t last);

 private:
  void write_system(OTF2_GlobalDefWriter* to, Otf2Archive& archive, const std::vector<std::uint64_t>& events);
  void write_regions(OTF2_GlobalDefWriter* to, Otf2Archive& archive);
  void write_attributes(OTF2_GlobalDefWriter* to, Otf2Archive& archive);
  void write_counters(OTF2_GlobalDefWriter* to, Otf2Archive& archive);
  void write_communicators(OTF2_GlobalDefWriter* to, Otf2Archive& archive);
  // The string's number; written if it is new, so before what refers to it.
  OTF2_StringRef text_reference(OTF2_GlobalDefWriter* to, Otf2Archive& archive, const std::string& text);

  const MergedJob& job_;
  Texts texts_;
  std::vector<std::array<OTF2_AttributeRef, 3>> fields_;
  std::vector<std::string> attributes_;  // of fields
  std::unordered_map<std::string_view, OTF2_RegionRef> tasks_;
  std::vector<std::pair<std::string_view, std::uint32_t>> task_names_;  // with their type, in order of their numbers
  std::unordered_map<std::uint32_t, OTF2_CommRef> communicators_;
  std::map<std::array<std::uint32_t, 2>, OTF2_MetricRef> counters_;
  std::unordered_map<std::string, OTF2_StringRef> strings_;
  std::size_t written_ = 0;
  std::vector<const std::string*> order_;  // of strings
  std::vector<std::uint32_t> without_;     // ranks without threads
};

}  // namespace elbowroom::trace
