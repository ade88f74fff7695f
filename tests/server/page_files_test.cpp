// Tests how the chat page is served: without a key, with its policy, and not at all with has_page
// off.
#include <gtest/gtest.h>

#include "support/models/expected_text.h"
#include "support/running_server.h"

namespace prism::server {
namespace {

using test::ClientReply;
using test::RunningServer;

ServerOptions options() {
  ServerOptions options = RunningServer::with_model(test::shared_model("stories260K"));
  options.loads_first = false;
  options.access.api_keys = {"secret"};
  return options;
}

// Empty if absent.
std::string header(const ClientReply& reply, const std::string& name) {
  const auto found = reply.headers.find(name);
  return found == reply.headers.end() ? "" : found->second;
}

TEST(PageFiles, NeedNoKey) {
  const RunningServer server(options());
  EXPECT_EQ(server.get("/v1/models").status, 401);
  const ClientReply page = server.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(header(page, "content-type"), "text/html; charset=utf-8");
  for (const char* each : {"main.js", "style.css", "icon.svg", "licences.txt", "lib/marked.js",
                           "lib/purify.js", "lib/katex.js", "lib/katex.css"})
    EXPECT_EQ(server.get(std::string("/page/") + each).status, 200) << each;
  EXPECT_EQ(header(server.get("/page/main.js"), "content-type"), "text/javascript; charset=utf-8");
  for (const char* each :
       {"/page/", "/page/none.js", "/page/../server.cpp", "/page/%2e%2e/main.js"})
    EXPECT_EQ(server.get(each).status, 404) << each;
  EXPECT_EQ(server.post("/", "{}", {"Authorization: Bearer secret"}).status, 405);
}

TEST(PageFiles, PolicyAllowsNothingInline) {
  const RunningServer server(options());
  const ClientReply page = server.get("/");
  const std::string policy = header(page, "content-security-policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
  EXPECT_EQ(policy.find("unsafe"), policy.npos);
  EXPECT_EQ(header(page, "x-content-type-options"), "nosniff");
}

TEST(PageFiles, BrowserKeepsThemUntilTheyChange) {
  const RunningServer server(options());
  const std::string etag = header(server.get("/"), "etag");
  ASSERT_GT(etag.size(), 2u);
  const ClientReply same = server.get("/", {"If-None-Match: " + etag});
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
  EXPECT_EQ(server.get("/", {"If-None-Match: \"other\""}).status, 200);
  EXPECT_NE(header(server.get("/page/main.js"), "etag"), etag);
}

TEST(PageFiles, CanBeSwitchedOff) {
  ServerOptions without = options();
  without.has_page = false;
  const RunningServer server(std::move(without));
  EXPECT_EQ(server.get("/", {"Authorization: Bearer secret"}).status, 404);
  EXPECT_EQ(server.get("/page/main.js", {"Authorization: Bearer secret"}).status, 404);
  EXPECT_EQ(server.get("/health").status, 200);
}

}  // namespace
}  // namespace prism::server
