// GPU matrix products on one device: time, bandwidth relative to the peak read bandwidth of the
// same run, operations per second.
//
// usage: gpu_products_bench [--device D] [--json] [--tune] [--quick] [--chain] [--only WORD]
// --tune: also try other tilings than the default; --only: lines whose name contains the word;
// --chain: all launches share one result buffer, so that each waits for the previous one. Weights
// rotate over copies of more than a gigabyte, so that no cache holds them; launches are recorded
// and replayed.
#include <algorithm>
#include <cstring>
#include <iostream>

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "kernel_bench.h"
#include "ops/products/product_kernels.h"
#include "ops/products/weight_units.h"
#include "ops/tail.h"
#include "prism/device.h"
#include "prism/error.h"
#include "runtime/measure/case_run.h"
#include "sample_kernels/sample_case_tools.h"

namespace prism::bench {
namespace {

// silu(gate) * up.
std::shared_ptr<const TailSpec> silu_of_two() {
  auto spec = std::make_shared<TailSpec>();
  Chain& chain = spec->chain;
  const uint16_t gate = chain.add_input(DType::f32), up = chain.add_input(DType::f32);
  chain.add_apply(ScalarOp::mul, chain.add_apply(ScalarOp::silu, gate), up);
  spec->access = {TailAccess::made};
  return spec;
}

class Bench {
 public:
  Bench(const Device& device, const Options& options) : device_(device), options_(options) {
    const DeviceInfo& info = device.info();
    host_ = info.software || info.is_cpu;
    const uint64_t megabytes = host_ || options.quick ? 128 : 1280;
    // Bytes that are finite as f16 and bf16: weights contain no infinities or NaN.
    std::vector<uint16_t> halves(megabytes << 19);
    uint64_t state = 1;
    for (size_t i = 0; i < halves.size(); i += 4) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth
      for (size_t j = 0; j < 4; ++j)
        halves[i + j] = static_cast<uint16_t>(state >> (16 * j)) & 0xBBFF;
    }
    pool_ = device.upload(halves);
    x_ = device.upload(std::vector<uint16_t>(halves.begin(), halves.begin() + (32 << 20)));
    y_ = device.allocate(256 << 20 >> (host_ ? 4 : 0));
  }

  double read_rate() {
    const Program program = device_.compile(read_all());
    const auto count = static_cast<uint32_t>(pool_.bytes() / 16);
    Queue& queue = device_.queue();
    const double seconds = seconds_each(
        queue,
        [&] {
          queue.launch(program, (count + 1023) / 1024, {pool_, y_}, {count});
        },
        0.1);
    read_ = static_cast<double>(pool_.bytes()) / seconds;
    return read_;
  }

  // Seconds per launch; the first `rotating` buffers are weights of this many bytes, the others as
  // given.
  double time(const Program& program, const ops::ProductLaunch& launch, uint32_t rotating,
              uint64_t weight_bytes, const std::vector<Buffer>& others) {
    const uint64_t stride =
        (weight_bytes + kRangeAlignment - 1) / kRangeAlignment * kRangeAlignment;
    const uint64_t places = pool_.bytes() / stride;
    if (places == 0) return 0;
    const uint32_t launches = host_ ? 2 : 100;
    Queue& queue = device_.queue();
    std::vector<ParamValue> params(launch.params.begin(), launch.params.end());
    // Each launch has its own result buffer: this measures reading, and no launch waits for the
    // previous one if the backend tracks dependencies (WebGPU tracks only whole buffers).
    while (results_.size() < launches) results_.push_back(device_.allocate(y_.bytes() / launches));
    uint64_t at = 0;
    const CommandGraph recording = queue.record([&] {
      for (uint32_t i = 0; i < launches; ++i) {
        std::vector<BufferRange> buffers;
        for (uint32_t r = 0; r < rotating; ++r)
          buffers.emplace_back(pool_, at++ % places * stride, weight_bytes);
        buffers.insert(buffers.end(), others.begin(), others.end());
        buffers.back() = results_[options_.chain ? 0 : i];
        queue.launch(program, launch.groups, buffers, params);
      }
    });
    return seconds_each(
               queue, [&] { queue.replay(recording); }, host_ ? 0.001 : 0.05) /
           launches;
  }

