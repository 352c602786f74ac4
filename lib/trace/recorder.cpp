#include "trace/recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

namespace elbowroom::trace {
namespace {

using nlohmann::json;

constexpr std::size_t kMostCategories = 63;  // the last bit is the library's own events
constexpr std::uint64_t kOwnCategory = 1ULL << 63;
constexpr std::size_t kMostTypes = 65535;
constexpr std::size_t kDefaultBytes = 4U << 20;
constexpr std::size_t kDefaultTextBytes = 256U << 10;
constexpr std::size_t kLeastBytes = 32U * 64;

[[noreturn]] void refuse_file(const std::string& path) {
  const int code = errno;
  throw Refusal(code, path + ": cannot be written (" + std::strerror(code) +
                          "); make room there, or name another directory or memory");
}

std::string numbered(const char* what, int number) {
  std::string digits = std::to_string(number);
  return what + std::string(5 - std::min<std::size_t>(digits.size(), 5), '0') + digits;
}

void copy_name(char (&field)[kNameBytes], const std::string& name) {
  std::memset(field, 0, kNameBytes);
  std::memcpy(field, name.data(), std::min(name.size(), kNameBytes - 1));
}

void write_all(int file, const void* bytes, std::size_t count, const std::string& path) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = write(file, from, count);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      const int code = errno;
      close(file);
      unlink(path.c_str());
      errno = code;
      refuse_file(path);
    }
    from += written;
    count -= static_cast<std::size_t>(written);
  }
}

std::size_t file_bytes(const RingHeader& header) {
  return kHeaderBytes + header.capacity * sizeof(elbow_trace_slot) + header.text_capacity;
}

std::vector<std::string> split(const char* text) {
  std::vector<std::string> found;
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) {
      found.push_back(word);
    }
  }
  return found;
}

}  // namespace

Ring::Ring(std::string path, const RingHeader& header) : path_(std::move(path)) {
  const std::size_t bytes = file_bytes(header);
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    refuse_file(path_);
  }
  // Room is taken now: a memory that is full must not become a signal in the middle of an event.
  errno = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* mapped = MAP_FAILED;
  if (errno == 0) {
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  }
  const int code = errno;
  close(file);
  if (mapped == MAP_FAILED) {
    unlink(path_.c_str());
    errno = code;
    refuse_file(path_);
  }
  header_ = static_cast<RingHeader*>(mapped);
  *header_ = header;
  header_->ring.slots = slots();
}

void Ring::remove_file() { unlink(path_.c_str()); }

elbow_trace_slot* Ring::slots() {
  return reinterpret_cast<elbow_trace_slot*>(reinterpret_cast<char*>(header_) + kHeaderBytes);
}

bool Ring::add_text(std::uint16_t type, std::uint64_t key, std::string_view text) {
  const std::size_t needed = padded(sizeof(TextHeader) + text.size());
  if (header_->text_capacity - header_->text_bytes < needed) {
    ++header_->texts_lost;
    return false;
  }
  char* place = reinterpret_cast<char*>(slots() + header_->capacity) + header_->text_bytes;
  const TextHeader front{key, type, 0, static_cast<std::uint32_t>(text.size())};
  std::memcpy(place, &front, sizeof front);
  std::memcpy(place + sizeof front, text.data(), text.size());
  __atomic_store_n(&header_->text_bytes, header_->text_bytes + needed, __ATOMIC_RELEASE);
  ++header_->texts;
  return true;
}

void Ring::save(const std::string& path) {
  RingHeader header = *header_;
  header.stored = std::min(header.ring.recorded, header.capacity);
  header.text_stored = header.text_bytes;
  header.ended = 1;
  header.ring.slots = nullptr;
  const std::string temporary = path + ".tmp";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    refuse_file(temporary);
  }
  std::vector<char> front(kHeaderBytes, 0);
  std::memcpy(front.data(), &header, sizeof header);
  write_all(file, front.data(), front.size(), temporary);
  write_all(file, slots(), header.stored * sizeof(elbow_trace_slot), temporary);
  write_all(file, slots() + header_->capacity, header.text_stored, temporary);
  if (close(file) != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    refuse_file(path);
  }
}

