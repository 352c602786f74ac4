#include "trace/outputs/otf2_archive.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "trace/outputs/whole_file.hpp"

namespace fs = std::filesystem;

namespace elbowroom::trace {
namespace {

constexpr std::uint64_t kChunkOfMany = 256 * 1024;  // the least that OTF2 takes
constexpr std::uint64_t kChunkOfFew = 1024 * 1024;
constexpr std::size_t kMany = 64;
constexpr std::uint64_t kDefinitionsChunk = 4 * 1024 * 1024;
constexpr std::size_t kMostChunks = 2;

OTF2_FlushType flush(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) { return OTF2_FLUSH; }

// The library would print to stderr what the exception says.
OTF2_ErrorCode say_nothing(void*, const char*, std::uint64_t, const char*, OTF2_ErrorCode code, const char*, va_list) {
  return code;
}

}  // namespace

Otf2Archive::Otf2Archive(std::string path) : path_(std::move(path)) {
  std::error_code failed;
  while (path_.size() > 1 && path_.back() == '/') {
    path_.pop_back();
  }
  const fs::file_status status = fs::status(path_, failed);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw std::runtime_error("out '" + path_ +
                             "': is not a folder, and an archive of OTF2 is one; choose another name");
  }
  if (fs::exists(status) && !fs::is_empty(path_, failed)) {
    cannot_write(path_, EEXIST);
  }
  target_ = target_of(path_);
  permissions_ = fs::exists(status) ? status.permissions() : fs::perms::unknown;
  std::string name = target_ + ".part-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    cannot_write(path_, errno);
  }
  temporary_ = name;
  OTF2_Error_RegisterCallback(&say_nothing, nullptr);
}

Otf2Archive::~Otf2Archive() {
  if (archive_ != nullptr) {
    OTF2_Archive_Close(archive_);
  }
  if (!temporary_.empty()) {
    std::error_code failed;
    std::filesystem::remove_all(temporary_, failed);
  }
}

void* Otf2Archive::allocate(void*, OTF2_FileType kind, OTF2_LocationRef, void** of_buffer, std::uint64_t bytes) {
  if (*of_buffer == nullptr) {
    *of_buffer = new Chunks;
  }
  Chunks& chunks = *static_cast<Chunks*>(*of_buffer);
  if (kind == OTF2_FILETYPE_EVENTS && chunks.used.size() == kMostChunks) {
    return nullptr;  // what is there is written first
  }
  if (chunks.spare.empty()) {
    chunks.used.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
  } else {
    chunks.used.push_back(std::move(chunks.spare.back()));
    chunks.spare.pop_back();
  }
  return chunks.used.back().get();
}

void Otf2Archive::free_all(void*, OTF2_FileType, OTF2_LocationRef, void** of_buffer, bool final) {
  Chunks* chunks = static_cast<Chunks*>(*of_buffer);
  if (chunks == nullptr) {
    return;
  }
  for (auto& chunk : chunks->used) {
    chunks->spare.push_back(std::move(chunk));
  }
  chunks->used.clear();
  if (final) {
    delete chunks;
    *of_buffer = nullptr;
  }
}

void Otf2Archive::open(std::size_t locations) {
  static const OTF2_FlushCallbacks kFlush = {&flush, nullptr};
  static const OTF2_MemoryCallbacks kMemory = {&allocate, &free_all};
  archive_ = OTF2_Archive_Open(temporary_.c_str(), "traces", OTF2_FILEMODE_WRITE,
                               locations > kMany ? kChunkOfMany : kChunkOfFew, kDefinitionsChunk, OTF2_SUBSTRATE_POSIX,
                               OTF2_COMPRESSION_NONE);
  if (archive_ == nullptr) {
    cannot_write(path_, errno);
  }
  check(OTF2_Archive_SetFlushCallbacks(archive_, &kFlush, nullptr));
  check(OTF2_Archive_SetMemoryCallbacks(archive_, &kMemory, nullptr));
  check(OTF2_Archive_SetSerialCollectiveCallbacks(archive_));
  check(OTF2_Archive_SetCreator(archive_, "elbowroom"));
  check(OTF2_Archive_OpenEvtFiles(archive_));
}

OTF2_EvtWriter* Otf2Archive::events(OTF2_LocationRef location) {
  OTF2_EvtWriter* writer = OTF2_Archive_GetEvtWriter(archive_, location);
  if (writer == nullptr) {
    cannot_write(path_, errno);
  }
  return writer;
}

std::vector<std::uint64_t> Otf2Archive::close_events(std::size_t locations) {
  std::vector<std::uint64_t> counts(locations, 0);
  for (std::size_t i = 0; i < locations; ++i) {
    OTF2_EvtWriter* writer = events(i);
    check(OTF2_EvtWriter_GetNumberOfEvents(writer, &counts[i]));
    check(OTF2_Archive_CloseEvtWriter(archive_, writer));
  }
  check(OTF2_Archive_CloseEvtFiles(archive_));
  return counts;
}

void Otf2Archive::keep() {
  OTF2_Archive* archive = archive_;
  archive_ = nullptr;
  check(OTF2_Archive_Close(archive));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const bool replaces = permissions_ != fs::perms::unknown;
  fs::permissions(temporary_, replaces ? permissions_ : static_cast<fs::perms>(0777U & ~mask));
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    cannot_write(path_, errno);
  }
  temporary_.clear();
}

// The library keeps to itself why it could not write; errno is still of its last call.
void Otf2Archive::refused(OTF2_ErrorCode code) const {
  if (errno == ENOSPC || errno == EDQUOT || errno == EACCES || errno == EROFS || errno == EFBIG || errno == EIO) {
    cannot_write(path_, errno);
  }
  throw std::runtime_error("out '" + path_ + "': cannot be written (OTF2: " + OTF2_Error_GetDescription(code) +
                           "); free space there, or choose another disk");
}

}  // namespace elbowroom::trace
