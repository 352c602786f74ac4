#include "trace/lines.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "trace/refusal.hpp"
#include "trace/ring.hpp"

namespace elbowroom::trace {

std::string json_text(const nlohmann::json& value) {
  try {
    return value.dump();
  } catch (const nlohmann::json::type_error&) {
    throw Refusal(EINVAL, "name: is not UTF-8; give categories, types and fields names that are");
  }
}

Line& Line::add_json(const char* name, const std::string& json) {
  members_ += members_.empty() ? "\"" : ",\"";
  members_ += name;
  members_ += "\":";
  members_ += json;
  return *this;
}

void append_text(const std::string& path, const std::string& text, bool first) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (first ? O_EXCL : 0), 0644);
  if (file < 0 && errno == EEXIST) {
    throw Refusal(EEXIST, path + ": is another process's trace; name another directory, or remove that trace");
  }
  if (file < 0) {
    refuse_file(path, errno);
  }
  const off_t end = lseek(file, 0, SEEK_END);
  ssize_t written = -1;
  do {
    written = write(file, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  const bool whole = written == static_cast<ssize_t>(text.size());
  const int code = written < 0 ? errno : ENOSPC;
  if (!whole && written > 0 && ftruncate(file, end) != 0) {
    // The reader says that the file ends in the middle of a line.
  }
  close(file);
  if (!whole && first) {
    unlink(path.c_str());  // else it would be another process's
  }
  if (!whole) {
    refuse_file(path, code);
  }
}

}  // namespace elbowroom::trace
