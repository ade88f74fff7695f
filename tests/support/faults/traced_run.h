// Runs a program under ptrace and kills it at one of its system calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/run_program.h"

namespace prism::test {

// Why programs cannot be traced here; empty if they can.
std::string tracing_problem();

struct TracedRun {
  ProcessResult result;
  // How many system calls that change files began, in all threads of the program but not in its
  // children: opening to write, write, truncate, sync, rename, unlink, mkdir, chmod, lock.
  int64_t calls = 0;
};

// Runs words[0], searched on PATH, with the file `input` as standard input. kill_at: the number of
// the call at which the program is killed, before the call does anything; the first is 1, 0 kills
// never. Throws std::runtime_error if there is a tracing_problem().
TracedRun run_traced(const std::vector<std::string>& words, const std::string& input,
                     int64_t kill_at);

}  // namespace prism::test
