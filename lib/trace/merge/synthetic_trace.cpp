#include "trace/merge/synthetic_trace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trace/outputs/whole_file.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::size_t kWaitingSlots = 8192;

void write_at(int file, const void* bytes, std::size_t count, std::uint64_t place, const std::string& path) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = pwrite(file, from, count, static_cast<off_t>(place));
    if (written <= 0) {
      cannot_write(path, errno);
    }
    from += written;
    place += static_cast<std::uint64_t>(written);
    count -= static_cast<std::size_t>(written);
  }
}

std::string numbered_name(const char* what, int number) {
  const std::string digits = std::to_string(number);
  return what + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

std::string as_line(const nlohmann::json& lines) { return lines.dump() + "\n"; }

std::uint64_t route(std::uint32_t communicator, int peer) {
  return static_cast<std::uint64_t>(communicator) << 32 | static_cast<std::uint32_t>(peer);
}

}  // namespace

RingWriter::RingWriter(std::string path, const RingHeader& header)
    : header_(header), path_(std::move(path)), file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644)) {
  if (file_ < 0) {
    cannot_write(path_, errno);
  }
  waiting_.reserve(kWaitingSlots);
}

RingWriter::~RingWriter() {
  if (file_ >= 0) {
    close(file_);
  }
}

void RingWriter::add(const elbow_trace_slot& slot) {
  waiting_.push_back(slot);
  if (waiting_.size() == kWaitingSlots) {
    flush();
  }
}

void RingWriter::flush() {
  write_at(file_, waiting_.data(), waiting_.size() * sizeof(elbow_trace_slot),
           kHeaderBytes + kept_ * sizeof(elbow_trace_slot), path_);
  kept_ += waiting_.size();
  waiting_.clear();
}

void RingWriter::text(std::uint16_t type, std::uint64_t key, const std::string& text) {
  const TextHeader front{key, type, 0, static_cast<std::uint32_t>(text.size())};
  texts_.append(reinterpret_cast<const char*>(&front), sizeof front);
  texts_ += text;
  texts_.resize(padded(texts_.size()));
  ++text_count_;
}

void RingWriter::finish(bool ended) {
  flush();
  const bool wrapped = header_.policy == ELBOW_TRACE_OVERWRITE && lost_ > 0;
  if ((wrapped || (header_.policy == ELBOW_TRACE_STOP && lost_ > 0)) && !std::has_single_bit(kept_)) {
    throw std::logic_error("a ring that lost events is full: give a power of two of them");
  }
  if (wrapped && lost_ % kept_ != 0) {
    throw std::logic_error("a flight recorder's file is made from its oldest event: lose a multiple of what it keeps");
  }
  header_.capacity = std::bit_ceil(std::max<std::uint64_t>(kept_, 64));
  header_.stored = ended ? kept_ : header_.capacity;
  header_.text_capacity = std::max<std::uint64_t>(texts_.size(), 64);
  header_.text_stored = ended ? texts_.size() : header_.text_capacity;
  header_.text_bytes = texts_.size();
  header_.texts = text_count_;
  header_.ended = ended ? 1 : 0;
  header_.ring.recorded = kept_ + lost_;
  header_.ring.limit = header_.policy == ELBOW_TRACE_STOP ? header_.capacity : ~0ULL;
  header_.ring.wrap = header_.capacity - 1;
  const std::uint64_t behind = kHeaderBytes + header_.stored * sizeof(elbow_trace_slot);
  if (ftruncate(file_, static_cast<off_t>(behind + header_.text_stored)) != 0) {
    cannot_write(path_, errno);
  }
  write_at(file_, texts_.data(), texts_.size(), behind, path_);
  write_at(file_, &header_, sizeof header_, 0, path_);
  close(file_);
  file_ = -1;
}

