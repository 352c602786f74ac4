// trace-reader: reads recorded traces, for elbowroom's `trace` commands.
//
// One JSON document on stdout (for columns to stdout: on stderr). Exit 0 done, 1 failed (a sentence on stderr), 2 usage,
// 3 done, but not to be trusted.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trace/merge/merge.hpp"
#include "trace/merge/part.hpp"
#include "trace/merge/report.hpp"
#include "trace/merge/sink.hpp"
#include "trace/outputs/ending.hpp"
#include "trace/outputs/outputs.hpp"

namespace {

using namespace elbowroom::trace;

// Outputs by the names that the command line has for them.
using Maker = std::function<std::unique_ptr<Sink>(const std::string&)>;

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> known = {
      {"pftrace", perfetto_output}, {"json", chrome_output}, {"otf2", otf2_output},
      {"paje", paje_output},        {"dot", graph_output},   {"columns", columns_output},
  };
  return known;
}

std::vector<std::string> output_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) {
    names.push_back(name);
  }
  return names;
}

std::unique_ptr<Sink> made_output(const std::string& name, const std::string& path) {
  const auto entry = makers().find(name);
  if (entry == makers().end()) {
    throw std::runtime_error("to '" + name + "': no such output");
  }
  return entry->second(path);
}

// Stands before an output and tells on stderr how far a merge is: `progress DONE TOTAL`, in events, some hundred times.
class Progress final : public Sink {
 public:
  explicit Progress(Sink& output) : output_(output) {}

  void begin(const MergedJob& job) override {
    for (const MergedThread& thread : job.threads) {
      total_ += thread.kept;
    }
    step_ = std::max<std::uint64_t>(total_ / kSteps, 1);
    output_.begin(job);
  }
  void event(const MergedEvent& event) override {
    output_.event(event);
    if (++done_ % step_ == 0) {
      std::fprintf(stderr, "progress %llu %llu\n", static_cast<unsigned long long>(done_),
                   static_cast<unsigned long long>(total_));
    }
  }
  void message(const MergedMessage& message) override { output_.message(message); }
  void gap(const MergedGap& gap) override { output_.gap(gap); }
  void end() override { output_.end(); }

 private:
  static constexpr std::uint64_t kSteps = 200;

  Sink& output_;
  std::uint64_t total_ = 0;
  std::uint64_t step_ = 1;
  std::uint64_t done_ = 0;
};

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNotTrusted = 3;

struct Request {
  std::string directory;
  std::string to;
  std::string out;
  std::size_t bins = 100;
  std::int64_t from = std::numeric_limits<std::int64_t>::min();  // ns since the start
  std::int64_t until = std::numeric_limits<std::int64_t>::max();
  bool progress = false;
};

void print(const nlohmann::ordered_json& line, bool to_errors = false) {
  std::ostream& stream = to_errors ? std::cerr : std::cout;
  stream << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  if (!stream) {
    throw std::runtime_error("stdout: cannot be written; free space there");
  }
}

int exit_code(const std::vector<std::string>& doubts) { return doubts.empty() ? 0 : kNotTrusted; }

int check(const Request& request) {
  const auto trace = open_trace(request.directory);
  Merged merged(*trace, 0);
  merge(*trace, nullptr, merged);
  print(check_report(*trace, merged));
  return exit_code(doubts(*trace, merged));
}

int stat(const Request& request) {
  const auto trace = open_trace(request.directory);
  Merged merged(*trace, request.bins);
  merge(*trace, nullptr, merged);
  print(stat_report(*trace, merged));
  return exit_code(doubts(*trace, merged));
}

int sync(const Request& request) {
  const auto trace = open_trace(request.directory);
  print(sync_report(*trace));
  return exit_code(clock_doubts(*trace));
}

int merge_to(const Request& request) {
  const auto trace = open_trace(request.directory);
  Merged merged(*trace, 0);
  const auto sink = made_output(request.to, request.out);
  const Request whole;
  Part part(*sink, request.from, request.until);
  Sink& output = request.from != whole.from || request.until != whole.until ? part : *sink;
  Progress line(output);
  merge(*trace, request.progress ? &line : &output, merged);
  print(check_report(*trace, merged, true), request.out == "-");
  return exit_code(doubts(*trace, merged));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reads recorded traces");
  app.require_subcommand(1);
  Request request;
  const auto command = [&](const char* name, const char* what) {
    CLI::App* subcommand = app.add_subcommand(name, what);
    subcommand->add_option("directory", request.directory, "the folder of a trace")->required();
    return subcommand;
  };
  CLI::App* checked = command("check", "says whether a trace is whole and its times can be trusted");
  CLI::App* counted = command("stat", "counts events by type, time, thread and rank");
  counted->add_option("--bins", request.bins, "intervals of time")->check(CLI::Range(1, 1000000));
  CLI::App* compared = command("sync", "shows the comparisons of clocks");
  CLI::App* merged = command("merge", "writes all events in one order");
  merged->add_option("--to", request.to, "what is written")->required()->check(CLI::IsMember(output_names()));
  merged->add_option("-o,--out", request.out, "where to")->required();
  merged->add_option("--from", request.from, "leave out what is before, ns since the start");
  merged->add_option("--until", request.until, "leave out what is after, ns since the start");
  merged->add_flag("--progress", request.progress, "report the progress on stderr: progress DONE TOTAL");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  // A reader that has gone is an error of a write.
  std::signal(SIGPIPE, SIG_IGN);
  defer_ending_signals();
  try {
    return checked->parsed()    ? check(request)
           : counted->parsed()  ? stat(request)
           : compared->parsed() ? sync(request)
                                : merge_to(request);
  } catch (const EndRequested& ended) {
    std::signal(ended.signal(), SIG_DFL);
    std::raise(ended.signal());
    return kFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kFailed;
  }
}
