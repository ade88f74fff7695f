// `prism serve`: gives models to programs by HTTP.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/model_arguments.h"
#include "cli/model_fetch.h"
#include "cli/model_text.h"
#include "cli/sampling_arguments.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"

#if PRISM_HAS_SERVER
#include "base/system/open_files.h"
#include "prism/file_search.h"
#include "search/files/default_embedder.h"
#include "server/server.h"
#endif

namespace prism::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  ModelArguments model;
  std::vector<std::string> models, api_keys, cors, allow_hosts;
  std::string host = "127.0.0.1", api_key_file, alias, tls_certificate, tls_key, search;
  TemplateArguments chat_template;
  SamplingArguments sampling;
  std::string max_body = "32M";
  uint32_t port = 8080;
  int64_t parallel = 0, max_queue = 256;
  float timeout = 0, grace = 30, idle_unload = 0;
  bool no_auth = false, no_page = false;
};

#if PRISM_HAS_SERVER

using NamedModels = std::vector<server::ServerOptions::NamedModel>;

// Of a split model only the first part counts.
bool is_model_file(const fs::path& path) {
  const std::string stem = path.stem().string();
  const size_t of = stem.rfind("-of-");
  const bool is_later_part = of != stem.npos && of >= 6 && !stem.substr(0, of).ends_with("-00001");
  return path.extension() == ".gguf" && !is_later_part;
}

void add_models(NamedModels& models, const std::string& word) {
  std::error_code problem;
  if (fs::is_directory(word, problem) && !fs::exists(fs::path(word) / "config.json", problem)) {
    std::vector<fs::path> files;
    for (fs::directory_iterator each(word, problem), end; !problem && each != end;
         each.increment(problem)) {
      std::error_code ignored;
      if (each->is_regular_file(ignored) && is_model_file(each->path()))
        files.push_back(each->path());
    }
    if (problem)
      throw Error(ErrorCode::kIo,
                  fmt::format("serve: \"{}\" cannot be read: {}", word, problem.message()));
    if (files.empty())
      throw Error(ErrorCode::kNotFound, fmt::format("serve: \"{}\" has no .gguf files", word));
    std::ranges::sort(files);
    for (const fs::path& each : files) models.push_back({each.stem().string(), each.string()});
    return;
  }
  const std::string path = model_path(word);
  std::string name = fs::path(path).stem().string();
  if (word.empty()) name = llm::kDefaultModel;
  if (word == llm::kDefaultModel || word == llm::kDefaultEmbedder) name = word;
  models.push_back({std::move(name), path});
}

NamedModels named_models(const Options& o) {
  NamedModels models;
  std::vector<std::string> words = o.models;
  if (!o.model.choice.model.empty()) words.insert(words.begin(), o.model.choice.model);
  if (words.empty()) words.emplace_back();
  for (const std::string& each : words) add_models(models, each);
  if (!o.alias.empty()) models.front().name = o.alias;
  for (size_t i = 0; i < models.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (models[i].name == models[j].name)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("serve: \"{}\" and \"{}\" have the same name; rename one of the "
                                "files",
                                models[j].path, models[i].path));
  return models;
}

std::string index_of(const std::string& folder) {
  if (const auto index = search::nearest_file_index(folder)) return *index;
  throw Error(
      ErrorCode::kNotFound,
      fmt::format("serve: {} is not indexed yet; run this once: prism index {}", folder, folder));
}

void describe_loaded(const server::ServedModel& model, const server::EngineModel::Facts& facts) {
  end_progress();
  const auto count = [](int64_t number) { return exact_count_text(static_cast<uint64_t>(number)); };
  std::cerr << fmt::format(
      "{} on {}: {} text{} at once of up to {} tokens, cache for {} tokens, {}\n",
      printable(model.name()), facts.device, facts.parallel, facts.parallel == 1 ? "" : "s",
      count(facts.context), count(facts.cache_tokens), size_text(facts.cache_bytes));
}

void describe_server(const Options& o, const std::string& names, const std::string& url,
                     bool needs_embedder) {
  std::cout << fmt::format("serving {} at {}\n", names, url);
  if (!o.no_page) std::cout << fmt::format("chat page: {}/\n", url);
  std::cout << std::flush;
  if (o.model.quiet) return;
  const auto note = [](const std::string& text) {
    std::cerr << paint(Colour::dim, text, Stream::error) << "\n";
  };
  if (needs_embedder)
    note(fmt::format("Embeddings are made by the chat model; for better ones: prism model fetch {}",
                     llm::kDefaultEmbedder));
  note(fmt::format("OpenAI's API is at {}/v1. Ctrl-C ends the server.", url));
}

