// The backend cases and their kernels and inputs.
#include "support/backend_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <random>
#include <thread>

#include "conformance/suite.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_library.h"
#include "support/seed.h"

namespace prism::test {
namespace {

namespace fs = std::filesystem;
using namespace dsl;

constexpr uint32_t kPoison = 0xcdcdcdcd;

void describes_itself(const BackendUnderTest& backend, const Device& device) {
  const DeviceInfo& info = device.info();
  EXPECT_EQ(info.id, info.backend + ":" + std::to_string(backend.number));
  for (const std::string* text : {&info.name, &info.vendor, &info.card, &info.driver})
    EXPECT_FALSE(text->empty());
  EXPECT_GT(info.total_bytes, 64u << 20);
  EXPECT_GT(device.free_bytes(), 0u);
  EXPECT_LE(device.free_bytes(), info.total_bytes);
  const ir::Capabilities& can = info.capabilities;
  EXPECT_EQ(can.dialect, backend.dialect);
  EXPECT_GE(can.max_group_size, 64u);
  EXPECT_GE(can.shared_bytes, 16384u);
  EXPECT_GE(can.max_buffers, 8u);
  EXPECT_GT(can.max_binding_bytes, 1u << 20);
  EXPECT_GE(can.max_groups[0], 65535u);
}

void moves_bytes_from_any_place_to_any(const BackendUnderTest&, const Device& device) {
  const uint64_t seed = printed_seed();
  std::mt19937_64 engine(seed);
  constexpr size_t kBytes = 1021;
  std::vector<std::byte> model[2];
  Buffer buffers[2];
  Queue queue = device.make_queue();
  for (size_t i = 0; i < 2; ++i) {
    model[i] = random_bytes(seed + i, kBytes);
    buffers[i] = device.allocate(kBytes);
    queue.write(buffers[i], model[i]);
  }
  for (int round = 0; round < 60; ++round) {
    const size_t bytes = engine() % 200, to = engine() % (kBytes - 200);
    const size_t from = engine() % (kBytes - 200), a = engine() % 2, b = engine() % 2;
    if (round % 3 == 0) {
      const auto fresh = random_bytes(engine(), bytes);
      queue.write(buffers[a], fresh, to);
      std::copy(fresh.begin(), fresh.end(), model[a].begin() + static_cast<long>(to));
    } else if (a != b || to + bytes <= from || from + bytes <= to) {
      queue.copy(buffers[a], buffers[b], bytes, to, from);
      std::memmove(model[a].data() + to, model[b].data() + from, bytes);
    }
    std::vector<std::byte> got(bytes, std::byte{0xee});
    queue.read(buffers[a], got, to);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), model[a].begin() + static_cast<long>(to)))
        << "round " << round << ", " << bytes << " bytes at " << to;
  }
  // A write up to the end of the buffer, and an empty write.
  queue.write(buffers[0], std::span(model[1]).first(3), kBytes - 3);
  std::copy_n(model[1].begin(), 3, model[0].end() - 3);
  queue.write(buffers[0], {}, kBytes);
  for (int i = 0; i < 2; ++i) {
    std::vector<std::byte> got(kBytes);
    queue.read(buffers[i], got);
    EXPECT_EQ(got, model[i]) << i;
  }
  std::vector<std::byte> part(3);
  EXPECT_EQ(error_of([&] { queue.read(buffers[0], part, kBytes - 2); }).code(),
            ErrorCode::kInvalidArgument);
}

// Larger than one staging buffer; the source may be overwritten as soon as write returns.
void moves_large_buffers(const BackendUnderTest&, const Device& device) {
  Queue queue = device.make_queue();
  for (const size_t words : {size_t{1000}, size_t{(70u << 20) / 4 + 1}}) {
    std::vector<uint32_t> sent(words), got(words, kPoison);
    for (size_t i = 0; i < words; ++i) sent[i] = static_cast<uint32_t>(i * 2654435761u);
    const Buffer buffer = device.allocate(words * 4), other = device.allocate(words * 4);
    std::vector<uint32_t> handed = sent;
    queue.write(buffer, std::as_bytes(std::span(handed)));
    std::ranges::fill(handed, 0u);
    queue.copy(other, buffer, words * 4);
    queue.read(other, std::as_writable_bytes(std::span(got)));
    EXPECT_EQ(got, sent) << words << " words";
  }
}

