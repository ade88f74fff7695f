// One GET request with libcurl's C interface or with the program curl.
#include "llm/store/http.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>

#include "base/system/dynamic_library.h"
#include "base/system/process.h"
#include "llm/store/http_headers.h"
#include "prism/error.h"

namespace prism {

namespace {

constexpr const char* kAgent = "prism";
constexpr int kMostRedirects = 10;
constexpr int kLeastSpeed = 1000;  // bytes a second; slower transfers count as stalled

// Passes an answer to the callbacks, for both providers: headers, then content; a callback that
// returns false ends it.
struct Transfer {
  const HttpRequest& request;
  HttpHeaders headers;
  bool is_told = false, is_ended = false;
  std::exception_ptr thrown;

  bool content(std::span<const std::byte> bytes) {
    if (is_ended) return false;
    if (!tell()) return false;
    is_ended = request.content && !request.content(bytes);
    return !is_ended;
  }
  void fail(const std::string& problem) {
    if (headers.answer().problem.empty()) headers.answer().problem = problem;
  }
  bool tell() {
    if (is_told) return !is_ended;
    is_told = true;
    is_ended = request.answer && !request.answer(headers.answer());
    return !is_ended;
  }
};

std::string range_of(const HttpRequest& request) {
  if (request.first_byte == 0 && request.byte_count == 0) return "";
  std::string range = std::to_string(request.first_byte) + "-";
  if (request.byte_count > 0) range += std::to_string(request.first_byte + request.byte_count - 1);
  return range;
}

bool is_secure(const HttpRequest& request) { return request.url.starts_with("https://"); }

// A file of certificates in place of the system's; empty: the system's.
std::string trusted_certificates() {
  const char* const file = std::getenv("SSL_CERT_FILE");
  return file ? file : "";
}

// Why a redirect was not followed.
std::string refused_redirect(Transfer& transfer) {
  constexpr size_t kMostShown = 200;
  const auto& headers = transfer.headers.answer().headers;
  const auto location = headers.find("location");
  const std::string to =
      location == headers.end() ? "another address" : location->second.substr(0, kMostShown);
  if (is_secure(transfer.request))
    return "the server redirects from https to " + to +
           ", which is not https; fetch that address itself if you trust it";
  return "the server redirects to " + to + ", which is neither http nor https";
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// A header could add further lines to the request, and to the program curl "@name" is a file.
void check_request(const HttpRequest& request) {
  if (!request.url.starts_with("http://") && !is_secure(request))
    throw Error(ErrorCode::kInvalidArgument, request.url + ": is no http or https address");
  if (has_control_characters(request.url) || request.url.find(' ') != std::string::npos)
    throw Error(ErrorCode::kInvalidArgument,
                "an address contains a space or a control character; write them as %20 and so on");
  for (const std::string& line : request.headers) {
    const std::string name = line.substr(0, line.find(':'));
    const bool is_name =
        !name.empty() && name.size() < line.size() &&
        std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-'; });
    if (!is_name || has_control_characters(line))
      throw Error(ErrorCode::kInvalidArgument, request.url + ": the header " +
                                                   (is_name ? name : "of a request") +
                                                   " contains a control character or is no header");
  }
}

// --- the library. Its header is not needed, because the numbers of options never change.
enum CurlOption {
  kWriteData = 10001,
  kUrl = 10002,
  kRange = 10007,
  kErrorBuffer = 10010,
  kUserAgent = 10018,
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kFollowLocation = 52,
  kCaInfo = 10065,
  kMaxRedirects = 68,
  kConnectTimeout = 78,
  kNoSignal = 99,
  kSuppressConnectHeaders = 265,
  kProtocols = 181,
  kRedirectProtocols = 182,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
};
constexpr long kHttp = 1, kHttps = 2;
// A result of the library, and an exit status of the program.
constexpr int kUnsupportedProtocol = 1;

struct Curl {
  DynamicLibrary library;
  int (*global_init)(long) = nullptr;
  void* (*easy_init)() = nullptr;
  int (*easy_setopt)(void*, int, ...) = nullptr;
  int (*easy_perform)(void*) = nullptr;
  void (*easy_cleanup)(void*) = nullptr;
  const char* (*easy_strerror)(int) = nullptr;
  void* (*slist_append)(void*, const char*) = nullptr;
  void (*slist_free_all)(void*) = nullptr;
  const char* (*version)() = nullptr;
};

template <class Function>
bool load(const DynamicLibrary& library, const char* name, Function& function) {
  function = library.function<Function>(name);
  return function != nullptr;
}

// Opened once; null if there is no library or PRISM_CURL_LIBRARY is "none".
const Curl* curl() {
  const char* const named = std::getenv("PRISM_CURL_LIBRARY");
  if (named && std::string_view(named) == "none") return nullptr;
  static const std::unique_ptr<Curl> opened = [&] {
    auto api = std::make_unique<Curl>();
    if (named && *named)
      api->library = DynamicLibrary::open_first({named});
    else
      api->library = DynamicLibrary::open_first(
          {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4", "libcurl.4.dylib",
           "libcurl.dylib", "libcurl.dll", "libcurl-x64.dll"});
    if (!api->library) return std::unique_ptr<Curl>();
    api->library.keep_open();
    const DynamicLibrary& from = api->library;
    const bool is_whole = load(from, "curl_global_init", api->global_init) &&
                          load(from, "curl_easy_init", api->easy_init) &&
                          load(from, "curl_easy_setopt", api->easy_setopt) &&
                          load(from, "curl_easy_perform", api->easy_perform) &&
                          load(from, "curl_easy_cleanup", api->easy_cleanup) &&
                          load(from, "curl_easy_strerror", api->easy_strerror) &&
                          load(from, "curl_slist_append", api->slist_append) &&
                          load(from, "curl_slist_free_all", api->slist_free_all) &&
                          load(from, "curl_version", api->version);
    if (!is_whole || api->global_init(3) != 0) return std::unique_ptr<Curl>();
    return api;
  }();
  return opened.get();
}

// C code calls these, so no exception may leave them.
size_t take_content(char* data, size_t, size_t bytes, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  try {
    return transfer.content(std::as_bytes(std::span(data, bytes))) ? bytes : 0;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
}
size_t take_header(char* data, size_t, size_t bytes, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  try {
    return transfer.headers.line({data, bytes}) ? bytes : 0;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
}

void get_by_library(const Curl& api, Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  const std::unique_ptr<void, void (*)(void*)> handle(api.easy_init(), api.easy_cleanup);
  if (!handle) throw Error(ErrorCode::kIo, request.url + ": libcurl gives no handle");
  std::unique_ptr<void, void (*)(void*)> lines(nullptr, api.slist_free_all);
  for (const std::string& line : request.headers) {
    void* const longer = api.slist_append(lines.get(), line.c_str());
    if (!longer) throw Error(ErrorCode::kOutOfMemory, request.url + ": headers");
    (void)lines.release();
    lines.reset(longer);
  }
  const std::string range = range_of(request);
  std::array<char, 256> reason{};
  const auto set = [&](int option, auto value) { api.easy_setopt(handle.get(), option, value); };
  set(kUrl, request.url.c_str());
  set(kUserAgent, kAgent);
  set(kErrorBuffer, reason.data());
  set(kNoSignal, 1L);
  set(kFollowLocation, 1L);
  set(kMaxRedirects, static_cast<long>(kMostRedirects));
  set(kProtocols, kHttp | kHttps);
  set(kRedirectProtocols, is_secure(request) ? kHttps : kHttp | kHttps);
  set(kSuppressConnectHeaders, 1L);
  set(kConnectTimeout, static_cast<long>(request.connect_seconds));
  set(kLowSpeedLimit, static_cast<long>(kLeastSpeed));
  set(kLowSpeedTime, static_cast<long>(request.stall_seconds));
  set(kWriteFunction, &take_content);
  set(kWriteData, static_cast<void*>(&transfer));
  set(kHeaderFunction, &take_header);
  set(kHeaderData, static_cast<void*>(&transfer));
  const std::string trusted = trusted_certificates();
  if (!trusted.empty()) set(kCaInfo, trusted.c_str());
  if (!range.empty()) set(kRange, range.c_str());
  if (lines) set(kHttpHeader, lines.get());
  const int code = api.easy_perform(handle.get());
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code == kUnsupportedProtocol)
    transfer.fail(refused_redirect(transfer));
  else if (code != 0)
    transfer.fail(reason[0] ? reason.data() : api.easy_strerror(code));
}

// --- the program: its standard output begins with the headers of all answers.
std::string exit_text(int status) {
  switch (status) {
    case 6:
      return "the host's name cannot be resolved";
    case 7:
      return "the host cannot be connected to";
    case 18:
      return "the transfer ended before its end";
    case 28:
      return "the transfer was too slow or did not begin";
    case 35:
    case 60:
      return "the host's certificate or TLS was refused";
    case 8:
      return "the answer is not valid HTTP (its status or a header)";
    case 47:
      return "there are more than " + std::to_string(kMostRedirects) + " redirects";
    case 52:
      return "the server closed the connection without an answer";
    case 56:
      return "the answer breaks off or is malformed";
    default:
      return "curl ended with status " + std::to_string(status);
  }
}

void get_by_program(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  std::vector<std::string> words = {"curl",
                                    "--disable",  // no ~/.curlrc, whose options could differ
                                    "-sSLi",
                                    "--globoff",
                                    "--suppress-connect-headers",
                                    "--user-agent",
                                    kAgent,
                                    "--proto",
                                    "=http,https",
                                    "--proto-redir",
                                    is_secure(request) ? "=https" : "=http,https",
                                    "--max-redirs",
                                    std::to_string(kMostRedirects),
                                    "--connect-timeout",
                                    std::to_string(request.connect_seconds),
                                    "--speed-time",
                                    std::to_string(request.stall_seconds),
                                    "--speed-limit",
                                    std::to_string(kLeastSpeed)};
  if (const std::string range = range_of(request); !range.empty())
    words.insert(words.end(), {"-r", range});
  if (const std::string trusted = trusted_certificates(); !trusted.empty())
    words.insert(words.end(), {"--cacert", trusted});
  // Other users can see a program's arguments, so the secret header is not among them.
  for (const std::string& line : request.headers)
    if (!line.starts_with("Authorization:")) words.insert(words.end(), {"-H", line});
  words.insert(words.end(), {"--", request.url});
  std::string line;
  const int status = read_process(words, [&](std::span<const std::byte> bytes) {
    while (!transfer.headers.is_final() && !bytes.empty()) {
      const auto c = static_cast<char>(bytes.front());
      bytes = bytes.subspan(1);
      line += c;
      if (c != '\n' && line.size() <= HttpHeaders::kMostBytes) continue;
      if (!transfer.headers.line(line)) return false;
      line.clear();
    }
    return bytes.empty() || transfer.content(bytes);
  });
  if (transfer.is_ended)
    transfer.fail("ended by the caller");
  else if (status == kUnsupportedProtocol)
    transfer.fail(refused_redirect(transfer));
  else if (status != 0)
    transfer.fail(exit_text(status));
}

bool has_program() {
  static const bool found = run_process({"curl", "--version"}, nullptr) == 0;
  return found;
}

}  // namespace

std::string http_provider() {
  if (const Curl* const api = curl()) {
    const std::string version = api->version();
    return version.substr(0, version.find(' '));
  }
  return has_program() ? "the program curl" : "";
}

HttpAnswer http_get(const HttpRequest& request) {
  check_request(request);
  Transfer transfer{request, {}, false, false, nullptr};
  if (const Curl* const api = curl())
    get_by_library(*api, transfer);
  else if (has_program())
    get_by_program(transfer);
  else
    throw Error(ErrorCode::kNotSupported,
                request.url +
                    ": cannot be fetched, because neither the library libcurl nor the program curl "
                    "is installed (Debian: apt install libcurl4); or download it by other means "
                    "and name the file");
  HttpAnswer& answer = transfer.headers.answer();
  if (!transfer.headers.is_final())
    throw HttpNoAnswer(request.url + ": no whole answer came: " +
                       (answer.problem.empty() ? "the server sent no status" : answer.problem));
  transfer.tell();
  return std::move(answer);
}

}  // namespace prism
