// `prism setup cuda`: selection of the wheel, and downloading NVRTC from an index in a folder.
#include <gtest/gtest.h>

#include <fstream>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/setup_cuda.h"
#include "base/cache_folder.h"
#include "support/doubles/use_cuda_double.h"
#include "support/paths.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(CudaWheel, SuitsDriverAndCards) {
  const auto choice = [](int driver, int capability) {
    const auto wheel = cuda::wheel_for(driver, capability);
    return wheel.package + wheel.versions;
  };
  EXPECT_EQ(choice(11040, 61), "nvidia-cuda-nvrtc-cu11>=11,<11.5");
  EXPECT_EQ(choice(12040, 90), "nvidia-cuda-nvrtc-cu12>=12,<12.5");
  EXPECT_EQ(choice(13000, 90), "nvidia-cuda-nvrtc>=13,<13.1");
  EXPECT_EQ(choice(13020, 75), "nvidia-cuda-nvrtc>=13,<13.3");
  EXPECT_EQ(choice(13000, 61), "nvidia-cuda-nvrtc-cu12>=12,<13") << "NVRTC 13 has dropped Pascal";
}

class CudaSetUp : public testing::Test {
 protected:
  void SetUp() override {
    if (test::run_process({"sh", "-c", "python3 -m pip --version"}).status != 0)
      GTEST_SKIP() << "python3 has no pip here";
    fs::create_directories(index_);
    fs::create_directories(cache_folder() / "cuda");
  }
  void TearDown() override { double_.expect_clean(); }

  // A wheel that contains the double as NVRTC, laid out like the real package of that version.
  fs::path make_wheel(const std::string& version, const fs::path& into) {
    const std::string name = "nvidia_cuda_nvrtc_cu12-" + version;
    const fs::path wheel = into / (name + "-py3-none-any.whl");
    const fs::path script = double_.folder() / "make_wheel.py";
    std::ofstream(script) << "import sys, zipfile\n"
                             "wheel, name, version, library = sys.argv[1:]\n"
                             "with zipfile.ZipFile(wheel, 'w') as z:\n"
                             "    z.write(library, 'nvidia/cuda_nvrtc/lib/libnvrtc.so.12')\n"
                             "    info = name + '.dist-info/'\n"
                             "    z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: "
                             "nvidia-cuda-nvrtc-cu12\\nVersion: '"
                             " + version + '\\n')\n"
                             "    z.writestr(info + 'WHEEL', 'Wheel-Version: "
                             "1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
                             "    z.writestr(info + 'RECORD', '')\n";
    const auto result =
        test::run_process({"python3", script.string(), wheel.string(), name, version,
                           (test::binary_dir() / "doubles" / "libcuda_double.so").string()});
    EXPECT_EQ(result.status, 0) << result.output;
    return wheel;
  }

  test::CudaDouble double_;
  // NVRTC is searched only where the set-up installs it.
  test::ScopedVariable hidden_{"PRISM_NVRTC_LIBRARY", (cache_folder() / "cuda").string()};
  fs::path index_ = double_.folder() / "index";
  // The wheel's copy of the double is a separate library, configured through the environment.
  test::ScopedVariable told_{"PRISM_CUDA_DOUBLE", "nvrtc=12040"};
  test::ScopedVariable no_index_{"PIP_NO_INDEX", "1"};
  test::ScopedVariable links_{"PIP_FIND_LINKS", index_.string()};
  std::vector<std::string> lines_;
  std::function<void(const std::string&)> progress_ = [this](const std::string& line) {
    lines_.push_back(line);
  };
};

TEST_F(CudaSetUp, FetchesTheNewestThatFitsTheDriver) {
  double_.set("driver=12040");
  make_wheel("12.3.107", index_);
  make_wheel("12.4.127", index_);
  make_wheel("12.9.86", index_);
  EXPECT_TRUE(double_.discover().devices.empty());
  EXPECT_NE(double_.discover().next_step.find("prism setup cuda"), std::string::npos);

  const std::string said = make_cuda_backend()->set_up(progress_);
  EXPECT_NE(said.find("NVRTC 12.4"), std::string::npos) << said;
  EXPECT_NE(said.find("12.4.127"), std::string::npos) << said;
  EXPECT_FALSE(lines_.empty());
  EXPECT_EQ(double_.discover().devices.size(), 1u) << double_.discover().reason;

  lines_.clear();
  const std::string again = make_cuda_backend()->set_up(progress_);
  EXPECT_NE(again.find("nothing to fetch"), std::string::npos) << again;
  EXPECT_TRUE(lines_.empty());
  for (const auto& entry : fs::directory_iterator(cache_folder() / "cuda"))
    EXPECT_NE(entry.path().filename().string().rfind(".fetch", 0), 0u) << entry.path();
}

TEST_F(CudaSetUp, TakesAWheelPutThereByHand) {
  double_.set("driver=12040");
  make_wheel("12.4.127", cache_folder() / "cuda");
  make_cuda_backend()->set_up(progress_);
  EXPECT_EQ(double_.discover().devices.size(), 1u) << double_.discover().reason;
}

TEST_F(CudaSetUp, WithoutThePackageItSaysWhatPipSaid) {
  double_.set("driver=12040");
  try {
    make_cuda_backend()->set_up(progress_);
    FAIL() << "nothing was there to fetch";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    const std::string message = error.what();
    EXPECT_NE(message.find("nvidia-cuda-nvrtc-cu12>=12,<12.5"), std::string::npos) << message;
    EXPECT_NE(message.find("No matching distribution"), std::string::npos) << message;
    EXPECT_NE(message.find((cache_folder() / "cuda").string()), std::string::npos) << message;
  }
}

TEST_F(CudaSetUp, DamagedWheelIsAnError) {
  double_.set("driver=12040");
  std::ofstream(cache_folder() / "cuda" / "nvidia_cuda_nvrtc_cu12-12.4.127-py3-none-any.whl")
      << "not a zip archive";
  try {
    make_cuda_backend()->set_up(progress_);
    FAIL() << "it was unpacked";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("cannot be unpacked"), std::string::npos)
        << error.what();
  }
}

TEST_F(CudaSetUp, WithoutADriverItSaysSo) {
  double_.set("init=100");
  try {
    make_cuda_backend()->set_up(progress_);
    FAIL() << "there is no driver";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("sees no NVIDIA GPU"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace prism
