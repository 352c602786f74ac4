// Tasks and data that StarPU keeps, over a stand-in for StarPU that counts what is allocated, and whose tasks have their data
// elsewhere than in the program's memory.
#include <doctest/doctest.h>
#include <starpu.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): as the header does, before its allocations are counted, too
#include <string.h>  // NOLINT(modernize-deprecated-headers)

#include <initializer_list>

#define malloc starpu_stand_in::allocate
#define free starpu_stand_in::release
#include "elbowroom/taskflow_starpu.h"
#undef malloc
#undef free

namespace {

int over_count = 0;

// A task that adds one to a number and is told that it is over.
int submit_one(int& number) {
  const elbow_taskflow_executor executor = elbow_taskflow_executor_of_starpu();
  const elbow_taskflow_handles& handles = *executor.handles;
  void* const handle = handles.add(executor.state, &number, sizeof number);
  const int mode = ELBOW_TASKFLOW_READ_WRITE;
  const int result = handles.run(
      executor.state, 3, [](void*, void* const* buffers) { ++*static_cast<int*>(buffers[0]); },
      [](void* argument) { ++*static_cast<int*>(argument); }, &over_count, &handle, &mode, 1);
  handles.remove(executor.state, handle, 1);
  return result;
}

}  // namespace

TEST_CASE("A task that StarPU takes runs once with its data and priority, and leaves nothing behind") {
  int number = 7;
  over_count = 0;
  CHECK(submit_one(number) == 0);
  CHECK(number == 8);
  CHECK(over_count == 1);
  CHECK(starpu_stand_in::last_priority == 3);
  CHECK(starpu_stand_in::allocated == 0);
}

TEST_CASE("A task that StarPU refuses, or for which there is no memory, does not run and leaves nothing behind") {
  int number = 7;
  over_count = 0;
  for (bool* const works :
       {&starpu_stand_in::takes_tasks, &starpu_stand_in::allocates, &starpu_stand_in::creates_tasks}) {
    *works = false;
    CHECK(submit_one(number) == -1);
    CHECK(starpu_stand_in::allocated == 0);
    *works = true;
  }
  CHECK(number == 7);
  CHECK(over_count == 0);
}
