// Memory shared with another library of the process, over a double of the CUDA driver: addresses,
// the order of streams, lifetimes.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backends/cuda/cuda_device.h"
#include "base/system/dynamic_library.h"
#include "prism/error.h"
#include "prism/ops.h"
#include "support/doubles/use_cuda_double.h"
#include "tensor/exchange.h"
#include "tensor/storage.h"

namespace prism {
namespace {

using test::CudaDouble;
using Stream = void*;

// Another library: it calls the driver itself, with streams of its own.
class OtherLibrary {
 public:
  OtherLibrary() {
    std::string said;
    library_ = DynamicLibrary::open_first({CudaDouble::library("cuda")}, &said);
    FunctionTable get(library_);
    get(retain_, "cuDevicePrimaryCtxRetain");
    get(release_, "cuDevicePrimaryCtxRelease_v2");
    get(push_, "cuCtxPushCurrent_v2");
    get(pop_, "cuCtxPopCurrent_v2");
    get(allocate, "cuMemAlloc_v2");
    get(free, "cuMemFree_v2");
    get(create_stream_, "cuStreamCreate");
    get(destroy_stream_, "cuStreamDestroy_v2");
    get(synchronize, "cuStreamSynchronize");
    get(to_host, "cuMemcpyDtoHAsync_v2");
    get(to_device, "cuMemcpyHtoDAsync_v2");
    get(create_event_, "cuEventCreate");
    get(destroy_event_, "cuEventDestroy_v2");
    get(record_, "cuEventRecord");
    get(wait_, "cuStreamWaitEvent");
    EXPECT_EQ(get.missing(), "") << said;
    void* context = nullptr;
    retain_(&context, 0);
    push_(context);
    create_stream_(&stream, 1);
  }
  ~OtherLibrary() {
    destroy_stream_(stream);
    void* context = nullptr;
    pop_(&context);
    release_(0);
  }
  void order(Stream earlier, Stream later) {
    void* event = nullptr;
    create_event_(&event, 2);
    record_(event, earlier);
    wait_(later, event, 0);
    destroy_event_(event);
  }

  Stream stream = nullptr;
  int (*allocate)(uint64_t*, size_t) = nullptr;
  int (*free)(uint64_t) = nullptr;
  int (*synchronize)(Stream) = nullptr;
  int (*to_host)(void*, uint64_t, size_t, Stream) = nullptr;
  int (*to_device)(uint64_t, const void*, size_t, Stream) = nullptr;

