// Finds the data folder from the environment and the system's conventions.
#include "cli/data_folder.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "prism/error.h"

namespace prism::cli {
namespace {

std::optional<std::filesystem::path> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

}  // namespace

std::filesystem::path data_folder() {
  if (const auto folder = variable("PRISM_DATA_DIR")) return *folder;
#ifdef _WIN32
  if (const auto folder = variable("LOCALAPPDATA")) return *folder / "prism";
#else
  if (const auto folder = variable("XDG_DATA_HOME")) return *folder / "prism";
  if (const auto home = variable("HOME")) {
#ifdef __APPLE__
    return *home / "Library" / "Application Support" / "prism";
#else
    return *home / ".local" / "share" / "prism";
#endif
  }
#endif
  // Not the system's temporary folder: other users could prepare conversations there.
  throw Error(ErrorCode::kNotFound,
              "no folder for conversations: the environment names no home folder; set "
              "PRISM_DATA_DIR");
}

}  // namespace prism::cli