  // Rows read at once, for every number of lanes per row.
  static void add_cuts_at_once(ElementType type, uint32_t k, const ops::VectorProduct& chosen,
                               std::vector<ops::VectorProduct>& cuts) {
    const uint32_t words = ops::WeightReader::unit_words(type);
    const uint32_t units = k / ops::WeightReader::unit_elements(type);
    for (const uint32_t ahead : {1u, 2u, 3u}) {
      const uint32_t lanes = ops::VectorProduct::kWarp * ahead, split = (units + lanes - 1) / lanes;
      for (const uint32_t times : {1u, 2u, 4u})
        for (const uint32_t rows : {1u, 2u, 3u, 4u, 6u, 8u}) {
          const uint32_t held = rows * ahead * words;
          if (split * times > 16 || (times > 1 && split * times > 8) || held > 64 || held < 8)
            continue;
          ops::VectorProduct cut = chosen;
          cut.at_once = true;
          cut.split = split;
          cut.subgroups = split * times;
          cut.rows_each = rows;
          cut.units_ahead = ahead;
          cuts.push_back(cut);
        }
    }
  }

  // Every tiling whose prefetched units fit into registers and whose lanes all have work.
  static void add_cuts(ElementType type, uint32_t k, const ops::VectorProduct& chosen,
                       std::vector<ops::VectorProduct>& cuts) {
    const uint32_t words = ops::WeightReader::unit_words(type);
    const uint32_t units = k / ops::WeightReader::unit_elements(type);
    for (const uint32_t subgroups : {4u, 8u})
      for (const uint32_t split : {1u, 2u, 4u, 8u})
        for (const uint32_t rows : {1u, 2u, 4u})
          for (const uint32_t ahead : {1u, 2u, 3u, 4u, 6u}) {
            const uint32_t held = rows * ahead * words;
            if (split > subgroups || split * 4 < subgroups || held < 12 || held > 64) continue;
            const uint32_t lanes = ops::VectorProduct::kWarp * split;
            if (units < lanes * ahead * 3 / 4) continue;
            ops::VectorProduct cut = chosen;
            cut.subgroups = subgroups;
            cut.split = split;
            cut.rows_each = rows;
            cut.units_ahead = ahead;
            cut.at_once = false;
            cuts.push_back(cut);
          }
  }

  void few_rows(ElementType type, uint32_t n, uint32_t k, uint32_t rows, bool pair = false) {
    ops::VectorProduct p;
    p.weight = type;
    p.x_rows = rows;
    p.pair = pair;
    if (pair) p.tail = silu_of_two();
    p.rounded = type.is_block();
    const uint32_t units = std::max(1u, device_.info().compute_units);
    const ops::VectorProduct chosen =
        ops::vector_product_for(p, n, k, device_.info().capabilities, units);
    std::vector<ops::VectorProduct> cuts = {chosen};
    if (options_.tune) add_cuts_at_once(type, k, chosen, cuts);
    if (options_.tune) add_cuts(type, k, chosen, cuts);
    // As in a plan: block types with rounded rows, and once with rounding in the product itself.
    if (type.is_block() && !options_.tune && rows == 1 && !pair) {
      ops::VectorProduct own = p;
      own.rounded = false;
      cuts.push_back(ops::vector_product_for(own, n, k, device_.info().capabilities, units));
    }
    const uint64_t bytes = type.is_block() ? gpu_block_layout(type.block(), n, k).bytes()
                                           : uint64_t(n) * k * type.block_bytes();
    const uint32_t matrices = pair ? 2 : 1;
    for (size_t i = 0; i < cuts.size(); ++i) {
      const ops::VectorProduct& cut = cuts[i];
      std::vector<Buffer> others = {x_, y_};
      Line line;
      line.what = fmt::format("{}{} {}x{}, {} row{}", type.name(), pair ? " gate and up" : "", k, n,
                              rows, rows == 1 ? "" : "s");
      line.note = fmt::format(
          "{} subgroups, split {}, {} rows each, {} {}{}{}", cut.subgroups, cut.split,
          cut.rows_each, cut.units_ahead, cut.at_once ? "at once" : "ahead",
          type.is_block() && !cut.rounded ? ", rounds x itself" : "", i == 0 ? "" : " (tried)");
      if (!wanted(line)) continue;
      const auto launch = ops::vector_product_launch(cut, n, k, rows, k, n);
      line.seconds =
          time(device_.compile(ops::vector_product(cut)), launch, matrices, bytes, others);
      line.bytes = static_cast<double>(bytes) * matrices;
      line.operations = 2.0 * n * k * rows * matrices;
      add(line);
    }
  }

