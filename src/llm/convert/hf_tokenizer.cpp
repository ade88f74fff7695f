// Recognises the kind of a Hugging Face tokenizer and writes its tables.
#include "llm/convert/hf_tokenizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"
#include "llm/convert/hf_plamo_vocabulary.h"
#include "llm/convert/hf_pre_tokenizer.h"
#include "llm/convert/hf_rwkv_vocabulary.h"
#include "llm/convert/hf_tokenizer_parts.h"
#include "llm/convert/hf_unigram.h"
#include "llm/convert/hf_vocabulary.h"
#include "llm/tokenizer/text_encoder.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

constexpr const char* kKey = "tokenizer.ggml.";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kNotSupported, fmt::format("tokenizer.json: {}", what));
}

std::string shown(const JsonView& value) {
  std::string text = value.json().dump();
  if (text.size() > 200) text = text.substr(0, 200) + "...";
  return printable(text);
}

// The tokens that are put around a text.
struct Surroundings {
  std::optional<std::string> first, last;
};

std::string token_of(const JsonView& step) { return step["SpecialToken"]["id"].string(); }

Surroundings surroundings_of(const JsonView& processor) {
  if (!processor) return {};
  const std::string type = processor["type"].string();
  if (type == "ByteLevel") return {};
  if (type == "Sequence") {
    Surroundings all;
    for (const JsonView& each : processor["processors"].items()) {
      const Surroundings found = surroundings_of(each);
      if (found.first) all.first = found.first;
      if (found.last) all.last = found.last;
    }
    return all;
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto name = [&](const char* key) {
      const std::vector<JsonView> pair = processor[key].items();
      if (pair.empty()) refuse(fmt::format("post_processor has no {}", key));
      return pair[0].string();
    };
    return {name("cls"), name("sep")};
  }
  if (type != "TemplateProcessing")
    refuse(fmt::format("post_processor is {}, which cannot be converted", shown(processor)));
  const std::vector<JsonView> steps = processor["single"].items();
  const auto text =
      std::ranges::find_if(steps, [](const JsonView& each) { return bool(each["Sequence"]); });
  const auto before = text - steps.begin(), after = steps.end() - text - 1;
  if (text == steps.end() || before > 1 || after > 1)
    refuse(
        fmt::format("post_processor puts {} around a text; at most one token before and one "
                    "after can be converted",
                    shown(processor["single"])));
  Surroundings found;
  if (before == 1) found.first = token_of(steps.front());
  if (after == 1) found.last = token_of(steps.back());
  return found;
}

// "content" of a token that may be a text or an object.
std::optional<std::string> named_token(const JsonView& value) {
  if (!value) return std::nullopt;
  return value.is_object() ? value["content"].string() : value.string();
}

// The special tokens, by tokenizer_config.json, special_tokens_map.json or, as ids, config.json.
class SpecialNames {
 public:
  SpecialNames(const HfFolder& folder, const HfVocabulary& vocabulary)
      : vocabulary_(vocabulary), config_(folder.config()) {
    for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"})
      if (std::optional<Json> json = folder.json(file)) files_.push_back(std::move(*json));
  }

  std::optional<int64_t> find(const std::string& role) const {
    for (const Json& file : files_)
      if (const auto name = named_token(JsonView(file)[role + "_token"]))
        if (const auto id = vocabulary_.find(*name)) return id;
    JsonView id = JsonView(config_)[role + "_token_id"];
    if (id.is_array() && !id.items().empty()) id = id.items()[0];
    if (!id) return std::nullopt;
    const int64_t value = id.integer(-1, INT32_MAX);
    return value >= 0 && value < vocabulary_.size() ? std::optional(value) : std::nullopt;
  }

 private:
  const HfVocabulary& vocabulary_;
  const Json& config_;
  std::vector<Json> files_;
};

int64_t required_id(const HfVocabulary& vocabulary, const std::string& text) {
  const auto id = vocabulary.find(text);
  if (!id)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("tokenizer.json: post_processor adds \"{}\", which is no token",
                            printable(text)));
  return *id;
}

void set_id(GgufWriter& to, const char* role, std::optional<int64_t> id) {
  if (id) to.set(fmt::format("{}{}_token_id", kKey, role), static_cast<uint32_t>(*id));
}

