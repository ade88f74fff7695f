// Tests https with a certificate that is made here, through curl, and files that are wrong.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "support/run_program.h"
#include "support/running_http.h"

namespace prism::server {
namespace {

using test::RunningHttp;

class Https : public testing::Test {
 protected:
  void SetUp() override {
    if (!HttpServer::has_tls()) GTEST_SKIP() << "Prism was built without OpenSSL";
    for (const char* name : {"one", "other"})
      if (!make_certificate(name)) GTEST_SKIP() << "needs the program openssl";
  }
  bool make_certificate(const std::string& name) const {
    try {
      return test::run_process({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
                                "2", "-subj", "/CN=localhost", "-addext",
                                "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                                file(name + ".key"), "-out", file(name + ".pem")})
                 .status == 0;
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  std::string file(const std::string& name) const { return folder_ / name; }
  HttpOptions options(const std::string& certificate, const std::string& key) const {
    HttpOptions result;
    result.tls_certificate = certificate.empty() ? "" : file(certificate);
    result.tls_key = key.empty() ? "" : file(key);
    result.header_seconds = 0.5;
    result.port = 0;
    return result;
  }
  std::string message(const std::string& certificate, const std::string& key) const {
    try {
      HttpServer(options(certificate, key), test::echo);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "nothing was thrown";
  }

  test::TemporaryFolder folder_;
};

TEST_F(Https, CurlGetsAnswersAndStreams) {
  const RunningHttp running(options("one.pem", "one.key"),
                            [](const HttpRequest& request, const HttpResponse& response) {
                              if (request.path != "/stream") return test::echo(request, response);
                              response.start(200, {});
                              for (int i = 0; i < 1000; ++i) response.write("0123456789");
                              response.finish();
                            });
  EXPECT_TRUE(running.server.url().starts_with("https://127.0.0.1:"));
  const std::string url = running.server.url();
  const auto curl = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"curl", "--silent", "--show-error", "--max-time", "20"});
    return test::run_process(words);
  };
  try {
    const auto whole = curl({"--cacert", file("one.pem"), "-d", "body", url + "/a", url + "/b"});
    EXPECT_EQ(whole.output, "POST /a? bodyPOST /b? body");
    EXPECT_EQ(curl({"--cacert", file("one.pem"), url + "/stream"}).output.size(), 10000u);
    EXPECT_NE(curl({"--cacert", file("other.pem"), url}).status, 0);
    EXPECT_NE(curl({"--cacert", file("one.pem"), "--tls-max", "1.1", url}).status, 0);
  } catch (const std::runtime_error&) {
    GTEST_SKIP() << "needs the program curl";
  }
}

TEST_F(Https, WhatIsNotTlsIsCutOff) {
  const RunningHttp running(options("one.pem", "one.key"), test::echo);
  test::HttpClient plain(running.port()), silent(running.port()), half(running.port());
  plain.send_request("GET", "/");
  EXPECT_NE(plain.read_reply().status, 200);
  half.send("\x16\x03\x01");
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(half.is_closed());
  EXPECT_TRUE(running.wait_until_empty());
}

TEST_F(Https, WrongFilesAreNamed) {
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  };
  test::write_file(file("text.pem"), "not a certificate");
  has(message("missing.pem", "one.key"), "missing.pem");
  has(message("one.pem", "missing.key"), "missing.key");
  has(message("text.pem", "one.key"), "text.pem");
  has(message("one.pem", "text.pem"), "text.pem");
  has(message("one.pem", "other.key"), "other.key");  // of another certificate
  has(message("one.pem", ""), "--tls-key");
  has(message("", "one.key"), "--tls-cert");
}

}  // namespace
}  // namespace prism::server
