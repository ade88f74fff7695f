// The build sets the version for this file only, so that a new one compiles little.
#include "server/version.h"

namespace prism::server {

std::string version() { return PRISM_VERSION; }

}  // namespace prism::server
