// elbow_minikernel: messages as those of the NAS parallel benchmarks (README.md).
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "minikernels/kernels.hpp"

namespace {

using namespace elbowroom::minikernels;

constexpr std::size_t kLargest = 256 << 20;  // bytes of a message
constexpr std::size_t kWord = 8;

struct Options {
  std::string kernel;
  int steps = 0;
  std::size_t size = 0;
  double seconds = -1;
  std::string compute = "sleep";
  std::size_t working_set = 16384;
  double rate = 0;
  bool verify = false;
  bool marks = false;
};

void add_options(CLI::App& app, Options& options) {
  std::string names;
  for (const Kernel& kernel : kernels()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kernel.name);
  }
  app.add_option("kernel", options.kernel, names)->required();
  app.add_option("--steps", options.steps, "default: the kernel's")->check(CLI::Range(1, 1000000000));
  app.add_option("--size", options.size, "bytes of the largest message, a multiple of 8; default: the kernel's")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(kWord, kLargest));
  app.add_option("--seconds-per-step", options.seconds, "of computation; default: the kernel's")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--compute", options.compute, "sleep, or work: a triad")
      ->check(CLI::IsMember({"sleep", "work"}))
      ->capture_default_str();
  app.add_option("--working-set", options.working_set, "bytes of --compute work")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(std::size_t{24}, std::size_t{1} << 34))
      ->capture_default_str();
  app.add_option("--rate", options.rate,
                 "elements/s of --compute work, so that the work is that of another run; default: measured")
      ->check(CLI::Range(1.0, 1e15));
  app.add_flag("--verify", options.verify, "check every word of every message, and not the first and last one only");
  app.add_flag("--marks", options.marks, "MPI_Pcontrol(1) and (0) around each step");
}

// The kernel, with the options' values where they are given. Throws CLI::ValidationError.
Kernel chosen(const Options& options, int ranks) {
  const Kernel* const named = find_kernel(options.kernel);
  if (named == nullptr) {
    throw CLI::ValidationError("kernel", fmt::format("there is no kernel {}", options.kernel));
  }
  Kernel kernel = *named;
  kernel.steps = options.steps > 0 ? options.steps : kernel.steps;
  kernel.size = options.size > 0 ? options.size : kernel.size;
  kernel.seconds = options.seconds >= 0 ? options.seconds : kernel.seconds;
  if (kernel.size % kWord != 0) {
    throw CLI::ValidationError("--size", fmt::format("{} is not a multiple of {}", kernel.size, kWord));
  }
  if (const std::string reason = kernel.refused(ranks); !reason.empty()) {
    throw CLI::ValidationError("ranks", fmt::format("{}, and not {}", reason, ranks));
  }
  return kernel;
}

double over_ranks(double own, MPI_Op operation) {
  double result = 0;
  MPI_Allreduce(&own, &result, 1, MPI_DOUBLE, operation, MPI_COMM_WORLD);
  return result;
}

int run(const Kernel& kernel, const Options& options) {
  Exchange exchange(MPI_COMM_WORLD, options.verify ? Check::all : Check::ends);
  Computation computation(options.compute == "work" ? Kind::work : Kind::sleep, options.working_set, options.rate);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = seconds_now();
  for (int number = 0; number < kernel.steps; ++number) {
    if (options.marks) {
      MPI_Pcontrol(1);
    }
    kernel.step({exchange, computation, kernel.size, kernel.seconds, number, number + 1 == kernel.steps});
    if (options.marks) {
      MPI_Pcontrol(0);
    }
  }
  const double seconds = over_ranks(seconds_now() - begun, MPI_MAX);
  const double computed = over_ranks(computation.spent(), MPI_SUM) / exchange.size();
  const double bytes = over_ranks(static_cast<double>(exchange.bytes()), MPI_SUM);
  const double messages = over_ranks(static_cast<double>(exchange.messages()), MPI_SUM);
  const bool valid = over_ranks(exchange.valid() ? 1 : 0, MPI_MIN) == 1;
  if (exchange.rank() == 0) {
    const nlohmann::ordered_json record = {{"kernel", kernel.name},
                                           {"ranks", exchange.size()},
                                           {"steps", kernel.steps},
                                           {"size", kernel.size},
                                           {"compute", options.compute},
                                           {"seconds_per_step", kernel.seconds},
                                           {"rate", computation.rate()},
                                           {"seconds", seconds},
                                           {"compute_s", computed},
                                           {"bytes", static_cast<std::uint64_t>(bytes)},
                                           {"messages", static_cast<std::uint64_t>(messages)},
                                           {"verified", valid}};
    std::cout << record.dump() << std::endl;
  }
  return valid ? 0 : 1;
}

// All ranks read the same words; one of them says what is wrong.
int with_options(int argc, char** argv, int rank, int ranks) {
  CLI::App app("messages as those of the NAS parallel benchmarks; start it as MPI ranks", "elbow_minikernel");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
    return run(chosen(options, ranks), options);
  } catch (const CLI::Success& help) {
    return rank == 0 ? app.exit(help) : 0;
  } catch (const CLI::ParseError& error) {
    if (rank == 0) {
      std::cerr << "error: " << error.what() << std::endl;
    }
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = with_options(argc, argv, rank, ranks);
  MPI_Finalize();
  return code;
}
