// How often this thread of the test program took memory from the heap.
#pragma once

namespace elbowroom::predict::test {

extern thread_local long allocations;

}  // namespace elbowroom::predict::test
