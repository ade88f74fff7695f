// Tests TLS from both ends: the server's, and downloads, which never leave https for http.
#include <filesystem>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "llm/store/http.h"
#include "prism/error.h"
#include "server/http/http_server.h"
#include "support/http_provider.h"
#include "support/http_server.h"
#include "support/run_program.h"
#include "support/scoped_variable.h"

namespace prism::server {
namespace {

// A certificate for 127.0.0.1 that signs itself. Absent without the program openssl.
struct Certificate {
  test::TemporaryFolder folder;
  std::string file = folder / "certificate.pem", key = folder / "key.pem";
  bool is_made = false;

  Certificate() {
    const test::ProcessResult made = test::run_process(
        {"sh", "-c",
         "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
         "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout \"$1\" -out \"$2\"",
         "sh", key, file});
    is_made = made.status == 0;
  }
};

class Tls : public test::HttpProviderTest {
 protected:
  static void SetUpTestSuite() { certificate_ = new Certificate; }
  static void TearDownTestSuite() { delete certificate_; }

  void SetUp() override {
    if (!server::HttpServer::has_tls()) GTEST_SKIP() << "this build has no OpenSSL";
    if (!certificate_->is_made) GTEST_SKIP() << "the program openssl makes no certificate";
    HttpProviderTest::SetUp();
    if (IsSkipped()) return;
    trusted_.emplace("SSL_CERT_FILE", certificate_->file);
    server_.emplace(
        HttpOptions{.port = 0, .tls_certificate = certificate_->file, .tls_key = certificate_->key},
        [this](const server::HttpRequest& request, const HttpResponse& response) {
          if (request.path == "/file") return response.send({.body = "the content"});
          response.send({302, {{"Location", redirect_}}, "go"});
        });
    thread_ = std::thread([this] { server_->run(); });
  }
  void TearDown() override {
    if (!server_) return;
    server_->stop(0);
    thread_.join();
  }

  std::string get(const std::string& path) {
    std::string content;
    prism::HttpRequest request;
    request.url = server_->url() + path;
    request.content = [&](std::span<const std::byte> bytes) {
      content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    };
    const HttpAnswer answer = http_get(request);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.problem, "");
    return content;
  }
  std::string error_of(const std::string& path) {
    try {
      return "no error, but: " + get(path);
    } catch (const HttpNoAnswer& error) {
      return error.what();
    }
  }

  static Certificate* certificate_;
  std::optional<test::ScopedVariable> trusted_;
  std::string redirect_;  // where every path but /file leads
  std::optional<HttpServer> server_;
  std::thread thread_;
};
Certificate* Tls::certificate_ = nullptr;
INSTANTIATE_TEST_SUITE_P(By, Tls, testing::Values(false, true), test::provider_name);

TEST_P(Tls, ServesAClientThatTrustsItsCertificate) {
  EXPECT_TRUE(server_->url().starts_with("https://")) << server_->url();
  EXPECT_EQ(get("/file"), "the content");
}

TEST_P(Tls, AnUnknownCertificateIsRefused) {
  trusted_.reset();
  const std::string error = error_of("/file");
  EXPECT_NE(error.find("certificate"), std::string::npos) << error;
}

TEST_P(Tls, RedirectsToHttpsAreFollowed) {
  redirect_ = server_->url() + "/file";
  EXPECT_EQ(get("/elsewhere"), "the content");
}

// Whoever controls the network could replace what comes from there.
TEST_P(Tls, RedirectsToHttpAreRefused) {
  test::HttpServer plain;
  plain.serve("/file", {.content = "the content"});
  redirect_ = plain.url("/file");
  const std::string error = error_of("/elsewhere");
  EXPECT_NE(error.find("redirects from https to " + redirect_ + ", which is not https"),
            std::string::npos)
      << error;
  EXPECT_TRUE(plain.requests().empty());
}

}  // namespace
}  // namespace prism::server
