// Looking for the devices of the backends, of each when it is first wanted.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "prism/device.h"
#include "runtime/discovery/backend_list.h"

namespace prism {

// The backends of one process in their order. Each looks for its devices once; several at the same
// time. Safe to use from several threads.
class Registry {
 public:
  // allowed: the text of PRISM_BACKENDS, empty for all; one left out by it stays in the list with
  // that reason. Backends for tests only (name "null") are in the list only when it names them.
  // Throws kInvalidArgument for a name that is none of them.
  Registry(const std::vector<BackendMaker>& makers, const std::string& allowed);
  Registry(std::vector<std::unique_ptr<Backend>> backends, const std::string& allowed);

  // One report a backend.
  const std::vector<BackendReport>& all();
  bool has_all() const;
  // The same list, but only the named ones have looked for their devices: the others say that they
  // have not. Names of no backend are passed over. A device that needs to be told of its card
  // (SharesCard) has all looked for.
  std::vector<BackendReport> only(const std::set<std::string>& names);

 private:
  struct Slot {
    std::string name;
    std::unique_ptr<Backend> (*make)() = nullptr;
    std::unique_ptr<Backend> backend;  // null until made
    bool is_left_out = false;
    bool looked = false;
    BackendReport report;
  };
  void limit();
  void look_for(const std::vector<Slot*>& wanted);
  const std::vector<BackendReport>& all_locked();

  std::string allowed_;
  std::vector<Slot> slots_;
  mutable std::mutex mutex_;
  std::vector<BackendReport> all_;
  bool has_all_ = false;
};

// Registry::all() of these backends.
std::vector<BackendReport> find_devices(std::vector<std::unique_ptr<Backend>> backends,
                                        const std::string& allowed);

// The lines of backend_summary() for these reports and this choice; choice.device may be empty.
std::string summary_text(const std::vector<BackendReport>& reports, const Choice& choice);

}  // namespace prism
