#include "nic/transfers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include "nic/next.hpp"
#include "nic/said.hpp"

namespace elbowroom::nic {
namespace {

constexpr int kHighDescriptor = 500;  // programs count on low numbers

}  // namespace

void Transfers::open(const Settings& settings) {
  if (settings.log.empty()) {
    return;
  }
  mkdir(settings.log.c_str(), 0777);
  char name[64];
  std::snprintf(name, sizeof name, "/rank-%06d-%d.nic", settings.rank, static_cast<int>(getpid()));
  const std::string path = settings.log + name;
  const int opened = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (opened < 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  const int high = fcntl(opened, F_DUPFD_CLOEXEC, kHighDescriptor);
  file_ = high < 0 ? opened : high;
  if (high >= 0) {
    next().close(opened);
  }
  TransfersHeader header{{}, settings.rank, settings.node, getpid(), settings.nic.bandwidth, settings.nic.burst};
  std::memcpy(header.magic, kTransfersMagic, sizeof header.magic);
  if (next().write(file_, &header, sizeof header) != sizeof header) {
    throw std::system_error(errno, std::generic_category(), path);
  }
}

void Transfers::add(const Transfer& transfer) const {
  if (file_ >= 0 && next().write(file_, &transfer, sizeof transfer) < 0) {
    give_up("ELBOW_NIC_LOG cannot be written any more");
  }
}

}  // namespace elbowroom::nic
