#include "diffusion/serve.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include "diffusion/solver.hpp"
#include "diffusion/together.hpp"
#include "protocol/line_source.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

// Some launchers keep the input open after their own has ended: so the end can be said, too.
bool quits(const std::string& line) {
  const json request = json::parse(line, nullptr, false);
  return request.is_object() && request.value("op", json()) == "quit";
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    throw RequestError("config", path, fmt::format("cannot be read ({})", std::strerror(errno)), "name a JSON file");
  }
  return text.str();
}

// Only rank 0 need see the file.
Config config_of(const Job& job, const std::string& path) {
  std::string text;
  together(job, [&] {
    if (job.rank() == 0) {
      text = text_of(path);
    }
  });
  const json object = json::parse(from_first(job, text), nullptr, false);
  if (object.is_discarded()) {
    throw RequestError("config", path, "is not JSON", "see apps/diffusion/README.md");
  }
  return read_config(object);
}

void say(const Job& job, const json& record) {
  if (job.rank() == 0) {
    std::cout << record.dump() << std::endl;
  }
}

int agreed(const Job& job, const std::function<void()>& task) {
  try {
    task();
    return 0;
  } catch (const RequestError& error) {
    say(job, error_record(error));
    return error.kind == "usage" ? 2 : 1;
  }
}

// Steps to run, or nothing when the answer was an error already.
std::optional<json> request_of(const Solver& solver, const std::string& line) {
  try {
    const json request = json::parse(line, nullptr, false);
    if (!request.is_object()) {
      throw RequestError("", line.substr(0, 80), "a request is one JSON object on one line",
                         "see apps/diffusion/README.md");
    }
    solver.check(read_steps(request));
    return request;
  } catch (const RequestError& error) {
    std::cout << error_record(error).dump() << std::endl;
    return std::nullopt;
  }
}

void lead(const Job& job, Solver& solver) {
  const pid_t asker = grandparent();
  LineSource lines(STDIN_FILENO, [asker] { return grandparent() != asker; });
  while (std::cout.good()) {
    const std::optional<std::string> line = lines.next();
    if (!line) {
      break;
    }
    if (line->find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    if (quits(*line)) {
      break;
    }
    if (const auto request = request_of(solver, *line)) {
      job.send_to_others(*request);
      say(job, solver.run(read_steps(*request)));
    }
  }
  job.send_to_others(nullptr);
}

void follow(const Job& job, Solver& solver) {
  for (;;) {
    const json request = job.receive(0);
    if (request.is_null()) {
      return;
    }
    solver.run(read_steps(request));
  }
}

}  // namespace

int measure(const Job& job, const std::string& config) {
  return agreed(job, [&] {
    Solver solver(job, config_of(job, config));
    say(job, solver.hello());
    job.rank() == 0 ? lead(job, solver) : follow(job, solver);
  });
}

int solve(const Job& job, const std::string& config, double time) {
  return agreed(job, [&] {
    Solver solver(job, config_of(job, config));
    say(job, solver.solve(time));
  });
}

}  // namespace elbowroom::diffusion
