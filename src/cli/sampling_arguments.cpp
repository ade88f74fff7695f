#include "cli/sampling_arguments.h"

#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "cli/model_arguments.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

// "\n" and the like as they are written in a shell without its own escapes.
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
  char* end = nullptr;
  const long token = std::strtol(text.c_str(), &end, 10);
  const float bias = *end == '=' || *end == '+' || *end == '-'
                         ? std::strtof(end + (*end == '=' ? 1 : 0), &end)
                         : 0;
  if (*end != '\0' || text.empty() || token < 0 || token > INT32_MAX)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--logit-bias \"{}\": write TOKEN=NUMBER, such as 15043=-2.5", text));
  return {static_cast<int32_t>(token), bias};
}

}  // namespace

void add_sampling_arguments(const Command& command, SamplingArguments& a) {
  llm::GenerationOptions& o = a.options;
  llm::SamplerOptions& s = o.sampler;
  const Command generation = command.group("Generation");
  generation.option("-n,--max-tokens,--predict", o.max_tokens,
                    "tokens to write at most (default: until the model ends its text)");
  generation.option("--stop", a.stops, "end before this text; may be given several times");
  generation.flag("--ignore-end", o.ignore_end, "go on after the model's end of text");
  generation.flag("--special", o.show_special, "show control tokens as text");
  generation.flag("--context-shift", o.shift_context,
                  "when the context is full, forget half of it and go on (default: stop there)");
  generation.option("--keep", o.keep, "first tokens that --context-shift never forgets");
  generation.option("--grammar", a.grammar, "hold to this GBNF grammar");
  generation.option("--grammar-file", a.grammar_file, "hold to the grammar of this file");
  generation.option("--json-schema,-j", a.schema, "answer in JSON of this schema ({}: any JSON)");
  generation.option("--json-schema-file", a.schema_file, "the same, of this file");

  const Command sampling = command.group("Sampling");
  const auto number = [&](const char* names, auto& value, const char* what) {
    sampling.option(names, value, what).shows_default();
  };
  sampling
      .option("-s,--seed", s.seed,
              "the same seed gives the same text (default: another one each time)")
      .sets(a.has_seed);
  number("--temperature,--temp", s.temperature, "0: always the likeliest token");
  number("--dynamic-range", s.dynamic_range, "temperature +- this, by entropy");
  number("--dynamic-exponent", s.dynamic_exponent, "how the entropy counts");
  number("--top-k", s.top_k, "only the k likeliest (0: off)");
  number("--top-p", s.top_p, "only the likeliest that add up to p (1: off)");
  number("--min-p", s.min_p, "only those with p of the likeliest one's probability (0: off)");
  number("--typical-p", s.typical_p, "only those of typical surprise (1: off)");
  number("--top-n-sigma", s.top_n_sigma, "only within n standard deviations of the best (0: off)");
  number("--xtc-probability", s.xtc_probability, "how often the top choices are excluded (0: off)");
  number("--xtc-threshold", s.xtc_threshold, "what counts as a top choice");
  number("--repeat-penalty", s.penalties.repeat, "on tokens that came before (1: off)");
  number("--presence-penalty", s.penalties.presence, "once for tokens that came before (0: off)");
  number("--frequency-penalty", s.penalties.frequency, "for each time a token came (0: off)");
  number("--repeat-last-n", s.penalties.window, "tokens the penalties look back on (-1: all)");
  number("--dry-multiplier", s.dry.multiplier, "penalty on repeating sequences (0: off)");
  number("--dry-base", s.dry.base, "how it grows with their length");
  number("--dry-allowed-length", s.dry.allowed_length, "sequences shorter than this are free");
  number("--dry-last-n", s.dry.window, "tokens it looks back on (-1: all)");
  sampling.option("--dry-breaker", s.dry_breakers,
                  "texts no sequence reaches across (default: line end, colon, quote, star)");
  number("--mirostat", s.mirostat, "1 or 2: hold the surprise instead of cutting (0: off)");
  number("--mirostat-tau", s.mirostat_tau, "the surprise aimed at, in bits");
  number("--mirostat-eta", s.mirostat_eta, "how fast it is approached");
  sampling.option("--logit-bias", a.biases,
                  "TOKEN=NUMBER: added to a token's logit (=-inf: never)");
  sampling.option("--samplers", a.stages,
                  "which and in which order (default: "
                  "top_n_sigma,top_k,typical,top_p,min_p,xtc,temperature)");
}

llm::GenerationOptions generation_options(const SamplingArguments& a) {
  llm::GenerationOptions options = a.options;
  if (!a.has_seed) {
    std::random_device random;
    options.sampler.seed = uint64_t{random()} << 32 | random();
  }
  if (!a.stages.empty()) options.sampler.stages = llm::parse_sampler_stages(a.stages);
  for (const std::string& each : a.biases) options.sampler.logit_bias.push_back(parse_bias(each));
  for (const std::string& each : a.stops) options.stop.push_back(unescaped(each));
  for (std::string& each : options.sampler.dry_breakers) each = unescaped(each);
  llm::check_sampler_options(options.sampler);
  const int given =
      !a.grammar.empty() + !a.grammar_file.empty() + !a.schema.empty() + !a.schema_file.empty();
  if (given > 1)
    throw Error(ErrorCode::kInvalidArgument,
                "one text cannot hold to several grammars and schemas; give one of --grammar, "
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
