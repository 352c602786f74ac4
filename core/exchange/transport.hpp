// Which way messages really take, as far as the MPI library lets one know (docs/design/method.md, rule 16).
#pragma once

#include <string>

namespace elbowroom {

// "shm", "shm+cma", "tcp", "verbs", or "unknown" when the library does not tell. Between ranks of one host, or between
// hosts. Call it after MPI_Init.
std::string transport_name(bool one_host);

// Folder under which the loaded MPI library lies (the one above lib), or "unknown".
std::string library_prefix();

}  // namespace elbowroom
