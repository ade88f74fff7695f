// Tests the CPU's checked mode: each fault is an error that names the kernel and the line, and the
// shipped kernels have no faults.
#include <cstdlib>

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "ir/interpreter/interpreter.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_library.h"

namespace prism {
namespace {

using namespace dsl;

// Sets PRISM_CHECKED while it lives.
class Checked {
 public:
  explicit Checked(const char* value) { setenv("PRISM_CHECKED", value, 1); }
  ~Checked() { unsetenv("PRISM_CHECKED"); }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;
};

Device cpu_with(const char* value) {
  const Checked checked(value);
  return Device(make_cpu_backend()->discover().devices.at(0), "");
}

// Returns the error when 32 lanes run the body, which may use an array y of 64 words.
std::string failure(const Device& device, const std::function<void(const Array&, Value)>& body) {
  const Kernel faulty = kernel("faulty", 32, [&] {
    const Array y = inout("y", u32);
    body(y, local_id());
  });
  const Buffer y = device.upload<uint32_t>(std::vector<uint32_t>(64));
  try {
    device.queue().launch(device.compile(faulty), 1, {y});
    device.queue().wait();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidKernel);
    return error.what();
  }
  return "";
}

void out_of_bounds(const Array& y, Value i) { y[i * 3u] = i; }

void unwritten(const Array& y, Value i) {
  const Array tile = shared(u32, 32);
  if_(i != 7u, [&] { tile[i] = i; });
  barrier();
  y[i] = tile.load(31u - i);
}

void unwritten_own(const Array& y, Value i) {
  const Array own = local(u32, 2);
  own[0u] = i;
  y[i] = own.load(1u);
}

void race(const Array& y, Value i) {
  const Array tile = shared(u32, 32);
  tile[i] = i;
  y[i] = tile.load(i ^ 1u);
}

void faultless(const Array& y, Value i) {
  const Array tile = shared(u32, 32);
  tile[i] = i;
  barrier();
  y[i] = tile.load(i ^ 1u);
}

TEST(CpuChecked, EachFaultIsAnErrorWithKernelAndLine) {
  const Device device = cpu_with("1");
  EXPECT_EQ(device.info().driver, "kernel interpreter, checked");
  const auto says = [&](const std::function<void(const Array&, Value)>& body, const char* what) {
    const std::string text = failure(device, body);
    EXPECT_NE(text.find("kernel faulty (cpu_checked_test.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  says(out_of_bounds, "index 66, but y has 64 elements");
  says(unwritten, "reads tile[7], which nothing in the group has written");
  says(unwritten_own, "reads own[1], which it has not written");
  says(race, "race on tile[1]");
  EXPECT_EQ(failure(device, faultless), "");
}

// The verifier rejects a barrier in a divergent branch, so the test makes the branch divergent only
// after verification.
TEST(CpuChecked, BarriersThatNotAllLanesReach) {
  const auto driver = [] {
    const Checked checked("1");
    return make_cpu_backend()->discover().devices.at(0);
  }();
  ir::Kernel faulty = kernel("parted", 32, [] {
    const Array y = inout("y", u32);
    y[local_id()] = cast(u32, local_id() < 5u);
    if_(constant(b1, 1), [] { barrier(); });
  });
  ir::Value varying = ir::kNone;
  for (ir::Inst& inst : faulty.body.body) {
    if (inst.op == ir::Op::lt) varying = inst.result;
    if (inst.op == ir::Op::if_) inst.args[0] = varying;
  }
  const auto program = driver->compile(faulty);
  const auto queue = driver->make_queue();
  const auto memory = driver->allocate(256);
  const std::vector<Binding> bindings = {{memory.get(), 0, 256}};
  queue->launch({program.get(), &faulty, {1, 1, 1}, bindings, {}});
  try {
    queue->wait();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("kernel parted (cpu_checked_test.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("barrier is reached by 5 of 32 lanes"), std::string::npos) << text;
  }
}

TEST(CpuChecked, OffUnlessAsked) {
  for (const char* value : {"", "0"}) {
    const Device device = cpu_with(value);
    EXPECT_EQ(device.info().driver, "kernel interpreter");
    EXPECT_EQ(failure(device, race), "");
  }
  EXPECT_THROW(cpu_with("yes"), Error);
}

TEST(CpuChecked, ShippedKernelsHaveNoFault) {
  const Device device = cpu_with("1");
  for (const SampleKernel& entry : sample_kernels()) {
    const ir::Kernel kernel = entry.make();
    for (const KernelCase& one : entry.cases(1, true)) {
      SCOPED_TRACE(entry.name + " " + one.name);
      EXPECT_EQ(compare(one, kernel, run_case(device, kernel, one)), "");
    }
  }
}

}  // namespace
}  // namespace prism
