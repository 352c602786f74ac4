// elbowroom/trace.h for C++: intervals that end with their scope, types with named fields, exceptions.
//
//     elbow::trace::Session session({.directory = "trace", .rank = rank, .ranks = ranks});
//     const elbow::trace::Category tasks("task");
//     const elbow::trace::Type solve("solve", tasks, {.small = "block", .first = "row", .second = "cells"});
//     {
//       const elbow::trace::Scope scope(solve, block, row, cells);       // begun here
//       ...
//     }                                                                   // ended here
//
// Recording throws nothing and allocates nothing. What the others throw is Error, with the errno of the C function and its
// sentence. A type may be of a level of detail: `BasicType<2>` and what is recorded of it is not even compiled where
// ELBOW_TRACE_LEVEL is less.
#ifndef ELBOWROOM_TRACE_HPP
#define ELBOWROOM_TRACE_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "elbowroom/trace.h"

namespace elbow::trace {

class Error : public std::system_error {
 public:
  Error() : std::system_error(errno, std::generic_category(), elbow_trace_error()) {}
};

// elbow_trace_settings: what is empty or 0 is the default.
struct Settings {
  std::string directory{};
  std::string memory{};
  std::string categories{};
  std::string without{};
  std::string core{};
  std::size_t bytes = 0;
  std::size_t text_bytes = 0;
  std::size_t flush_at = 0;
  std::uint64_t job = 0;
  int policy = ELBOW_TRACE_STOP;
  int rank = 0;
  int ranks = 1;
};

// This process is traced as long as the session lives; a second one is an Error.
class Session {
 public:
  explicit Session(const Settings& given) {
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    elbow_trace_settings settings{};
    settings.size = sizeof settings;
    settings.directory = text(given.directory);
    settings.memory = text(given.memory);
    settings.categories = text(given.categories);
    settings.without = text(given.without);
    settings.core = text(given.core);
    settings.bytes = given.bytes;
    settings.text_bytes = given.text_bytes;
    settings.flush_at = given.flush_at;
    settings.job = given.job;
    settings.policy = given.policy;
    settings.rank = given.rank;
    settings.ranks = given.ranks;
    if (elbow_trace_start(&settings) != 0) {
      throw Error();
    }
  }
  // As `elbowroom trace record` or a launcher says.
  static Session from_environment() { return Session(); }
  Session(Session&& other) noexcept : running_(other.running_) { other.running_ = false; }
  Session& operator=(Session&&) = delete;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (running_) {
      elbow_trace_stop(nullptr);
    }
  }

  // Ends the trace. Where that fails it may be called again.
  elbow_trace_summary stop() {
    elbow_trace_summary summary{};
    summary.size = sizeof summary;
    if (elbow_trace_stop(&summary) != 0) {
      throw Error();
    }
    running_ = false;
    return summary;
  }

 private:
  Session() {
    if (elbow_trace_start_from_environment() != 0) {
      throw Error();
    }
  }
  bool running_ = true;
};

class Category {
 public:
  explicit Category(const std::string& name) : number_(elbow_trace_category(name.c_str())) {
    if (number_ < 0) {
      throw Error();
    }
  }
  int number() const { return number_; }
  // Switched for the whole process, and recorded as an event.
  void on(bool recorded) const {
    const std::uint64_t bit = 1ULL << number_;
    elbow_trace_set_mask(recorded ? elbow_trace_mask() | bit : elbow_trace_mask() & ~bit);
  }

 private:
  int number_;
};

// Names of an event's numbers: of 32 bits, and twice of 64. nullptr: not used.
struct Fields {
  const char* small = nullptr;
  const char* first = nullptr;
  const char* second = nullptr;
};

template <int level = 0>
class BasicType {
 public:
  static constexpr bool kCompiled = level <= ELBOW_TRACE_LEVEL;

  BasicType(const std::string& name, const Category& category, const Fields& fields = {})
      : type_(elbow_trace_type_new(name.c_str(), category.number(), fields.small, fields.first, fields.second)) {
    if (type_ == nullptr) {
      throw Error();
    }
  }
  const elbow_trace_type* get() const { return type_; }
  void on(bool recorded) const {
    if (elbow_trace_filter(type_, recorded ? 1 : 0) != 0) {
      throw Error();
    }
  }

  void event(std::uint32_t small = 0, std::uint64_t first = 0, std::uint64_t second = 0) const noexcept {
    write(ELBOW_TRACE_EVENT, small, first, second);
  }
  void begin(std::uint32_t small = 0, std::uint64_t first = 0, std::uint64_t second = 0) const noexcept {
    write(ELBOW_TRACE_BEGIN, small, first, second);
  }
  void end(std::uint32_t small = 0, std::uint64_t first = 0, std::uint64_t second = 0) const noexcept {
    write(ELBOW_TRACE_END, small, first, second);
  }
  void count(std::int64_t value, std::uint32_t which = 0) const noexcept {
    write(ELBOW_TRACE_COUNTER, which, static_cast<std::uint64_t>(value), 0);
  }
  void send(int peer, std::uint32_t communicator, int tag, std::uint64_t bytes) const noexcept {
    if constexpr (kCompiled) {
      elbow_trace_send(type_, peer, communicator, tag, bytes);
    }
  }
  void receive(int peer, std::uint32_t communicator, int tag, std::uint64_t bytes) const noexcept {
    if constexpr (kCompiled) {
      elbow_trace_receive(type_, peer, communicator, tag, bytes);
    }
  }
  // A record without a time; false where this thread's are full.
  bool text(std::uint64_t key, const std::string& text) const noexcept {
    return elbow_trace_text(type_, key, text.c_str()) == 0;
  }

 private:
  void write([[maybe_unused]] std::uint8_t kind, [[maybe_unused]] std::uint32_t small,
             [[maybe_unused]] std::uint64_t first, [[maybe_unused]] std::uint64_t second) const noexcept {
    if constexpr (kCompiled) {
      elbow_trace_write(type_, kind, small, first, second);
    }
  }
  const elbow_trace_type* type_;
};

using Type = BasicType<>;

// From here to the end of the scope. The end has the same numbers as the beginning.
template <int level>
class Scope {
 public:
  explicit Scope(const BasicType<level>& type, std::uint32_t small = 0, std::uint64_t first = 0,
                 std::uint64_t second = 0) noexcept
      : type_(type), small_(small), first_(first), second_(second) {
    type_.begin(small_, first_, second_);
  }
  ~Scope() { type_.end(small_, first_, second_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const BasicType<level>& type_;
  std::uint32_t small_;
  std::uint64_t first_;
  std::uint64_t second_;
};

// The region of interest, for the whole process.
class Region {
 public:
  Region() { elbow_trace_region(1); }
  ~Region() { elbow_trace_region(0); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

// Names this thread; once, before its first event.
inline void name_thread(const std::string& name) {
  if (elbow_trace_thread(name.c_str()) != 0) {
    throw Error();
  }
}

}  // namespace elbow::trace

#endif
