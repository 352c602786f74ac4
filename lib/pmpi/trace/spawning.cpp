// Open MPI 5 gives the processes of MPI_Comm_spawn the environment of its daemons, which lacks what the launcher's line set
// (-x) for the ranks. Spawned processes record as the others do if PMIx, by which Open MPI spawns, gets these variables.
// Open MPI 4 and MPICH hand them on themselves, and do not call PMIx_Spawn from here.
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "behind.hpp"

extern char** environ;

namespace elbowroom::pmpi {
namespace {

// As in pmix_common.h since version 2; its headers need not be installed.
struct App {
  char* cmd;
  char** argv;
  char** env;
  char* cwd;
  int maxprocs;
  void* info;
  std::size_t ninfo;
};
using Spawn = int(const void*, std::size_t, const App*, std::size_t, char*);

constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr int kNotSupported = -47;  // PMIX_ERR_NOT_SUPPORTED

// What makes a process record; its rank is its own.
bool is_inherited(std::string_view variable) {
  return variable.starts_with(kPreload) ||
         (variable.starts_with("ELBOW_TRACE_") && !variable.starts_with("ELBOW_TRACE_RANK"));
}

// The environment that a program asks for, with ours; what it preloads itself comes behind the tracer.
std::vector<std::string> with_inherited(char** requested) {
  std::vector<std::string> variables;
  for (char** variable = requested; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  for (char** own = environ; *own != nullptr; ++own) {
    const std::string_view text(*own);
    if (!is_inherited(text)) {
      continue;
    }
    bool is_set = false;
    for (std::string& variable : variables) {
      const bool same = variable.starts_with(text.substr(0, text.find('=') + 1));
      is_set = is_set || same;
      if (same && text.starts_with(kPreload)) {
        variable = std::string(text) + ":" + variable.substr(kPreload.size());
      }
    }
    if (!is_set) {
      variables.emplace_back(text);
    }
  }
  return variables;
}

// One program of a spawned job with its environment, as long as PMIx reads it.
class Recorded {
 public:
  explicit Recorded(const App& app) : app_(app), variables_(with_inherited(app.env)) {
    for (std::string& variable : variables_) {
      pointers_.push_back(variable.data());
    }
    pointers_.push_back(nullptr);
    app_.env = pointers_.data();
  }
  const App& app() const { return app_; }

 private:
  App app_;
  std::vector<std::string> variables_;
  std::vector<char*> pointers_;
};

int spawn(Spawn* forward, const void* info, std::size_t count, const App* apps, std::size_t programs, char* job) {
  std::vector<Recorded> recorded;
  std::vector<App> given;
  try {
    recorded.reserve(programs);  // pointers into them stay
    given.reserve(programs);
    for (std::size_t i = 0; i < programs; ++i) {
      given.push_back(recorded.emplace_back(apps[i]).app());
    }
  } catch (const std::exception&) {
    return forward(info, count, apps, programs, job);  // not traced, but spawned
  }
  return forward(info, count, given.data(), programs, job);
}

}  // namespace
}  // namespace elbowroom::pmpi

extern "C" int PMIx_Spawn(const void* info, std::size_t count, const void* apps, std::size_t programs, char* job);

int PMIx_Spawn(const void* info, std::size_t count, const void* apps, std::size_t programs, char* job) {
  using elbowroom::pmpi::App;
  auto* const forward = reinterpret_cast<elbowroom::pmpi::Spawn*>(elbowroom::find_behind("PMIx_Spawn"));
  if (forward == nullptr) {
    return elbowroom::pmpi::kNotSupported;
  }
  const auto* const given = static_cast<const App*>(apps);
  const char* const directory = std::getenv("ELBOW_TRACE_DIRECTORY");
  return directory == nullptr || *directory == '\0'
             ? forward(info, count, given, programs, job)
             : elbowroom::pmpi::spawn(forward, info, count, given, programs, job);
}
