// Runs the training examples for a few steps on the CPU, with data that they make themselves.
#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

std::string run_example(const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (binary_dir() / ("example_" + name)).string());
  const ProcessResult result = run_process(arguments);
  EXPECT_EQ(result.status, 0) << result.output;
  return result.output;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TrainingExamples, MoonsDrawsThePlane) {
  const std::string output = run_example("moons", {"cpu", "6"});
  EXPECT_TRUE(contains(output, "step 5, loss ")) << output;
  EXPECT_TRUE(contains(output, "###") && contains(output, "...")) << output;
}

TEST(TrainingExamples, MnistReadsDigits) {
  std::vector<std::string> arguments = {"--steps", "30", "--data", "nowhere", "--device", "cpu"};
  const std::string output = run_example("mnist", arguments);
  const size_t place = output.find("% of the test images");
  ASSERT_NE(place, std::string::npos) << output;
  EXPECT_GT(std::stod(output.substr(output.rfind('\n', place) + 1)), 60) << output;
  EXPECT_TRUE(contains(output, "this is a ")) << output;
  arguments[1] = "2";
  arguments.insert(arguments.begin(), "--conv");
  EXPECT_TRUE(contains(run_example("mnist", arguments), "step 2 of 2, loss "));
}

TEST(TrainingExamples, CharGptWritesText) {
  const std::string output =
      run_example("char_gpt", {"--steps", "3", "--data", "nowhere", "--layers", "1", "--width",
                               "32", "--length", "16", "--device", "cpu"});
  EXPECT_TRUE(contains(output, "step 3 of 3, loss ") && contains(output, "validation loss "))
      << output;
}

}  // namespace
}  // namespace prism::test
