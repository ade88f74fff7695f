// Tests LoRA adapters on every device against float64 loops over the changed weights.
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "llm/gguf/gguf_writer.h"
#include "llm/model/merge_adapters.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/ops/quantise.h"
#include "support/devices/devices.h"
#include "support/models/tiny_adapter.h"
#include "support/models/tiny_model.h"

namespace prism::llm {
namespace {

using test::expect_close;
using test::some_tokens;
using test::TinyAdapter;
using test::TinyModel;

std::vector<float> logits(const GgufFile& file, const Device& device,
                          std::span<const int32_t> tokens,
                          const std::vector<LoraAdapter>& adapters = {}) {
  Model model = Model::load(
      file, {.placement = place_on(file, device, 40, DType::f32), .adapters = adapters});
  const SequencePart all{0, 0, tokens, Wanted::all};
  return model.forward(std::span(&all, 1)).to_vector<float>();
}

// Two adapters at once, and the same merged into the file.
void check(TinyModel& tiny, const std::vector<std::string>& also = {}, double bound = 2e-4) {
  const test::TemporaryFolder folder;
  const GgufFile file = tiny.open();
  TinyAdapter first{.seed = test::model_seed()};
  first.tensors = test::adapted_tensors(file);
  first.tensors.insert(first.tensors.end(), also.begin(), also.end());
  const TinyAdapter second{.rank = 2, .alpha = 0.5, .seed = test::model_seed() + 1};
  const std::vector<LoraAdapter> adapters = {{folder / "a.gguf", 0.5}, {folder / "b.gguf", -1.5}};
  const std::vector<int32_t> tokens = some_tokens(11, tiny.reference.vocabulary);
  const std::vector<double> plain = tiny.reference.logits(tokens);
  test::write_adapter(file, first, adapters[0].path, adapters[0].scale, tiny.reference);
  test::write_adapter(file, second, adapters[1].path, adapters[1].scale, tiny.reference);
  const std::vector<double> wanted = tiny.reference.logits(tokens);
  double apart = 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    apart = std::max(apart, std::abs(wanted[i] - plain[i]));
  ASSERT_GT(apart, 0.1);

  for (const Device& device : test::every_device())
    expect_close(logits(file, device, tokens, adapters), wanted, bound, device.id());
  merge_adapters(file, adapters, folder / "merged.gguf", nullptr);
  const GgufFile merged = GgufFile::open(folder / "merged.gguf");
  expect_close(logits(merged, Device::cpu(), tokens), wanted, bound, "merged");
  // Without any, and switched off.
  expect_close(logits(file, Device::cpu(), tokens, {{adapters[0].path, 0}}), plain, bound, "off");
}

TEST(Adapters, Llama) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  check(tiny, {"token_embd.weight"});
}

TEST(Adapters, TableThatIsAlsoTheOutput) {
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({.output = false});
  check(tiny, {"token_embd.weight"});
}

TEST(Adapters, JoinedMatrices) {
  TinyModel tiny("phi3");
  tiny.finish({.joined = true});
  check(tiny);
}

TEST(Adapters, ExpertsAndBiases) {
  TinyModel tiny("qwen3moe");
  tiny.use_experts(4, 2);
  tiny.set("expert_feed_forward_length", tiny.reference.wide);
  tiny.finish({.head_norms = true});
  check(tiny);
}

// The result of merging is rounded to the type of the tensor.
TEST(Adapters, MergedIntoBlocks) {
  const test::TemporaryFolder folder;
  TinyModel tiny("llama");
  tiny.reference.adjacent = true;
  tiny.finish({});
  const GgufFile file = tiny.open();
  const std::vector<LoraAdapter> adapters = {{folder / "a.gguf", 1}};
  test::write_adapter(file, {.seed = test::model_seed()}, adapters[0].path, 1, tiny.reference);
  merge_adapters(file, adapters, folder / "q8.gguf", &quantise_mix("Q8_0"));
  const GgufFile merged = GgufFile::open(folder / "q8.gguf");
  const std::string name = "blk.0.attn_q.weight";
  const Tensor tensor = merged.tensor(*merged.find_tensor(name));
  ASSERT_EQ(tensor.type(), ElementType(BlockType::q8_0));
  const std::vector<float> values = dequantise(tensor).to_vector<float>();
  const std::vector<double>& wanted = tiny.reference.tensors.at(name);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t block = i - i % 32;  // elements with one scale, of 8 bits each
    double largest = 0;
    for (size_t j = block; j < block + 32; ++j) largest = std::max(largest, std::abs(wanted[j]));
    // The scale with the least error may cut off the largest.
    ASSERT_NEAR(static_cast<double>(values[i]), wanted[i], 2 * largest / 127) << i;
  }
}

