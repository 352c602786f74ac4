#include "trace/outputs/titles.hpp"

#include <algorithm>

namespace elbowroom::trace {
namespace {

// How many bytes from `at` on are one character of well-formed UTF-8 (Unicode 15, table 3-7); 0: they are none.
std::size_t character(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(at + i < bytes.size() ? bytes[at + i] : 0);
  };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return follows(1) ? 2 : 0;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = follows(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    return second && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = follows(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string valid;
  valid.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = character(bytes, at);
    if (length == 0) {
      valid += "\xEF\xBF\xBD";
    } else {
      valid += bytes.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return valid;
}

std::string process_title(const MergedRank& rank) {
  std::string title = "rank " + std::to_string(rank.rank);
  if (!rank.there) {
    return title + ", missing";
  }
  title += " (" + valid_utf8(rank.host) + ", process " + std::to_string(rank.pid) + ")";
  return rank.ended ? title : title + ", killed";
}

std::string thread_title(const MergedThread& thread) {
  return thread.name.empty() ? "thread " + std::to_string(thread.thread) : valid_utf8(thread.name);
}

std::string counter_title(const MergedType& type, std::uint32_t which) {
  const std::string name = valid_utf8(type.name);
  if (type.fields[0].empty()) {
    return which == 0 ? name : name + " " + std::to_string(which);
  }
  return name + " " + valid_utf8(type.fields[0]) + " " + std::to_string(which);
}

std::string gap_title(std::uint64_t lost) {
  if (lost == 0) {
    return "recorder at work";
  }
  return "lost " + std::to_string(lost) + (lost == 1 ? " event" : " events");
}

Numbers::Numbers(const MergedJob& job) : process(job.ranks.size()), thread(job.threads.size()) {
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    process[rank] = next;
    const std::size_t first = at;
    for (; at < job.threads.size() && job.threads[at].rank == rank; ++at) {
      thread[at] = next++;
    }
    next += at == first ? 1 : 0;
  }
}

std::size_t Texts::Hash::operator()(const Key& key) const {
  // Fibonacci hashing (Knuth, volume 3, section 6.4).
  const std::uint64_t mixed = key.key * 0x9E3779B97F4A7C15ULL + ((std::uint64_t{key.rank} << 32) | key.type);
  return static_cast<std::size_t>((mixed ^ (mixed >> 29)) * 0x9E3779B97F4A7C15ULL >> 16);
}

Texts::Texts(const MergedJob& job) : described_(job.types.size()) {
  for (const MergedType& type : job.types) {
    task_.push_back(job.categories[type.category] == "task");
  }
  for (const MergedThread& thread : job.threads) {
    rank_.push_back(thread.rank);
  }
  bool tasks = false;
  texts_.reserve(job.texts.size());
  for (const MergedText& text : job.texts) {
    tasks = tasks || task_[text.type];
    described_[text.type] = true;
    texts_.insert_or_assign({rank_[text.thread], task_[text.type] ? kTask : text.type, text.key}, text.text);
  }
  for (std::size_t type = 0; tasks && type < described_.size(); ++type) {
    described_[type] = described_[type] || task_[type];
  }
}

std::string_view Texts::lookup(std::uint32_t thread, std::uint32_t type, std::uint64_t first) const {
  const auto text = texts_.find({rank_[thread], task_[type] ? kTask : type, first});
  return text == texts_.end() ? std::string_view() : text->second;
}

}  // namespace elbowroom::trace
