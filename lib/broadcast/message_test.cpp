#include "message.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <random>

using namespace elbowroom::broadcast;

namespace {

Announcement announcement() {
  Announcement result;
  result.key = {7, 3, -12345};
  result.receiver = {1, 9, 42, 2};
  result.number = 300;
  result.size = 439296;
  result.segment = 65536;
  result.stripe = 1;
  result.stripes = 2;
  result.tree = parse_tree("delegate-two-level-4-nomial");
  result.subtree = {{0, 5, 1, 2}, {4, 5, 70000, 2, 69999}, {2, 0, 3, 1, 1}};
  return result;
}

std::vector<std::byte> bytes_of(const auto& message) {
  std::vector<std::byte> bytes;
  encode(message, bytes);
  return bytes;
}

std::string refusal(std::vector<std::byte> bytes, std::int32_t self = 1, std::int32_t size = 5) {
  try {
    decode(bytes, self, size);
  } catch (const BadMessage& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("An announcement is read as it was written") {
  const Announcement sent = announcement();
  const Announcement read = std::get<Announcement>(decode(bytes_of(sent), 1, 5));
  CHECK(read.key == sent.key);
  CHECK(read.receiver == sent.receiver);
  CHECK(read.number == sent.number);
  CHECK(read.size == sent.size);
  CHECK(read.segment == sent.segment);
  CHECK(read.stripe == 1);
  CHECK(read.stripes == 2);
  CHECK(read.tree == sent.tree);
  CHECK(read.subtree == sent.subtree);
  CHECK(!read.inlined);
}

TEST_CASE("Data in an announcement are its last bytes") {
  Announcement sent = announcement();
  const char text[] = "four";
  sent.inlined = true;
  sent.size = 4;
  sent.payload = std::as_bytes(std::span(text, 4));
  const std::vector<std::byte> bytes = bytes_of(sent);
  const Announcement read = std::get<Announcement>(decode(bytes, 1, 5));
  REQUIRE(read.payload.size() == 4);
  CHECK(std::memcmp(read.payload.data(), "four", 4) == 0);
}

TEST_CASE("An announcement without a subtree and with small numbers takes less than 24 bytes") {
  Announcement sent;
  sent.key = {0, 3, 17};
  sent.receiver.serial = 1;
  sent.inlined = true;
  CHECK(bytes_of(sent).size() < 24);
}

TEST_CASE("Answers are read as they were written") {
  for (const Reply reply :
       {Reply::kReady, Reply::kBypass, Reply::kRefuse, Reply::kDone, Reply::kSegment, Reply::kTaken}) {
    const Answer read = std::get<Answer>(decode(bytes_of(Answer{reply, 1ULL << 60, 1ULL << 40, 65000}), 0, 2));
    CHECK(read.reply == reply);
    CHECK(read.number == 1ULL << 60);
    CHECK(read.channel == 65000);
    CHECK(read.from == 1ULL << 40);
  }
}

TEST_CASE("A contradiction is refused with the name of its field") {
  const auto with = [](auto change) {
    Announcement wrong = announcement();
    change(wrong);
    return refusal(bytes_of(wrong));
  };
  CHECK(with([](Announcement& a) { a.key.root = 5; }).starts_with("root: is 5, more than 4"));
  CHECK(with([](Announcement& a) { a.key.root = 1; }).starts_with("root: is the receiver"));
  CHECK(with([](Announcement& a) { a.subtree[0].rank = 1; }) == "recipients: rank 1 appears twice");
  CHECK(with([](Announcement& a) { a.subtree[0].rank = 3; }) == "recipients: rank 3 appears twice");
  CHECK(with([](Announcement& a) { a.subtree[0].rank = 4; }) == "recipients: rank 4 appears twice");
  CHECK(with([](Announcement& a) { a.subtree[0].rank = 9; }).starts_with("rank: is 9"));
  CHECK(with([](Announcement& a) { a.subtree[0].priority = -1; }).starts_with("priority: "));
  CHECK(with([](Announcement& a) { a.subtree.resize(5); }).starts_with("recipients: is 5, more than 4"));
  CHECK(with([](Announcement& a) { a.segment = 0; }).starts_with("segment: "));
  CHECK(with([](Announcement& a) { a.segment = kMostSegment + 1; }).starts_with("segment: "));
  CHECK(with([](Announcement& a) { a.stripes = 3; }).starts_with("stripes: "));
  CHECK(with([](Announcement& a) { a.stripes = 1; }).starts_with("stripe: "));
  CHECK(with([](Announcement& a) { a.tree.shape = static_cast<Shape>(9); }) == "tree: 9 is not a kind of tree");
  CHECK(with([](Announcement& a) { a.tree.arity = 1; }) == "arity: 1 is too small");
  CHECK(with([](Announcement& a) { a.inlined = true; }).starts_with("size: is 439296, but 0 bytes follow"));
}

TEST_CASE("A message of another version says what to do") {
  std::vector<std::byte> bytes = bytes_of(announcement());
  bytes[1] = std::byte{9};
  CHECK(refusal(bytes) == "version: is 9, and this is 2; use one release on all ranks");
}

TEST_CASE("Every message that is cut short or goes on is refused") {
  const std::vector<std::byte> whole = bytes_of(announcement());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK(!refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}).empty());
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  CHECK(refusal(longer) == "end: 1 more bytes follow");
}

namespace {

int fuzz_count() {
  const char* const text = std::getenv("ELBOWROOM_FUZZ");
  return text != nullptr ? std::atoi(text) : 100000;
}

void change(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  for (unsigned changes = random() % 4 + 1; changes > 0; --changes) {
    bytes[random() % bytes.size()] = static_cast<std::byte>(random());
  }
}

}  // namespace

TEST_CASE("A message with changed bytes is refused") {
  std::mt19937_64 random(1);
  const std::vector<std::byte> whole = bytes_of(announcement());
  for (int i = 0; i < fuzz_count(); ++i) {
    std::vector<std::byte> bytes = whole;
    change(bytes, random);
    if (bytes != whole && refusal(bytes).empty()) FAIL("read as if nothing had changed");
  }
}

TEST_CASE("Wrong messages with a right checksum are refused or read, and nothing beyond their bytes is used") {
  std::mt19937_64 random(2);
  const std::vector<std::byte> whole = bytes_of(announcement());
  int refused = 0;
  for (int i = 0; i < fuzz_count(); ++i) {
    std::vector<std::byte> bytes = whole;
    change(bytes, random);
    if (random() % 4 == 0) bytes.resize(7 + random() % (bytes.size() - 7));
    std::uint32_t sum = 2166136261U;
    for (std::size_t at = 7; at < bytes.size(); ++at)
      sum = (sum ^ std::to_integer<std::uint32_t>(bytes[at])) * 16777619U;
    for (std::size_t at = 0; at < 4; ++at) bytes[3 + at] = static_cast<std::byte>(sum >> (8 * at));
    refused += refusal(bytes).empty() ? 0 : 1;
  }
  CHECK(refused > fuzz_count() / 2);
  CHECK(refused < fuzz_count());
}

TEST_CASE("The segments of two stripes are all segments") {
  for (std::uint64_t size : {1ULL, 99ULL, 100ULL, 101ULL, 250ULL, 1000ULL}) {
    Announcement even;
    even.size = size;
    even.segment = 100;
    even.stripes = 2;
    Announcement odd = even;
    odd.stripe = 1;
    CHECK(segments_of(even) + segments_of(odd) == segments(size, 100));
    CHECK(segments_of(even) - segments_of(odd) <= 1);
  }
}

TEST_CASE("A segment is never larger than MPI can count") {
  CHECK(segment_of(100, 0) == 100);
  CHECK(segment_of(100, 7) == 7);
  CHECK(segment_of(100, 700) == 100);
  CHECK(segment_of(5 * kMostSegment, 0) == kMostSegment);
  CHECK(segment_of(5 * kMostSegment, 3 * kMostSegment) == kMostSegment);
  CHECK(segments(5 * kMostSegment + 1, segment_of(5 * kMostSegment + 1, 0)) == 6);
}
