// Tests fetching models from a server that cuts connections, sends wrong data, redirects and
// refuses.
#include "prism/llm/model_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cctype>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/sha256.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/store/download.h"
#include "llm/store/http.h"
#include "llm/store/model_name.h"
#include "prism/error.h"
#include "support/http_provider.h"
#include "support/http_server.h"
#include "support/run_program.h"
#include "support/scoped_variable.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

namespace fs = std::filesystem;

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string digest(const std::string& text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

std::string random_text(size_t bytes) {
  const uint32_t seed = test_seed();
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

ErrorCode code_of(const std::function<void()>& run, std::string* what = nullptr) {
  try {
    run();
  } catch (const Error& error) {
    if (what) *what = error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class Downloading : public test::HttpProviderTest {
 protected:
  Downloading() { options_.pause_seconds = 0.01; }
  test::HttpServer server_;
  test::TemporaryFolder folder_;
  DownloadOptions options_;
  const std::string content_ = random_text(300000);
  const std::string path_ = folder_ / "sub/file.gguf";
};
INSTANTIATE_TEST_SUITE_P(By, Downloading, testing::Values(false, true), test::provider_name);

TEST_P(Downloading, AWholeFileWithItsChecksum) {
  server_.serve("/f", {.content = content_, .etag = "\"" + digest(content_) + "\""});
  uint64_t last = 0;
  options_.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_EQ(all, content_.size());
    last = done;
  };
  const DownloadResult result = download(server_.url("/f"), path_, options_);
  EXPECT_EQ(result.sha256, digest(content_));
  EXPECT_EQ(result.checked_by, ChecksumSource::own);
  EXPECT_EQ(last, content_.size());
  EXPECT_EQ(read_all(path_), content_);
  EXPECT_FALSE(fs::exists(path_ + ".part"));
  EXPECT_FALSE(fs::exists(path_ + ".tag.part"));
}

TEST_P(Downloading, ACutConnectionGoesOnWhereItWasCut) {
  server_.serve("/f", {.content = content_, .etag = "\"one\"", .cut_after = {1000, 50000, 0, 7}});
  options_.sha256 = digest(content_);
  EXPECT_EQ(download(server_.url("/f"), path_, options_).bytes, content_.size());
  EXPECT_EQ(read_all(path_), content_);
  EXPECT_EQ(server_.sent_bytes(), content_.size()) << "nothing came twice";
  const auto requests = server_.requests();
  ASSERT_GE(requests.size(), 2u);
  EXPECT_EQ(requests[1].range, "bytes=1000-");
  EXPECT_EQ(requests[1].if_range, "\"one\"");
}

TEST_P(Downloading, ALaterRunGoesOnToo) {
  test::ServedFile file{.content = content_, .etag = "\"one\""};
  file.cut_after.assign(1, 100000);
  file.cut_after.insert(file.cut_after.end(), 10, 0);
  server_.serve("/f", file);
  options_.attempts = 3;
  std::string what;
  EXPECT_EQ(code_of([&] { download(server_.url("/f"), path_, options_); }, &what), ErrorCode::kIo);
  EXPECT_NE(what.find("100000 bytes are kept"), std::string::npos) << what;
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_EQ(fs::file_size(path_ + ".part"), 100000u);
  file.cut_after.clear();
  server_.serve("/f", file);
  const DownloadResult result = download(server_.url("/f"), path_, options_);
  EXPECT_EQ(result.resumed_bytes, 100000u);
  EXPECT_EQ(result.sha256, digest(content_));
  EXPECT_EQ(read_all(path_), content_);
}

TEST_P(Downloading, AFileThatChangedMeanwhileIsFetchedAnew) {
  server_.serve("/f", {.content = content_, .etag = "\"one\"", .cut_after = {100000, 0, 0}});
  options_.attempts = 2;
  EXPECT_EQ(code_of([&] { download(server_.url("/f"), path_, options_); }), ErrorCode::kIo);
  const std::string other = random_text(200000);
  server_.serve("/f", {.content = other, .etag = "\"two\""});
  const DownloadResult result = download(server_.url("/f"), path_, options_);
  EXPECT_EQ(result.resumed_bytes, 0u);
  EXPECT_EQ(read_all(path_), other);
}

TEST_P(Downloading, AServerWithoutRangesIsFetchedAnew) {
  server_.serve("/f",
                {.content = content_, .etag = "\"one\"", .has_ranges = false, .cut_after = {1000}});
  EXPECT_EQ(download(server_.url("/f"), path_, options_).sha256, digest(content_));
  EXPECT_EQ(read_all(path_), content_);
}

TEST_P(Downloading, AllWasThereAlready) {
  server_.serve("/f", {.content = content_, .etag = "\"one\""});
  fs::create_directories(fs::path(path_).parent_path());
  std::ofstream(path_ + ".part", std::ios::binary) << content_;
  std::ofstream(path_ + ".tag.part") << "\"one\"\n\n" << content_.size() << "\n";
  EXPECT_EQ(download(server_.url("/f"), path_, options_).resumed_bytes, content_.size());
  EXPECT_EQ(server_.sent_bytes(), 0u);
  EXPECT_EQ(read_all(path_), content_);
}

TEST_P(Downloading, AWrongChecksumLeavesNothing) {
  server_.serve("/f", {.content = content_, .etag = "\"one\""});
  options_.sha256 = digest("another");
  std::string what;
  EXPECT_EQ(code_of([&] { download(server_.url("/f"), path_, options_); }, &what),
            ErrorCode::kCorruptFile);
  EXPECT_NE(what.find(digest(content_)), std::string::npos) << what;
  EXPECT_TRUE(fs::is_empty(fs::path(path_).parent_path()));
}

TEST_P(Downloading, RedirectsCarryTheChecksum) {
  server_.serve("/a", {.linked_etag = "\"" + digest(content_) + "\"", .redirect = "/b"});
  server_.serve("/b", {.content = content_, .etag = "\"other\""});
  EXPECT_EQ(download(server_.url("/a"), path_, options_).checked_by, ChecksumSource::linked);
  server_.serve("/a", {.linked_etag = "\"" + digest("another") + "\"", .redirect = "/b"});
  fs::remove(path_);
  EXPECT_EQ(code_of([&] { download(server_.url("/a"), path_, options_); }),
            ErrorCode::kCorruptFile);
  server_.serve("/round", {.redirect = "/round"});
  EXPECT_EQ(code_of([&] { download(server_.url("/round"), path_, options_); }), ErrorCode::kIo);
}

TEST_P(Downloading, RefusalsSayWhatToDo) {
  std::string what;
  EXPECT_EQ(code_of([&] { download(server_.url("/no"), path_, options_); }, &what),
            ErrorCode::kNotFound);
  EXPECT_NE(what.find("no such file (404)"), std::string::npos) << what;
  server_.serve("/closed", {.status = 401});
  EXPECT_EQ(code_of([&] { download(server_.url("/closed"), path_, options_); }, &what),
            ErrorCode::kNotFound);
  EXPECT_NE(what.find("HF_TOKEN"), std::string::npos) << what;
  server_.serve("/broken", {.status = 500});
  EXPECT_EQ(code_of([&] { download(server_.url("/broken"), path_, options_); }), ErrorCode::kIo);
  EXPECT_EQ(code_of([&] { download("http://127.0.0.1:1/f", path_, options_); }), ErrorCode::kIo);
  EXPECT_EQ(code_of([&] { download("ftp://host/f", path_, options_); }),
            ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_P(Downloading, TheStartAlone) {
  for (const bool has_ranges : {true, false}) {
    server_.serve("/f", {.content = content_, .has_ranges = has_ranges});
    const FileStart start = download_start(server_.url("/f"), 1000);
    EXPECT_EQ(start.file_bytes, content_.size());
    ASSERT_EQ(start.bytes.size(), 1000u);
    EXPECT_EQ(std::memcmp(start.bytes.data(), content_.data(), 1000), 0);
    EXPECT_EQ(download_start(server_.url("/f"), 1 << 20).bytes.size(), content_.size());
  }
}

// A limit on the size of files simulates the full disk.
TEST(DownloadDeathTest, AFullDiskKeepsThePartOnly) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  GTEST_FLAG_SET(death_test_style, "fast");
  test::HttpServer server;
  const test::TemporaryFolder folder;
  server.serve("/f", {.content = random_text(300000), .etag = "\"one\""});
  const auto fill = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      download(server.url("/f"), folder / "f.gguf");
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(fill(), testing::ExitedWithCode(7), "f.gguf.part: cannot be written");
  EXPECT_FALSE(fs::exists(folder / "f.gguf"));
  EXPECT_EQ(fs::file_size(folder / "f.gguf.part"), 100000u);
}

TEST(ModelName, Names) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder.path().string());
  const test::ScopedVariable endpoint("HF_ENDPOINT", "http://host/");
  const test::ScopedVariable token("HF_TOKEN", "secret");
  const ModelName hf = parse_model_name("hf:some-one/re.po:sub/m-Q4_K_M.gguf");
  EXPECT_EQ(hf.url, "http://host/some-one/re.po/resolve/main/sub/m-Q4_K_M.gguf");
  EXPECT_EQ(hf.file, folder.path() / "models/hf/some-one/re.po/sub/m-Q4_K_M.gguf");
  EXPECT_EQ(hf.headers, std::vector<std::string>{"Authorization: Bearer secret"});
  const ModelName url = parse_model_name("https://host/a/m.gguf?download=true");
  EXPECT_EQ(url.file.filename(), "m.gguf");
  EXPECT_TRUE(url.headers.empty());
  EXPECT_NE(url.file, parse_model_name("https://other/a/m.gguf").file);
  EXPECT_EQ(parse_model_name("").text, "smollm2");
  EXPECT_EQ(parse_model_name("./x.gguf").source, ModelSource::path);
  for (const char* wrong : {"a b", "a\r\nX-Evil: 1", "a\x7f"}) {
    const test::ScopedVariable changed("HF_TOKEN", wrong);
    EXPECT_EQ(code_of([&] { parse_model_name("hf:a/b:c.gguf"); }), ErrorCode::kInvalidArgument);
  }
  for (const char* wrong :
       {"hf:", "hf:a/b", "hf:a:b.gguf", "hf:a/b:../c.gguf", "hf:../b:c.gguf", "hf:a/b:c/../d.gguf",
        "hf:a/b:/c.gguf", "hf:a/b:c.bin", "hf:a/b/c:d.gguf", "https://host/", "https://host/.."})
    EXPECT_EQ(code_of([&] { parse_model_name(wrong); }), ErrorCode::kInvalidArgument) << wrong;
  EXPECT_EQ(part_names("m-00002-of-00003.gguf"),
            (std::vector<std::string>{"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                      "m-00003-of-00003.gguf"}));
  EXPECT_EQ(part_names("m-0000x-of-00003.gguf").size(), 1u);
}

std::string model_bytes(const std::string& path, bool is_split = false, uint16_t part = 0) {
  static const std::string big(5 << 20, 'v');  // a header longer than the first range request
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  if (is_split) {
    writer.set("split.no", part);
    writer.set("split.count", uint16_t{2});
  } else {
    writer.set("big", big);
  }
  const float value[4] = {1, 2, 3, 4};
  writer.add_tensor("t" + std::to_string(part), {4}, DType::f32, std::as_bytes(std::span(value)));
  writer.write(path);
  return read_all(path);
}

TEST(ModelStore, AFolderThatIsNoModelIsTold) {
  const test::TemporaryFolder folder;
  try {
    resolve_model(folder / "", {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("has no config.json"), std::string::npos);
  }
}

TEST(ModelStore, FetchesListsAndRemoves) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  const test::TemporaryFolder folder;
  test::HttpServer server;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder / "cache");
  const test::ScopedVariable endpoint("HF_ENDPOINT", server.url(""));
  const test::ScopedVariable token("HF_TOKEN", "secret");
  const std::string content = model_bytes(folder / "m.gguf");
  server.serve("/u/r/resolve/main/m.gguf",
               {.linked_etag = "\"" + digest(content) + "\"", .redirect = "/blob"});
  server.serve("/blob", {.content = content, .etag = "\"x\""});
  const std::string name = "hf:u/r:m.gguf";
  EXPECT_EQ(find_model(name), "");
  {
    const ModelHeader header = ModelHeader::open(name);
    EXPECT_FALSE(header.is_local());
    EXPECT_EQ(header.file().file_bytes(), content.size());
    EXPECT_EQ(header.file().tensors().size(), 1u);
  }
  EXPECT_TRUE(stored_models().empty());
  const std::string path = resolve_model(name);
  EXPECT_EQ(read_all(path), content);
  EXPECT_EQ(server.requests().front().authorization, "Bearer secret");
  const size_t asked = server.requests().size();
  EXPECT_EQ(resolve_model(name), path);
  EXPECT_EQ(resolve_model("m.gguf"), path);
  EXPECT_TRUE(ModelHeader::open(name).is_local());
  EXPECT_EQ(server.requests().size(), asked) << "fetched once";
  EXPECT_EQ(recorded_sha256(path), digest(content));
  const auto models = stored_models();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, name);
  EXPECT_EQ(models[0].bytes, content.size());

  EXPECT_EQ(code_of([&] { resolve_model("absent.gguf"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { remove_model("absent.gguf"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { remove_model(folder / "m.gguf"); }), ErrorCode::kNotFound);
  EXPECT_EQ(remove_model(name), content.size());
  EXPECT_TRUE(stored_models().empty());
  EXPECT_TRUE(fs::is_empty(folder / "cache/models"));
  EXPECT_TRUE(fs::exists(folder / "m.gguf"));
}

TEST(ModelStore, AFailedFetchLeavesNothing) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  const test::TemporaryFolder folder;
  test::HttpServer server;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder / "cache");
  const test::ScopedVariable endpoint("HF_ENDPOINT", server.url(""));
  const auto is_empty = [&] {
    return stored_models().empty() &&
           (!fs::exists(folder / "cache/models") || fs::is_empty(folder / "cache/models"));
  };
  EXPECT_EQ(code_of([&] { resolve_model("hf:u/r:absent.gguf"); }), ErrorCode::kNotFound);
  EXPECT_TRUE(is_empty());
  server.serve("/u/r/resolve/main/closed.gguf", {.status = 401});
  EXPECT_EQ(code_of([&] { resolve_model("hf:u/r:closed.gguf"); }), ErrorCode::kNotFound);
  EXPECT_TRUE(is_empty());
  // The server sends a web page instead of the file.
  server.serve("/page.gguf", {.content = "<!DOCTYPE html><html>Please log in</html>"});
  std::string what;
  EXPECT_EQ(code_of([&] { resolve_model(server.url("/page.gguf")); }, &what),
            ErrorCode::kCorruptFile);
  EXPECT_NE(what.find("is not a model file"), std::string::npos) << what;
  EXPECT_TRUE(is_empty());
  // The second part of a model is missing.
  server.serve("/u/r/resolve/main/m-00001-of-00002.gguf",
               {.content = model_bytes(folder / "part", true, 0), .etag = "\"x\""});
  EXPECT_EQ(code_of([&] { resolve_model("hf:u/r:m-00001-of-00002.gguf"); }), ErrorCode::kNotFound);
  EXPECT_TRUE(is_empty());
}

TEST(ModelStore, SaysWhatTheChecksumWasComparedWith) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  const test::TemporaryFolder folder;
  test::HttpServer server;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder / "cache");
  const std::string content = model_bytes(folder / "m.gguf"), sum = "\"" + digest(content) + "\"";
  server.serve("/none/m.gguf", {.content = content, .etag = "\"x\""});
  server.serve("/own/m.gguf", {.content = content, .etag = sum});
  server.serve("/linked/m.gguf", {.linked_etag = sum, .redirect = "/none/m.gguf"});
  const auto last_note = [&](const std::string& path, const std::string& sha256 = "") {
    FetchOptions options;
    options.sha256 = sha256;
    std::string last;
    options.note = [&](const std::string& line) { last = line; };
    resolve_model(server.url(path), options);
    remove_model(server.url(path));
    return last;
  };
  EXPECT_EQ(
      last_note("/none/m.gguf"),
      "m.gguf: not verified, because no server sent a checksum; the sha256 is " + digest(content));
  EXPECT_NE(last_note("/own/m.gguf").find("no other source confirms it"), std::string::npos);
  EXPECT_EQ(last_note("/linked/m.gguf"),
            "m.gguf: the sha256 agrees with the one that the redirecting server sent");
  std::string capitals = digest(content);
  for (char& c : capitals) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(last_note("/none/m.gguf", capitals), "m.gguf: the sha256 agrees with the one given");
  EXPECT_EQ(code_of([&] { last_note("/none/m.gguf", "123"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { last_note("/m-00001-of-00002.gguf", capitals); }),
            ErrorCode::kInvalidArgument);
}

TEST(ModelStore, AnInterruptedFetchIsListedAndRemovedByItsName) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder / "cache");
  const fs::path file = fs::path(folder / "cache/models/hf/u/r") / "m.gguf";
  fs::create_directories(file.parent_path());
  std::ofstream(file.string() + ".part") << "GGUF and a little more";
  std::ofstream(file.string() + ".tag.part") << "\"one\"\n";
  ASSERT_EQ(stored_models().size(), 1u);
  EXPECT_FALSE(stored_models()[0].is_whole);
  EXPECT_EQ(remove_model("hf:u/r:m.gguf"), 22u);
  EXPECT_TRUE(fs::is_empty(folder / "cache/models"));
  // Bytes that are not the start of a model cannot be resumed.
  fs::create_directories(file.parent_path());
  std::ofstream(file.string() + ".part") << "";
  EXPECT_TRUE(stored_models().empty());
}

TEST(ModelStore, ASplitModelComesWithAllParts) {
  if (http_provider().empty()) GTEST_SKIP() << "neither libcurl nor curl is installed";
  const test::TemporaryFolder folder;
  test::HttpServer server;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder / "cache");
  const test::ScopedVariable endpoint("HF_ENDPOINT", server.url(""));
  for (uint16_t i = 0; i < 2; ++i) {
    const std::string part = "m-0000" + std::to_string(i + 1) + "-of-00002.gguf";
    server.serve("/u/r/resolve/main/" + part,
                 {.content = model_bytes(folder / part, true, i), .etag = "\"x\""});
  }
  const ModelHeader header = ModelHeader::open("hf:u/r:m-00001-of-00002.gguf");
  EXPECT_FALSE(header.is_local());
  ASSERT_EQ(header.file().tensors().size(), 2u);
  EXPECT_EQ(header.file().find_tensor("t1")->part, 1u);
  const std::string path = resolve_model("hf:u/r:m-00001-of-00002.gguf");
  EXPECT_EQ(GgufFile::open(path).tensors().size(), 2u);
  remove_model("hf:u/r:m-00002-of-00002.gguf");
  EXPECT_TRUE(stored_models().empty()) << "any part names the model";
}

}  // namespace
}  // namespace prism::llm