int serve(const Options& o) {
  server::ServerOptions options;
  options.models = named_models(o);
  end_progress();
  // A request never fetches a model, so the embedder is used only if it is there already.
  options.embedder = {llm::kDefaultEmbedder, llm::find_model(llm::kDefaultEmbedder)};
  const bool needs_embedder =
      options.embedder.path.empty() && std::ranges::any_of(options.models, [](const auto& each) {
        return !server::ServedModel(each.name, each.path).makes_embeddings();
      });
  options.chat_template = template_text(o.chat_template);
  options.template_variables = template_variables(o.chat_template);
  options.is_verbose = o.model.verbose;
  options.generation = [sampling = o.sampling,
                        given = generation_options(o.sampling)](const llm::GgufFile& file) {
    llm::GenerationOptions generation = given;
    if (!sampling.has_seed) generation.sampler.seed = random_seed();
    use_recommended_sampling(sampling, file, generation);
    return generation;
  };
  options.load.fit = o.model.choice.options();
  options.load.batch_rows = o.model.batch;
  options.load.adapters = adapters(o.model);
  if (!options.load.adapters.empty() && options.models.size() > 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("serve: --lora with {} models; an adapter belongs to one model, so "
                            "serve that one alone",
                            options.models.size()));
  set_prompt_cache(o.model, options.load);
  options.load.speculate = speculate_path(o.model);
  if (!o.model.quiet)
    options.load.progress = [](const llm::LoadProgress& at) {
      progress_bar("loading", at.bytes_done, at.bytes_total);
      return true;
    };
  options.access = {.address = o.host,
                    .api_keys = o.api_keys,
                    .no_auth = o.no_auth,
                    .cors = o.cors,
                    .allow_hosts = o.allow_hosts};
  if (!o.api_key_file.empty())
    for (std::string& each : server::read_api_keys(o.api_key_file))
      options.access.api_keys.push_back(std::move(each));
  options.http.port = static_cast<uint16_t>(o.port);
  options.http.tls_certificate = o.tls_certificate;
  options.http.tls_key = o.tls_key;
  options.http.max_body_bytes = parse_size(o.max_body, "--max-body");
  if (options.http.max_body_bytes == 0)
    throw Error(ErrorCode::kInvalidArgument, "--max-body 0: no request would be read; give 32M");
  options.http.stops_on_signals = true;
  options.http.grace_seconds = o.grace;
  options.parallel = o.parallel;
  options.max_queue = o.max_queue;
  options.timeout_seconds = o.timeout;
  options.idle_unload_seconds = o.idle_unload;
  options.has_page = !o.no_page;
  if (!o.search.empty()) {
    options.file_index = index_of(o.search);
    options.load_embedder = search::default_embedder_if_possible;
  }
  if (!o.model.quiet) options.on_load = describe_loaded;
  options.loads_first = options.models.size() == 1;
  allow_open_files(options.http.max_connections + 256);  // systems often begin with 1,024

  std::string names;
  for (const auto& each : options.models) names += (names.empty() ? "" : ", ") + each.name;
  {
    server::Server server(std::move(options));
    server.run([&] { describe_server(o, names, server.url(), needs_embedder); });
  }
  end_progress();  // of a load that the end of the server ended
  return kRight;
}

#else

int serve(const Options&) {
  throw Error(ErrorCode::kNotSupported,
              "serve: this prism was built without Boost's headers, so it has no server; install "
              "libboost1.81-dev and build it again");
}

#endif

}  // namespace

void add_serve_command(const Command& program) {
  const Command command = program.subcommand(
      "serve", "serve models by HTTP: a chat page, and the APIs of OpenAI, Anthropic and Ollama");
  auto options = std::make_shared<Options>();
  Options& o = *options;
  command.option("MODEL", o.models,
                 "GGUF files, a folder of them, hf:user/repo:file.gguf or the names of fetched "
                 "models (default: SmolLM2-135M)");
  const Command network = command.group("Network");
  network.option("--host", o.host, "the address to listen on").shows_default().not_empty();
  network.option("--port", o.port, "the port to listen on; 0: any")
      .shows_default()
      .between(0, 65535);
  network
      .option("--api-key", o.api_keys, "a key that requests must have; may be given several times")
      .one_word();
  network.option("--api-key-file", o.api_key_file, "a file with such keys, one on each line")
      .not_empty();
  network.flag("--no-auth", o.no_auth,
               "listen on other addresses than this machine's own without a key");
  network.option("--cors", o.cors, "an origin whose pages may use the server (*: all)").one_word();
  network.option("--allow-host", o.allow_hosts, "a further name of this server, as in addresses")
      .one_word();
  network.option("--tls-cert", o.tls_certificate, "a PEM file with the certificate, for https")
      .not_empty();
  network.option("--tls-key", o.tls_key, "a PEM file with its key").not_empty();
  network.flag("--no-page", o.no_page, "serve the APIs without the chat page at /");
  network.option("--max-body", o.max_body, "the largest request: 32M").shows_default();
  const Command work = command.group("Work");
  work.option("--parallel", o.parallel,
              "the number of texts generated at once (default: what memory allows, at most 64)")
      .between(1, 1024);
  work.option("--max-queue", o.max_queue, "the number of texts that may wait; beyond: status 429")
      .shows_default()
      .not_negative();
  work.option("--timeout", o.timeout, "the seconds that a request may take; 0: no limit")
      .shows_default()
      .not_negative();
  work.option("--grace", o.grace, "the seconds that running requests have when the server ends")
      .shows_default()
      .not_negative();
  work.option("--idle-unload", o.idle_unload,
              "unload a model after these seconds without use; 0: never")
      .shows_default()
      .not_negative();
  work.option("--search", o.search,
              "an indexed folder whose files /search finds (prism help index)")
      .not_empty();
  add_prompt_cache_arguments(work, o.model);
  work.option("--alias", o.alias, "the name of the first model for clients").not_empty();
  add_template_arguments(work, o.chat_template);
  add_model_arguments(command, o.model, false);
  add_speculate_argument(command, o.model);
  add_sampling_arguments(command, o.sampling);
  command.footer(
      "Only this machine reaches the server unless --host gives another address, which needs "
      "--api-key. --context is for each text.\nExamples:\n  prism serve\n  prism serve model.gguf "
      "--port 9000 --parallel 8\n"
      "  prism serve models/ --idle-unload 600\n  prism serve model.gguf --host 0.0.0.0 --api-key "
      "SECRET");
  command.run([options] { return serve(*options); });
}

}  // namespace prism::cli
