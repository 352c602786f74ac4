#include "trace/adapters/starpu_tasks.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "behind.hpp"
#include "trace/adapters/numbers.hpp"
#include "trace/adapters/started.hpp"
#include "trace/adapters/trampolines.hpp"

namespace elbowroom::trace {
namespace {

constexpr std::size_t kFunctions = 1024;

thread_local bool worker_named = false;

void around(Function function, void** buffers, void* argument) { StarpuTasks::all().run(function, buffers, argument); }

// A function of a codelet, replaced by one that records.
void wrap(Function& function) {
  // (Function)-1 is StarPU's old mark for several functions.
  if (function == nullptr || reinterpret_cast<std::intptr_t>(function) == -1) {
    return;
  }
  bool left = true;
  const Function instead = Trampolines<around, kFunctions>::of(function, left);
  if (instead != function) {
    function = instead;
  }
  static std::atomic_flag warned;
  if (!left && !warned.test_and_set()) {
    std::fprintf(stderr,
                 "elbow_trace: codelets have more than %zu functions: tasks of further ones do not begin or end\n",
                 kFunctions);
  }
}

void wrap_functions(starpu_codelet* codelet) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  wrap(codelet->cpu_func);
  wrap(codelet->cuda_func);
  wrap(codelet->opencl_func);
#pragma GCC diagnostic pop
  for (int i = 0; i < STARPU_MAXIMPLEMENTATIONS; ++i) {
    wrap(codelet->cpu_funcs[i]);
    wrap(codelet->cuda_funcs[i]);
    wrap(codelet->opencl_funcs[i]);
  }
}

bool without_function(const starpu_task* task) {
  return task->cl == nullptr || (task->where != -1 ? task->where : static_cast<std::int32_t>(task->cl->where)) ==
                                    static_cast<std::int32_t>(STARPU_NOWHERE);
}

// What the application gave to be called when the task is ready, kept while the task has the adapter's instead.
struct Ready {
  starpu_task* task;
  void (*function)(void*);
  void* argument;
  std::uint64_t number;
  bool empty;
};

void tell_ready(std::uint64_t number, bool empty) {
  const StarpuTasks& tasks = StarpuTasks::all();
  tasks.ready(number);
  if (empty) {
    tasks.passed(number);
  }
}

void ready_task(void* number) { tell_ready(reinterpret_cast<std::uintptr_t>(number), false); }
void ready_empty(void* number) { tell_ready(reinterpret_cast<std::uintptr_t>(number), true); }

void ready_with_function(void* argument) {
  const std::unique_ptr<Ready> ready(static_cast<Ready*>(argument));
  ready->task->prologue_callback_func = ready->function;
  ready->task->prologue_callback_arg = ready->argument;
  tell_ready(ready->number, ready->empty);
  if (ready->function != nullptr) {
    ready->function(ready->argument);
  }
}

// The task tells when it is ready, before whatever it is to call then.
void watch_ready(starpu_task* task, std::uint64_t number) {
  const bool empty = without_function(task);
  void (*const own)(void*) = empty ? ready_empty : ready_task;
  const auto before = task->prologue_callback_func;
  const bool resubmitted = before == ready_task || before == ready_empty;
  if (resubmitted ||
      (before == nullptr && task->prologue_callback_arg == nullptr && !task->prologue_callback_arg_free)) {
    task->prologue_callback_func = own;
    task->prologue_callback_arg = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
    return;
  }
  task->prologue_callback_arg = new Ready{task, before, task->prologue_callback_arg, number, empty};
  task->prologue_callback_func = ready_with_function;
}

const char* name_of(const starpu_codelet* codelet) {
  if (codelet->name != nullptr) {
    return codelet->name;
  }
  if (codelet->model != nullptr && codelet->model->symbol != nullptr) {
    return codelet->model->symbol;
  }
  return "task";
}

// Read as in the handbook: with reading, writing and their marks, a task reduces, reads, or writes, perhaps commuting.
bool access_of(starpu_data_access_mode mode, Access& access) {
  if ((mode & STARPU_REDUX) != 0) {
    access = Access::kReduce;
  } else if ((mode & STARPU_W) != 0) {
    access = (mode & STARPU_COMMUTE) != 0 ? Access::kCommute : Access::kWrite;
  } else if ((mode & STARPU_R) != 0) {
    access = Access::kRead;
  } else {
    return false;
  }
  return true;
}

}  // namespace

