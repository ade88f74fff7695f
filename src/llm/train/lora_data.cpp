// Reads samples for fine-tuning, and packs them into batches.
#include "llm/train/lora_data.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "base/json.h"
#include "llm/train/training_text.h"
#include "prism/error.h"
#include "prism/llm/chat_template.h"
#include "prism/llm/tokenizer.h"
#include "prism/warning.h"

namespace prism::llm {
namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";

// The names of a prompt and its answer in files.
constexpr std::pair<const char*, const char*> kPairs[] = {{"prompt", "completion"},
                                                          {"prompt", "response"},
                                                          {"question", "answer"},
                                                          {"instruction", "output"}};

// Writes chats as tokens.
class ChatWriter {
 public:
  explicit ChatWriter(const GgufFile& model) : tokenizer_(Tokenizer::from(model)) {
    if (model.has(kTemplateKey)) template_.emplace(model.string(kTemplateKey));
  }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  // The tokens of the whole chat. An answer begins where they differ from those of the prompt that
  // `prism chat` would continue, and is learned up to the token that ends it.
  LoraSample chat(const std::vector<ChatMessage>& messages) const {
    LoraSample sample;
    sample.tokens = tokenizer_.encode(render(messages, messages.size(), false));
    sample.is_learned.resize(sample.tokens.size());
    const auto shared = [&](const std::string& text) {
      const std::vector<int32_t> tokens = tokenizer_.encode(text);
      return static_cast<size_t>(std::ranges::mismatch(tokens, sample.tokens).in1 - tokens.begin());
    };
    for (size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].role != "assistant") continue;
      const size_t end = shared(render(messages, i + 1, false));
      for (size_t at = shared(render(messages, i, true)); at < end; ++at) {
        sample.is_learned[at] = true;
        if (tokenizer_.ends_text(sample.tokens[at])) break;
      }
    }
    return sample;
  }

  LoraSample text(std::string_view text) const {
    LoraSample sample;
    sample.tokens = tokenizer_.encode(text);
    if (const int32_t end = tokenizer_.eos(); end >= 0) sample.tokens.push_back(end);
    sample.is_learned.assign(sample.tokens.size(), true);
    return sample;
  }

 private:
  // opens: with the opening of the assistant's next message.
  std::string render(const std::vector<ChatMessage>& messages, size_t count, bool opens) const {
    const auto text_of = [&](int32_t id) {
      return id < 0 ? std::string() : std::string(tokenizer_.text(id));
    };
    const std::string end = text_of(tokenizer_.eos());
    if (!template_) {
      std::string text;
      for (const ChatMessage& each : std::span(messages).first(count))
        text += each.content + (each.role == "assistant" ? end : "\n");
      return text;
    }
    ChatOptions options;
    options.add_generation_prompt = opens;
    options.bos_token = text_of(tokenizer_.bos());
    options.eos_token = end;
    return template_->render(std::span(messages).first(count), options);
  }

  Tokenizer tokenizer_;
  std::optional<ChatTemplate> template_;
};

LoraSample sample_of(const JsonView& line, const ChatWriter& writer) {
  if (line["text"]) return writer.text(line["text"].string());
  std::vector<ChatMessage> messages;
  if (line["messages"]) {
    for (const JsonView& each : line["messages"].items())
      messages.push_back({.role = each["role"].string(), .content = each["content"].string()});
    return writer.chat(messages);
  }
  for (const auto& [prompt, answer] : kPairs) {
    if (!line[prompt] || !line[answer]) continue;
    if (line["system"]) messages.push_back({.role = "system", .content = line["system"].string()});
    std::string question = line[prompt].string();
    if (const std::string more = line["input"].string_or(""); !more.empty())
      question += "\n" + more;
    messages.push_back({.role = "user", .content = std::move(question)});
    messages.push_back({.role = "assistant", .content = line[answer].string()});
    return writer.chat(messages);
  }
  line.fail("has no \"messages\", no \"prompt\" with \"completion\", and no \"text\"");
}

std::vector<LoraSample> read_lines(const std::string& path, std::string_view text,
                                   const ChatWriter& writer) {
  std::vector<LoraSample> samples;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      const Json json = Json::parse(line);
      samples.push_back(sample_of(JsonView(json), writer));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: line {}: {}", path, number, error.what()));
    }
  }
  return samples;
}

// Whether the text begins like an array of objects; a plain text may begin with a bracket.
bool is_array_of_objects(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (text[first] != '[') return false;
  const size_t second = text.find_first_not_of(" \t\r\n", first + 1);
  return second != text.npos && text[second] == '{';
}

