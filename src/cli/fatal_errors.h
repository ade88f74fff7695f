// Error messages where the program has to end at once: a mapped file became shorter, or memory ran
// out where no exception can be handled.
#pragma once

namespace prism::cli {

// From now on:
// - Reading a page that a mapped model file no longer has prints an error that names the file and
//   ends the process with status 1. The process cannot go on: the read happened in the middle of a
//   kernel, on any thread. Any other SIGBUS keeps its default action.
// - A std::bad_alloc that ends the process, on any thread, ends it as below.
void report_fatal_errors();

// Prints an error without allocating memory. Returns the exit status.
int report_out_of_memory() noexcept;

}  // namespace prism::cli