  void rounding(uint32_t k) {
    Line line;
    line.what = fmt::format("round {} elements, 1 row", k);
    if (!wanted(line)) return;
    line.bytes = 4.0 * k;
    line.seconds = time(device_.compile(ops::round_rows(DType::f32)),
                        ops::round_rows_launch(1, k, k), 0, 1, {x_, y_});
    add(line);
  }

  // m rows of x times weights of n rows: the default tiling and, with --tune, others.
  void many_rows(DType a, ElementType type, uint32_t m, uint32_t n, uint32_t k) {
    ops::FragmentProduct p;
    p.a = a;
    p.b = type;
    p.c = DType::f16;
    const ops::ProductShape shape = ops::dense_shape(p, m, n, k);
    const DeviceInfo& info = device_.info();
    const ops::FragmentProduct chosen =
        ops::fragment_product_for(p, shape, info.capabilities, info.compute_units);
    std::vector<ops::FragmentProduct> cuts = {chosen};
    if (options_.tune && info.capabilities.shared_bytes > (160u << 10)) {
      struct Cut {
        uint32_t m, n, k, warps_m, warps_n, stages;
        bool ahead;
      };
      for (const Cut& c : {Cut{128, 256, 64, 2, 4, 3, true}, Cut{128, 256, 64, 2, 4, 2, true},
                           Cut{128, 128, 64, 2, 4, 3, true}, Cut{128, 128, 64, 2, 2, 3, true},
                           Cut{128, 128, 32, 2, 2, 3, true}, Cut{256, 128, 64, 4, 2, 2, true},
                           Cut{128, 128, 64, 2, 4, 2, true}, Cut{64, 128, 64, 2, 2, 3, true},
                           Cut{64, 64, 64, 2, 2, 3, true}, Cut{128, 128, 64, 2, 4, 2, false}}) {
        ops::FragmentProduct cut = chosen;
        cut.tile_m = c.m;
        cut.tile_n = c.n;
        cut.tile_k = c.k;
        cut.warps_m = c.warps_m;
        cut.warps_n = c.warps_n;
        cut.stages = c.stages;
        cut.run_ahead = c.ahead;
        cuts.push_back(cut);
      }
    }
    const uint64_t bytes = type.is_block() ? gpu_block_layout(type.block(), n, k).bytes()
                                           : uint64_t(n) * k * type.block_bytes();
    for (size_t i = 0; i < cuts.size(); ++i) {
      const ops::FragmentProduct& cut = cuts[i];
      Line line;
      line.what = fmt::format("{} {}x{}, {} rows of {}", type.name(), k, n, m, dtype_name(a));
      line.note =
          fmt::format("tile {}x{}x{}, {}x{} subgroups, {} stages{}{}", cut.tile_m, cut.tile_n,
                      cut.tile_k, cut.warps_m, cut.warps_n, cut.stages,
                      cut.run_ahead ? ", operands prefetched" : "", i == 0 ? "" : " (tried)");
      if (!wanted(line)) continue;
      try {
        line.seconds = time_product(device_.compile(ops::fragment_product(cut)),
                                    ops::fragment_product_launch(cut, shape), bytes);
      } catch (const Error& error) {
        if (i == 0 || error.code() != ErrorCode::kCompile) throw;
        continue;  // the tiling exceeds the device's registers
      }
      line.bytes = static_cast<double>(bytes);
      line.operations = 2.0 * m * n * k;
      add(line);
    }
  }

