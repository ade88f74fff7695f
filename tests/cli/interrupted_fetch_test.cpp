// A fetch that is ended by a signal ends pip too. A shell script stands in for Python.
#include <filesystem>

#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

#ifdef __linux__

// Starts a fetch, waits for pip, sends the signal to the program alone, and prints whether pip
// still runs 10 s after the program has ended.
constexpr const char* kScript = R"sh(
"$1" model fetch smollm2 >out 2>&1 &
program=$!
tries=0
while [ ! -s pip ] && [ $tries -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -"$2" $program
wait $program
runs() {
  state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
  case "$state" in "" | Z*) return 1 ;; esac  # a zombie has ended
}
tries=0
while runs "$(cat pip)" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
if runs "$(cat pip)"; then echo pip runs; else echo pip has ended; fi
)sh";

TEST(InterruptedFetch, EndsPip) {
  for (const char* name : {"TERM", "KILL"}) {
    const TemporaryFolder folder;
    const std::string python = folder / "python3";
    write_file(python, "#!/bin/sh\necho $$ >'" + folder / "pip" + "'\nexec sleep 600\n");
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    const ProcessResult result = run_process({"env", "-C", folder.path().string(),
                                              "PATH=" + folder.path().string() + ":/usr/bin:/bin",
                                              "PRISM_CACHE_DIR=" + folder / "cache", "bash", "-mc",
                                              kScript, "bash", program().string(), name});
    EXPECT_NE(result.output.find("pip has ended"), std::string::npos) << name << result.output;
  }
}

#endif

}  // namespace
}  // namespace prism::test
