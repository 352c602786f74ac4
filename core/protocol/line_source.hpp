// Lines of requests from a file descriptor, until the end of the stream or until whoever asks is gone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace elbowroom {

// The parent of this process' parent: with a local launcher, the program that started the launcher. -1 when unknown.
pid_t grandparent();

// Some launchers (PRRTE of Open MPI 5) keep the standard input of rank 0 open after their own has ended, so a probe whose
// user was killed would wait for ever. `abandoned` is asked now and then while no line comes.
class LineSource {
 public:
  LineSource(int descriptor, std::function<bool()> abandoned);

  // The next line without its end; nothing when there are no more. A last line without end counts.
  std::optional<std::string> next();

 private:
  std::optional<std::string> take(std::size_t length, std::size_t with_end);

  int descriptor_;
  std::function<bool()> abandoned_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace elbowroom