// WordPiece marks what continues a word; GGUF marks what begins one.
void write_word_pieces(const JsonView& json, HfVocabulary& vocabulary, GgufWriter& to) {
  const JsonView model = json["model"], normalizer = json["normalizer"];
  const std::string prefix = model["continuing_subword_prefix"].string_or("##");
  if (prefix != "##")
    refuse(fmt::format("continuing_subword_prefix is \"{}\"; \"##\" is needed", printable(prefix)));
  if (normalizer && normalizer["type"].string() != "BertNormalizer")
    refuse(fmt::format("normalizer is {}; WordPiece needs BertNormalizer", shown(normalizer)));
  const JsonView splitter = json["pre_tokenizer"];
  if (splitter && splitter["type"].string() != "BertPreTokenizer")
    refuse(fmt::format("pre_tokenizer is {}; WordPiece needs BertPreTokenizer", shown(splitter)));
  for (const char* key : {"clean_text", "handle_chinese_chars"})
    if (!normalizer[key].boolean_or(true))
      refuse(fmt::format("normalizer.{} is false; true is needed", key));
  const bool lowercase = normalizer["lowercase"].boolean_or(true);
  to.set("tokenizer.ggml.model", "bert");
  to.set("tokenizer.ggml.normalizer.lowercase", lowercase);
  to.set("tokenizer.ggml.normalizer.strip_accents",
         normalizer["strip_accents"].boolean_or(lowercase));
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    std::string& text = vocabulary.texts()[static_cast<size_t>(id)];
    if (vocabulary.type(id) != TokenType::normal) continue;
    const bool is_name = text.starts_with("[") && text.ends_with("]") && text.size() > 2;
    if (text.starts_with("##") && text.size() > 2)
      text.erase(0, 2);
    else if (!is_name)
      text.insert(0, kSpaceMark);
  }
}

std::vector<std::string> merges_of(const JsonView& model) {
  std::vector<std::string> merges;
  for (const Json& each : model["merges"].json().items()) {
    const JsonView merge(each, "model.merges");
    if (merge.is_string()) {
      merges.push_back(merge.string());
      continue;
    }
    const std::vector<JsonView> pair = merge.items();
    if (pair.size() != 2) refuse(fmt::format("the merge {} is no pair", shown(merge)));
    merges.push_back(pair[0].string() + " " + pair[1].string());
  }
  for (const std::string& each : merges)
    if (const size_t space = each.find(' ');
        space == 0 || space + 1 >= each.size() || each.find(' ', space + 1) != each.npos)
      refuse(fmt::format("the merge \"{}\" is no pair of tokens without spaces", printable(each)));
  return merges;
}

void write_byte_level(const JsonView& json, GgufWriter& to) {
  if (const JsonView normalizer = json["normalizer"]; !is_composition(normalizer))
    refuse(fmt::format("normalizer is {}; byte-level BPE allows none or NFC", shown(normalizer)));
  const bool ignores = json["model"]["ignore_merges"].boolean_or(false);
  to.set("tokenizer.ggml.model", "gpt2");
  to.set("tokenizer.ggml.pre", byte_level_type(json["pre_tokenizer"], ignores));
  to.set("tokenizer.ggml.merges", merges_of(json["model"]));
}

// SentencePiece merges the pair whose token has the best score. The rank of the first merge that
// makes a token is that score.
void write_sentence_pieces(const JsonView& json, HfVocabulary& vocabulary, GgufWriter& to) {
  std::vector<float> scores(static_cast<size_t>(vocabulary.size()), -1e9f);
  float rank = 0;
  for (const std::string& merge : merges_of(json["model"])) {
    const size_t space = merge.find(' ');
    const auto id = vocabulary.find(merge.substr(0, space) + merge.substr(space + 1));
    if (!id)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("tokenizer.json: the merge \"{}\" makes no token", printable(merge)));
    float& score = scores[static_cast<size_t>(*id)];
    score = std::max(score, -rank);
    ++rank;
  }
  for (int byte = 0; byte < 256; ++byte)
    if (const auto id = vocabulary.find(fmt::format("<0x{:02X}>", byte)))
      vocabulary.set_type(*id, TokenType::byte);
  to.set("tokenizer.ggml.model", "llama");
  to.set("tokenizer.ggml.pre", "default");
  to.set("tokenizer.ggml.scores", scores);
  to.set("tokenizer.ggml.add_space_prefix",
         sentence_space_prefix(json["normalizer"], json["pre_tokenizer"]));
}

