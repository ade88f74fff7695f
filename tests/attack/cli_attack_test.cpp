// Attacks the program with random words, environments and files. It must end in time with status
// 0, 1 or 2 and show nothing that controls a terminal.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <random>

#include "llm/gguf/gguf_writer.h"
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
  }

  const std::string& one_of(const Words& all) {
    return all[std::uniform_int_distribution<size_t>(0, all.size() - 1)(random_)];
  }
  bool chance(int percent) { return std::uniform_int_distribution<int>(0, 99)(random_) < percent; }

  std::string noise() {
    std::string text;
    for (int i = std::uniform_int_distribution<int>(1, 20)(random_); i > 0; --i)
      text += static_cast<char>(std::uniform_int_distribution<int>(1, 255)(random_));
    return text;
  }
  std::string value() {
    static const Words files = {
        "model.gguf", "hostile.gguf", "a folder",   "empty", "cut.gguf",  "noise",
        "unreadable", "loop",         "zero",       "pipe",  "/dev/null", "/dev/full",
        "absent",     "/dev/zero",    "a/../empty", "-",     "",          "/",
        "new file"};
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

  Words random_words() {
    static const std::vector<Words> commands = {{"run"},
                                                {"chat"},
                                                {"model", "info"},
                                                {"model", "verify"},
                                                {"model", "list"},
                                                {"model", "fetch"},
                                                {"model", "remove"},
                                                {"model", "quantize"},
                                                {"fit"},
                                                {"tokenize"},
                                                {"embed"},
                                                {"score"},
                                                {"perplexity"},
                                                {"devices"},
                                                {"kernel", "list"},
                                                {"kernel", "show"},
                                                {"kernel", "run"},
                                                {"completion"},
                                                {"help"},
                                                {"version"},
                                                {"report", "--no-check"}};
    static const Words options = {"-p",
                                  "-f",
                                  "-n",
                                  "--json",
                                  "--seed",
                                  "--temp",
                                  "--top-k",
                                  "--top-p",
                                  "--min-p",
                                  "--logit-bias",
                                  "--samplers",
                                  "--grammar",
                                  "--grammar-file",
                                  "--json-schema",
                                  "--json-schema-file",
                                  "-c",
                                  "--batch",
                                  "-d",
                                  "--kv-type",
                                  "--memory-margin",
                                  "-ngl",
                                  "--load",
                                  "--resume",
                                  "--list",
                                  "--no-save",
                                  "--raw",
                                  "--stop",
                                  "--mirostat",
                                  "--mirostat-tau",
                                  "--repeat-penalty",
                                  "--dry-base",
                                  "--tensors",
                                  "--metadata",
                                  "--lang",
                                  "-o",
                                  "--top",
                                  "--help",
                                  "-q",
                                  "-v",
                                  "--system",
                                  "--special",
                                  "--keep",
                                  "--sha256",
                                  "--overwrite",
                                  "--requantize"};
    Words words = commands[std::uniform_int_distribution<size_t>(0, commands.size() - 1)(random_)];
    const std::string command = words.front();
    if (chance(60)) words.push_back(chance(60) ? "model.gguf" : value());
    for (int i = std::uniform_int_distribution<int>(0, 4)(random_); i > 0; --i) {
      if (chance(70)) words.push_back(one_of(options));
      if (chance(70)) words.push_back(value());
      if (chance(5)) words.push_back(one_of(options) + "=" + value());
    }
    // The default would be to write until the model ends.
    if ((command == "run" || command == "chat") && chance(90))
      words.insert(words.end(), {"--max-tokens", "2"});
    return words;
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
    Words all = {"timeout", "-k", "1", "60", "env", "-C", folder_.path().string()};
    all.insert(all.end(), environment.begin(), environment.end());
    all.push_back(program().string());
    all.insert(all.end(), words.begin(), words.end());
    if (!model_.empty())  // earlier words may have overwritten it
      fs::copy_file(model_, folder_.path() / "model.gguf", fs::copy_options::overwrite_existing);
    const ProcessResult result = run_process(all);
    EXPECT_TRUE(result.status >= 0 && result.status <= 2)
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
  std::mt19937 random_{2026};
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
  for (int64_t round = attack_rounds(120); round > 0 && !HasFailure(); --round)
    attack(random_words(), random_environment());
}

}  // namespace
}  // namespace prism::test
