// Tasks on StarPU's workers, over a stand-in for StarPU that counts what is allocated.
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

int run_count = 0;

int submit_one() {
  const elbow_taskflow_executor executor = elbow_taskflow_executor_of_starpu();
  return executor.run(
      executor.state, 3, [](void* argument) { run_count += *static_cast<int*>(argument); }, &run_count);
}

}  // namespace

TEST_CASE("A task that StarPU takes runs once, and leaves nothing behind") {
  run_count = 1;
  CHECK(submit_one() == 0);
  CHECK(run_count == 2);
  CHECK(starpu_stand_in::allocated == 0);
}

TEST_CASE("A task that StarPU refuses, or for which there is no memory, does not run and leaves nothing behind") {
  run_count = 1;
  for (bool* const works :
       {&starpu_stand_in::takes_tasks, &starpu_stand_in::allocates, &starpu_stand_in::creates_tasks}) {
    *works = false;
    CHECK(submit_one() == -1);
    CHECK(starpu_stand_in::allocated == 0);
    *works = true;
  }
  CHECK(run_count == 1);
}
