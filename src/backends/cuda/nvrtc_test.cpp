// NVRTC: choice of the target, compilation, and the search for libraries.
#include "backends/cuda/nvrtc.h"

#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "backends/cuda/nvrtc_search.h"
#include "support/doubles/use_cuda_double.h"
#include "support/front_ends/front_end.h"
#include "support/front_ends/nvrtc_front_end.h"

namespace prism::cuda {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<Nvrtc> open(const char* variable) {
  return Nvrtc::from(DynamicLibrary::open_first({*test::front_end(variable)}));
}

std::string target(const Nvrtc& compiler, int capability, int driver) {
  Target chosen;
  std::string reason;
  return compiler.target_for(capability, driver, &chosen, &reason) ? chosen.architecture : reason;
}

TEST(Nvrtc, ChoosesWhatTheDriverCanLoad) {
  PRISM_SKIP_WITHOUT(test::kNvrtc12);
  const auto compiler = open(test::kNvrtc12);  // 12.9, compute capabilities 5.0 to 12.1
  ASSERT_TRUE(compiler);
  EXPECT_EQ(target(*compiler, 50, 12000), "sm_50");
  EXPECT_EQ(target(*compiler, 90, 12020), "sm_90");
  EXPECT_EQ(target(*compiler, 90, 13000), "sm_90");
  EXPECT_EQ(target(*compiler, 130, 13000), "compute_121")
      << "PTX, finished by a driver that is new enough";
  EXPECT_EQ(target(*compiler, 125, 12080), "sm_121") << "the driver cannot read the PTX of 12.9";
  EXPECT_NE(target(*compiler, 130, 12080).find("does not know compute capability 13.0"),
            std::string::npos);
  EXPECT_NE(target(*compiler, 90, 11080).find("NVRTC 12.9 is newer than the driver (CUDA 11.8)"),
            std::string::npos);
}

TEST(Nvrtc, NewGenerationDroppedOldCards) {
  PRISM_SKIP_WITHOUT(test::kNvrtc13);
  const auto compiler = open(test::kNvrtc13);
  ASSERT_TRUE(compiler);
  EXPECT_EQ(target(*compiler, 75, 13000), "sm_75");
  EXPECT_NE(target(*compiler, 61, 13000).find("7.5 and newer, this card has 6.1"),
            std::string::npos);
}

TEST(Nvrtc, CompilesToABinaryOrALog) {
  PRISM_SKIP_WITHOUT(test::kNvrtc12);
  const auto compiler = open(test::kNvrtc12);
  ASSERT_TRUE(compiler);
  const std::string good = "extern \"C\" __global__ void f(float* x) { x[threadIdx.x] = 1; }\n";
  const auto cubin = compiler->compile(good, "good.cu", {"sm_90", true});
  ASSERT_GT(cubin.binary.size(), 4u) << cubin.log;
  EXPECT_EQ(std::memcmp(cubin.binary.data(),
                        "\x7f"
                        "ELF",
                        4),
            0);
  const auto ptx = compiler->compile(good, "good.cu", {"compute_50", false});
  ASSERT_GT(ptx.binary.size(), 4u) << ptx.log;
  EXPECT_NE(std::string(reinterpret_cast<const char*>(ptx.binary.data())).find(".target sm_50"),
            std::string::npos);
  const auto bad = compiler->compile("\nno such thing;\n", "bad.cu", {"sm_90", true});
  EXPECT_TRUE(bad.binary.empty());
  EXPECT_NE(bad.log.find("bad.cu(2): error"), std::string::npos) << bad.log;
}

TEST(NvrtcSearch, FolderIsSearchedFittingGenerationFirst) {
  const test::TemporaryFolder folder;
  const fs::path twelve = folder.path() / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
  const fs::path thirteen = folder.path() / "fetched/nvidia/cu13/lib/libnvrtc.so.13";
  for (const fs::path& path : {twelve, thirteen}) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  const test::ScopedVariable named("PRISM_NVRTC_LIBRARY", folder.path().string());
  EXPECT_EQ(nvrtc_candidates(12040),
            (std::vector<std::string>{twelve.string(), thirteen.string()}));
  const auto newer = nvrtc_candidates(13000);
  EXPECT_EQ(newer.size(), 2u);
}

TEST(NvrtcSearch, CacheFolderIsSearchedAfterTheSystem) {
  const test::TemporaryFolder folder;
  const fs::path fetched =
      folder.path() / "cuda/nvidia_cuda_nvrtc_cu12-12.4.127/nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
  fs::create_directories(fetched.parent_path());
  std::ofstream(fetched) << "x";
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder.path().string());
  const auto candidates = nvrtc_candidates(12040);
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.front(), "libnvrtc.so.12");
  EXPECT_NE(std::find(candidates.begin(), candidates.end(), fetched.string()), candidates.end());
}

TEST(NvrtcSearch, CublasIsLookedForInTheSamePlaces) {
  const test::TemporaryFolder folder;
  const fs::path fetched = folder.path() / "cuda/nvidia_cublas/nvidia/cu13/lib/libcublasLt.so.13";
  fs::create_directories(fetched.parent_path());
  std::ofstream(fetched) << "x";
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder.path().string());
  const auto found = cublas_candidates(13000);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), "libcublasLt.so.13");
  EXPECT_NE(std::find(found.begin(), found.end(), fetched.string()), found.end());
  EXPECT_EQ(cublas_candidates(12040).front(), "libcublasLt.so.12");
}

TEST(NvrtcSearch, FileThatIsNoCompilerIsPassedOver) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "libnvrtc.so.12") << "not a library";
  const test::ScopedVariable named("PRISM_NVRTC_LIBRARY",
                                   (folder.path() / "libnvrtc.so.12").string());
  Compilers compilers(12040);
  Target chosen;
  std::string reason;
  EXPECT_EQ(compilers.find(90, &chosen, &reason), nullptr);
  EXPECT_NE(reason.find("PRISM_NVRTC_LIBRARY"), std::string::npos) << reason;
}

}  // namespace
}  // namespace prism::cuda
