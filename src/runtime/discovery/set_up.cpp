// Looks up the backend by name and runs its set-up.
#include "runtime/discovery/set_up.h"

#include "prism/device.h"
#include "runtime/discovery/backend_list.h"
#include "runtime/discovery/remembered_choice.h"

namespace prism {

std::string set_up_backend(const std::string& name,
                           const std::function<void(const std::string&)>& progress) {
  std::string names;
  for (const BackendMaker& maker : backend_makers()) {
    if (maker.name == name) {
      // The set-up may make another device the best one.
      forget_choices();
      return maker.make()->set_up(progress);
    }
    names += std::string(names.empty() ? "" : ", ") + maker.name;
  }
  throw Error(ErrorCode::kNotFound,
              "setting up \"" + name + "\": no such backend; there are " + names);
}

}  // namespace prism