std::optional<Json> tokenizer_json(const HfFolder& folder) {
  if (std::optional<Json> json = folder.json("tokenizer.json")) return json;
  return tokenizer_json_of_parts(folder);
}

// ChatGLM 2 and 3 count these behind the pieces; their code adds two of them to a text, which a
// file cannot say but a chat template does.
void add_chatglm_tokens(int64_t first, HfVocabulary& vocabulary) {
  Json tokens = Json::array();
  for (const char* text : {"[MASK]", "[gMASK]", "[sMASK]", "sop", "eop", "<|system|>", "<|user|>",
                           "<|assistant|>", "<|observation|>"}) {
    if (!vocabulary.find(text))
      tokens.push_back(Json{{"id", first}, {"content", text}, {"special", true}});
    ++first;
  }
  vocabulary.add_added(JsonView(tokens));
}

// A folder with the own file of SentencePiece, RWKV or PLaMo: of the first, the settings beside it
// say what surrounds a text.
void write_sentence_piece_folder(const HfFolder& folder, int64_t rows, GgufWriter& to) {
  std::optional<std::string> bytes = folder.text("tokenizer.model");
  if (!bytes) bytes = folder.text("spiece.model");
  if (bytes) {
    const SentencePieceModel model = read_sentence_piece_model(*bytes);
    HfVocabulary vocabulary(rows);
    write_sentence_piece_model(model, vocabulary, to);
    const Json config = folder.json("tokenizer_config.json").value_or(Json::object());
    const JsonView settings(config);
    for (const auto& [id, token] : settings["added_tokens_decoder"].members())
      vocabulary.add_added(id, token);
    const bool is_chatglm = settings["tokenizer_class"].string_or("") == "ChatGLMTokenizer";
    if (is_chatglm) add_chatglm_tokens(std::ssize(model.pieces), vocabulary);
    const SpecialNames names(folder, vocabulary);
    const auto role = [&](const char* name, const char* named, int64_t id) {
      const auto found = names.find(named);
      if (found || (id >= 0 && id < vocabulary.size())) set_id(to, name, found.value_or(id));
    };
    role("unknown", "unk", model.unknown);
    role("bos", "bos", model.bos);
    role("eos", "eos", model.eos);
    role("padding", "pad", model.padding);
    to.set("tokenizer.ggml.add_bos_token",
           settings["add_bos_token"].boolean_or(!model.is_unigram && !is_chatglm));
    to.set("tokenizer.ggml.add_eos_token", settings["add_eos_token"].boolean_or(model.is_unigram));
    return vocabulary.write(to);
  }
  if (const std::optional<std::string> lines = folder.text(kRwkvVocabulary)) {
    HfVocabulary vocabulary(rows);
    write_rwkv_vocabulary(*lines, vocabulary, to);
    return vocabulary.write(to);
  }
  if (const std::optional<std::string> lines = folder.text(kPlamoVocabulary)) {
    HfVocabulary vocabulary(rows);
    const Json config = folder.json("tokenizer_config.json").value_or(Json::object());
    write_plamo_vocabulary(*lines, JsonView(config), vocabulary, to);
    for (const auto& [id, token] : JsonView(config)["added_tokens_decoder"].members())
      vocabulary.add_added(id, token);
    const SpecialNames names(folder, vocabulary);
    for (const auto& [role, name] :
         {std::pair("bos", "bos"), std::pair("eos", "eos"), std::pair("unknown", "unk"),
          std::pair("padding", "pad"), std::pair("seperator", "sep")})  // sic
      set_id(to, role, names.find(name));
    return vocabulary.write(to);
  }
  throw Error(
      ErrorCode::kNotFound,
      fmt::format(
          "{}: there is no tokenizer.json, vocab.txt or tokenizer.model; transformers writes "
          "tokenizer.json with AutoTokenizer.from_pretrained(...).save_pretrained",
          folder.path()));
}

