// Symbols of the program's MPI and of other tools, wherever they were loaded: libraries that a program opens (Python
// modules, plug-ins) bring an MPI that only they can see (RTLD_LOCAL).
#pragma once

namespace elbowroom::pmpi {

// The function `name` in the libraries behind this one, another tool's or MPI's, else its PMPI name. Ends the process where
// there is neither.
void* needed_function(const char* name);
// The variable `name`, as the program sees it. Ends the process where there is none.
void* needed_data(const char* name);

// Definitions of a variable: calls `take` with each, as long as it returns true.
template <typename Take>
void for_each_definition(const char* name, Take take);
using TakeAddress = bool(void* context, void* address);
void visit_definitions(const char* name, TakeAddress* take, void* context);

template <typename Take>
void for_each_definition(const char* name, Take take) {
  visit_definitions(
      name, [](void* context, void* address) -> bool { return (*static_cast<Take*>(context))(address); }, &take);
}

// Whether `address` is in the code of this library.
bool is_own(const void* address);

}  // namespace elbowroom::pmpi
