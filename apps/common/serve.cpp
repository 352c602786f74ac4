#include "common/serve.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/clock.hpp"
#include "common/together.hpp"
#include "machine/machine.hpp"
#include "protocol/describe.hpp"
#include "protocol/line_source.hpp"

namespace elbowroom::program {
namespace {

using nlohmann::json;

constexpr int kProtocolVersion = 1;

void say(const Job& job, const json& record) {
  if (job.rank() == 0) {
    std::cout << record.dump() << std::endl;
  }
}

json hello(const Job& job, const Program& program) {
  json record = {{"record", "hello"},       {"protocol", kProtocolVersion}, {"version", ELBOWROOM_VERSION},
                 {"ranks", job.ranks()},    {"mpi", job.mpi_facts()},       {"hwloc", hwloc_record()},
                 {"clock", clock_record()}, {"build", build_record()}};
  record.update(program.facts());
  return record;
}

std::string point_of(const json& request) {
  const json point = request.is_object() ? request.value("point", json()) : json();
  return point.is_string() ? point.get<std::string>() : "";
}

void check_operation(const json& request, const std::string& line) {
  if (!request.is_object()) {
    throw RequestError("", line.substr(0, 80), "a request is one JSON object on one line",
                       "see docs/reference/protocol.md");
  }
  const json op = request.value("op", json());
  if (op != "measure") {
    throw RequestError("op", op.is_string() ? op.get<std::string>() : op.dump(), "there is no such request",
                       "known: measure, quit");
  }
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

// The settings in a file that only rank 0 need see. Collective.
Settings settings_from(const Job& job, const std::string& path) {
  json object;
  together(job, [&] {
    if (job.rank() == 0) {
      object = json::parse(text_of(path), nullptr, false);
      if (object.is_discarded()) {
        throw RequestError("config", path, "is not JSON", "see docs/reference/protocol.md");
      }
    }
  });
  if (job.rank() == 0) {
    job.send_to_others(object);
  } else {
    object = job.receive(0);
  }
  return read_settings(object);
}

json answer_of(Program& program, const json& request) {
  try {
    return program.answer(request);
  } catch (const RequestError& error) {
    return error_record(error, point_of(request));
  }
}

// Some launchers keep the input open after their own has ended: so the end can be said, too.
void lead(const Job& job, Program& program) {
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
    const json request = json::parse(*line, nullptr, false);
    if (request.is_object() && request.value("op", json()) == "quit") {
      break;
    }
    try {
      check_operation(request, *line);
    } catch (const RequestError& error) {
      say(job, error_record(error, point_of(request)));
      continue;
    }
    job.send_to_others(request);
    say(job, answer_of(program, request));
  }
  job.send_to_others(nullptr);
}

void follow(const Job& job, Program& program) {
  for (;;) {
    const json request = job.receive(0);
    if (request.is_null()) {
      return;
    }
    answer_of(program, request);
  }
}

}  // namespace

json error_record(const RequestError& error, const std::string& point) {
  json record = error_fields(error);
  record["record"] = "error";
  record["point"] = point;
  return record;
}

int with_ranks(const std::string& name, int argc, char** argv, const std::string& threads,
               const std::function<int(const Job&)>& task) {
  // As in the probe: the topology is read before MPI narrows what is seen of it.
  Machine::here();
  clock_info();
  std::signal(SIGPIPE, SIG_IGN);
  const Job job(&argc, &argv, threads);
  try {
    return task(job);
  } catch (const std::exception& error) {
    // The other ranks wait for this one in the middle of something: nothing but the end of the job helps them.
    std::cerr << fmt::format("{}: rank {}: {}", name, job.rank(), error.what()) << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 1;
}

int answered(const Job& job, const std::function<int()>& task) {
  try {
    return task();
  } catch (const RequestError& error) {
    say(job, error_record(error));
    return error.kind == "usage" ? 2 : 1;
  }
}

int with_settings(const Job& job, const std::string& config, const std::function<void(const Settings&)>& task) {
  return answered(job, [&] {
    task(settings_from(job, config));
    return 0;
  });
}

int serve(const Job& job, const std::string& config, const Maker& make) {
  return with_settings(job, config, [&](const Settings& settings) {
    const std::unique_ptr<Program> program = make(job, settings);
    say(job, hello(job, *program));
    job.rank() == 0 ? lead(job, *program) : follow(job, *program);
  });
}

}  // namespace elbowroom::program
