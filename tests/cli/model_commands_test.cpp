// Tests `prism model` and `prism fit` from outside.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "llm/gguf/gguf_writer.h"
#include "llm/store/http.h"
#include "prism/llm/gguf.h"
#include "support/http_server.h"
#include "support/models/tiny_models.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism {
namespace {

using Json = nlohmann::json;

class ModelCommands : public testing::Test {
 protected:
  void SetUp() override {
    setenv("PRISM_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    setenv("PRISM_BACKENDS", "cpu", 1);
    llm::GgufWriter writer;
    writer.set("general.architecture", "llama");
    writer.set("general.name", "A small one");
    writer.set("llama.block_count", 2u);
    writer.set("llama.embedding_length", 256u);
    writer.set("llama.feed_forward_length", 512u);
    writer.set("llama.attention.head_count", 4u);
    writer.set("llama.attention.head_count_kv", 2u);
    writer.set("llama.context_length", 1024u);
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i % 13) - 6.0f;
    const auto bytes = std::as_bytes(std::span(values_));
    for (const char* name : {"token_embd.weight", "blk.0.attn_q.weight", "blk.1.attn_q.weight"})
      writer.add_tensor(name, {64, 256}, DType::f32, bytes);
    writer.write(model_);
  }
  // A model that can be loaded, for what verify accepts.
  std::string whole_model() const {
    const std::string path = folder_ / "whole.gguf";
    test::tiny_model("llama")->file.write(path);
    return path;
  }
  static test::ProcessResult prism(std::vector<std::string> words) {
    words.insert(words.begin(), test::program().string());
    return test::run_process(words);
  }
  static Json json(std::vector<std::string> words) {
    words.push_back("--json");
    const test::ProcessResult result = prism(words);
    EXPECT_EQ(result.status, 0) << result.output;
    return Json::parse(result.output, nullptr, false);
  }

  test::TemporaryFolder folder_;
  const std::string model_ = folder_ / "m.gguf";
  std::vector<float> values_ = std::vector<float>(64 * 256);
};

TEST_F(ModelCommands, InfoTellsSizesTypesAndMemory) {
  const Json info = json({"model", "info", model_, "--tensors"});
  EXPECT_EQ(info["architecture"], "llama");
  EXPECT_EQ(info["name"], "A small one");
  EXPECT_EQ(info["parameters"], 3 * 64 * 256);
  EXPECT_EQ(info["layers"], 2);
  EXPECT_EQ(info["types"]["f32"]["tensors"], 3);
  EXPECT_EQ(info["context"], 1024);
  EXPECT_EQ(info["tensors"].size(), 3u);
  ASSERT_EQ(info["memory"].size(), 1u);
  EXPECT_EQ(info["memory"][0]["weight_bytes"], 3 * 64 * 256 * 4);
  EXPECT_EQ(info["memory"][0]["kv_cache_bytes"], 2 * 2 * 1152 * 128 * 2);
  const test::ProcessResult text = prism({"model", "info", model_});
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.output.find("2 layers, 256 wide"), std::string::npos) << text.output;
}

