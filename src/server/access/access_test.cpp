// Tests who may send requests: keys, hosts, origins and addresses.
#include "server/access/access.h"

#include <gtest/gtest.h>

#include "prism/error.h"
#include "support/run_program.h"

namespace prism::server {
namespace {

HttpRequest request(HttpHeaders headers, const std::string& method = "POST") {
  return {.method = method, .path = "/v1/models", .headers = std::move(headers)};
}

int status(const Access& access, HttpHeaders headers, bool is_open = false) {
  const auto refusal = access.check(request(std::move(headers)), is_open);
  return refusal ? refusal->status : 200;
}

TEST(Access, OtherAddressesNeedAKey) {
  EXPECT_NO_THROW(Access({.address = "127.0.0.1"}));
  EXPECT_NO_THROW(Access({.address = "::1"}));
  EXPECT_NO_THROW(Access({.address = "0.0.0.0", .api_keys = {"k"}}));
  EXPECT_NO_THROW(Access({.address = "0.0.0.0", .no_auth = true}));
  try {
    Access({.address = "0.0.0.0"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("--api-key"), std::string::npos);
  }
}

TEST(Access, EmptyKeysAndWrongOriginsAreRefused) {
  EXPECT_THROW(Access({.address = "0.0.0.0", .api_keys = {""}}), Error);
  EXPECT_THROW(Access({.api_keys = {"k", ""}}), Error);
  for (const char* wrong : {"", "app.example", "https://", "://x", "https://a.b/path", "a b://c d"})
    EXPECT_THROW(Access({.cors = {wrong}}), Error) << wrong;
  for (const char* right : {"*", "null", "http://localhost:3000", "https://app.example"})
    EXPECT_NO_THROW(Access({.cors = {right}})) << right;
  const Access access({.cors = {"https://app.example/"}});
  EXPECT_EQ(status(access, {{"host", "localhost"}, {"origin", "https://app.example"}}), 200);
}

TEST(Access, KeysAreTakenFromBothHeaders) {
  const Access access({.api_keys = {"first", "second"}});
  EXPECT_EQ(status(access, {{"host", "localhost"}}), 401);
  EXPECT_EQ(status(access, {{"host", "localhost"}}, true), 200);
  EXPECT_EQ(status(access, {{"host", "x"}, {"authorization", "Bearer first"}}), 200);
  EXPECT_EQ(status(access, {{"host", "x"}, {"authorization", "bearer second"}}), 200);
  EXPECT_EQ(status(access, {{"host", "x"}, {"x-api-key", "second"}}), 200);
  for (const char* wrong : {"firs", "first ", "First", "secondfirst", ""})
    EXPECT_EQ(status(access, {{"host", "x"}, {"x-api-key", wrong}}), 401) << wrong;
  EXPECT_EQ(status(access, {{"host", "x"}, {"authorization", "Basic first"}}), 401);
  // One right key is enough.
  for (const char* wrong : {"Bearer no", "Bearer ", "Basic first"}) {
    EXPECT_EQ(status(access, {{"host", "x"}, {"authorization", wrong}, {"x-api-key", "first"}}),
              200);
    EXPECT_EQ(status(access, {{"host", "x"}, {"authorization", wrong}, {"x-api-key", "no"}}), 401);
  }
  EXPECT_EQ(status(access, {{"host", "x"}, {"authorization", "Bearer first"}, {"x-api-key", "no"}}),
            200);
}

TEST(Access, NamesOfOtherSitesAreRefused) {
  const Access access({.allow_hosts = {"Models.example"}});
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080",
                           "10.0.0.3", "a.localhost:1", "models.example:8080", "LOCALHOST"})
    EXPECT_EQ(status(access, {{"host", host}}), 200) << host;
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example",
                           "127.0.0.1.evil.example", "", "models.example.evil"})
    EXPECT_EQ(status(access, {{"host", host}}), 403) << host;
}

TEST(Access, PagesOfOtherOriginsAreRefused) {
  const Access access({.cors = {"https://app.example"}});
  const auto with = [&](const char* origin) {
    return status(access, {{"host", "localhost:8080"}, {"origin", origin}});
  };
  EXPECT_EQ(with("http://localhost:8080"), 200);
  EXPECT_EQ(with("https://app.example"), 200);
  EXPECT_EQ(with("http://localhost:3000"), 403);
  EXPECT_EQ(with("https://evil.example"), 403);
  EXPECT_EQ(with("https://app.example.evil"), 403);
  EXPECT_EQ(with("null"), 403);
  const Access any({.cors = {"*"}});
  EXPECT_EQ(status(any, {{"host", "localhost"}, {"origin", "null"}}), 200);
}

TEST(Access, CorsHeadersAreForAllowedOriginsOnly) {
  const Access access({.cors = {"https://app.example"}});
  EXPECT_TRUE(access.cors_headers(request({{"origin", "https://evil.example"}})).empty());
  EXPECT_TRUE(access.cors_headers(request({})).empty());
  const HttpHeaders headers =
      access.cors_headers(request({{"origin", "https://app.example"}}, "OPTIONS"));
  ASSERT_FALSE(headers.empty());
  EXPECT_EQ(headers[0].second, "https://app.example");
  EXPECT_TRUE(Access({}).cors_headers(request({{"origin", "https://app.example"}})).empty());
}

TEST(Access, KeysComeFromAFile) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "keys", "# two keys\none\r\n\n two\n");
  EXPECT_EQ(read_api_keys(folder / "keys"), (std::vector<std::string>{"one", " two"}));
  test::write_file(folder / "empty", "# none\n");
  EXPECT_THROW(read_api_keys(folder / "empty"), Error);
  EXPECT_THROW(read_api_keys(folder / "absent"), Error);
}

}  // namespace
}  // namespace prism::server
