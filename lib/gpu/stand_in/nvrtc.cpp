// The calls of libnvrtc.so that elbowroom uses, for tests without a device: the compiled program is its source.
#include <cstring>
#include <string>

#include "gpu/stand_in/settings.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

struct Program {
  std::string source;
  std::string log;
};

EXPORTED int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 8;
  return 0;
}

EXPORTED int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                                const char* const*) {
  *program = new Program{source, ""};
  return 0;
}

// 6 is NVRTC_ERROR_COMPILATION, 5 NVRTC_ERROR_INVALID_OPTION.
EXPORTED int nvrtcCompileProgram(Program* program, int, const char* const*) {
  if (elbowroom::stand_in::settings_from_environment().no_compiler) {
    program->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
    return 5;
  }
  if (program->source.find("__global__") == std::string::npos) {
    program->log = "elbowroom.cu(1): error: no kernel\n";
    return 6;
  }
  return 0;
}

EXPORTED int nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}

EXPORTED int nvrtcGetProgramLog(Program* program, char* text) {
  std::memcpy(text, program->log.c_str(), program->log.size() + 1);
  return 0;
}

EXPORTED int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->source.size() + 1;
  return 0;
}

EXPORTED int nvrtcGetCUBIN(Program* program, char* text) {
  std::memcpy(text, program->source.c_str(), program->source.size() + 1);
  return 0;
}

EXPORTED int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
