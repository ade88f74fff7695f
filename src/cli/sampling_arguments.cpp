// Adds the sampling options to a command and reads their values.
#include "cli/sampling_arguments.h"

#include <charconv>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "cli/input.h"
#include "llm/generate/known_models.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

// Replaces the escapes \n, \t and \\, which most shells do not interpret.
std::string unescaped(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char next = text[++i];
    if (next == 'n')
      result += '\n';
    else if (next == 't')
      result += '\t';
    else if (next == '\\')
      result += '\\';
    else
      (result += '\\') += next;
  }
  return result;
}

std::pair<int32_t, float> parse_bias(const std::string& text) {
  int32_t token = 0;
  const char* const all = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), all, token);
  const char* const number = end + (end != all && *end == '=' ? 1 : 0);
  char* stop = nullptr;
  const float bias = std::strtof(number, &stop);
  const bool has_number = number != end || (end != all && (*end == '+' || *end == '-'));
  if (error != std::errc() || !has_number || number == all || stop != all)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--logit-bias \"{}\": write TOKEN=NUMBER, such as 15043=-2.5", text));
  return {token, bias};
}

}  // namespace

void add_sampling_arguments(const Command& command, SamplingArguments& a) {
  llm::GenerationOptions& o = a.options;
  llm::SamplerOptions& s = o.sampler;
  const Command generation = command.group("Generation");
  generation.option("-n,--max-tokens,--predict", o.max_tokens,
                    "the largest number of tokens to write (default: until the model ends)");
  generation.option("--stop", a.stops, "end before this text; may be given several times");
  generation.flag("--ignore-end", o.ignore_end, "go on after the model's end of text");
  generation.flag("--special", o.show_special, "show control tokens as text");
  generation.flag("--context-shift", o.shift_context,
                  "drop half of a full context and go on (default: stop)");
  generation.option("--keep", o.keep, "the number of first tokens that --context-shift keeps");
  generation.option("--grammar", a.grammar, "a GBNF grammar that the text must follow");
  generation.option("--grammar-file", a.grammar_file, "the same, from a file");
  generation.option("-j,--json-schema", a.schema,
                    "a JSON schema that the text must follow ({}: any JSON)");
  generation.option("--json-schema-file", a.schema_file, "the same, from a file");

  const Command sampling = command.group("Sampling");
  const auto number = [&](const char* names, auto& value, const char* what) {
    return sampling.option(names, value, what).shows_default();
  };
  sampling.option("-s,--seed", s.seed, "the same seed gives the same text (default: random)")
      .sets(a.has_seed);
  sampling
      .option("--temperature,--temp", s.temperature,
              "0 always takes the likeliest token (default: what the makers of a known model "
              "recommend, else 0.8)")
      .sets(a.has_temperature);
  sampling
      .option("--top-p", s.top_p,
              "keep the likeliest tokens that add up to p; 1 is off (default: as for "
              "--temperature, else 0.95)")
      .sets(a.has_top_p);
  number("--top-k", s.top_k, "keep the k likeliest tokens; 0 is off");
  number("--min-p", s.min_p, "keep tokens with p times the best token's probability; 0 is off");
  number("--typical-p", s.typical_p, "keep tokens of typical surprise; 1 is off");
  number("--top-n-sigma", s.top_n_sigma,
         "keep tokens within n standard deviations of the best; 0 is off");
  number("--dynamic-range", s.dynamic_range, "vary the temperature by this much with the entropy");
  number("--dynamic-exponent", s.dynamic_exponent, "the exponent of the entropy");
  number("--xtc-probability", s.xtc_probability,
         "how often the top choices are excluded; 0 is off");
  number("--xtc-threshold", s.xtc_threshold, "the probability of a top choice");
  number("--repeat-penalty", s.penalties.repeat, "penalty on tokens that came before; 1 is off")
      .sets(a.has_penalty);
  number("--presence-penalty", s.penalties.presence,
         "penalty once for a token that came before; 0 is off")
      .sets(a.has_penalty);
  number("--frequency-penalty", s.penalties.frequency,
         "penalty for each time that a token came before; 0 is off")
      .sets(a.has_penalty);
  number("--repeat-last-n", s.penalties.window,
         "the number of tokens that these penalties look back; -1 is all");
  sampling
      .option("--dry-multiplier", s.dry.multiplier,
              "penalty on repeated sequences; 0 is off (default: 0, but on for models that "
              "repeat themselves)")
      .sets(a.has_penalty);
  number("--dry-base", s.dry.base, "how the penalty grows with the sequence");
  number("--dry-allowed-length", s.dry.allowed_length, "shorter sequences are free");
  number("--dry-last-n", s.dry.window, "the number of tokens that it looks back; -1 is all");
  sampling.option("--dry-breaker", s.dry_breakers,
                  "texts that end a sequence (default: line end, colon, quote, star)");
  number("--mirostat", s.mirostat, "1 or 2 controls the surprise of the text; 0 is off");
  number("--mirostat-tau", s.mirostat_tau, "the surprise to aim at, in bits");
  number("--mirostat-eta", s.mirostat_eta, "how fast mirostat adapts");
  sampling.option("--logit-bias", a.biases,
                  "TOKEN=NUMBER, added to the token's logit (=-inf: never)");
  sampling.option("--samplers", a.stages,
                  "the samplers and their order (default: "
                  "top_n_sigma,top_k,typical,top_p,min_p,xtc,temperature)");
}

