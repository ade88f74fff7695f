// Nodes are told apart by permission; the message names the group to join.
#include "runtime/device_nodes.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(DeviceNodes, SaysTheGroupToJoin) {
  const std::vector<ClosedNode> nodes = {
      {"/dev/dri/renderD128", "render"}, {"/dev/kfd", "render"}, {"/dev/x", ""}};
  EXPECT_EQ(
      closed_nodes_reason(nodes),
      "no permission to open /dev/dri/renderD128 (group render), /dev/kfd (group render), /dev/x");
  EXPECT_EQ(closed_nodes_next_step(nodes),
            "join the group: sudo usermod -aG render $USER, then log in again");
  EXPECT_EQ(closed_nodes_next_step({{"/dev/a", "video"}, {"/dev/b", "render"}}),
            "join the groups: sudo usermod -aG video,render $USER, then log in again");
  EXPECT_EQ(closed_nodes_reason({}), "");
  EXPECT_EQ(closed_nodes_next_step({}), "");
}

TEST(DeviceNodes, FindsOnlyWhatIsThereAndClosed) {
#if defined(_WIN32)
  GTEST_SKIP() << "devices are not reached by nodes here";
#else
  const fs::path folder = fs::temp_directory_path() / "prism-device-nodes-test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "node0") << "x";
  std::ofstream(folder / "node1") << "x";
  fs::permissions(folder / "node1", fs::perms::group_read | fs::perms::group_write);
  EXPECT_TRUE(closed_nodes({(folder / "absent").string(), (folder / "node0").string()}).empty());
  const auto found_as_it_should = [&] {
    const auto closed = closed_nodes({(folder / "node*").string()});
    return closed.size() == 1 && closed[0].path == (folder / "node1").string() &&
           !closed[0].group.empty();
  };
  if (geteuid() != 0) {
    EXPECT_TRUE(found_as_it_should());
  } else {
    // The administrator may open everything, so a child asks as nobody.
    EXPECT_TRUE(closed_nodes({(folder / "node*").string()}).empty());
    fs::permissions(folder / "node0", fs::perms::all);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(setgid(65534) == 0 && setuid(65534) == 0 && found_as_it_should() ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  fs::remove_all(folder);
#endif
}

}  // namespace
}  // namespace prism
