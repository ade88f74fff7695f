// `prism setup NAME`: fetches the libraries that a backend needs beyond its driver.
#include <iostream>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "runtime/discovery/set_up.h"

namespace prism::cli {

void add_setup_command(const Command& program) {
  const Command command = program.subcommand("setup", "fetch the libraries that a backend needs");
  auto name = std::make_shared<std::string>();
  command.option("backend", *name, "cuda fetches the run-time compiler NVRTC into the cache folder")
      .required();
  command.footer("Example:\n  prism setup cuda");
  command.run([name] {
    const std::string done = set_up_backend(*name, [](const std::string& line) {
      end_progress();
      std::cerr << line << "\n";
    });
    end_progress();
    std::cout << done << "\n";
    return kRight;
  });
}

}  // namespace prism::cli
