#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "answers.hpp"

namespace elbowroom::predict {
namespace {

std::string written(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// A field of the load, of one of its groups or copies where it has an index; written only when it is refused.
struct Field {
  std::string_view table;
  std::string_view name;
  std::ptrdiff_t index = -1;

  std::string text() const {
    const std::string place = index < 0 ? "" : "[" + std::to_string(index) + "]";
    return std::string(table) + place + "." + std::string(name);
  }
};

Field of_group(std::size_t index, std::string_view name) {
  return {"groups", name, static_cast<std::ptrdiff_t>(index)};
}
Field of_copy(std::size_t index, std::string_view name) { return {"copies", name, static_cast<std::ptrdiff_t>(index)}; }

[[noreturn]] void refuse_value(const Field& field, const std::string& value, const std::string& why) {
  throw Refusal(EINVAL, field.text() + " " + value + ": " + why);
}

void check_within(const Shape& machine, const Field& field, int value, int count, const char* what) {
  if (value < 0 || value >= count) {
    const std::string last = std::to_string(count - 1);
    refuse_value(field, std::to_string(value),
                 machine.name + " has " + std::to_string(count) + " " + what + (count > 1 ? "s" : "") +
                     (count > 1 ? "; ask for 0 to " + last : "; ask for 0"));
  }
}

void check_positive(const Field& field, int value, const char* what) {
  if (value < 1) {
    refuse_value(field, std::to_string(value), std::string("is not a number of ") + what + "; give 1 or more");
  }
}

void check_groups(const Shape& machine, const elbow_predict_load& load) {
  for (std::size_t k = 0; k < load.group_count; ++k) {
    const elbow_predict_group& group = load.groups[k];
    check_within(machine, of_group(k, "socket"), group.socket, machine.sockets, "socket");
    check_within(machine, of_group(k, "node"), group.node, machine.nodes(), "NUMA node");
    check_positive(of_group(k, "count"), group.count, "computing cores");
    if (!(group.intensity >= 0) || !std::isfinite(group.intensity)) {
      refuse_value(of_group(k, "intensity"), written(group.intensity),
                   "is not an arithmetic intensity; give flop/B, 0 or more");
    }
    double cores = 0;
    for (std::size_t other = 0; other <= k; ++other) {
      cores += load.groups[other].socket == group.socket ? load.groups[other].count : 0;
    }
    if (cores > machine.cores_first_socket) {
      const std::string most = std::to_string(machine.cores_first_socket);
      refuse_value(of_group(k, "count"), std::to_string(group.count),
                   machine.name + " has " + most + " cores on socket " + std::to_string(group.socket) +
                       "; ask for 1 to " + most + " there in all");
    }
  }
}

void check_messages(const Shape& machine, const elbow_predict_messages& messages) {
  check_within(machine, {"messages", "node"}, messages.node, machine.nodes(), "NUMA node");
  if (messages.direction < ELBOW_PREDICT_RECEIVE || messages.direction > ELBOW_PREDICT_BOTH) {
    refuse_value({"messages", "direction"}, std::to_string(messages.direction),
                 "is not a direction; one of ELBOW_PREDICT_RECEIVE, ELBOW_PREDICT_SEND, ELBOW_PREDICT_BOTH");
  }
  check_positive({"messages", "threads"}, messages.threads, "communication threads");
}

void check_load(const Shape& machine, const elbow_predict_load& load) {
  if ((load.group_count > 0 && load.groups == nullptr) || (load.copy_count > 0 && load.copies == nullptr)) {
    throw Refusal(EINVAL,
                  load.groups == nullptr && load.group_count > 0 ? "load.groups is NULL" : "load.copies is NULL");
  }
  check_groups(machine, load);
  if (load.messages != nullptr) {
    check_messages(machine, *load.messages);
  }
  for (std::size_t k = 0; k < load.copy_count; ++k) {
    check_within(machine, of_copy(k, "node"), load.copies[k].node, machine.nodes(), "NUMA node");
    if (!(load.copies[k].demand > 0) || !std::isfinite(load.copies[k].demand)) {
      refuse_value(of_copy(k, "demand"), written(load.copies[k].demand),
                   "is not a bandwidth; give a positive number of MB/s");
    }
  }
}

// Refuses questions that FLOW has no runs for.
void check_known(const ModelFile& file, const FlowLoads& known, const elbow_predict_load& load, double size) {
  for (std::size_t k = 0; k < load.group_count; ++k) {
    if (load.groups[k].intensity > 0 && !known.knows(asks_intensity)) {
      throw Refusal(ENOTSUP, of_group(k, "intensity").text() + " " + written(load.groups[k].intensity) +
                                 ": the model of " + file.machine.name +
                                 " knows no other arithmetic intensity than that of its calibration; fit it with the "
                                 "plan `intensity` too: elbowroom run intensity --out RUN2; elbowroom fit RUN RUN2");
    }
  }
  if (load.messages != nullptr && size != file.message_size && !known.knows(asks_sizes)) {
    throw Refusal(ENOTSUP, "messages.bytes " + written(size) + ": is not the size of the model, " +
                               written(file.message_size) +
                               " B, and it knows no other; fit it with the plan `sizes` too: elbowroom run sizes --out "
                               "RUN2; elbowroom fit RUN RUN2");
  }
}

// One group of cores of the first socket, or none, and messages that one thread receives, or none.
void check_threshold(const Answers& answers, const elbow_predict_load& load) {
  bool plain = load.copy_count == 0 && load.group_count <= 1;
  plain = plain && (load.group_count == 0 || load.groups[0].intensity == 0);
  plain = plain && (load.messages == nullptr ||
                    (load.messages->direction == ELBOW_PREDICT_RECEIVE && load.messages->threads == 1));
  if (!plain) {
    throw Refusal(ENOTSUP,
                  std::string("the ") + answers.model() +
                      " model answers one group of cores at the calibrated intensity and messages that one "
                      "thread receives; fit FLOW to a run of the machine: elbowroom run model; elbowroom fit RUN");
  }
  if (load.group_count > 0 && load.groups[0].socket != 0) {
    throw Refusal(ENOTSUP, "groups[0].socket " + std::to_string(load.groups[0].socket) + ": the " + answers.model() +
                               " model of " + answers.machine().name +
                               " knows computing cores of the first socket only; fit FLOW to a run of the machine");
  }
}

void answer_threshold(const Answers& answers, const elbow_predict_load& load, double size,
                      elbow_predict_load_result& prediction) {
  if (load.messages == nullptr) {
    size = answers.file()->message_size;
  }
  if (size != answers.message_size()) {
    answer_threshold(Answers(answers.file(), answers.model(), size), load, size, prediction);
    return;
  }
  const bool computes = load.group_count > 0;
  const int n =
      computes ? load.groups[0].count : 1;  // without cores nobody loses: one core's alone is what messages reach
  const int other = load.messages == nullptr ? 0 : load.messages->node;
  const int comp_node = computes ? load.groups[0].node : other;
  const int comm_node = load.messages == nullptr ? comp_node : other;
  elbow_predict_result result;
  if (!answers.answer(n, 0, comp_node, comm_node, result)) {
    throw Refusal(EDOM, "the load: the " + std::string(answers.model()) + " model of " + answers.machine().name +
                            " was calibrated without such accesses");
  }
  constexpr elbow_predict_interval kNone = {0, 0, 0};
  const bool communicates = load.messages != nullptr;
  prediction.comp_alone = computes ? result.comp_alone : kNone;
  prediction.comm_alone = communicates ? result.comm_alone : kNone;
  prediction.comp_together = !computes ? kNone : communicates ? result.comp_together : result.comp_alone;
  prediction.comm_together = !communicates ? kNone : computes ? result.comm_together : result.comm_alone;
  prediction.flags = result.flags;
  if (computes && prediction.groups != nullptr) {
    prediction.groups[0] = prediction.comp_together;
  }
}

}  // namespace

void answer_load(const Answers& answers, const elbow_predict_load& load, elbow_predict_load_result& prediction) {
  check_load(answers.machine(), load);
  double size = answers.message_size();
  if (load.messages != nullptr && load.messages->bytes > 0) {
    size = static_cast<double>(load.messages->bytes);
  }
  if (answers.loads() == nullptr) {
    check_threshold(answers, load);
    answer_threshold(answers, load, size, prediction);
    return;
  }
  check_known(*answers.file(), *answers.loads(), load, size);
  answers.loads()->answer(load, size, prediction);
}

}  // namespace elbowroom::predict
