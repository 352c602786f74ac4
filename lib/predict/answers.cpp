#include "answers.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "flow.hpp"
#include "threshold.hpp"

namespace elbowroom::predict {
namespace {

// Evaluations of FLOW while loading, at most, at about 0.4 us each: less than a second, and 32 MB of answers.
constexpr std::size_t kMostEvaluations = 2'000'000;

constexpr const char* kNames[] = {"flow", "robust", "threshold"};  // best first, as Kind

bool has(const ModelFile& file, Kind kind) {
  switch (kind) {
    case Kind::flow: return file.flow.has_value();
    case Kind::robust: return file.robust.has_value();
    case Kind::threshold: return file.threshold.has_value();
  }
  return false;
}

Kind chosen(const ModelFile& file, const std::string& wanted) {
  std::string there;
  for (const Kind kind : {Kind::flow, Kind::robust, Kind::threshold}) {
    const char* name = kNames[static_cast<int>(kind)];
    if (has(file, kind)) {
      if (wanted.empty() || wanted == name) {
        return kind;
      }
      there += (there.empty() ? "" : ", ") + std::string(name);
    }
  }
  if (there.empty()) {
    throw Refusal(ENOTSUP, "there is no model in the file; fit it again: elbowroom fit RUN -o M.json");
  }
  const bool exists = std::find(std::begin(kNames), std::end(kNames), wanted) != std::end(kNames);
  throw Refusal(exists ? ENOTSUP : EINVAL, "model '" + wanted + "' is not in the file; it has: " + there);
}

constexpr unsigned flag(bool set, unsigned value) { return set ? value : 0U; }

elbow_predict_interval around(double value, double half_width) {
  return {value, std::max(value * (1 - half_width), 0.0), value * (1 + half_width)};
}

// The half-widths for a placement, and whether they were estimated on others only.
struct Bands {
  Streams widths;
  bool samples_only;
};

Bands bands_of(const ThresholdPart& part, const std::optional<Streams>& own) {
  if (own) {
    return {*own, false};
  }
  if (part.other_bands) {
    return {*part.other_bands, false};
  }
  Streams widest{};
  for (const std::optional<Streams>* side : {&part.local_bands, &part.remote_bands}) {
    for (int k = 0; side->has_value() && k < kStreamCount; ++k) {
      widest[k] = std::max(widest[k], (**side)[k]);
    }
  }
  return {widest, true};
}

}  // namespace

Answers::Answers(File file, const std::string& model, double size)
    : file_(std::move(file)), kind_(chosen(*file_, model)), size_(size > 0 ? size : file_->message_size) {
  if (kind_ == Kind::flow) {
    loads_.emplace(*file_);
    tabulate_flow();
  } else {
    tabulate_threshold(kind_ == Kind::threshold ? *file_->threshold : *file_->robust);
  }
}

const char* Answers::model() const { return kNames[static_cast<int>(kind_)]; }

int Answers::placement_index(int comp_node, int comm_node) const {
  const bool comp_local = comp_node < file_->machine.numa_per_socket;
  const bool comm_local = comm_node < file_->machine.numa_per_socket;
  if (comp_node != comm_node) {
    return 4 + 2 * (comp_local ? 1 : 0) + (comm_local ? 1 : 0);
  }
  const bool sampled = comp_node == 0 || comp_node == file_->machine.numa_per_socket;
  return 2 * (sampled ? 1 : 0) + (comp_local ? 1 : 0);
}

Answers::Placement Answers::placement(int index) {
  if (index >= 4) {
    return {(index & 2) != 0, (index & 1) != 0, false, false};
  }
  const bool local = (index & 1) != 0;
  return {local, local, true, (index & 2) != 0};
}

std::size_t Answers::place(int index, int n, int n_other) const {
  const auto cores = static_cast<std::size_t>(file_->machine.cores_first_socket) + 1;
  return (static_cast<std::size_t>(index) * rows_other_ + n_other) * cores + n;
}

unsigned Answers::flags(const Placement& where, int n, int n_other) const {
  const Calibration& known = file_->calibration;
  const bool cores = (n == 0 || (known.n_low <= n && n <= known.n_high)) && n_other <= known.n_other_high;
  const bool beyond = size_ != file_->message_size && (size_ < file_->sizes->smallest || size_ > file_->sizes->largest);
  const bool inside = cores && !beyond && known.comp_measured[where.comp_local ? 1 : 0] &&
                      known.comm_measured[where.comm_local ? 1 : 0];
  return flag(!inside, ELBOW_PREDICT_EXTRAPOLATED) | flag(file_->machine.is_virtual, ELBOW_PREDICT_VIRTUAL);
}

void Answers::tabulate_flow() {
  const int cores = file_->machine.cores_first_socket;
  cores_other_ = file_->machine.sockets > 1 ? cores : 0;
  by_loads_ = size_ != file_->message_size && loads_->knows_sizes();
  flow_ = *file_->flow;
  for (std::vector<double>& vector : flow_.vectors) {
    for (double* comm : {&vector[flow_index("comm_first")], &vector[flow_index("comm_second")]}) {
      *comm = by_loads_ ? *comm : bandwidth_at_size(*file_, *comm, size_);
    }
  }
  const std::size_t of_a_row = kPlacementCount * (static_cast<std::size_t>(cores) + 1) * flow_.vectors.size();
  const std::size_t rows = kMostEvaluations / of_a_row;
  rows_other_ = rows > static_cast<std::size_t>(cores_other_) ? cores_other_ + 1 : 1;
  table_.resize(place(kPlacementCount, 0, 0));
  for (int index = 0; index < kPlacementCount; ++index) {
    known_[index] = true;
    for (int n_other = 0; n_other < rows_other_; ++n_other) {
      for (int n = 0; n <= cores; ++n) {
        // What is sampled or not does not matter to FLOW: the second pair of same nodes is the first again.
        table_[place(index, n, n_other)] = index == 2 || index == 3 ? table_[place(index - 2, n, n_other)]
                                                                    : flow_prediction(placement(index), n, n_other);
      }
    }
  }
}

elbow_predict_result Answers::flow_prediction(const Placement& where, int n, int n_other) const {
  if (by_loads_) {
    // Any nodes of that placement: where a socket has one node only, nobody asks for two in it.
    const int far = file_->machine.numa_per_socket;
    const int comp_node = where.comp_local ? 0 : far;
    const int first = where.comm_local ? 0 : far;
    return load_prediction(n, n_other, comp_node, !where.same && first == comp_node ? first + 1 : first);
  }
  const FlowCase situation = {
      .local = static_cast<double>(where.comp_local ? n : n_other),
      .remote = static_cast<double>(where.comp_local ? n_other : n),
      .same = where.same,
      .beside = !where.same && where.comp_local == where.comm_local,
      .second = !where.comm_local,
  };
  const auto [comp_alone, comm_alone, comp, comm] = flow_answer(flow_, situation);
  return {sizeof(elbow_predict_result), comp_alone, comm_alone, comp, comm, flags(where, n, n_other)};
}

elbow_predict_result Answers::load_prediction(int n, int n_other, int comp_node, int comm_node) const {
  elbow_predict_group groups[2];
  std::size_t count = 0;
  for (const auto& [socket, cores] : {std::pair{0, n}, std::pair{1, n_other}}) {
    if (cores > 0) {
      groups[count++] = {socket, comp_node, cores, 0.0};
    }
  }
  const elbow_predict_messages messages = {sizeof(elbow_predict_messages), comm_node, ELBOW_PREDICT_RECEIVE, 0, 1};
  elbow_predict_load_result result{};
  loads_->answer({sizeof(elbow_predict_load), groups, count, &messages, nullptr, 0}, size_, result);
  return {sizeof(elbow_predict_result), result.comp_alone,    result.comm_alone,
          result.comp_together,         result.comm_together, result.flags};
}

void Answers::tabulate_threshold(ThresholdPart part) {
  for (std::optional<Parameters>* side : {&part.local, &part.remote}) {
    if (side->has_value()) {
      (*side)->b_comm_seq = bandwidth_at_size(*file_, (*side)->b_comm_seq, size_);
    }
  }
  const int cores = file_->machine.cores_first_socket;
  table_.resize(place(kPlacementCount, 0, 0));
  for (int index = 0; index < kPlacementCount; ++index) {
    const Placement where = placement(index);
    const std::vector<ThresholdAnswer> result =
        threshold_curve(part, {where.comp_local, where.comm_local, where.same}, cores);
    known_[index] = !result.empty();
    const std::optional<Streams>& own = where.comp_local ? part.local_bands : part.remote_bands;
    const Bands bands = bands_of(part, where.sampled ? own : std::nullopt);
    for (int n = 0; n < static_cast<int>(result.size()); ++n) {
      const ThresholdAnswer& one = result[n];
      const auto stream = [&](int k) { return around(one.streams[k], bands.widths[k]); };
      const unsigned flag_bits = flags(where, n, 0) | flag(one.repaired, ELBOW_PREDICT_REPAIRED) |
                                 flag(bands.samples_only, ELBOW_PREDICT_SAMPLES_ONLY);
      table_[place(index, n, 0)] = {
          sizeof(elbow_predict_result), stream(0), stream(1), stream(2), stream(3), flag_bits};
    }
  }
}

bool Answers::answer(int n, int n_other, int comp_node, int comm_node, elbow_predict_result& prediction) const {
  if (by_loads_ && std::max(comp_node, comm_node) >= 2 * file_->machine.numa_per_socket) {
    // FLOW for loads tells a third socket from the second one.
    prediction = load_prediction(n, n_other, comp_node, comm_node);
    return true;
  }
  const int index = placement_index(comp_node, comm_node);
  if (!known_[index]) {
    return false;
  }
  prediction = n_other < rows_other_ ? table_[place(index, n, n_other)] : flow_prediction(placement(index), n, n_other);
  return true;
}

}  // namespace elbowroom::predict
