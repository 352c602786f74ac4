// All answers of one model of a file, computed while loading as far as they are few enough; immutable afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elbowroom/predict.h"
#include "flow_loads.hpp"
#include "model_file.hpp"

namespace elbowroom::predict {

enum class Kind { flow, robust, threshold };

class Answers {
 public:
  using File = std::shared_ptr<const ModelFile>;

  // `model`: which model answers; the empty string: the best one there is. `size`: bytes of a message, 0: those of the
  // calibration. Throws Refusal (ENOTSUP, EINVAL, EDOM).
  Answers(File file, const std::string& model, double size);

  const Shape& machine() const { return file_->machine; }
  const File& file() const { return file_; }
  const Calibration& calibration() const { return file_->calibration; }
  const char* model() const;
  double message_size() const { return size_; }
  int cores_other() const { return cores_other_; }

  // False where the model was fitted without such accesses. Cores and nodes must be those of the machine.
  bool answer(int n, int n_other, int comp_node, int comm_node, elbow_predict_result& prediction) const;

  // What answers loads where the model is FLOW, else nullptr.
  const FlowLoads* loads() const { return loads_ ? &*loads_ : nullptr; }

 private:
  // Placements that a model cannot tell apart share their answers.
  struct Placement {
    bool comp_local;
    bool comm_local;
    bool same;
    bool sampled;  // data of both on the node that the thesis' calibration measures
  };
  static constexpr int kPlacementCount = 8;

  int placement_index(int comp_node, int comm_node) const;
  static Placement placement(int index);
  std::size_t place(int index, int n, int n_other) const;

  void tabulate_flow();
  void tabulate_threshold(ThresholdPart part);
  elbow_predict_result flow_prediction(const Placement& where, int n, int n_other) const;
  elbow_predict_result load_prediction(int n, int n_other, int comp_node, int comm_node) const;
  unsigned flags(const Placement& where, int n, int n_other) const;

  File file_;
  Kind kind_;
  double size_;
  std::optional<FlowLoads> loads_;
  FlowPart flow_;          // for messages of that size, where no runs with loads tell of it
  bool by_loads_ = false;  // where they do
  int cores_other_ = 0;
  int rows_other_ = 1;
  std::vector<elbow_predict_result> table_;
  bool known_[kPlacementCount] = {};
};

// Any load, by whichever model answers; `elbowroom predict` refuses and flags the same loads.
// Throws Refusal: EINVAL for what the machine, or no machine, has; ENOTSUP for what the model has no runs for; EDOM where
// it was fitted without such accesses. Then `prediction` is as it was.
void answer_load(const Answers& answers, const elbow_predict_load& load, elbow_predict_load_result& prediction);

}  // namespace elbowroom::predict
