// `prism setup NAME`: fetches what a backend needs beyond its driver.
#include <iostream>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "runtime/set_up.h"

namespace prism::cli {

void add_setup_command(CLI::App& app, int*) {
  CLI::App* command = app.add_subcommand("setup", "fetch what a backend needs beyond its driver");
  auto name = std::make_shared<std::string>();
  command
      ->add_option("backend", *name,
                   "cuda: fetches the run-time compiler NVRTC into the cache folder")
      ->required();
  command->footer("Example:\n  prism setup cuda");
  command->callback([name] {
    const std::string done =
        set_up_backend(*name, [](const std::string& line) { std::cerr << line << "\n"; });
    std::cout << done << "\n";
  });
}

}  // namespace prism::cli