std::vector<LoraSample> read_array(const std::string& path, std::string_view text,
                                   const ChatWriter& writer) {
  std::vector<LoraSample> samples;
  try {
    const Json json = Json::parse(text, {.bytes = text.size(), .values = SIZE_MAX});
    for (const JsonView& each : JsonView(json).items()) samples.push_back(sample_of(each, writer));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  return samples;
}

// Rows of a batch are padded to one of these, as each makes a plan of its own.
int64_t padded(int64_t count) {
  constexpr int64_t kLeast = 32;
  if (count <= kLeast) return kLeast;
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  return count <= power / 4 * 3 ? power / 4 * 3 : power;
}

class LoraSource : public nn::BatchSource {
 public:
  explicit LoraSource(std::vector<LoraSample> samples) : samples_(std::move(samples)) {}
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }

  std::vector<Tensor> batch(std::span<const int64_t> chosen) const override {
    size_t longest = 0;
    for (const int64_t i : chosen) longest = std::max(longest, at(i).tokens.size() - 1);
    const int64_t count = static_cast<int64_t>(chosen.size()),
                  length = padded(static_cast<int64_t>(longest));
    std::vector<int32_t> tokens(static_cast<size_t>(count * length)), rows, targets;
    for (int64_t s = 0; s < count; ++s) {
      const LoraSample& sample = at(chosen[static_cast<size_t>(s)]);
      for (size_t i = 0; i + 1 < sample.tokens.size(); ++i) {
        const auto row = static_cast<size_t>(s * length) + i;
        tokens[row] = sample.tokens[i];
        if (!sample.is_learned[i + 1]) continue;
        rows.push_back(static_cast<int32_t>(row));
        targets.push_back(sample.tokens[i + 1]);
      }
    }
    const int64_t wanted = padded(static_cast<int64_t>(rows.size()));
    rows.resize(static_cast<size_t>(wanted), 0);
    targets.resize(static_cast<size_t>(wanted), kIgnoredToken);
    const Device cpu = Device::cpu();
    return {from_vector(tokens, {count, length}, cpu), from_vector(rows, {wanted}, cpu),
            from_vector(targets, {wanted}, cpu)};
  }

 private:
  const LoraSample& at(int64_t i) const { return samples_[static_cast<size_t>(i)]; }
  std::vector<LoraSample> samples_;
};

}  // namespace

std::vector<LoraSample> read_lora_samples(const std::string& path, const GgufFile& model,
                                          int64_t context) {
  const std::string text = read_training_text(path);
  const ChatWriter writer(model);
  const auto most = static_cast<size_t>(context);
  std::vector<LoraSample> samples;
  if (text[text.find_first_not_of(" \t\r\n")] == '{') {
    samples = read_lines(path, text, writer);
  } else if (is_array_of_objects(text)) {
    samples = read_array(path, text, writer);
  } else {
    const std::vector<int32_t> tokens = writer.tokenizer().encode(text);
    for (size_t first = 0; first + 1 < tokens.size(); first += most) {
      const size_t end = std::min(tokens.size(), first + most + 1);  // the last is only predicted
      samples.push_back({{tokens.begin() + static_cast<ptrdiff_t>(first),
                          tokens.begin() + static_cast<ptrdiff_t>(end)},
                         std::vector<bool>(end - first, true)});
    }
  }
  size_t cut = 0;
  for (LoraSample& each : samples) {
    if (each.tokens.size() <= most + 1) continue;
    each.tokens.resize(most + 1), each.is_learned.resize(most + 1);
    ++cut;
  }
  // The first token has none before it.
  const size_t all = samples.size();
  std::erase_if(samples, [](const LoraSample& each) {
    return each.tokens.size() < 2 || std::find(each.is_learned.begin() + 1, each.is_learned.end(),
                                               true) == each.is_learned.end();
  });
  if (samples.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: none of {} samples has an answer within {} tokens; give chats "
                            "with messages of the assistant, or a longer --context",
                            path, all, context));
  if (cut > 0)
    warn(fmt::format("{}: {} of {} samples are cut at {} tokens", path, cut, all, context));
  if (samples.size() < all)
    warn(fmt::format("{}: {} of {} samples are left out, because they have nothing to learn", path,
                     all - samples.size(), all));
  return samples;
}

LoraSplit split_samples(std::vector<LoraSample> samples, double share, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random() % i]);
  auto kept = static_cast<size_t>(share * static_cast<double>(samples.size()) + 0.5);
  if (share > 0) kept = std::max<size_t>(kept, 1);
  if (kept >= samples.size())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("train: {} samples, of which validation takes {}; nothing is left to "
                            "learn. Give more data, or --validation 0",
                            samples.size(), kept));
  LoraSplit result;
  result.validation.assign(std::make_move_iterator(samples.end() - static_cast<ptrdiff_t>(kept)),
                           std::make_move_iterator(samples.end()));
  samples.resize(samples.size() - kept);
  result.training = std::move(samples);
  return result;
}

std::shared_ptr<nn::BatchSource> lora_source(std::vector<LoraSample> samples) {
  return std::make_shared<LoraSource>(std::move(samples));
}

}  // namespace prism::llm