Recorder::Recorder(const elbow_trace_settings& settings) : settings_(settings), wanted_(split(settings.categories)) {
  directory_ = settings.directory == nullptr ? "trace" : settings.directory;
  settings_.ranks = settings.ranks == 0 ? 1 : settings.ranks;
  settings_.bytes = settings.bytes == 0 ? kDefaultBytes : settings.bytes;
  settings_.text_bytes = padded(settings.text_bytes == 0 ? kDefaultTextBytes : settings.text_bytes);
  if (settings_.rank < 0 || settings_.rank >= settings_.ranks) {
    throw Refusal(EINVAL, "rank " + std::to_string(settings_.rank) + " of " + std::to_string(settings_.ranks) +
                              ": there is no such process; ranks are 0 to ranks - 1");
  }
  if (settings_.policy != ELBOW_TRACE_STOP && settings_.policy != ELBOW_TRACE_OVERWRITE) {
    throw Refusal(EINVAL, "policy " + std::to_string(settings_.policy) +
                              ": there is no such policy; ELBOW_TRACE_STOP or ELBOW_TRACE_OVERWRITE");
  }
  if (settings_.bytes < kLeastBytes) {
    throw Refusal(EINVAL, "bytes " + std::to_string(settings_.bytes) + ": too few for a ring; give 2048 or more");
  }
  stem_ = numbered("rank-", settings_.rank);
  std::error_code failed;
  std::filesystem::create_directories(directory_, failed);
  const std::string pid = std::to_string(getpid());
  memory_ = std::string(settings.memory == nullptr ? "/dev/shm" : settings.memory) + "/elbow-trace-" +
            std::to_string(settings_.job) + "-" + stem_ + "-" + pid;
  if (failed || mkdir(memory_.c_str(), 0700) != 0) {
    errno = failed ? failed.value() : errno;
    refuse_file(failed ? directory_ : memory_);
  }
  const HostClock& clock = host_clock();
  append(json{{"record", "trace"},
              {"format", ELBOW_TRACE_FORMAT},
              {"job", settings_.job},
              {"rank", settings_.rank},
              {"ranks", settings_.ranks},
              {"pid", getpid()},
              {"memory", memory_},
              {"policy", settings_.policy == ELBOW_TRACE_STOP ? "stop" : "overwrite"},
              {"clock",
               {{"counter", clock.counter},
                {"start_ticks", clock.start_ticks},
                {"start_ns", clock.start_ns},
                {"scale", clock.scale}}}}
             .dump(),
         true);
  const char* const mask_fields[3] = {nullptr, "mask", nullptr};
  const char* const region_fields[3] = {"on", nullptr, nullptr};
  mask_type_ = type("mask", 63, mask_fields);
  region_type_ = type("region of interest", 63, region_fields);
  event_ns_ = calibrated();
}

// Appended with one system call each, so that what was said before a process is killed can be read after it.
void Recorder::append(const std::string& line, bool first) {
  const std::string path = directory_ + "/" + stem_ + ".jsonl";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (first ? O_TRUNC : 0), 0644);
  if (file < 0) {
    refuse_file(path);
  }
  const std::string whole = line + "\n";
  const ssize_t written = write(file, whole.data(), whole.size());
  if (close(file) != 0 || written != static_cast<ssize_t>(whole.size())) {
    refuse_file(path);
  }
}

int Recorder::category(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(categories_.begin(), categories_.end(), name);
  if (found != categories_.end()) {
    return static_cast<int>(found - categories_.begin());
  }
  if (categories_.size() == kMostCategories) {
    throw Refusal(ENOSPC, "category '" + name + "': there are 63 already; put its types into one of those");
  }
  append(json{{"record", "category"}, {"number", categories_.size()}, {"name", name}}.dump());
  categories_.push_back(name);
  return static_cast<int>(categories_.size()) - 1;
}

const elbow_trace_type* Recorder::type(const std::string& name, int category, const char* const fields[3]) {
  const std::lock_guard lock(mutex_);
  const bool own = category == 63;
  if (!own && (category < 0 || category >= static_cast<int>(categories_.size()))) {
    throw Refusal(EINVAL, "category " + std::to_string(category) + " of type '" + name +
                              "': there is no such category; elbow_trace_category makes one");
  }
  if (types_.size() == kMostTypes) {
    throw Refusal(ENOSPC, "type '" + name + "': there are 65535 already");
  }
  json told = json::array();
  for (int i = 0; i < 3; ++i) {
    told.push_back(fields[i] == nullptr ? json() : json(fields[i]));
  }
  const auto number = static_cast<std::uint16_t>(types_.size());
  append(json{{"record", "type"}, {"number", number}, {"name", name}, {"category", category}, {"fields", told}}.dump());
  types_.push_back({{1ULL << category, number}, name, category});
  return &types_.back().handle;
}

void Recorder::filter(const elbow_trace_type* wanted, bool on) {
  const std::lock_guard lock(mutex_);
  for (Type& type : types_) {
    if (&type.handle == wanted) {
      __atomic_store_n(&type.handle.category, on ? 1ULL << type.category : 0, __ATOMIC_RELAXED);
      return;
    }
  }
  throw Refusal(EINVAL, "type: was not made by elbow_trace_type_new");
}

// Categories named at the start are made now, so that their bits are known before anybody uses them.
std::uint64_t Recorder::initial_mask() {
  if (wanted_.empty()) {
    return ~0ULL;
  }
  std::uint64_t mask = kOwnCategory;
  for (const std::string& name : wanted_) {
    mask |= 1ULL << category(name);
  }
  return mask;
}

