// Parses names of models: paths, hf:user/repo:file, addresses, the default model.
#include "llm/store/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/cache_folder.h"
#include "llm/store/packaged_model.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// Returns whether a path component of a name is safe: it cannot leave the folder.
bool is_plain(std::string_view step) {
  return !step.empty() && step.front() != '.' && step.size() <= 200 &&
         std::ranges::all_of(step, [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '+';
         });
}

ModelName parse_hugging_face(const std::string& text) {
  ModelName name{ModelSource::url, text, "", {}, {}};
  const std::string rest = text.substr(3);
  const size_t colon = rest.find(':'), slash = rest.find('/');
  const bool is_whole = colon != std::string::npos && slash != std::string::npos && slash < colon;
  const std::string user = rest.substr(0, slash);
  const std::string repository = is_whole ? rest.substr(slash + 1, colon - slash - 1) : "";
  const std::string file = is_whole ? rest.substr(colon + 1) : "";
  bool is_right = is_whole && is_plain(user) && is_plain(repository) && file.ends_with(".gguf");
  name.file = models_folder() / "hf" / user / repository;
  for (size_t at = 0; is_right && at <= file.size();) {
    const size_t end = std::min(file.find('/', at), file.size());
    const std::string step = file.substr(at, end - at);
    is_right = is_plain(step);
    name.file /= step;
    at = end + 1;
  }
  if (!is_right)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a model of Hugging Face is named hf:user/repo:file.gguf", text));
  std::string endpoint = environment("HF_ENDPOINT", "https://huggingface.co");
  while (endpoint.ends_with("/")) endpoint.pop_back();
  name.url = fmt::format("{}/{}/{}/resolve/main/{}", endpoint, user, repository, file);
  const std::string token = environment("HF_TOKEN", "");
  if (!std::ranges::all_of(token, [](unsigned char c) { return std::isgraph(c); }))
    throw Error(ErrorCode::kInvalidArgument,
                "HF_TOKEN contains a space or a control character; set it to the token alone");
  if (!token.empty()) name.headers.push_back("Authorization: Bearer " + token);
  return name;
}

ModelName parse_address(const std::string& text) {
  const std::string address = text.substr(0, text.find_first_of("?#"));
  std::string file = address.substr(address.rfind('/') + 1);
  std::ranges::replace_if(
      file, [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '_' && c != '-'; },
      '_');
  if (!is_plain(file))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the address must end in the name of a file", text));
  return {ModelSource::url,
          text,
          text,
          models_folder() / "url" / hash_text(text).substr(0, 12) / file,
          {}};
}

}  // namespace

fs::path models_folder() { return required_cache_folder() / "models"; }

ModelName parse_model_name(const std::string& text) {
  if (text.starts_with("hf:")) return parse_hugging_face(text);
  if (text.starts_with("http://") || text.starts_with("https://")) return parse_address(text);
  // A file of that name in the current folder takes precedence.
  const PackagedModel* packaged = packaged_model(text.empty() ? kDefaultModel : text);
  std::error_code ignored;
  if (packaged && (text.empty() || !fs::exists(text, ignored)))
    return {ModelSource::package, packaged->name, "", models_folder() / packaged->file, {}};
  return {ModelSource::path, text, "", text, {}};
}

std::vector<std::string> part_names(const std::string& name) {
  // NAME-00001-of-00003.gguf: the ending always has 20 letters.
  constexpr size_t kEnding = sizeof("-00001-of-00003.gguf") - 1;
  if (name.size() <= kEnding) return {name};
  const std::string ending = name.substr(name.size() - kEnding);
  const std::string number = ending.substr(1, 5), count = ending.substr(10, 5);
  const auto is_digits = [](const std::string& digits) {
    return std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c); });
  };
  if (ending[0] != '-' || ending.substr(6, 4) != "-of-" || !ending.ends_with(".gguf") ||
      !is_digits(number) || !is_digits(count))
    return {name};
  const int parts = std::atoi(count.c_str());
  if (parts < 1 || parts > 1000) return {name};
  std::vector<std::string> names;
  for (int i = 1; i <= parts; ++i)
    names.push_back(
        fmt::format("{}-{:05}-of-{}.gguf", name.substr(0, name.size() - kEnding), i, count));
  return names;
}

}  // namespace prism::llm
