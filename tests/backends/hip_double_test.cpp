// The HIP backend over a double of ROCm's runtime: discovery, old cards, failures, recordings,
// every kernel and a sample of the ops.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "conformance/suite.h"
#include "llm/model/model.h"
#include "lower/lower.h"
#include "ops/attention/attention_kernels.h"
#include "ops/products/product_kernels.h"
#include "print/printer.h"
#include "prism/device.h"
#include "prism/kernel.h"
#include "runtime/measure/self_check.h"
#include "support/backend_cases.h"
#include "support/doubles/double_cases.h"
#include "support/doubles/double_faults.h"
#include "support/doubles/double_ops.h"
#include "support/doubles/use_hip_double.h"
#include "support/models/expected_text.h"
#include "support/seed.h"
#include "tensor/storage.h"

namespace prism {
namespace {

using test::HipDouble;

class HipDoubleTest : public testing::Test {
 protected:
  // Checks that all handles were freed and that nothing wrote outside a buffer.
  void TearDown() override { double_.expect_clean(); }
  HipDouble double_;
};

using test::add_one_kernel;
using test::contains;
using test::counting;
using test::error_of;
using test::scale_kernel;

// --- discovery

TEST_F(HipDoubleTest, DescribesTheDevice) {
  double_.set("memory=2147483648,gfx=1030,hip=60200000");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 1u) << found.reason;
  EXPECT_EQ(found.reason, "");
  const DeviceInfo& info = found.devices[0]->info();
  EXPECT_EQ(info.id, "hip:0");
  EXPECT_EQ(info.name, "Double of a GPU gfx1030");
  EXPECT_EQ(info.vendor, "AMD");
  EXPECT_EQ(info.card, "0000:a1:00.0");
  EXPECT_EQ(info.driver, "HIP 6.2, hiprtc 6.2");
  EXPECT_EQ(info.total_bytes, 2147483648u);
  EXPECT_EQ(found.devices[0]->free_bytes(), 2147483648u);
  EXPECT_EQ(info.compute_units, 4u);
  const ir::Capabilities& can = info.capabilities;
  EXPECT_EQ(can.dialect, "hip");
  EXPECT_EQ(can.dialect_level, 0x1030u);
  EXPECT_EQ(can.subgroup_size, 32u);
  EXPECT_TRUE(can.math_f16);
  EXPECT_TRUE(can.dot4);
  EXPECT_EQ(can.shared_bytes, 64u << 10);
  EXPECT_EQ(can.max_groups[0], 0xffffffffu / 1024);
}

struct Card {
  const char* number;
  uint32_t wave;
  bool dot4;
};

class HipDoubleCard : public testing::TestWithParam<Card> {};

TEST_P(HipDoubleCard, IsAFullMember) {
  HipDouble the_double;
  the_double.set(std::string("gfx=") + GetParam().number);
  const Device device = the_double.device();
  EXPECT_EQ(device.info().capabilities.subgroup_size, GetParam().wave);
  EXPECT_EQ(device.info().capabilities.dot4, GetParam().dot4);
  SelfCheckOptions options;
  options.kernels = {"half_arithmetic", "dot_rows", "row_softmax", "weighted_histogram"};
  const SelfCheck check = self_check(device, options);
  EXPECT_TRUE(check.right()) << check.complaint();
  EXPECT_TRUE(check.switched_off.empty()) << check.switched_off[0];
}

INSTANTIATE_TEST_SUITE_P(Cards, HipDoubleCard,
                         testing::Values(Card{"803", 64, false}, Card{"900", 64, false},
                                         Card{"906", 64, true}, Card{"1010", 32, false},
                                         Card{"1100", 32, true}),
                         [](const auto& test) { return std::string("gfx") + test.param.number; });

TEST_F(HipDoubleTest, EveryCardIsOffered) {
  double_.set("devices=3");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 3u);
  EXPECT_EQ(found.devices[2]->info().id, "hip:2");
  EXPECT_EQ(found.devices[2]->info().card, "0000:a3:00.0");
  const Device second(found.devices[1], "");
  const Buffer buffer = second.upload(counting(16));
  EXPECT_EQ(second.download<float>(buffer), counting(16));
}

// --- cards that this ROCm does not support

