// Progress of downloads that the library starts. The library prints nothing; a program that wants
// to show a progress bar sets a handler.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace prism {

// Called while bytes arrive, possibly from another thread. all is 0 if the size is unknown.
using TransferHandler = std::function<void(const std::string& what, uint64_t done, uint64_t all)>;

// Replaces the handler; an empty one is never called.
void set_transfer_handler(TransferHandler handler);

void report_transfer(const std::string& what, uint64_t done, uint64_t all);

}  // namespace prism
