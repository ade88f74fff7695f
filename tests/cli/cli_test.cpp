// Tests the program from outside: exit statuses, output streams, and the fields of the JSON.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Result {
  int status;
  std::string output, errors;
};

// Runs the program through a shell with quoted words; settings come before the command.
Result prism_program(const std::vector<std::string>& words, const std::string& settings = "") {
  const TemporaryFolder folder;
  const auto out = folder.path() / "out", err = folder.path() / "err";
  std::string command = settings + " '" + program().string() + "'";
  for (const std::string& word : words) command += " '" + word + "'";
  command += " > '" + out.string() + "' 2> '" + err.string() + "'";
  const ProcessResult result = run_process({"sh", "-c", command});
  return {result.status, read_file(out), read_file(err)};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Program, HelpAndVersionAreResults) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--help"},
                                                                 {"devices", "--help"},
                                                                 {"check", "--help"},
                                                                 {"kernel", "show", "--help"},
                                                                 {"help", "vectors"},
                                                                 {"help", "model", "info"},
                                                                 {"report", "--help"}}) {
    const Result help = prism_program(words);
    EXPECT_EQ(help.status, 0);
    EXPECT_TRUE(has(help.output, "Example")) << help.output;
    EXPECT_EQ(help.errors, "");
  }
  const Result version = prism_program({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.output.find("prism "), 0u);
}

TEST(Program, AWrongCallIsTwo) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"devises"},
                                                                 {"devices", "--nonsense"},
                                                                 {"kernel"},
                                                                 {"kernel", "show"},
                                                                 {"help", "devises"},
                                                                 {"check", "--seed", "x"}}) {
    const Result result = prism_program(words);
    EXPECT_EQ(result.status, 2) << words[0];
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(result.errors.find("error: "), 0u) << "one style of errors: " << result.errors;
  }
  EXPECT_TRUE(has(prism_program({"devises"}).errors,
                  "\"devises\" is not a command of prism; did you mean \"devices\"?"));
  EXPECT_TRUE(has(prism_program({"kernel", "shwo"}).errors,
                  "did you mean \"show\"? Valid names: list, show, run"));
  EXPECT_TRUE(
      has(prism_program({"kernel"}).errors, "prism kernel needs a command: list, show, run"));
  EXPECT_TRUE(has(prism_program({"run", "--temprature", "0"}).errors,
                  "prism run has no option --temprature; did you mean --temperature?"));
}

TEST(Program, HelpAndVersionAreCommands) {
  const Result bare = prism_program({});
  EXPECT_EQ(bare.status, 0);
  EXPECT_EQ(bare.errors, "");
  EXPECT_TRUE(has(bare.output, "prism run '") && has(bare.output, "prism help")) << bare.output;
  EXPECT_LT(std::ranges::count(bare.output, '\n'), 15) << bare.output;
  EXPECT_EQ(prism_program({"help"}).output, prism_program({"--help"}).output);
  EXPECT_EQ(prism_program({"help", "run"}).output, prism_program({"run", "--help"}).output);
  EXPECT_EQ(prism_program({"help", "kernel", "show"}).output,
            prism_program({"kernel", "show", "--help"}).output);
  EXPECT_EQ(prism_program({"version"}).output, prism_program({"--version"}).output);
  const Result unknown = prism_program({"help", "chta"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(has(unknown.errors, "did you mean \"chat\"?")) << unknown.errors;
}

// Lines of examples may be longer than the terminal is wide.
TEST(Program, HelpFitsATerminal) {
  for (const char* command : {"", "run", "chat", "model", "fit", "tokenize", "embed", "rerank",
                              "score", "perplexity", "setup"}) {
    const std::vector<std::string> words = {"help", command};
    std::istringstream lines(
        prism_program(*command ? words : std::vector<std::string>{"help"}).output);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line.size() <= 80 || line.starts_with("  prism")) << command << ": " << line;
  }
}

// -d means a device, -p a prompt and -f a file in every command.
TEST(Program, ShortOptionsMeanTheSameEverywhere) {
  const std::vector<std::vector<std::string>> commands = {
      {"run"},        {"chat"},         {"embed"},         {"score"},
      {"perplexity"}, {"rerank"},       {"tokenize"},      {"fit"},
      {"bench"},      {"bench", "ops"}, {"check"},         {"devices"},
      {"setup"},      {"calibrate"},    {"kernel", "run"}, {"kernel", "show"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), "help");
    const std::string help = prism_program(command).output;
    for (const auto& [letter, meaning] : std::vector<std::pair<std::string, std::string>>{
             {"-d", "--device"}, {"-p", "--prompt"}, {"-f", "--file"}}) {
      for (size_t at = help.find("  " + letter + ", "); at != std::string::npos;
           at = help.find("  " + letter + ", ", at + 1))
        EXPECT_EQ(help.substr(at + 6, meaning.size()), meaning) << command.back() << "\n" << help;
    }
  }
  for (const char* command :
       {"run", "chat", "embed", "rerank", "score", "perplexity", "fit", "bench"})
    EXPECT_TRUE(has(prism_program({"help", command}).output, "-d, --device")) << command;
}

