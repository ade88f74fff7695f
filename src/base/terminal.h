// Whether a stream of this program is a terminal a person looks at.
#pragma once

namespace prism {

enum class Stream { output, error };
bool is_terminal(Stream stream);

}  // namespace prism
