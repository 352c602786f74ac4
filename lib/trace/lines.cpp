#include "trace/lines.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "trace/refusal.hpp"
#include "trace/ring.hpp"

namespace elbowroom::trace {

void append_line(const std::string& path, const nlohmann::json& line, bool first) {
  std::string whole;
  try {
    whole = line.dump() + "\n";
  } catch (const nlohmann::json::type_error&) {
    throw Refusal(EINVAL, "name: is no UTF-8; give categories, types and fields names that are");
  }
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (first ? O_TRUNC : 0), 0644);
  if (file < 0) {
    refuse_file(path, errno);
  }
  const ssize_t written = write(file, whole.data(), whole.size());
  const int code = written < 0 ? errno : ENOSPC;
  close(file);
  if (written != static_cast<ssize_t>(whole.size())) {
    refuse_file(path, code);
  }
}

}  // namespace elbowroom::trace
