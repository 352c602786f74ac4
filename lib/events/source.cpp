#include "events/source.hpp"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace elbowroom::events {

Source::Source(const std::string& path)
    : file_(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) {
    throw Declined(path + ": " + std::strerror(errno));
  }
  std::string magic(2, '\0');
  magic.resize(read(reinterpret_cast<std::uint8_t*>(magic.data()), magic.size()));
  compressed_ = magic == "\x1f\x8b";
  first_ = magic;
  if (compressed_) {
    thread_ = std::thread([this] { inflate(); });
  }
}

Source::~Source() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ::close(file_);
}

bool Source::append_to(std::string& buffer) {
  if (!compressed_) {
    const std::size_t before = buffer.size();
    buffer.resize(before + kBlock);
    const std::size_t count = read(reinterpret_cast<std::uint8_t*>(buffer.data() + before), kBlock);
    buffer.resize(before + count);
    return count > 0;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !blocks_.empty() || done_; });
  if (blocks_.empty()) {
    return false;
  }
  const std::vector<char> block = std::move(blocks_.front());
  blocks_.pop_front();
  lock.unlock();
  changed_.notify_all();
  buffer.append(block.data(), block.size());
  return true;
}

std::size_t Source::read(std::uint8_t* to, std::size_t size) {
  std::size_t count = std::min(size, first_.size());
  std::memcpy(to, first_.data(), count);
  first_.erase(0, count);
  while (count < size) {
    const ssize_t got = ::read(file_, to + count, size - count);
    if (got < 0 && errno != EINTR) {
      throw Declined(std::strerror(errno));
    }
    if (got == 0) {
      break;
    }
    count += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return count;
}

void Source::inflate() {
  std::string failure;
  try {
    inflate_members();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  done_ = true;
  changed_.notify_all();
}

void Source::inflate_members() {
  std::vector<std::uint8_t> input(kBlock);
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  std::vector<char> block(kBlock);
  state.next_out = reinterpret_cast<std::uint8_t*>(block.data());
  state.avail_out = static_cast<std::uint32_t>(kBlock);
  while (true) {
    if (state.avail_in == 0) {
      state.next_in = input.data();
      state.avail_in = static_cast<std::uint32_t>(read(input.data(), input.size()));
      if (state.avail_in == 0) {
        break;
      }
    }
    if (state.block_state == ISAL_BLOCK_FINISH) {  // another member follows, or zeros that fill a tape's block
      while (state.avail_in > 0 && *state.next_in == 0) {
        ++state.next_in;
        --state.avail_in;
      }
      if (state.avail_in == 0) {
        continue;
      }
      std::uint8_t* const in = state.next_in;
      const std::uint32_t in_size = state.avail_in;
      std::uint8_t* const out = state.next_out;
      const std::uint32_t out_size = state.avail_out;
      isal_inflate_reset(&state);
      state.crc_flag = ISAL_GZIP;
      state.next_in = in;
      state.avail_in = in_size;
      state.next_out = out;
      state.avail_out = out_size;
    }
    if (isal_inflate(&state) != ISAL_DECOMP_OK) {
      throw Declined("is damaged (the compressed data cannot be read)");
    }
    if (state.avail_out == 0) {
      if (!hand_over(std::move(block), kBlock)) {
        return;
      }
      block = std::vector<char>(kBlock);
      state.next_out = reinterpret_cast<std::uint8_t*>(block.data());
      state.avail_out = static_cast<std::uint32_t>(kBlock);
    }
  }
  if (state.block_state != ISAL_BLOCK_FINISH) {
    throw Declined("ends early (the compressed data is cut)");
  }
  hand_over(std::move(block), kBlock - state.avail_out);
}

bool Source::hand_over(std::vector<char>&& block, std::size_t size) {
  block.resize(size);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return blocks_.size() < kWaiting || stopped_; });
  if (size > 0) {
    blocks_.push_back(std::move(block));
  }
  changed_.notify_all();
  return !stopped_;
}

}  // namespace elbowroom::events
