// `prism model verify FILE`: checks the structure, the values and the checksum of a model file.
#include <fmt/format.h>

#include <iostream>

#include "base/json.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "cli/commands.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "llm/model/verify_model.h"
#include "prism/llm/gguf.h"
#include "prism/llm/model_store.h"

namespace prism::cli {
namespace {

struct Options {
  std::string file, sha256;
  bool json = false;
};

int verify(const Options& options) {
  const std::string path = llm::find_model(options.file);
  const llm::GgufFile file = llm::GgufFile::open(path.empty() ? options.file : path);
  llm::VerifyResult result = llm::verify_model(
      file, [](uint64_t done, uint64_t all) { progress_bar("values", done, all); });
  const std::string wanted =
      options.sha256.empty() ? llm::recorded_sha256(file.path()) : options.sha256;
  std::string found, agreement;
  if (!wanted.empty()) {
    found = sha256_of_file(
        file.path(), [&](uint64_t done) { progress_bar("checksum", done, file.file_bytes()); });
    if (found != wanted)
      result.problems.push_back(
          fmt::format("its sha256 is {}, but {} was expected", found, wanted));
    agreement = options.sha256.empty()
                    ? "; the checksum agrees with the one recorded when it was fetched"
                    : "; the checksum agrees with --sha256";
  }
  end_progress();
  if (options.json) {
    const Json all = {{"file", options.file},        {"tensors", result.tensors},
                      {"elements", result.elements}, {"problems", result.problems},
                      {"notes", result.notes},       {"sha256", found}};
    std::cout << all.dump(2) << "\n";
  } else {
    for (const std::string& problem : result.problems)
      std::cout << paint(Colour::red, "✗ ") << printable(problem) << "\n";
    for (const std::string& note : result.notes) std::cout << "  " << printable(note) << "\n";
    if (result.problems.empty())
      std::cout << paint(Colour::green, "✓ ")
                << fmt::format("{} tensors, {} values, all finite{}\n", result.tensors,
                               result.elements, agreement);
  }
  return result.problems.empty() ? kRight : kFailed;
}

}  // namespace

void add_model_verify_command(const Command& model) {
  const Command command = model.subcommand(
      "verify", "check the structure, every value and the checksum of a model file");
  auto options = std::make_shared<Options>();
  command
      .option("file", options->file,
              "a GGUF file (any part of a split one), or the name of a fetched model")
      .required();
  command.option("--sha256", options->sha256, "the checksum to expect");
  command.flag("--json", options->json, "print JSON");
  command.footer("Example:\n  prism model verify model.gguf");
  command.run([options] { return verify(*options); });
}

}  // namespace prism::cli
