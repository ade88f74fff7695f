// Tests the CPU device through its driver interfaces: memory, launches on all threads, late
// failures, recordings.
#include "backends/cpu/cpu_backend.h"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_queue.h"
#include "base/system/system_info.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "sample_kernels/sample_library.h"

namespace prism {
namespace {

using namespace dsl;

std::shared_ptr<DeviceDriver> device() {
  static const std::shared_ptr<DeviceDriver> made = make_cpu_backend()->discover().devices.at(0);
  return made;
}

// A device buffer with its contents.
struct Held {
  std::unique_ptr<MemoryDriver> memory;
  template <class T>
  explicit Held(const std::vector<T>& values)
      : memory(device()->allocate(values.size() * sizeof(T))) {
    std::memcpy(device()->host_pointer(*memory), values.data(), values.size() * sizeof(T));
  }
  Binding binding() const { return {memory.get(), 0, memory->bytes()}; }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> result(memory->bytes() / sizeof(T));
    std::memcpy(result.data(), device()->host_pointer(*memory), memory->bytes());
    return result;
  }
};

void launch(QueueDriver& queue, ProgramDriver& program, const Kernel& kernel, uint32_t groups,
            std::vector<Binding> bindings, std::vector<uint32_t> params = {}) {
  queue.launch({&program, &kernel, {groups, 1, 1}, bindings, params});
}

TEST(CpuBackend, SaysWhatTheMachineHas) {
  const DeviceInfo& info = device()->info();
  EXPECT_EQ(info.id, "cpu:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.compute_units, processor_info().threads);
  EXPECT_TRUE(info.is_cpu && info.unified && !info.software);
  EXPECT_GT(info.total_bytes, 1ull << 28);
  EXPECT_GT(device()->free_bytes(), 0u);
  EXPECT_LE(device()->free_bytes(), info.total_bytes);
}

TEST(CpuBackend, AllocationsAreAlignedAndRefusedBeyondWhatIsFree) {
  const auto memory = device()->allocate(100);
  EXPECT_EQ(memory->bytes(), 100u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(device()->host_pointer(*memory)) % 64, 0u);
  EXPECT_EQ(device()->allocate(0)->bytes(), 0u);
  try {
    device()->allocate(1ull << 50);
    FAIL() << "a petabyte was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    const std::string said = error.what();
    EXPECT_NE(said.find("cpu:0"), std::string::npos) << said;
    EXPECT_NE(said.find("1125899906842624 bytes were asked"), std::string::npos) << said;
    EXPECT_NE(said.find("are free"), std::string::npos) << said;
  }
}

TEST(CpuBackend, EveryLibraryKernelIsRight) {
  const auto queue = device()->make_queue();
  for (const SampleKernel& entry : sample_kernels()) {
    const Kernel kernel = lower(entry.make(), device()->info().capabilities);
    const auto program = device()->compile(kernel);
    for (const KernelCase& test : entry.cases(1, true)) {
      std::vector<Held> held;
      std::vector<Binding> bindings;
      for (const auto& content : test.buffers)
        bindings.push_back(held.emplace_back(content).binding());
      queue->launch({program.get(), &kernel, test.groups, bindings, test.params});
      queue->wait();
      std::vector<std::vector<std::byte>> contents;
      for (const Held& h : held) contents.push_back(h.values<std::byte>());
      EXPECT_EQ(compare(test, kernel, contents), "") << entry.name << " " << test.name;
    }
  }
}

TEST(CpuBackend, AtomicsHoldBetweenThreads) {
  const Kernel kernel = dsl::kernel("count", 64, [] {
    const Array counts = inout("counts", u32), sums = inout("sums", f32);
    counts.atomic_add(global_id() % 3u, 1u);
    counts.atomic(AtomicOp::max, 3u, global_id());
    sums.atomic_add(0u, 0.5f);
  });
  const auto program = device()->compile(kernel);
  const auto queue = device()->make_queue();
  const Held counts(std::vector<uint32_t>(4)), sums(std::vector<float>(1));
  launch(*queue, *program, kernel, 3000, {counts.binding(), sums.binding()});
  queue->wait();
  EXPECT_EQ(counts.values<uint32_t>(), (std::vector<uint32_t>{64000, 64000, 64000, 191999}));
  EXPECT_EQ(sums.values<float>()[0], 96000.0f);
}

TEST(CpuBackend, FailuresWaitForWaitAndNameTheKernel) {
  const Kernel kernel = dsl::kernel("too_far", 8, [] { out("y", u32)[global_id() + 3u] = 7u; });
  const Kernel good = dsl::kernel("good", 8, [] { out("y", u32)[local_id()] = 1u; });
  const auto program = device()->compile(kernel), good_program = device()->compile(good);
  const auto queue = device()->make_queue();
  const Held y(std::vector<uint32_t>(8));
  EXPECT_NO_THROW(launch(*queue, *program, kernel, 1, {y.binding()}));
  EXPECT_NO_THROW(launch(*queue, *good_program, good, 1,
                         {y.binding()}));  // not run, because an earlier launch failed
  try {
    queue->wait();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("kernel too_far"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("index 8, but y has 8 elements"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(y.values<uint32_t>()[0], 0u);
  EXPECT_NO_THROW(queue->wait());
  launch(*queue, *good_program, good, 1, {y.binding()});
  queue->wait();
  EXPECT_EQ(y.values<uint32_t>()[0], 1u);
}

TEST(CpuBackend, CopiesWithinBounds) {
  std::vector<uint32_t> numbers(3 << 20);
  std::iota(numbers.begin(), numbers.end(), 0u);
  const Held from(numbers), to(std::vector<uint32_t>(numbers.size()));
  const auto queue = device()->make_queue();
  queue->copy(*to.memory, 0, *from.memory, 4, numbers.size() * 4 - 4);
  std::vector<uint32_t> back(numbers.size());
  queue->write(*to.memory, 8, std::as_bytes(std::span(numbers).first(1)));
  queue->read(*to.memory, 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back[1], 2u);
  EXPECT_EQ(back[2], 0u);
  EXPECT_EQ(back[numbers.size() - 2], numbers.size() - 1);
  EXPECT_THROW(queue->copy(*to.memory, 0, *from.memory, 4, numbers.size() * 4), Error);
  EXPECT_THROW(queue->read(*to.memory, 8, std::as_writable_bytes(std::span(back))), Error);
}

TEST(CpuBackend, RecordingsRunWhenReplayedOnly) {
  const Kernel kernel = dsl::kernel("twice", 16, [] {
    const Array x = inout("x", u32);
    const Value by = param("by", u32);
    x[local_id()] = x.load(local_id()) * by;
  });
  const auto program = device()->compile(kernel);
  const auto queue = device()->make_queue();
  const Held x(std::vector<uint32_t>(16, 1)), kept(std::vector<uint32_t>(16));
  queue->begin_recording();
  EXPECT_THROW(queue->begin_recording(), Error);
  launch(*queue, *program, kernel, 1, {x.binding()}, {2});
  queue->copy(*kept.memory, 0, *x.memory, 0, 64);
  launch(*queue, *program, kernel, 1, {x.binding()}, {3});
  std::vector<std::byte> host(64);
  EXPECT_THROW(queue->read(*x.memory, 0, host), Error);
  const auto recording = queue->end_recording();
  EXPECT_EQ(x.values<uint32_t>()[0], 1u);
  const auto before = queue->record_event();
  for (int i = 0; i < 3; ++i) queue->replay(*recording);
  const auto after = queue->record_event();
  queue->wait();
  EXPECT_EQ(x.values<uint32_t>()[15], 216u);
  EXPECT_EQ(kept.values<uint32_t>()[15], 72u);
  EXPECT_TRUE(after->done());
  EXPECT_GT(after->ms_since(*before), 0.0);
  EXPECT_LT(after->ms_since(*before), 10000.0);
}

}  // namespace
}  // namespace prism
