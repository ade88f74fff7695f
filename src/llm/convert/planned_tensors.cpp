// Matches tensors with the rules of an architecture and streams their rows.
#include "llm/convert/planned_tensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/printable.h"
#include "llm/convert/hf_rope.h"
#include "llm/gguf/tensor_floats.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

constexpr uint64_t kPieceElements = uint64_t{4} << 20;

// "model.layers.3.mlp.up_proj.weight" is "model.layers.{}.mlp.up_proj.weight" and 3.
struct ParsedName {
  std::string pattern;
  std::vector<int64_t> numbers;
};

// most: numbers that stand for themselves beyond the first few stay as they are.
ParsedName parse_name(const std::string& name, size_t most) {
  ParsedName parsed;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view step(name.data() + at, end - at);
    int64_t number = -1;
    const auto [stop, failed] = std::from_chars(step.data(), step.data() + step.size(), number);
    const bool is_number = parsed.numbers.size() < most && failed == std::errc() &&
                           stop == step.data() + step.size() && number >= 0 && number < 1 << 20 &&
                           step == std::to_string(number);
    if (is_number) parsed.numbers.push_back(number);
    if (!parsed.pattern.empty() || at > 0) parsed.pattern += '.';
    parsed.pattern += is_number ? std::string_view("{}") : step;
    at = end + 1;
  }
  return parsed;
}

class Planner {
 public:
  Planner(const HfArchitecture& architecture, const HfFolder& folder)
      : architecture_(architecture), folder_(folder), config_(folder.config()) {
    for (const auto& rules : architecture.tensors)
      for (const TensorRule& rule : rules) rules_.emplace(rule.from, &rule);
    layers_ = config_["num_hidden_layers"].integer(1, 4096);
    layers_ = std::max(layers_, config_["num_decoder_layers"].integer_or(0, 0, 4096));
    for (const char* key : {"num_experts", "num_local_experts"})
      experts_ = std::max(experts_, config_[key].integer_or(0, 0, 1024));
    heads_ = config_["num_attention_heads"].integer(1, 1 << 16);
    head_length_ = config_["head_dim"].integer_or(
        config_["hidden_size"].integer(1, 1 << 20) / heads_, 1, 1 << 14);
  }

  std::vector<PlannedTensor> plan(int64_t context) {
    // T5 scales what goes into an output that is the embedding; a file says that it does not by an
    // output of its own.
    const bool is_scaled = config_["scale_decoder_outputs"].boolean_or(true);
    const bool is_tied =
        is_scaled && config_["tie_word_embeddings"].boolean_or(architecture_.is_tied);
    for (const auto& [name, entry] : folder_.tensors()) {
      const std::string own =
          name.starts_with(architecture_.prefix) ? name.substr(architecture_.prefix.size()) : name;
      ParsedName parsed = parse_name(own, 1);  // of the layer; the parts of T5's have numbers, too
      if (!rules_.contains(parsed.pattern)) parsed = parse_name(own, 2);
      const auto found = rules_.find(parsed.pattern);
      if (found == rules_.end() || (!parsed.numbers.empty() && parsed.numbers[0] >= layers_))
        throw Error(
            ErrorCode::kNotSupported,
            fmt::format("{}: the tensor {} {} is used by no rule for {}, so the model would "
                        "be wrong without it; please report the model",
                        folder_.path(), printable(name), entry.shape.text(), architecture_.name));
      const TensorRule& rule = *found->second;
      if (rule.to.empty() || (rule.to == "output.weight" && is_tied)) continue;
      add(name, entry, rule, parsed.numbers, context);
    }
    const auto table = planned_.find({-1, "token_embd.weight"});
    if (!is_scaled && rules_.contains("lm_head.weight") && table != planned_.end()) {
      PlannedTensor output = table->second;
      output.name = "output.weight";
      planned_.emplace(std::pair(-1, "output.weight"), std::move(output));
    }
    std::vector<PlannedTensor> all;
    for (auto& [key, tensor] : planned_) {
      check_complete(tensor);
      all.push_back(std::move(tensor));
    }
    for (ComputedTensor& each : architecture_.is_rotated ? rope_tensors(config_, head_length_)
                                                         : std::vector<ComputedTensor>()) {
      PlannedTensor tensor;
      tensor.name = std::move(each.name);
      tensor.shape = {static_cast<int64_t>(each.values.size())};
      tensor.computed = std::move(each.values);
      all.push_back(std::move(tensor));
    }
    return all;
  }