void* behind(const char* name) {
  void* const symbol = find_behind(name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "elbow_trace: this program's StarPU has no %s; trace it without libelbow_trace_starpu.so\n",
                 name);
    std::abort();
  }
  return symbol;
}

int named_category(const char* name) {
  const char* const named = std::getenv("ELBOW_TRACE_CATEGORIES");
  if (named == nullptr || *named == '\0') {
    return -1;
  }
  const int category = elbow_trace_category(name);
  return category >= 0 && (elbow_trace_mask() >> category & 1) != 0 ? category : -1;
}

StarpuTasks& StarpuTasks::all() {
  static auto* const tasks = new StarpuTasks;
  return *tasks;
}

bool StarpuTasks::start() {
  int major = 0;
  int minor = 0;
  int release = 0;
  ELBOW_STARPU(starpu_get_version)(&major, &minor, &release);
  if (major != STARPU_MAJOR_VERSION || minor != STARPU_MINOR_VERSION) {
    std::fprintf(
        stderr,
        "elbow_trace: StarPU %d.%d is not traced: the adapter was built for %d.%d, whose tasks look different; "
        "build it with this StarPU's headers\n",
        major, minor, STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION);
    return false;
  }
  if (recording_ || !started("StarPU")) {
    return recording_;
  }
  task_category_ = elbow_trace_category("task");
  starpu_category_ = elbow_trace_category("starpu");
  empty_ = elbow_trace_type_new("empty task", task_category_, "worker", "task", nullptr);
  dependency_ = elbow_trace_type_new("dependency", task_category_, nullptr, "task", "waits");
  submit_ = elbow_trace_type_new("submit", starpu_category_, "priority", "task", "bytes");
  refused_ = elbow_trace_type_new("refused", starpu_category_, nullptr, "task", nullptr);
  ready_ = elbow_trace_type_new("ready", starpu_category_, nullptr, "task", nullptr);
  registered_ = elbow_trace_type_new("register data", starpu_category_, "node", "bytes", "data");
  colour_ = elbow_trace_type_new("colour", starpu_category_, "colour", "task", nullptr);
  iteration_ = elbow_trace_type_new("iteration", starpu_category_, "level", "task", "iteration");
  recording_ = empty_ != nullptr && dependency_ != nullptr && submit_ != nullptr && refused_ != nullptr &&
               ready_ != nullptr && registered_ != nullptr && colour_ != nullptr && iteration_ != nullptr;
  if (!recording_) {
    std::fprintf(stderr, "elbow_trace: StarPU is not traced: %s\n", elbow_trace_error());
  }
  return recording_;
}

const elbow_trace_type* StarpuTasks::type_named(const char* name) {
  // Tasks of one kind are often submitted one after the other.
  thread_local std::string last;
  thread_local const elbow_trace_type* last_type = nullptr;
  if (last_type != nullptr && last == name) {
    return last_type;
  }
  const std::lock_guard lock(mutex_);
  const auto entry = types_.find(name);
  const elbow_trace_type* type = nullptr;
  if (entry != types_.end()) {
    type = entry->second;
  } else {
    type = elbow_trace_type_new(name, task_category_, "worker", "task", "flops");
    // More names than a trace has room for share one type; their texts tell them apart.
    type = type == nullptr ? empty_ : type;
    types_.emplace(name, type);
  }
  last = name;
  last_type = type;
  return type;
}

const elbow_trace_type* StarpuTasks::type_of(const starpu_task* task) {
  return without_function(task) ? empty_ : type_named(name_of(task->cl));
}

const elbow_trace_type* StarpuTasks::waiting(const char* name, bool data) {
  const std::lock_guard lock(mutex_);
  const elbow_trace_type*& type = waits_[name];
  if (type == nullptr) {
    type = elbow_trace_type_new(name, starpu_category_, nullptr, data ? "data" : nullptr, nullptr);
  }
  return type;
}