TEST(Program, DevicesAsJson) {
  const Result result = prism_program({"devices", "--json"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json all = Json::parse(result.output);
  ASSERT_TRUE(all.at("backends").is_array());
  bool chosen_listed = false;
  for (const Json& backend : all["backends"]) {
    EXPECT_TRUE(backend.at("name").is_string());
    EXPECT_EQ(backend.at("available").get<bool>(), !backend.at("devices").empty());
    EXPECT_TRUE(backend["available"].get<bool>() ||
                !backend.at("reason").get<std::string>().empty())
        << backend["name"];
    for (const Json& device : backend["devices"]) {
      for (const char* field :
           {"id", "name", "card", "total_bytes", "free_bytes", "unified", "capabilities"}) {
        EXPECT_TRUE(device.contains(field)) << field;
      }
      EXPECT_TRUE(device["capabilities"].contains("subgroup_size"));
      chosen_listed |= device["id"] == all.at("chosen");
    }
  }
  EXPECT_TRUE(chosen_listed);
  size_t devices = 0, ways = 0;
  for (const Json& backend : all["backends"]) devices += backend["devices"].size();
  for (const Json& card : all.at("cards")) {
    EXPECT_FALSE(card.at("name").get<std::string>().empty());
    ways += card.at("ways").size();
    for (const Json& way : card["ways"]) EXPECT_TRUE(way.contains("measured")) << way;
  }
  EXPECT_EQ(ways, devices) << "every device is a way to one card";
  EXPECT_TRUE(all["cards"].back().at("processor").get<bool>());
  EXPECT_NE(all.at("why").get<std::string>(), "");
}

TEST(Program, DevicesAsText) {
  const Result result = prism_program({"devices", "--verbose"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.errors, "");
  for (const char* part :
       {"✓ CPU", "cpu:0", ", the processor: ", "HIP", "Chosen: ", "Passed over:", "GiB"})
    EXPECT_TRUE(has(result.output, part)) << part;
  EXPECT_FALSE(has(result.output, "\033[")) << "colour only on a terminal";
}

TEST(Program, AnAbsentDeviceInTheEnvironmentIsAnErrorEverywhere) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"devices"},
           {"check", "--device", "cpu", "--quick", "--kernel", "fill"},
           {"check", "--quick", "--kernel", "fill"},
           {"calibrate"},
           {"kernel", "run", "fill"}}) {
    const Result result = prism_program(words, "PRISM_DEVICE=metal:7");
    EXPECT_EQ(result.status, 2) << words[0];
    EXPECT_TRUE(has(result.errors, "PRISM_DEVICE=metal:7: metal cannot be used: "))
        << result.errors;
  }
  EXPECT_TRUE(
      has(prism_program({"devices"}, "PRISM_DEVICE=vulcan").errors, "did you mean \"vulkan\"?"));
  const Result backends = prism_program({"devices"}, "PRISM_BACKENDS=cpu,quantum");
  EXPECT_EQ(backends.status, 2);
  EXPECT_TRUE(has(backends.errors, "\"quantum\" is no backend; valid names: cuda, hip, metal, "))
      << backends.errors;
}

