// An error as clients see it, before an API writes it in its own format.
#pragma once

#include <exception>
#include <string>

#include "base/json.h"
#include "server/http/http_message.h"

namespace prism::server {

class ApiError : public std::exception {
 public:
  ApiError(int status, std::string message, std::string field = {}, std::string code = {})
      : status_(status),
        message_(std::move(message)),
        field_(std::move(field)),
        code_(std::move(code)) {}
  // Translates what was thrown: a caller's mistake is 400, a full queue 429, a failure 500.
  // text_field: the field that is named where a text does not fit the context.
  static ApiError from(const std::exception_ptr& thrown, const std::string& text_field = {});

  const char* what() const noexcept override { return message_.c_str(); }
  int status() const { return status_; }
  const std::string& field() const { return field_; }  // of the request; empty: none
  const std::string& code() const { return code_; }    // for programs; empty: none
  // Further figures for programs, and a type other than that of the status; both may be empty.
  const Json& figures() const { return figures_; }
  const std::string& type() const { return type_; }
  HttpHeaders headers() const;  // retry-after and the like

 private:
  int status_;
  std::string message_, field_, code_, type_;
  Json figures_;
};

}  // namespace prism::server
