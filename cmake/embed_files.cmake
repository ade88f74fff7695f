# Writes files as constants of a C++ source: cmake -DLIST=files.txt -DOUTPUT=page_files.cpp -DGZIP=gzip -P embed_files.cmake
# LIST has a line SERVED_PATH=FILE for each. Texts are compressed if there is a gzip.
set(type_of_html "text/html; charset=utf-8")
set(type_of_css "text/css; charset=utf-8")
set(type_of_js "text/javascript; charset=utf-8")
set(type_of_svg "image/svg+xml")
set(type_of_txt "text/plain; charset=utf-8")
set(type_of_woff2 "font/woff2")

set(code "")
set(rows "")
set(number 0)
file(STRINGS ${LIST} pairs)
foreach(pair IN LISTS pairs)
  string(REGEX MATCH "^([^=]*)=(.*)$" matched "${pair}")
  set(served ${CMAKE_MATCH_1})
  set(file ${CMAKE_MATCH_2})
  string(REGEX MATCH "[^.]*$" extension ${served})
  if(NOT DEFINED type_of_${extension})
    message(FATAL_ERROR "${file}: files with the ending .${extension} have no type; add it to cmake/embed_files.cmake")
  endif()

  set(is_gzip false)
  set(content ${file})
  if(GZIP AND NOT extension STREQUAL "woff2")
    set(is_gzip true)
    set(content ${OUTPUT}.gz)
    execute_process(COMMAND ${GZIP} -9nc ${file} OUTPUT_FILE ${content} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(SHA256 ${file} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  file(SIZE ${content} size)
  file(READ ${content} bytes HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  string(APPEND code "constexpr char kFile${number}[] =\n    \"${bytes}\";\n")
  string(APPEND rows "    {\"${served}\", \"${type_of_${extension}}\", \"\\\"${hash}\\\"\", ${is_gzip}, {kFile${number}, ${size}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(REMOVE ${OUTPUT}.gz)

file(WRITE ${OUTPUT} "// Written by cmake/embed_files.cmake.
#include \"server/page/page_files.h\"

namespace prism::server {
namespace {

${code}
constexpr PageFile kFiles[] = {
${rows}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace prism::server
")
