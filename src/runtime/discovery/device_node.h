// Access to device nodes (/dev/...): whether this user may open one, and which group may.
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

// On systems without device nodes (Windows) every node is reported as missing.
NodeAccess node_access(const std::string& path);

struct DeniedNode {
  std::string reason;     // "no permission on /dev/dri/renderD128 (group render)"
  std::string next_step;  // the command that grants access
};

// The first existing node that this user may not open, if any.
std::optional<DeniedNode> find_denied_node(const std::vector<std::string>& paths);

}  // namespace prism
