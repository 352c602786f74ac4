#include "runtime/path.hpp"

#include <starpu_mpi.h>

#include <cstring>
#include <stdexcept>

namespace elbowroom::runtime {
namespace {

constexpr int kTag = 3;

void check(int failed, const char* what) {
  if (failed != 0) {
    throw std::runtime_error(std::string(what) + " failed (" + std::to_string(failed) + ")");
  }
}

class MpiPath : public Path {
 public:
  MpiPath(const Job& job, const Message& message)
      : message_(message),
        with_(job.messages()),
        peer_(1 - job.rank()),
        first_(job.rank() == 0),
        count_(static_cast<int>(message.size())) {
    check(starpu_data_acquire(message_.handle(), STARPU_RW), "starpu_data_acquire");
  }
  ~MpiPath() override { starpu_data_release(message_.handle()); }

  void send() override { MPI_Send(message_.data(), count_, MPI_BYTE, peer_, kTag, with_); }
  void receive() override { MPI_Recv(message_.data(), count_, MPI_BYTE, peer_, kTag, with_, MPI_STATUS_IGNORE); }

  void round_trips(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      if (first_) {
        MpiPath::send();
        MpiPath::receive();
      } else {
        MpiPath::receive();
        MpiPath::send();
      }
    }
  }

  void touch(const std::function<void(void*, std::size_t)>& task) override { task(message_.data(), message_.size()); }

 private:
  const Message& message_;
  MPI_Comm with_;
  int peer_;
  bool first_;
  int count_;
};

class StarpuPath : public Path {
 public:
  StarpuPath(const Job& job, const Message& message)
      : message_(message), peer_(1 - job.rank()), first_(job.rank() == 0) {}

  void send() override {
    starpu_mpi_req request = nullptr;
    check(starpu_mpi_isend(message_.handle(), &request, peer_, kTag, MPI_COMM_WORLD), "starpu_mpi_isend");
    check(starpu_mpi_wait(&request, MPI_STATUS_IGNORE), "starpu_mpi_wait");
  }
  void receive() override {
    starpu_mpi_req request = nullptr;
    check(starpu_mpi_irecv(message_.handle(), &request, peer_, kTag, MPI_COMM_WORLD), "starpu_mpi_irecv");
    check(starpu_mpi_wait(&request, MPI_STATUS_IGNORE), "starpu_mpi_wait");
  }

  void round_trips(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      if (first_) {
        StarpuPath::send();
        StarpuPath::receive();
      } else {
        StarpuPath::receive();
        StarpuPath::send();
      }
    }
  }

  void touch(const std::function<void(void*, std::size_t)>& task) override {
    check(starpu_data_acquire(message_.handle(), STARPU_RW), "starpu_data_acquire");
    task(starpu_data_get_local_ptr(message_.handle()), message_.size());
    starpu_data_release(message_.handle());
  }

 private:
  const Message& message_;
  int peer_;
  bool first_;
};

}  // namespace

Message::Message(std::size_t size, int node) : size_(size), arena_(size, node) {
  std::memset(arena_.data(), 1, size);  // touched first by the thread that will pass it on
  starpu_vector_data_register(&handle_, STARPU_MAIN_RAM, reinterpret_cast<std::uintptr_t>(arena_.data()),
                              static_cast<std::uint32_t>(size), 1);
}

Message::~Message() { starpu_data_unregister(handle_); }

std::unique_ptr<Path> by_mpi(const Job& job, const Message& message) { return std::make_unique<MpiPath>(job, message); }

std::unique_ptr<Path> by_starpu(const Job& job, const Message& message) {
  return std::make_unique<StarpuPath>(job, message);
}

}  // namespace elbowroom::runtime
