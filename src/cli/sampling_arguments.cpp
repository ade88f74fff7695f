#include "cli/sampling_arguments.h"

#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/model_arguments.h"

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

void add_sampling_arguments(CLI::App& command, SamplingArguments& a) {
  llm::GenerationOptions& o = a.options;
  llm::SamplerOptions& s = o.sampler;
  command
      .add_option("-n,--max-tokens,--predict", o.max_tokens,
                  "tokens to write at most (default: until the model ends its text)")
      ->group("Generation");
  command.add_option("--stop", a.stops, "end before this text; may be given several times")
      ->group("Generation");
  command.add_flag("--ignore-end", o.ignore_end, "go on after the model's end of text")
      ->group("Generation");
  command.add_flag("--special", o.show_special, "show control tokens as text")->group("Generation");
  command
      .add_flag("--context-shift", o.shift_context,
                "when the context is full, forget half of it and go on (default: stop there)")
      ->group("Generation");
  command.add_option("--keep", o.keep, "first tokens that --context-shift never forgets")
      ->group("Generation");
  command.add_option("--grammar", a.grammar, "hold to this GBNF grammar")->group("Generation");
  command.add_option("--grammar-file", a.grammar_file, "hold to the grammar of this file")
      ->group("Generation");
  command.add_option("--json-schema,-j", a.schema, "answer in JSON of this schema ({}: any JSON)")
      ->group("Generation");
  command.add_option("--json-schema-file", a.schema_file, "the same, of this file")
      ->group("Generation");

  const auto sampling = [&](const char* names, auto& value, const char* what) {
    command.add_option(names, value, what)->capture_default_str()->group("Sampling");
  };
  command
      .add_option_function<uint64_t>(
          "-s,--seed", [&a, &s](const uint64_t& seed) { s.seed = seed, a.has_seed = true; },
          "the same seed gives the same text (default: another one each time)")
      ->group("Sampling");
  sampling("--temperature,--temp", s.temperature, "0: always the likeliest token");
  sampling("--dynamic-range", s.dynamic_range, "temperature +- this, by entropy");
  sampling("--dynamic-exponent", s.dynamic_exponent, "how the entropy counts");
  sampling("--top-k", s.top_k, "only the k likeliest (0: off)");
  sampling("--top-p", s.top_p, "only the likeliest that add up to p (1: off)");
  sampling("--min-p", s.min_p, "only those with p of the likeliest one's probability (0: off)");
  sampling("--typical-p", s.typical_p, "only those of typical surprise (1: off)");
  sampling("--top-n-sigma", s.top_n_sigma,
           "only within n standard deviations of the best (0: off)");
  sampling("--xtc-probability", s.xtc_probability,
           "how often the top choices are excluded (0: off)");
  sampling("--xtc-threshold", s.xtc_threshold, "what counts as a top choice");
  sampling("--repeat-penalty", s.penalties.repeat, "on tokens that came before (1: off)");
  sampling("--presence-penalty", s.penalties.presence, "once for tokens that came before (0: off)");
  sampling("--frequency-penalty", s.penalties.frequency, "for each time a token came (0: off)");
  sampling("--repeat-last-n", s.penalties.window, "tokens the penalties look back on (-1: all)");
  sampling("--dry-multiplier", s.dry.multiplier, "penalty on repeating sequences (0: off)");
  sampling("--dry-base", s.dry.base, "how it grows with their length");
  sampling("--dry-allowed-length", s.dry.allowed_length, "sequences shorter than this are free");
  sampling("--dry-last-n", s.dry.window, "tokens it looks back on (-1: all)");
  command
      .add_option("--dry-breaker", s.dry_breakers,
                  "texts no sequence reaches across (default: line end, colon, quote, star)")
      ->group("Sampling");
  sampling("--mirostat", s.mirostat, "1 or 2: hold the surprise instead of cutting (0: off)");
  sampling("--mirostat-tau", s.mirostat_tau, "the surprise aimed at, in bits");
  sampling("--mirostat-eta", s.mirostat_eta, "how fast it is approached");
  command
      .add_option("--logit-bias", a.biases, "TOKEN=NUMBER: added to a token's logit (=-inf: never)")
      ->group("Sampling");
  command
      .add_option("--samplers", a.stages,
                  "which and in which order (default: "
                  "top_n_sigma,top_k,typical,top_p,min_p,xtc,temperature)")
      ->group("Sampling");
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
