// Conversations on disk: one JSON file each in the folder `conversations` of the data folder. Only
// the user can read them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "prism/llm/chat_template.h"

namespace prism::cli {

struct Conversation {
  std::string name;   // of its file, without the extension; empty: not saved yet
  std::string model;  // as it was named on the command line; empty: the default model
  std::vector<llm::ChatMessage> messages;
};

std::filesystem::path conversations_folder();

// Writes the conversation to a temporary file and renames it. Names a new conversation by the date
// and the first question: "2026-11-17-why-is-the-sky-blue". Throws kIo with the system's reason.
void keep_conversation(Conversation& conversation);

// Reads a conversation: by name, by the beginning of its name if only one has it, or the newest for
// "last". Throws kNotFound with the names, kCorruptFile for a file that is not a conversation.
Conversation find_conversation(const std::string& name);

struct KeptConversation {
  std::string name, model;
  size_t messages = 0;
  std::filesystem::file_time_type changed;
};
std::vector<KeptConversation> kept_conversations();  // newest first; unreadable files are left out

// Reads and writes {"model": ..., "messages": [{"role": ..., "content": ...}, ...]}. The array
// alone is read too. Throws kNotFound, kCorruptFile, kIo.
Conversation read_conversation(const std::filesystem::path& path);
void write_conversation(const Conversation& conversation, const std::filesystem::path& path);

}  // namespace prism::cli
