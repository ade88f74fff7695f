// Access checks of device nodes.
#include "runtime/discovery/device_node.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace prism {
namespace {

TEST(DeviceNode, AbsentNodeIsNotDenied) {
  EXPECT_FALSE(node_access("/dev/prism-has-no-such-node").exists);
  EXPECT_FALSE(find_denied_node({"/dev/prism-has-no-such-node"}).has_value());
}

#ifndef _WIN32
TEST(DeviceNode, OpenNodeIsAllowed) {
  const NodeAccess access = node_access("/dev/null");
  EXPECT_TRUE(access.exists);
  EXPECT_TRUE(access.allowed);
  EXPECT_FALSE(find_denied_node({"/dev/null"}).has_value());
}

TEST(DeviceNode, ClosedNodeNamesPathAndCommand) {
  namespace fs = std::filesystem;
  const fs::path path =
      fs::temp_directory_path() / ("prism_closed_node_" + std::to_string(getpid()));
  fs::remove(path);
  std::ofstream(path) << "x";
  fs::permissions(path, fs::perms::none);
  if (node_access(path.string()).allowed) {
    fs::remove(path);
    GTEST_SKIP() << "root opens every node";
  }
  const auto denied = find_denied_node({"/dev/prism-has-no-such-node", path.string()});
  fs::remove(path);
  ASSERT_TRUE(denied.has_value());
  EXPECT_NE(denied->reason.find("no permission on " + path.string()), std::string::npos)
      << denied->reason;
  EXPECT_NE(denied->next_step.find("sudo "), std::string::npos) << denied->next_step;
}
#endif

}  // namespace
}  // namespace prism