TEST_F(HipDoubleTest, ChipTheCompilerRefusesIsAReasonWithAnotherWay) {
  double_.set("gfx=803,refuse_chip=1");
  const Discovery found = double_.discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_TRUE(contains(found.reason, "hiprtc 6.2 does not compile for gfx803")) << found.reason;
  EXPECT_TRUE(contains(found.reason, "invalid target ID")) << found.reason;
  EXPECT_TRUE(contains(found.next_step, "Vulkan")) << found.next_step;
  EXPECT_TRUE(contains(found.next_step, "ROCm 5.7 or older and set ROC_ENABLE_PRE_VEGA=1"))
      << found.next_step;
}

TEST_F(HipDoubleTest, CompilerThatCrashesOnAChipIsAReasonAndTriedOnce) {
  double_.set("gfx=1201,crash=hiprtcCompileProgram,hiprtc=502");
  for (int process = 0; process < 2; ++process) {
    const Discovery found = double_.discover();
    EXPECT_TRUE(found.devices.empty());
    EXPECT_TRUE(contains(found.reason, "does not compile for gfx1201")) << found.reason;
    EXPECT_TRUE(contains(found.reason, "crashed when it was tried")) << found.reason;
    EXPECT_TRUE(contains(found.next_step, "a newer ROCm")) << found.next_step;
    double_.set("gfx=1201,hiprtc=502");  // the result is cached for that version
  }
  double_.set("gfx=1201,hiprtc=604");
  EXPECT_EQ(double_.discover().devices.size(), 1u);
}

TEST_F(HipDoubleTest, ChipTheRuntimeHidesIsNamedFromTheKernel) {
  double_.set("devices=0");
  for (const auto& [version, node] : {std::pair{"0", "0"}, {"80003", "1"}}) {
    const auto folder = double_.folder() / "nodes" / node;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "properties")
        << "cpu_cores_count 0\nsimd_count 144\n"
        << "gfx_target_version " << version << "\nvendor_id 4098\n";
  }
  const auto topology =
      double_.variable("PRISM_KFD_TOPOLOGY", (double_.folder() / "nodes").string());
  const Discovery found = double_.discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_TRUE(contains(found.reason, "HIP runtime 6.2 does not know the card")) << found.reason;
  EXPECT_TRUE(contains(found.reason, "(gfx803)")) << found.reason;
  EXPECT_TRUE(contains(found.next_step, "Vulkan")) << found.next_step;
}

TEST_F(HipDoubleTest, SiblingOfAKnownChipIsToldTheOverride) {
  double_.set("gfx=1032,refuse_chip=1");
  const Discovery found = double_.discover();
  EXPECT_TRUE(contains(found.next_step, "HSA_OVERRIDE_GFX_VERSION=10.3.0")) << found.next_step;
}

TEST_F(HipDoubleTest, MissingLibrariesAreReasons) {
  {
    const auto hidden = double_.variable("PRISM_HIPRTC_LIBRARY", "/no/such/libhiprtc.so");
    const Discovery found = double_.discover();
    EXPECT_TRUE(contains(found.reason, "Double of a GPU gfx1030: hiprtc")) << found.reason;
    EXPECT_TRUE(contains(found.next_step, "Vulkan")) << found.next_step;
  }
  const auto hidden = double_.variable("PRISM_HIP_LIBRARY", "/no/such/libamdhip64.so");
  const Discovery found = double_.discover();
  EXPECT_TRUE(contains(found.reason, "PRISM_HIP_LIBRARY names /no/such/libamdhip64.so"))
      << found.reason;
  EXPECT_FALSE(found.next_step.empty());
}

TEST_F(HipDoubleTest, RuntimeThatDoesNotStartIsAReason) {
  double_.set("fail=hipInit:1:303");
  const Discovery found = double_.discover();
  EXPECT_TRUE(contains(found.reason, "does not start")) << found.reason;
  EXPECT_FALSE(found.next_step.empty());
}

