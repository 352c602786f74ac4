#include "diffusion/together.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "common/complete.hpp"
#include "diffusion/config.hpp"

namespace elbowroom::diffusion {
namespace {

using nlohmann::json;

std::string from(const Job& job, std::string text, int rank) {
  auto length = static_cast<std::uint64_t>(text.size());
  MPI_Bcast(&length, 1, MPI_UINT64_T, rank, job.headers());
  text.resize(length);
  MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, rank, job.headers());
  return text;
}

}  // namespace

std::string from_first(const Job& job, std::string text) { return from(job, std::move(text), 0); }

void together(const Job& job, const std::function<void()>& task) {
  json failed;
  try {
    task();
  } catch (const RequestError& error) {
    failed = error_fields(error);
  } catch (const std::exception& error) {
    failed = error_fields(RequestError("", "", error.what(), "look at the machine, then try again", "machine"));
  }
  program::barrier(job.headers(), program::Waiting::sleep);
  const int own = failed.is_null() ? job.size() : job.rank();
  int first = job.size();
  MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, job.headers());
  if (first == job.size()) {
    return;
  }
  throw error_of_rank(json::parse(from(job, failed.dump(), first)), first,
                      job.hosts()[static_cast<std::size_t>(first)]);
}

}  // namespace elbowroom::diffusion
