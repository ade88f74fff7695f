// The environment variables with a fixed set of values.
#pragma once

namespace prism::cli {

// Throws kInvalidArgument for a value that the library would reject later, or only when a device
// fails, so that a wrong setting never goes unnoticed.
void check_environment();

}  // namespace prism::cli
