# Embeds the files of the chat page (src/server/page/) and the libraries it uses: sets page_source to a C++ file.
# The libraries are Debian's; where one is absent, a file with a comment takes its place, and the page does without.

set(page_sources ${CMAKE_CURRENT_SOURCE_DIR}/src/server/page)
set(page_folder ${CMAKE_CURRENT_BINARY_DIR}/page)
set(page_pairs "")  # SERVED_PATH=FILE
set(page_depends "")

function(prism_page_file served file)
  set(page_pairs ${page_pairs} "${served}=${file}" PARENT_SCOPE)
  set(page_depends ${page_depends} ${file} PARENT_SCOPE)
endfunction()

file(GLOB page_own CONFIGURE_DEPENDS ${page_sources}/*.html ${page_sources}/*.css ${page_sources}/*.js
     ${page_sources}/*.svg)
foreach(file IN LISTS page_own)
  get_filename_component(name ${file} NAME)
  prism_page_file(${name} ${file})
endforeach()

# prism_page_library(VARIABLE SERVED_PATH PACKAGE PURPOSE PATHS...): finds one file of a library.
set(page_notices "")
function(prism_page_library variable served package purpose)
  find_file(${variable} NAMES ${ARGN} PATHS /usr/share/javascript /usr/share/nodejs /usr/local/share/javascript NO_CACHE)
  if(${variable})
    prism_page_file(${served} ${${variable}})
    set(page_notices ${page_notices} ${package} PARENT_SCOPE)
  else()
    message(STATUS "the page of prism serve is built without ${purpose} (on Debian: apt install ${package})")
    file(CONFIGURE OUTPUT ${page_folder}/${served} CONTENT "/* Prism was built without this library. */\n")
    prism_page_file(${served} ${page_folder}/${served})
  endif()
  set(page_pairs ${page_pairs} PARENT_SCOPE)
  set(page_depends ${page_depends} PARENT_SCOPE)
endfunction()

prism_page_library(page_marked lib/marked.js libjs-marked "Markdown" marked/marked.min.js)
prism_page_library(page_purify lib/purify.js node-dompurify "a sanitiser, so without Markdown" dompurify/dist/purify.min.js)
prism_page_library(page_katex lib/katex.js libjs-katex "mathematics" katex/katex.min.js)
prism_page_library(page_katex_css lib/katex.css libjs-katex "the styles of mathematics" katex/katex.min.css)
if("libjs-katex" IN_LIST page_notices)
  file(GLOB page_fonts /usr/share/fonts/truetype/katex/*.woff2)
  foreach(file IN LISTS page_fonts)
    get_filename_component(name ${file} NAME)
    prism_page_file(lib/fonts/${name} ${file})
  endforeach()
  list(APPEND page_notices fonts-katex)
endif()

# The licences of the libraries go with them.
list(REMOVE_DUPLICATES page_notices)
set(page_licences "The chat page of Prism contains these packages of Debian, each under its own licence.\n")
foreach(package IN LISTS page_notices)
  set(notice "See /usr/share/doc/${package}/copyright on a Debian system.\n")
  if(EXISTS /usr/share/doc/${package}/copyright)
    file(READ /usr/share/doc/${package}/copyright notice)
  endif()
  string(APPEND page_licences "\n==== ${package}\n\n${notice}")
endforeach()
file(CONFIGURE OUTPUT ${page_folder}/licences.txt CONTENT "@page_licences@" @ONLY)
prism_page_file(licences.txt ${page_folder}/licences.txt)

find_program(PRISM_GZIP gzip)
mark_as_advanced(PRISM_GZIP)
list(JOIN page_pairs "\n" page_list)
file(CONFIGURE OUTPUT ${page_folder}/files.txt CONTENT "@page_list@" @ONLY)
set(page_source ${page_folder}/page_files.cpp)
add_custom_command(OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -DLIST=${page_folder}/files.txt -DOUTPUT=${page_source} -DGZIP=${PRISM_GZIP}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_files.cmake
  DEPENDS ${page_depends} ${page_folder}/files.txt ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_files.cmake
  COMMENT "Embedding the chat page" VERBATIM)
