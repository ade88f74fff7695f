// Whether a stream of this program is a terminal that a person sits at.
#pragma once

namespace prism {

enum class Stream { input, output, error };
bool is_terminal(Stream stream);

}  // namespace prism