 private:
  DynamicLibrary library_;
  int (*retain_)(void**, int) = nullptr;
  int (*release_)(int) = nullptr;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*create_stream_)(Stream*, unsigned) = nullptr;
  int (*destroy_stream_)(Stream) = nullptr;
  int (*create_event_)(void**, unsigned) = nullptr;
  int (*destroy_event_)(void*) = nullptr;
  int (*record_)(void*, Stream) = nullptr;
  int (*wait_)(Stream, void*, unsigned) = nullptr;
};

class CudaExchangeTest : public testing::Test {
 protected:
  void TearDown() override {
    release_pooled_memory(device_);
    device_ = {};
    double_.expect_clean();
  }
  CudaDouble double_;
  Device device_ = double_.device();
};

std::vector<float> numbers(size_t count, float first) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

TEST_F(CudaExchangeTest, NamesItsDevice) {
  EXPECT_EQ(dlpack_device(device_), (DlpackDevice{cuda::kDlpackDevice, 0}));
  EXPECT_EQ(dlpack_device(Device::cpu()), (DlpackDevice{kDlpackCpu, 0}));
}

TEST_F(CudaExchangeTest, AStreamWaitsForTheLentValues) {
  OtherLibrary other;
  const Tensor x = from_vector(numbers(100, 1), {100}, device_);
  const Tensor y = (x * 2.0).slice(0, 3, 100);
  std::vector<float> read(97);
  {
    const LentMemory lent = lend(y, reinterpret_cast<uintptr_t>(other.stream));
    EXPECT_EQ(lent.device.type, cuda::kDlpackDevice);
    other.to_host(read.data(), reinterpret_cast<uint64_t>(lent.data), 97 * 4, other.stream);
    other.synchronize(other.stream);
  }
  for (size_t i = 0; i < 97; ++i) ASSERT_EQ(read[i], 2 * static_cast<float>(i + 4));
}

TEST_F(CudaExchangeTest, WithoutAStreamNothingWaits) {
  OtherLibrary other;
  const Tensor y = from_vector(numbers(8, 1), {8}, device_) * 2.0;
  const long long waits = double_.count("stream_waits");
  const LentMemory lent = lend(y, std::nullopt);
  EXPECT_EQ(double_.count("stream_waits"), waits);
}

// The pool hands the memory out again while the other library still reads it.
TEST_F(CudaExchangeTest, ReturnedMemoryIsReusedAfterTheOthersWork) {
  OtherLibrary other;
  const Stream default_stream = reinterpret_cast<Stream>(kLegacyStream);
  std::vector<float> read(1000);
  uint64_t address = 0;
  const Tensor x = from_vector(numbers(1000, 5), {1000}, device_);
  {
    LentMemory lent;
    {
      const Tensor y = x * 1.0;
      lent = lend(y, kLegacyStream);
    }
    address = reinterpret_cast<uint64_t>(lent.data);
    other.to_host(read.data(), address, 4000, default_stream);
  }
  const Tensor next = full({1000}, -1.0, DType::f32, device_) * 1.0;
  const LentMemory again = lend(next, std::nullopt);
  ASSERT_EQ(reinterpret_cast<uint64_t>(again.data), address) << "the pool does not reuse memory";
  EXPECT_EQ(next.to_vector<float>()[999], -1.0f);
  other.synchronize(default_stream);
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(read[i], 5 + static_cast<float>(i));
}

TEST_F(CudaExchangeTest, BorrowsWithoutACopy) {
  OtherLibrary other;
  uint64_t address = 0;
  const std::vector<float> values = numbers(1001, 1);
  ASSERT_EQ(other.allocate(&address, 1001 * 4), 0);
  other.to_device(address, values.data(), 1001 * 4, other.stream);
  other.order(other.stream, reinterpret_cast<Stream>(stream_of(device_)));
  bool released = false;
  {
    // The second element: its address is no multiple of 16.
    const std::shared_ptr<const std::byte> memory(reinterpret_cast<const std::byte*>(address + 4),
                                                  [&](const std::byte*) { released = true; });
    const long long allocations = double_.count("allocations");
    const Tensor x = borrow(device_, memory, 1000, DType::f32);
    EXPECT_EQ(double_.count("allocations"), allocations);
    EXPECT_EQ(lend(x, std::nullopt).data, memory.get());
    const std::vector<float> doubled = (x * 2.0).to_vector<float>();
    for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(doubled[i], 2 * static_cast<float>(i + 2));
  }
  device_.queue().wait();
  EXPECT_TRUE(released);
  EXPECT_EQ(other.free(address), 0);
}

TEST_F(CudaExchangeTest, QueuedWorkKeepsBorrowedMemory) {
  OtherLibrary other;
  uint64_t address = 0;
  ASSERT_EQ(other.allocate(&address, 400), 0);
  bool released = false;
  Tensor y;
  {
    const std::shared_ptr<const std::byte> memory(reinterpret_cast<const std::byte*>(address),
                                                  [&](const std::byte*) { released = true; });
    y = borrow(device_, memory, 100, DType::f32) * 0.0;
    y.eval();
  }
  EXPECT_FALSE(released);  // the launch has not run
  device_.queue().wait();
  EXPECT_TRUE(released);
  other.free(address);
}

TEST_F(CudaExchangeTest, RefusesWhatIsNotItsMemory) {
  OtherLibrary other;
  std::vector<float> host(100);
  const auto at = [](const void* address) {
    return std::shared_ptr<const std::byte>(static_cast<const std::byte*>(address),
                                            [](const std::byte*) {});
  };
  EXPECT_THROW(borrow(device_, at(host.data()), 100, DType::f32), Error);
  uint64_t address = 0;
  ASSERT_EQ(other.allocate(&address, 400), 0);
  EXPECT_THROW(borrow(device_, at(reinterpret_cast<void*>(address)), 101, DType::f32), Error);
  EXPECT_THROW(borrow(device_, at(reinterpret_cast<void*>(address + 2)), 10, DType::f32), Error);
  other.free(address);
}

}  // namespace
}  // namespace prism
