// `prism model fetch|list|remove`: the models in the cache folder.
#include <fmt/format.h>

#include <iostream>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_fetch.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "prism/llm/model_store.h"

namespace prism::cli {

llm::FetchOptions fetch_options() {
  llm::FetchOptions options;
  options.progress = [](const std::string& what, uint64_t done, uint64_t all) {
    progress_bar(what, done, all);
  };
  options.note = [](const std::string& line) {
    end_progress();
    std::cerr << line << "\n";
  };
  return options;
}

std::string model_path(const std::string& name) {
  const std::string path = llm::resolve_model(name, fetch_options());
  end_progress();
  return path;
}

namespace {

int list(bool json) {
  const std::vector<llm::StoredModel> models = llm::stored_models();
  if (json) {
    Json all = Json::array();
    for (const llm::StoredModel& model : models)
      all.push_back({{"name", model.name},
                     {"path", model.path},
                     {"bytes", model.bytes},
                     {"sha256", model.sha256},
                     {"whole", model.is_whole}});
    std::cout << all.dump(2) << "\n";
    return kRight;
  }
  if (models.empty()) {
    std::cout << "no models yet; `prism model fetch smollm2` fetches the default one\n";
    return kRight;
  }
  std::vector<std::vector<std::string>> rows;
  for (const llm::StoredModel& model : models)
    rows.push_back(
        {model.name, size_text(model.bytes) + (model.is_whole ? "" : " (partial)"), model.path});
  std::cout << table({"name", "size", "path"}, rows);
  return kRight;
}

void add_fetch(const Command& model) {
  const Command command = model.subcommand("fetch", "fetch a model into the cache folder");
  auto name = std::make_shared<std::string>();
  auto sha256 = std::make_shared<std::string>();
  command
      .option("name", *name,
              "hf:user/repo:file.gguf, an address (https://...), or smollm2, the default "
              "model; a partial download goes on")
      .required();
  command.option("--sha256", *sha256, "the checksum that the file must have");
  command.footer(
      "Examples:\n  prism model fetch smollm2\n  prism model fetch hf:user/repo:file.gguf");
  command.run([name, sha256] {
    llm::FetchOptions options = fetch_options();
    options.sha256 = *sha256;
    const std::string path = llm::resolve_model(*name, options);
    end_progress();
    std::cout << path << "\n";
    return kRight;
  });
}

}  // namespace

void add_model_store_commands(const Command& model) {
  add_fetch(model);
  const Command list_command = model.subcommand("list", "list the models in the cache folder");
  auto json = std::make_shared<bool>(false);
  list_command.flag("--json", *json, "print JSON");
  list_command.run([json] { return list(*json); });

  const Command remove_command = model.subcommand("remove", "remove a model from the cache folder");
  auto name = std::make_shared<std::string>();
  remove_command.option("name", *name, "any name that `prism run` takes, or a path").required();
  remove_command.run([name] {
    std::cout << size_text(llm::remove_model(*name)) << " freed\n";
    return kRight;
  });
}

}  // namespace prism::cli
