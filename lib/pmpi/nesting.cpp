// Which calls come inside another one of the same thread, and how a call ends.
#include <unwind.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "behind.hpp"
#include "pmpi/shim.hpp"

namespace elbowroom::pmpi {

constinit thread_local Inside inside;
constinit thread_local Binding current_binding;

namespace {

// What a walk over the stack looks for: the function whose frame has `address`.
struct Frame {
  std::uintptr_t address;
  const void* code = nullptr;  // of the frame before
  bool others = false;         // frames of other libraries came before it
  bool passed = false;         // frames from here on are above it
};

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* given) {
  Frame& frame = *static_cast<Frame*>(given);
  if (_Unwind_GetCFA(context) > frame.address) {
    frame.passed = true;
    return _URC_NORMAL_STOP;
  }
  frame.others = frame.others || (frame.code != nullptr && !is_own(frame.code));
  frame.code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  return _URC_NO_REASON;
}

// Whether the function that made `call` will be returned to: a shim, below which there is MPI, or a binding. Else this call's
// own shim has taken its place. Where a frame cannot be walked over, it is taken to be.
bool is_on_stack(const Call* call) {
  Frame frame{reinterpret_cast<std::uintptr_t>(call)};
  _Unwind_Backtrace(visit_frame, &frame);
  return !frame.passed || (frame.others && is_own(frame.code));
}

// Whether `caller` is code of the library that has `binding`: looked up once for each place there that calls.
bool is_in_binding(const void* caller, const void* binding) {
  static std::array<std::atomic<const void*>, 1024> places;
  std::atomic<const void*>& known = places[Mixed{}(reinterpret_cast<std::uintptr_t>(caller)) % places.size()];
  if (known.load(std::memory_order_relaxed) == caller) {
    return true;
  }
  const int error = errno;
  const void* const object = object_of(caller);
  const bool is_there = object != nullptr && object == object_of(binding);
  errno = error;
  if (is_there) {
    known.store(caller, std::memory_order_relaxed);
  }
  return is_there;
}

}  // namespace

// A binding that was left by longjmp stays the thread's last one, and calls of others are not its.
const void* caller_of_binding(const void* caller) {
  return is_in_binding(caller, current_binding.code) ? current_binding.caller : caller;
}

// Walking over the stack takes microseconds: it is done for the 1st, 2nd, 4th ... call inside another one, but not for those
// that bindings of Fortran make, each of which may make one.
bool is_nested(const void* caller) {
  if (inside.binding != nullptr && is_in_binding(caller, inside.binding)) {
    return true;
  }
  const unsigned count = ++inside.nested;
  if ((count & (count - 1)) != 0 || is_on_stack(inside.call)) {
    return true;
  }
  const int left = inside.number;
  inside = {};
  const int error = errno;
  tool_left(left);
  errno = error;
  return false;
}

}  // namespace elbowroom::pmpi
