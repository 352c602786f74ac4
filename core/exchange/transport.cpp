#include "exchange/transport.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace elbowroom {
namespace {

// Value of one control variable of the MPI library, as text; nothing when there is none of this name.
std::optional<std::string> control_variable(const char* name) {
  int index = 0;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) {
    return std::nullopt;
  }
  std::array<char, 256> text{};
  int length = text.size();
  int verbosity = 0;
  int binding = 0;
  int scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum enumeration = MPI_T_ENUM_NULL;
  MPI_T_cvar_get_info(index, text.data(), &length, &verbosity, &type, &enumeration, nullptr, nullptr, &binding, &scope);
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) {
    return std::nullopt;
  }
  std::optional<std::string> value;
  if (type == MPI_CHAR) {
    std::vector<char> buffer(static_cast<std::size_t>(std::max(count, 1)) + 1, '\0');
    if (MPI_T_cvar_read(handle, buffer.data()) == MPI_SUCCESS) {
      value = std::string(buffer.data());
    }
  } else if (type == MPI_INT) {
    int number = 0;
    if (MPI_T_cvar_read(handle, &number) == MPI_SUCCESS) {
      value = std::to_string(number);
      std::array<char, 64> item{};
      int item_length = item.size();
      if (enumeration != MPI_T_ENUM_NULL &&
          MPI_T_enum_get_item(enumeration, number, &number, item.data(), &item_length) == MPI_SUCCESS) {
        value = std::string(item.data());
      }
    }
  }
  MPI_T_cvar_handle_free(&handle);
  return value;
}

// An MCA selection: "a,b" names what is allowed, "^a,b" what is not, "" allows all.
bool allows(const std::string& selection, const std::string& component) {
  if (selection.empty()) {
    return true;
  }
  const bool negated = selection.front() == '^';
  std::stringstream names(negated ? selection.substr(1) : selection);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == component) {
      return !negated;
    }
  }
  return negated;
}

bool exists(const std::string& variable) { return control_variable(variable.c_str()).has_value(); }

// Open MPI closes the components it does not select: a component still mapped is in use. Where components are built
// into the library nothing is mapped, and only an explicit selection tells.
bool uses_pml(const std::string& name) {
  if (control_variable("pml") == name) {
    return true;
  }
  std::ifstream maps("/proc/self/maps");
  const std::string file = "/mca_pml_" + name + ".";
  bool used = false;
  bool other = false;
  for (std::string line; std::getline(maps, line);) {
    const auto at = line.find("/mca_pml_");
    if (at != std::string::npos) {
      (line.compare(at, file.size(), file) == 0 ? used : other) = true;
    }
  }
  return used && !other;
}

// Open MPI 4 writes into its variable what it really uses; Open MPI 5 has one component for each mechanism.
std::string single_copy() {
  if (const auto mechanism = control_variable("btl_vader_single_copy_mechanism")) {
    return *mechanism == "none" ? "shm" : *mechanism == "cma" ? "shm+cma" : "unknown";
  }
  const std::string selection = control_variable("smsc").value_or("");
  for (const char* other : {"xpmem", "knem"}) {
    if (allows(selection, other) && exists("smsc_" + std::string(other) + "_priority")) {
      return "unknown";
    }
  }
  return allows(selection, "cma") && exists("smsc_cma_priority") ? "shm+cma" : "shm";
}

// Unused with other MPIs.
[[maybe_unused]] std::string open_mpi_transport(bool one_host) {
  if (!uses_pml("ob1")) {
    const char* list = std::getenv("UCX_TLS");
    return !one_host && list != nullptr && uses_pml("ucx") ? ucx_transport(list) : "unknown";
  }
  const std::string btl = control_variable("btl").value_or("");
  if (one_host) {
    const bool shared = allows(btl, "sm") || allows(btl, "vader");
    return shared ? single_copy() : btl.find("tcp") != std::string::npos && btl.front() != '^' ? "tcp" : "unknown";
  }
  // Between hosts the choice is known only when the list leaves one.
  const bool listed = !btl.empty() && btl.front() != '^';
  const bool tcp = listed && allows(btl, "tcp");
  const bool openib = listed && allows(btl, "openib");
  const bool others = listed && (allows(btl, "ofi") || allows(btl, "uct") || allows(btl, "usnic"));
  if (others || tcp == openib) {
    return "unknown";
  }
  return tcp ? "tcp" : "verbs";
}

// UCX's transports and their short names (UCX 1.13, ucx_info -f), and those that never leave the host.
constexpr std::array<std::string_view, 14> kUcxVerbs = {"rc", "rc_v", "rc_verbs", "rc_x", "rc_mlx5",
                                                        "ud", "ud_v", "ud_verbs", "ud_x", "ud_mlx5",
                                                        "dc", "dc_x", "dc_mlx5",  "ib"};
constexpr std::array<std::string_view, 10> kUcxOwnHost = {"self", "sm",  "shm",  "mm",    "posix",
                                                          "sysv", "cma", "knem", "xpmem", "memory"};

}  // namespace

std::string ucx_transport(std::string_view list) {
  bool tcp = false;
  bool verbs = false;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (name == "tcp") {
      tcp = true;
    } else if (std::ranges::find(kUcxVerbs, name) != kUcxVerbs.end()) {
      verbs = true;
    } else if (std::ranges::find(kUcxOwnHost, name) == kUcxOwnHost.end()) {
      return "unknown";
    }
  }
  return tcp == verbs ? "unknown" : tcp ? "tcp" : "verbs";
}

std::string transport_name(bool one_host) {
#ifdef OPEN_MPI
  // Open MPI 5 answers MPI_Query_thread with the level of the last call of either kind: this one must not lower it.
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  int provided = 0;
  if (MPI_T_init_thread(level, &provided) != MPI_SUCCESS) {
    return "unknown";
  }
  std::string name = open_mpi_transport(one_host);
  MPI_T_finalize();
  return name;
#else
  static_cast<void>(one_host);
  return "unknown";
#endif
}

std::string library_prefix() {
  Dl_info info{};
  void* symbol = dlsym(RTLD_DEFAULT, "MPI_Init");
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) {
    return "unknown";
  }
  std::error_code error;
  const auto library = std::filesystem::canonical(info.dli_fname, error);
  if (error) {
    return "unknown";
  }
  for (auto folder = library.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (folder.filename() == "lib" || folder.filename() == "lib64") {
      return folder.parent_path().string();
    }
  }
  return library.parent_path().string();
}

}  // namespace elbowroom
