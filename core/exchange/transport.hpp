// Which way messages really take, as far as the MPI library lets one know (docs/design/method.md, rule 16).
#pragma once

#include <string>
#include <string_view>

namespace elbowroom {

// "shm", "shm+cma", "tcp", "verbs", or "unknown" when the library does not tell. Between ranks of one host, or between
// hosts. Call it after MPI_Init.
std::string transport_name(bool one_host);

// "tcp" or "verbs" where a list of UCX's transports (UCX_TLS) leaves one way between hosts, else "unknown".
std::string ucx_transport(std::string_view list);

// Folder under which the loaded MPI library lies (the one above lib), or "unknown".
std::string library_prefix();

}  // namespace elbowroom
