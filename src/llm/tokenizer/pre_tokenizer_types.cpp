// The known pre-tokenizer types and the expressions that their models publish in tokenizer.json.
#include "llm/tokenizer/pre_tokenizer_types.h"

namespace prism::llm {

#define PRISM_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define PRISM_SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define PRISM_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define PRISM_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
// A word that changes case at most once, from upper to lower, with an optional prefix and suffix.
#define PRISM_CASED_WORD(after)                                 \
  R"([^\r\n\p{L}\p{N}]?)" PRISM_UPPER "*" PRISM_LOWER "+" after \
  R"(|[^\r\n\p{L}\p{N}]?)" PRISM_UPPER "+" PRISM_LOWER "*" after

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kLlama3Pattern = PRISM_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" PRISM_SPACES;
const std::string_view kQwen2Pattern =
    PRISM_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" PRISM_SPACES;

namespace {

constexpr std::string_view kNumber = R"(\p{N})";
constexpr std::string_view kGpt4oPattern = PRISM_CASED_WORD(
    PRISM_CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" PRISM_SPACES;
constexpr std::string_view kTekkenPattern =
    PRISM_CASED_WORD("") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" PRISM_SPACES;
constexpr std::string_view kYoutuPattern =
    PRISM_CASED_WORD(PRISM_CONTRACTIONS "?") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" PRISM_SPACES;
constexpr std::string_view kDeepseek3Pattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*)" PRISM_SPACES;
constexpr std::string_view kKimiPattern =
    R"(\p{Han}+)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+)" PRISM_CONTRACTIONS R"(?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*)" PRISM_CONTRACTIONS R"(?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" PRISM_SPACES;
// The letters that deepseek-llm keeps together: its own list, which omits scripts without case.
constexpr std::string_view kDeepseekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-)"
    R"(ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ)"
    R"(-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ)"
    R"(-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";

// The scripts that afmoe keeps together, each in its own words.
constexpr std::string_view kAfmoeScripts =
    R"([一-鿿㐀-䶿豈-\x{faff}぀-ゟ゠-ヿ･-ﾟ⼀-\x{2fdf}เ-\x{e7f}\x{e80}-\x{eff}ក-\x{17ff}က-႟ꩠ-ꩿꧠ-)"
    R"(\x{a9ff}가-\x{d7af}ᄀ-ᇿ]+)";

constexpr PreTokenizerTraits kPlain, kIgnoreMerges{.ignore_merges = true},
    kLlama3Traits{.ignore_merges = true, .add_bos = true},
    kRawText{.add_bos = true, .raw_text = true},
    kWhiteSpace{.raw_text = true, .drops_spaces = true}, kSeparated{.add_separator = true};

}  // namespace

const std::vector<PreType>& pre_types() {
  static const std::vector<PreType> types = {
      {{"default"},
       {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"},
       kPlain},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de",
        "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4", "trillion", "granite-docling"},
       {kGpt2Pattern},
       kPlain},
      {{"jina-v1-en", "jina-v2-code", "roberta-bpe"}, {kGpt2Pattern}, kSeparated},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b",
        "mellum2", "granite"},
       {kNumber, kGpt2Pattern},
       kPlain},
      {{"llama-bpe", "llama3", "llama-v3", "smollm3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
        "lfm2", "jina-v5-nano"},
       {kLlama3Pattern},
       kLlama3Traits},
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {kLlama3Pattern}, kPlain},
      {{"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "solar-open", "megrez", "grok-2",
        "kormo", "f2llmv2"},
       {kQwen2Pattern},
       kPlain},
      {{"qwen35"},
       {PRISM_CONTRACTIONS
        R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" PRISM_SPACES},
       kPlain},
      {{"deepseek-llm"},
       {R"([\r\n])", kDeepseekLetters, R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)",
        R"([一-龥ࠀ-一가-\x{d7ff}]+)", R"(\p{N}+)"},
       kPlain},
      {{"deepseek-coder"},
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([一-龥ࠀ-一가-\x{d7ff}]+)", kNumber},
       kPlain},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepseek3Pattern},
       kPlain},
      {{"youtu"},
       {"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+"
        "|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
        kYoutuPattern},
       kIgnoreMerges},
      {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"}, kPlain},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {" ?[^(\\s|.,!?…。，、।۔،)]+"}, kPlain},
      {{"viking"}, {" ?[^(\\s|.,!?…。，、।۔،)]+", kNumber}, kPlain},
      {{"tekken"}, {kTekkenPattern}, kLlama3Traits},
      {{"gpt-4o", "llama4", "kanana2", "minimax-m2", "talkie"}, {kGpt4oPattern}, kPlain},
      {{"granite-embed-multi-97m"}, {kGpt4oPattern}, kIgnoreMerges},
      {{"tiny_aya", "cohere2moe"}, {R"(\d{1,3}(?=(?:\d{3})*\b))", kGpt4oPattern}, kPlain},
      {{"kimi-k2"}, {kKimiPattern}, kPlain},
      {{"superbpe"}, {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}, kPlain},
      {{"bailingmoe", "bailingmoe2", "llada-moe"},
       {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
        R"(|\s*[\r\n]|\s+(?!\S)|\s+)"},
       kPlain},
      {{"seed-coder"},
       {PRISM_CONTRACTIONS
        R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)" PRISM_SPACES},
       kPlain},
      {{"chameleon"},
       {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", R"(([\t\n]|    |  ))", kNumber,
        R"([\p{P}!-/:-@\[-`{-~])", kGpt2Pattern},
       {.add_bos = true}},
      {{"exaone-moe"},
       {PRISM_CONTRACTIONS
        R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
        R"(|\s*[\r\n]|\s+(?!\S)|\s+)"},
       kPlain},
      {{"jais-2"},
       {PRISM_CONTRACTIONS
        R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
        R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S))"
        R"(|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"},
       kPlain},
      {{"minicpm5"},
       {R"(\p{N}{1,3})", PRISM_CONTRACTIONS
        R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)" PRISM_SPACES},
       kIgnoreMerges},
      // Digits in groups of three from the end of a number: first whole numbers, so that one look
      // ahead is enough for each.
      {{"afmoe"},
       {R"(\p{N}+)", R"(^\p{N}{1,2}(?=(?:\p{N}{3})+\z)|\p{N}{3})", kAfmoeScripts,
        kDeepseek3Pattern},
       kPlain},
      {{"laguna"}, {R"([^\n]+|[\n]+)", kQwen2Pattern}, kPlain},
      {{"whitespace"}, {R"(\S+)"}, kWhiteSpace},
      {{"gemma4", "sarvam-moe", "granite-embed-multi-311m"}, {R"([^\n]+|[\n]+)"}, kRawText},
  };
  return types;
}

}  // namespace prism::llm
