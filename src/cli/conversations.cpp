// Reads and writes conversations as JSON files.
#include "cli/conversations.h"

#include <algorithm>
#include <cctype>
#include <ctime>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/system/output_file.h"
#include "cli/conversation_text.h"
#include "cli/data_folder.h"
#include "cli/input.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

namespace fs = std::filesystem;

// The letters and digits of a text, joined by dashes: "why-is-the-sky-blue".
std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) && byte < 0x80)
      result += static_cast<char>(std::tolower(byte));
    else if (!result.empty() && result.back() != '-')
      result += '-';
    if (result.size() >= 40) break;
  }
  while (result.ends_with("-")) result.pop_back();
  return result;
}

std::string new_name(const Conversation& conversation) {
  const std::time_t now = std::time(nullptr);
  std::tm local = *std::localtime(&now);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%d", &local);
  std::string name = date;
  for (const llm::ChatMessage& message : conversation.messages)
    if (message.role == "user") {
      if (const std::string words = slug(message.content); !words.empty()) name += "-" + words;
      break;
    }
  std::string free = name;
  for (int i = 2; fs::exists(conversations_folder() / (free + ".json")); ++i)
    free = fmt::format("{}-{}", name, i);
  return free;
}

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw Error(ErrorCode::kIo, fmt::format("the conversation cannot be written to \"{}\": {}",
                                          path.string(), reason));
}

}  // namespace

fs::path conversations_folder() { return data_folder() / "conversations"; }

void write_conversation(const Conversation& conversation, const fs::path& path) {
  try {
    write_whole_file(path.string(), conversation_text(conversation), FileKind::owner_only);
  } catch (const Error& error) {
    fail(path, error.what());
  }
}

void keep_conversation(Conversation& conversation) {
  const fs::path folder = conversations_folder();
  std::error_code failed;
  if (fs::create_directories(folder, failed)) fs::permissions(folder, fs::perms::owner_all, failed);
  if (failed) fail(folder, failed.message());
  if (conversation.name.empty()) conversation.name = new_name(conversation);
  write_conversation(conversation, folder / (conversation.name + ".json"));
}

Conversation read_conversation(const fs::path& path) {
  return parse_conversation(read_file_or_input(path.string()), path.string());
}

std::vector<KeptConversation> kept_conversations() {
  std::vector<KeptConversation> all;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(conversations_folder(), failed)) {
    if (entry.path().extension() != ".json") continue;
    try {
      const Conversation read = read_conversation(entry.path());
      std::error_code ignored;
      all.push_back({entry.path().stem().string(), read.model, read.messages.size(),
                     entry.last_write_time(ignored)});
    } catch (const Error&) {
      continue;  // not a conversation
    }
  }
  std::ranges::sort(all, [](const KeptConversation& a, const KeptConversation& b) {
    return a.changed != b.changed ? a.changed > b.changed : a.name < b.name;
  });
  return all;
}

Conversation find_conversation(const std::string& name) {
  const std::vector<KeptConversation> all = kept_conversations();
  if (all.empty())
    throw Error(ErrorCode::kNotFound,
                fmt::format("resuming \"{}\": no conversations are kept yet in {}", name,
                            conversations_folder().string()));
  std::vector<std::string> names, matching;
  for (const KeptConversation& each : all) {
    names.push_back(each.name);
    if (each.name.starts_with(name)) matching.push_back(each.name);
  }
  std::string found;
  if (name == "last")
    found = names.front();
  else if (std::ranges::find(names, name) != names.end())
    found = name;
  else if (matching.size() == 1)
    found = matching.front();
  else
    throw Error(ErrorCode::kNotFound,
                fmt::format("\"{}\" is {} conversation{}", name,
                            matching.empty() ? "not a" : "the beginning of more than one",
                            valid_names(name, names)));
  Conversation result = read_conversation(conversations_folder() / (found + ".json"));
  result.name = found;
  return result;
}

}  // namespace prism::cli