void use_recommended_sampling(const SamplingArguments& a, const llm::GgufFile& file,
                              llm::GenerationOptions& options) {
  const llm::RecommendedSampling* recommended = llm::recommended_sampling(file);
  if (!recommended) return;
  llm::SamplerOptions& s = options.sampler;
  if (!a.has_temperature) s.temperature = recommended->temperature;
  if (!a.has_top_p) s.top_p = recommended->top_p;
  if (!a.has_penalty && s.temperature > 0 && !options.grammar)
    s.dry.multiplier = recommended->dry_multiplier;
}

std::string sampling_text(const llm::SamplerOptions& s) {
  if (s.temperature == 0 && s.dynamic_range == 0)
    return "sampling: always the likeliest token (temperature 0)";
  std::string text = fmt::format("sampling: temperature {}", s.temperature);
  const auto add = [&](bool is_on, const char* name, auto value) {
    if (is_on) text += fmt::format(", {} {}", name, value);
  };
  add(s.mirostat != 0, "mirostat", s.mirostat);
  add(s.mirostat == 0 && s.top_k != 0, "top-k", s.top_k);
  add(s.mirostat == 0 && s.top_p != 1, "top-p", s.top_p);
  add(s.mirostat == 0 && s.min_p != 0, "min-p", s.min_p);
  add(s.penalties.repeat != 1, "repeat penalty", s.penalties.repeat);
  add(s.penalties.presence != 0, "presence penalty", s.penalties.presence);
  add(s.penalties.frequency != 0, "frequency penalty", s.penalties.frequency);
  add(s.dry.multiplier != 0, "DRY multiplier", s.dry.multiplier);
  add(true, "seed", s.seed);
  return text;
}

uint64_t random_seed() { return std::random_device{}(); }

llm::GenerationOptions generation_options(const SamplingArguments& a) {
  llm::GenerationOptions options = a.options;
  if (!a.has_seed) options.sampler.seed = random_seed();
  if (!a.stages.empty()) options.sampler.stages = llm::parse_sampler_stages(a.stages);
  for (const std::string& each : a.biases) options.sampler.logit_bias.push_back(parse_bias(each));
  for (const std::string& each : a.stops) options.stop.push_back(unescaped(each));
  for (std::string& each : options.sampler.dry_breakers) each = unescaped(each);
  llm::check_sampler_options(options.sampler);
  const int given =
      !a.grammar.empty() + !a.grammar_file.empty() + !a.schema.empty() + !a.schema_file.empty();
  if (given > 1)
    throw Error(ErrorCode::kInvalidArgument,
                "a text cannot follow several grammars and schemas; give only one of --grammar, "
                "--grammar-file, --json-schema, --json-schema-file");
  if (!a.grammar.empty()) options.grammar = llm::Grammar::parse(a.grammar);
  if (!a.grammar_file.empty())
    options.grammar = llm::Grammar::parse(read_file_or_input(a.grammar_file));
  if (!a.schema.empty()) options.grammar = llm::Grammar::from_json_schema(a.schema);
  if (!a.schema_file.empty())
    options.grammar = llm::Grammar::from_json_schema(read_file_or_input(a.schema_file));
  return options;
}

}  // namespace prism::cli
