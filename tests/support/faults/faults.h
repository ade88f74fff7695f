// Runs the program with one injected fault: a failing allocation, file call, or a kill.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace prism::test {

// One call of the program that fails. `call` is one of
//   new     allocations with operator new
//   open    open, fopen
//   read    read, pread, fread
//   write   write, writev, pwrite, fwrite, other than to the standard streams
//   flush   fsync, fflush, fclose
//   change  rename, unlink, remove, mkdir, ftruncate, chmod
//   map     mmap of a file
//   any     all of these but new
//   thread  threads that are started
//   system  system calls that change files (traced_run.h), whoever makes them; "kill" only
struct Fault {
  std::string call;
  int64_t number = 0;   // the first call is number 1
  std::string action;   // an error name such as "ENOSPC"; "short": half of the bytes; "kill"
  bool is_last = true;  // false: all later calls fail too, as on a full disk

  std::string text() const;  // "write:17:ENOSPC", "write:17+:ENOSPC"
};

// A command line of the program, with its standard input.
struct ProgramRun {
  std::vector<std::string> words;      // without the program
  std::vector<std::string> variables;  // "NAME=value"
  std::string input = {};
};

// Runs the program with the fault; `call` may be empty for none.
ProcessResult run_with_fault(const ProgramRun& run, const Fault& fault);
// The same for a program that does not end by itself: it is interrupted after a second, and the
// status is then 124.
ProcessResult run_for_a_second(const ProgramRun& run, const Fault& fault);

// The numbers of the calls of each kind in a run without a fault, which must succeed. Of "new" only
// the first of each call stack: the others with that stack fail in the same way. "system" is left
// out.
std::map<std::string, std::vector<int64_t>> count_calls(const ProgramRun& run);
// The same for "system". Needs a machine where programs can be traced (traced_run.h).
std::vector<int64_t> count_system_calls(const ProgramRun& run);

// A write into a file, or a flush of those before it.
struct FileChange {
  bool is_flush = false;
  int64_t number = 0;  // of the call among the faults "write" or "flush"
  uint64_t offset = 0;
  std::string bytes = {};
};

// The changes of a file by a run without a fault, which must succeed: its pwrite and fsync calls.
std::vector<FileChange> recorded_changes(const ProgramRun& run, const std::string& path);

// Whether faults can be injected: not under a sanitizer, whose allocator must come first.
bool can_inject_faults();

}  // namespace prism::test
