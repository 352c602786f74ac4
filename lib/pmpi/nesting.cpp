// Which calls come inside another one of the same thread, and how a call ends.
#include <unwind.h>

#include <cerrno>
#include <cstdint>

#include "pmpi/shim.hpp"

namespace elbowroom::pmpi {

constinit thread_local Inside inside;

namespace {

// What a walk over the stack looks for: the function whose frame has `address`.
struct Frame {
  std::uintptr_t address;
  const void* code = nullptr;  // of the frame before
  bool passed = false;         // frames from here on are above it
};

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* given) {
  Frame& frame = *static_cast<Frame*>(given);
  if (_Unwind_GetCFA(context) > frame.address) {
    frame.passed = true;
    return _URC_NORMAL_STOP;
  }
  frame.code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  return _URC_NO_REASON;
}

// Whether the function that made `call` will be returned to. Where a frame cannot be walked over, it is taken to be.
bool is_on_stack(const Call* call) {
  Frame frame{reinterpret_cast<std::uintptr_t>(call)};
  _Unwind_Backtrace(visit_frame, &frame);
  return !frame.passed || (frame.code != nullptr && is_own(frame.code));
}

}  // namespace

// Walking over the stack takes microseconds: it is done for the 1st, 2nd, 4th ... call inside another one; for bindings of
// Fortran, each of which may have one inside, from the 2nd on.
bool is_nested() {
  const unsigned count = ++inside.nested;
  if ((count & (count - 1)) != 0 || (count == 1 && inside.fortran) || is_on_stack(inside.call)) {
    return true;
  }
  const int left = inside.number;
  inside = {};
  const int error = errno;
  tool_left(left);
  errno = error;
  return false;
}

// The tool may write files: errno stays as the program, or MPI, has set it.
Call::Call(int number, const About& about) : about_(about), number_(number) {
  const int error = errno;
  inside.call = this;
  inside.number = number;
  tool_enter(number_, about_);
  errno = error;
}

Call::~Call() {
  const int error = errno;
  tool_leave(number_, about_);
  if (inside.call == this) {
    inside = {};
  }
  errno = error;
}

}  // namespace elbowroom::pmpi
