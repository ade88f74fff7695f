// Starts the program with the library of faults (preload/) and its variables.
#include "support/faults/faults.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "support/faults/traced_run.h"
#include "support/paths.h"

namespace prism::test {
namespace {

// The program under `env`, which sets the variables.
std::vector<std::string> words_of(const ProgramRun& run,
                                  const std::vector<std::string>& variables) {
  std::vector<std::string> words = {"env"};
  words.insert(words.end(), run.variables.begin(), run.variables.end());
  words.insert(words.end(), variables.begin(), variables.end());
  words.push_back(program().string());
  words.insert(words.end(), run.words.begin(), run.words.end());
  return words;
}

ProcessResult run_with(const ProgramRun& run, std::vector<std::string> variables,
                       const std::vector<std::string>& under = {}) {
  const TemporaryFolder folder;
  const std::string input = folder / "input";
  write_file(input, run.input);
  variables.push_back("LD_PRELOAD=" + (binary_dir() / "faults" / "fault_preload.so").string());
  // A shell, to redirect the standard input.
  std::vector<std::string> words = {"sh", "-c", "input=$1; shift; exec \"$@\" <\"$input\"", "sh",
                                    input};
  words.insert(words.end(), under.begin(), under.end());
  for (std::string& word : words_of(run, variables)) words.push_back(std::move(word));
  return run_process(words);
}

void expect_success(const ProcessResult& result) {
  if (result.status != 0)
    throw std::runtime_error("the run without a fault failed: " + result.output);
}

TracedRun run_with_kill(const ProgramRun& run, int64_t kill_at) {
  const TemporaryFolder folder;
  write_file(folder / "input", run.input);
  return run_traced(words_of(run, {}), folder / "input", kill_at);
}

std::vector<int64_t> numbers_to(int64_t last) {
  std::vector<int64_t> all(static_cast<size_t>(last));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

}  // namespace

std::string Fault::text() const {
  return call + ":" + std::to_string(number) + (is_last ? ":" : "+:") + action;
}

ProcessResult run_with_fault(const ProgramRun& run, const Fault& fault) {
  if (fault.call.empty()) return run_with(run, {});
  if (fault.call == "system") return run_with_kill(run, fault.number).result;
  return run_with(run, {"PRISM_FAULT=" + fault.text()});
}

ProcessResult run_for_a_second(const ProgramRun& run, const Fault& fault) {
  return run_with(run, {"PRISM_FAULT=" + fault.text()}, {"timeout", "-k", "20", "-s", "INT", "1"});
}

std::map<std::string, std::vector<int64_t>> count_calls(const ProgramRun& run) {
  const TemporaryFolder folder;
  const std::string counts = folder / "counts";
  expect_success(run_with(run, {"PRISM_FAULT_COUNTS=" + counts}));
  std::map<std::string, std::vector<int64_t>> all;
  std::istringstream lines(read_file(counts));
  std::string name;
  int64_t number = 0;
  while (lines >> name >> number) {
    if (name == "stack")
      all["new"].push_back(number);
    else if (name != "new")
      all[name] = numbers_to(number);
  }
  std::ranges::sort(all["new"]);
  return all;
}

std::vector<int64_t> count_system_calls(const ProgramRun& run) {
  const TracedRun counted = run_with_kill(run, 0);
  expect_success(counted.result);
  return numbers_to(counted.calls);
}

std::vector<FileChange> recorded_changes(const ProgramRun& run, const std::string& path) {
  const TemporaryFolder folder;
  const std::string record = folder / "record";
  expect_success(
      run_with(run, {"PRISM_FAULT_RECORD=" + record,
                     "PRISM_FAULT_RECORDED=" + std::filesystem::canonical(path).string()}));
  std::vector<FileChange> changes;
  std::istringstream in(read_file(record));
  uint64_t head[4];  // whether it is a flush, number, offset, bytes
  while (in.read(reinterpret_cast<char*>(head), sizeof head)) {
    changes.push_back(
        {head[0] == 1, static_cast<int64_t>(head[1]), head[2], std::string(head[3], '\0')});
    in.read(changes.back().bytes.data(), static_cast<std::streamsize>(head[3]));
  }
  return changes;
}

bool can_inject_faults() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

}  // namespace prism::test
