// isatty on POSIX systems, _isatty on Windows.
#include "base/system/is_terminal.h"

#include <cstdio>

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

namespace prism {

bool is_terminal(Stream stream) {
  std::FILE* file = stream == Stream::input ? stdin : stream == Stream::output ? stdout : stderr;
#ifdef _WIN32
  return _isatty(_fileno(file)) != 0;
#else
  return isatty(fileno(file)) != 0;
#endif
}

}  // namespace prism
