// The C interface: checks arguments, turns exceptions into errno and a sentence.
#include "elbowroom/predict.h"

#include <cerrno>
#include <memory>
#include <string>

#include "answers.hpp"
#include "c_interface.hpp"
#include "model_file.hpp"

struct elbow_predict_model {
  elbowroom::predict::Answers answers;
};

namespace {

using elbowroom::c_interface::check_size;
using elbowroom::c_interface::fail;
using elbowroom::c_interface::give;
using elbowroom::c_interface::guard;
using elbowroom::c_interface::last_error;
using elbowroom::c_interface::Refusal;
using elbowroom::c_interface::refuse_null;
using elbowroom::c_interface::taken;
using elbowroom::predict::Answers;
using elbowroom::predict::Shape;

elbow_predict_model* new_model(std::string_view text, const char* model) {
  auto file = std::make_shared<const elbowroom::predict::ModelFile>(elbowroom::predict::read_model(text));
  return new elbow_predict_model{Answers(std::move(file), model == nullptr ? "" : model, 0)};
}

void check_node(const Shape& machine, const char* field, int node) {
  if (node < 0 || node >= machine.nodes()) {
    throw Refusal(EINVAL, std::string(field) + " " + std::to_string(node) + ": " + machine.name +
                              " has the NUMA nodes 0 to " + std::to_string(machine.nodes() - 1));
  }
}

void check_situation(const Answers& answers, int n, int n_other, int comp_node, int comm_node) {
  const Shape& machine = answers.machine();
  if (n < 0 || n > machine.cores_first_socket) {
    throw Refusal(EINVAL, "n " + std::to_string(n) + ": " + machine.name + " has " +
                              std::to_string(machine.cores_first_socket) + " cores on its first socket");
  }
  const int others = answers.cores_other();
  if (n_other < 0 || n_other > others) {
    const std::string asked = "n_other " + std::to_string(n_other) + ": ";
    throw Refusal(EINVAL, others == 0
                              ? asked + "the " + answers.model() + " model of " + machine.name +
                                    " knows computing cores of one socket only"
                              : asked + machine.name + " has " + std::to_string(others) + " cores on its other socket");
  }
  check_node(machine, "comp_node", comp_node);
  check_node(machine, "comm_node", comm_node);
}

}  // namespace

extern "C" {

elbow_predict_model* elbow_predict_model_load(const char* path, const char* model) {
  return guard([&] {
    refuse_null(path, "path");
    const std::string text = elbowroom::predict::read_text(path);
    try {
      return new_model(text, model);
    } catch (const Refusal& error) {
      throw Refusal(error.code, std::string(path) + ": " + error.what());
    }
  });
}

elbow_predict_model* elbow_predict_model_parse(const char* text, size_t length, const char* model) {
  return guard([&] {
    refuse_null(text, "text");
    return new_model({text, length}, model);
  });
}

elbow_predict_model* elbow_predict_model_at_size(const elbow_predict_model* model, size_t message_size) {
  return guard([&] {
    refuse_null(model, "model");
    if (message_size == 0) {
      throw Refusal(EINVAL, "message_size 0: messages have at least 1 B");
    }
    const Answers& answers = model->answers;
    return new elbow_predict_model{Answers(answers.file(), answers.model(), static_cast<double>(message_size))};
  });
}

void elbow_predict_model_free(elbow_predict_model* model) { delete model; }

int elbow_predict(const elbow_predict_model* model, int n, int n_other, int comp_node, int comm_node,
                  elbow_predict_result* prediction) {
  return guard([&] {
    refuse_null(model, "model");
    check_size(prediction, "prediction");
    const Answers& answers = model->answers;
    check_situation(answers, n, n_other, comp_node, comm_node);
    elbow_predict_result result;
    if (!answers.answer(n, n_other, comp_node, comm_node, result)) {
      return fail(EDOM, "comp_node %d, comm_node %d: the %s model of %s was calibrated without such accesses",
                  comp_node, comm_node, answers.model(), answers.machine().name.c_str());
    }
    give(result, prediction);
    return 0;
  });
}

int elbow_predict_for_load(const elbow_predict_model* model, const elbow_predict_load* load,
                           elbow_predict_load_result* prediction) {
  return guard([&] {
    refuse_null(model, "model");
    elbow_predict_load asked = taken(load, "load");
    elbow_predict_messages messages;
    if (asked.messages != nullptr) {
      messages = taken(asked.messages, "messages");
      asked.messages = &messages;
    }
    elbow_predict_load_result result = taken(prediction, "prediction");
    elbowroom::predict::answer_load(model->answers, asked, result);
    give(result, prediction);
  });
}

int elbow_predict_model_machine(const elbow_predict_model* model, elbow_predict_machine* machine) {
  return guard([&] {
    refuse_null(model, "model");
    check_size(machine, "machine");
    const Shape& shape = model->answers.machine();
    give({sizeof(elbow_predict_machine), shape.name.c_str(), model->answers.model(), shape.cores_first_socket,
          model->answers.cores_other(), shape.sockets, shape.numa_per_socket, shape.nodes(),
          model->answers.message_size()},
         machine);
  });
}

int elbow_predict_node(const elbow_predict_model* model, int os_node) {
  return guard([&] {
    refuse_null(model, "model");
    const std::vector<int>& nodes = model->answers.calibration().nodes;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node] == os_node) {
        return static_cast<int>(node);
      }
    }
    return fail(EINVAL, "os_node %d: the model of %s %s", os_node, model->answers.machine().name.c_str(),
                nodes.empty() ? "does not say how the system numbers its nodes" : "has no node of that number");
  });
}

const char* elbow_predict_error(void) { return last_error; }

const char* elbow_predict_version(void) { return ELBOWROOM_VERSION; }

}  // extern "C"
