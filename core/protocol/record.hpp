// What a phase gave, in the words of docs/reference/protocol.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "machine/machine.hpp"
#include "protocol/chunk_log.hpp"
#include "protocol/due_message.hpp"
#include "protocol/pool.hpp"
#include "protocol/request.hpp"

namespace elbowroom {

// One batch of messages: all of its iterations took `seconds`.
struct BatchTime {
  double seconds;
  std::int64_t iterations;
};

// What items/s must be multiplied with to be in the kernel's unit.
double rate_scale(const KernelInfo& kernel, int cursor);

// "comp" of a phase: rates of the chunks wholly inside the window. `flags` gets not_overlapped, too_short,
// validation_failed where they are due.
nlohmann::json computation_record(const std::vector<ComputingReport>& reports, const Window& window,
                                  const KernelInfo& kernel, int cursor, std::set<std::string>& flags);

// "comm" of a phase; `lanes` communication threads took part. Flags: too_short.
nlohmann::json communication_record(const std::vector<BatchTime>& batches, const Request& request, std::size_t lanes,
                                    double minimum_ns, std::set<std::string>& flags);

// "comm" of a phase whose messages were due at fixed times: `batches` has one value per message, `due` how late each one
// started. A single message cannot last 100 calls of the clock, so that all of them together must. Flags: too_short.
nlohmann::json due_record(const std::vector<DueMessage>& messages, const Request& request, double minimum_ns,
                          std::set<std::string>& flags);

// "bytes" of a repetition.
nlohmann::json bytes_record(const KernelInfo& kernel, int cursor);

// "comp" or "comm" of "pages": several ranges wanted on one node, counted together. Flag: wrong_node.
nlohmann::json pages_record(const std::vector<PageReport>& reports, std::set<std::string>& flags);

// "comm" of one-way messages: median and all `times` (us) in the order given, rounded to 0.1 ns; and its "clocks".
nlohmann::json one_way_record(const std::vector<double>& times, std::int64_t size);
nlohmann::json clocks_record(const ClockCheck& clocks);

// "overlap" of a repetition (docs/reference/protocol.md): seconds from the first arrival.
nlohmann::json overlap_record(const Visits& visits, double clock_bound);
// The phases of a repetition: B the operation alone, A the computation alone, AB both, where `comp` is the computation from
// the start of the operation to its own end and `total` is everything. Flags of all are added to each one's: too_short,
// where all iterations of a kind together last less than `least` seconds.
nlohmann::json overlap_phases(const Visits& visits, double least, const std::set<std::string>& flags);

// True for a flag that makes a phase void: a rule of docs/design/method.md was broken.
bool voids(const std::string& flag);

// ok, not_stable or void, from flags and steadiness.
std::string phase_status(bool steady, const std::set<std::string>& flags);

// True when the frequency of a computing core differs by more than 2 % between phases A and AB, or that of a communication
// core between B and AB (docs/design/method.md, rule 14); a core idle in a phase may have any frequency there.
bool frequency_moved(const nlohmann::json& phases, const Placement& placement);

// Steal of more than 1 % of the phase.
bool stolen(const nlohmann::json& observed, double seconds);

}  // namespace elbowroom
