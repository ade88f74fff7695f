// The registry of backends, each of which discovers its devices on first use.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "prism/device.h"
#include "runtime/discovery/backend_list.h"

namespace prism {

// The backends of one process, in order. Each discovers its devices once; several do so
// concurrently. Before the first driver starts, all drivers are tried in a child process
// (driver_trial.h). Thread-safe.
class Registry {
 public:
  // allowed: the text of PRISM_BACKENDS, empty for all. An excluded backend stays in the list with
  // that reason. The test backend "null" is listed only when named. Throws kInvalidArgument for an
  // unknown name.
  Registry(const std::vector<BackendMaker>& makers, const std::string& allowed);
  Registry(std::vector<std::unique_ptr<Backend>> backends, const std::string& allowed);

  // One report per backend.
  const std::vector<BackendReport>& all();
  bool has_all() const;
  // The same list, but only the named backends discover devices; the others report that they did
  // not. Unknown names are ignored. If a device needs the other devices of its card (SharesCard),
  // all backends discover.
  std::vector<BackendReport> only(const std::set<std::string>& names);

 private:
  struct Slot {
    std::string name;
    std::unique_ptr<Backend> (*make)() = nullptr;
    std::unique_ptr<Backend> backend;  // null until created
    bool is_left_out = false;
    bool looked = false;
    std::string trial_failure;  // why its driver must not start; empty: it may
    BackendReport report;
  };
  void limit();
  void look_for(const std::vector<Slot*>& wanted);
  void try_drivers(const std::vector<Slot*>& pending);
  const std::vector<BackendReport>& all_locked();

  std::string allowed_;
  std::vector<Slot> slots_;
  mutable std::mutex mutex_;
  std::vector<BackendReport> all_;
  bool has_all_ = false;
  bool has_tried_drivers_ = false;
};

// Registry::all() for these backends.
std::vector<BackendReport> find_devices(std::vector<std::unique_ptr<Backend>> backends,
                                        const std::string& allowed);

// The lines of backend_summary() for these reports and this choice; choice.device may be empty.
std::string summary_text(const std::vector<BackendReport>& reports, const Choice& choice);

}  // namespace prism
