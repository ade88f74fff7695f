// Matches the names of tensors with PCRE2.
#include "llm/gguf/tensor_type_rules.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

#include "cpu/quantise/quantise.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "quantise: " + message);
}

class Expression {
 public:
  explicit Expression(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), 0,
                              &error, &at, nullptr));
    if (code_) return;
    PCRE2_UCHAR text[120] = {};
    pcre2_get_error_message(error, text, sizeof text);
    refuse(fmt::format("the expression \"{}\" is not valid at character {}: {}", pattern, at,
                       reinterpret_cast<const char*>(text)));
  }
  bool is_in(const std::string& name) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(), 0, 0,
                       match.get(), nullptr) >= 0;
  }

 private:
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeMatch {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

bool can_write(ElementType type) {
  if (type.is_block()) return cpu::can_quantise(type.block());
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

std::string writable_types() {
  std::string names = "f32, f16, bf16";
  for (int i = 0; i < kBlockTypeCount; ++i)
    if (const auto type = static_cast<BlockType>(i); cpu::can_quantise(type))
      names += fmt::format(", {}", block_info(type).name);
  return names;
}

}  // namespace

TensorTypeRule tensor_type_rule(std::string_view text) {
  const size_t at = text.rfind('=');
  if (at == std::string_view::npos || at == 0)
    refuse(fmt::format("\"{}\" is no PATTERN=TYPE; an example is ffn_down=q6_k", text));
  std::string name(text.substr(at + 1));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto type = ElementType::from_name(name);
  if (!type || !can_write(*type))
    refuse(fmt::format("{} \"{}\" in \"{}\"; tensors can be written as {}",
                       type ? "Prism reads but does not write the type" : "unknown type", name,
                       text, writable_types()));
  TensorTypeRule rule{std::string(text.substr(0, at)), *type};
  const Expression check(rule.pattern);
  return rule;
}

void apply_tensor_type_rules(std::span<const TensorTypeRule> rules, const GgufFile& file,
                             std::vector<std::optional<ElementType>>& types) {
  std::vector<Expression> expressions;
  for (const TensorTypeRule& rule : rules) expressions.emplace_back(rule.pattern);
  std::vector<bool> is_used(rules.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    if (tensor.shape.rank() < 2 || tensor.shape.elements() == 0) continue;
    bool is_done = false;
    for (size_t r = 0; r < rules.size(); ++r) {
      if (!expressions[r].is_in(tensor.name)) continue;
      is_used[r] = true;
      if (std::exchange(is_done, true)) continue;  // by an earlier rule
      const ElementType type = rules[r].type;
      if (tensor.shape[-1] % type.block_elements() != 0)
        refuse(fmt::format(
            "tensor {} has rows of {} elements, which are no whole blocks of {}'s {}; "
            "choose another type for \"{}\"",
            tensor.name, tensor.shape[-1], type.name(), type.block_elements(), rules[r].pattern));
      types[i] = type;
    }
  }
  for (size_t r = 0; r < rules.size(); ++r)
    if (!is_used[r])
      refuse(
          fmt::format("the expression \"{}\" matches no tensor of {} with two axes or more; "
                      "`prism model info --tensors` lists the names",
                      rules[r].pattern, file.path()));
}

}  // namespace prism::llm
