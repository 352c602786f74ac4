// The probe: reads requests, measures, writes JSON lines (docs/reference/protocol.md).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.hpp"
#include "caches/question.hpp"
#include "exchange/cluster.hpp"
#include "exchange/job.hpp"
#include "exchange/leader.hpp"
#include "machine/machine.hpp"
#include "observe/observer.hpp"
#include "observe/tracing.hpp"
#include "protocol/describe.hpp"
#include "protocol/kernel_run.hpp"
#include "protocol/line_source.hpp"
#include "protocol/sizes.hpp"

namespace {

using namespace elbowroom;

// Runs `lead` on rank 0, with the lines of requests, and `follow` on the others.
int serve(int argc, char** argv, const std::string& threads, const std::function<void(const Job&, LineSource&)>& lead,
          const std::function<void(const Job&)>& follow) {
  // The topology is read before MPI starts: some MPI libraries narrow the cpuset of the process, or bring a libhwloc of
  // their own.
  Machine::here();
  clock_info();
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads any more: seen by the stream, ends in order
  const Job job(&argc, &argv, threads);
  try {
    if (job.rank() == 0) {
      const pid_t asker = grandparent();
      LineSource requests(STDIN_FILENO, [asker] { return grandparent() != asker; });
      lead(job, requests);
    } else {
      follow(job);
    }
  } catch (const std::exception& error) {
    // The other ranks wait for this one in the middle of something: nothing but the end of the job helps them.
    std::cerr << fmt::format("probe: rank {}: {}", job.rank(), error.what()) << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}

int measure(int argc, char** argv, const std::string& threads, const std::string& trace) {
  const auto traced = [&trace](const Job& job, const auto& part) {
    if (!trace.empty()) {
      start_tracing(trace, job.rank(), job.size(), job.common_number());
      trace_thread("communication");
    }
    part();
    stop_tracing();
  };
  return serve(
      argc, argv, threads,
      [&](const Job& job, LineSource& requests) { traced(job, [&] { Leader(job).serve(requests, std::cout); }); },
      [&](const Job& job) { traced(job, [&] { follow(job); }); });
}

// parse_size() refuses 0, which stands for the default.
std::size_t triad_bytes(const std::string& text) {
  return text == "0" ? 0 : static_cast<std::size_t>(parse_size("working-set", text));
}

int measure_cluster(int argc, char** argv, std::size_t working_set) {
  return serve(
      argc, argv, "funneled",
      [=](const Job& job, LineSource& requests) { lead_cluster(job, working_set, requests, std::cout); },
      [=](const Job& job) { follow_cluster(job, working_set); });
}

struct KernelOptions {
  std::string kernel;
  std::string cores = "0";
  int node = 0;
  int cursor = 1;
  std::string working_set = "1GiB";
  double seconds = 1;
  int repeat = 5;
};

void add_kernel_options(CLI::App& command, KernelOptions& options) {
  command.add_option("--kernel", options.kernel, "name of the kernel")->required();
  command.add_option("--cores", options.cores, "computing cores, as 0-3,6")->capture_default_str();
  command.add_option("--node", options.node, "NUMA node of the arrays")->capture_default_str();
  command.add_option("--cursor", options.cursor, "repetitions per item")->capture_default_str();
  command.add_option("--working-set", options.working_set, "per core, as 1GiB")->capture_default_str();
  command.add_option("--seconds", options.seconds, "measured in each repetition")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--repeat", options.repeat, "repetitions")->check(CLI::PositiveNumber)->capture_default_str();
}

int run_kernel(const KernelOptions& options) {
  Request request;
  request.kernel = options.kernel;
  request.cursor = options.cursor;
  request.first.comp_cores = parse_core_list("cores", options.cores);
  request.first.comp_node = options.node;
  request.working_set = parse_size("working-set", options.working_set);
  request.window = options.seconds;
  run_kernel_alone(request, options.repeat, std::cout);
  return 0;
}

struct MissOptions {
  std::string who = "sender";
  std::string access = "write";
  std::string message = "400";
  std::string first = "0";
  std::string step = "400";
  std::int64_t count = 100;
  std::string cores = "0,1";
  bool barrier = true;
  bool different = false;
};

void add_miss_options(CLI::App& command, MissOptions& options) {
  command.add_option("--who", options.who, "who touches memory between messages")
      ->check(CLI::IsMember({"none", "sender", "receiver", "both", "bystanders"}))
      ->capture_default_str();
  command.add_option("--access", options.access, "what they do")
      ->check(CLI::IsMember({"read", "write"}))
      ->capture_default_str();
  command.add_option("--size", options.message, "of a message, as 400 or 4KiB")->capture_default_str();
  command.add_option("--first", options.first, "bytes touched, of the first size")->capture_default_str();
  command.add_option("--step", options.step, "bytes from one size to the next")->capture_default_str();
  command.add_option("--count", options.count, "sizes")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  command.add_option("--cores", options.cores, "sender's, receiver's, then bystanders' cores")->capture_default_str();
  command.add_flag("!--no-barrier", options.barrier, "no barrier between accesses and message");
  command.add_flag("--different", options.different, "the sender writes new data before each message");
}

nlohmann::json misses(const MissOptions& options) {
  const std::vector<int> cores = parse_core_list("cores", options.cores);
  const bool beside = options.who == "bystanders";
  if (cores.size() < 2 || (cores.size() == 2 && beside)) {
    throw RequestError("cores", options.cores, "too few",
                       "name the sender's, the receiver's and the bystanders' cores");
  }
  for (const int core : cores) {
    if (Machine::here().core(core) == nullptr) {
      throw RequestError("cores", options.cores, fmt::format("core {} does not exist", core), "see `probe topology`");
    }
  }
  const auto size = [](const char* field, const std::string& text) {
    return static_cast<std::uint64_t>(parse_size(field, text));
  };
  MissQuestion question;
  question.sender = cores[0];
  question.receiver = cores[1];
  question.bystanders.assign(cores.begin() + 2, cores.end());
  question.touching = {options.who == "sender" || options.who == "both",
                       options.who == "receiver" || options.who == "both",
                       beside,
                       options.access == "write",
                       options.different,
                       options.barrier};
  question.message = size("size", options.message);
  question.sizes = {size("first", options.first), size("step", options.step),
                    static_cast<std::uint64_t>(options.count)};
  const std::uint64_t steps = std::max<std::uint64_t>(question.sizes.count - 1, 1);
  if (question.sizes.first > kMostAccesses || question.sizes.step > (kMostAccesses - question.sizes.first) / steps) {
    throw RequestError("step", options.step, "the largest size would be above 16 TiB",
                       "ask for fewer or smaller sizes");
  }
  const MissAnswer answer = modelled_misses(question);
  return {{"record", "misses"}, {"after", answer.after}, {"without", answer.without}};
}

int print(const nlohmann::json& record) {
  std::cout << record.dump() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("elbowroom's probe: measures computation and communication, one JSON object per line");
  app.set_version_flag("--version", ELBOWROOM_VERSION);
  app.require_subcommand(1);
  std::string xml = "-";
  auto* topology = app.add_subcommand("topology", "the hwloc topology with PCI devices, as XML");
  topology->add_option("--xml", xml, "file to write, - for stdout")->capture_default_str();
  auto* kernel_table = app.add_subcommand("kernels", "the table of kernels");
  auto* clock = app.add_subcommand("clock", "the clock: source, resolution, cost of a call");
  auto* observe = app.add_subcommand("observe", "which observers work here");
  auto* state = app.add_subcommand("state", "machine state now");
  KernelOptions options;
  auto* kernel = app.add_subcommand("kernel", "runs one kernel without MPI, one JSON line per repetition");
  add_kernel_options(*kernel, options);
  MissOptions miss_options;
  auto* missing = app.add_subcommand("misses", "cache misses of a message after extraneous accesses, by a model");
  add_miss_options(*missing, miss_options);
  auto* measuring = app.add_subcommand("measure", "answers requests on stdin; start it as MPI ranks");
  std::string threads = "funneled";
  measuring
      ->add_option(
          "--threads", threads,
          "thread level of MPI; multiple: a ring with several communication threads; single: communication only")
      ->check(CLI::IsMember({"single", "funneled", "multiple"}))
      ->capture_default_str();
  std::string trace;
  measuring->add_option("--trace", trace, "folder for a trace of all threads");
  auto* cluster =
      app.add_subcommand("cluster", "answers requests on stdin about all nodes; start it as one MPI rank on each");
  std::string working_set = "0";
  cluster->add_option("--working-set", working_set, "bytes of TRIAD's arrays on a node, as 1GiB; 0: four caches")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (topology->parsed()) {
      Machine::here().write_xml(xml);
      return 0;
    }
    return kernel_table->parsed() ? print(kernels_record())
           : clock->parsed()      ? print(clock_record())
           : observe->parsed()    ? print(observers_available())
           : state->parsed()      ? print(machine_state())
           : kernel->parsed()     ? run_kernel(options)
           : missing->parsed()    ? print(misses(miss_options))
           : measuring->parsed()  ? measure(argc, argv, threads, trace)
           : cluster->parsed()    ? measure_cluster(argc, argv, triad_bytes(working_set))
                                  : 2;
  } catch (const RequestError& error) {
    std::cerr << fmt::format("probe: {} '{}': {}; {}\n", error.field, error.value, error.what(), error.hint);
    return error.kind == "usage" ? 2 : 1;
  } catch (const std::exception& error) {
    std::cerr << fmt::format("probe: {}\n", error.what());
    return 1;
  }
}
