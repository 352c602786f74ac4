#include "diffusion/together.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "diffusion/config.hpp"
#include "program/complete.hpp"

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
    failed = error_record(error);
  } catch (const std::exception& error) {
    failed = error_record(RequestError("", "", error.what(), "look at the machine, then try again", "machine"));
  }
  program::barrier(job.headers(), program::Waiting::sleep);
  const int own = failed.is_null() ? job.size() : job.rank();
  int first = job.size();
  MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, job.headers());
  if (first == job.size()) {
    return;
  }
  const json error = json::parse(from(job, failed.dump(), first)).at("error");
  const std::string where =
      first == 0 ? "" : fmt::format(" (rank {} on {})", first, job.hosts()[static_cast<std::size_t>(first)]);
  throw RequestError(error.at("field"), error.at("value"), error.at("message").get<std::string>() + where,
                     error.at("mend"), error.at("kind"));
}

}  // namespace elbowroom::diffusion
