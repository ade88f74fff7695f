// Compares RWKV 7 with its definition in f64 on a tiny model.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "llm/model/model.h"
#include "support/devices/devices.h"
#include "support/models/architecture_files.h"

namespace prism::llm {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The definition, from the names of the tensors.
class Rwkv7 {
 public:
  explicit Rwkv7(const GgufFile& file)
      : width_(static_cast<size_t>(file.integer("rwkv7.embedding_length"))),
        head_(static_cast<size_t>(file.integer("rwkv7.wkv.head_size"))),
        layers_(file.integer("rwkv7.block_count")) {
    for (const GgufTensor& each : file.tensors()) {
      const std::vector<float> values = file.tensor(each).to_vector<float>();
      tensors_[each.name] = Row(values.begin(), values.end());
    }
  }
  Rows logits(std::span<const int32_t> tokens) {
    Rows x;
    for (const int32_t token : tokens) {
      const double* const row = &tensors_["token_embd.weight"][static_cast<size_t>(token) * width_];
      x.push_back(norm(Row(row, row + width_), "token_embd_norm", 1e-5));
    }
    Rows first;
    for (int64_t i = 0; i < layers_; ++i) {
      prefix_ = "blk." + std::to_string(i) + ".";
      layer(x, first);
    }
    prefix_.clear();
    for (Row& row : x) row = times("output.weight", norm(row, "output_norm", 1e-5));
    return x;
  }

 private:
  const Row& at(const std::string& name) { return tensors_.at(prefix_ + name); }
  Row times(const std::string& name, const Row& x) {
    const Row& matrix = at(name);
    Row y(matrix.size() / x.size());
    for (size_t i = 0; i < y.size(); ++i)
      for (size_t j = 0; j < x.size(); ++j) y[i] += matrix[i * x.size() + j] * x[j];
    return y;
  }
  static void normalise(double* x, size_t count, double epsilon) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < count; ++i) mean += x[i] / static_cast<double>(count);
    for (size_t i = 0; i < count; ++i)
      square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(count);
    for (size_t i = 0; i < count; ++i) x[i] = (x[i] - mean) / std::sqrt(square + epsilon);
  }
  Row norm(Row x, const std::string& name, double epsilon) {
    normalise(x.data(), x.size(), epsilon);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = x[i] * at(name + ".weight")[i] + at(name + ".bias")[i];
    return x;
  }
  // x, and as much of the row before as `by` says.
  static Row mixed(const Row& x, const Row& before, const double* by) {
    Row y = x;
    for (size_t i = 0; i < x.size(); ++i) y[i] += (before[i] - x[i]) * by[i];
    return y;
  }
  // b + second(f(first x))
  Row narrow(const std::string& name, const Row& x, double (*f)(double), bool has_bias = true) {
    Row inner = times(name + "1.weight", x);
    if (f)
      for (double& each : inner) each = f(each);
    Row y = times(name + "2.weight", inner);
    for (size_t i = 0; i < y.size() && has_bias; ++i) y[i] += at(name + "0.weight")[i];
    return y;
  }

  void layer(Rows& x, Rows& first) {
    Row before(width_), before_inner(width_);
    Row state(width_ * head_);  // [heads, values, keys]
    const bool is_first = first.empty();
    for (size_t t = 0; t < x.size(); ++t) {
      const Row input = norm(x[t], "attn_norm", 1e-5);
      const Row seen = time_mix(input, before, state, first, t, is_first);
      before = input;
      for (size_t i = 0; i < width_; ++i) x[t][i] += seen[i];
      const Row inner = norm(x[t], "attn_norm_2", 1e-5);
      Row key = times("channel_mix_key.weight",
                      mixed(inner, before_inner, at("channel_mix_lerp_k.weight").data()));
      before_inner = inner;
      for (double& each : key) each = each > 0 ? each * each : 0;
      const Row added = times("channel_mix_value.weight", key);
      for (size_t i = 0; i < width_; ++i) x[t][i] += added[i];
    }
  }

  Row time_mix(const Row& x, const Row& before, Row& state, Rows& first, size_t t, bool is_first) {
    const double* const lerp = at("time_mix_lerp_fused.weight").data();
    const auto in = [&](size_t i) { return mixed(x, before, lerp + i * width_); };
    const Row r = times("time_mix_receptance.weight", in(0));
    const Row w = narrow("time_mix_w", in(1), [](double v) { return std::tanh(v); });
    const Row k = times("time_mix_key.weight", in(2));
    Row v = times("time_mix_value.weight", in(3));
    const Row part = narrow("time_mix_v", in(3), nullptr), a = narrow("time_mix_a", in(4), nullptr);
    const Row gate = narrow("time_mix_g", in(5), sigmoid, false);
    if (is_first) first.push_back(v);
    for (size_t i = 0; i < width_ && !is_first; ++i)
      v[i] += (first[t][i] - v[i]) * sigmoid(part[i]);
    Row y(width_);
    for (size_t h = 0; h < width_; h += head_) {
      Row removed(head_), key(head_);
      double length = 0, own = 0;
      for (size_t j = 0; j < head_; ++j) {
        removed[j] = k[h + j] * at("time_mix_k_k.weight")[h + j];
        length += removed[j] * removed[j];
        key[j] = k[h + j] * (1 + (sigmoid(a[h + j]) - 1) * at("time_mix_k_a.weight")[h + j]);
        own += r[h + j] * key[j] * at("time_mix_r_k.weight")[h + j];
      }
      for (double& each : removed) each /= std::max(std::sqrt(length), 1e-12);
      for (size_t i = 0; i < head_; ++i) {
        double* const s = &state[(h + i) * head_];
        double moved = 0;
        for (size_t j = 0; j < head_; ++j) moved -= removed[j] * s[j];
        for (size_t j = 0; j < head_; ++j) {
          s[j] = s[j] * std::exp(-0.606531 * sigmoid(w[h + j])) + key[j] * v[h + i] +
                 moved * removed[j] * sigmoid(a[h + j]);
          y[h + i] += s[j] * r[h + j];
        }
      }
      normalise(&y[h], head_, 64e-5);
      for (size_t i = h; i < h + head_; ++i)
        y[i] =
            (y[i] * at("time_mix_ln.weight")[i] + at("time_mix_ln.bias")[i] + own * v[i]) * gate[i];
    }
    return times("time_mix_output.weight", y);
  }

  size_t width_, head_;
  int64_t layers_;
  std::string prefix_;
  std::map<std::string, Row> tensors_;
};

