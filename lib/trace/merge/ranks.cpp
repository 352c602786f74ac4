#include "trace/merge/ranks.hpp"

#include <nlohmann/json.hpp>

#include "elbowroom/trace.h"

namespace elbowroom::trace {
namespace {

using nlohmann::json;

// 36 years in ns: sums and differences of such times stay whole numbers of 64 bits.
constexpr std::int64_t kMostTime = 1LL << 60;
constexpr int kMostTypes = 65536;
constexpr int kOwnCategory = 63;

// Reads fields, and remembers whether all were there.
class Fields {
 public:
  explicit Fields(const json& line) : line_(line) {}

  template <typename Number>
  Number number(const char* name, Number least, Number most) {
    const auto entry = line_.find(name);
    if (entry == line_.end() || !entry->is_number()) {
      sound_ = false;
      return least;
    }
    if (entry->is_number_unsigned()) {
      const auto value = entry->get<std::uint64_t>();
      const bool within =
          value <= static_cast<std::uint64_t>(most) && (least <= 0 || value >= static_cast<std::uint64_t>(least));
      sound_ = sound_ && within;
      return within ? static_cast<Number>(value) : least;
    }
    const auto value = entry->is_number_integer() ? entry->get<std::int64_t>() : kMostTime;
    const bool within = value < 0 && least < 0 && value >= static_cast<std::int64_t>(least);
    sound_ = sound_ && within;
    return within ? static_cast<Number>(value) : least;
  }

  double real(const char* name, double most) {
    const auto entry = line_.find(name);
    const bool within =
        entry != line_.end() && entry->is_number() && entry->get<double>() >= 0 && entry->get<double>() <= most;
    sound_ = sound_ && within;
    return within ? entry->get<double>() : 0;
  }

  std::string text(const char* name) {
    const auto entry = line_.find(name);
    const bool is = entry != line_.end() && entry->is_string();
    sound_ = sound_ && is;
    return is ? entry->get<std::string>() : std::string();
  }

  bool flag(const char* name) {
    const auto entry = line_.find(name);
    const bool is = entry != line_.end() && entry->is_boolean();
    sound_ = sound_ && is;
    return is && entry->get<bool>();
  }

  bool sound() const { return sound_; }
  bool has(const char* name) const { return line_.contains(name); }