TEST(Program, TheEnvironmentLimitsAndNames) {
  const Json limited =
      Json::parse(prism_program({"devices", "--json"}, "PRISM_BACKENDS=cpu").output);
  EXPECT_EQ(limited["chosen"], "cpu:0");
  for (const Json& backend : limited["backends"])
    EXPECT_EQ(backend["available"].get<bool>(), backend["name"] == "cpu");
  const Json named = Json::parse(
      prism_program({"devices", "--json"}, "PRISM_BACKENDS=null PRISM_DEVICE=null:0").output);
  EXPECT_EQ(named["chosen"], "null:0");
  EXPECT_EQ(named["why"], "named by PRISM_DEVICE=null:0");
}

TEST(Program, KernelList) {
  const Result text = prism_program({"kernel", "list"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(has(text.output, "row_softmax"));
  const Json all = Json::parse(prism_program({"kernel", "list", "--json"}).output);
  ASSERT_GT(all.at("kernels").size(), 15u);
  for (const char* field : {"name", "summary", "buffers", "params"})
    EXPECT_TRUE(all["kernels"][0].contains(field));
}

TEST(Program, KernelShowInEveryLanguage) {
  const std::vector<std::pair<std::string, std::string>> marks = {
      {"cuda", "__global__"},   {"hip", "__attribute__((global"},
      {"opencl", "__kernel"},   {"metal", "kernel void"},
      {"sycl", "sycl"},         {"wgsl", "@compute"},
      {"ir", "kernel sum_rows"}};
  for (const auto& [language, mark] : marks) {
    const Result result = prism_program({"kernel", "show", "sum_rows", "--lang", language});
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_TRUE(has(result.output, mark)) << language << ": " << result.output.substr(0, 400);
  }
  const Result listing = prism_program({"kernel", "show", "sum_rows", "--lang", "spirv"});
  EXPECT_EQ(listing.status, 0);
  EXPECT_TRUE(has(listing.output, "OpEntryPoint") || has(listing.output, "07230203"))
      << listing.output.substr(0, 200);
  const TemporaryFolder folder;
  const auto file = folder.path() / "sum_rows.spv";
  EXPECT_EQ(
      prism_program({"kernel", "show", "sum_rows", "--lang", "spirv", "--output", file.string()})
          .status,
      0);
  EXPECT_EQ(read_file(file).substr(0, 4), "\x03\x02\x23\x07");
}

TEST(Program, KernelShowOfEveryKernelInEveryLanguage) {
  EXPECT_EQ(prism_program({"kernel", "show", "vector_add", "--lang", "metal"}).status, 0);
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "text").string();
  const Json all = Json::parse(prism_program({"kernel", "list", "--json"}).output);
  for (const Json& kernel : all.at("kernels")) {
    const auto name = kernel.at("name").get<std::string>();
    for (const std::string language :
         {"cuda", "hip", "opencl", "metal", "sycl", "wgsl", "spirv", "ir"}) {
      SCOPED_TRACE(name + " in " + language);
      fs::remove(file);
      const Result result =
          prism_program({"kernel", "show", name, "--lang", language, "--output", file});
      EXPECT_EQ(result.status, 0) << result.errors;
      EXPECT_GT(fs::file_size(file), 100u);
    }
  }
  const Result large = prism_program({"kernel", "show", "matmul_f16_ahead", "--lang", "wgsl"});
  EXPECT_TRUE(has(large.errors, "KiB of shared memory; a typical wgsl device has 32.0 KiB"))
      << large.errors;
}

TEST(Program, KernelRunChecked) {
  const Result result =
      prism_program({"kernel", "run", "sum_rows", "--checked", "--json"}, "PRISM_BACKENDS=cpu");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(Json::parse(result.output).at("device"), "cpu:0");
  const Result other = prism_program({"kernel", "run", "fill", "--checked", "--device", "null"},
                                     "PRISM_BACKENDS=null");
  EXPECT_EQ(other.status, 2);
  EXPECT_TRUE(has(other.errors, "null:0 cannot check kernels, only the CPU can")) << other.errors;
  const Result wrong =
      prism_program({"kernel", "run", "fill", "--device", "cpu"}, "PRISM_CHECKED=maybe");
  EXPECT_NE(wrong.status, 0);
  EXPECT_TRUE(has(wrong.errors, "PRISM_CHECKED is \"maybe\"; use 1")) << wrong.errors;
}

// Every command shows the figures of the CPU's native kernels.
TEST(Program, CalibrateAndDevicesShowOneSpeedOfTheCpu) {
  const TemporaryFolder folder;
  const std::string where = "PRISM_BACKENDS=cpu PRISM_CACHE_DIR=" + folder.path().string();
  const Result calibrate = prism_program({"calibrate", "--device", "cpu", "--json"}, where);
  ASSERT_EQ(calibrate.status, 0) << calibrate.errors;
  const Json measured = Json::parse(calibrate.output)["devices"][0];
  const Json shown =
      Json::parse(prism_program({"devices", "--json"}, where).output)["cards"][0]["ways"][0];
  EXPECT_EQ(shown["id"], "cpu:0");
  for (const char* figure : {"bandwidth_bytes_per_second", "f32_operations_per_second",
                             "f16_operations_per_second", "launch_seconds", "reference_seconds"})
    EXPECT_NEAR(shown["measured"][figure].get<double>() / measured[figure].get<double>(), 1, 1e-4)
        << figure;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"devices"}, {"report", "--no-check"}}) {
    const std::string text = prism_program(words, where).output;
    EXPECT_FALSE(has(text, "e+0")) << text;
    EXPECT_FALSE(has(text, " MB ")) << text;
  }
}

