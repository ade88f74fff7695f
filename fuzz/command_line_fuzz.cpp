// Fuzzes the command line: zero bytes separate the words. The commands have options of every kind,
// among them all those of sampling; nothing is run.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/fit_options.h"
#include "cli/sampling_arguments.h"
#include "prism/error.h"

using namespace prism;
using namespace prism::cli;

namespace {

struct Values {
  SamplingArguments sampling;
  FitChoice fit;
  std::string text, name;
  int32_t small = 0;
  int64_t count = 0;
  uint32_t threads = 0;
  uint64_t size = 0;
  std::optional<uint64_t> maybe;
  std::vector<std::string> words;
  std::vector<int64_t> sizes;
  float share = 0;
  bool flag = false, given = false, ran = false;
};

void add_commands(const Command& program, Values& v) {
  const auto action = [&v] {
    v.ran = true;
    return kRight;
  };
  const Command run = program.group("Models").subcommand("run", "run it");
  run.option("MODEL", v.text, "a model");
  add_fit_options(run, v.fit, false);
  add_sampling_arguments(run, v.sampling);
  run.run(action);
  const Command bench = program.subcommand("bench", "time it");
  bench.option("--prompt-tokens", v.sizes, "sizes").separated_by(',').positive().shows_default();
  bench.option("-d,--device", v.words, "devices").separated_by(',');
  bench.run(action);
  const Command ops = bench.subcommand("ops", "time ops");
  ops.option("--resume", v.name, "a name").optional_value("last").sets(v.given);
  ops.option("--count", v.count, "a count").not_negative();
  ops.option("-t,--threads", v.threads, "threads").between(1, 4096);
  ops.option("--small", v.small, "a number").positive();
  ops.option("--share", v.share, "a share");
  Option size = ops.option("--size", v.size, "a size");
  size.excludes(ops.option("--maybe", v.maybe, "a number"));
  ops.option("file", v.text, "a file").required();
  ops.flag("--json,!--no-json", v.flag, "print JSON");
  ops.run(action);
}

// Built once: this takes far longer than to parse an input.
struct WholeProgram {
  WholeProgram() {
    line.program().needs_subcommand();
    add_commands(line.program(), values);
  }
  CommandLine line{"prism", "a program", "1.0"};
  Values values;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> texts = {"prism", ""};
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == 0)
      texts.emplace_back();
    else
      texts.back() += static_cast<char>(data[i]);
  }
  std::vector<const char*> words;
  for (const std::string& each : texts) words.push_back(each.c_str());

  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  static WholeProgram program;
  Values& v = program.values = {};
  int status = kWrongCall;
  try {
    status = program.line.run(words);
    // Read the values as the command would, but no files; grammars have a fuzzer of their own.
    for (std::string* each : {&v.sampling.grammar, &v.sampling.grammar_file, &v.sampling.schema,
                              &v.sampling.schema_file})
      each->clear();
    if (v.ran) (void)generation_options(v.sampling);
    if (!v.fit.memory_margin.empty()) (void)parse_size(v.fit.memory_margin, "--memory-margin");
  } catch (const Error&) {
  }
  std::cout.rdbuf(before);
  // Either an action ran or help was printed, or the words were wrong.
  if (status == kRight && !v.ran && printed.str().empty()) __builtin_trap();
  if (!(v.share == v.share)) __builtin_trap();
  return 0;
}
