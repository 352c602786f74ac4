#include "flow_loads.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <memory_resource>

#include "flow_load.hpp"
#include "spread.hpp"

namespace elbowroom::predict {
namespace {

// Enough for a dozen groups and copies, which predict.h promises; what is more comes from the heap.
constexpr std::size_t kOnTheStack = 24 * 1024;

// Multiples of it modulo 1 are spread evenly however many there are.
constexpr double kGolden = 0.6180339887498949;

// What was not measured is neutral; a law of message sizes gives the latencies, evenly over its interval.
Extension extension_of(const ModelFile& file, const LoadPart* known) {
  Extension result;
  if (known != nullptr) {
    result = known->extension;
  } else {
    std::vector<double> row;
    for (const LoadName& one : kLoadNames) {
      row.push_back(one.neutral);
    }
    row.insert(row.end(), {1.0, 1.0});
    result.vectors.assign(file.flow->vectors.size(), row);
  }
  if (file.sizes && (known == nullptr || !known->has_latency)) {
    const std::size_t place = kLoadNames.size();
    for (std::size_t k = 0; k < result.vectors.size(); ++k) {
      const double step = std::fmod(static_cast<double>(k) * kGolden, 1.0);
      const double drawn = file.sizes->low + (file.sizes->high - file.sizes->low) * step;
      result.vectors[k][place] = k == 0 ? file.sizes->t0 : drawn;
    }
  }
  return result;
}

bool has_intensity(const elbow_predict_load& load) {
  return std::any_of(load.groups, load.groups + load.group_count,
                     [](const auto& group) { return group.intensity != 0; });
}

// More than one group of a socket.
bool crowded(const elbow_predict_load& load) {
  for (std::size_t k = 1; k < load.group_count; ++k) {
    for (std::size_t other = 0; other < k; ++other) {
      if (load.groups[other].socket == load.groups[k].socket) {
        return true;
      }
    }
  }
  return false;
}

double sum_of_counts(const elbow_predict_load& load, int socket) {
  double sum = 0;
  for (std::size_t k = 0; k < load.group_count; ++k) {
    sum += load.groups[k].socket == socket ? load.groups[k].count : 0;
  }
  return sum;
}

void check(const ModelFile& file, double value) {
  if (!(value >= 0) || !std::isfinite(value)) {
    throw Refusal(EDOM, "the model of " + file.machine.name +
                            " has no bandwidth for that load; fit it again: elbowroom fit RUN -o M.json");
  }
}

}  // namespace

FlowLoads::FlowLoads(const ModelFile& file)
    : file_(file),
      known_(file.flow->load ? &*file.flow->load : nullptr),
      extension_(extension_of(file, known_)),
      wider_(file.flow->discrepancy) {
  for (int k = 0; k < kStreamCount && known_ != nullptr; ++k) {
    wider_[k] = std::max(wider_[k], known_->discrepancy[k]);
  }
}

bool FlowLoads::knows_sizes() const { return known_ != nullptr && (known_->measured & asks_sizes) != 0; }

bool FlowLoads::knows(Question question) const {
  return (known_ != nullptr && (known_->measured & question) != 0) || (question == asks_sizes && file_.sizes);
}

// That of situations as FLOW was fitted, by who computes; that of other loads as they were, and never less.
const Streams& FlowLoads::discrepancy(const elbow_predict_load& load, double size) const {
  bool situation = load.copy_count == 0 && !crowded(load) && !has_intensity(load);
  std::array<bool, 2> computes{};  // remote, local cores
  for (std::size_t k = 0; k < load.group_count; ++k) {
    const elbow_predict_group& group = load.groups[k];
    situation = situation && group.socket < 2 && group.node == load.groups[0].node;
    const bool local = (group.node < file_.machine.numa_per_socket) == (group.socket == 0);
    computes[local ? 1 : 0] = computes[local ? 1 : 0] || group.count > 0;
  }
  if (load.messages != nullptr) {
    const elbow_predict_messages& messages = *load.messages;
    situation =
        situation && messages.direction == ELBOW_PREDICT_RECEIVE && messages.threads == 1 && size == file_.message_size;
  }
  return situation ? file_.flow->discrepancy_of(computes[1], computes[0]) : wider_;
}

bool FlowLoads::inside(const elbow_predict_load& load, double size) const {
  const Calibration& known = file_.calibration;
  const double n = sum_of_counts(load, 0);
  bool result = (n == 0 || (known.n_low <= n && n <= known.n_high)) && sum_of_counts(load, 1) <= known.n_other_high;
  const auto measured = [&](const std::array<bool, 2>& where, int node) {
    return where[node < file_.machine.numa_per_socket ? 1 : 0];
  };
  for (std::size_t k = 0; k < load.group_count; ++k) {
    result = result && measured(known.comp_measured, load.groups[k].node);
    result = result && (known_ == nullptr || load.groups[k].intensity <= known_->intensity_high);
  }
  if (load.messages == nullptr) {
    return result;
  }
  result = result && measured(known.comm_measured, load.messages->node);
  if (size == file_.message_size) {
    return result;
  }
  return result && (knows_sizes() ? known_->size_low <= size && size <= known_->size_high
                                  : file_.sizes && file_.sizes->smallest <= size && size <= file_.sizes->largest);
}

unsigned FlowLoads::flags(const elbow_predict_load& load, double size) const {
  unsigned result = 0;
  const auto flag = [&](bool set, unsigned value) { result |= set ? value : 0U; };
  const auto tell = [&](bool needed, Question question, unsigned value) { flag(needed && !knows(question), value); };
  flag(!inside(load, size), ELBOW_PREDICT_EXTRAPOLATED);
  flag(file_.machine.is_virtual, ELBOW_PREDICT_VIRTUAL);
  const elbow_predict_messages* messages = load.messages;
  tell(messages != nullptr && messages->direction == ELBOW_PREDICT_SEND, asks_send, ELBOW_PREDICT_SEND_UNKNOWN);
  tell(messages != nullptr && messages->direction == ELBOW_PREDICT_BOTH, asks_both, ELBOW_PREDICT_BOTH_UNKNOWN);
  tell(messages != nullptr && messages->threads > 1, asks_threads, ELBOW_PREDICT_THREADS_UNKNOWN);
  tell(load.copy_count > 0, asks_copies, ELBOW_PREDICT_COPIES_UNKNOWN);
  tell(crowded(load), asks_nodes, ELBOW_PREDICT_NODES_UNKNOWN);
  return result;
}

void FlowLoads::answer(const elbow_predict_load& load, double size, elbow_predict_load_result& prediction) const {
  std::array<std::byte, kOnTheStack> room;
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
  const std::size_t count = kStreamCount + load.group_count + load.copy_count;
  std::pmr::vector<double> best(count, &memory);
  std::pmr::vector<double> drawn(count, &memory);
  std::pmr::vector<Spread> spreads(count, &memory);
  LoadLaw law(file_.machine, extension_, file_.message_size, load, size == file_.message_size ? 0.0 : size, &memory);
  const std::vector<std::vector<double>>& rows = file_.flow->vectors;
  evaluate_draws(rows.size(), best, drawn, spreads, [&](std::size_t row, std::span<double> rates) {
    law.rates(rows[row], extension_.vectors[row], rates);
  });
  std::for_each(best.begin(), best.end(), [&](double rate) { check(file_, rate); });
  const Streams& missed = discrepancy(load, size);
  const auto interval = [&](std::size_t k, double discrepancy) { return spreads[k].around(best[k], discrepancy); };
  prediction.comp_alone = interval(0, missed[0]);
  prediction.comm_alone = interval(1, missed[1]);
  prediction.comp_together = interval(2, missed[2]);
  prediction.comm_together = interval(3, missed[3]);
  for (std::size_t k = 0; k < load.group_count && prediction.groups != nullptr; ++k) {
    prediction.groups[k] = interval(kStreamCount + k, missed[2]);
  }
  for (std::size_t k = 0; k < load.copy_count && prediction.copies != nullptr; ++k) {
    prediction.copies[k] = interval(kStreamCount + load.group_count + k, missed[3]);
  }
  prediction.flags = flags(load, size);
}

}  // namespace elbowroom::predict