 private:
  void add(const std::string& name, const SafetensorsEntry& entry, const TensorRule& rule,
           const std::vector<int64_t>& numbers, int64_t context) {
    if (!is_float(entry.type) || entry.shape.rank() == 0 || entry.shape.elements() == 0)
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("{}: tensor {} is {} {}; weights must be f32, f16 or bf16 and not "
                              "empty",
                              folder_.path(), printable(name), ElementType(entry.type).name(),
                              entry.shape.text()));
    const bool is_expert = numbers.size() == 2;
    const int64_t layer = numbers.empty() ? -1 : numbers[0];
    PlannedTensor& tensor = planned_[{layer, rule.to}];
    if (tensor.sources.empty()) {
      tensor.name = fmt::format(fmt::runtime(rule.to), layer);
      tensor.shape = entry.shape;
      tensor.type = entry.type;
      tensor.change = rule.change;
      tensor.head_length = head_length_;
      tensor.sources.resize(is_expert ? static_cast<size_t>(experts_) : 1);
      if (rule.change == TensorChange::cut) {
        tensor.skipped_rows = skipped_positions(architecture_, config_);
        tensor.shape[0] = std::min(tensor.shape[0] - tensor.skipped_rows, context);
      }
      if (rule.change == TensorChange::transposed && tensor.shape.rank() == 2)
        tensor.shape = {tensor.shape[1], tensor.shape[0]};
      if (is_expert) tensor.shape.insert(0, experts_);
    }
    const auto place = is_expert ? static_cast<size_t>(numbers[1]) : 0;
    const bool has_shape =
        is_expert ? entry.shape.elements() * experts_ == tensor.shape.elements() : true;
    const TensorChange change = rule.change;
    if (place >= tensor.sources.size() || !has_shape || !(tensor.type == entry.type) ||
        (change == TensorChange::rotary && entry.shape[0] % head_length_ != 0) ||
        (change == TensorChange::rotary && head_length_ % 2 != 0) ||
        (change == TensorChange::split_heads && entry.shape[0] % (3 * head_length_) != 0) ||
        (change == TensorChange::cut && tensor.shape[0] < 1) ||
        (change == TensorChange::transposed && entry.shape.rank() != 2))
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("{}: tensor {} of {} {} does not fit config.json: {} experts, heads "
                              "of {} elements",
                              folder_.path(), printable(name), ElementType(entry.type).name(),
                              entry.shape.text(), experts_, head_length_));
    tensor.sources[place] = &entry;
  }

  void check_complete(const PlannedTensor& tensor) const {
    for (size_t i = 0; i < tensor.sources.size(); ++i)
      if (!tensor.sources[i])
        throw Error(ErrorCode::kCorruptFile, fmt::format("{}: expert {} has no tensor for {}",
                                                         folder_.path(), i, tensor.name));
  }

  const HfArchitecture& architecture_;
  const HfFolder& folder_;
  JsonView config_;
  std::map<std::string_view, const TensorRule*, std::less<>> rules_;
  std::map<std::pair<int64_t, std::string_view>, PlannedTensor> planned_;  // by layer
  int64_t layers_ = 0, experts_ = 0, heads_ = 0, head_length_ = 0;
};

bool moves_rows(TensorChange change) {
  return change == TensorChange::rotary || change == TensorChange::split_heads;
}

// The row of the source that becomes this row. Rotary: halves of a head become adjacent elements.
uint64_t source_row(const PlannedTensor& tensor, uint64_t row) {
  const auto length = static_cast<uint64_t>(tensor.head_length);
  const uint64_t in_head = row % length;
  if (tensor.change == TensorChange::rotary)
    return row - in_head + in_head % 2 * (length / 2) + in_head / 2;
  const uint64_t heads = static_cast<uint64_t>(tensor.shape[0]) / (3 * length);
  const uint64_t part = row / (heads * length), head = row / length % heads;
  return (head * 3 + part) * length + in_head;
}