SyntheticTrace::SyntheticTrace(std::string directory, int ranks, std::uint64_t job)
    : directory_(std::move(directory)), ranks_(static_cast<std::size_t>(ranks)) {
  for (Rank& rank : ranks_) {
    rank.job = job;
  }
  std::filesystem::create_directories(directory_);
  // The recorder's own, first of all types.
  definitions_ += as_line(
      {{"record", "type"}, {"number", 0}, {"name", "mask"}, {"category", 63}, {"fields", {nullptr, "mask", nullptr}}});
  definitions_ += as_line({{"record", "type"},
                           {"number", 1},
                           {"name", "region of interest"},
                           {"category", 63},
                           {"fields", {"on", nullptr, nullptr}}});
  types_ = 2;
}

SyntheticTrace::~SyntheticTrace() = default;

void SyntheticTrace::clock(int rank, const SyntheticClock& clock) {
  ranks_.at(static_cast<std::size_t>(rank)).clock = clock;
}

void SyntheticTrace::leave_out(int rank) { ranks_.at(static_cast<std::size_t>(rank)).there = false; }

void SyntheticTrace::job_of(int rank, std::uint64_t job) { ranks_.at(static_cast<std::size_t>(rank)).job = job; }

void SyntheticTrace::kill(int rank, const std::string& memory) {
  std::filesystem::create_directories(memory);
  ranks_.at(static_cast<std::size_t>(rank)).memory = memory;
}

int SyntheticTrace::category(const std::string& name) {
  definitions_ += as_line({{"record", "category"}, {"number", categories_}, {"name", name}});
  return categories_++;
}

std::uint16_t SyntheticTrace::type(const std::string& name, int category, const std::array<std::string, 3>& fields) {
  nlohmann::json lines = nlohmann::json::array();
  for (const std::string& field : fields) {
    lines.push_back(field.empty() ? nlohmann::json() : nlohmann::json(field));
  }
  definitions_ +=
      as_line({{"record", "type"}, {"number", types_}, {"name", name}, {"category", category}, {"fields", lines}});
  return types_++;
}

RingHeader SyntheticTrace::header(int rank, const std::string& name, int policy) const {
  const Rank& owner = ranks_.at(static_cast<std::size_t>(rank));
  RingHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = ELBOW_TRACE_FORMAT;
  header.header_bytes = kHeaderBytes;
  header.slot_bytes = sizeof(elbow_trace_slot);
  header.policy = static_cast<std::uint32_t>(policy);
  header.job = owner.job;
  header.rank = rank;
  header.ranks = static_cast<std::int32_t>(ranks_.size());
  header.thread = static_cast<std::int32_t>(owner.threads.size());
  header.tid = 1000 * (rank + 1) + header.thread;
  header.pid = 1000 * (rank + 1);
  std::memcpy(header.name, name.data(), std::min(name.size(), kNameBytes - 1));
  const std::string host = "node" + std::to_string(rank);
  std::memcpy(header.host, host.data(), std::min(host.size(), kNameBytes - 1));
  header.counter = owner.clock.counter ? 1 : 0;
  header.start_ticks = owner.clock.start_ticks;
  header.start_ns = owner.clock.start_ns;
  header.scale = owner.clock.scale;
  header.ring.counter = owner.clock.counter ? 1 : 0;
  return header;
}

int SyntheticTrace::thread(int rank, const std::string& name, int policy) {
  Rank& owner = ranks_.at(static_cast<std::size_t>(rank));
  const int number = static_cast<int>(owner.threads.size());
  owner.threads.push_back(std::make_unique<RingWriter>(ring(rank, number), header(rank, name, policy)));
  return number;
}

void SyntheticTrace::add(int rank, int thread, std::uint64_t stamp, std::uint16_t type, std::uint8_t kind,
                         std::uint32_t small, std::uint64_t first, std::uint64_t second) {
  ranks_[static_cast<std::size_t>(rank)].threads[static_cast<std::size_t>(thread)]->add(
      {stamp, type, kind, 0, small, first, second});
}

void SyntheticTrace::send(int rank, int thread, std::uint64_t stamp, std::uint16_t type, int peer, std::uint64_t bytes,
                          int tag, std::uint32_t communicator, std::uint32_t sequence) {
  add(rank, thread, stamp, type, ELBOW_TRACE_SEND, static_cast<std::uint32_t>(tag), route(communicator, peer),
      sequence == 0 ? bytes : elbow_trace_numbered(sequence, bytes));
}

