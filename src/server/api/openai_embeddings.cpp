// /v1/embeddings.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "llm/generate/prompt_too_long.h"
#include "server/api/embeddings.h"
#include "server/api/openai.h"

namespace prism::server {
namespace {

constexpr size_t kMaxInputs = 2048;

std::string base64(std::span<const unsigned char> bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(bytes.size() - i, 3);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

Json vector_json(const std::vector<float>& vector, bool as_base64) {
  if (!as_base64) return vector;
  std::vector<unsigned char> bytes(vector.size() * sizeof(float));
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  return base64(bytes);
}

// Shortens a vector and scales it to length 1 again.
void shorten(std::vector<float>& vector, size_t length) {
  vector.resize(length);
  double square = 0;
  for (const float each : vector) square += static_cast<double>(each) * each;
  for (float& each : vector)
    each = square > 0 ? static_cast<float>(each / std::sqrt(square)) : 0.0f;
}

}  // namespace

EmbedRequest read_inputs(const JsonView& input, const ServedModel& model) {
  EmbedRequest request;
  const auto text_of = [&](const JsonView& field) {
    if (!field.is_array()) return field.string();
    std::vector<int32_t> tokens;
    for (const JsonView& each : field.items())
      tokens.push_back(static_cast<int32_t>(
          each.integer(0, static_cast<int64_t>(model.tokenizer().size()) - 1)));
    return model.tokenizer().decode(tokens);
  };
  if (!input.is_string() && !input.is_array()) input.fail("must be a string or an array");
  std::vector<JsonView> inputs = input.is_array() ? input.items() : std::vector<JsonView>{input};
  if (inputs.empty()) input.fail("is empty; it must have at least one text");
  if (inputs.front().is_number()) inputs = {input};
  if (inputs.size() > kMaxInputs)
    input.fail(fmt::format("has {} texts; at most {} are read", inputs.size(), kMaxInputs));
  for (const JsonView& each : inputs) {
    request.texts.push_back(text_of(each));
    request.fields.push_back(each.path());
    if (request.texts.back().empty()) each.fail("is empty; it must have a text");
  }
  return request;
}

void embed_texts(const ApiCall& call, std::shared_ptr<ServedModel> model, EmbedRequest request,
                 ErrorWriter write_error, EmbeddingReply reply) {
  std::vector<int64_t> tokens;  // of each text
  for (size_t i = 0; i < request.texts.size(); ++i) {
    tokens.push_back(std::ssize(model->tokenizer().encode(request.texts[i])));
    const std::string& field = request.fields[i];
    if (tokens.back() == 0) throw ApiError(400, field + " has no tokens for this model", field);
  }
  answer_with(
      call, std::move(model),
      [&engine = call.context.engine, request = std::move(request), tokens = std::move(tokens),
       reply = std::move(reply), vectors = std::vector<std::vector<float>>(),
       used = int64_t{0}](EngineModel& on) mutable -> std::optional<HttpReply> {
        const auto left = std::span(request.texts).subspan(vectors.size());
        std::vector<std::vector<float>> some;
        try {
          some = on.embed(left, {.truncate = request.truncate});
        } catch (const llm::EmbeddedTextTooLong& error) {
          throw ApiError::from(std::current_exception(),
                               request.fields[vectors.size() + error.index()]);
        }
        // Longer texts were cut.
        const int64_t most = on.facts().context;
        int64_t computed = 0;
        for (size_t i = 0; i < some.size(); ++i)
          computed += std::min(tokens[vectors.size() + i], most);
        engine.count_step(computed);
        used += computed;
        for (std::vector<float>& each : some) {
          const int64_t dimensions = request.dimensions;
          if (dimensions > static_cast<int64_t>(each.size()))
            throw ApiError(400,
                           fmt::format("dimensions is {}; the model's vectors have {}", dimensions,
                                       each.size()),
                           "dimensions");
          if (dimensions > 0) shorten(each, static_cast<size_t>(dimensions));
          vectors.push_back(std::move(each));
        }
        if (some.size() < left.size()) return std::nullopt;
        return json_reply(reply(std::move(vectors), used));
      },
      write_error);
}

void openai_embeddings(const ApiCall& call) {
  const JsonView& body = call.body;
  const ModelList& models = call.context.models;
  const auto named = models.find_or_embedder(body["model"].string_or(""));
  const auto model = models.embedder_for(named);
  const std::string encoding = body["encoding_format"].string_or("float");
  if (encoding != "float" && encoding != "base64")
    body["encoding_format"].fail(fmt::format("is \"{}\"; it must be float or base64", encoding));
  EmbedRequest request = read_inputs(body["input"], *named);
  request.dimensions = body["dimensions"].integer_or(0, 1);
  embed_texts(
      call, model, std::move(request), openai_error,
      [name = model->name(), encoding](std::vector<std::vector<float>> vectors, int64_t tokens) {
        Json data = Json::array();
        for (const std::vector<float>& each : vectors)
          data.push_back({{"object", "embedding"},
                          {"index", data.items().size()},
                          {"embedding", vector_json(each, encoding == "base64")}});
        Json json = {{"object", "list"}, {"model", name}};
        json["data"] = std::move(data);
        json["usage"] = {{"prompt_tokens", tokens}, {"total_tokens", tokens}};
        return json;
      });
}

}  // namespace prism::server
