// Recording an event takes no lock and makes no system call: by what its machine code is, and under a filter that kills.
#include <doctest/doctest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <regex>
#include <set>
#include <string>

#include "elbowroom/trace.h"
#include "trace/test_trace.hpp"

using namespace elbowroom::trace;
using namespace elbowroom::trace::tests;

namespace {

constexpr int kUntrusted = 78;  // there is no counter that can be trusted

// The machine code of a function that has a section of its own in an object file, disassembled; "" where objdump is not there.
std::string disassembled(const std::string& file, const std::string& function) {
  const std::string command = "objdump -dr --no-show-raw-insn -j .text." + function + " '" + file + "' 2>/dev/null";
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    text.append(part.data(), got);
  }
  pclose(pipe);
  return text.find("<" + function + ">:") == std::string::npos ? "" : text;
}

// What is called from it: the names in relocations, or in the disassembly.
std::set<std::string> called(const std::string& text) {
  static const std::regex relocation(
      R"(R_\w+_(?:PLT32|PC32|GOTPCRELX?|CALL26|JUMP26|REX_GOTPCRELX)\s+(elbow_\w+|\w+@?\w*))");
  std::set<std::string> names;
  for (auto result = std::sregex_iterator(text.begin(), text.end(), relocation); result != std::sregex_iterator();
       ++result) {
    names.insert((*result)[1]);
  }
  return names;
}

void check_no_lock(const std::string& text) {
  // xchg with memory locks without saying so.
  static const std::regex locks(R"(\block\b|\bxchg\b[^\n]*\()");
  static const std::regex system_calls(R"(\bsyscall\b|\bsysenter\b|\bint\s+\$0x80|\bsvc\b)");
  CHECK_FALSE(std::regex_search(text, locks));
  CHECK_FALSE(std::regex_search(text, system_calls));
}

// From here on the kernel kills this process at any system call but its end.
void forbid_system_calls() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    _exit(77);
  }
}

int record_under_filter(Traced& traced, bool system_call) {
  return traced.run([&] {
    const auto* type = type_of("a", "i");
    MUST(elbow_trace_thread("main") == 0);
    if (traced.lines("trace").at(0).at("clock").at("counter") == false && getenv("ELBOW_CLOCK") == nullptr) {
      _exit(kUntrusted);
    }
    forbid_system_calls();
    for (std::uint64_t i = 0; i < 1'000'000; ++i) {
      elbow_trace_event(type, 0, i, 0);
    }
    if (system_call) {
      syscall(SYS_getpid);
    }
    syscall(SYS_exit_group, 0);
  });
}

}  // namespace

TEST_CASE("No locked instruction and no system call is in the machine code of an event, or in what it calls") {
  const std::string emit = disassembled(ELBOW_PROBE_OBJECT, "probe_emit");
  const std::string more = disassembled(ELBOW_RING_OBJECT, "elbow_trace_more");
  if (emit.empty() || more.empty()) {
    MESSAGE("skipped: objdump is not there, or knows no such object");
    return;
  }
  check_no_lock(emit);
  check_no_lock(more);
#if defined(__x86_64__)
  CHECK(emit.find("xadd") != std::string::npos);
  CHECK(emit.find("rdtsc") != std::string::npos);
#elif defined(__aarch64__)
  CHECK(emit.find("stxr") != std::string::npos);
  CHECK(emit.find("cntvct_el0") != std::string::npos);
#endif
  // The first event of a thread makes its ring; the kernel's clock is read by the vDSO.
  for (const std::string& name : called(emit)) {
    const bool known = name == "elbow_trace_more" || name == "elbow_trace_attach" || name == "elbow_trace_raw" ||
                       name == "elbow_trace_own" || name == "elbow_trace_recorded_categories";
    CHECK_MESSAGE(known, name);
  }
  // A ring of FLUSH calls by a pointer, which others do not have.
  CHECK(called(more).empty());
}

TEST_CASE("A million events are recorded, kept and lost, where any system call is death") {
  for (const int policy : {ELBOW_TRACE_STOP, ELBOW_TRACE_OVERWRITE}) {
    Traced traced;
    traced.settings.policy = policy;
    const int status = record_under_filter(traced, false);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == kUntrusted)) {
      MESSAGE("skipped: no filter may be set here, or no counter can be trusted");
      return;
    }
    CHECK(status == 0);
    const auto memory = traced.lines("trace").at(0).at("memory").get<std::string>();
    const auto bytes = bytes_of(memory + "/thread-00000.ring");
    CHECK(contents_of(bytes).recorded == 1'000'000);
  }
}

TEST_CASE("The filter under which events are recorded does kill at a system call") {
  Traced traced;
  const int status = record_under_filter(traced, true);
  if (!(WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == kUntrusted))) {
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSYS);
  }
}
