#include "trace/recorder.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "trace/lines.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::size_t kMostCategories = 63;  // the last bit is the library's own events
constexpr std::size_t kMostTypes = 65535;
constexpr std::size_t kDefaultBytes = 4U << 20;
constexpr std::size_t kDefaultTextBytes = 256U << 10;
constexpr std::size_t kLeastBytes = 32U * 64;
constexpr const char* kPolicyNames[] = {"stop", "overwrite", "drain", "grow", "flush"};

void copy_name(char (&field)[kNameBytes], const std::string& name) {
  std::memset(field, 0, kNameBytes);
  std::memcpy(field, name.data(), std::min(name.size(), kNameBytes - 1));
}

std::vector<std::string> split(const char* text) {
  std::vector<std::string> result;
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) {
      result.push_back(word);
    }
  }
  return result;
}

// That of lib/clock, so that its sync points and the events here are of one clock.
HostClock clock_of(const elbow_clock* clock) {
  auto result = c_interface::sized<elbow_clock_calibration>();
  if (elbow_clock_calibrated(clock, &result) != 0) {
    throw Refusal(errno, elbow_clock_error());
  }
  return {result.counter != 0, result.start_ticks, result.start_ns, result.scale, result.steered != 0};
}

// The counter when `clock` says that time; its own times are rounded to ns, and so is this.
std::uint64_t ticks_at(const HostClock& clock, std::int64_t ns) {
  __extension__ using Signed = __int128;
  const Signed passed = (static_cast<Signed>(ns - clock.start_ns) << 32) / static_cast<Signed>(clock.scale);
  return clock.start_ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(passed));
}

}  // namespace

std::string numbered(const char* what, int number) {
  std::string digits = std::to_string(number);
  return what + std::string(5 - std::min<std::size_t>(digits.size(), 5), '0') + digits;
}

std::string ring_name(int thread) { return numbered("thread-", thread) + ".ring"; }

Recorder::Recorder(const elbow_trace_settings& settings)
    : settings_(settings), wanted_(split(settings.categories)), without_(split(settings.without)) {
  take_settings(settings);
  clock_ = clock_of(nullptr);
  make_memory(settings);
  try {
    begin();
  } catch (...) {
    memory_folder_.remove();
    throw;
  }
}

Recorder::~Recorder() { helper_.reset(); }

void Recorder::take_settings(const elbow_trace_settings& settings) {
  directory_ = settings.directory == nullptr ? "trace" : settings.directory;
  settings_.ranks = settings.ranks == 0 ? 1 : settings.ranks;
  settings_.bytes = settings.bytes == 0 ? kDefaultBytes : settings.bytes;
  settings_.text_bytes = padded(settings.text_bytes == 0 ? kDefaultTextBytes : settings.text_bytes);
  if (settings_.rank < 0 || settings_.rank >= settings_.ranks) {
    throw Refusal(EINVAL, "rank " + std::to_string(settings_.rank) + " of " + std::to_string(settings_.ranks) +
                              ": there is no such rank; ranks are 0 to ranks - 1");
  }
  if (settings_.policy < ELBOW_TRACE_STOP || settings_.policy > ELBOW_TRACE_FLUSH) {
    throw Refusal(EINVAL, "policy " + std::to_string(settings_.policy) +
                              ": there is no such policy; ELBOW_TRACE_STOP, _OVERWRITE, _DRAIN, _GROW or _FLUSH");
  }
  if (settings_.bytes < kLeastBytes) {
    throw Refusal(EINVAL, "bytes " + std::to_string(settings_.bytes) + ": too few for a ring; give 2048 or more");
  }
  if (wanted_.size() > kMostCategories) {
    throw Refusal(EINVAL, "categories: are " + std::to_string(wanted_.size()) + "; name 63 at most");
  }
}