RingHeader Recorder::header_of(const std::string& name, int thread) const {
  RingHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = ELBOW_TRACE_FORMAT;
  header.header_bytes = kHeaderBytes;
  header.slot_bytes = sizeof(elbow_trace_slot);
  header.policy = static_cast<std::uint32_t>(settings_.policy);
  header.capacity = std::bit_floor(settings_.bytes / sizeof(elbow_trace_slot));
  header.stored = header.capacity;
  header.text_capacity = settings_.text_bytes;
  header.text_stored = settings_.text_bytes;
  header.job = settings_.job;
  header.rank = settings_.rank;
  header.ranks = settings_.ranks;
  header.thread = thread;
  header.tid = static_cast<std::int32_t>(syscall(SYS_gettid));
  header.pid = getpid();
  copy_name(header.name, name.empty() ? "thread " + std::to_string(thread) : name);
  gethostname(header.host, kNameBytes - 1);
  const HostClock& clock = host_clock();
  header.counter = clock.counter ? 1 : 0;
  header.start_ticks = clock.start_ticks;
  header.start_ns = clock.start_ns;
  header.scale = clock.scale;
  header.ring.limit = settings_.policy == ELBOW_TRACE_STOP ? header.capacity : ~0ULL;
  header.ring.wrap = header.capacity - 1;
  header.ring.counter = clock.counter ? 1 : 0;
  header.ring.shift = static_cast<std::uint32_t>(std::countr_zero(header.capacity));
  return header;
}

Ring& Recorder::attach(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const int thread = static_cast<int>(rings_.size());
  return rings_.emplace_back(memory_ + "/" + numbered("thread-", thread) + ".ring", header_of(name, thread));
}

void Recorder::sync(const elbow_clock* clock, const elbow_sync_point& point) {
  const std::lock_guard lock(mutex_);
  // A clock that is shared on its host has another process's calibration: told in this process's times.
  const std::int64_t shift = host_clock().now() - elbow_clock_local(clock);
  const bool same = (std::string_view(elbow_clock_source(clock)) == "tsc") == host_clock().counter;
  append(json{
      {"record", "sync"},
      {"local", point.local + shift},
      {"offset", point.offset - shift},
      {"low", point.low - shift},
      {"high", point.high - shift},
      {"same_source",
       same}}.dump());
}

// What one event takes, ns: the least of some batches into a ring of its own.
double Recorder::calibrated() {
  constexpr int kEvents = 1024;
  RingHeader header = header_of("calibration", -1);
  header.ring.limit = ~0ULL;
  Ring scratch(memory_ + "/calibration.ring", header);
  elbow_trace_ring* const before = elbow_trace_own;
  const std::uint64_t mask = elbow_trace_recorded_categories;
  elbow_trace_own = &scratch.header().ring;
  elbow_trace_recorded_categories = ~0ULL;
  double least = 1e9;
  for (int batch = 0; batch < 20; ++batch) {
    const std::int64_t begun = host_clock().now();
    for (int i = 0; i < kEvents; ++i) {
      elbow_trace_event(mask_type_, 0, static_cast<std::uint64_t>(i), 0);
    }
    least = std::min(least, static_cast<double>(host_clock().now() - begun) / kEvents);
  }
  elbow_trace_own = before;
  elbow_trace_recorded_categories = mask;
  scratch.remove_file();
  return least;
}

elbow_trace_summary Recorder::stop() {
  const std::lock_guard lock(mutex_);
  elbow_trace_summary all{};
  std::vector<std::uint64_t> by_type(types_.size(), 0);
  for (Ring& ring : rings_) {
    const RingHeader& header = ring.header();
    const std::uint64_t recorded = header.ring.recorded;
    const std::uint64_t kept = std::min(recorded, header.capacity);
    all.recorded += recorded;
    all.kept += kept;
    all.lost += recorded - kept;
    all.fullest = std::max(all.fullest, recorded);
    all.capacity = header.capacity;
    all.texts_kept += header.texts;
    all.texts_lost += header.texts_lost;
    for (std::uint64_t i = 0; i < kept; ++i) {
      const std::uint16_t type = ring.slots()[i].type;
      by_type[type] += type < by_type.size() ? 1 : 0;
    }
    ring.save(directory_ + "/" + stem_ + "." + numbered("thread-", header.thread) + ".ring");
  }
  all.threads = static_cast<int>(rings_.size());
  all.advised =
      static_cast<std::size_t>(std::bit_ceil(std::max<std::uint64_t>(all.fullest, 64))) * sizeof(elbow_trace_slot);
  all.event_ns = event_ns_;
  all.overhead_ns = event_ns_ * static_cast<double>(all.recorded);
  json types = json::array();
  for (const Type& type : types_) {
    types.push_back({{"type", type.handle.number}, {"kept", by_type[type.handle.number]}});
  }
  append(json{{"record", "end"},
              {"recorded", all.recorded},
              {"kept", all.kept},
              {"lost", all.lost},
              {"fullest", all.fullest},
              {"capacity", all.capacity},
              {"threads", all.threads},
              {"texts_kept", all.texts_kept},
              {"texts_lost", all.texts_lost},
              {"advised_bytes", all.advised},
              {"event_ns", event_ns_},
              {"end_ns", host_clock().now()},
              {"types", types}}
             .dump());
  for (Ring& ring : rings_) {
    ring.remove_file();
  }
  rmdir(memory_.c_str());
  return all;
}

}  // namespace elbowroom::trace