TEST_F(ModelCommands, InfoNamesUnknownArchitecturesAndAdapters) {
  llm::GgufWriter unknown;
  unknown.set("general.architecture", "qwenx");
  unknown.set("qwenx.block_count", uint32_t{1});
  unknown.set("qwenx.embedding_length", uint32_t{64});
  unknown.set("qwenx.attention.head_count", uint32_t{2});
  unknown.add_tensor("token_embd.weight", {64, 256}, DType::f32, std::as_bytes(std::span(values_)));
  unknown.write(folder_ / "unknown.gguf");
  const test::ProcessResult info = prism({"model", "info", folder_ / "unknown.gguf"});
  EXPECT_NE(info.output.find("Prism does not know the architecture qwenx"), std::string::npos)
      << info.output;
  EXPECT_EQ(json({"model", "info", folder_ / "unknown.gguf"})["is_known"], false);
  llm::GgufWriter adapter;
  adapter.set("general.architecture", "llama");
  adapter.set("general.type", "adapter");
  adapter.set("adapter.type", "lora");
  adapter.set("adapter.lora.alpha", 8.0f);
  const auto factor = std::as_bytes(std::span(values_).first(4 * 256));
  adapter.add_tensor("blk.0.attn_q.weight.lora_a", {4, 256}, DType::f32, factor);
  adapter.add_tensor("blk.0.attn_q.weight.lora_b", {256, 4}, DType::f32, factor);
  adapter.write(folder_ / "adapter.gguf");
  const test::ProcessResult text = prism({"model", "info", folder_ / "adapter.gguf"});
  EXPECT_NE(text.output.find("an adapter of rank 4 for 1 matrices, alpha 8"), std::string::npos)
      << text.output;
}

