// Unpacks gzip files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace prism {

bool is_gzip(std::span<const std::byte> bytes);

// Returns the content; several members are joined. Throws kCorruptFile for malformed or truncated
// data, a wrong checksum, and more than `limit` bytes. name: for messages.
std::string gunzip(std::span<const std::byte> bytes, const std::string& name,
                   uint64_t limit = uint64_t{4} << 30);

}  // namespace prism