void launches_of_awkward_sizes(const BackendUnderTest&, const Device& device) {
  const Program program = device.compile(weighted_sum());
  Queue queue = device.make_queue();
  for (const uint32_t count : {0u, 1u, 63u, 64u, 1009u}) {
    std::vector<uint32_t> a(1024), got(1024);
    std::iota(a.begin(), a.end(), 7u);
    const Buffer x = device.upload(a), y = device.upload(std::vector<uint32_t>(1024, kPoison));
    device.queue().wait();
    queue.launch(program, (count + 63) / 64, {x, x, y}, {count});
    queue.read(y, std::as_writable_bytes(std::span(got)));
    for (uint32_t i = 0; i < 1024; ++i)
      ASSERT_EQ(got[i], i < count ? a[i] * 4 : kPoison) << "of " << count << " at " << i;
  }
}

// One launch reads and writes different ranges of one buffer and reads one range twice; then a
// recording of it is replayed.
void reads_and_writes_ranges_of_one_buffer(const BackendUnderTest&, const Device& device) {
  constexpr uint32_t kCount = 100, kRange = kRangeAlignment;
  const Program program = device.compile(weighted_sum());
  Queue queue = device.make_queue();
  const Buffer arena = device.allocate(4 * kRange);
  std::vector<uint32_t> model(kRange);  // 4 ranges of kRange bytes
  std::iota(model.begin(), model.end(), 17u);
  queue.write(arena, std::as_bytes(std::span(model)));
  const auto range = [&](uint32_t i) { return BufferRange{arena, i * kRange, kCount * 4}; };
  const auto work = [&] {
    queue.launch(program, 2, {range(0), range(1), range(2)}, {kCount});
    queue.launch(program, 2, {range(2), range(2), range(3)}, {kCount});
    queue.launch(program, 2, {range(3), range(3), range(0)}, {kCount});
    queue.copy(arena, arena, kCount * 4, kRange, 0);
  };
  const auto model_work = [&] {
    const auto sum = [&](uint32_t a, uint32_t b, uint32_t y) {
      for (uint32_t i = 0; i < kCount; ++i)
        model[y * kRange / 4 + i] = model[a * kRange / 4 + i] + model[b * kRange / 4 + i] * 3u;
    };
    sum(0, 1, 2), sum(2, 2, 3), sum(3, 3, 0);
    std::copy_n(model.begin(), kCount, model.begin() + kRange / 4);
  };
  const auto expect_right = [&](Queue& by, const char* when) {
    std::vector<uint32_t> got(model.size());
    by.read(arena, std::as_writable_bytes(std::span(got)));
    EXPECT_EQ(got, model) << when;
  };
  work();
  model_work();
  expect_right(queue, "launched");
  const CommandGraph recording = queue.record(work);
  expect_right(queue, "recorded");
  for (int i = 0; i < 5; ++i) {
    queue.replay(recording);
    model_work();
  }
  expect_right(queue, "replayed");
  Queue other = device.make_queue();
  other.replay(recording);
  model_work();
  expect_right(other, "replayed by another queue");
}

void many_launches_keep_their_parameters(const BackendUnderTest&, const Device& device) {
  const Program program = device.compile(kernel("add_at", 32, [] {
    auto y = inout("y", u32);
    auto at = param("at", u32), amount = param("amount", u32);
    if_(local_id() == 0u, [&] { y[at] = y[at] + amount; });
  }));
  Queue queue = device.make_queue();
  std::vector<uint32_t> model(7, 0), got(7);
  const Buffer y = device.allocate(28);
  queue.write(y, std::as_bytes(std::span(model)));
  const auto work = [&] {
    for (uint32_t i = 0; i < 700; ++i) queue.launch(program, 1, {y}, {i % 7, i});
  };
  work();
  const CommandGraph recording = queue.record(work);
  queue.replay(recording);
  queue.replay(recording);
  for (uint32_t i = 0; i < 700; ++i) model[i % 7] += 3 * i;
  queue.read(y, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, model);
}

