// access() and stat() over /dev; the only file of the runtime that asks for users and groups.
#include "runtime/device_nodes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#if !defined(_WIN32)
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace prism {
namespace {

std::vector<std::string> matching(const std::string& pattern) {
  if (pattern.empty() || pattern.back() != '*') return {pattern};
  const std::filesystem::path start(pattern.substr(0, pattern.size() - 1));
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(start.parent_path(), failed)) {
    const std::string path = entry.path().string();
    if (path.rfind(start.string(), 0) == 0) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Each group once, in order.
std::vector<std::string> groups_of(const std::vector<ClosedNode>& nodes) {
  std::vector<std::string> groups;
  for (const ClosedNode& node : nodes)
    if (!node.group.empty() && std::find(groups.begin(), groups.end(), node.group) == groups.end())
      groups.push_back(node.group);
  return groups;
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

}  // namespace

std::vector<ClosedNode> closed_nodes(const std::vector<std::string>& patterns) {
  std::vector<ClosedNode> closed;
#if !defined(_WIN32)
  for (const std::string& pattern : patterns) {
    for (const std::string& path : matching(pattern)) {
      if (access(path.c_str(), R_OK | W_OK) == 0 || errno != EACCES) continue;
      ClosedNode node{path, ""};
      struct stat status {};
      // Joining the group helps only where the group has access.
      if (stat(path.c_str(), &status) == 0 &&
          (status.st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP)) {
        if (const group* owner = getgrgid(status.st_gid)) node.group = owner->gr_name;
      }
      closed.push_back(node);
    }
  }
#else
  (void)patterns;
  (void)matching;
#endif
  return closed;
}

std::string closed_nodes_reason(const std::vector<ClosedNode>& nodes) {
  if (nodes.empty()) return "";
  std::vector<std::string> paths;
  for (const ClosedNode& node : nodes)
    paths.push_back(node.path + (node.group.empty() ? "" : " (group " + node.group + ")"));
  return "no permission to open " + joined(paths, ", ");
}

std::string closed_nodes_next_step(const std::vector<ClosedNode>& nodes) {
  if (nodes.empty()) return "";
  const std::vector<std::string> groups = groups_of(nodes);
  if (groups.empty()) return "ask the machine's administrator for access to " + nodes.front().path;
  return std::string("join the group") + (groups.size() > 1 ? "s" : "") + ": sudo usermod -aG " +
         joined(groups, ",") + " $USER, then log in again";
}

}  // namespace prism
