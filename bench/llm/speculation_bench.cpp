// Decode speed with and without speculation, on answers that repeat their input and on one that
// does not. Both run in turn in the same process, greedy; their tokens are compared.
//
// usage: speculation_bench [MODEL] [--speculate ngram|MODEL] [--device NAME] [--tokens N]
//        [--rounds N] [--texts N]
// --texts: the same task several times at once. The ratios, of time and of processor time, are
// medians over the rounds. On a busy machine use the second one, with PRISM_THREADS=1: threads that
// wait for each other take processor time too.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/llm/language_model.h"

namespace prism::llm {
namespace {

struct Options {
  std::string model, speculate = "ngram", device = "cpu";
  int64_t tokens = 120, texts = 1;
  int rounds = 5;
};

struct Task {
  const char* name;
  std::string question;
};

const std::string kCode =
    "class Account:\n"
    "    def __init__(self, owner, balance=0):\n"
    "        self.owner = owner\n"
    "        self.balance = balance\n"
    "        self.history = []\n\n"
    "    def deposit(self, amount):\n"
    "        if amount <= 0:\n"
    "            raise ValueError(\"amount must be positive\")\n"
    "        self.balance += amount\n"
    "        self.history.append((\"deposit\", amount))\n\n"
    "    def withdraw(self, amount):\n"
    "        if amount > self.balance:\n"
    "            raise ValueError(\"not enough money\")\n"
    "        self.balance -= amount\n"
    "        self.history.append((\"withdraw\", amount))";

const std::string kReport =
    "The harbour of Port Ellen was closed on Tuesday after a storm damaged two of its three "
    "piers. The ferry company moved its boats to the bay of Kilnaughton and said that repairs "
    "would take at least six weeks. Fishermen asked the council for a crane, because their nets "
    "could no longer be unloaded by hand. \"We have lost the best part of the season,\" said "
    "Morag Campbell, who owns the oldest boat in the harbour. The council will meet on Friday "
    "to decide who pays for the new timber.";

std::vector<Task> tasks() {
  // SmolLM2 repeats the program for about 120 tokens.
  return {{"code edit",
           "Change the name of the class to Wallet. Repeat the rest of the program word for word:"
           "\n\n" +
               kCode},
          {"rename",
           "Rename the class Account to Wallet and print the whole program again:\n\n" + kCode},
          {"summary", "Summarise this report and quote what people said:\n\n" + kReport},
          {"quotation", "Repeat this report word for word:\n\n" + kReport},
          {"no repetition", "Write a long story about a lighthouse keeper and a whale."}};
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto next = [&]() -> std::string { return i + 1 < count ? words[++i] : ""; };
    if (word == "--speculate")
      options.speculate = next();
    else if (word == "--device")
      options.device = next();
    else if (word == "--tokens")
      options.tokens = std::strtoll(next().c_str(), nullptr, 10);
    else if (word == "--rounds")
      options.rounds = std::atoi(next().c_str());
    else if (word == "--texts")
      options.texts = std::strtoll(next().c_str(), nullptr, 10);
    else
      options.model = word;
  }
  return options;
}

struct Result {
  double seconds = 0;            // of generation: from the first token of a text to the last
  double processor_seconds = 0;  // of the whole run
  int64_t tokens = 0, proposed = 0, accepted = 0;
  std::vector<std::vector<int32_t>> texts;
};

Result run(LanguageModel& model, const std::string& prompt, const Options& o, bool speculate) {
  GenerationOptions options;
  options.sampler.temperature = 0;
  options.max_tokens = o.tokens;
  options.speculate = speculate;
  std::vector<TextRequest> requests(static_cast<size_t>(o.texts), TextRequest{prompt, options, {}});
  Result result;
  const std::clock_t begun = std::clock();
  for (Generation& each : model.generate_all(std::move(requests))) {
    if (each.failure) std::rethrow_exception(each.failure);
    result.seconds = std::max(result.seconds, each.statistics.generation_seconds);
    result.tokens += each.statistics.generated_tokens - 1;
    result.proposed += each.statistics.proposed_tokens;
    result.accepted += each.statistics.accepted_tokens;
    result.texts.push_back(std::move(each.tokens));
  }
  result.processor_seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  return result;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void bench(const Options& o) {
  LoadOptions load;
  load.fit.device = o.device;
  load.fit.context = 2048;
  load.slots = o.texts;
  load.speculate = o.speculate;
  LanguageModel model = LanguageModel::load(o.model, load);
  std::cout << fmt::format("{:<14} {:>10} {:>10} {:>7} {:>9} {:>9} {:>9} {:>7}\n", "task",
                           "without", "with", "ratio", "processor", "proposed", "accepted",
                           "tokens");
  for (const Task& task : tasks()) {
    const std::vector<ChatMessage> messages = {{.role = "user", .content = task.question}};
    const std::string prompt =
        model.has_chat_template() ? model.chat_prompt(messages) : task.question;
    run(model, prompt, o, false);  // makes the plans, and leaves the prompt in the cache
    run(model, prompt, o, true);
    std::vector<double> without, with, ratios, processor;
    Result last;
    bool is_same = true;
    for (int round = 0; round < o.rounds; ++round) {
      const Result plain = run(model, prompt, o, false);
      last = run(model, prompt, o, true);
      is_same = is_same && plain.texts == last.texts;
      without.push_back(static_cast<double>(plain.tokens) / plain.seconds);
      with.push_back(static_cast<double>(last.tokens) / last.seconds);
      ratios.push_back(with.back() / without.back());
      processor.push_back(plain.processor_seconds / last.processor_seconds);
    }
    std::cout << fmt::format("{:<14} {:>10.1f} {:>10.1f} {:>7.2f} {:>9.2f} {:>9} {:>9} {:>7}{}\n",
                             task.name, median(without), median(with), median(ratios),
                             median(processor), last.proposed, last.accepted, last.tokens,
                             is_same ? "" : "  other tokens");
  }
}

}  // namespace
}  // namespace prism::llm

int main(int count, char** words) {
  try {
    prism::llm::bench(prism::llm::parse(count, words));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
