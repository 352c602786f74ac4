#include "trace/outputs/otf2_definitions.hpp"

#include <algorithm>

namespace elbowroom::trace {
namespace {

constexpr const char* kOtf2Names[kOtf2Attributes] = {"flags",    "type", "text",         "lost", "message",
                                                     "sequence", "peer", "communicator", "tag",  "bytes"};
constexpr Otf2Attribute kStrings[] = {Otf2Attribute::kFlags, Otf2Attribute::kType, Otf2Attribute::kText};
constexpr OTF2_GroupRef kCommLocations = 0;
constexpr OTF2_GroupRef kWorld = 1;

}  // namespace

Otf2Definitions::Otf2Definitions(const MergedJob& job) : job_(job), texts_(job) {
  string("");
  std::unordered_map<std::string, OTF2_AttributeRef> numbers;
  for (const MergedType& type : job.types) {
    fields_.push_back({OTF2_UNDEFINED_ATTRIBUTE, OTF2_UNDEFINED_ATTRIBUTE, OTF2_UNDEFINED_ATTRIBUTE});
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      if (type.fields[i].empty()) {
        continue;
      }
      const auto next = static_cast<OTF2_AttributeRef>(kOtf2Attributes + attributes_.size());
      const auto [number, fresh] = numbers.try_emplace(type.fields[i], next);
      if (fresh) {
        attributes_.push_back(valid_utf8(type.fields[i]));
      }
      fields_.back()[i] = number->second;
    }
  }
  std::vector<bool> has(job.ranks.size(), false);
  for (const MergedThread& thread : job.threads) {
    has[thread.rank] = true;
  }
  for (std::uint32_t rank = 0; rank < has.size(); ++rank) {
    if (!has[rank]) {
      without_.push_back(rank);
    }
  }
}

OTF2_StringRef Otf2Definitions::string(std::string_view text) {
  // No string of OTF2 has a zero in it, or is larger than a chunk.
  constexpr std::size_t kLongest = 1 << 16;
  const std::string_view whole = text.substr(0, std::min(text.find('\0'), kLongest));
  const auto [at, fresh] = strings_.try_emplace(valid_utf8(whole), static_cast<OTF2_StringRef>(strings_.size()));
  if (fresh) {
    order_.push_back(&at->first);
  }
  return at->second;
}

OTF2_RegionRef Otf2Definitions::span(std::uint32_t thread, std::uint32_t type, std::uint64_t first) {
  const std::string_view own = texts_.task(type) ? texts_.of(thread, type, first) : std::string_view();
  if (own.empty()) {
    return 2 * type;
  }
  const auto next = static_cast<OTF2_RegionRef>(2 * job_.types.size() + task_names_.size());
  const auto [at, fresh] = tasks_.try_emplace(own, next);
  if (fresh) {
    task_names_.emplace_back(own, type);
  }
  return at->second;
}

OTF2_CommRef Otf2Definitions::communicator(std::uint32_t number) {
  return communicators_.try_emplace(number, static_cast<OTF2_CommRef>(communicators_.size())).first->second;
}

OTF2_MetricRef Otf2Definitions::counter(std::uint32_t type, std::uint32_t which) {
  return counters_.try_emplace({type, which}, static_cast<OTF2_MetricRef>(counters_.size())).first->second;
}

OTF2_StringRef Otf2Definitions::text_reference(OTF2_GlobalDefWriter* to, Otf2Archive& archive,
                                               const std::string& text) {
  const OTF2_StringRef number = string(text);
  for (; written_ < order_.size(); ++written_) {
    archive.check(
        OTF2_GlobalDefWriter_WriteString(to, static_cast<OTF2_StringRef>(written_), order_[written_]->c_str()));
  }
  return number;
}

void Otf2Definitions::write(Otf2Archive& archive, const std::vector<std::uint64_t>& events, std::int64_t last) {
  OTF2_GlobalDefWriter* to = OTF2_Archive_GetGlobalDefWriter(archive.handle());
  // Times are read to the ns, rounded either way.
  archive.check(OTF2_GlobalDefWriter_WriteClockProperties(
      to, 1'000'000'000, static_cast<std::uint64_t>(std::max<std::int64_t>(job_.start, 1)) - 1,
      static_cast<std::uint64_t>(last) + 2, OTF2_UNDEFINED_TIMESTAMP));
  text_reference(to, archive, "");
  archive.check(OTF2_GlobalDefWriter_WriteParadigm(to, OTF2_PARADIGM_MPI, text_reference(to, archive, "MPI"),
                                                   OTF2_PARADIGM_CLASS_PROCESS));
  write_system(to, archive, events);
  write_attributes(to, archive);
  write_regions(to, archive);
  write_counters(to, archive);
  write_communicators(to, archive);
}

