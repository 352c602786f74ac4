#include "gpu/compiler.hpp"

#include <cstdint>

namespace elbowroom::gpu {
namespace {

struct ProgramHandle_;
using ProgramHandle = ProgramHandle_*;

const char* const kHint = "pip install elbowroom[cuda], or install NVIDIA's CUDA toolkit";

template <class Call>
Call* symbol(const Library& library, const char* name) {
  return reinterpret_cast<Call*>(reinterpret_cast<std::uintptr_t>(library.need(name)));
}

using SizeCall = int(ProgramHandle, std::size_t*);
using TextCall = int(ProgramHandle, char*);

std::string text_of(const Library& library, ProgramHandle program, const char* size_name, const char* text_name) {
  std::size_t size = 0;
  if (symbol<SizeCall>(library, size_name)(program, &size) != 0 || size == 0) return "";
  std::string text(size, '\0');
  if (symbol<TextCall>(library, text_name)(program, text.data()) != 0) return "";
  return text.substr(0, text.find_last_not_of(std::string("\0\n", 2)) + 1);
}

}  // namespace

Compiler::Compiler(const std::vector<std::string>& folders)
    : library_(candidates(folders, {"libnvrtc.so.*[0-9]", "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so.11.2"}),
               kHint) {}

std::string Compiler::version() const {
  int major = 0;
  int minor = 0;
  symbol<int(int*, int*)>(library_, "nvrtcVersion")(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string Compiler::compile(const std::string& source, int capability) const {
  ProgramHandle program = nullptr;
  const auto create =
      symbol<int(ProgramHandle*, const char*, const char*, int, const char* const*, const char* const*)>(
          library_, "nvrtcCreateProgram");
  if (create(&program, source.c_str(), "elbowroom.cu", 0, nullptr, nullptr) != 0) {
    throw Unavailable(path() + " does not start to compile", kHint);
  }
  const std::string option = "--gpu-architecture=compute_" + std::to_string(capability);
  const char* const options[] = {option.c_str()};
  const int code =
      symbol<int(ProgramHandle, int, const char* const*)>(library_, "nvrtcCompileProgram")(program, 1, options);
  const std::string log = text_of(library_, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
  const std::string image = code == 0 ? text_of(library_, program, "nvrtcGetPTXSize", "nvrtcGetPTX") : "";
  symbol<int(ProgramHandle*)>(library_, "nvrtcDestroyProgram")(&program);
  if (image.empty()) {
    throw Unavailable("NVRTC " + version() + " cannot compile for compute capability " +
                          std::to_string(capability / 10) + "." + std::to_string(capability % 10) + ": " +
                          log.substr(0, log.find('\n')),
                      kHint);
  }
  return image;
}

}  // namespace elbowroom::gpu
