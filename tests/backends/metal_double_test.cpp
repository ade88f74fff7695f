// The Metal backend over a double of the Objective-C runtime and Metal: discovery, memory,
// recordings, failures, every kernel, a sample of the ops and a language model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "llm/model/model.h"
#include "lower/lower.h"
#include "ops/attention/attention_kernels.h"
#include "ops/products/product_kernels.h"
#include "print/printer.h"
#include "prism/device.h"
#include "runtime/measure/self_check.h"
#include "support/backend_cases.h"
#include "support/doubles/double_cases.h"
#include "support/doubles/double_faults.h"
#include "support/doubles/double_models.h"
#include "support/doubles/double_ops.h"
#include "support/doubles/use_metal_double.h"
#include "support/models/expected_text.h"
#include "tensor/storage.h"

namespace prism {
namespace {

using test::add_one_kernel;
using test::contains;
using test::counting;
using test::error_of;
using test::MetalDouble;
using test::scale_kernel;

class MetalDoubleTest : public testing::Test {
 protected:
  // Checks that all objects were released and that nothing wrote outside a buffer.
  void TearDown() override {
    double_.expect_clean();
    EXPECT_EQ(double_.count("live_objects"), 0);
  }
  MetalDouble double_;
};

// --- discovery

TEST_F(MetalDoubleTest, DescribesAnAppleGpu) {
  double_.set("memory=2147483648");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 1u) << found.reason;
  EXPECT_EQ(found.reason, "");
  const DeviceInfo& info = found.devices[0]->info();
  EXPECT_EQ(info.id, "metal:0");
  EXPECT_EQ(info.name, "Apple double");
  EXPECT_EQ(info.vendor, "Apple");
  EXPECT_EQ(info.driver, "Metal (Apple 8), macOS Version 15.1 (Build of the double)");
  EXPECT_EQ(info.total_bytes, 2147483648u);
  EXPECT_TRUE(info.unified);
  const ir::Capabilities& can = info.capabilities;
  EXPECT_EQ(can.dialect, "metal");
  EXPECT_EQ(can.subgroup_size, 32u);
  EXPECT_TRUE(can.math_f16);
  EXPECT_FALSE(can.math_f64);
  EXPECT_EQ(can.fragments.size(), 2u);  // f16 and bf16
  double_.set("macos=13");
  EXPECT_EQ(double_.discover().devices[0]->info().capabilities.fragments.size(), 1u);
  EXPECT_EQ(can.max_group_size, 1024u);
  EXPECT_EQ(can.shared_bytes, 32u << 10);
  EXPECT_EQ(can.max_buffers, 30u);
  EXPECT_EQ(can.max_binding_bytes, 2147483648u);
}

TEST_F(MetalDoubleTest, DiscreteGpuOfAnIntelMacHasMemoryOfItsOwn) {
  double_.set("family=2002,unified=0,macos=12");
  const Device device = double_.device();
  EXPECT_EQ(device.info().name, "AMD double");
  EXPECT_EQ(device.info().vendor, "AMD");
  EXPECT_FALSE(device.info().unified);
  EXPECT_EQ(device.info().capabilities.subgroup_size, 0u);
  std::vector<float> x = counting(5 << 18);  // more than one staging buffer
  const Buffer buffer = device.upload(x);
  device.queue().launch(device.compile(add_one_kernel()), 4, {buffer}, {250u});
  for (size_t i = 0; i < 250; ++i) x[i] += 1;
  EXPECT_EQ(device.download<float>(buffer), x);
}

TEST_F(MetalDoubleTest, EveryDeviceIsOffered) {
  double_.set("devices=3");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 3u);
  EXPECT_EQ(found.devices[2]->info().id, "metal:2");
  EXPECT_EQ(found.devices[2]->info().name, "Apple double 2");
  const Device second(found.devices[1], "");
  const Buffer buffer = second.upload(counting(16));
  EXPECT_EQ(second.download<float>(buffer), counting(16));
}

