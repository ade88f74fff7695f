// Device nodes that exist but that this user may not open: a reason of its own why a driver shows
// no device.
#pragma once

#include <string>
#include <vector>

namespace prism {

struct ClosedNode {
  std::string path;   // "/dev/dri/renderD128"
  std::string group;  // who may open it: "render"; empty when the group has no name or no access
};

// Those of the nodes this process may not read and write. A pattern ends in '*' to mean every name
// that starts so. Empty where nodes are not how devices are reached.
std::vector<ClosedNode> closed_nodes(const std::vector<std::string>& patterns);

// "no permission to open /dev/dri/renderD128 (group render)"; empty for no nodes.
std::string closed_nodes_reason(const std::vector<ClosedNode>& nodes);
// "add yourself to the group: sudo usermod -aG render $USER, then log in again"; empty for no
// nodes.
std::string closed_nodes_next_step(const std::vector<ClosedNode>& nodes);

}  // namespace prism
