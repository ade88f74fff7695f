// Tests that addresses and headers of requests arrive as they are, or are refused.
#include "llm/store/http.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "prism/error.h"
#include "support/http_provider.h"
#include "support/http_server.h"
#include "support/run_program.h"
#include "support/scoped_variable.h"

namespace prism {
namespace {

class Http : public test::HttpProviderTest {
 protected:
  void expect_refused(const HttpRequest& request) {
    try {
      http_get(request);
      ADD_FAILURE() << "sent: " << request.url;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    }
    EXPECT_TRUE(server_.requests().empty());
  }
  test::HttpServer server_;
};
INSTANTIATE_TEST_SUITE_P(By, Http, testing::Values(false, true), test::provider_name);

TEST_P(Http, AddressesAreNotPatterns) {
  const std::string path = "/{a,b}/m[1-3].gguf";
  server_.serve(path, {.content = "GGUF"});
  std::string content;
  HttpRequest request;
  request.url = server_.url(path);
  request.content = [&](std::span<const std::byte> bytes) {
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  };
  EXPECT_EQ(http_get(request).status, 200);
  EXPECT_EQ(content, "GGUF");
  ASSERT_EQ(server_.requests().size(), 1u);
  EXPECT_EQ(server_.requests()[0].path, path);
}

TEST_P(Http, HeadersCannotAddLinesOrNameFiles) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "lines", "X-Secret: 1\n");
  for (const std::string& line :
       {std::string("Authorization: a\r\nX-Evil: 1"), std::string("If-Range: a\nX-Evil: 1"),
        std::string("A: b\0c", 6), "@" + (folder / "lines"), std::string("no header"),
        std::string(": nameless")}) {
    HttpRequest request;
    request.url = server_.url("/f");
    request.headers = {line};
    expect_refused(request);
  }
}

TEST_P(Http, AddressesWithControlCharactersAreRefused) {
  for (const char* ending : {"/a b", "/a\r\nX-Evil: 1", "/a\tb", "/a\x7f"}) {
    HttpRequest request;
    request.url = server_.url(ending);
    expect_refused(request);
  }
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/f", "-o/tmp/f", ""}) {
    HttpRequest request;
    request.url = url;
    expect_refused(request);
  }
}

// An option of ~/.curlrc would change what the program prints.
TEST_P(Http, TheUsersSettingsOfCurlAreNotRead) {
  const test::TemporaryFolder home;
  test::write_file(home / ".curlrc", "output = " + (home / "stolen") + "\n");
  const test::ScopedVariable changed("HOME", home.path().string());
  server_.serve("/f", {.content = "GGUF"});
  HttpRequest request;
  request.url = server_.url("/f");
  EXPECT_EQ(http_get(request).status, 200);
  EXPECT_FALSE(std::filesystem::exists(home / "stolen"));
}

}  // namespace
}  // namespace prism