class WrongAdapters : public testing::Test {
 protected:
  void SetUp() override {
    tiny_.reference.adjacent = true;
    tiny_.finish({});
    file_ = tiny_.open();
  }
  std::string message(const LoraAdapter& adapter) {
    try {
      logits(*file_, Device::cpu(), some_tokens(3, 50), {adapter});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string write(const TinyAdapter& adapter) {
    const std::string path = folder_ / "wrong.gguf";
    test::ReferenceModel ignored = tiny_.reference;
    test::write_adapter(*file_, adapter, path, 1, ignored);
    return path;
  }
  void expect(const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  TinyModel tiny_{"llama"};
  std::optional<GgufFile> file_;
  const test::TemporaryFolder folder_;
};

TEST_F(WrongAdapters, AreErrorsThatSayWhy) {
  expect(message({folder_ / "none.gguf"}), "none.gguf");
  expect(message({file_->path()}), "is it a whole model?");
  expect(message({write({.architecture = "qwen2"})}), "architecture \"qwen2\"");
  const std::string right = write({});
  expect(message({right, std::numeric_limits<double>::quiet_NaN()}), "scale is nan");
  EXPECT_THROW(parse_adapter(right + ":nan"), Error);
  EXPECT_THROW(parse_adapter(right + ":0.5x"), Error);
  EXPECT_THROW(parse_adapter(right + ":"), Error);
  EXPECT_EQ(parse_adapter(right + ":-0.5").scale, -0.5);
  EXPECT_EQ(parse_adapter(right).scale, 1);

  // For a model of other sizes.
  TinyModel other("llama");
  other.reference.wide *= 2;
  other.finish({});
  const GgufFile wider = other.open();
  test::ReferenceModel ignored = other.reference;
  test::write_adapter(wider, {}, folder_ / "wider.gguf", 1, ignored);
  expect(message({folder_ / "wider.gguf"}), "do not make a change of its shape");

  // A file that was cut short.
  std::ifstream in(right, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::ofstream(folder_ / "short.gguf", std::ios::binary) << bytes.substr(0, bytes.size() - 100);
  expect(message({folder_ / "short.gguf"}), "short.gguf");
}

TEST_F(WrongAdapters, TensorsAreChecked) {
  const std::vector<float> values(64, 0.5f), wrong(64, std::nanf(""));
  const auto with = [&](const std::vector<std::pair<std::string, const std::vector<float>*>>& all) {
    GgufWriter out;
    out.set("general.type", "adapter");
    out.set("general.architecture", "llama");
    out.set("adapter.type", "lora");
    out.set("adapter.lora.alpha", 1.f);
    for (const auto& [name, each] : all)
      out.add_tensor(name, {1, 64}, DType::f32, std::as_bytes(std::span(*each)));
    out.write(folder_ / "with.gguf");
    return message({folder_ / "with.gguf"});
  };
  expect(with({}), "changes no tensor");
  expect(with({{"blk.0.attn_q.weight.lora_a", &values}}), "has no .lora_b");
  expect(with({{"blk.0.attn_q.weight", &values}}), "neither a .lora_a nor a .lora_b");
  expect(with({{"blk.9.attn_q.weight.lora_a", &values}, {"blk.9.attn_q.weight.lora_b", &values}}),
         "which");
  expect(with({{"blk.0.attn_q.weight.lora_a", &wrong}, {"blk.0.attn_q.weight.lora_b", &values}}),
         "not finite");
}

}  // namespace
}  // namespace prism::llm
