// FLOW's answers to loads: best values, intervals, flags; the same numbers as those of `elbowroom predict`.
#pragma once

#include "elbowroom/predict.h"
#include "model_file.hpp"

namespace elbowroom::predict {

class FlowLoads {
 public:
  // `file`: with FLOW; it must outlive this.
  explicit FlowLoads(const ModelFile& file);

  // Whether messages of other sizes than the calibrated one were measured beside computations too.
  bool knows_sizes() const;

  // Whether the model has runs for those questions (bits of Question), or in any case of sizes a law.
  bool knows(Question question) const;

  // `size`: bytes of a message. Fills everything, the load's groups and copies where the caller wants them. Nothing is
  // checked but what comes out: throws Refusal (EDOM) where that is not a bandwidth. Allocates for loads of many groups only.
  void answer(const elbow_predict_load& load, double size, elbow_predict_load_result& prediction) const;

 private:
  unsigned flags(const elbow_predict_load& load, double size) const;
  bool inside(const elbow_predict_load& load, double size) const;
  const Streams& discrepancy(const elbow_predict_load& load, double size) const;

  const ModelFile& file_;
  const LoadPart* known_;
  Extension extension_;
  Streams wider_;  // discrepancy of loads that are no situations
};

}  // namespace elbowroom::predict