TEST_F(MetalDoubleTest, AbsencesAreReasons) {
  {
    double_.set("devices=0");
    const Discovery found = double_.discover();
    EXPECT_TRUE(contains(found.reason, "no Metal device")) << found.reason;
    EXPECT_FALSE(found.next_step.empty());
  }
  {
    const auto none = double_.variable("PRISM_METAL_LIBRARY", "");
    const Discovery found = double_.discover();
    EXPECT_EQ(found.reason, "Metal exists on macOS only");
    EXPECT_FALSE(found.next_step.empty());
  }
  for (const char* variable : {"PRISM_METAL_LIBRARY", "PRISM_OBJC_LIBRARY"}) {
    const auto named = double_.variable(variable, "/no/such/library");
    const Discovery found = double_.discover();
    EXPECT_TRUE(contains(found.reason, "/no/such/library cannot be opened")) << found.reason;
    EXPECT_FALSE(found.next_step.empty());
  }
}

TEST_F(MetalDoubleTest, LibraryThatIsBrokenIsAReason) {
  double_.set("crash=objectAtIndex:");
  const Discovery crashed = double_.discover();
  EXPECT_TRUE(contains(crashed.reason, "crashed when it was tried")) << crashed.reason;
  const auto empty = double_.folder() / "Metal";
  std::ofstream(empty).flush();
  const auto named = double_.variable("PRISM_METAL_LIBRARY", empty.string());
  EXPECT_TRUE(contains(double_.discover().reason, "cannot be opened")) << double_.discover().reason;
  const auto other = double_.variable("PRISM_METAL_LIBRARY", "libm.so.6");
  EXPECT_TRUE(contains(double_.discover().reason, "libm.so.6 has no MTLCopyAllDevices"))
      << double_.discover().reason;
}

// --- work

TEST_F(MetalDoubleTest, RunsAKernelAndItsRecording) {
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
  EXPECT_EQ(double_.count("launches"), 4);
}

TEST_F(MetalDoubleTest, BytesAtOddPlacesAndInsideOfRecordings) {
  for (const char* told : {"", "family=2002,unified=0"}) {
    double_.set(told);
    const Device device = double_.device();
    Queue& queue = device.queue();
    std::vector<std::byte> bytes(1021), back(1021);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
    const Buffer a = device.allocate(1021), b = device.allocate(1021);
    queue.write(b, std::vector<std::byte>(1021), 0);
    queue.write(a, std::span(bytes).first(3), 0);
    queue.write(a, std::span(bytes).subspan(3), 3);
    const CommandGraph recording = queue.record([&] {
      queue.copy(b, a, 500, 1, 3);
      queue.copy(b, b, 100, 700, 1);
    });
    queue.replay(recording);
    queue.read(b, back, 0);
    EXPECT_EQ(back[0], std::byte{0});
    for (size_t i = 0; i < 500; ++i) ASSERT_EQ(back[1 + i], bytes[3 + i]) << i;
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(back[700 + i], bytes[3 + i]) << i;
    EXPECT_EQ(back[501], std::byte{0});
    queue.read(a, std::span(back).first(5), 17);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(back[i], bytes[17 + i]);
  }
}

TEST_F(MetalDoubleTest, ManyLaunchesStartBeforeTheyAreWaitedFor) {
  const Device device = double_.device();
  const Buffer buffer = device.upload(counting(64));
  const Program program = device.compile(add_one_kernel());
  for (int i = 0; i < 300; ++i) device.queue().launch(program, 1, {buffer}, {64u});
  EXPECT_GE(double_.count("commits"), 4);
  EXPECT_EQ(device.download<float>(buffer)[5], 305.0f);
}

TEST_F(MetalDoubleTest, EventsTellTimeAndOrder) {
  const Device device = double_.device();
  const Buffer buffer = device.upload(counting(64));
  const Program program = device.compile(add_one_kernel());
  Queue& queue = device.queue();
  const Event before = queue.record_event();
  EXPECT_TRUE(before.done());  // no work precedes it
  for (int i = 0; i < 20; ++i) queue.launch(program, 1, {buffer}, {64u});
  const Event after = queue.record_event();
  EXPECT_FALSE(after.done());
  EXPECT_GT(after.ms_since(before), 0.0);
  EXPECT_EQ(before.ms_since(after), 0.0);
  EXPECT_TRUE(after.done());
  queue.wait();
}

