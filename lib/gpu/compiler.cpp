#include "gpu/compiler.hpp"

#include "gpu/declarations.hpp"

namespace elbowroom::gpu {
namespace {

const char* const kHint = "pip install elbowroom[cuda], or install NVIDIA's CUDA toolkit";

std::string log_of(const Library& library, void* program) {
  std::size_t size = 0;
  if (ELBOW_NEED(library, nvrtcGetProgramLogSize)(program, &size) != 0 || size == 0) return "";
  std::string text(size, '\0');
  if (ELBOW_NEED(library, nvrtcGetProgramLog)(program, text.data()) != 0) return "";
  return text.substr(0, text.find_last_not_of(std::string("\0\n", 2)) + 1);
}

std::string cubin_of(const Library& library, void* program) {
  std::size_t size = 0;
  if (ELBOW_NEED(library, nvrtcGetCUBINSize)(program, &size) != 0 || size == 0) return "";
  std::string image(size, '\0');
  return ELBOW_NEED(library, nvrtcGetCUBIN)(program, image.data()) == 0 ? image : "";
}

}  // namespace

Compiler::Compiler(const std::vector<std::string>& folders)
    : library_(candidates(folders, {"libnvrtc.so.*[0-9]", "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so.11.2"}),
               kHint) {}

std::string Compiler::version() const {
  int major = 0;
  int minor = 0;
  ELBOW_NEED(library_, nvrtcVersion)(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string Compiler::compile(const std::string& source, int capability) const {
  void* program = nullptr;
  if (ELBOW_NEED(library_, nvrtcCreateProgram)(&program, source.c_str(), "elbowroom.cu", 0, nullptr, nullptr) != 0) {
    throw Unavailable(path() + " does not start to compile", kHint);
  }
  const std::string option = "--gpu-architecture=sm_" + std::to_string(capability);
  const char* const options[] = {option.c_str()};
  const int code = ELBOW_NEED(library_, nvrtcCompileProgram)(program, 1, options);
  const std::string log = log_of(library_, program);
  const std::string image = code == 0 ? cubin_of(library_, program) : "";
  ELBOW_NEED(library_, nvrtcDestroyProgram)(&program);
  if (image.empty()) {
    throw Unavailable("NVRTC " + version() + " cannot compile for compute capability " +
                          std::to_string(capability / 10) + "." + std::to_string(capability % 10) + ": " +
                          log.substr(0, log.find('\n')),
                      kHint);
  }
  return image;
}

}  // namespace elbowroom::gpu