// The number that the task has, or gets now: a task whose address another had before it is new.
std::uint64_t StarpuTasks::number_of(const starpu_task* task, bool to_submit) {
  const auto known = table_.find(task);
  if (known && (known->state == TaskState::kNamed || (!to_submit && task->status != STARPU_TASK_INIT))) {
    return known->number;
  }
  const std::uint64_t number = next_task();
  table_.set(task, {number, nullptr, TaskState::kNamed});
  return number;
}

std::optional<KnownTask> StarpuTasks::known(const starpu_task* task) {
  const auto known = table_.find(task);
  return known && known->state == TaskState::kSubmitted ? known : std::nullopt;
}

void StarpuTasks::registered(starpu_data_handle_t handle, int node) {
  elbow_trace_event(registered_, static_cast<std::uint32_t>(node), ELBOW_STARPU(starpu_data_get_size)(handle),
                    data_.number(handle));
}

void StarpuTasks::name_data(starpu_data_handle_t handle, const char* name) {
  if (recording_ && name != nullptr) {
    elbow_trace_text(registered_, data_.number(handle), name);
  }
}

void StarpuTasks::depends(std::uint64_t waiting, std::uint64_t task) const {
  elbow_trace_event(dependency_, 0, task, waiting);
}

void StarpuTasks::declare(starpu_task* task, unsigned count, starpu_task* const others[]) {
  if (!recording_ || count == 0) {
    return;
  }
  const std::uint64_t number = number_of(task, true);
  for (unsigned i = 0; i < count; ++i) {
    depends(number, number_of(others[i], false));
  }
}

void StarpuTasks::declare_tags(starpu_tag_t tag, unsigned count, const starpu_tag_t others[]) {
  if (!recording_) {
    return;
  }
  TagOrder::Waits waits;
  for (unsigned i = 0; i < count; ++i) {
    tags_.declare(tag, others[i], waits);
  }
  for (const auto& [task, waiting] : waits) {
    depends(waiting, task);
  }
}

void StarpuTasks::forget_data(starpu_data_handle_t handle) {
  if (recording_) {
    accesses_.forget(handle);
    data_.forget(handle);
  }
}

void StarpuTasks::reduction(const starpu_codelet* reduce, const starpu_codelet* initialise) {
  const std::lock_guard lock(mutex_);
  reduces_ = true;
  reductions_.insert(reduce);
  reductions_.insert(initialise);
}

void StarpuTasks::forget_all() {
  table_.clear();
  accesses_.clear();
  tags_.clear();
  data_.clear();
}

void StarpuTasks::duplicate(const starpu_task* task, const starpu_task* copy) {
  // A task that several workers run together has a copy for each.
  const auto known = recording_ ? table_.find(task) : std::nullopt;
  if (known && known->state == TaskState::kSubmitted && copy != nullptr) {
    table_.set(copy, *known);
  }
}

// A reduction of what workers have got, which StarPU does when the data is needed: not in the order of submission.
bool StarpuTasks::by_starpu(const starpu_task* task) {
  if (!reduces_ || task->name == nullptr || std::string_view(task->name).substr(0, 10) != "redux_task") {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return reductions_.contains(task->cl);
}

// What the task waits for as it uses data after others; `bytes` of all its data.
void StarpuTasks::data_of(const starpu_task* task, std::uint64_t number, bool ordered, std::uint64_t& bytes) {
  const unsigned count = STARPU_TASK_GET_NBUFFERS(task);
  // Kept from task to task: memory is asked for once.
  thread_local std::vector<Use> uses;
  thread_local std::vector<std::uint64_t> waits;
  uses.clear();
  waits.clear();
  for (unsigned i = 0; i < count; ++i) {
    const starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, i);
    bytes += ELBOW_STARPU(starpu_data_get_size)(handle);
    auto mode = static_cast<unsigned>(STARPU_TASK_GET_MODE(task, i));
    bool first = true;  // data that a task has twice is used once, in all the ways it says
    for (unsigned j = 0; j < count; ++j) {
      if (j != i && STARPU_TASK_GET_HANDLE(task, j) == handle) {
        first = first && i < j;
        mode |= static_cast<unsigned>(STARPU_TASK_GET_MODE(task, j));
      }
    }
    if (first) {
      record_use(number, handle, mode);
    }
    const bool each = task->handles_sequential_consistency == nullptr || task->handles_sequential_consistency[i] != 0;
    Access access = Access::kRead;
    if (ordered && first && each && access_of(static_cast<starpu_data_access_mode>(mode), access) &&
        ELBOW_STARPU(starpu_data_get_sequential_consistency_flag)(handle) != 0) {
      uses.push_back({handle, access});
    }
  }
  accesses_.use(uses, number, waits);
  for (const std::uint64_t other : each_once(waits, number)) {
    depends(number, other);
  }
}