void Recorder::make_memory(const elbow_trace_settings& settings) {
  stem_ = numbered("rank-", settings_.rank);
  std::error_code failed;
  std::filesystem::create_directories(directory_, failed);
  if (failed) {
    refuse_file(directory_, failed.value());
  }
  const std::string base = settings.memory == nullptr ? "/dev/shm" : settings.memory;
  clear_dead(base, settings_.job);
  memory_folder_ = MemoryFolder(base, settings_.job, stem_, directory_);
  memory_ = memory_folder_.path();
}

void Recorder::begin() {
  append_first();
  try {
    prepare();
  } catch (...) {
    unlink((directory_ + "/" + stem_ + ".jsonl").c_str());
    throw;
  }
}

void Recorder::prepare() {
  append_clock("start");
  const char* const mask_fields[3] = {nullptr, "mask", nullptr};
  const char* const region_fields[3] = {"on", nullptr, nullptr};
  const char* const flush_fields[3] = {"thread", nullptr, nullptr};
  const char* const lost_fields[3] = {nullptr, "events", nullptr};
  mask_type_ = type("mask", kOwnCategory, mask_fields);
  region_type_ = type("region of interest", kOwnCategory, region_fields);
  flush_type_ = type("flush", kOwnCategory, flush_fields);
  lost_type_ = type("lost", kOwnCategory, lost_fields);
  cost_ = calibrated();
  if (settings_.policy == ELBOW_TRACE_DRAIN || settings_.policy == ELBOW_TRACE_GROW) {
    start_helper();
  }
}

void Recorder::append_first() {
  Line clock;
  clock.add("counter", clock_.counter).add("start_ticks", clock_.start_ticks);
  clock.add("start_ns", clock_.start_ns).add("scale", clock_.scale).add("steered", clock_.steered);
  Line line("trace");
  line.add("format", ELBOW_TRACE_FORMAT).add("job", settings_.job);
  line.add("rank", settings_.rank).add("ranks", settings_.ranks).add("pid", getpid());
  line.add("memory", memory_).add("policy", kPolicyNames[settings_.policy]).add_json("clock", clock.text());
  append_text(directory_ + "/" + stem_ + ".jsonl", line.text() + "\n", true);
}

// What the counter reads beside the kernel's clock: more than `width_ns` between `local` and `raw_ns` is a drift.
void Recorder::append_clock(const char* when) {
  if (!clock_.counter) {
    return;
  }
  std::uint64_t ticks = 0;
  std::int64_t raw = 0;
  std::int64_t width = 0;
  if (elbow_clock_anchor(&ticks, &raw, &width) != 0) {
    throw Refusal(errno, elbow_clock_error());
  }
  Line line("clock");
  line.add("when", when).add("ticks", ticks).add("local", clock_.at(ticks));
  write_down(line.add("raw_ns", raw).add("width_ns", width));
}

// On a full disk lines wait in memory, and are tried again now and then; without them the trace cannot be stopped. With the lock.
void Recorder::write_down(const Line& line) {
  unwritten_.push_back(line.text() + "\n");
  if (std::chrono::steady_clock::now() >= write_not_before_) {
    try {
      write_lines();
    } catch (const Refusal&) {
      write_not_before_ = std::chrono::steady_clock::now() + kAgain;
    }
  }
}

void Recorder::write_lines() {
  while (!unwritten_.empty()) {
    append_text(directory_ + "/" + stem_ + ".jsonl", unwritten_.front());
    unwritten_.pop_front();
  }
}

std::int64_t Recorder::now() const {
  const std::uint64_t ticks = stamp(clock_.counter);
  return clock_.counter ? clock_.at(ticks) : static_cast<std::int64_t>(ticks);
}