void times_go_forward(const BackendUnderTest&, const Device& device) {
  const Program program = device.compile(weighted_sum());
  Queue queue = device.make_queue();
  constexpr uint32_t kCount = 1 << 20;
  const Buffer a = device.allocate(kCount * 4), y = device.allocate(kCount * 4);
  const Event before = queue.record_event();
  queue.launch(program, kCount / 64, {a, a, y}, {kCount});
  const Event after = queue.record_event();
  after.wait();
  EXPECT_TRUE(before.done());
  EXPECT_TRUE(after.done());
  EXPECT_GT(after.ms_since(before), 0.0);
  EXPECT_LT(after.ms_since(before), 60000.0);
  EXPECT_DOUBLE_EQ(before.ms_since(before), 0.0);
}

void refuses_in_the_compilers_words(const BackendUnderTest& backend, const Device& device) {
  const OwnCache cache;
  const Error error = error_of([&] {
    device.compile(kernel("wrong_text", 32, [&] {
      auto y = out("y", u32);
      y[local_id()] = raw(backend.dialect, "{r} = no_such_function({0});", {local_id()}, {u32, 1},
                          [] { return constant(u32, 1); });
    }));
  });
  EXPECT_EQ(error.code(), ErrorCode::kCompile);
  const std::string message = error.what();
  for (const char* part : {"wrong_text", " | ", "no_such_function", "the whole text is in "})
    EXPECT_NE(message.find(part), std::string::npos) << part << " is missing in:\n" << message;
  const std::string before_file = "the whole text is in ";
  ASSERT_NE(message.find(before_file), std::string::npos);
  const size_t at = message.find(before_file) + before_file.size();
  EXPECT_TRUE(fs::exists(message.substr(at, message.find('\n', at) - at))) << message;
}

void refuses_more_than_it_has(const BackendUnderTest&, const Device& device) {
  for (const uint64_t asked : {device.info().total_bytes * 2, uint64_t{1} << 60}) {
    const Error error = error_of([&] { device.allocate(asked); });
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    for (const std::string& part : {device.id(), device.name(), std::string("free")})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << part << " is missing in: " << error.what();
  }
  EXPECT_EQ(device.allocate(0).bytes(), 0u);
  const Buffer still_works = device.upload(std::vector<uint32_t>{1, 2, 3});
  EXPECT_EQ(device.download<uint32_t>(still_works), (std::vector<uint32_t>{1, 2, 3}));
}

void compiles_several_kernels_together(const BackendUnderTest&, const Device& device) {
  std::vector<ir::Kernel> kernels = {weighted_sum(), kernel("step", 32, [] {
                                       auto x = inout("x", u32);
                                       auto i = global_id();
                                       x[i] = x[i] * param("factor", u32) + 1u;
                                     })};
  std::vector<Program> programs = device.compile_together(kernels);
  ASSERT_EQ(programs.size(), 2u);
  const Buffer x = device.upload(std::vector<uint32_t>(32, 7)), y = device.allocate(12);
  device.queue().launch(programs[0], 1, {x, x, y}, {3u});
  device.queue().launch(programs[1], 1, {x}, {100u});
  programs.erase(programs.begin());  // the source lives as long as one of its kernels
  EXPECT_EQ(device.download<uint32_t>(y), std::vector<uint32_t>(3, 28));
  EXPECT_EQ(device.download<uint32_t>(x), std::vector<uint32_t>(32, 701));
}

