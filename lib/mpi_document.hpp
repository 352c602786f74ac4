// For programs over MPI that get one JSON document, a line of rank 0's standard input, and print one.
#pragma once

#include <mpi.h>

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace elbowroom {

// The first line of rank 0's standard input, on all ranks: not every launcher tells where the input ends.
inline std::string read_line(int rank) {
  std::string text;
  if (rank == 0) std::getline(std::cin, text);
  auto size = static_cast<int>(text.size());
  MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(size));
  MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

// The program's exit code. `answer` is called on all ranks with the same text; what it returns, or {"error": …} where it
// throws, is rank 0's output. All ranks read the same text, and come to the same conclusion.
template <typename Answer>
int answer_document(int argc, char** argv, Answer answer) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string text = read_line(rank);
  nlohmann::json document;
  int code = 0;
  try {
    document = answer(text);
  } catch (const std::exception& error) {
    document = {{"error", error.what()}};
    code = 2;
  }
  if (rank == 0) std::cout << document.dump() << std::endl;
  MPI_Finalize();
  return code;
}

}  // namespace elbowroom
