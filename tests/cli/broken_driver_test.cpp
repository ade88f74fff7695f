// OpenCL drivers that abort, crash, exit or hang: the program lists them with the reason and uses
// the other devices.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/system/probe_library.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

#ifdef __linux__

class BrokenDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (find_library({"libOpenCL.so.1"}).empty()) GTEST_SKIP() << "needs OpenCL's loader";
  }

  // Makes the only OpenCL driver of the machine one that runs this statement when it is loaded.
  void install(const std::string& statement) {
    const std::string source = folder_ / "driver.cpp", library = folder_ / "driver.so";
    write_file(source,
               "#include <csignal>\n#include <cstdlib>\n#include <unistd.h>\n"
               "__attribute__((constructor)) void start() { " +
                   statement + " }\n");
    const ProcessResult built =
        run_process({host_compiler(), "-shared", "-fPIC", "-o", library, source});
    ASSERT_EQ(built.status, 0) << built.output;
    write_file(folder_ / "broken.icd", library + "\n");
    std::filesystem::remove_all(folder_ / "cache");
  }

  ProcessResult prism(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"env",
                                    "OCL_ICD_VENDORS=" + folder_.path().string(),
                                    "PRISM_CACHE_DIR=" + folder_ / "cache",
                                    "PRISM_BACKENDS=opencl,cpu",
                                    "PRISM_DRIVER_SECONDS=2",
                                    program().string()};
    all.insert(all.end(), words.begin(), words.end());
    return run_process(all);
  }
  void expect_left_out(const std::string& statement, const std::string& reason) {
    install(statement);
    for (int run = 0; run < 2; ++run) {  // the second one remembers
      const ProcessResult result = prism({"devices"});
      EXPECT_EQ(result.status, 0) << result.output;
      EXPECT_NE(result.output.find("its driver " + reason), std::string::npos) << result.output;
      EXPECT_NE(result.output.find("Chosen: cpu:0"), std::string::npos) << result.output;
      EXPECT_EQ(result.output.find("within the last hour") != std::string::npos, run == 1)
          << result.output;
    }
    const ProcessResult named = prism({"check", "--device", "opencl"});
    EXPECT_EQ(named.status, 2) << named.output;
    EXPECT_NE(named.output.find("opencl cannot be used: its driver " + reason), std::string::npos)
        << named.output;
  }

  TemporaryFolder folder_;
};

TEST_F(BrokenDriver, ThatAborts) {
  expect_left_out("abort();", "crashed when it was tried (Aborted)");
}
TEST_F(BrokenDriver, ThatCrashes) {
  expect_left_out("raise(SIGSEGV);", "crashed when it was tried (Segmentation fault)");
}
TEST_F(BrokenDriver, ThatExits) {
  expect_left_out("exit(0);", "ended the process when it was tried");
}
TEST_F(BrokenDriver, ThatHangs) {
  expect_left_out("sleep(600);", "did not answer within 2000 ms when it was tried");
}

#endif

}  // namespace
}  // namespace prism::test
