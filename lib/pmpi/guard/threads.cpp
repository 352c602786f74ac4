#include "pmpi/guard/threads.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace elbowroom::pmpi {
namespace {

using Set = void(int);
using Get = int();
Set* set_count = nullptr;
Get* get_count = nullptr;
Get* is_in_parallel = nullptr;

constinit thread_local SeenRegions seen __attribute__((tls_model("initial-exec")));

template <typename Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void note_region(int threads) { seen.threads = std::max(seen.threads, threads); }

}  // namespace

bool find_threads() {
  if (set_count == nullptr) {
    get_count = find<Get>("omp_get_max_threads");
    is_in_parallel = find<Get>("omp_in_parallel");
    set_count = get_count == nullptr || is_in_parallel == nullptr ? nullptr : find<Set>("omp_set_num_threads");
  }
  return set_count != nullptr;
}

// Only the lever `threads` asks what regions had: a look at each region takes a tenth of a microsecond, which short ones feel.
bool watches_regions() {
  static const bool watches = std::getenv("ELBOW_GUARD_THREADS") != nullptr;
  return watches;
}
bool in_parallel() { return is_in_parallel() != 0; }
int threads_now() { return get_count(); }
void set_threads(int count) { set_count(count); }
SeenRegions take_seen_regions() { return std::exchange(seen, {}); }

}  // namespace elbowroom::pmpi

namespace {

namespace pmpi = elbowroom::pmpi;

using Body = void(void*);
using Fork = void(Body*, void*, unsigned, unsigned);

struct Region {
  Body* body;
  void* data;
  bool outermost;
};

void run_region(void* data) {
  const Region& region = *static_cast<Region*>(data);
  if (region.outermost) {
    static pmpi::Get* const thread = pmpi::find<pmpi::Get>("omp_get_thread_num");
    static pmpi::Get* const threads = pmpi::find<pmpi::Get>("omp_get_num_threads");
    if (thread != nullptr && threads != nullptr && thread() == 0) {
      pmpi::note_region(threads());
    }
  }
  region.body(region.data);
}

}  // namespace

// The entry of libgomp for a parallel region. `threads`: 0 without a clause, 1 where `if` says no.
extern "C" __attribute__((visibility("default"))) void GOMP_parallel(Body* body, void* data, unsigned threads,
                                                                     unsigned flags) {
  static Fork* const fork = reinterpret_cast<Fork*>(dlsym(RTLD_NEXT, "GOMP_parallel"));
  if (!pmpi::watches_regions() || !pmpi::find_threads() || pmpi::in_parallel()) {
    return fork(body, data, threads, flags);
  }
  pmpi::seen.fixed += threads > 1 ? 1 : 0;
  Region region{body, data, true};
  fork(run_region, &region, threads, flags);
}

// OMPT, by which libomp says the same (OpenMP 5.0, section 4.2). Not of the header omp-tools.h, which GCC does not have.
namespace {

union OmptData {
  std::uint64_t value;
  void* pointer;
};
using OmptFunction = void();
using OmptLookup = OmptFunction*(const char*);
struct OmptResult {
  int (*initialize)(OmptLookup*, int, OmptData*);
  void (*finalize)(OmptData*);
  OmptData data;
};
using OmptSetCallback = int(int, OmptFunction*);
constexpr int kParallelBegin = 3;
constexpr int kImplicitTask = 7;
constexpr int kScopeBegin = 1;
constexpr int kInitialTask = 1;

void parallel_begin(OmptData*, const void*, OmptData*, unsigned requested, int, const void*) {
  // Without a clause it is what is set.
  pmpi::seen.fixed += pmpi::find_threads() && static_cast<int>(requested) != pmpi::threads_now() && requested > 1;
}

void implicit_task(int endpoint, OmptData*, OmptData*, unsigned threads, unsigned index, int flags) {
  if (endpoint == kScopeBegin && index == 0 && (flags & kInitialTask) == 0) {
    pmpi::note_region(static_cast<int>(threads));
  }
}

int begin_ompt(OmptLookup* lookup, int, OmptData*) {
  auto* const set = reinterpret_cast<OmptSetCallback*>(lookup("ompt_set_callback"));
  if (set == nullptr) {
    return 0;
  }
  set(kParallelBegin, reinterpret_cast<OmptFunction*>(parallel_begin));
  set(kImplicitTask, reinterpret_cast<OmptFunction*>(implicit_task));
  return 1;
}

void end_ompt(OmptData*) {}

}  // namespace

extern "C" __attribute__((visibility("default"))) OmptResult* ompt_start_tool(unsigned version, const char* runtime) {
  // A tool of the user's comes first.
  using Start = OmptResult*(unsigned, const char*);
  auto* const others = reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "ompt_start_tool"));
  if (!pmpi::watches_regions()) {
    return others == nullptr ? nullptr : others(version, runtime);
  }
  static OmptResult own{begin_ompt, end_ompt, {}};
  OmptResult* const other = others == nullptr ? nullptr : others(version, runtime);
  return other != nullptr ? other : &own;
}
