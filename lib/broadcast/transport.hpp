// How a rank reaches the others. The engine sends control messages, which are copied and arrive in the order of each pair of
// ranks, and data, which go from buffer to buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace elbowroom::broadcast {

using Ticket = std::uint64_t;  // the engine's name for a transfer of data

struct Happening {
  enum class Kind { kControl, kSent, kReceived, kLost, kWake };
  Kind kind = Kind::kControl;
  int peer = -1;                     // kControl: the sender; kLost: the rank that is gone
  Ticket ticket = 0;                 // kSent: the buffer is free; kReceived: it holds the data
  std::span<const std::byte> bytes;  // kControl: valid until the next poll
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual double now() = 0;                    // s
  virtual std::uint32_t channels() const = 0;  // data may be sent on channels 0 to this less 1

  virtual void send_control(int peer, std::span<const std::byte> bytes) = 0;
  // Transfers between a pair on one channel match in order.
  virtual void send_data(int peer, std::uint32_t channel, std::span<const std::byte> data, Ticket ticket) = 0;
  virtual void receive_data(int peer, std::uint32_t channel, std::span<std::byte> data, Ticket ticket) = 0;
  // Gives a receive up: its buffer is not written any more, and its ticket does not happen.
  virtual void cancel(Ticket ticket) = 0;
  // kWake happens at that time (s), or somewhat later. An earlier request that has not happened yet may be forgotten.
  virtual void wake(double at) = 0;
  // The next thing that happened; false where there is none.
  virtual bool poll(Happening& happening) = 0;
};

}  // namespace elbowroom::broadcast