void SyntheticTrace::receive(int rank, int thread, std::uint64_t stamp, std::uint16_t type, int peer,
                             std::uint64_t bytes, int tag, std::uint32_t communicator, std::uint32_t sequence) {
  add(rank, thread, stamp, type, ELBOW_TRACE_RECEIVE, static_cast<std::uint32_t>(tag), route(communicator, peer),
      sequence == 0 ? bytes : elbow_trace_numbered(sequence, bytes));
}

void SyntheticTrace::lose(int rank, int thread, std::uint64_t events) {
  ranks_.at(static_cast<std::size_t>(rank)).threads.at(static_cast<std::size_t>(thread))->lose(events);
}

void SyntheticTrace::text(int rank, int thread, std::uint16_t type, std::uint64_t key, const std::string& text) {
  ranks_.at(static_cast<std::size_t>(rank)).threads.at(static_cast<std::size_t>(thread))->text(type, key, text);
}

void SyntheticTrace::sync(int rank, std::int64_t local, std::int64_t offset, std::int64_t low, std::int64_t high) {
  ranks_.at(static_cast<std::size_t>(rank)).lines += as_line(
      {{"record", "sync"}, {"local", local}, {"offset", offset}, {"low", low}, {"high", high}, {"same_source", true}});
}

std::string SyntheticTrace::ring(int rank, int thread) const {
  const Rank& owner = ranks_.at(static_cast<std::size_t>(rank));
  const std::string name = numbered_name("thread-", thread) + ".ring";
  return owner.memory.empty() ? directory_ + "/" + numbered_name("rank-", rank) + "." + name
                              : owner.memory + "/" + name;
}

std::string SyntheticTrace::lines(int rank) const { return directory_ + "/" + numbered_name("rank-", rank) + ".jsonl"; }

std::string SyntheticTrace::first_line(int rank) const {
  const Rank& owner = ranks_[static_cast<std::size_t>(rank)];
  return as_line({{"record", "trace"},
                  {"format", ELBOW_TRACE_FORMAT},
                  {"job", owner.job},
                  {"rank", rank},
                  {"ranks", ranks_.size()},
                  {"pid", 1000 * (rank + 1)},
                  {"memory", owner.memory.empty() ? "/dev/shm/none" : owner.memory},
                  {"policy", "stop"},
                  {"clock",
                   {{"counter", owner.clock.counter},
                    {"start_ticks", owner.clock.start_ticks},
                    {"start_ns", owner.clock.start_ns},
                    {"scale", owner.clock.scale}}}});
}

std::string SyntheticTrace::last_line(int rank) const {
  const Rank& owner = ranks_[static_cast<std::size_t>(rank)];
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
  std::uint64_t fullest = 0;
  for (const auto& thread : owner.threads) {
    kept += thread->kept();
    lost += thread->lost();
    fullest = std::max(fullest, thread->kept() + thread->lost());
  }
  return as_line({{"record", "end"},
                  {"recorded", kept + lost},
                  {"kept", kept},
                  {"lost", lost},
                  {"fullest", fullest},
                  {"capacity", std::bit_ceil(std::max<std::uint64_t>(fullest, 64))},
                  {"threads", owner.threads.size()},
                  {"texts_kept", 0},
                  {"texts_lost", 0},
                  {"advised_bytes", std::bit_ceil(std::max<std::uint64_t>(fullest, 64)) * sizeof(elbow_trace_slot)},
                  {"event_ns", 10.0}});
}

void SyntheticTrace::write() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.there) {
      continue;
    }
    for (auto& thread : rank.threads) {
      thread->finish(rank.memory.empty());
    }
    const int number = static_cast<int>(i);
    std::ofstream file(lines(number), std::ios::binary);
    file << first_line(number) << definitions_ << rank.lines << (rank.memory.empty() ? last_line(number) : "");
    if (!file.flush()) {
      cannot_write(lines(number), errno);
    }
  }
}

}  // namespace elbowroom::trace