int Recorder::category(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto entry = std::find(categories_.begin(), categories_.end(), name);
  if (entry != categories_.end()) {
    return static_cast<int>(entry - categories_.begin());
  }
  if (categories_.size() == kMostCategories) {
    throw Refusal(ENOSPC, "category '" + name + "': there are 63 already; put its types into one of those");
  }
  Line line("category");
  line.add("number", categories_.size()).add("name", name);
  categories_.push_back(name);
  try {
    write_down(line);
  } catch (...) {
    categories_.pop_back();
    throw;
  }
  return static_cast<int>(categories_.size()) - 1;
}

const elbow_trace_type* Recorder::type(const std::string& name, int category, const char* const fields[3]) {
  const std::lock_guard lock(mutex_);
  const bool own = category == kOwnCategory;
  if (!own && (category < 0 || category >= static_cast<int>(categories_.size()))) {
    throw Refusal(EINVAL, "category " + std::to_string(category) + " of type '" + name +
                              "': there is no such category; elbow_trace_category makes one");
  }
  if (types_.size() == kMostTypes) {
    throw Refusal(ENOSPC, "type '" + name + "': there are 65535 already");
  }
  const auto number = static_cast<std::uint16_t>(types_.size());
  Line line("type");
  line.add("number", number).add("name", name).add("category", category);
  line.add_json("fields", json_array(3, [&](std::size_t i) {
                  return fields[i] == nullptr ? std::string("null") : json_text(fields[i]);
                }));
  const bool off = !own && std::find(without_.begin(), without_.end(), name) != without_.end();
  types_.push_back({{off ? 0 : 1ULL << category, number}, name, category});
  try {
    write_down(line);
  } catch (...) {
    types_.pop_back();
    throw;
  }
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
  std::uint64_t mask = 1ULL << kOwnCategory;
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
  const bool flushes = settings_.policy == ELBOW_TRACE_FLUSH;
  header.policy = static_cast<std::uint32_t>(flushes ? ELBOW_TRACE_DRAIN : settings_.policy);
  header.flush = flushes ? flush_own_ring : nullptr;
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
  header.counter = clock_.counter ? 1 : 0;
  header.start_ticks = clock_.start_ticks;
  header.start_ns = clock_.start_ns;
  header.scale = clock_.scale;
  const bool grows = settings_.policy == ELBOW_TRACE_GROW;
  header.ring.limit = settings_.policy == ELBOW_TRACE_OVERWRITE ? ~0ULL : header.capacity;
  if (flushes && settings_.flush_at > 0) {
    header.ring.limit = std::min<std::uint64_t>(settings_.flush_at, header.capacity);
  }
  header.ring.wrap = grows ? ~0ULL : header.capacity - 1;
  header.ring.counter = clock_.counter ? 1 : 0;
  header.ring.shift = grows ? 63 : static_cast<std::uint32_t>(std::countr_zero(header.capacity));
  return header;
}

Ring& Recorder::attach(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const int thread = static_cast<int>(threads_.size());
  const std::string file = ring_name(thread);
  try {
    return threads_
        .emplace_back(memory_ + "/" + file, header_of(name, thread), directory_ + "/" + stem_ + "." + file,
                      lost_type_->number)
        .ring;
  } catch (const Refusal& refusal) {
    refusal_ = refused_threads_++ == 0 ? refusal.what() : refusal_;
    throw;
  }
}

void Recorder::sync(const elbow_clock* clock, const elbow_clock_sync_point& point) {
  const HostClock theirs = clock_of(clock);
  const bool same = theirs.counter == clock_.counter && theirs.steered == clock_.steered;
  // Another process's calibration of the same counter: the instant is the same, this process's time of it is another.
  const std::int64_t shift = same && clock_.counter ? clock_.at(ticks_at(theirs, point.local)) - point.local : 0;
  const std::lock_guard lock(mutex_);
  Line line("sync");
  line.add("local", point.local + shift).add("offset", point.offset - shift);
  line.add("low", point.low - shift).add("high", point.high - shift);
  line.add("jumped", point.jumped != 0);
  write_down(line.add("same_source", same));
  append_clock("sync");
}

}  // namespace elbowroom::trace