TEST_F(MetalDoubleTest, UnifiedMemoryIsSeenByTheHost) {
  const Discovery found = double_.discover();
  DeviceDriver& device = *found.devices[0];
  const auto memory = device.allocate(64);
  ASSERT_NE(device.host_pointer(*memory), nullptr);
  const auto queue = device.make_queue();
  const std::vector<std::byte> bytes(64, std::byte{9});
  queue->write(*memory, 0, bytes);
  EXPECT_EQ(device.host_pointer(*memory)[63], std::byte{9});
}

// The cases of every backend, on unified and on discrete memory.
class MetalDoubleCases : public MetalDoubleTest,
                         public testing::WithParamInterface<std::tuple<bool, test::BackendCase>> {};

TEST_P(MetalDoubleCases, Hold) {
  const auto& [unified, which] = GetParam();
  double_.set(unified ? "memory=1073741824" : "memory=1073741824,family=2002,unified=0");
  test::BackendUnderTest backend;
  backend.dialect = "metal";
  backend.discover = [&] { return double_.discover(); };
  backend.cannot = {{"RefusesInTheCompilersWords",
                     "the double compiles at the first launch; told to refuse below"},
                    {"ASecondStartCompilesNothing", "macOS keeps compiled kernels, not Prism"},
                    {"ALostDeviceIsAnError", "the double loses one by a command, below"}};
  test::run_backend_case(which, backend, double_.device());
}
INSTANTIATE_TEST_SUITE_P(All, MetalDoubleCases,
                         testing::Combine(testing::Bool(),
                                          testing::ValuesIn(test::backend_cases())),
                         [](const auto& test) {
                           return (std::get<0>(test.param) ? "Unified_" : "Discrete_") +
                                  std::get<1>(test.param).name;
                         });

// --- failures

