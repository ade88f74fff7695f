// Tests servers with options of their own: models that fill in, templates, speculation, keys, and
// an end in the middle of a text. And the endpoints that are Prism's and llama.cpp's own.
#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/models/chat_model.h"
#include "support/run_program.h"
#include "support/server/openai_server.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::ClientReply;
using test::RunningServer;
using ServerOptionsTest = test::OpenAiServer;

TEST_F(ServerOptionsTest, SuffixFillsInTheMiddle) {
  const test::TemporaryFolder folder;
  const std::string fill = test::with_fill_tokens(path(), folder.path(), {10, 11, 12});
  const RunningServer running(RunningServer::with_model(fill));
  const auto reply = [&](const std::string& to, const json& body) {
    const ClientReply answer = running.post(to, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body, nullptr, false);
  };
  const auto tokens = [&](const std::string& text) {
    return reply("/tokenize", {{"content", text}})["tokens"].get<std::vector<int>>();
  };
  std::vector<int> prompt = {1, 10};
  for (const int each : tokens("Once upon")) prompt.push_back(each);
  prompt.push_back(11);
  for (const int each : tokens("The end.")) prompt.push_back(each);
  prompt.push_back(12);
  json body = once(12);
  body["prompt"] = prompt;
  const json expected = reply("/v1/completions", body)["choices"][0]["text"];
  body["prompt"] = "Once upon";
  body["suffix"] = "The end.";
  EXPECT_EQ(reply("/v1/completions", body)["choices"][0]["text"], expected);
  body["prompt"] = {"Once upon", "Once upon"};
  EXPECT_EQ(reply("/v1/completions", body)["choices"][1]["text"], expected);
  EXPECT_EQ(reply("/infill", {{"input_prefix", "Once upon"},
                              {"input_suffix", "The end."},
                              {"n_predict", 12},
                              {"temperature", 0}})["content"],
            expected);
  EXPECT_EQ(
      reply("/api/generate", {{"prompt", "Once upon"},
                              {"suffix", "The end."},
                              {"stream", false},
                              {"options", {{"temperature", 0}, {"num_predict", 12}}}})["response"],
      expected);
  body["echo"] = true;
  EXPECT_EQ(running.post("/v1/completions", body.dump()).status, 400);
  // The model of the other tests has no such tokens.
  json refused = once(1);
  refused["suffix"] = "The end.";
  EXPECT_EQ(error("/v1/completions", refused.dump(), 400)["param"], "suffix");
}

// Errors that are found before a request has reached its endpoint.
TEST_F(ServerOptionsTest, EarlyErrorsHaveTheFormatOfTheApi) {
  ServerOptions options = RunningServer::with_model(path());
  options.http.max_body_bytes = 100;
  options.http.max_header_bytes = 1000;
  const RunningServer running(std::move(options));
  const auto sent = [&](const std::string& bytes, int status) {
    test::HttpClient client(running.port());
    client.send(bytes);
    const ClientReply reply = client.read_reply();
    EXPECT_EQ(reply.status, status) << bytes;
    EXPECT_EQ(reply.headers.at("content-type"), "application/json") << bytes;
    return json::parse(reply.body, nullptr, false);
  };
  const std::string head = " HTTP/1.1\r\nhost: 127.0.0.1\r\n",
                    large = "content-length: 101\r\n\r\n", header = "x: " + std::string(2000, 'x');
  const json openai = sent("POST /v1/chat/completions" + head + large, 413)["error"];
  EXPECT_EQ(openai["type"], "invalid_request_error");
  EXPECT_NE(openai["message"].get<std::string>().find("--max-body"), std::string::npos);
  EXPECT_EQ(sent("POST /v1/messages" + head + large, 413)["error"]["type"], "request_too_large");
  EXPECT_TRUE(sent("POST /api/chat" + head + large, 413)["error"].is_string());
  EXPECT_EQ(sent("POST /v1/messages" + head + header, 431)["type"], "error");
  EXPECT_TRUE(sent("POST /api/chat" + head + header, 431)["error"].is_string());
  EXPECT_EQ(sent("POST /v1/messages" + head + "content-length: x\r\n\r\n", 400)["type"], "error");
  EXPECT_TRUE(sent("no HTTP\r\n\r\n", 400)["error"].is_object());
}