 private:
  const json& line_;
  bool sound_ = true;
};

bool read_clock(const json& line, HostClock& clock) {
  const auto entry = line.find("clock");
  if (entry == line.end() || !entry->is_object()) {
    return false;
  }
  Fields fields(*entry);
  clock.counter = fields.flag("counter");
  clock.start_ticks = fields.number<std::uint64_t>("start_ticks", 0, ~0ULL);
  clock.start_ns = fields.number<std::int64_t>("start_ns", -kMostTime, kMostTime);
  clock.scale = fields.number<std::uint64_t>("scale", 0, ~0ULL);
  clock.steered = fields.has("steered") && fields.flag("steered");  // older files do not say it
  return fields.sound() && (!clock.counter || clock.scale > 0);
}

bool read_first(const json& line, RankLines& lines, const std::string& path) {
  Fields fields(line);
  const int format = fields.number("format", 0, 1 << 30);
  if (fields.sound() && format != ELBOW_TRACE_FORMAT) {
    throw Refused(path + ": has version " + std::to_string(format) + ", but this release reads " +
                  std::to_string(ELBOW_TRACE_FORMAT) + "; read it with the release that wrote it");
  }
  RankLines read;
  read.job = fields.number<std::uint64_t>("job", 0, ~0ULL);
  read.rank = fields.number("rank", 0, kMostRanks);
  read.ranks = fields.number("ranks", 1, kMostRanks);
  read.pid = fields.number<std::int64_t>("pid", 0, kMostTime);
  read.memory = fields.text("memory");
  if (!read_clock(line, read.clock) || !fields.sound() || read.rank >= read.ranks || lines.begun) {
    return false;
  }
  lines.begun = true;
  lines.job = read.job;
  lines.rank = read.rank;
  lines.ranks = read.ranks;
  lines.pid = read.pid;
  lines.memory = read.memory;
  lines.clock = read.clock;
  return true;
}

bool read_category(const json& line, RankLines& lines) {
  Fields fields(line);
  const int number = fields.number("number", 0, kOwnCategory - 1);
  const std::string name = fields.text("name");
  return fields.sound() && lines.categories.emplace(number, name).second;
}

bool read_type(const json& line, RankLines& lines) {
  Fields fields(line);
  const int number = fields.number("number", 0, kMostTypes - 1);
  LinesType type{fields.text("name"), fields.number("category", 0, kOwnCategory), {}};
  const auto names = line.find("fields");
  if (!fields.sound() || names == line.end() || !names->is_array() || names->size() != 3) {
    return false;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!names->at(i).is_null() && !names->at(i).is_string()) {
      return false;
    }
    type.fields.at(i) = names->at(i).is_null() ? "" : names->at(i).get<std::string>();
  }
  return lines.types.emplace(number, type).second;
}

bool read_sync(const json& line, RankLines& lines) {
  Fields fields(line);
  LinesSync sync;
  sync.point.local = fields.number("local", -kMostTime, kMostTime);
  sync.point.offset.offset = fields.number("offset", -kMostTime, kMostTime);
  sync.point.offset.low = fields.number("low", -kMostTime, kMostTime);
  sync.point.offset.high = fields.number("high", -kMostTime, kMostTime);
  sync.point.offset.jumped = fields.has("jumped") && fields.flag("jumped");
  sync.same_source = !fields.has("same_source") || fields.flag("same_source");
  const clock::Offset& offset = sync.point.offset;
  if (!fields.sound() || offset.low > offset.offset || offset.offset > offset.high) {
    return false;
  }
  lines.syncs.push_back(sync);
  return true;
}

bool read_end(const json& line, RankLines& lines) {
  Fields fields(line);
  LinesEnd end;
  end.recorded = fields.number<std::uint64_t>("recorded", 0, ~0ULL);
  end.kept = fields.number<std::uint64_t>("kept", 0, ~0ULL);
  end.lost = fields.number<std::uint64_t>("lost", 0, ~0ULL);
  end.texts_lost = fields.number<std::uint64_t>("texts_lost", 0, ~0ULL);
  end.advised_bytes = fields.number<std::uint64_t>("advised_bytes", 0, ~0ULL);
  end.event_ns = fields.real("event_ns", 1e9);
  end.end_ns = fields.has("end_ns") ? fields.number("end_ns", -kMostTime, kMostTime) : 0;
  if (!fields.sound()) {
    return false;
  }
  lines.end = end;
  return true;
}

// False where the line is not what its record should be. Records of other kinds are those of a later release.
bool read_line(std::string_view text, RankLines& lines, const std::string& path) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("record") || !line["record"].is_string()) {
    return false;
  }
  const auto record = line["record"].get<std::string>();
  if (record == "trace") {
    return read_first(line, lines, path);
  }
  if (record == "category") {
    return read_category(line, lines);
  }
  if (record == "type") {
    return read_type(line, lines);
  }
  if (record == "sync") {
    return read_sync(line, lines);
  }
  lines.finalised = lines.finalised || record == "finalised";
  return record != "end" || read_end(line, lines);
}

}  // namespace

RankLines read_lines(std::string_view text, const std::string& path) {
  RankLines lines;
  std::size_t bad = 0;
  for (std::size_t at = 0, number = 1; at < text.size(); ++number) {
    const std::size_t newline = text.find('\n', at);
    const std::size_t end = newline == std::string_view::npos ? text.size() : newline;
    if (!read_line(text.substr(at, end - at), lines, path)) {
      if (bad++ == 0) {
        lines.damage = "line " + std::to_string(number) + ", at byte " + std::to_string(at) + ", is damaged";
      }
    }
    at = end + 1;
  }
  if (bad > 1) {
    lines.damage += ", and " + std::to_string(bad - 1) + " more";
  }
  if (!lines.begun) {
    lines.damage += std::string(lines.damage.empty() ? "" : "; ") + "its first line is missing";
  }
  return lines;
}

}  // namespace elbowroom::trace
