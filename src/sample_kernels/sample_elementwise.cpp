// Elementwise kernels, one element per lane: add, copy, fill, iota, conversions, math, bits and f16
// values.
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "prism/kernel.h"
#include "sample_kernels/sample_case_tools.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::kernels {

using namespace dsl;

namespace {
constexpr uint32_t kGroup = 256;

void guarded(Value count, const std::function<void(Value)>& body) {
  const Value i = global_id();
  if_(i < count, [&] { body(i); });
}
}  // namespace

ir::Kernel vector_add(DType type) {
  return kernel(fmt::format("vector_add_{}", dtype_name(type)), kGroup, [&] {
    auto a = in("a", type), b = in("b", type);
    auto y = out("y", type);
    auto count = param("count", u32);
    guarded(count, [&](Value i) { y[i] = a[i] + b[i]; });
  });
}

ir::Kernel copy_words() {
  return kernel("copy", kGroup, [] {
    auto x = in("x", u32);
    auto y = out("y", u32);
    auto count = param("count", u32);
    // One load per lane: 4,270 GB/s on an H200, the same as the driver's copy; more loads per lane
    // are slower.
    guarded(count, [&](Value i) { y.store_words(i * 4u, x.load_words(i * 4u, 4, 4), 4); });
  });
}

ir::Kernel fill() {
  return kernel("fill", kGroup, [] {
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto value = param("value", f32);
    guarded(count, [&](Value i) { y[i] = value; });
  });
}

ir::Kernel iota() {
  return kernel("iota", kGroup, [] {
    auto y = out("y", u32);
    auto count = param("count", u32);
    guarded(count, [&](Value i) { y[i] = i; });
  });
}

ir::Kernel convert(DType from, DType to) {
  return kernel(fmt::format("convert_{}_{}", dtype_name(from), dtype_name(to)), kGroup, [&] {
    auto x = in("x", from);
    auto y = out("y", to);
    auto count = param("count", u32);
    guarded(count, [&](Value i) { y[i] = cast(widened(to), x[i]); });
  });
}

ir::Kernel math() {
  return kernel("math", kGroup, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    guarded(count, [&](Value i) {
      const Value v = x[i];
      const std::vector<Value> results = {exp(v), exp2(v), log(abs(v)), log2(abs(v)),
                                          sin(v), cos(v),  tanh(v),     rsqrt(abs(v))};
      for (uint32_t f = 0; f < 8; ++f) y[i * 8u + f] = results[f];
    });
  });
}

ir::Kernel bits() {
  return kernel("bits", kGroup, [] {
    auto a = in("a", u32), b = in("b", u32);
    auto y = out("y", u32);
    auto count = param("count", u32);
    guarded(count, [&](Value i) {
      const Value p = a[i], q = b[i], sp = bitcast(i32, p), sq = bitcast(i32, q);
      const std::vector<Value> results = {p / q,
                                          p % q,
                                          bitcast(u32, div_trunc(sp, sq)),
                                          bitcast(u32, rem_trunc(sp, sq)),
                                          bitcast(u32, div_floor(sp, sq)),
                                          bitcast(u32, mod_floor(sp, sq)),
                                          mul_high(p, q),
                                          bitcast(u32, sp >> q),
                                          p << q,
                                          extract_bits(p, q & 15u, 9u),
                                          insert_bits(p, q, 5u, 11u),
                                          popcount(p) + count_leading_zeros(q)};
      for (uint32_t f = 0; f < 12; ++f) y[i * 12u + f] = results[f];
    });
  });
}

ir::Kernel half_arithmetic() {
  return kernel("half_arithmetic", kGroup, [] {
    auto a = in("a", f16), b = in("b", f16);
    auto y = out("y", f16);
    auto count = param("count", u32);
    guarded(count, [&](Value i) {
      const Value p = cast(f16, a[i]), q = cast(f16, b[i]);
      y[i] = cast(f32, max(p * q + p, q - p));
    });
  });
}

ir::Kernel increment() {
  return kernel("increment", 32, [] {
    auto y = inout("y", u32);
    y[local_id()] += 1u;
  });
}