// Its name, colour and iterations, as far as the application gave any.
void StarpuTasks::describe(const starpu_task* task, const elbow_trace_type* type, std::uint64_t number) const {
  const char* own = task->cl == nullptr ? nullptr : name_of(task->cl);
  if (task->name != nullptr && (type == empty_ || std::strcmp(task->name, own) != 0)) {
    elbow_trace_text(type, number, task->name);
  }
  const unsigned colour = task->color != 0 || task->cl == nullptr ? task->color : task->cl->color;
  if (colour != 0) {
    elbow_trace_event(colour_, colour, number, 0);
  }
  for (std::size_t level = 0; level < iterations.size(); ++level) {
    elbow_trace_event(iteration_, static_cast<std::uint32_t>(level), number, iterations[level]);
  }
}

std::uint64_t StarpuTasks::submit(starpu_task* task) {
  // Empty tasks by which StarPU orders its own work.
  if (task->cl == nullptr && (task->type != STARPU_TASK_TYPE_NORMAL ||
                              (task->name != nullptr && std::string_view(task->name).substr(0, 7) == "_starpu"))) {
    return 0;
  }
  const elbow_trace_type* type = type_of(task);
  const std::uint64_t number = table_.submit(task, type, next_task);
  std::uint64_t bytes = 0;
  if (task->cl != nullptr) {
    data_of(task, number, task->sequential_consistency != 0 && !by_starpu(task), bytes);
    wrap_functions(task->cl);
  }
  elbow_trace_event(submit_, static_cast<std::uint32_t>(task->priority), number, bytes);
  describe(task, type, number);
  if (task->use_tag) {
    TagOrder::Waits waits;
    tags_.task(task->tag_id, number, waits);
    for (const auto& [before, waiting] : waits) {
      depends(waiting, before);
    }
  }
  watch_ready(task, number);
  return number;
}

void StarpuTasks::passed(std::uint64_t number) const {
  const auto worker = static_cast<std::uint32_t>(ELBOW_STARPU(starpu_worker_get_id)());
  elbow_trace_begin(empty_, worker, number, 0);
  elbow_trace_end(empty_, worker, number, 0);
}

void StarpuTasks::run(void (*function)(void**, void*), void** buffers, void* argument) {
  starpu_task* task = recording_ ? ELBOW_STARPU(starpu_task_get_current)() : nullptr;
  auto known = task == nullptr ? std::nullopt : table_.find(task);
  if (!known || known->type == nullptr) {
    function(buffers, argument);
    return;
  }
  if (known->state == TaskState::kEnded) {  // starpu_task::regenerate: again, and not submitted
    known->number = next_task();
    table_.set(task, {known->number, known->type, TaskState::kSubmitted});
  }
  name_worker();
  const auto worker = static_cast<std::uint32_t>(ELBOW_STARPU(starpu_worker_get_id)());
  const auto flops = static_cast<std::uint64_t>(task->flops > 0 ? task->flops : 0);
  elbow_trace_begin(known->type, worker, known->number, flops);
  function(buffers, argument);
  elbow_trace_end(known->type, worker, known->number, flops);
  table_.end(task, known->number);
}

void StarpuTasks::name_worker() {
  if (std::exchange(worker_named, true)) {
    return;
  }
  const int worker = ELBOW_STARPU(starpu_worker_get_id)();
  if (worker >= 0) {
    char name[64];
    ELBOW_STARPU(starpu_worker_get_name)(worker, name, sizeof name);
    elbow_trace_thread(name);
  }
}

}  // namespace elbowroom::trace
