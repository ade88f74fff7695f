// Reads LoRA adapters and checks them against the model.
#include "llm/model/adapters.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/fast_hash.h"
#include "base/printable.h"
#include "llm/model/finite.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/quantise.h"
#include "prism/warning.h"

namespace prism::llm {
namespace {

constexpr std::string_view kSuffixA = ".lora_a", kSuffixB = ".lora_b";

[[noreturn]] void fail(ErrorCode code, const GgufFile& file, const std::string& what) {
  throw Error(code, fmt::format("adapter {}: {}", printable(file.path()), what));
}

Tensor floats_of(const GgufFile& file, const GgufTensor& tensor) {
  const Tensor read = file.tensor(tensor);
  const Tensor wide = read.type().is_block() ? dequantise(read) : cast(read, DType::f32);
  if (!all_finite(wide.to_vector<float>()))
    fail(ErrorCode::kCorruptFile, file,
         fmt::format("tensor {} has values that are not finite (NaN or infinity)",
                     printable(tensor.name)));
  return wide;
}

// A vector is a matrix with one row.
Shape as_matrix(const Shape& shape) { return shape.rank() == 1 ? Shape{1, shape[0]} : shape; }

void check_kind(const GgufFile& file, const GgufFile& model) {
  const std::string_view type = file.string_or("general.type", "model");
  if (type != "adapter")
    fail(ErrorCode::kInvalidArgument, file,
         fmt::format("general.type is \"{}\" and not \"adapter\"; is it a whole model?",
                     printable(type)));
  const std::string_view kind = file.string_or("adapter.type", "");
  if (kind != "lora")
    fail(ErrorCode::kNotSupported, file,
         fmt::format("adapter.type is \"{}\"; only \"lora\" is supported", printable(kind)));
  if (file.has("adapter.alora.invocation_tokens"))
    fail(ErrorCode::kNotSupported, file,
         "it changes only the text after certain tokens (aLoRA), which Prism does not support");
  const std::string_view made_for = file.string_or("general.architecture", ""),
                         used_with = model.string("general.architecture");
  if (made_for != used_with)
    fail(ErrorCode::kInvalidArgument, file,
         fmt::format("it was made for a model of architecture \"{}\", and {} is of \"{}\"; use it "
                     "with the model it was trained on",
                     printable(made_for), printable(model.path()), printable(used_with)));
}

}  // namespace

LoraAdapter parse_adapter(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::error_code ignored;
  if (colon == text.npos || std::filesystem::exists(text, ignored)) return {text, 1};
  const std::string_view number = std::string_view(text).substr(colon + 1);
  LoraAdapter result = {text.substr(0, colon), 0};
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), result.scale);
  if (problem != std::errc() || end != number.data() + number.size() ||
      !std::isfinite(result.scale))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("adapter {}: the scale \"{}\" is no finite number; write "
                            "adapter.gguf:0.5, or leave it out for 1",
                            printable(result.path), printable(number)));
  return result;
}

Tensor LowRank::added_to(const Tensor& matrix) const {
  const Tensor wide = matrix.type().is_block() ? dequantise(matrix) : cast(matrix, DType::f32);
  return wide + matmul(b, a).reshape(matrix.shape());
}

Adapters::Adapters(const GgufFile& model, std::span<const LoraAdapter> files) {
  for (const LoraAdapter& each : files) add(model, each);
}

void Adapters::add(const GgufFile& model, const LoraAdapter& from) {
  const GgufFile file = GgufFile::open(from.path);
  if (!std::isfinite(from.scale))
    fail(ErrorCode::kInvalidArgument, file,
         fmt::format("the scale is {}; it must be a finite number", from.scale));
  check_kind(file, model);
  const double alpha = file.number_or("adapter.lora.alpha", 0);
  if (!std::isfinite(alpha))
    fail(ErrorCode::kCorruptFile, file, fmt::format("adapter.lora.alpha is {}", alpha));

  size_t pairs = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (name.ends_with("_norm.weight")) {
      warn(fmt::format("adapter {}: the norm {} is ignored, as other programs do",
                       printable(file.path()), printable(name)));
      continue;
    }
    const bool is_a = name.ends_with(kSuffixA);
    if (!is_a && !name.ends_with(kSuffixB))
      fail(ErrorCode::kCorruptFile, file,
           fmt::format("tensor {} is neither a .lora_a nor a .lora_b", printable(name)));
    const std::string of(name.substr(0, name.size() - kSuffixA.size()));
    const GgufTensor* const a = file.find_tensor(of + std::string(kSuffixA));
    const GgufTensor* const b = file.find_tensor(of + std::string(kSuffixB));
    if (!a || !b)
      fail(ErrorCode::kCorruptFile, file,
           fmt::format("{} has no {}", printable(name), is_a ? kSuffixB : kSuffixA));
    if (!is_a) continue;  // a pair counts once
    const GgufTensor* const changed = model.find_tensor(of);
    if (!changed)
      fail(ErrorCode::kInvalidArgument, file,
           fmt::format("it changes the tensor {}, which {} does not have; use it with the model it "
                       "was trained on",
                       printable(of), printable(model.path())));
    // The table of tokens has its factors the other way round: a row of `a` for each token.
    const bool is_table = of == "token_embd.weight" && a->shape.rank() == 2 && b->shape.rank() == 2;
    const Tensor down = is_table ? floats_of(file, *b).transpose() : floats_of(file, *a);
    const Tensor up = is_table ? floats_of(file, *a) : floats_of(file, *b);
    const Shape matrix = as_matrix(changed->shape);
    Shape need_a = matrix, need_b = matrix;
    const int64_t rank = down.rank() < 2 ? 0 : down.size(-2);
    need_a[-2] = rank, need_b[-1] = rank;
    if (rank < 1 || !(down.shape() == need_a) || !(up.shape() == need_b))
      fail(ErrorCode::kInvalidArgument, file,
           fmt::format("the factors of {} are {} and {}, which do not make a change of its shape "
                       "{}; use the adapter with the model it was trained on",
                       printable(of), a->shape.text(), b->shape.text(), changed->shape.text()));
    const double scale = from.scale * (alpha != 0 ? alpha / static_cast<double>(rank) : 1);
    LowRank made = {down, up * scale};
    if (const auto known = changes_.find(of); known != changes_.end())
      made = {concat({known->second.a, made.a}, -2), concat({known->second.b, made.b}, -1)};
    made.a = made.a.contiguous(), made.b = made.b.contiguous();
    made.a.eval(), made.b.eval();
    changes_[of] = made;
    ++pairs;
  }
  if (pairs == 0) fail(ErrorCode::kCorruptFile, file, "it changes no tensor");
}

const LowRank* Adapters::find(std::string_view tensor) const {
  const auto found = changes_.find(tensor);
  return found == changes_.end() ? nullptr : &found->second;
}

void Adapters::check_all_used(const std::set<std::string, std::less<>>& tensors) const {
  for (const auto& [name, change] : changes_)
    if (!tensors.contains(name))
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("adapter: it changes the tensor {}, which Prism does not use in this "
                              "model, so the change would be lost; leave the tensor out",
                              printable(name)));
}

std::string Adapters::fingerprint() const {
  if (changes_.empty()) return {};
  FastHash hash;
  for (const auto& [name, change] : changes_) {
    hash.update(std::as_bytes(std::span(name)));
    for (const Tensor* const each : {&change.a, &change.b}) {
      const std::vector<float> values = each->to_vector<float>();
      hash.update(std::as_bytes(std::span(values)));
    }
  }
  return hash.finish();
}

}  // namespace prism::llm