namespace {

KernelCase sized(uint64_t count, uint32_t each = kGroup) {
  KernelCase c;
  c.name = fmt::format("n={}", count);
  c.groups = {groups_for(count, each), 1, 1};
  c.params = {static_cast<uint32_t>(count)};
  return c;
}

std::vector<uint64_t> counts(bool quick) {
  return quick ? std::vector<uint64_t>{1, 1000} : std::vector<uint64_t>{1, 255, 256, 1000, 100003};
}

std::vector<KernelCase> add_cases(DType type, uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    const bool real = is_float(type);
    const auto a = real ? random.floats(n, -4, 4) : random.floats(n, -60, 60),
               b = real ? random.floats(n, -4, 4) : random.floats(n, -60, 60);
    const auto pa = rounded(a, type), pb = rounded(b, type);
    std::vector<float> sums(n);
    for (uint64_t i = 0; i < n; ++i)
      sums[i] = static_cast<float>(pa[i]) + static_cast<float>(pb[i]);
    c.buffers = {stored(a, type), stored(b, type), poison(n, type)};
    c.expected = {{}, {}, rounded(sums, type)};
    c.work_bytes = 3.0 * static_cast<double>(n * dtype_bytes(type));
    c.work_operations = static_cast<double>(n);
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> copy_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    const auto x = random.words(n * 4);
    c.buffers = {bytes_of(x), poison(n * 4, DType::u32)};
    c.expected = {{}, doubles(x)};
    c.work_bytes = 32.0 * static_cast<double>(n);
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> fill_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    const float value = CaseRandom(seed).uniform(-9, 9);
    c.params.push_back(std::bit_cast<uint32_t>(value));
    c.buffers = {poison(n, DType::f32)};
    c.expected = {std::vector<double>(n, value)};
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> iota_cases(uint64_t, bool quick) {
  std::vector<KernelCase> cases;
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    c.buffers = {poison(n, DType::u32)};
    c.expected.emplace_back(n);
    for (uint64_t i = 0; i < n; ++i) c.expected[0][i] = static_cast<double>(i);
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> convert_cases(DType from, DType to, uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    std::vector<float> x = random.floats(n, -100, 100);
    // Ties, and the smallest and largest 16-bit floats; integers stay in the range of i8.
    const std::vector<float> edges = {0.0f,        -0.0f,    1.00048828f, 1.00146484f, 1.00390625f,
                                      1.01171875f, 6.0e-8f,  3.0e-8f,     65504.0f,    65519.9f,
                                      65520.0f,    70000.0f, -1e-30f};
    if (is_float(from) && is_float(to))
      for (size_t i = 0; i < edges.size() && i < n; ++i) x[i] = edges[i];
    std::vector<float> loaded(n);
    const auto in_store = rounded(x, from);
    for (uint64_t i = 0; i < n; ++i) loaded[i] = static_cast<float>(in_store[i]);
    c.buffers = {stored(x, from), poison(n, to)};
    c.expected = {{}, rounded(loaded, to)};
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> math_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    std::vector<float> x = random.floats(n, -20, 20);
    for (float& v : x)
      if (std::fabs(v) < 1e-3f) v = 0.5f;
    // Compares each function by its own relative error: in a mean, a large exp would hide the
    // others.
    c.buffers = {bytes_of(x), poison(n * 8, DType::f32)};
    c.verify = [x](std::span<const std::vector<std::byte>> contents) -> std::string {
      static constexpr const char* kNames[] = {"exp", "exp2", "log",  "log2",
                                               "sin", "cos",  "tanh", "rsqrt"};
      for (size_t i = 0; i < x.size(); ++i) {
        const double d = x[i], a = std::fabs(d);
        const double want[] = {std::exp(d), std::exp2(d), std::log(a),  std::log2(a),
                               std::sin(d), std::cos(d),  std::tanh(d), 1 / std::sqrt(a)};
        for (size_t f = 0; f < 8; ++f) {
          float got;
          std::memcpy(&got, contents[1].data() + (i * 8 + f) * 4, 4);
          const double scale = f == 2 || f == 3 || f == 4 || f == 5
                                   ? std::max(1.0, std::fabs(want[f]))
                                   : std::fabs(want[f]);
          if (!(std::fabs(got - want[f]) <= 5e-7 * scale))
            return fmt::format("{}({}) is {}, expected {}", kNames[f], d, got, want[f]);
        }
      }
      return "";
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

// The language's integer rules, restated on the host.
int64_t floor_division(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

std::vector<KernelCase> bits_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  const std::vector<uint32_t> edges = {0,           1,           2,           31, 32,         33,
                                       0x7fffffffu, 0x80000000u, 0xffffffffu, 7,  0xfffffff9u};
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    auto a = random.words(n), b = random.words(n);
    for (size_t i = 0; i < edges.size() * edges.size() && i < n; ++i)
      a[i] = edges[i / edges.size()], b[i] = edges[i % edges.size()];
    std::vector<double> y;
    for (uint64_t i = 0; i < n; ++i) {
      const uint32_t p = a[i], q = b[i], s = q & 31;
      const int64_t sp = static_cast<int32_t>(p), sq = static_cast<int32_t>(q);
      const auto wrapped = [](int64_t v) { return static_cast<uint32_t>(v); };
      const uint32_t mask = 0x7ffu << 5;
      const std::vector<uint32_t> results = {
          q ? p / q : 0,
          q ? p % q : p,
          wrapped(sq ? sp / sq : 0),
          wrapped(sq ? sp % sq : sp),
          wrapped(floor_division(sp, sq)),
          wrapped(sp - floor_division(sp, sq) * sq),
          static_cast<uint32_t>((uint64_t(p) * q) >> 32),
          wrapped(sp >> s),
          p << s,
          (p >> (q & 15)) & 0x1ff,
          (p & ~mask) | ((q << 5) & mask),
          static_cast<uint32_t>(std::popcount(p) + std::countl_zero(q))};
      for (uint32_t r : results) y.push_back(r);
    }
    c.buffers = {bytes_of(a), bytes_of(b), poison(n * 12, DType::u32)};
    c.expected = {{}, {}, y};
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> half_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  const auto half = [](float v) { return f32_from_f16(f16_from_f32(v)); };
  for (uint64_t n : counts(quick)) {
    KernelCase c = sized(n);
    // Products are exact and sums are rounded: a fused multiply-add gives the same bits.
    auto a = random.floats(n, -512, 512), b = random.floats(n, -4, 4);
    std::vector<double> y(n);
    for (uint64_t i = 0; i < n; ++i) {
      const float p = a[i] = std::trunc(a[i]) / 64, q = b[i] = std::trunc(b[i]) / 4;
      y[i] = std::max(half(p * q + p), half(q - p));
    }
    c.buffers = {stored(a, DType::f16), stored(b, DType::f16), poison(n, DType::f16)};
    c.expected = {{}, {}, y};
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> increment_cases(uint64_t seed, bool) {
  KernelCase c;
  c.name = "one group";
  const auto y = CaseRandom(seed).words(32);
  c.buffers = {bytes_of(y)};
  c.expected.emplace_back();
  for (uint32_t v : y) c.expected[0].push_back(v + 1u);
  return {c};
}

}  // namespace

void add_elementwise(std::vector<SampleKernel>& list) {
  for (DType type : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i32}) {
    if (type == DType::u8) continue;  // random inputs are signed; the conversions cover u8 storage
    list.push_back({fmt::format("vector_add_{}", dtype_name(type)),
                    fmt::format("y = a + b in {} storage", dtype_name(type)),
                    [type] { return vector_add(type); },
                    [type](uint64_t seed, bool quick) { return add_cases(type, seed, quick); }});
  }
  list.push_back({"copy", "y = x, 16 bytes per lane", copy_words, copy_cases});
  list.push_back({"fill", "sets every element to one value", fill, fill_cases});
  list.push_back({"iota", "0, 1, 2, ...", iota, iota_cases});
  for (auto [from, to] : {std::pair{DType::f32, DType::f16},
                          {DType::f32, DType::bf16},
                          {DType::f16, DType::f32},
                          {DType::bf16, DType::f16},
                          {DType::f32, DType::i8},
                          {DType::i8, DType::i16}})
    list.push_back(
        {fmt::format("convert_{}_{}", dtype_name(from), dtype_name(to)),
         fmt::format("storage conversion from {} to {}", dtype_name(from), dtype_name(to)),
         [from = from, to = to] { return convert(from, to); },
         [from = from, to = to](uint64_t seed, bool quick) {
           return convert_cases(from, to, seed, quick);
         }});
  list.push_back({"math", "exp, log, sin, cos, tanh and others", math, math_cases});
  list.push_back({"bits", "division, shifts and bit fields at their edges", bits, bits_cases});
  list.push_back({"half_arithmetic", "f16 values", half_arithmetic, half_cases});
  list.push_back({"increment", "y += 1 in one group", increment, increment_cases});
}

}  // namespace prism::kernels
