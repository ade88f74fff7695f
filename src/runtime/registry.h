// Looking for the devices of every backend, and the process-wide result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/discovery.h"

namespace prism {

// One report a backend, in the order given; backends look for their devices at the same time.
// allowed: the text of PRISM_BACKENDS, empty for all; one left out by it stays in the list with
// that reason. Backends for tests only (name "null") are in the list only when it names them.
// Throws kInvalidArgument for a name that is none of them.
std::vector<BackendReport> find_devices(std::vector<std::unique_ptr<Backend>> backends,
                                        const std::string& allowed);

// The lines of backend_summary() for these reports and this choice; choice.device may be empty.
std::string summary_text(const std::vector<BackendReport>& reports, const Choice& choice);

}  // namespace prism
