// The server with a real model: many clients at once, and a device that is lost while texts run.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "llm/model/model.h"
#include "prism/llm/language_model.h"
#include "prism/warning.h"
#include "support/attack_rounds.h"
#include "support/devices/failing_device.h"
#include "support/devices/interpreted_device.h"
#include "support/models/expected_text.h"
#include "support/running_server.h"
#include "support/server/load_clients.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::LoadAnswer;
using test::LoadRequest;
using test::RunningServer;

constexpr const char* kPrompts[] = {"Once upon a time", "Lily and the dog", "The cat"};

std::string body_of(size_t prompt, int64_t tokens, bool is_streamed) {
  return json{{"prompt", kPrompts[prompt]},
              {"max_tokens", tokens},
              {"temperature", 0},
              {"stream", is_streamed}}
      .dump();
}

struct Text {
  std::string text;
  json error;
};

Text text_of(const std::string& body) {
  Text result;
  const auto add = [&](const json& event) {
    if (event.contains("error"))
      result.error = event["error"];
    else if (!event["choices"].empty())
      result.text += event["choices"][0]["text"].get<std::string>();
  };
  if (!body.starts_with("data: ")) {
    add(json::parse(body));
    return result;
  }
  for (const std::string& each : test::event_data(body))
    if (each != "[DONE]") add(json::parse(each));
  return result;
}

class ModelAttack : public testing::Test {
 protected:
  void SetUp() override {
    if (path_.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
    before_ = set_warning_handler([this](const std::string&) { ++warnings_; });
  }
  void TearDown() override {
    if (before_) set_warning_handler(before_);
  }
  static std::string text(const RunningServer& running, size_t prompt, int64_t tokens) {
    return text_of(running.post("/v1/completions", body_of(prompt, tokens, false)).body).text;
  }

  const std::string path_ = test::shared_model("stories260K");
  std::atomic<int> warnings_ = 0;
  WarningHandler before_;
};

// Each client asks for another number of tokens of one of three texts.
TEST_F(ModelAttack, ClientsAtOnceGetTheirOwnTexts) {
  const int64_t rounds = std::min<int64_t>(test::attack_rounds(1), 20);
  ServerOptions options = RunningServer::with_model(path_);
  options.parallel = 4;
  const RunningServer running(std::move(options));
  std::string whole[3];
  for (size_t i = 0; i < 3; ++i) whole[i] = text(running, i, 41);
  int64_t answers = 0, wrong = 0;
  test::run_load({.port = running.port(),
                  .clients = 12,
                  .next =
                      [&](size_t client, int64_t number) {
                        if (number >= rounds) return LoadRequest{};
                        return LoadRequest{
                            .path = "/v1/completions",
                            .body = body_of(client % 3, 5 + static_cast<int64_t>(client) * 3,
                                            client % 2 == 0)};
                      },
                  .on_answer =
                      [&](const LoadAnswer& answer) {
                        ++answers;
                        const std::string got = text_of(answer.reply.body).text;
                        wrong += got.size() < 5 || !whole[answer.client % 3].starts_with(got);
                      }});
  EXPECT_EQ(answers, 12 * rounds);
  EXPECT_EQ(wrong, 0);
}

// A device in the interpreter that is lost while three streams run.
class LostDevice : public ModelAttack {
 protected:
  static constexpr int64_t kTokens = 6;

  ServerOptions options(bool is_automatic) {
    ServerOptions result = RunningServer::with_model(path_);
    result.parallel = 3;
    result.load_model = [this, is_automatic](const ServedModel& model) {
      ++loads_;
      faults_ = std::make_shared<test::Faults>();
      Device device(test::failing_device(test::interpreted_driver(2), faults_), "a test");
      if (is_automatic) device = device.as_automatic();
      llm::LoadOptions load;
      load.batch_rows = 16;
      load.slots = 3;
      const llm::GgufFile file = llm::GgufFile::open(model.path());
      return engine_model(
          llm::LanguageModel::load(model.path(), place_on(file, device, 32, DType::f32), load));
    };
    result.generation = [this](const llm::GgufFile&) {
      llm::GenerationOptions options;
      options.on_prompt = [this](const llm::PromptProgress& progress) {
        if (progress.read == progress.tokens && ++begun_ == 3) faults_->lose_at_submit = 1;
      };
      return options;
    };
    return result;
  }

  // Streams three texts; the device is lost after the first token of the last one.
  static std::vector<Text> lose_in_the_middle(const RunningServer& running) {
    std::vector<std::unique_ptr<test::HttpClient>> clients;
    for (size_t i = 0; i < 3; ++i) {
      clients.push_back(std::make_unique<test::HttpClient>(running.port()));
      clients.back()->send_request("POST", "/v1/completions", body_of(i, kTokens, true));
    }
    std::vector<Text> texts;
    for (const auto& client : clients) {
      EXPECT_EQ(client->read_head().status, 200);
      std::string body;
      for (std::string chunk; !(chunk = client->read_chunk()).empty();) body += chunk;
      texts.push_back(text_of(body));
    }
    return texts;
  }
  // Also where the layers are.
  static std::string device_in_props(const RunningServer& running) {
    const json props = json::parse(running.get("/props").body);
    for (const json& each : props["placement"])
      EXPECT_TRUE(each["layers"] == 0 || each["id"] == props["device"]["id"]) << props;
    return props["device"]["id"];
  }

  std::vector<std::string> expected() const {
    const RunningServer running(RunningServer::with_model(path_));
    std::vector<std::string> texts;
    for (size_t i = 0; i < 3; ++i) texts.push_back(text(running, i, kTokens));
    return texts;
  }

  std::atomic<int> loads_ = 0;
  std::atomic<int> begun_ = 0;  // texts that have a token
  std::shared_ptr<test::Faults> faults_;
};

TEST_F(LostDevice, StreamsGoOnOnTheNextDevice) {
  const std::vector<std::string> wanted = expected();
  ServerOptions with = options(true);
  std::vector<std::string> devices;  // as they are told
  with.on_load = [&](const ServedModel&, const EngineModel::Facts& facts) {
    devices.push_back(facts.device);
  };
  const RunningServer running(std::move(with));
  const std::string lost = device_in_props(running);
  const std::vector<Text> texts = lose_in_the_middle(running);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(texts[i].error.is_null()) << texts[i].error;
    EXPECT_EQ(texts[i].text, wanted[i]);
  }
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(text(running, 1, kTokens), wanted[1]);
  EXPECT_EQ(loads_, 1);
  EXPECT_NE(device_in_props(running), lost);
  EXPECT_EQ(devices, (std::vector<std::string>{lost, device_in_props(running)}));
}

TEST_F(LostDevice, StreamsOfADeviceByNameEndWithAnErrorAndTheServerGoesOn) {
  const std::vector<std::string> wanted = expected();
  const RunningServer running(options(false));
  size_t errors = 0;
  const std::vector<Text> texts = lose_in_the_middle(running);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(wanted[i].starts_with(texts[i].text)) << texts[i].text;
    if (texts[i].error.is_null()) continue;
    ++errors;
    EXPECT_EQ(texts[i].error["type"], "server_error") << texts[i].error;
  }
  EXPECT_GT(errors, 0u);
  EXPECT_EQ(running.get("/health").status, 200);
  // The next text loads the model again.
  EXPECT_EQ(text(running, 2, kTokens), wanted[2]);
  EXPECT_EQ(loads_, 2);
}

}  // namespace
}  // namespace prism::server