TEST_F(HipDoubleTest, LibraryThatCrashesOrIsEmptyIsAReason) {
  double_.set("crash=hipInit");
  const Discovery crashed = double_.discover();
  EXPECT_TRUE(contains(crashed.reason, "crashed when it was tried")) << crashed.reason;
  EXPECT_TRUE(contains(crashed.next_step, "Vulkan")) << crashed.next_step;
  const auto empty = double_.folder() / "libamdhip64.so";
  std::ofstream(empty).flush();
  const auto named = double_.variable("PRISM_HIP_LIBRARY", empty.string());
  const Discovery found = double_.discover();
  EXPECT_TRUE(contains(found.reason, "cannot be opened")) << found.reason;
}

// --- work

TEST_F(HipDoubleTest, RunsAKernelAndItsRecording) {
  const Device device = double_.device();
  const std::vector<float> x = counting(1000);
  const Buffer from = device.upload(x), to = device.allocate(x.size() * 4);
  Queue& queue = device.queue();
  const Program scale = device.compile(scale_kernel()), add = device.compile(add_one_kernel());
  const CommandGraph recording = queue.record([&] {
    queue.launch(scale, 16, {from, to}, {1000u, 2.0f});
    queue.launch(add, 16, {to}, {1000u});
  });
  EXPECT_EQ(double_.count("launches"), 0);
  queue.replay(recording);
  queue.replay(recording);
  const auto y = device.download<float>(to);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
  EXPECT_EQ(double_.count("graph_launches"), 2);
  EXPECT_EQ(double_.count("launches"), 4);
}

TEST_F(HipDoubleTest, AnotherDeviceOfTheThreadComesBack) {
  double_.set("devices=2");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 2u);
  const Device first(found.devices[0], ""), second(found.devices[1], "");
  const Buffer a = first.upload(counting(64)), b = second.upload(counting(64));
  first.queue().launch(first.compile(add_one_kernel()), 1, {a}, {64u});
  second.queue().launch(second.compile(add_one_kernel()), 1, {b}, {64u});
  EXPECT_EQ(first.download<float>(a)[7], 8.0f);
  EXPECT_EQ(second.download<float>(b)[9], 10.0f);
}

// The cases of every backend, on a card with less memory than the machine.
class HipDoubleCases : public HipDoubleTest,
                       public testing::WithParamInterface<test::BackendCase> {};

TEST_P(HipDoubleCases, Hold) {
  double_.set("memory=1073741824");
  test::BackendUnderTest backend;
  backend.dialect = "hip";
  backend.discover = [&] { return double_.discover(); };
  backend.cannot = {{"RefusesInTheCompilersWords",
                     "the double compiles at the first launch; told to refuse below"},
                    {"ALostDeviceIsAnError", "the double loses one by a launch, below"}};
  test::run_backend_case(GetParam(), backend, double_.device());
}
INSTANTIATE_TEST_SUITE_P(All, HipDoubleCases, testing::ValuesIn(test::backend_cases()),
                         test::backend_case_name);

// --- failures

