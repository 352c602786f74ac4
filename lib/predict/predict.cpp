// The C interface: checks arguments, turns exceptions into errno and a sentence.
#include "elbowroom/predict.h"

#include <cerrno>
#include <memory>
#include <string>

#include "answers.hpp"
#include "failure.hpp"
#include "loads.hpp"
#include "model_file.hpp"

struct elbow_model {
  elbowroom::predict::Answers answers;
};

namespace {

using elbowroom::predict::answered;
using elbowroom::predict::Answers;
using elbowroom::predict::fail;
using elbowroom::predict::guarded;
using elbowroom::predict::last_failure;
using elbowroom::predict::Refusal;
using elbowroom::predict::remember;
using elbowroom::predict::Shape;

elbow_model* new_model(std::string_view text, const char* model) {
  auto file = std::make_shared<const elbowroom::predict::ModelFile>(elbowroom::predict::read_model(text));
  return new elbow_model{Answers(std::move(file), model == nullptr ? "" : model, 0)};
}

int refuse_node(const Shape& machine, const char* field, int node) {
  return fail(EINVAL, "%s %d: %s has the NUMA nodes 0 to %d", field, node, machine.name.c_str(), machine.nodes() - 1);
}

}  // namespace

extern "C" {

elbow_model* elbow_predict_load(const char* path, const char* model) {
  if (path == nullptr) {
    remember(EINVAL, "path is NULL; name a model file");
    return nullptr;
  }
  return guarded([&] {
    const std::string text = elbowroom::predict::read_text(path);
    try {
      return new_model(text, model);
    } catch (const Refusal& error) {
      throw Refusal(error.code, std::string(path) + ": " + error.what());
    }
  });
}

elbow_model* elbow_predict_parse(const char* text, size_t length, const char* model) {
  if (text == nullptr) {
    remember(EINVAL, "text is NULL; give the content of a model file");
    return nullptr;
  }
  return guarded([&] { return new_model({text, length}, model); });
}

elbow_model* elbow_predict_at_size(const elbow_model* model, size_t message_size) {
  if (model == nullptr || message_size == 0) {
    remember(EINVAL, model == nullptr ? "model is NULL" : "message_size 0: messages have at least 1 B");
    return nullptr;
  }
  return guarded([&] {
    const Answers& answers = model->answers;
    return new elbow_model{Answers(answers.file(), answers.model(), static_cast<double>(message_size))};
  });
}

void elbow_predict_free(elbow_model* model) { delete model; }

int elbow_predict(const elbow_model* model, int n, int n_other, int comp_node, int comm_node,
                  elbow_prediction* prediction) {
  if (model == nullptr || prediction == nullptr) {
    return fail(EINVAL, "%s is NULL", model == nullptr ? "model" : "prediction");
  }
  const Answers& answers = model->answers;
  const Shape& machine = answers.machine();
  const char* name = machine.name.c_str();
  if (n < 0 || n > machine.cores_first_socket) {
    return fail(EINVAL, "n %d: %s has %d cores on its first socket", n, name, machine.cores_first_socket);
  }
  if (n_other < 0 || n_other > answers.cores_other()) {
    return answers.cores_other() == 0
               ? fail(EINVAL, "n_other %d: the %s model of %s knows computing cores of one socket only", n_other,
                      answers.model(), name)
               : fail(EINVAL, "n_other %d: %s has %d cores on its other socket", n_other, name, answers.cores_other());
  }
  if (comp_node < 0 || comp_node >= machine.nodes()) {
    return refuse_node(machine, "comp_node", comp_node);
  }
  if (comm_node < 0 || comm_node >= machine.nodes()) {
    return refuse_node(machine, "comm_node", comm_node);
  }
  return answered([&] {
    if (answers.answer(n, n_other, comp_node, comm_node, *prediction)) {
      return 0;
    }
    return fail(EDOM, "comp_node %d, comm_node %d: the %s model of %s was calibrated without such accesses", comp_node,
                comm_node, answers.model(), name);
  });
}

int elbow_predict_for_load(const elbow_model* model, const elbow_load* load, elbow_load_prediction* prediction) {
  if (model == nullptr || load == nullptr || prediction == nullptr) {
    return fail(EINVAL, "%s is NULL", model == nullptr ? "model" : load == nullptr ? "load" : "prediction");
  }
  return answered([&] {
    elbowroom::predict::answer_load(model->answers, *load, *prediction);
    return 0;
  });
}

int elbow_predict_machine(const elbow_model* model, elbow_machine* machine) {
  if (model == nullptr || machine == nullptr) {
    return fail(EINVAL, "%s is NULL", model == nullptr ? "model" : "machine");
  }
  const Shape& shape = model->answers.machine();
  *machine = {shape.name.c_str(),
              model->answers.model(),
              shape.cores_first_socket,
              model->answers.cores_other(),
              shape.sockets,
              shape.numa_per_socket,
              shape.nodes(),
              model->answers.message_size()};
  return 0;
}

int elbow_predict_node(const elbow_model* model, int os_node) {
  if (model == nullptr) {
    return fail(EINVAL, "model is NULL");
  }
  const std::vector<int>& nodes = model->answers.calibration().nodes;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node] == os_node) {
      return static_cast<int>(node);
    }
  }
  return fail(EINVAL, "os_node %d: the model of %s %s", os_node, model->answers.machine().name.c_str(),
              nodes.empty() ? "does not say how the system numbers its nodes" : "has no node of that number");
}

const char* elbow_predict_error(void) { return last_failure(); }

}  // extern "C"
