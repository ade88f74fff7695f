// Reads a file that a user names: a plain file, a pipe or a device.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace prism {

// Prompts, grammars and conversations are far smaller.
inline constexpr uint64_t kMaximumInputBytes = uint64_t{256} << 20;

// Returns the whole content. Throws kNotFound for a missing file; kInvalidArgument for a folder and
// for more than `limit` bytes (a device may never end); kIo for a failed read and for a pipe that
// no process opens for writing within two seconds.
std::string read_input_file(const std::string& path, uint64_t limit = kMaximumInputBytes);

// The same for an open stream; `name` is for messages.
std::string read_input(std::istream& stream, const std::string& name,
                       uint64_t limit = kMaximumInputBytes);

}  // namespace prism
