// The one list of the backends compiled into this build.
#pragma once

#include <memory>
#include <vector>

namespace prism {

class Backend;

// Every backend switched on when the library was built, in the order of preference; `cpu` and `null` always.
// Creating a backend opens no driver: that is left to discovery.
std::vector<std::unique_ptr<Backend>> make_backends();

}  // namespace prism