TEST_F(ServerOptionsTest, ModelsInTheFormatOfTheClient) {
  ServerOptions options = RunningServer::with_model(path());
  for (const char* name : {"b", "c", "d e"}) options.models.push_back({name, path()});
  const RunningServer running(std::move(options));
  const auto get = [&](const std::string& where, int status = 200) {
    const ClientReply reply = running.get(where, {"anthropic-version: 2023-06-01"});
    EXPECT_EQ(reply.status, status) << where << reply.body;
    return json::parse(reply.body, nullptr, false);
  };
  // The names of a page, and whether there are more.
  const auto page = [&](const std::string& query) {
    const json list = get("/v1/models" + query);
    std::string names;
    for (const json& each : list["data"]) names += each["id"].get<std::string>() + " ";
    return names + (list["has_more"] ? "more" : "end");
  };
  const json all = get("/v1/models");
  EXPECT_EQ(all["first_id"], "tiny");
  EXPECT_EQ(all["last_id"], "d e");
  EXPECT_EQ(all["data"][1]["type"], "model");
  EXPECT_EQ(all["data"][1]["display_name"], "b");
  EXPECT_EQ(all["data"][1]["created_at"].get<std::string>().size(), 20u);
  EXPECT_EQ(get("/v1/models/d%20e"), all["data"][3]);
  EXPECT_EQ(page(""), "tiny b c d e end");
  EXPECT_EQ(page("?limit=2"), "tiny b more");
  EXPECT_EQ(page("?limit=2&after_id=b"), "c d e end");
  EXPECT_EQ(page("?after_id=d%20e"), "end");
  EXPECT_EQ(page("?before_id=c&limit=1"), "b more");
  EXPECT_EQ(page("?before_id=c"), "tiny b end");
  EXPECT_TRUE(get("/v1/models?after_id=d%20e")["last_id"].is_null());
  for (const char* query : {"?limit=0", "?limit=x", "?after_id=z", "?after_id=b&before_id=c"})
    EXPECT_EQ(get("/v1/models" + std::string(query), 400)["error"]["type"],
              "invalid_request_error");
  EXPECT_EQ(get("/v1/models/z", 404)["error"]["type"], "not_found_error");
  EXPECT_EQ(json::parse(running.get("/v1/models").body)["object"], "list") << "as OpenAI has it";
}

TEST_F(ServerOptionsTest, NativeEndpoints) {
  const json tokens = post("/tokenize", {{"content", "Once upon a time"}})["tokens"];
  EXPECT_EQ(tokens.size(), 4u);
  EXPECT_EQ(post("/detokenize", {{"tokens", tokens}})["content"], "Once upon a time");
  EXPECT_EQ(post("/tokenize", {{"content", "Once"}, {"with_pieces", true}})["tokens"][0]["id"],
            tokens[0]);
  // Three bytes that have tokens of their own.
  const json parts =
      post("/tokenize", {{"content", "\xE6\x97\xA5"}, {"with_pieces", true}})["tokens"];
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0]["piece"], " ");
  EXPECT_EQ(parts[1]["piece"], json::array({0xE6}));
  EXPECT_EQ(parts[3]["piece"], json::array({0xA5}));
  EXPECT_EQ(post("/apply-template", chat())["prompt"],
            "<|im_start|>user\nOnce upon a time<|im_end|>\n<|im_start|>assistant\n");
  const json whole =
      post("/completion", {{"prompt", "Once upon a time"}, {"n_predict", 60}, {"temperature", 0}});
  EXPECT_EQ(whole["content"], expected_tail());
  EXPECT_EQ(whole["stop_type"], "limit");
  EXPECT_EQ(whole["tokens_predicted"], 60);
  EXPECT_TRUE(whole["tokens"].empty());
  EXPECT_EQ(whole["generation_settings"]["n_predict"], 60);
  const json chosen = post("/completion", {{"prompt", "Once upon a time"},
                                           {"n_predict", 2},
                                           {"return_tokens", true},
                                           {"response_fields", {"tokens", "timings/predicted_n"}}});
  EXPECT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen["tokens"].size(), 2u);
  EXPECT_EQ(chosen["timings/predicted_n"], 2);
  const json props = json::parse(server().get("/props").body);
  EXPECT_EQ(props["total_slots"], 2);
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 256);
  EXPECT_EQ(json::parse(server().get("/slots").body).size(), 2u);
  EXPECT_NE(server().get("/metrics").body.find("prism:tokens_predicted_total"), std::string::npos);
  EXPECT_FALSE(json::parse(server().get("/devices").body)["devices"].empty());
}

TEST_F(ServerOptionsTest, TemplatesGetTheServersAndTheRequestsVariables) {
  ServerOptions options = RunningServer::with_model(path());
  options.chat_template = "{{ messages[0].content }} {{ place }} {{ time }}";
  options.template_variables = R"({"place": "here", "time": "now"})";
  options.is_verbose = true;
  const RunningServer running(std::move(options));
  json body = chat();
  EXPECT_EQ(json::parse(running.post("/apply-template", body.dump()).body)["prompt"],
            "Once upon a time here now");
  body["chat_template_kwargs"] = {{"time", "then"}};
  EXPECT_EQ(json::parse(running.post("/apply-template", body.dump()).body)["prompt"],
            "Once upon a time here then");
  const json reply = json::parse(running.post("/v1/chat/completions", body.dump()).body);
  EXPECT_NE(reply["__verbose"]["prompt"].get<std::string>().find("here then"), std::string::npos);
}

