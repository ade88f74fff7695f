# Owns the compiler settings shared by all targets: language, build type, warnings, sanitizers, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
if(NOT MSVC)
  # Line tables only: full debug information doubles link time and disk. Assertions stay on.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Warnings are linked privately, so that they do not apply to users of the library.
add_library(prism_warnings INTERFACE)
option(PRISM_WARNINGS_AS_ERRORS "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
if(MSVC)
  target_compile_options(prism_warnings INTERFACE /W4 /utf-8 $<$<BOOL:${PRISM_WARNINGS_AS_ERRORS}>:/WX>)
else()
  target_compile_options(prism_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
    -Woverloaded-virtual -Wnull-dereference -Wvla $<$<BOOL:${PRISM_WARNINGS_AS_ERRORS}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports these inside the standard library's own inlined code at -O2.
    target_compile_options(prism_warnings INTERFACE -Wno-null-dereference -Wno-restrict
      -Wno-error=maybe-uninitialized -Wno-error=stringop-overflow -Wno-error=array-bounds)
  endif()
endif()

set(PRISM_SANITIZE "" CACHE STRING "Sanitizers for every target: address,undefined or thread; empty for none")
if(PRISM_SANITIZE)
  add_compile_options(-fsanitize=${PRISM_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PRISM_SANITIZE})
  if(PRISM_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