TEST_F(HipDoubleTest, AllocationBeyondMemoryNamesDeviceAskedAndFree) {
  double_.set("memory=1073741824");
  const Device device = double_.device();
  const Error error = error_of([&] { device.allocate(3ull << 30); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(contains(error.what(), "hip:0 (Double of a GPU gfx1030)")) << error.what();
  EXPECT_TRUE(contains(error.what(), "1.00 GiB of 1.00 GiB are free")) << error.what();
}

TEST_F(HipDoubleTest, LostDeviceIsToldAtTheWaitAndNamesTheKernel) {
  const Device device = double_.device();
  const Program program = device.compile(add_one_kernel());
  const Buffer buffer = device.upload(counting(64));
  Queue& queue = device.queue();
  queue.wait();
  double_.set("lose_launch=1");
  EXPECT_NO_THROW(queue.launch(program, 1, {buffer}, {64u}));
  const Error error = error_of([&] { queue.wait(); });
  EXPECT_EQ(error.code(), ErrorCode::kDeviceLost);
  EXPECT_TRUE(contains(error.what(), "kernel add_one")) << error.what();
  EXPECT_TRUE(contains(error.what(), "hipErrorIllegalAddress: an illegal memory access"))
      << error.what();
  EXPECT_EQ(error_of([&] { device.allocate(16); }).code(), ErrorCode::kDeviceLost);
}

// Any failing call gives a prism::Error with the runtime's message, and nothing leaks.
class HipDoubleCall : public testing::TestWithParam<const char*> {};

TEST_P(HipDoubleCall, FailureIsAnError) {
  HipDouble the_double;
  {
    const Device device = the_double.device();
    the_double.set(std::string("fail=") + GetParam() + ":1:719");
    const Error error = error_of([&] {
      const Buffer a = device.upload(counting(64)), b = device.allocate(64 * 4);
      Queue& queue = device.queue();
      const Program program = device.compile(add_one_kernel());
      const CommandGraph recording = queue.record([&] {
        queue.launch(program, 1, {a}, {64u});
        queue.copy(b, a, 64 * 4);
      });
      const Event event = queue.record_event();
      queue.replay(recording);
      event.done();
      queue.wait();
      device.free_bytes();
      device.download<float>(b);
    });
    EXPECT_EQ(error.code(), ErrorCode::kDeviceLost) << error.what();
    EXPECT_TRUE(contains(error.what(), "hipErrorLaunchFailure")) << error.what();
    EXPECT_EQ(the_double.count(std::string("calls_") + GetParam()) > 0, true);
  }
  the_double.expect_clean();
}

INSTANTIATE_TEST_SUITE_P(
    Calls, HipDoubleCall,
    testing::Values("hipGetDevice", "hipMemGetInfo", "hipMalloc", "hipHostMalloc",
                    "hipMemcpyHtoDAsync", "hipMemcpyDtoHAsync", "hipMemcpyDtoDAsync",
                    "hipModuleLoadData", "hipModuleGetFunction", "hipModuleLaunchKernel",
                    "hipStreamCreateWithFlags", "hipStreamSynchronize", "hipStreamBeginCapture",
                    "hipStreamEndCapture", "hipEventCreateWithFlags", "hipEventRecord",
                    "hipEventQuery", "hipGraphInstantiateWithFlags", "hipGraphLaunch"),
    [](const auto& test) { return std::string(test.param); });

TEST_F(HipDoubleTest, RefusedTextShowsLogNumberedSourceAndFile) {
  const Device device = double_.device();
  double_.set("fail_compile=1");
  const Error error = error_of([&] { device.compile(scale_kernel()); });
  EXPECT_EQ(error.code(), ErrorCode::kCompile);
  EXPECT_TRUE(contains(error.what(), "the double was told to refuse")) << error.what();
  EXPECT_TRUE(contains(error.what(), ".hip\n")) << error.what();
}

// --- the cache on disk

TEST_F(HipDoubleTest, CompiledKernelIsFoundByTheNextProcessAndOfNoUseToAnotherChip) {
  for (int process = 0; process < 3; ++process) double_.device().compile(scale_kernel());
  EXPECT_EQ(double_.count("compiles"), 1);  // the compiler was probed in a child process
  double_.set("gfx=1100");
  double_.device().compile(scale_kernel());
  EXPECT_EQ(double_.count("compiles"), 2);
  double_.set("refuse_module=1");
  EXPECT_NO_THROW(double_.device().compile(scale_kernel()));
  EXPECT_EQ(double_.count("compiles"), 3);
}

// --- what it computes

TEST_F(HipDoubleTest, EveryKernelIsRight) {
  const SelfCheck check = self_check(double_.device());
  EXPECT_GE(check.kernels.size(), 30u);
  EXPECT_TRUE(check.right()) << check.complaint();
  EXPECT_EQ(check.count(CheckOutcome::skipped), 0u);
  EXPECT_TRUE(check.switched_off.empty()) << check.switched_off[0];
}

TEST_F(HipDoubleTest, WrongResultsAreCaughtByTheSelfCheck) {
  const Device device = double_.device();
  double_.set("wrong_results=1");
  SelfCheckOptions options;
  options.kernels = {"iota", "sum_rows"};
  const SelfCheck check = self_check(device, options);
  EXPECT_EQ(check.count(CheckOutcome::wrong), 2u) << check.complaint();
}

TEST(HipDoubleOps, SampleIsRight) {
  HipDouble the_double;
  test::expect_ops_sample_is_right(the_double, 120);
}

TEST(HipDoubleOps, ProductsAndAttentionAreGivenToMatrixInstructions) {
  for (const auto& [chip, instruction] : {std::pair{"90a", "__builtin_amdgcn_mfma_f32"},
                                          {"1100", "__builtin_amdgcn_wmma_f32"},
                                          {"1201", "__builtin_amdgcn_wmma_f32"}}) {
    HipDouble the_double;
    the_double.set(std::string("gfx=") + chip);
    const ir::Capabilities can = the_double.device().info().capabilities;
    ops::FragmentProduct product;
    product = ops::fragment_product_for(product, ops::dense_shape(product, 256, 256, 256), can, 4);
    ops::AttentionOptions attention;
    attention.head_dim = 64;
    ops::PromptTile tile{4, 1, 32, 1, true};
    tile.subgroup = ops::fragment_subgroup(can);
    for (const ir::Kernel& kernel :
         {ops::fragment_product(product), ops::attention_prompt(attention, tile)})
      EXPECT_TRUE(contains(print_hip(lower(kernel, can), can).text, instruction))
          << chip << " " << kernel.name;
  }
}

// A whole language model, prompt and replayed steps, with both wave sizes.
TEST(HipDoubleModel, GreedyTextIsThatOfTheReference) {
  if (test::shared_model("stories260K").empty())
    GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  constexpr size_t kTokens = 6;
  const auto expected = test::expected_text("stories260K.once", "stories260K.once.f32");
  const llm::GgufFile file = llm::GgufFile::open(test::shared_model("stories260K"));
  for (const char* chip : {"803", "1030"}) {
    HipDouble the_double;
    the_double.set(std::string("memory=4294967296,gfx=") + chip);
    const Device device = the_double.device();
    {
      llm::Model model = llm::Model::load(
          file, {.placement = llm::place_on(file, device, 64, DType::f32), .batch_rows = 16});
      std::vector<int32_t> ids(expected.ids.begin(),
                               expected.ids.begin() + static_cast<ptrdiff_t>(expected.prompt));
      std::vector<float> logits = model.prefill(0, 0, ids).to_vector<float>();
      for (size_t i = 0; i < kTokens; ++i) {
        ids.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
        ASSERT_EQ(ids.back(), expected.ids[ids.size() - 1]) << chip << ", token " << i;
        const llm::SequencePart part{0, static_cast<int32_t>(ids.size() - 1),
                                     std::span(ids).last(1)};
        logits = model.forward(std::span(&part, 1)).to_vector<float>();
      }
      EXPECT_GT(the_double.count("graph_launches"), 0);
    }
    EXPECT_EQ(the_double.count("overruns"), 0);
    EXPECT_EQ(the_double.count("misuses"), 0);
    release_pooled_memory(device);
  }
}

// Matrix instructions in each of the three layouts, inside the kernels of ops.
TEST(HipDoubleOps, ProductsByMatrixInstructionsAreRight) {
  for (const char* chip : {"90a", "1100", "1201"}) {
    HipDouble the_double;
    the_double.set(std::string("memory=4294967296,gfx=") + chip);
    const Device device = the_double.device();
    SelfCheckOptions kernels;
    kernels.kernels = {"matmul_f16", "matmul_bf16", "matmul_i8", "fragment_attention"};
    const SelfCheck check = self_check(device, kernels);
    EXPECT_TRUE(check.right()) << chip << ": " << check.complaint();
    EXPECT_TRUE(check.switched_off.empty()) << chip << ": " << check.switched_off[0];
    for (const char* op : {"matmul", "attention"}) {
      SuiteOptions options;
      options.op = op;
      options.seed = test_seed();
      options.cases = 12;
      options.programs = 12;
      std::cout << chip << " " << op << " seed " << options.seed << std::endl;
      const SuiteResult result = run_suite(device, options);
      for (const CaseResult& each : result.wrong)
        ADD_FAILURE() << chip << ": " << each.op << " " << each.what << ": " << each.reason;
    }
    release_pooled_memory(device);
  }
}

// Generated text survives device failures in the middle.
TEST(HipDoubleFaults, TextSurvives) {
  HipDouble the_double;
  test::expect_text_survives(the_double, "memory=4294967296", "lose_launch=2", "memory=300000");
}

TEST(HipDoubleFaults, WrongDeviceIsNotChosen) {
  HipDouble the_double;
  test::expect_wrong_device_is_not_chosen(the_double, "hip");
}

}  // namespace
}  // namespace prism