void queues_of_two_threads_share_a_program(const BackendUnderTest&, const Device& device) {
  const Program program = device.compile(weighted_sum());
  std::vector<std::thread> threads;
  std::vector<int> wrong(2, 0);
  for (uint32_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      Queue queue = device.make_queue();
      for (uint32_t round = 0; round < 50; ++round) {
        const std::vector<uint32_t> values(64, t + round);
        std::vector<uint32_t> got(64, kPoison);
        const Buffer x = device.allocate(256), y = device.allocate(256);
        queue.write(x, std::as_bytes(std::span(values)));
        queue.launch(program, 1, {x, x, y}, {64u});
        queue.read(y, std::as_writable_bytes(std::span(got)));
        for (const uint32_t value : got) wrong[t] += value != (t + round) * 4;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::vector<int>{0, 0}));
}

// Tests a workaround for Intel's CPU compiler, which otherwise gives lanes the value of another
// subgroup.
void negations_live_across_a_barrier(const BackendUnderTest&, const Device& device) {
  const Program negated = device.compile(kernel("negated", 64, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto i = global_id();
    const Value value = x[i];
    barrier();
    const Value negative = -value;
    barrier();
    y[i] = abs(negative) + max(negative, value);
  }));
  std::vector<float> values(128);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (static_cast<float>(i % 3) - 1.0f) * static_cast<float>(i);
  const Buffer x = device.upload(values), y = device.allocate(512);
  device.queue().launch(negated, 2, {x, y});
  const std::vector<float> got = device.download<float>(y);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(got[i], std::abs(values[i]) * 2) << i;

  const Program complement = device.compile(kernel("complement", 96, [] {
    auto sums = out("y", u32);
    auto number = param("number", i32);
    auto counts = shared(i32, 8), tile = shared(i32, 384);
    const Value i = local_id();
    const Value inverted = ~number;
    if_(i < 8u, [&] { counts[i] = cast(i32, i); });
    barrier();
    counts.atomic(AtomicOp::min, rem_trunc(i, constant(u32, 8)),
                  mul_high(number, constant(i32, 32)));
    tile.store(i * 4u, vec(inverted, inverted, number, inverted));
    barrier();
    const Value found = tile.load(rem_trunc(global_id(), constant(u32, 96)) * 4u, 4);
    sums[global_id()] = bitcast(u32, found[0] + found[1] * 3 + found[2] * 5 + found[3] * 7);
  }));
  const Buffer sums = device.upload(std::vector<uint32_t>(192, kPoison));
  const uint32_t number = 1550401018;
  device.queue().launch(complement, 2, {sums}, {number});
  EXPECT_EQ(device.download<uint32_t>(sums), std::vector<uint32_t>(192, ~number * 11 + number * 5));
}

// A newly discovered device, as in a restarted program, loads its program from the cache folder.
void a_second_start_compiles_nothing(const BackendUnderTest& backend, const Device&) {
  const OwnCache cache;
  const auto compile = [&] {
    const Discovery found = backend.discover();
    const Device fresh(found.devices.at(backend.number), "a test");
    const Program program = fresh.compile(weighted_sum());
    const Buffer x = fresh.upload(std::vector<uint32_t>(64, 5)), y = fresh.allocate(256);
    fresh.queue().launch(program, 1, {x, x, y}, {64u});
    EXPECT_EQ(fresh.download<uint32_t>(y), std::vector<uint32_t>(64, 20));
  };
  compile();
  const auto kept = cache.contents();
  EXPECT_FALSE(kept.empty()) << "nothing was kept";
  compile();
  EXPECT_EQ(cache.contents(), kept) << "the second start wrote the cache again";
}

// Every call after the loss throws kDeviceLost; nothing hangs or crashes.
void a_lost_device_is_an_error(const BackendUnderTest& backend, const Device&) {
  const Discovery own = backend.discover();  // a separate device, because it cannot recover
  DeviceDriver& driver = *own.devices.at(backend.number);
  const auto memory = driver.allocate(64);
  const auto queue = driver.make_queue();
  queue->wait();
  backend.lose(driver);
  std::vector<std::byte> bytes(64);
  const auto expect_lost = [](const std::function<void()>& work) {
    EXPECT_EQ(error_of(work).code(), ErrorCode::kDeviceLost);
  };
  expect_lost([&] {
    queue->write(*memory, 0, bytes);
    queue->wait();
  });
  expect_lost([&] { driver.allocate(64); });
  expect_lost([&] { queue->read(*memory, 0, bytes); });
}

}  // namespace

