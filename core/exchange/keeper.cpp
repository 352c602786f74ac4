#include "exchange/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/request_error.hpp"

extern char** environ;

namespace elbowroom {
namespace {

using nlohmann::json;

constexpr int kPatience = 60'000;  // ms: an interpreter that starts from a slow network file system

RequestError refused(const std::string& value, const std::string& why) {
  return {"settings", value, why, "start elbowroom from a folder that every host of the job can read", "machine"};
}

}  // namespace

void Keeper::start(const json& command) {
  std::vector<std::string> words = command.get<std::vector<std::string>>();
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  int requests[2];
  int answers[2];
  if (pipe2(requests, O_CLOEXEC) != 0) {
    throw refused(words[0], fmt::format("no pipe: {}", std::strerror(errno)));
  }
  if (pipe2(answers, O_CLOEXEC) != 0) {
    close(requests[0]);
    close(requests[1]);
    throw refused(words[0], fmt::format("no pipe: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, requests[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, answers[1], STDOUT_FILENO);
  // The launcher waits for the end of this rank's outputs, and the process may outlive the rank.
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);  // not killed with the session of the job
  const int error = posix_spawnp(&process_, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(requests[0]);
  close(answers[1]);
  to_ = requests[1];
  from_ = answers[0];
  if (error != 0) {
    process_ = -1;
    end();
    throw refused(words[0], fmt::format("cannot be started: {}", std::strerror(error)));
  }
  command_ = command;
}

json Keeper::ask(const json& line) {
  const std::string text = line.dump() + "\n";
  if (to_ < 0 || write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return nullptr;
  }
  for (;;) {
    if (const auto at = rest_.find('\n'); at != std::string::npos) {
      const json answer = json::parse(rest_.substr(0, at), nullptr, false);
      rest_.erase(0, at + 1);
      return answer.is_object() ? answer : json(nullptr);
    }
    pollfd waiting{from_, POLLIN, 0};
    const int ready = poll(&waiting, 1, kPatience);
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    char part[4096];
    const ssize_t count = ready > 0 ? read(from_, part, sizeof part) : 0;
    if (count <= 0) {
      return nullptr;
    }
    rest_.append(part, static_cast<std::size_t>(count));
  }
}

void Keeper::hold(const std::string& settings) {
  json wanted = json::parse(settings);
  const json command = wanted.at("keeper");
  wanted.erase("keeper");
  if (process_ < 0 || command != command_) {
    end();
    start(command);
  }
  json answer = ask(wanted);
  if (answer.is_null()) {
    end();
    throw refused(command.at(0), "ended before it had set anything");
  }
  if (answer.contains("error")) {
    throw error_of_rank(answer.at("error"), 0, "");
  }
}

json Keeper::release() {
  if (process_ < 0 && command_.is_null()) {
    return json::object();  // could not be started, so it has set nothing
  }
  json answer = ask(json::object());
  if (!answer.is_null()) {
    return answer;
  }
  // Killed meanwhile: a new one sets back by the record of the old one.
  end();
  json result = {{"changed", "the process that held the settings ended before the measurement"}};
  try {
    start(command_);
    answer = ask(json::object());
    if (answer.is_null()) {
      result["left"] = "the settings may be as they were set: elbowroom doctor on that host sets them back";
    } else if (answer.contains("left")) {
      result["left"] = answer.at("left");
    }
  } catch (const RequestError& error) {
    result["left"] = error.what();
  }
  return result;
}

void Keeper::end() {
  for (int* descriptor : {&to_, &from_}) {
    if (*descriptor >= 0) {
      close(*descriptor);
      *descriptor = -1;
    }
  }
  if (process_ > 0) {
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
  }
  rest_.clear();
}

}  // namespace elbowroom