TEST(Program, UnknownNamesListTheValidOnes) {
  const Result kernel = prism_program({"kernel", "show", "sum_rowsx"});
  EXPECT_EQ(kernel.status, 2);
  EXPECT_EQ(kernel.output, "");
  EXPECT_TRUE(has(kernel.errors, "did you mean \"sum_rows\"? Valid names: ")) << kernel.errors;
  const Result language = prism_program({"kernel", "show", "sum_rows", "--lang", "glsl"});
  EXPECT_EQ(language.status, 2);
  EXPECT_TRUE(has(language.errors, "cuda, hip, opencl, metal, sycl, wgsl, spirv, ir"))
      << language.errors;
  const Result device = prism_program({"kernel", "run", "sum_rows", "--device", "cpux"});
  EXPECT_EQ(device.status, 2);
  EXPECT_TRUE(has(device.errors, "\"cpux\" is no device; did you mean \"cpu\"?")) << device.errors;
  const Result number = prism_program({"check", "--device", "cpu:9"});
  EXPECT_EQ(number.status, 2);
  EXPECT_TRUE(has(number.errors, "there is no cpu:9; available: cpu:0")) << number.errors;
  const Result backend = prism_program({"setup", "hipp"});
  EXPECT_EQ(backend.status, 2);
  EXPECT_TRUE(has(backend.errors, "hip")) << backend.errors;
}

