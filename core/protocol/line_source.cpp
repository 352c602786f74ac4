#include "protocol/line_source.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

namespace elbowroom {
namespace {

constexpr int kLookUpInterval = 500;  // ms

}  // namespace

pid_t grandparent() {
  std::ifstream stat("/proc/" + std::to_string(getppid()) + "/stat");
  std::string line;
  std::getline(stat, line);
  const auto name_end = line.rfind(')');  // the name of the program may hold anything
  if (name_end == std::string::npos) {
    return -1;
  }
  std::istringstream rest(line.substr(name_end + 1));
  std::string state;
  pid_t parent = -1;
  rest >> state >> parent;
  return rest ? parent : -1;
}

LineSource::LineSource(int descriptor, std::function<bool()> abandoned)
    : descriptor_(descriptor), abandoned_(std::move(abandoned)) {}

std::optional<std::string> LineSource::take(std::size_t length, std::size_t with_end) {
  std::string line = buffer_.substr(0, length);
  buffer_.erase(0, with_end);
  return line;
}

std::optional<std::string> LineSource::next() {
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      return take(end, end + 1);
    }
    if (ended_) {
      return buffer_.empty() ? std::nullopt : take(buffer_.size(), buffer_.size());
    }
    pollfd waited{descriptor_, POLLIN, 0};
    const int ready = poll(&waited, 1, kLookUpInterval);
    if (ready == 0 && abandoned_()) {
      return std::nullopt;
    }
    if (ready <= 0) {
      ended_ = ready < 0 && errno != EINTR;
      continue;
    }
    std::array<char, 65536> room{};
    const ssize_t count = read(descriptor_, room.data(), room.size());
    if (count > 0) {
      buffer_.append(room.data(), static_cast<std::size_t>(count));
    } else {
      ended_ = count == 0 || errno != EINTR;
    }
  }
}

}  // namespace elbowroom