TEST_F(ModelCommands, QuantizeThenVerify) {
  const std::string out = folder_ / "q4.gguf", from = whole_model();
  EXPECT_EQ(prism({"model", "quantize", from, out, "q4_k_m"}).status, 0);
  EXPECT_STREQ(llm::GgufFile::open(out).find_tensor("blk.0.attn_q.weight")->type_name(), "q4_k");
  EXPECT_EQ(prism({"model", "quantize", from, out, "Q8_0"}).status, 2) << "it is there already";
  EXPECT_EQ(prism({"model", "quantize", from, from, "Q8_0", "--overwrite"}).status, 2);
  EXPECT_EQ(prism({"model", "quantize", from, folder_ / "x", "Q9"}).status, 2);
  EXPECT_EQ(prism({"model", "verify", out}).status, 0);
  const test::ProcessResult wrong = prism({"model", "verify", out, "--sha256", "00"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.output.find("sha256"), std::string::npos);
}

TEST_F(ModelCommands, QuantizeByNamesAndByImportance) {
  const std::string from = whole_model(), out = folder_ / "q3.gguf", text = folder_ / "text.txt";
  const std::string importance = folder_ / "i.gguf";
  test::write_file(text, "one two three four five six seven eight nine ten");
  const std::vector<std::string> measure = {"model", "imatrix", from, "-f",       text,
                                            "-c",    "16",      "-o", importance, "-q"};
  const test::ProcessResult measured = prism(measure);
  ASSERT_EQ(measured.status, 0) << measured.output;
  EXPECT_EQ(prism(measure).status, 2) << "it is there already";
  for (const char* command : {"info", "verify"})
    EXPECT_NE(prism({"model", command, importance}).output.find("an importance matrix"),
              std::string::npos);
  EXPECT_NE(prism({"fit", importance}).output.find("an importance matrix"), std::string::npos);
  const test::ProcessResult done =
      prism({"model", "quantize", from, out, "Q3_K_M", "--imatrix", importance, "--tensor-type",
             "attn_q=q6_k", "--tensor-type", "attn_[qk]=q5_k"});
  ASSERT_EQ(done.status, 0) << done.output;
  EXPECT_NE(done.output.find("by importance"), std::string::npos) << done.output;
  const llm::GgufFile file = llm::GgufFile::open(out);
  EXPECT_STREQ(file.find_tensor("blk.0.attn_q.weight")->type_name(), "q6_k");
  EXPECT_STREQ(file.find_tensor("blk.0.attn_k.weight")->type_name(), "q5_k");
  EXPECT_EQ(prism({"model", "verify", out}).status, 0);
  const std::string other = folder_ / "other.gguf";
  EXPECT_EQ(prism({"model", "quantize", from, other, "Q4_0", "--tensor-type", "none=q4_0"}).status,
            2);
  EXPECT_EQ(prism({"model", "quantize", from, other, "Q4_0", "--imatrix", from}).status, 2);
  EXPECT_EQ(prism({"model", "quantize", from, other, "Q4_0", "--imatrix", text}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(ModelCommands, FitPlacesOrSaysWhatWould) {
  const Json fit = json({"fit", model_, "-c", "512", "--kv-type", "q8_0", "-ngl", "99"});
  EXPECT_EQ(fit["context"], 512);
  EXPECT_EQ(fit["kv_type"], "q8_0");
  EXPECT_EQ(fit["layers"], Json({"cpu:0", "cpu:0"}));
  EXPECT_GT(fit["tokens_per_second"], 0);
  const test::ProcessResult large = prism({"fit", model_, "--memory-margin", "100000G"});
  EXPECT_EQ(large.status, 1);
  EXPECT_NE(large.output.find("more than available"), std::string::npos) << large.output;
  EXPECT_EQ(prism({"fit", model_, "--memory-margin", "much"}).status, 2);
  EXPECT_EQ(prism({"fit", folder_ / "absent.gguf"}).status, 2);
}

TEST_F(ModelCommands, FetchListRemoveAndHeadersFromAfar) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  test::HttpServer server;
  setenv("HF_ENDPOINT", server.url("").c_str(), 1);
  const std::string content = test::read_file(whole_model());
  server.serve("/u/r/resolve/main/m.gguf", {.content = content, .etag = "\"x\""});
  const std::string name = "hf:u/r:m.gguf";
  EXPECT_EQ(json({"fit", name})["context"], 128);
  EXPECT_EQ(json({"model", "info", name})["layers"], 2);
  EXPECT_EQ(json({"model", "list"}).size(), 0u);
  const test::ProcessResult fetched = prism({"model", "fetch", name});
  EXPECT_EQ(fetched.status, 0) << fetched.output;
  const Json list = json({"model", "list"});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["name"], name);
  const test::ProcessResult verified = prism({"model", "verify", name});
  EXPECT_EQ(verified.status, 0) << verified.output;
  EXPECT_NE(verified.output.find("agrees with the one recorded when it was fetched"),
            std::string::npos)
      << verified.output;
  EXPECT_EQ(prism({"model", "remove", name}).status, 0);
  EXPECT_EQ(json({"model", "list"}).size(), 0u);
  EXPECT_EQ(prism({"model", "fetch", "hf:u/r:absent.gguf"}).status, 2);
  EXPECT_EQ(json({"model", "list"}).size(), 0u) << "a failed fetch leaves nothing";
}

TEST_F(ModelCommands, RemoveTakesTheNamesThatRunTakes) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  test::HttpServer server;
  setenv("HF_ENDPOINT", server.url("").c_str(), 1);
  const std::string content = test::read_file(model_);
  server.serve("/u/r/resolve/main/m.gguf", {.content = content, .etag = "\"x\""});
  server.serve("/other/m2.gguf", {.content = content, .etag = "\"x\""});
  const std::string address = server.url("/other/m2.gguf");
  const auto fetch_and_remove = [&](const std::string& fetched, const std::string& removed) {
    EXPECT_EQ(prism({"model", "fetch", fetched}).status, 0);
    const test::ProcessResult result = prism({"model", "remove", removed});
    EXPECT_EQ(result.status, 0) << removed << ": " << result.output;
    EXPECT_EQ(json({"model", "list"}).size(), 0u) << removed;
  };
  for (const char* name : {"hf:u/r:m.gguf", "m.gguf", "m"}) fetch_and_remove("hf:u/r:m.gguf", name);
  fetch_and_remove(address, address);
  fetch_and_remove("hf:u/r:m.gguf", folder_ / "cache/models/hf/u/r/m.gguf");
  const test::ProcessResult own = prism({"model", "remove", model_});
  EXPECT_EQ(own.status, 2);
  EXPECT_NE(own.output.find("delete it yourself"), std::string::npos) << own.output;
}

}  // namespace
}  // namespace prism
