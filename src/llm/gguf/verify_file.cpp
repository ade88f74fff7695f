// Decodes every block of a file and looks for values that are not finite, or too large.
#include "llm/gguf/verify_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/system/thread_pool.h"
#include "llm/gguf/tensor_floats.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {

namespace {

// Sums of products of such weights are infinite in f32, and no trained model has them.
constexpr float kLargest = 1e18f;

// The index of the first value that is not finite or too large, or size(). A non-finite scale makes
// its whole block non-finite.
size_t first_bad(std::span<const float> values, ThreadPool& pool) {
  std::atomic<size_t> first{values.size()};
  pool.parallel_for(values.size(), 1 << 16, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      if (!(std::abs(values[i]) < kLargest)) {
        size_t known = first;
        while (i < known && !first.compare_exchange_weak(known, i)) {
        }
        return;
      }
  });
  return first;
}

void check_values(const GgufFile& file, const GgufTensor& tensor, VerifyResult& result) {
  bool is_bad = false;
  for_each_piece(
      file, tensor, cpu_pool(), [&](uint64_t first_row, uint64_t, std::span<const float> values) {
        result.elements += values.size();
        const size_t bad = is_bad ? values.size() : first_bad(values, cpu_pool());
        if (bad == values.size()) return;
        is_bad = true;
        const auto columns = static_cast<uint64_t>(tensor.shape.rank() == 0 ? 1 : tensor.shape[-1]);
        result.problems.push_back(
            fmt::format("tensor {} ({}): row {}, column {} is {}", tensor.name, tensor.type_name(),
                        first_row + bad / columns, bad % columns, values[bad]));
      });
}

void check_vocabulary(const GgufFile& file, VerifyResult& result) {
  const GgufValue* const tokens = file.find("tokenizer.ggml.tokens");
  if (!tokens) {
    result.notes.push_back("has no tokenizer");
    return;
  }
  for (const char* key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"})
    if (const GgufValue* const list = file.find(key); list && list->count() != tokens->count())
      result.problems.push_back(
          fmt::format("{} has {} entries for {} tokens", key, list->count(), tokens->count()));
  if (const GgufValue* const scores = file.find("tokenizer.ggml.scores");
      scores && scores->is_array()) {
    uint64_t index = 0, first = scores->count();
    scores->for_each([&](const GgufValue& value) {
      if (!std::isfinite(value.number().value_or(0))) first = std::min(first, index);
      ++index;
    });
    if (first < scores->count())
      result.problems.push_back(
          fmt::format("tokenizer.ggml.scores: the score of token {} is not finite", first));
  }
  const GgufTensor* const table = file.find_tensor("token_embd.weight");
  if (table && table->shape.rank() == 2 && static_cast<uint64_t>(table->shape[0]) < tokens->count())
    result.problems.push_back(fmt::format("token_embd.weight has {} rows for {} tokens",
                                          table->shape[0], tokens->count()));
}

}  // namespace

VerifyResult verify_file(const GgufFile& file,
                         const std::function<void(uint64_t done, uint64_t all)>& progress) {
  VerifyResult result;
  check_vocabulary(file, result);
  uint64_t all = 0, done = 0;
  for (const GgufTensor& tensor : file.tensors()) all += tensor.bytes;
  for (const GgufTensor& tensor : file.tensors()) {
    ++result.tensors;
    if (tensor.is_supported())
      check_values(file, tensor, result);
    else
      result.notes.push_back(fmt::format("tensor {}: values of type {} were not checked",
                                         tensor.name, tensor.type_name()));
    if (progress) progress(done += tensor.bytes, all);
  }
  return result;
}

}  // namespace prism::llm