void Otf2Definitions::write_system(OTF2_GlobalDefWriter* to, Otf2Archive& archive,
                                   const std::vector<std::uint64_t>& events) {
  const auto name = [&](const std::string& text) { return text_reference(to, archive, text); };
  const OTF2_StringRef machine = name("machine");
  archive.check(OTF2_GlobalDefWriter_WriteSystemTreeNode(to, 0, name("job"), machine, OTF2_UNDEFINED_SYSTEM_TREE_NODE));
  std::map<std::string, OTF2_SystemTreeNodeRef> hosts;
  for (const MergedRank& rank : job_.ranks) {
    const std::string host = rank.there ? rank.host : "missing";
    const auto [at, fresh] = hosts.try_emplace(host, static_cast<OTF2_SystemTreeNodeRef>(hosts.size() + 1));
    if (fresh) {
      const OTF2_StringRef title = name(host);
      const OTF2_StringRef node = name("node");
      archive.check(OTF2_GlobalDefWriter_WriteSystemTreeNode(to, at->second, title, node, 0));
      archive.check(
          OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(to, at->second, OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY));
    }
  }
  for (std::uint32_t i = 0; i < job_.ranks.size(); ++i) {
    const MergedRank& rank = job_.ranks[i];
    archive.check(OTF2_GlobalDefWriter_WriteLocationGroup(
        to, i, name(process_title(rank)), OTF2_LOCATION_GROUP_TYPE_PROCESS,
        hosts.at(rank.there ? rank.host : "missing"), OTF2_UNDEFINED_LOCATION_GROUP));
  }
  for (std::size_t i = 0; i < locations(); ++i) {
    const bool thread = i < job_.threads.size();
    const std::uint32_t rank = thread ? job_.threads[i].rank : without_[i - job_.threads.size()];
    const OTF2_StringRef title = name(thread ? thread_title(job_.threads[i]) : "no thread");
    archive.check(OTF2_GlobalDefWriter_WriteLocation(to, i, title, OTF2_LOCATION_TYPE_CPU_THREAD, events[i], rank));
  }
}

void Otf2Definitions::write_attributes(OTF2_GlobalDefWriter* to, Otf2Archive& archive) {
  for (std::uint32_t i = 0; i < kOtf2Attributes + attributes_.size(); ++i) {
    const bool own = i < kOtf2Attributes;
    const bool text =
        own && std::find(std::begin(kStrings), std::end(kStrings), Otf2Attribute{i}) != std::end(kStrings);
    const OTF2_StringRef name = text_reference(to, archive, own ? kOtf2Names[i] : attributes_[i - kOtf2Attributes]);
    archive.check(OTF2_GlobalDefWriter_WriteAttribute(to, i, name, 0, text ? OTF2_TYPE_STRING : OTF2_TYPE_UINT64));
  }
}

void Otf2Definitions::write_regions(OTF2_GlobalDefWriter* to, Otf2Archive& archive) {
  const auto write = [&](OTF2_RegionRef number, std::string_view text, std::uint32_t type, bool span) {
    const std::string& category = job_.categories[job_.types[type].category];
    const OTF2_StringRef name = text_reference(to, archive, std::string(text));
    const OTF2_StringRef about = text_reference(to, archive, span ? category : category + ", an event");
    const OTF2_RegionRole role = !span                ? OTF2_REGION_ROLE_ARTIFICIAL
                                 : category == "task" ? OTF2_REGION_ROLE_TASK
                                                      : OTF2_REGION_ROLE_FUNCTION;
    const OTF2_Paradigm paradigm = category == "mpi" ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_USER;
    archive.check(OTF2_GlobalDefWriter_WriteRegion(to, number, name, name, about, role, paradigm, OTF2_REGION_FLAG_NONE,
                                                   0, 0, 0));
  };
  for (std::uint32_t type = 0; type < job_.types.size(); ++type) {
    write(2 * type, job_.types[type].name, type, true);
    write(2 * type + 1, job_.types[type].name, type, false);
  }
  for (std::size_t i = 0; i < task_names_.size(); ++i) {
    const auto& [name, type] = task_names_[i];
    write(static_cast<OTF2_RegionRef>(2 * job_.types.size() + i), name, type, true);
  }
}

void Otf2Definitions::write_counters(OTF2_GlobalDefWriter* to, Otf2Archive& archive) {
  for (const auto& [which, number] : counters_) {
    const OTF2_StringRef name = text_reference(to, archive, counter_title(job_.types[which[0]], which[1]));
    archive.check(OTF2_GlobalDefWriter_WriteMetricMember(to, number, name, 0, OTF2_METRIC_TYPE_USER,
                                                         OTF2_METRIC_ABSOLUTE_POINT, OTF2_TYPE_INT64, OTF2_BASE_DECIMAL,
                                                         0, 0));
    archive.check(OTF2_GlobalDefWriter_WriteMetricClass(to, number, 1, &number, OTF2_METRIC_ASYNCHRONOUS,
                                                        OTF2_RECORDER_KIND_CPU));
  }
}

// Which processes a communicator has is not recorded: each is taken to have all, under their numbers in the job.
void Otf2Definitions::write_communicators(OTF2_GlobalDefWriter* to, Otf2Archive& archive) {
  const auto ranks = static_cast<std::uint32_t>(job_.ranks.size());
  std::vector<std::uint64_t> first(ranks);
  for (std::size_t i = locations(); i-- > 0;) {
    first[i < job_.threads.size() ? job_.threads[i].rank : without_[i - job_.threads.size()]] = i;
  }
  std::vector<std::uint64_t> all(ranks);
  for (std::uint32_t i = 0; i < ranks; ++i) {
    all[i] = i;
  }
  archive.check(OTF2_GlobalDefWriter_WriteGroup(to, kCommLocations, text_reference(to, archive, "ranks"),
                                                OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                                ranks, first.data()));
  archive.check(OTF2_GlobalDefWriter_WriteGroup(to, kWorld, text_reference(to, archive, "all"),
                                                OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                                ranks, all.data()));
  std::vector<std::uint32_t> numbers(communicators_.size());
  for (const auto& [number, reference] : communicators_) {
    numbers[reference] = number;
  }
  for (OTF2_CommRef i = 0; i < numbers.size(); ++i) {
    const OTF2_StringRef name = text_reference(to, archive, "communicator " + std::to_string(numbers[i]));
    archive.check(OTF2_GlobalDefWriter_WriteComm(to, i, name, kWorld, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
  }
}

}  // namespace elbowroom::trace