TEST(RwkvDevice, SevenFollowsItsDefinition) {
  for (const test::ArchitectureFile& each : test::architecture_files()) {
    if (each.name != "rwkv7-dense") continue;
    const GgufFile file = GgufFile::open(each.path);
    const Rows wanted = Rwkv7(file).logits(each.tokens);
    for (const Device& device : test::every_device()) {
      Model model = Model::load(file, {.placement = place_on(file, device, 256, DType::f32)});
      // Software devices take long to compile the kernels of a plan.
      const std::vector<size_t> chunks = device.info().software
                                             ? std::vector<size_t>{7}
                                             : std::vector<size_t>{each.tokens.size(), 7, 1};
      for (const size_t chunk : chunks) {
        double difference = 0, size = 0;
        for (size_t first = 0; first < each.tokens.size(); first += chunk) {
          const size_t count = std::min(chunk, each.tokens.size() - first);
          const SequencePart part{0, static_cast<int32_t>(first),
                                  std::span(each.tokens).subspan(first, count), Wanted::all};
          const std::vector<float> found = model.forward(std::span(&part, 1)).to_vector<float>();
          for (size_t i = 0; i < found.size(); ++i) {
            const Row& row = wanted[first + i / wanted[0].size()];
            const double value = row[i % row.size()];
            difference += (static_cast<double>(found[i]) - value) * (found[i] - value);
            size += value * value;
          }
        }
        EXPECT_LT(difference, 1e-9 * size) << device.id() << " in chunks of " << chunk;
      }
    }
    return;
  }
  GTEST_SKIP() << "no ../shared/expected/architectures.tar.xz, or no tar and xz";
}

}  // namespace
}  // namespace prism::llm
