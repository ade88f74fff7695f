// Reports whether a standard stream is an interactive terminal.
#pragma once

namespace prism {

enum class Stream { input, output, error };
bool is_terminal(Stream stream);

}  // namespace prism
