// The chat page at /, and its files at /page/.
#include "server/page/page_files.h"

#include <algorithm>

#include "server/api/api.h"

namespace prism::server {
namespace {

// The page may only load its own files and talk to its own server. Scripts and styles inside HTML
// are refused, and only the sanitiser may turn text into HTML (Trusted Types), so text of a model
// can never run as script.
constexpr const char* kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify";

const PageFile* find_file(std::string_view path) {
  constexpr std::string_view kFolder = "/page/";
  const std::string_view name = path == "/" ? "index.html" : path.substr(kFolder.size());
  const auto found = std::ranges::find(page_files(), name, &PageFile::path);
  return found == page_files().end() ? nullptr : &*found;
}

}  // namespace

void page_file(const ApiCall& call) {
  const PageFile* file = find_file(call.request.path);
  if (!file) throw ApiError(404, "there is no " + call.request.path + " on this server");
  HttpReply reply;
  // The browser keeps files, but asks each time whether they are still those of this program.
  reply.headers = {{"etag", std::string(file->etag)},
                   {"cache-control", "no-cache"},
                   {"content-security-policy", kContentSecurityPolicy},
                   {"x-content-type-options", "nosniff"},
                   {"referrer-policy", "no-referrer"},
                   {"cross-origin-resource-policy", "same-origin"}};
  if (call.request.header("if-none-match").find(file->etag) != std::string_view::npos) {
    reply.status = 304;
    return call.response.send(std::move(reply));
  }
  reply.headers.emplace_back("content-type", file->type);
  // Every browser accepts gzip, so there is no other form.
  if (file->is_gzip) reply.headers.emplace_back("content-encoding", "gzip");
  reply.body = file->bytes;
  call.response.send(std::move(reply));
}

}  // namespace prism::server