// Whether a proposal pays depends on times, so the counts are only compared with each other.
TEST_F(ServerOptionsTest, SpeculationIsReportedAndKeepsTheText) {
  ServerOptions options = RunningServer::with_model(path());
  options.load.speculate = "ngram";
  const RunningServer speculating(std::move(options));
  const std::string request =
      R"({"prompt": "Tom ran. Tom ran. Tom ran. Tom ran. Tom ran.", "max_tokens": 60,)"
      R"( "temperature": 0})";
  const json reply = json::parse(speculating.post("/v1/completions", request).body);
  EXPECT_EQ(reply["choices"][0]["text"],
            json::parse(server().post("/v1/completions", request).body)["choices"][0]["text"]);
  const int64_t proposed = reply["timings"]["draft_n"];
  const int64_t accepted = reply["timings"]["draft_n_accepted"];
  const json details = reply["usage"]["completion_tokens_details"];
  EXPECT_EQ(details["accepted_prediction_tokens"], accepted);
  EXPECT_EQ(details["rejected_prediction_tokens"], proposed - accepted);
  const std::string metrics = speculating.get("/metrics").body;
  const auto counter = [&](const std::string& name) {
    const size_t at = metrics.find(fmt::format("\n{} ", name));
    return at == std::string::npos ? -1 : std::stoll(metrics.substr(at + name.size() + 2));
  };
  for (const char* name :
       {"prism:tokens_proposed_total", "llamacpp:spec_decode_num_draft_tokens_total"})
    EXPECT_EQ(counter(name), proposed) << metrics;
  for (const char* name :
       {"prism:tokens_accepted_total", "llamacpp:spec_decode_num_accepted_tokens_total"})
    EXPECT_EQ(counter(name), accepted) << metrics;
  const int64_t proposals = counter("llamacpp:spec_decode_num_drafts_total");
  EXPECT_EQ(proposals, counter("prism:proposals_total"));
  EXPECT_GE(proposals, proposed > 0 ? 1 : 0);
  EXPECT_LE(proposals, proposed);
}

TEST_F(ServerOptionsTest, TextsThatTheEndCutsOffEndWithAnError) {
  ServerOptions options = RunningServer::with_model(path());
  options.load.fit.context = 100000;  // for minutes
  RunningServer running(std::move(options));
  json body = once(99000);
  body["stream"] = body["ignore_eos"] = true;
  std::thread end([&] {
    while (running.state().texts.empty() || !running.state().texts[0].is_begun)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    running.stop(0.1);
  });
  const ClientReply reply = running.post("/v1/completions", body.dump());
  end.join();
  const std::vector<std::string> data = test::event_data(reply.body);
  ASSERT_GE(data.size(), 3u);
  EXPECT_TRUE(json::parse(data[0]).contains("choices"));
  const auto last = std::ranges::find_if(
      data, [](const std::string& each) { return each.find("\"error\"") != each.npos; });
  ASSERT_NE(last, data.end()) << data.back();
  EXPECT_EQ(json::parse(*last)["error"]["code"], "server_ended");
}

TEST_F(ServerOptionsTest, ALoadForWhichNobodyWaitsEndsWithTheServer) {
  ServerOptions options = RunningServer::with_model(path());
  options.http.port = 0;
  std::promise<void> begun, ended;
  int tensors = 0;
  options.load.progress = [&](const llm::LoadProgress&) {
    if (++tensors == 1) begun.set_value();
    if (tensors == 1) ended.get_future().wait();
    return true;
  };
  bool is_ready = false;
  {
    Server server(std::move(options));
    std::thread run([&] { server.run([&] { is_ready = true; }); });
    begun.get_future().wait();
    server.stop(30);
    run.join();
    ended.set_value();
  }
  EXPECT_EQ(tensors, 1);
  EXPECT_FALSE(is_ready);
}

TEST(ServerAccess, KeysAreNeededButForHealth) {
  const std::string path = test::shared_model("stories260K");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  ServerOptions options = RunningServer::with_model(path);
  options.access.api_keys = {"secret"};
  options.access.cors = {"https://app.example"};
  const RunningServer running(std::move(options));
  EXPECT_EQ(running.get("/health").status, 200);
  const ClientReply refused = running.get("/v1/models");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(json::parse(refused.body)["error"]["type"], "authentication_error");
  EXPECT_EQ(running.get("/v1/models", {"authorization: Bearer secret"}).status, 200);
  EXPECT_EQ(running.get("/v1/models", {"x-api-key: secret"}).status, 200);
  EXPECT_EQ(running.get("/v1/models", {"x-api-key: secret", "origin: https://evil.example"}).status,
            403);
  ClientReply allowed =
      running.get("/v1/models", {"x-api-key: secret", "origin: https://app.example"});
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.headers["access-control-allow-origin"], "https://app.example");
  const ClientReply preflight = test::request(running.port(), "OPTIONS", "/v1/chat/completions", "",
                                              {"origin: https://app.example"});
  EXPECT_EQ(preflight.status, 200);
}

}  // namespace
}  // namespace prism::server