TEST_F(MetalDoubleTest, AllocationBeyondMemoryNamesDeviceAskedAndFree) {
  double_.set("memory=1073741824");
  const Device device = double_.device();
  const Buffer half = device.allocate(512ull << 20);
  const Error large = error_of([&] { device.allocate(3ull << 30); });
  EXPECT_EQ(large.code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(contains(large.what(), "this device allows at most 1073741824 bytes per buffer"))
      << large.what();
  const Error error = error_of([&] { device.allocate(768ull << 20); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(contains(error.what(), "metal:0 (Apple double): allocating 768 MiB: "))
      << error.what();
  EXPECT_TRUE(contains(error.what(), "512 MiB of 1.00 GiB are free")) << error.what();
}

struct Failure {
  int code;
  ErrorCode expected;
};
class MetalDoubleCommands : public testing::TestWithParam<Failure> {};

TEST_P(MetalDoubleCommands, FailureIsToldAtTheWaitAndNamesTheKernel) {
  MetalDouble the_double;
  {
    const Device device = the_double.device();
    const Program program = device.compile(add_one_kernel());
    const Buffer buffer = device.upload(counting(64));
    Queue& queue = device.queue();
    the_double.set("fail_commands=1/" + std::to_string(GetParam().code));
    EXPECT_NO_THROW(queue.launch(program, 1, {buffer}, {64u}));
    const Error error = error_of([&] { queue.wait(); });
    EXPECT_EQ(error.code(), GetParam().expected) << error.what();
    EXPECT_TRUE(contains(error.what(), "metal:0 (Apple double)")) << error.what();
    EXPECT_TRUE(contains(error.what(), "last launched: add_one")) << error.what();
    EXPECT_TRUE(contains(error.what(), "told to fail with code")) << error.what();
    if (GetParam().expected == ErrorCode::kDeviceLost) {  // and stays lost
      for (const auto& work : std::vector<std::function<void()>>{
               [&] { device.allocate(16); }, [&] { device.download<float>(buffer); },
               [&] { device.upload(counting(4)); }, [&] { device.compile(scale_kernel()); },
               [&] {
                 queue.launch(program, 1, {buffer}, {64u});
                 queue.wait();
               }})
        EXPECT_EQ(error_of(work).code(), ErrorCode::kDeviceLost);
    } else {
      EXPECT_NO_THROW(queue.wait());
      EXPECT_NO_THROW(device.download<float>(buffer));
    }
  }
  the_double.expect_clean();
}

INSTANTIATE_TEST_SUITE_P(Codes, MetalDoubleCommands,
                         testing::Values(Failure{2, ErrorCode::kDeviceLost},
                                         Failure{3, ErrorCode::kDeviceLost},
                                         Failure{8, ErrorCode::kOutOfMemory},
                                         Failure{9, ErrorCode::kDriver},
                                         Failure{11, ErrorCode::kDeviceLost}),
                         [](const auto& test) { return "code" + std::to_string(test.param.code); });

// Any message that returns nil gives a prism::Error, and nothing leaks.
class MetalDoubleCall : public testing::TestWithParam<const char*> {};

TEST_P(MetalDoubleCall, FailureIsAnError) {
  MetalDouble the_double;
  the_double.set("family=2002,unified=0");  // copies through host memory
  {
    const Device device = the_double.device();
    the_double.set(std::string("family=2002,unified=0,fail=") + GetParam() + "/1");
    const Error error = error_of([&] {
      const Buffer a = device.upload(counting(64)), b = device.allocate(64 * 4);
      Queue& queue = device.queue();
      const Program program = device.compile(add_one_kernel());
      const CommandGraph recording = queue.record([&] {
        queue.launch(program, 1, {a}, {64u});
        queue.copy(b, a, 64 * 4);
      });
      queue.replay(recording);
      queue.wait();
      device.download<float>(b);
    });
    EXPECT_TRUE(contains(error.what(), "metal:0")) << error.what();
    EXPECT_GT(the_double.count(std::string("calls_") + GetParam()), 0);
  }
  the_double.expect_clean();
}

INSTANTIATE_TEST_SUITE_P(
    Calls, MetalDoubleCall,
    testing::Values("newCommandQueue", "newBufferWithLength:options:", "contents",
                    "newLibraryWithSource:options:error:", "newFunctionWithName:",
                    "newComputePipelineStateWithFunction:error:", "maxTotalThreadsPerThreadgroup",
                    "commandBuffer", "computeCommandEncoder"),
    [](const auto& test) {
      std::string name = test.param;
      std::erase(name, ':');
      return name;
    });

TEST_F(MetalDoubleTest, RefusedTextShowsLogNumberedSourceAndFile) {
  const Device device = double_.device();
  double_.set("fail_compile=1");
  const Error error = error_of([&] { device.compile(scale_kernel()); });
  EXPECT_EQ(error.code(), ErrorCode::kCompile);
  EXPECT_TRUE(contains(error.what(), "the double was told to refuse")) << error.what();
  EXPECT_TRUE(contains(error.what(), "    1 | ")) << error.what();
  EXPECT_TRUE(contains(error.what(), ".metal\n")) << error.what();
}

TEST_F(MetalDoubleTest, PipelineThatDoesNotFitTheKernelIsRefused) {
  const Device device = double_.device();
  double_.set("threads=32");
  const Error few = error_of([&] { device.compile(scale_kernel()); });
  EXPECT_TRUE(contains(few.what(), "groups of at most 32 threads")) << few.what();
  double_.set("lanes=64");
  EXPECT_NO_THROW(device.compile(scale_kernel("plain")));  // uses no simdgroups
}

// --- what it computes

TEST_F(MetalDoubleTest, EveryKernelIsRight) {
  const SelfCheck check = self_check(double_.device());
  EXPECT_GE(check.kernels.size(), 30u);
  EXPECT_TRUE(check.right()) << check.complaint();
  EXPECT_EQ(check.count(CheckOutcome::skipped), 0u);
  EXPECT_TRUE(check.switched_off.empty()) << check.switched_off[0];
}

TEST_F(MetalDoubleTest, KernelsAreRightWithoutSimdgroups) {
  double_.set("family=2002,unified=0,macos=12");
  SelfCheckOptions options;
  options.kernels = {"half_arithmetic", "row_softmax", "subgroup_mix", "matmul_f16",
                     "weighted_histogram"};
  const SelfCheck check = self_check(double_.device(), options);
  EXPECT_TRUE(check.right()) << check.complaint();
}

TEST_F(MetalDoubleTest, WrongResultsAreCaughtByTheSelfCheck) {
  const Device device = double_.device();
  double_.set("wrong_results=1");
  SelfCheckOptions options;
  options.kernels = {"iota", "sum_rows"};
  const SelfCheck check = self_check(device, options);
  EXPECT_EQ(check.count(CheckOutcome::wrong), 2u) << check.complaint();
}

TEST_F(MetalDoubleTest, LostDeviceFailsTheSelfCheckWithoutThrowing) {
  const Device device = double_.device();
  double_.set("fail_commands=1/11");
  SelfCheckOptions options;
  options.kernels = {"iota", "sum_rows"};
  const SelfCheck check = self_check(device, options);
  EXPECT_EQ(check.count(CheckOutcome::failed), 2u) << check.complaint();
}

TEST_F(MetalDoubleTest, ProductsAndAttentionAreGivenToSimdgroupMatrices) {
  const ir::Capabilities can = double_.device().info().capabilities;
  ops::FragmentProduct product;
  product = ops::fragment_product_for(product, ops::dense_shape(product, 256, 256, 256), can, 4);
  ops::AttentionOptions attention;
  attention.head_dim = 64;
  ops::PromptTile tile{4, 1, 32, 1, true};
  tile.subgroup = ops::fragment_subgroup(can);
  for (const ir::Kernel& kernel :
       {ops::fragment_product(product), ops::attention_prompt(attention, tile)})
    EXPECT_TRUE(contains(print(lower(kernel, can), can).text, "simdgroup_multiply_accumulate"))
        << kernel.name;
}

TEST(MetalDoubleOps, SampleIsRight) {
  MetalDouble the_double;
  test::expect_ops_sample_is_right(the_double, 60);
}

// A whole language model: prompt and replayed steps, text and logits.
TEST(MetalDoubleModel, GreedyTextAndLogitsAreThoseOfTheReference) {
  if (test::shared_model("stories260K").empty())
    GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  constexpr size_t kTokens = 6;
  const auto expected = test::expected_text("stories260K.once", "stories260K.once.f32");
  const llm::GgufFile file = llm::GgufFile::open(test::shared_model("stories260K"));
  MetalDouble the_double;
  the_double.set("memory=4294967296");
  const Device device = the_double.device();
  {
    llm::Model model = llm::Model::load(
        file, {.placement = llm::place_on(file, device, 64, DType::f32), .batch_rows = 16});
    std::vector<int32_t> ids(expected.ids.begin(),
                             expected.ids.begin() + static_cast<ptrdiff_t>(expected.prompt));
    std::vector<float> logits = model.prefill(0, 0, ids).to_vector<float>();
    ASSERT_GE(expected.logits.size(), (ids.size() + kTokens - 1) * logits.size());
    for (size_t i = 0; i < kTokens; ++i) {
      const size_t row = ids.size() - 1;  // the logits of that position
      for (size_t j = 0; j < logits.size(); ++j)
        ASSERT_NEAR(logits[j], expected.logits[row * logits.size() + j], 2e-3)
            << "position " << row << ", token " << j;
      ids.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
      ASSERT_EQ(ids.back(), expected.ids[ids.size() - 1]) << "token " << i;
      const llm::SequencePart part{0, static_cast<int32_t>(ids.size() - 1), std::span(ids).last(1)};
      logits = model.forward(std::span(&part, 1)).to_vector<float>();
    }
  }
  EXPECT_EQ(the_double.count("overruns"), 0);
  EXPECT_EQ(the_double.count("misuses"), 0);
  release_pooled_memory(device);
}

// Takes half a minute, so only make test-devices runs it, by name.
TEST(MetalDoubleModel, DISABLED_DefaultModelGivesTheCpusTokens) {
  MetalDouble the_double;
  test::expect_default_model_gives_the_cpus_tokens(the_double);
}

// Generated text survives device failures in the middle.
TEST(MetalDoubleFaults, TextSurvives) {
  MetalDouble the_double;
  test::expect_text_survives(the_double, "memory=4294967296", "fail_commands=2/11",
                             "memory=300000");
}

TEST(MetalDoubleFaults, WrongDeviceIsNotChosen) {
  MetalDouble the_double;
  test::expect_wrong_device_is_not_chosen(the_double, "metal");
}

}  // namespace
}  // namespace prism