// Tokens that generated texts never have: Gemma 4's of images and sounds.
void write_suppressed(const HfFolder& folder, int64_t rows, GgufWriter& to) {
  const std::optional<Json> config = folder.json("generation_config.json");
  if (!config) return;
  std::vector<int32_t> ids;
  for (const JsonView& each :
       JsonView(*config, "generation_config.json")["suppress_tokens"].items())
    if (const int64_t id = each.integer(); id >= 0 && id < rows)  // others, as -1, stand for none
      ids.push_back(static_cast<int32_t>(id));
  if (!ids.empty()) to.set("tokenizer.ggml.suppress_tokens", ids);
}

void write_chat_template(const HfFolder& folder, GgufWriter& to) {
  constexpr const char* kTemplate = "tokenizer.chat_template";
  if (const auto text = folder.text("chat_template.jinja")) return to.set(kTemplate, *text);
  const std::optional<Json> config = folder.json("tokenizer_config.json");
  if (!config) return;
  const JsonView found = JsonView(*config)["chat_template"];
  if (!found) return;
  if (found.is_string()) return to.set(kTemplate, found.string());
  for (const JsonView& each : found.items())
    if (each["name"].string() == "default") to.set(kTemplate, each["template"].string());
}

}  // namespace

void write_tokenizer(const HfFolder& folder, int64_t rows, GgufWriter& to) {
  write_suppressed(folder, rows, to);
  const std::optional<Json> document = tokenizer_json(folder);
  if (!document) {
    write_sentence_piece_folder(folder, rows, to);
    return write_chat_template(folder, to);
  }
  const JsonView json(*document);
  const JsonView model = json["model"];
  const std::string type = model["type"].string();
  HfVocabulary vocabulary(rows);
  if (type == "Unigram")
    write_unigram(json, vocabulary, to);
  else
    vocabulary.add_all(model["vocab"]);
  vocabulary.add_added(json["added_tokens"]);
  const SpecialNames names(folder, vocabulary);
  const Surroundings around = surroundings_of(json["post_processor"]);
  const bool is_byte_level = has_byte_level(json["pre_tokenizer"]);
  auto unknown = names.find("unk");
  if (const auto text = named_token(model["unk_token"])) unknown = vocabulary.find(*text);
  if (const JsonView id = model["unk_id"]) unknown = id.integer(0, vocabulary.size() - 1);
  if (type == "WordPiece") {
    write_word_pieces(json, vocabulary, to);
    if (!around.first || !around.last)
      refuse("post_processor puts no token before or after a text; WordPiece needs both");
    for (const char* role : {"cls", "mask"}) set_id(to, role, names.find(role));
    set_id(to, "cls", required_id(vocabulary, *around.first));
    set_id(to, "seperator", required_id(vocabulary, *around.last));  // sic
  } else if (type == "BPE" || type == "Unigram") {
    if (type == "Unigram") {
      // Pairs have two of the last tokens between them: <s> a </s></s> b </s>.
      to.set("tokenizer.ggml.add_sep_token", around.first && around.last);
      if (around.last) set_id(to, "seperator", required_id(vocabulary, *around.last));  // sic
    } else if (is_byte_level)
      write_byte_level(json, to);
    else if (model["byte_fallback"].boolean_or(false))
      write_sentence_pieces(json, vocabulary, to);
    else
      refuse(
          fmt::format("BPE with the pre_tokenizer {} and without byte_fallback cannot be "
                      "converted",
                      shown(json["pre_tokenizer"])));
    const JsonView end = json["end_of_text"];
    const auto role = [&](const char* name, const std::optional<std::string>& own) {
      if (own) return set_id(to, name, required_id(vocabulary, *own));
      const auto named = names.find(name);
      set_id(to, name, named || !end ? named : vocabulary.find(end.string()));
    };
    role("bos", around.first);
    role("eos", around.last);
    to.set("tokenizer.ggml.add_bos_token", around.first.has_value());
    to.set("tokenizer.ggml.add_eos_token", around.last.has_value());
  } else {
    refuse(fmt::format("model.type is \"{}\"; supported are WordPiece, BPE and Unigram",
                       printable(type)));
  }
  if (unknown && !is_byte_level) vocabulary.set_type(*unknown, TokenType::unknown);
  set_id(to, "unknown", unknown);
  set_id(to, "padding", names.find("pad"));
  vocabulary.write(to);
  write_chat_template(folder, to);
}

}  // namespace prism::llm
