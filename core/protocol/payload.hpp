// What messages hold, so that what arrives can be checked (docs/design/method.md, rule 10).
#pragma once

#include <cstddef>
#include <cstdint>

namespace elbowroom {

// A message of seed s holds, at each 8-byte word i, (s + i) times an odd constant; the bytes after the last whole word
// continue the same sequence. Any part of a message thus depends on the seed and on its place.
void fill_message(void* message, std::size_t size, std::uint64_t seed);
bool message_holds(const void* message, std::size_t size, std::uint64_t seed);

// The same for at most 16 words spread over the message, first and last included, and its last bytes: cheap enough for
// every batch.
void stamp_message(void* message, std::size_t size, std::uint64_t seed);
bool stamp_holds(const void* message, std::size_t size, std::uint64_t seed);

}  // namespace elbowroom
