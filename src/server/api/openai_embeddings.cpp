// /v1/embeddings.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

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

std::vector<std::string> read_inputs(const JsonView& input, const ServedModel& model) {
  std::vector<std::string> texts;
  const auto decoded = [&](const JsonView& ids) {
    std::vector<int32_t> tokens;
    for (const JsonView& each : ids.items())
      tokens.push_back(static_cast<int32_t>(
          each.integer(0, static_cast<int64_t>(model.tokenizer().size()) - 1)));
    return model.tokenizer().decode(tokens);
  };
  if (input.is_string()) {
    texts.push_back(input.string());
  } else {
    if (!input.is_array()) input.fail("must be a string or an array");
    const std::vector<JsonView> items = input.items();
    if (!items.empty() && items.front().is_number()) {
      texts.push_back(decoded(input));
    } else {
      for (const JsonView& each : items)
        texts.push_back(each.is_array() ? decoded(each) : each.string());
    }
  }
  if (texts.empty()) input.fail("is empty; it must have at least one text");
  if (texts.size() > kMaxInputs)
    input.fail(fmt::format("has {} texts; at most {} are read", texts.size(), kMaxInputs));
  for (const std::string& each : texts)
    if (each.empty()) input.fail("has an empty text");
  return texts;
}

void embed_texts(const ApiCall& call, std::shared_ptr<ServedModel> model, EmbedRequest request,
                 ErrorWriter write_error, EmbeddingReply reply) {
  std::vector<int64_t> tokens;  // of each text
  for (const std::string& each : request.texts)
    tokens.push_back(static_cast<int64_t>(model->tokenizer().encode(each).size()));
  answer_with(
      call, std::move(model),
      [request = std::move(request), tokens = std::move(tokens), reply = std::move(reply),
       vectors =
           std::vector<std::vector<float>>()](EngineModel& on) mutable -> std::optional<HttpReply> {
        const auto left = std::span(request.texts).subspan(vectors.size());
        std::vector<std::vector<float>> some = on.embed(left);
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
        // Longer texts were cut.
        const int64_t most = on.facts().context;
        int64_t used = 0;
        for (const int64_t each : tokens) used += std::min(each, most);
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
  const int64_t dimensions = body["dimensions"].integer_or(0, 1);
  embed_texts(
      call, model, {read_inputs(body["input"], *named), dimensions}, openai_error,
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