  // Some rows with packed weights: the default tiling and, with --tune, others.
  void packed_rows(BlockType type, uint32_t rows, uint32_t n, uint32_t k) {
    ops::PackedProduct p;
    p.weight = type;
    p.y = DType::f16;
    const DeviceInfo& info = device_.info();
    const auto chosen =
        ops::packed_product_for(p, n, k, rows, info.capabilities, info.compute_units);
    if (!chosen) return;
    std::vector<ops::PackedProduct> cuts = {*chosen};
    struct Cut {
      uint32_t n, k, warps_n, warps_k, stages;
    };
    if (options_.tune)
      for (const Cut& c : {Cut{32, 256, 2, 4, 4},  Cut{32, 256, 2, 4, 8}, Cut{32, 256, 2, 2, 4},
                           Cut{32, 256, 2, 8, 4},  Cut{32, 512, 2, 4, 3}, Cut{32, 128, 2, 2, 6},
                           Cut{16, 512, 1, 4, 3},  Cut{16, 512, 1, 8, 4}, Cut{16, 256, 1, 4, 4},
                           Cut{16, 1024, 1, 8, 3}, Cut{64, 256, 4, 2, 4}, Cut{64, 256, 4, 4, 4},
                           Cut{64, 256, 4, 1, 4},  Cut{64, 256, 2, 4, 3}, Cut{64, 128, 4, 2, 4},
                           Cut{64, 128, 4, 1, 4},  Cut{64, 128, 2, 2, 4}, Cut{128, 128, 8, 1, 4},
                           Cut{128, 128, 4, 2, 4}, Cut{128, 256, 8, 1, 3}}) {
        ops::PackedProduct cut = *chosen;
        cut.tile_n = c.n;
        cut.tile_k = c.k;
        cut.warps_n = c.warps_n;
        cut.warps_k = c.warps_k;
        cut.stages = c.stages;
        if (cut.shared_bytes() <= info.capabilities.shared_bytes) cuts.push_back(cut);
      }
    const uint64_t bytes = gpu_block_layout(type, n, k).bytes();
    for (size_t i = 0; i < cuts.size(); ++i) {
      const ops::PackedProduct& cut = cuts[i];
      Line line;
      line.what = fmt::format("{} packed {}x{}, {} rows", ElementType(type).name(), k, n, rows);
      line.note =
          fmt::format("tile {}x{}x{}, {}x{} subgroups, {} stages{}", cut.tile_rows, cut.tile_n,
                      cut.tile_k, cut.warps_n, cut.warps_k, cut.stages, i == 0 ? "" : " (tried)");
      if (!wanted(line)) continue;
      line.seconds = time(device_.compile(ops::packed_product(cut)),
                          ops::packed_product_launch(cut, n, k, rows, k), 1, bytes, {x_, y_});
      line.bytes = static_cast<double>(bytes);
      line.operations = 2.0 * rows * n * k;
      add(line);
    }
  }

  void many_rows_f32(uint32_t m, uint32_t n, uint32_t k) {
    ops::FragmentProduct as;
    Line line;
    line.what = fmt::format("f32 {}x{}, {} rows, all in f32", k, n, m);
    if (!wanted(line)) return;
    line.bytes = 4.0 * n * k;
    line.operations = 2.0 * m * n * k;
    line.seconds =
        time_product(device_.compile(ops::f32_product({.b_transposed = true})),
                     ops::f32_product_launch(ops::dense_shape(as, m, n, k)), uint64_t(n) * k * 4);
    add(line);
  }

  // Few launches: they are long, and use each operand many times.
  double time_product(const Program& program, const ops::ProductLaunch& launch, uint64_t bytes) {
    Queue& queue = device_.queue();
    const std::vector<ParamValue> params(launch.params.begin(), launch.params.end());
    const std::vector<BufferRange> buffers = {x_, BufferRange(pool_, 0, bytes), y_};
    const uint32_t launches = host_ ? 1 : 10;
    const CommandGraph recording = queue.record([&] {
      for (uint32_t i = 0; i < launches; ++i) queue.launch(program, launch.groups, buffers, params);
    });
    return seconds_each(
               queue, [&] { queue.replay(recording); }, host_ ? 0.001 : 0.05) /
           launches;
  }

  bool wanted(const Line& line) const {
    return options_.only.empty() || line.what.find(options_.only) != std::string::npos;
  }
  void add(const Line& line) {
    lines_.push_back(line);
    if (options_.json || line.seconds <= 0) return;
    std::cout << fmt::format("{:34} {:9.2f} us {:7.0f} GB/s {:5.1f}% {:8.2f} TFLOP/s  {}\n",
                             line.what, line.seconds * 1e6, line.bytes / line.seconds * 1e-9,
                             line.bytes / line.seconds / read_ * 100,
                             line.operations / line.seconds * 1e-12, line.note)
              << std::flush;
  }
  void print_json() const {
    std::cout << fmt::format(
        "{{\"device\": \"{}\", \"name\": \"{}\", \"read_gb_s\": {:.1f}, "
        "\"lines\": [",
        device_.id(), device_.name(), read_ * 1e-9);
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      std::cout << fmt::format(
          "{}\n  {{\"what\": \"{}\", \"us\": {:.3f}, \"gb_s\": {:.1f}, \"share\": {:.4f}, "
          "\"tflop_s\": {:.3f}, \"note\": \"{}\"}}",
          i ? "," : "", line.what, line.seconds * 1e6, line.bytes / line.seconds * 1e-9,
          line.bytes / line.seconds / read_, line.operations / line.seconds * 1e-12, line.note);
    }
    std::cout << "\n]}\n";
  }
  bool host() const { return host_; }

