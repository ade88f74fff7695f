#include "cli/app.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace prism::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  prism devices                            what this machine has, and which device would be used
  prism check                              does every device compute right?
  prism kernel show row_softmax --lang cuda
  prism kernel run matmul_f32 --device vulkan:0
  prism calibrate                          measure, so that the fastest device is chosen

Exit status: 0 right, 1 a check failed, 2 a wrong call. Variables: PRISM_DEVICE, PRISM_BACKENDS, PRISM_CACHE_DIR, PRISM_DUMP, NO_COLOR.)";

int status_of(const Error& error) {
  const bool callers =
      error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kNotFound;
  return callers ? kWrongCall : kFailed;
}

}  // namespace

std::string version() { return PRISM_VERSION; }

int run(int count, const char* const* words) {
  CLI::App app("Runs one kernel source on every processor of this machine.", "prism");
  int status = kRight;
  app.set_version_flag("--version", "prism " + version(), "print the version");
  app.footer(kFooter);
  app.require_subcommand(1);
  for (const auto add : {add_devices_command, add_check_command, add_kernel_command,
                         add_calibrate_command, add_setup_command, add_report_command}) {
    add(app, &status);
  }
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    // Help and version are results; everything else is a wrong call.
    if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
    app.exit(error, std::cerr, std::cerr);
    return kWrongCall;
  } catch (const Error& error) {
    end_progress();
    std::cerr << paint(Colour::red, "error: ", Stream::error) << error.what() << "\n";
    return status_of(error);
  } catch (const std::exception& error) {
    end_progress();
    std::cerr << paint(Colour::red, "error: ", Stream::error) << error.what() << "\n";
    return kFailed;
  }
  std::cout.flush();
  return status;
}

}  // namespace prism::cli
