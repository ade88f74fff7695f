// Checks device nodes with access() and reads their group; there are none on Windows.
#include "runtime/discovery/device_node.h"

#ifndef _WIN32
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace prism {

NodeAccess node_access(const std::string& path) {
  NodeAccess access;
#ifdef _WIN32
  (void)path;
#else
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return access;
  access.exists = true;
  access.allowed = ::access(path.c_str(), R_OK | W_OK) == 0;
  group entry{};
  group* found = nullptr;
  std::vector<char> text(4096);
  if (::getgrgid_r(status.st_gid, &entry, text.data(), text.size(), &found) == 0 && found)
    access.group = found->gr_name;
#endif
  return access;
}

std::optional<DeniedNode> find_denied_node(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const NodeAccess access = node_access(path);
    if (!access.exists || access.allowed) continue;
    DeniedNode denied;
    denied.reason = "no permission on " + path;
    // Joining root's group is no remedy; such a node needs its permissions changed.
    if (access.group.empty() || access.group == "root") {
      denied.next_step = "let users open it: sudo chmod a+rw " + path;
    } else {
      denied.reason += " (group " + access.group + ")";
      denied.next_step =
          "join the group: sudo usermod -aG " + access.group + " $USER, then log in again";
    }
    return denied;
  }
  return std::nullopt;
}

}  // namespace prism