 private:
  const Device& device_;
  const Options& options_;
  bool host_ = false;
  double read_ = 0;
  Buffer pool_, x_, y_;
  std::vector<Buffer> results_;
  std::vector<Line> lines_;
};

int run(const Options& options) {
  const Device device = Device::named(options.device);
  std::cerr << fmt::format("{}: {}\n", device.id(), device.name());
  Bench bench(device, options);
  const double rate = bench.read_rate();
  if (!options.json) std::cout << fmt::format("reads {:.0f} GB/s\n", rate * 1e-9);
  const std::vector<std::pair<uint32_t, uint32_t>> shapes =  // n, k
      bench.host() ? std::vector<std::pair<uint32_t, uint32_t>>{{512, 1024}}
                   : std::vector<std::pair<uint32_t, uint32_t>>{
                         {4096, 4096}, {11008, 4096}, {4096, 11008}, {32000, 4096}};
  const std::vector<ElementType> main_types = {BlockType::q4_k, BlockType::q6_k, BlockType::q8_0,
                                               DType::f16};
  bench.rounding(4096);
  bench.rounding(11008);
  for (const ElementType type : main_types)
    for (const auto& [n, k] : shapes)
      if (!options.tune || shapes.size() == 1 || n == 11008 || k == 11008)
        bench.few_rows(type, n, k, 1);
  if (!options.tune) {
    const auto [n, k] = shapes[shapes.size() > 1 ? 1 : 0];
    for (const ElementType type : main_types) {
      bench.few_rows(type, n, k, 1, true);
      for (const uint32_t rows : {2u, 4u, 8u}) bench.few_rows(type, n, k, rows);
    }
    for (int i = 0; i < kBlockTypeCount; ++i) {
      const auto type = static_cast<BlockType>(i);
      if (std::ranges::count(main_types, ElementType(type)) == 0) bench.few_rows(type, n, k, 1);
    }
    bench.few_rows(DType::bf16, n, k, 1);
    bench.few_rows(DType::f32, n, k, 1);
  }
  for (const BlockType type : {BlockType::q4_k, BlockType::q6_k, BlockType::q8_0})
    for (const uint32_t rows : {16u, 32u, 48u, 64u})
      for (const auto& [n, k] : shapes)
        if (n <= 11008) bench.packed_rows(type, rows, n, k);
  if (bench.host()) {
    for (const ElementType type : main_types) bench.many_rows(DType::f16, type, 64, 64, 256);
    bench.many_rows_f32(128, 128, 128);
  } else {
    bench.many_rows(DType::f16, DType::f16, 4096, 4096, 4096);
    for (const ElementType type : main_types) {
      bench.many_rows(DType::f16, type, 512, 4096, 4096);
      bench.many_rows(DType::f16, type, 512, 11008, 4096);
      if (!options.tune) bench.many_rows(DType::f32, type, 512, 11008, 4096);
      if (!options.tune) bench.many_rows(DType::f16, type, 32, 11008, 4096);
    }
    bench.many_rows_f32(4096, 4096, 4096);
  }
  if (options.json) bench.print_json();
  return 0;
}

}  // namespace
}  // namespace prism::bench

int main(int count, char** words) {
  prism::bench::Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--json")
      options.json = true;
    else if (word == "--tune")
      options.tune = true;
    else if (word == "--quick")
      options.quick = true;
    else if (word == "--chain")
      options.chain = true;
    else if (word == "--device" && i + 1 < count)
      options.device = words[++i];
    else if (word == "--only" && i + 1 < count)
      options.only = words[++i];
    else {
      std::cerr << "usage: gpu_products_bench [--device D] [--json] [--tune] [--quick] "
                   "[--chain] [--only WORD]\n";
      return 2;
    }
  }
  try {
    return prism::bench::run(options);
  } catch (const prism::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
