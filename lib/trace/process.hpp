// What Linux tells of a process in /proc.
#pragma once

#include <string>
#include <vector>

namespace elbowroom::trace {

// A whole file; empty where it cannot be read.
std::string read_text(const std::string& path);
// What a folder holds; nothing where it cannot be read. The standard library's iterator ends the process where there is no
// memory for an entry.
std::vector<std::string> names_in(const std::string& folder);
// Field of /proc/PROCESS/stat, counted from 1 as in proc(5), 3 or more; empty where there is no such process.
std::string process_field(const std::string& process, int field);
constexpr int kParent = 4;
constexpr int kStarted = 22;

}  // namespace elbowroom::trace
