// The process that holds a host's frequencies, turbo and governor while a point is measured, and undoes them.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

namespace elbowroom {

// One for each host, started by its first rank when a request has `settings`; docs/reference/protocol.md says what is
// sent. It has a session of its own and sees the end of its input if this process dies in any way: it then sets back what
// it found. If it is killed itself, the next one that starts on the host sets back by the record that it kept.
class Keeper {
 public:
  Keeper() = default;
  ~Keeper() { end(); }  // waits until everything is set back
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Sets what the request's `settings` name. Throws RequestError; nothing is changed then.
  void hold(const std::string& settings);
  // Sets back, {} when all went well. {"changed": sentence}: somebody else changed a setting meanwhile, or the process
  // was killed, so what was measured is void; {"left": sentence}: a setting could not be set back.
  nlohmann::json release();

 private:
  void start(const nlohmann::json& command);
  nlohmann::json ask(const nlohmann::json& line);  // null when the process has ended or is silent
  void end();

  pid_t process_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string rest_;  // received behind the last line
  nlohmann::json command_;
};

}  // namespace elbowroom
