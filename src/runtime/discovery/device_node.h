// Device nodes (/dev/...): whether this user may open one, and which group may.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace prism {

struct NodeAccess {
  bool exists = false;
  bool allowed = false;  // may be opened for reading and writing
  std::string group;     // the group it belongs to; empty where unknown
};

// Systems without device nodes (Windows) have none that exist.
NodeAccess node_access(const std::string& path);

struct DeniedNode {
  std::string reason;     // "no permission on /dev/dri/renderD128 (group render)"
  std::string next_step;  // the command that gives it
};

// The first of the nodes that exists and may not be opened; nothing when there is none.
std::optional<DeniedNode> find_denied_node(const std::vector<std::string>& paths);

}  // namespace prism