// Streams the rows of one source.
class Stream {
 public:
  Stream(const PlannedTensor& tensor, ElementType type, ThreadPool& pool,
         const std::function<void(std::span<const std::byte>)>& sink)
      : tensor_(tensor), type_(type), pool_(pool), sink_(sink) {}

  void put(const SafetensorsEntry& source, uint64_t rows, uint64_t columns) {
    const uint64_t row_bytes = tensor_.type.row_bytes(columns);
    const uint64_t at_once = std::max<uint64_t>(1, kPieceElements / columns);
    const auto* const bytes = reinterpret_cast<const std::byte*>(source.bytes.data()) +
                              static_cast<uint64_t>(tensor_.skipped_rows) * row_bytes;
    for (uint64_t row = 0; row < rows; row += at_once) {
      const uint64_t count = std::min(at_once, rows - row);
      const std::byte* from = bytes + row * row_bytes;
      if (tensor_.change == TensorChange::transposed) {
        put_columns(bytes, row, count, rows, columns);
        from = moved_.data();
      }
      if (moves_rows(tensor_.change)) {
        moved_.resize(count * row_bytes);
        for (uint64_t i = 0; i < count; ++i)
          std::memcpy(moved_.data() + i * row_bytes,
                      bytes + source_row(tensor_, row + i) * row_bytes, row_bytes);
        from = moved_.data();
      }
      put_rows(from, count, columns);
    }
  }

 private:
  // Some columns of a source with `columns` rows become rows.
  void put_columns(const std::byte* bytes, uint64_t first, uint64_t count, uint64_t all,
                   uint64_t columns) {
    const uint64_t size = tensor_.type.row_bytes(1);
    moved_.resize(count * columns * size);
    for (uint64_t in = 0; in < columns; ++in)
      for (uint64_t out = 0; out < count; ++out)
        std::memcpy(moved_.data() + (out * columns + in) * size,
                    bytes + (in * all + first + out) * size, size);
  }

  void put_rows(const std::byte* from, uint64_t rows, uint64_t columns) {
    if (tensor_.type == type_ && tensor_.change != TensorChange::add_one) {
      sink_({from, tensor_.type.row_bytes(columns) * rows});
      return;
    }
    values_.resize(rows * columns);
    to_floats(tensor_.type, from, values_, pool_);
    if (tensor_.change == TensorChange::add_one)
      for (float& each : values_) each += 1;
    encoded_.resize(type_.row_bytes(values_.size()));
    from_floats(type_, values_, rows, encoded_, pool_);
    sink_(encoded_);
  }

  const PlannedTensor& tensor_;
  ElementType type_;
  ThreadPool& pool_;
  const std::function<void(std::span<const std::byte>)>& sink_;
  std::vector<std::byte> moved_, encoded_;
  std::vector<float> values_;
};

}  // namespace

std::vector<PlannedTensor> plan_tensors(const HfArchitecture& architecture, const HfFolder& folder,
                                        int64_t context) {
  return Planner(architecture, folder).plan(context);
}

void produce(const PlannedTensor& tensor, ElementType type, ThreadPool& pool,
             const std::function<void(std::span<const std::byte>)>& sink) {
  if (tensor.sources.empty()) return sink(std::as_bytes(std::span(tensor.computed)));
  const auto elements = static_cast<uint64_t>(tensor.shape.elements()) / tensor.sources.size();
  // The elements of a vector move by themselves.
  const uint64_t columns = tensor.shape.rank() == 1 && moves_rows(tensor.change)
                               ? 1
                               : static_cast<uint64_t>(tensor.shape[-1]);
  Stream stream(tensor, type, pool, sink);
  for (const SafetensorsEntry* source : tensor.sources)
    stream.put(*source, elements / columns, columns);
}

}  // namespace prism::llm
