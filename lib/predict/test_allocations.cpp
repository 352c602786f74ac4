#include "test_allocations.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace elbowroom::predict::test {

thread_local long allocations = 0;

namespace {

void* allocated(std::size_t bytes, std::size_t alignment) {
  allocations += 1;
  void* result = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return result != nullptr || bytes == 0 ? result : throw std::bad_alloc();
}

}  // namespace
}  // namespace elbowroom::predict::test

// The whole test program's. In a file of their own: no compiler is to see through them elsewhere.
void* operator new(std::size_t bytes) { return elbowroom::predict::test::allocated(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return elbowroom::predict::test::allocated(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
