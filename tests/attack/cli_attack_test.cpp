// Attacks the program with random words, environments and files. It must end in time with status
// 0, 1 or 2 and show nothing that controls a terminal.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <random>
#include <set>
#include <sstream>

#include "llm/gguf/gguf_writer.h"
#include "prism/io.h"
#include "prism/llm/gguf.h"
#include "support/attack_rounds.h"
#include "support/models/expected_text.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class CommandLineAttack : public testing::Test {
 protected:
  CommandLineAttack() {
    fs::create_directory(folder_.path() / "a folder");
    write_file(folder_ / "empty", "");
    write_file(folder_ / "cut.gguf", std::string("GGUF\3\0\0\0\xff\xff", 10));
    write_file(folder_ / "noise", std::string("\x1b[2J\0\xff\xc2\x9b\n{[\"", 13));
    write_file(folder_ / "unreadable", "secret");
    fs::permissions(folder_.path() / "unreadable", fs::perms::none);
    fs::create_symlink("loop", folder_.path() / "loop");
    fs::create_symlink("/dev/zero", folder_.path() / "zero");
    EXPECT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
    const std::vector<float> numbers(64);
    llm::GgufWriter writer;
    writer.set("general.architecture", "\x1b[31mllama");
    writer.set("general.name", "\x1b]0;title\a\r\xc2\x9b");
    writer.add_tensor("\x1b[2J\x7f", {64}, DType::f32, std::as_bytes(std::span(numbers)));
    writer.write(folder_ / "hostile.gguf");
    save(folder_ / "vectors.npy", from_vector<float>({1, 2, 3, 4}, {2, 2}));
    EXPECT_EQ(run_process({program().string(), "vectors", "build", folder_ / "vectors.npy",
                           folder_ / "vectors.index"})
                  .status,
              0);
    std::string text;
    for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + "\n";
    write_file(folder_ / "text.txt", text);
    write_file(folder_.path() / "a folder" / "notes.md", "A cake \x1b[2J without eggs.\n");
    write_file(folder_.path() / "a folder" / "config.json", "{\"architectures\": [\"\x1b[1m\"]}");
  }

  size_t below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }
  const std::string& one_of(const Words& all) { return all[below(all.size())]; }
  bool chance(int percent) { return std::uniform_int_distribution<int>(0, 99)(random_) < percent; }

  std::string noise() {
    std::string text;
    for (int i = std::uniform_int_distribution<int>(1, 20)(random_); i > 0; --i)
      text += static_cast<char>(std::uniform_int_distribution<int>(1, 255)(random_));
    return text;
  }
  std::string value() {
    static const Words files = {
        "model.gguf", "hostile.gguf", "a folder",      "empty",   "cut.gguf",  "noise",
        "unreadable", "loop",         "zero",          "pipe",    "/dev/null", "/dev/full",
        "absent",     "/dev/zero",    "a/../empty",    "-",       "",          "/",
        "new file",   "vectors.npy",  "vectors.index", "text.txt"};
    static const Words numbers = {"0",
                                  "-1",
                                  "1",
                                  "1e999",
                                  "nan",
                                  "-nan",
                                  "inf",
                                  "-0",
                                  "1e-45",
                                  "0x7f",
                                  "010",
                                  "99999999999999999999999",
                                  "2147483648",
                                  "-9223372036854775809",
                                  "18446744073709551616",
                                  "1,2,,3",
                                  " 1",
                                  "1 ",
                                  "+1",
                                  "١",
                                  "1e5"};
    static const Words texts = {"\x1b[2J\x1b]0;owned\a",
                                "\xc2\x9b"
                                "31m",
                                "\xe2\x80\xae",
                                "\xff\xfe",
                                "a\r\b\x7f",
                                "{\"format\": \"\x1b[1m\"}",
                                "%s%n%x",
                                "root ::= \"a",
                                "hf:../../x:y",
                                "$(touch owned)",
                                "@pipe",
                                "5=",
                                "5=nan",
                                "\"",
                                "'",
                                "\\",
                                "--",
                                "=",
                                "hf:u/r:f.gguf",
                                "../../../../etc/passwd",
                                "cpu:99",
                                "cpu",
                                "Q4_K_M",
                                "f16",
                                "bash"};
    const int kind = std::uniform_int_distribution<int>(0, 9)(random_);
    if (kind < 4) return one_of(files);
    if (kind < 6) return one_of(numbers);
    if (kind < 9) return one_of(texts);
    return chance(50) ? noise() : std::string(100000, 'x');
  }

  struct Command {
    Words words, options;
  };

  // Every command with its options, as the program's own completion script lists them.
  static std::vector<Command> read_commands() {
    std::istringstream script(run_process({program().string(), "completion", "bash"}).output);
    const auto split = [](const std::string& text) {
      std::istringstream stream(text);
      return Words(std::istream_iterator<std::string>(stream), {});
    };
    std::vector<Command> all;
    for (std::string line; std::getline(script, line);) {
      const size_t begin = line.find('\'') + 1, end = line.rfind('\'');
      if (line.starts_with("    'prism ") && line.ends_with("')")) {
        Words words = split(line.substr(begin, end - begin));
        words.erase(words.begin());
        all.push_back({std::move(words), {}});
      } else if (line.starts_with("      options='") && !all.empty()) {
        all.back().options = split(line.substr(begin, end - begin));
      }
    }
    // These measure for minutes.
    std::erase_if(all, [](const Command& each) {
      return each.words[0] == "bench" || each.words[0] == "check" || each.words[0] == "calibrate";
    });
    return all;
  }

  Words random_words() {
    const auto& command = commands_[below(commands_.size())];
    Words words = command.words;
    const std::string name = words.front();
    if (name == "report") words.push_back("--no-check");
    const auto add = [&](std::string word) {
      // Indexing the machine's files would take long.
      if (name == "index" && (word == "/" || word == "/dev/zero")) word = ".";
      words.push_back(std::move(word));
    };
    if (chance(60)) add(chance(60) ? usual_file(words.back()) : value());
    for (int i = std::uniform_int_distribution<int>(0, 4)(random_); i > 0; --i) {
      const Words& options =
          chance(85) ? command.options : commands_[below(commands_.size())].options;
      if (options.empty()) continue;
      if (chance(70)) add(one_of(options));
      if (chance(70)) add(value());
      if (chance(5)) add(one_of(options) + "=" + value());
    }
    // The defaults would write until the model ends, or train for minutes.
    if ((name == "run" || name == "chat") && chance(90))
      words.insert(words.end(), {"--max-tokens", "2"});
    if (name == "train") words.insert(words.end(), {"--steps", "1", "--shape", "nano"});
    if (name == "serve") words.insert(words.end(), {"--port", "0"});
    return words;
  }

  // What a command would be given by a sensible user.
  static std::string usual_file(const std::string& command) {
    if (command == "index" || command == "search") return "a folder";
    if (command == "convert") return "a folder";
    if (command == "build") return "vectors.npy";
    static const std::set<std::string> of_indexes = {"add",    "remove",  "info",
                                                     "verify", "compact", "export"};
    return of_indexes.contains(command) ? "vectors.index" : "model.gguf";
  }

  Words random_environment() {
    Words result = {"PRISM_BACKENDS=cpu", "PRISM_CACHE_DIR=" + (folder_ / "cache"),
                    "PRISM_DATA_DIR=" + (folder_ / "data"),
                    "HF_ENDPOINT=http://127.0.0.1:9",  // nothing listens there
                    "PATH=/nonexistent"};
    static const Words names = {"PRISM_BACKENDS", "PRISM_DEVICE",  "PRISM_FALLBACK",
                                "PRISM_THREADS",  "PRISM_CHECKED", "PRISM_CACHE_DIR",
                                "PRISM_DATA_DIR", "PRISM_DUMP",    "NO_COLOR",
                                "PRISM_PLUGINS",  "HOME",          "LANG",
                                "XDG_CACHE_HOME", "TMPDIR"};
    if (chance(40)) {
      std::string text = value();
      if (text.size() > 1000) text = "x";  // the environment has little room
      result.push_back(one_of(names) + "=" + text);
    }
    return result;
  }

  void attack(const Words& words, const Words& environment) {
    // Servers and watchers run until they are interrupted.
    const bool is_endless = words[0] == "serve" || std::ranges::count(words, "--watch") > 0;
    Words all = {"timeout",
                 "-k",
                 is_endless ? "20" : "1",
                 "-s",
                 is_endless ? "INT" : "TERM",
                 is_endless ? "1" : "60",
                 "env",
                 "-C",
                 folder_.path().string()};
    all.insert(all.end(), environment.begin(), environment.end());
    all.push_back(program().string());
    all.insert(all.end(), words.begin(), words.end());
    if (!model_.empty())  // earlier words may have overwritten it
      fs::copy_file(model_, folder_.path() / "model.gguf", fs::copy_options::overwrite_existing);
    const ProcessResult result = run_process(all);
    constexpr int kTimedOut = 124;
    EXPECT_TRUE((result.status >= 0 && result.status <= 2) ||
                (is_endless && result.status == kTimedOut))
        << "status " << result.status << " of" << shown(all) << "\n"
        << result.output.substr(0, 2000);
    // The text of a model goes to a pipe unchanged, so only `run` and `chat` may write its bytes.
    const bool generates = words[0] == "run" || words[0] == "chat";
    for (const char c : result.output) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f)) continue;
      if (generates && byte != 0x1b) continue;
      ADD_FAILURE() << "byte " << int{byte} << " in the output of" << shown(all);
      break;
    }
    EXPECT_FALSE(fs::exists(folder_.path() / "owned"));
  }
  static std::string shown(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += " '" + word.substr(0, 100) + "'";
    return text;
  }

  const TemporaryFolder folder_;
  const std::string model_ = shared_model("stories260K");
  const std::vector<Command> commands_ = read_commands();
  std::mt19937 random_{2026 + static_cast<uint32_t>(attack_start())};
};

TEST_F(CommandLineAttack, EveryKindOfFileIsReadOrReported) {
  for (const char* file : {"a folder", "empty", "noise", "unreadable", "loop", "zero", "pipe"})
    for (const Words& words : std::vector<Words>{{"tokenize", "model.gguf", "-f", file},
                                                 {"model", "info", file},
                                                 {"run", "model.gguf", "-n", "1", "-f", file},
                                                 {"run", "-m", file, "-p", "x"},
                                                 {"chat", "model.gguf", "--load", file}})
      attack(words, {"PRISM_BACKENDS=cpu", "PRISM_DATA_DIR=data"});
}

TEST_F(CommandLineAttack, RandomWordsAndEnvironments) {
  ASSERT_GT(commands_.size(), 30u) << "the commands were not found in the completion script";
  for (int64_t round = attack_rounds(120); round > 0 && !HasFailure(); --round)
    attack(random_words(), random_environment());
}

}  // namespace
}  // namespace prism::test
