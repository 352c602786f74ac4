// What gpu-bench is asked to measure: a JSON document (docs/reference/gpu-bench.md).
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace elbowroom::gpu_bench {

// A request that is wrong as such: exit code 2.
class WrongRequest : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Work {
  enum class Kind { copy, cores, triad, gemm, chain, sm_copy, sm_idle, sm_target, messages, control };
  Kind kind = Kind::copy;
  std::size_t bytes = std::size_t{64} << 20U;  // copy, sm_copy: of a copy; triad, cores: of the working set (of a core)
  std::string direction = "h2d";               // copy: h2d, d2h, both, d2d; sm_copy: hbm, host
  std::string engine = "batch";                // copy d2d: batch (meant for the copy engine), plain
  int node = -1;                               // NUMA node of host memory; -1: anywhere
  std::string kernel = "triad";                // cores: as the probe names kernels
  std::vector<int> cores;
  int cursor = 1;                            // cores: as the probe has it (polling: most nops between two polls)
  int sms = 1;                               // sm_copy, sm_idle: k; sm_target: SMs that side a is planned without
  bool pairs = false;                        // sm_copy, sm_idle: blocks in clusters of two
  bool plan_others = false;                  // sm_copy, sm_idle: together, side a is planned for the other SMs
  double pace_mb_s = 0;                      // sm_copy: of all blocks; 0: unpaced
  std::size_t m = 8192, n = 8192, k = 8192;  // gemm
  int sm_target = 0;                         // gemm: SMs that it is planned for; 0 all
  int launches = 50;                         // chain: kernels of a unit
  bool latency = false;                      // messages: half round trips in us, not MB/s
  int core = -1, peer_core = -1;             // messages: of the threads of both ranks; -1: not bound
};

struct Case {
  std::string name;
  std::vector<Work> sides;  // one to three: a, b, c
  bool b_first = false;     // together, b starts before a
};

// s of a phase on a device: shorter ones differ by more than what is looked for. A stand-in has no such limit.
inline constexpr double kLeastPhase = 0.5;

struct Request {
  int device = 0;
  int repeat = 5;
  double seconds = kLeastPhase;        // of each phase
  double patience = 10;                // s until a load that does not get on is given up
  int core = -1;                       // of the thread that submits; -1: not bound
  std::vector<std::string> libraries;  // folders with NVRTC and cuBLASLt
  std::vector<Case> cases;
};

Request parse_request(const std::string& text);  // WrongRequest

// A case, called `where` in errors; `submitting`: the core of the thread that submits work, -1: not bound. WrongRequest.
Case read_case(const nlohmann::json& object, const std::string& where, int submitting);

}  // namespace elbowroom::gpu_bench
