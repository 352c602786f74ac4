#include "arguments.hpp"

#include <stdexcept>
#include <string>

namespace elbowroom::starpu_mpi {
namespace {

using Function = void (*)(void*);

// A list that functions take from: passed by value, it would be of no use to the caller afterwards.
struct Rest {
  va_list list;
};

constexpr int kModes = STARPU_ACCESS_MODE_MAX - 1;

// Sets fields of the task; false where the argument is none of those.
bool take_field(int kind, Rest& rest, Arguments& result) {
  const auto set = [&result](auto field, auto value) {
    result.fields.emplace_back([field, value](starpu_task& task) { task.*field = value; });
  };
  const auto set_flag = [&result](auto change) { result.fields.emplace_back(change); };
  switch (kind) {
    case STARPU_CALLBACK: set(&starpu_task::callback_func, va_arg(rest.list, Function)); return true;
    case STARPU_CALLBACK_WITH_ARG:
    case STARPU_CALLBACK_WITH_ARG_NFREE: set(&starpu_task::callback_func, va_arg(rest.list, Function)); [[fallthrough]];
    case STARPU_CALLBACK_ARG:
    case STARPU_CALLBACK_ARG_NFREE: {
      set(&starpu_task::callback_arg, va_arg(rest.list, void*));
      const bool frees = kind == STARPU_CALLBACK_WITH_ARG || kind == STARPU_CALLBACK_ARG;
      set_flag([frees](starpu_task& task) { task.callback_arg_free = frees; });
      return true;
    }
    case STARPU_PROLOGUE_CALLBACK: set(&starpu_task::prologue_callback_func, va_arg(rest.list, Function)); return true;
    case STARPU_PROLOGUE_CALLBACK_ARG:
    case STARPU_PROLOGUE_CALLBACK_ARG_NFREE:
      set(&starpu_task::prologue_callback_arg, va_arg(rest.list, void*));
      set_flag([frees = kind == STARPU_PROLOGUE_CALLBACK_ARG](starpu_task& task) {
        task.prologue_callback_arg_free = frees;
      });
      return true;
    case STARPU_TAG: {
      const auto tag = va_arg(rest.list, starpu_tag_t);
      set_flag([tag](starpu_task& task) {
        task.tag_id = tag;
        task.use_tag = 1;
      });
      return true;
    }
    case STARPU_EXECUTE_ON_WORKER: {
      const int worker = va_arg(rest.list, int);
      set_flag([worker](starpu_task& task) {
        if (worker < 0) return;
        task.workerid = static_cast<unsigned>(worker);
        task.execute_on_a_specific_worker = 1;
      });
      return true;
    }
    case STARPU_TASK_SYNCHRONOUS:
      set_flag([value = va_arg(rest.list, int)](starpu_task& task) { task.synchronous = value != 0; });
      return true;
    case STARPU_TAG_ONLY: set(&starpu_task::tag_id, va_arg(rest.list, starpu_tag_t)); return true;
    case STARPU_FLOPS: set(&starpu_task::flops, va_arg(rest.list, double)); return true;
    case STARPU_SCHED_CTX: set(&starpu_task::sched_ctx, va_arg(rest.list, unsigned)); return true;
    case STARPU_EXECUTE_WHERE:
      set_flag([where = va_arg(rest.list, unsigned)](starpu_task& task) { task.where = static_cast<int32_t>(where); });
      return true;
    case STARPU_NAME: set(&starpu_task::name, va_arg(rest.list, const char*)); return true;
    case STARPU_TASK_COLOR: set(&starpu_task::color, static_cast<unsigned>(va_arg(rest.list, int))); return true;
    case STARPU_WORKER_ORDER: set(&starpu_task::workerorder, va_arg(rest.list, unsigned)); return true;
    case STARPU_POSSIBLY_PARALLEL: set(&starpu_task::possibly_parallel, va_arg(rest.list, unsigned)); return true;
    default: return false;
  }
}

void take_array(const starpu_codelet& codelet, Rest& rest, Arguments& result) {
  const auto* const handles = va_arg(rest.list, const starpu_data_handle_t*);
  const int count = va_arg(rest.list, int);
  for (int i = 0; i < count; ++i) {
    const std::size_t place = result.data.size();
    const auto* const modes = codelet.dyn_modes != nullptr ? codelet.dyn_modes : codelet.modes;
    result.data.push_back({handles[i], modes[place]});
  }
}

void take_array_with_modes(Rest& rest, Arguments& result) {
  const auto* const all = va_arg(rest.list, const starpu_data_descr*);
  const int count = va_arg(rest.list, int);
  result.data.insert(result.data.end(), all, all + count);
}

// Of the data of the task, the codelet's arguments, and where it runs; false where the argument is none of those.
bool take_own(const starpu_codelet& codelet, int kind, Rest& rest, Arguments& result) {
  switch (kind) {
    case STARPU_DATA_ARRAY: take_array(codelet, rest, result); return true;
    case STARPU_DATA_MODE_ARRAY: take_array_with_modes(rest, result); return true;
    case STARPU_EXECUTE_ON_NODE: result.node = va_arg(rest.list, int); return true;
    case STARPU_EXECUTE_ON_DATA: result.on_data = va_arg(rest.list, starpu_data_handle_t); return true;
    case STARPU_PRIORITY: result.priority = va_arg(rest.list, int); return true;
    case STARPU_VALUE: {
      const void* const value = va_arg(rest.list, const void*);
      result.values.emplace_back(value, va_arg(rest.list, size_t));
      return true;
    }
    case STARPU_CL_ARGS:
    case STARPU_CL_ARGS_NFREE:
      result.packed = va_arg(rest.list, void*);
      result.packed_size = va_arg(rest.list, size_t);
      result.frees_packed = kind == STARPU_CL_ARGS;
      return true;
    default: return false;
  }
}

}  // namespace

Arguments parse(const starpu_codelet& codelet, va_list list) {
  Arguments result;
  Rest rest{};
  va_copy(rest.list, list);
  std::string unknown;
  while (const int kind = unknown.empty() ? va_arg(rest.list, int) : 0) {
    if ((kind & ~kModes) == 0) {
      const auto mode = static_cast<starpu_data_access_mode>(kind & ~STARPU_SSEND);
      result.data.push_back({va_arg(rest.list, starpu_data_handle_t), mode});
    } else if (!take_own(codelet, kind, rest, result) && !take_field(kind, rest, result)) {
      unknown = std::to_string(kind >> STARPU_MODE_SHIFT);
    }
  }
  va_end(rest.list);
  if (!unknown.empty()) {
    throw std::invalid_argument("argument " + unknown +
                                "<<STARPU_MODE_SHIFT of a task: is not taken by elbowroom; see " +
                                "starpu_task_util.h for its name, and leave it out");
  }
  return result;
}

starpu_task* make_task(starpu_codelet& codelet, const Arguments& arguments) {
  void* packed = arguments.packed;
  size_t size = arguments.packed_size;
  bool frees = arguments.frees_packed;
  if (!arguments.values.empty()) {
    starpu_codelet_pack_arg_data state;
    starpu_codelet_pack_arg_init(&state);
    for (const auto& [value, bytes] : arguments.values) starpu_codelet_pack_arg(&state, value, bytes);
    starpu_codelet_pack_arg_fini(&state, &packed, &size);
    frees = true;
  }
  std::vector<starpu_data_descr> data = arguments.data;
  starpu_task* const task = starpu_task_build(&codelet, STARPU_DATA_MODE_ARRAY, data.data(),
                                              static_cast<int>(data.size()), STARPU_PRIORITY, arguments.priority, 0);
  if (task == nullptr)
    throw std::invalid_argument("codelet: StarPU makes no task of it; look at its buffers and modes");
  task->cl_arg = packed;
  task->cl_arg_size = size;
  task->cl_arg_free = frees;
  for (const auto& set : arguments.fields) set(*task);
  return task;
}

}  // namespace elbowroom::starpu_mpi
