// All answers of one model of a file, computed while loading as far as they are few enough; immutable afterwards.
#pragma once

#include <string>
#include <vector>

#include "elbowroom/predict.h"
#include "model_file.hpp"

namespace elbowroom::predict {

enum class Kind { flow, robust, threshold };

class Answers {
 public:
  // `model`: which model answers; the empty string: the best one there is. Throws FileError (ENOTSUP, EINVAL).
  Answers(ModelFile file, const std::string& model);

  const Shape& machine() const { return file_.machine; }
  const ModelFile& file() const { return file_; }
  const Calibration& calibration() const { return file_.calibration; }
  const char* model() const;
  int cores_other() const { return cores_other_; }

  // False where the model was fitted without such accesses. Cores and nodes must be those of the machine.
  bool answer(int n, int n_other, int comp_node, int comm_node, elbow_prediction& prediction) const;

  // How many numbers of cores of the second socket are in the table, 0 included.
  int tabled_other() const { return rows_other_; }

 private:
  // Placements that a model cannot tell apart share their answers.
  struct Placement {
    bool comp_local;
    bool comm_local;
    bool same;
    bool sampled;  // data of both on the node that the thesis' calibration measures
  };
  static constexpr int placement_count = 8;

  int placement_index(int comp_node, int comm_node) const;
  static Placement placement(int index);
  std::size_t place(int index, int n, int n_other) const;

  void tabulate_flow();
  void tabulate_threshold(const ThresholdPart& part);
  elbow_prediction flow_prediction(const Placement& where, int n, int n_other) const;
  unsigned flags(const Placement& where, int n, int n_other) const;

  ModelFile file_;
  Kind kind_;
  int cores_other_ = 0;
  int rows_other_ = 1;
  std::vector<elbow_prediction> table_;
  bool known_[placement_count] = {};
};

}  // namespace elbowroom::predict
