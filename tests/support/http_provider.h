// A fixture that runs each test with libcurl and with the program curl.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "llm/store/http.h"
#include "support/scoped_variable.h"

namespace prism::test {

class HttpProviderTest : public testing::TestWithParam<bool> {  // true: the program
 protected:
  void SetUp() override {
    if (GetParam()) program_.emplace("PRISM_CURL_LIBRARY", "none");
    if (http_provider().empty() || (!GetParam() && http_provider() == "the program curl"))
      GTEST_SKIP() << (GetParam() ? "the program curl" : "libcurl") << " is not installed";
  }

 private:
  std::optional<ScopedVariable> program_;
};

inline std::string provider_name(const testing::TestParamInfo<bool>& test) {
  return test.param ? "Program" : "Library";
}

}  // namespace prism::test
