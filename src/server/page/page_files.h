// The files of the chat page, as cmake/page.cmake embedded them into the program.
#pragma once

#include <span>
#include <string_view>

namespace prism::server {

struct PageFile {
  std::string_view path;  // relative to /page/: "style.css"; "index.html" is the page itself
  std::string_view type;  // for the header content-type
  std::string_view etag;  // a hash of the content, in quotes
  bool is_gzip = false;   // `bytes` is compressed
  std::string_view bytes;
};

std::span<const PageFile> page_files();

}  // namespace prism::server
