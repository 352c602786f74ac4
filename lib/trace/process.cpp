#include "trace/process.hpp"

#include <dirent.h>

#include <fstream>
#include <iterator>
#include <memory>

namespace elbowroom::trace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  while (const dirent* entry = open == nullptr ? nullptr : readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(name);
    }
  }
  return names;
}

std::string process_field(const std::string& process, int field) {
  const std::string stat = read_text("/proc/" + process + "/stat");
  // Field 2, the program's name in brackets, may contain anything.
  std::size_t at = stat.rfind(')');
  for (int i = 2; i < field && at != std::string::npos; ++i) {
    at = stat.find(' ', at + 1);
  }
  return at == std::string::npos ? "" : stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

}  // namespace elbowroom::trace
