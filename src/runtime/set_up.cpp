// Finds the backend by name in the list and lets it fetch.
#include "runtime/set_up.h"

#include "runtime/discovery.h"

namespace prism {

std::string set_up_backend(const std::string& name,
                           const std::function<void(const std::string&)>& progress) {
  std::string names;
  for (const BackendMaker make : backend_makers()) {
    const auto backend = make();
    if (backend->name() == name) return backend->set_up(progress);
    names += (names.empty() ? "" : ", ") + backend->name();
  }
  throw Error(ErrorCode::kNotFound,
              "setting up \"" + name + "\": no such backend; there are " + names);
}

}  // namespace prism
