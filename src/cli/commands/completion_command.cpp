// `prism completion SHELL`: the script that completes commands, options and known values.
#include <iostream>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "print/printer.h"
#include "prism/error.h"
#include "sample_kernels/sample_library.h"

namespace prism::cli {
namespace {

const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

std::vector<std::string> positional_values(const std::string& path) {
  std::vector<std::string> words;
  if (path == "prism kernel show" || path == "prism kernel run")
    for (const SampleKernel& kernel : sample_kernels()) words.push_back(kernel.name);
  if (path == "prism setup") words = {"cuda"};
  if (path == "prism completion") words = kShells;
  return words;
}

// Lists devices without their numbers, because bash ends a word at a colon.
std::vector<std::string> known_values(const std::string& path, const OptionEntry* option) {
  if (!option) return positional_values(path);
  for (const std::string& name : option->names) {
    if (name == "--device")
      return {"auto", "cpu", "gpu", "cuda", "hip", "metal", "vulkan", "sycl", "opencl", "webgpu"};
    if (name == "--kv-type") return {"f16", "f32", "q8_0"};
    if (name == "--lang") {
      std::vector<std::string> languages = dialects();
      languages.push_back("ir");
      return languages;
    }
  }
  return {};
}

std::string script_for(const std::string& shell, const CommandEntry& tree) {
  if (shell == "bash") return bash_completion(tree, known_values);
  if (shell == "zsh") return zsh_completion(tree, known_values);
  if (shell == "fish") return fish_completion(tree, known_values);
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("completion: \"{}\" is no known shell; there are bash, zsh and fish", shell));
}

}  // namespace

void add_completion_command(const Command& program) {
  const Command command =
      program.subcommand("completion", "print the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  command.option("shell", *shell, "bash, zsh or fish").required();
  command.footer(
      "Examples:\n  source <(prism completion bash)\n  "
      "prism completion zsh > ~/.zfunc/_prism\n  "
      "prism completion fish > ~/.config/fish/completions/prism.fish");
  command.run([program, shell] {
    std::cout << script_for(*shell, program.tree());
    return kRight;
  });
}

}  // namespace prism::cli
