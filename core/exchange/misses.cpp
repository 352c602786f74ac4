#include "exchange/misses.hpp"

namespace elbowroom {

MissAnswer misses_of(const Request& request) {
  const Extraneous& extraneous = *request.extraneous;
  MissQuestion question;
  question.sender = placement_of(request, 0, true).comm_cores.front();
  question.receiver = placement_of(request, 1, true).comm_cores.front();
  if (extraneous.who == Who::bystanders) {
    question.bystanders = request.first.comp_cores;
  }
  question.touching = {extraneous.touches(0), extraneous.touches(1), extraneous.who == Who::bystanders,
                       extraneous.writes,     extraneous.different,  extraneous.barrier};
  question.message = static_cast<std::uint64_t>(request.size);
  question.sizes = {static_cast<std::uint64_t>(extraneous.first), static_cast<std::uint64_t>(extraneous.step),
                    static_cast<std::uint64_t>(extraneous.count)};
  return modelled_misses(question);
}

}  // namespace elbowroom
