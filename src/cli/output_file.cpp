// Protects files that exist from commands that write files.
#include "cli/output_file.h"

#include <filesystem>

#include "prism/error.h"

namespace prism::cli {

void check_output(const std::string& output, std::span<const std::string> inputs, bool overwrite) {
  std::error_code ignored;
  for (const std::string& each : inputs)
    if (std::filesystem::equivalent(each, output, ignored))
      throw Error(ErrorCode::kInvalidArgument,
                  output + ": the output is the input itself; name another file");
  if (std::filesystem::exists(output, ignored) && !overwrite)
    throw Error(ErrorCode::kInvalidArgument, output + ": the file exists; --overwrite replaces it");
}

}  // namespace prism::cli