TEST(Program, KernelRunComparesAndTimes) {
  const Result result = prism_program({"kernel", "run", "sum_rows", "--device", "cpu", "--json"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json all = Json::parse(result.output);
  EXPECT_EQ(all.at("device"), "cpu:0");
  EXPECT_EQ(all.at("right"), true);
  ASSERT_FALSE(all.at("cases").empty());
  EXPECT_GT(all["cases"][0].at("microseconds").get<double>(), 0);
}

TEST(Program, CheckIsRightOnTheCpu) {
  const Result result = prism_program({"check", "--device", "cpu", "--quick", "--json"});
  ASSERT_EQ(result.status, 0) << result.output << result.errors;
  const Json all = Json::parse(result.output);
  EXPECT_EQ(all.at("right"), true);
  EXPECT_EQ(all.at("devices")[0].at("id"), "cpu:0");
  EXPECT_GT(all["devices"][0]["kernels"].size(), 15u);
  const Result text = prism_program(
      {"check", "--device", "cpu", "--quick", "--kernel", "fill", "--kernel", "iota"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(has(text.output, "2 right, 0 wrong, 0 failed, 0 skipped")) << text.output;
}

// The null device computes nothing, so a check must fail on it.
TEST(Program, CheckOfADeviceThatComputesWronglyIsOne) {
  const Result result =
      prism_program({"check", "--quick", "--kernel", "fill"}, "PRISM_BACKENDS=null");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(has(result.output, "WRONG")) << result.output;
  const Json all = Json::parse(
      prism_program({"check", "--quick", "--kernel", "fill", "--json"}, "PRISM_BACKENDS=null")
          .output);
  EXPECT_EQ(all["right"], false);
  EXPECT_EQ(all["devices"][0]["kernels"][0]["outcome"], "wrong");
  EXPECT_EQ(
      prism_program({"kernel", "run", "fill", "--device", "null"}, "PRISM_BACKENDS=null").status,
      1);
}

TEST(Program, ReportIsMarkdownWithoutPersonalPaths) {
  const Result result =
      prism_program({"report", "--no-check"}, "HOME=/home/somebody PRISM_DUMP=/home/somebody/dump");
  EXPECT_EQ(result.status, 0);
  for (const char* part : {"# Prism report", "## System", "## Devices", "| cpu:0 |",
                           "## Calibration", "PRISM_DUMP=~/dump"}) {
    EXPECT_TRUE(has(result.output, part)) << part << " in " << result.output;
  }
  EXPECT_FALSE(has(result.output, "somebody"));
}

// Runs a sample of the ops' suite; the same seed draws the same sample.
TEST(Program, CheckOfOpsCountsAndNamesWhatItDrew) {
  const std::vector<std::string> words = {"check", "--ops",  "--device", "cpu",   "--cases",
                                          "40",    "--seed", "3",        "--json"};
  const Result first = prism_program(words), second = prism_program(words);
  ASSERT_EQ(first.status, 0) << first.output << first.errors;
  const Json result = Json::parse(first.output), again = Json::parse(second.output);
  EXPECT_EQ(result["seed"], 3);
  const Json& device = result["devices"][0];
  EXPECT_EQ(device["ran"], 40);
  EXPECT_EQ(device["right"], 40);
  EXPECT_EQ(device["drawn"].size(), 40u);
  EXPECT_EQ(device["drawn"], again["devices"][0]["drawn"]);
  EXPECT_GT(device["available"], 1000);
  // Every op gets a case before any op gets a second one.
  int ops_run = 0;
  for (const Json& op : device["ops"]) ops_run += op["ran"] > 0;
  EXPECT_EQ(ops_run, std::min<int>(40, static_cast<int>(device["ops"].size())));

  const Result text =
      prism_program({"check", "--op", "add", "--device", "cpu", "--cases", "5", "--seed", "9"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(has(text.output, "5/5") && has(text.output, "seed 9")) << text.output;
  const Result unknown = prism_program({"check", "--op", "sofmax", "--device", "cpu"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(has(unknown.errors, "\"sofmax\" is no op") && has(unknown.errors, "gather_rows"))
      << unknown.errors;
  // The null device computes nothing.
  const Result null =
      prism_program({"check", "--op", "add", "--cases", "8"}, "PRISM_BACKENDS=null,cpu");
  EXPECT_EQ(null.status, 1) << null.output;
  EXPECT_TRUE(has(null.output, "WRONG")) << null.output;
}

TEST(Program, BenchOfOpsGivesFiguresAndAChart) {
  const TemporaryFolder folder;
  const std::string chart = (folder.path() / "ops.svg").string();
  const Result bench =
      prism_program({"bench", "ops", "--device", "cpu", "--op", "cast", "--json", "--svg", chart});
  ASSERT_EQ(bench.status, 0) << bench.errors;
  const Json result = Json::parse(bench.output);
  ASSERT_EQ(result["ops"].size(), 1u);
  EXPECT_GT(result["ops"][0]["bytes_per_second"], 1e6);
  EXPECT_GT(result["ops"][0]["share"], 0);
  EXPECT_LE(result["ops"][0]["share"], 1);
  EXPECT_GT(result["peaks"]["f32_operations_per_second"], 1e6);
  const std::string svg = read_file(chart);
  EXPECT_TRUE(svg.starts_with("<svg ") && has(svg, "cast") && has(svg, "</svg>")) << svg;
  const Result unknown = prism_program({"bench", "ops", "--device", "cpu", "--op", "cost"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(has(unknown.errors, "did you mean \"cast\"")) << unknown.errors;
}

}  // namespace
}  // namespace prism::test
