// The folder for files that users keep, such as conversations.
#pragma once

#include <filesystem>

namespace prism::cli {

// PRISM_DATA_DIR, else XDG_DATA_HOME/prism, else ~/.local/share/prism (macOS: ~/Library/Application
// Support/prism, Windows: %LOCALAPPDATA%\prism). Not created until something is written. Throws
// kNotFound if the environment names none of them.
std::filesystem::path data_folder();

}  // namespace prism::cli
