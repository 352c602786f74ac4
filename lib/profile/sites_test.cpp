// The places of a program that call.
#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "profile/test_profile.hpp"

namespace elbowroom::profile {
namespace {

using namespace tests;

[[gnu::noinline]] const void* caller() {
  asm volatile("");  // else calls of it are one
  return __builtin_return_address(0);
}

TEST_CASE("a place that calls has one site for each call, with its module and its address there") {
  const Folder folder;
  const std::string file = folder.file();
  const elbow_profile_settings settings = settings_for(file);
  elbow_profile* const profile = elbow_profile_new(&settings);
  const void* const one = caller();
  const void* const other = caller();
  REQUIRE(one != other);
  const int first = elbow_profile_site(profile, 0, one);
  CHECK(first == 2);
  CHECK(elbow_profile_site(profile, 0, other) == 3);
  CHECK(elbow_profile_site(profile, 1, one) == 4);
  CHECK(elbow_profile_site(profile, 0, one) == first);
  CHECK(elbow_profile_site(profile, 1, nullptr) == 1);
  CHECK(elbow_profile_site(profile, 2, one) == -1);
  CHECK(errno == EINVAL);
  elbow_profile_record record = send(100);
  record.call = static_cast<std::uint16_t>(first);
  CHECK(elbow_profile_add(profile, &record, 1) == 0);
  const Contents contents(file);
  const Header header = contents.header();
  REQUIRE(header.sites == 3);
  REQUIRE(header.modules == 1);
  const auto site = contents.at<SiteTotals>(header.sites_offset, 0);
  const auto module = contents.at<Module>(header.modules_offset, 0);
  CHECK(site.call == 0);
  CHECK(site.count == 1);
  CHECK(site.bytes == 100);
  CHECK(site.module == 0);
  CHECK(site.offset + module.bias == reinterpret_cast<std::uintptr_t>(one));
  CHECK(fs::equivalent(std::string(module.path), "/proc/self/exe"));
  CHECK(module.size == fs::file_size(module.path));
  CHECK(contents.at<SiteTotals>(header.sites_offset, 2).call == 1);
  CHECK(header.calls == 1);
  elbow_profile_free(profile);
}

TEST_CASE("code that belongs to no module keeps its address, and places without room are the call's alone") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.sites = 2;
  elbow_profile* const profile = elbow_profile_new(&settings);
  const auto place = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  CHECK(elbow_profile_site(profile, 1, place(16)) == 2);
  CHECK(elbow_profile_site(profile, 1, place(32)) == 3);
  CHECK(elbow_profile_site(profile, 1, place(48)) == 1);
  CHECK(elbow_profile_site(profile, 0, place(48)) == 0);
  CHECK(elbow_profile_site(profile, 1, place(32)) == 3);
  const Contents contents(file);
  const auto site = contents.at<SiteTotals>(contents.header().sites_offset, 1);
  CHECK(site.module == kNoModule);
  CHECK(site.offset == 32);
  elbow_profile_free(profile);
}

TEST_CASE("threads that see the same places first have the same sites") {
  const Folder folder;
  const std::string file = folder.file();
  elbow_profile_settings settings = settings_for(file);
  settings.threads = 1;
  elbow_profile* const profile = elbow_profile_new(&settings);
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kPlaces = 200;
  std::vector<std::vector<int>> found(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<int>& own : found) {
    threads.emplace_back([profile, &own] {
      for (std::size_t i = 0; i < kPlaces; ++i) {
        own.push_back(elbow_profile_site(profile, 1, reinterpret_cast<const void*>(64 * (i + 1))));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  // A thread that cannot have the table in time does without a site.
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const int again = elbow_profile_site(profile, 1, reinterpret_cast<const void*>(64 * (i + 1)));
    for (const std::vector<int>& own : found) {
      CHECK((own[i] == again || own[i] == 1));
    }
  }
  CHECK(Contents(file).header().sites == kPlaces);
  elbow_profile_free(profile);
}

}  // namespace
}  // namespace elbowroom::profile