const std::vector<BackendCase>& backend_cases() {
  static const std::vector<BackendCase> cases = {
      {"DescribesItself", describes_itself},
      {"MovesBytesFromAnyPlaceToAny", moves_bytes_from_any_place_to_any},
      {"MovesLargeBuffers", moves_large_buffers},
      {"LaunchesOfAwkwardSizes", launches_of_awkward_sizes},
      {"ReadsAndWritesRangesOfOneBuffer", reads_and_writes_ranges_of_one_buffer},
      {"ManyLaunchesKeepTheirParameters", many_launches_keep_their_parameters},
      {"TimesGoForward", times_go_forward},
      {"RefusesInTheCompilersWords", refuses_in_the_compilers_words},
      {"RefusesMoreThanItHas", refuses_more_than_it_has},
      {"CompilesSeveralKernelsTogether", compiles_several_kernels_together},
      {"QueuesOfTwoThreadsShareAProgram", queues_of_two_threads_share_a_program},
      {"NegationsLiveAcrossABarrier", negations_live_across_a_barrier},
      {"ASecondStartCompilesNothing", a_second_start_compiles_nothing},
      {"ALostDeviceIsAnError", a_lost_device_is_an_error},
  };
  return cases;
}

void run_backend_case(const BackendCase& which, const BackendUnderTest& backend,
                      const Device& device) {
  if (const auto reason = backend.cannot.find(which.name); reason != backend.cannot.end())
    GTEST_SKIP() << reason->second;
  which.run(backend, device);
}

ir::Kernel weighted_sum() {
  return kernel("weighted_sum", 64, [] {
    auto a = in("a", u32);
    auto b = in("b", u32);
    auto y = out("y", u32);
    auto count = param("count", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = a[i] + b[i] * 3u; });
  });
}

std::vector<std::byte> random_bytes(uint64_t seed, size_t count) {
  std::mt19937_64 engine(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine());
  return bytes;
}

uint64_t printed_seed() {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << std::endl;
  return seed;
}

void check_library_kernels(const Device& device, size_t step) {
  const size_t first = test_seed() % step;
  std::cout << "kernels " << first << ", " << first + step << ", ..." << std::endl;
  size_t ran = 0, tried = 0;
  for (size_t i = first; i < sample_kernels().size(); i += step, ++tried) {
    const SampleKernel& entry = sample_kernels()[i];
    const ir::Kernel kernel = entry.make();
    const auto cases = entry.cases(1, true);
    try {
      const Contents found = run_case(device, kernel, cases.at(0));
      EXPECT_EQ(compare(cases[0], kernel, found), "") << entry.name << " " << cases[0].name;
      ++ran;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << entry.name << ": " << error.what();
    }
  }
  EXPECT_GE(ran + 1, tried) << "more than one was refused";
}

void check_tensor_ops(const Device& device, size_t cases, size_t programs) {
  SuiteOptions options;
  options.seed = test_seed();
  options.cases = cases;
  options.programs = programs;
  const SuiteResult result = run_suite(device, options);
  std::cout << "seed " << result.seed << ": " << result.right() << " of " << result.ran()
            << " right, " << result.programs << " programs" << std::endl;
  EXPECT_GT(result.ran(), 0u);
  for (const CaseResult& wrong : result.wrong)
    ADD_FAILURE() << wrong.op << " " << wrong.what << ": " << wrong.reason;
}

std::map<std::string, std::string> OwnCache::contents() const {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
    if (entry.is_regular_file()) found[entry.path().string()] = read_file(entry.path());
  return found;
}

}  // namespace prism::test
