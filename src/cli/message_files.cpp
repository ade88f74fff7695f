#include "cli/chat_session.h"

#include <cctype>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/model_arguments.h"
#include "prism/error.h"

namespace prism::cli {

std::string with_files(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const bool starts_word = at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1]));
    if (text[at] != '@' || !starts_word) {
      result += text[at++];
      continue;
    }
    if (text.compare(at, 2, "@@") == 0) {
      result += '@';
      at += 2;
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    const std::string path = text.substr(at + 1, end - at - 1);
    std::error_code ignored;
    if (!path.empty() && std::filesystem::is_regular_file(path, ignored)) {
      result += fmt::format("{}:\n```\n{}\n```\n", path, read_file_or_input(path));
    } else if (path.find_first_of("/.") != path.npos) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("@{}: there is no such file; write @@ for an @ as it stands", path));
    } else {
      result += text.substr(at, end - at);
    }
    at = end;
  }
  return result;
}

void save_messages(const std::vector<llm::ChatMessage>& messages, const std::string& path) {
  Json list = Json::array();
  for (const llm::ChatMessage& each : messages)
    list.push_back({{"role", each.role}, {"content", each.content}});
  std::ofstream file(path);
  file << list.dump(2) << "\n";
  if (!file.flush())
    throw Error(
        ErrorCode::kIo,
        fmt::format("the conversation cannot be written to \"{}\"; does its folder exist?", path));
}

std::vector<llm::ChatMessage> load_messages(const std::string& path) {
  const std::string text = read_file_or_input(path);
  try {
    std::vector<llm::ChatMessage> messages;
    for (const nlohmann::ordered_json& each : nlohmann::ordered_json::parse(text)) {
      llm::ChatMessage message;
      message.role = each.at("role").get<std::string>();
      message.content = each.at("content").get<std::string>();
      messages.push_back(std::move(message));
    }
    return messages;
  } catch (const nlohmann::ordered_json::exception& error) {
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("\"{}\" is no conversation ({}); /save writes one", path, error.what()));
  }
}

}  // namespace prism::cli
