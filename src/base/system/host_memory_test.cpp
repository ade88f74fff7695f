// Tests that the host's memory is plausible on this machine and respects control groups.
#include "base/system/host_memory.h"

#include <fstream>

#include <gtest/gtest.h>

#include "support/run_program.h"

namespace prism {
namespace {

TEST(HostMemory, IsPlausible) {
  const HostMemory memory = host_memory();
  EXPECT_GT(memory.total_bytes, 64ull << 20);
  EXPECT_LT(memory.total_bytes, 1ull << 50);
  EXPECT_GT(memory.available_bytes, 1ull << 20);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

#ifdef __linux__
// A tree of /proc and /sys files.
struct FakeSystem {
  test::TemporaryFolder folder;
  FakeSystem() { write("proc/meminfo", "MemTotal: 16000 kB\nMemAvailable: 12000 kB\n"); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << text;
  }
  HostMemory memory() const { return linux_memory(folder.path()); }
};

constexpr uint64_t kKib = 1024;

TEST(HostMemory, IsThatOfTheMachineWithoutLimits) {
  const FakeSystem system;
  system.write("proc/self/cgroup", "0::/user.slice\n");
  system.write("sys/fs/cgroup/user.slice/memory.max", "max\n");
  EXPECT_EQ(system.memory().total_bytes, 16000 * kKib);
  EXPECT_EQ(system.memory().available_bytes, 12000 * kKib);
}

TEST(HostMemory, KeepsToTheGroupOfTheProcess) {
  const FakeSystem system;
  system.write("proc/self/cgroup", "0::/user.slice/job\n");
  system.write("sys/fs/cgroup/user.slice/job/memory.max", "4096000\n");
  system.write("sys/fs/cgroup/user.slice/job/memory.current", "1024000\n");
  EXPECT_EQ(system.memory().total_bytes, 4000 * kKib);
  EXPECT_EQ(system.memory().available_bytes, 3000 * kKib);
  // The group's file cache can be reclaimed.
  system.write("sys/fs/cgroup/user.slice/job/memory.stat", "anon 5\ninactive_file 512000\n");
  EXPECT_EQ(system.memory().available_bytes, 3500 * kKib);
}

TEST(HostMemory, KeepsToTheGroupsAboveIt) {
  const FakeSystem system;
  system.write("proc/self/cgroup", "0::/user.slice/job\n");
  system.write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  system.write("sys/fs/cgroup/user.slice/memory.max", "2048000\n");
  system.write("sys/fs/cgroup/user.slice/memory.current", "4096000\n");
  EXPECT_EQ(system.memory().total_bytes, 2000 * kKib);
  EXPECT_EQ(system.memory().available_bytes, 0u);
}

TEST(HostMemory, KeepsToTheGroupsOfVersionOne) {
  const FakeSystem system;
  system.write("proc/self/cgroup", "8:pids:/\n4:cpu,memory:/docker/abc\n0::/\n");
  system.write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "4096000\n");
  system.write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "96000\n");
  EXPECT_EQ(system.memory().available_bytes, 4000000u);
  // A container sees only the mounted root group.
  const FakeSystem inside;
  inside.write("proc/self/cgroup", "4:memory:/docker/abc\n");
  inside.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2048000\n");
  EXPECT_EQ(inside.memory().total_bytes, 2000 * kKib);
}

TEST(HostMemory, IsKnownWithoutProc) {
  const test::TemporaryFolder empty;
  const HostMemory memory = linux_memory(empty.path());
  EXPECT_GT(memory.total_bytes, 64ull << 20);
  EXPECT_GT(memory.available_bytes, 1ull << 20);
}
#endif

}  // namespace
}  // namespace prism
