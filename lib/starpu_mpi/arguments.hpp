// What follows the codelet in starpu_mpi_task_insert.
#pragma once

#include <starpu.h>

#include <cstdarg>
#include <functional>
#include <optional>
#include <vector>

namespace elbowroom::starpu_mpi {

struct Arguments {
  std::vector<starpu_data_descr> data;  // in the order of the codelet's buffers
  std::optional<int> node;              // STARPU_EXECUTE_ON_NODE
  starpu_data_handle_t on_data = nullptr;
  int priority = 0;
  // Bytes of STARPU_VALUE and STARPU_CL_ARGS; the latter are the task's memory, or stay the program's.
  std::vector<std::pair<const void*, size_t>> values;
  void* packed = nullptr;
  size_t packed_size = 0;
  bool frees_packed = false;
  std::vector<std::function<void(starpu_task&)>> fields;  // that the rest sets
};

// Throws std::invalid_argument for an argument that this library has not.
Arguments parse(const starpu_codelet& codelet, va_list list);

// A task of StarPU, not submitted.
starpu_task* make_task(starpu_codelet& codelet, const Arguments& arguments);

}  // namespace elbowroom::starpu_mpi
