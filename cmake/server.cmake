# Builds the HTTP server (src/server/) as a library of its own, so that libprism does not depend on Boost. Without
# Boost's headers Prism is built without the command serve.
option(PRISM_SERVER "Build the command serve, which needs the headers of Boost 1.74 or newer" ON)
set(server_tests "")
if(PRISM_SERVER AND PRISM_PROGRAM)
  # The version that set-up installs comes before others.
  find_path(BOOST_BEAST_INCLUDE_DIR boost/beast/version.hpp)
  mark_as_advanced(BOOST_BEAST_INCLUDE_DIR)
  if(NOT BOOST_BEAST_INCLUDE_DIR)
    message(STATUS "Prism is built without the command serve: no headers of Boost found (on Debian: apt install libboost1.81-dev)")
  else()
    file(GLOB server_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/server/*.cpp
         ${CMAKE_CURRENT_SOURCE_DIR}/src/server/*/*.cpp)
    set(server_tests ${server_sources})
    list(FILTER server_sources EXCLUDE REGEX "_test\\.cpp$")
    list(FILTER server_tests INCLUDE REGEX "_test\\.cpp$")
    include(page)
    list(APPEND server_sources ${page_source})
    set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/server/version.cpp PROPERTIES COMPILE_DEFINITIONS
                                "PRISM_VERSION=\"${PROJECT_VERSION}\"")
    add_library(prism_server STATIC ${server_sources})
    set_target_properties(prism_server PROPERTIES POSITION_INDEPENDENT_CODE ON)  # also part of the Python module
    target_include_directories(prism_server SYSTEM PRIVATE ${BOOST_BEAST_INCLUDE_DIR})
    target_link_libraries(prism_server PUBLIC prism_internal PRIVATE prism_warnings fmt::fmt Threads::Threads)
    # The parts of Boost are headers: none of its libraries is linked.
    target_compile_definitions(prism_server PRIVATE BOOST_ERROR_CODE_HEADER_ONLY BOOST_ALL_NO_LIB)
    if(PRISM_SANITIZE)
      target_compile_options(prism_server PRIVATE -O0)
    elseif(NOT MSVC AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
      # The APIs are compiled for size: a token takes less than 3 microseconds in the server all the same.
      set(api_sources ${server_sources})
      list(FILTER api_sources INCLUDE REGEX "/src/server/api/")
      set_source_files_properties(${api_sources} PROPERTIES COMPILE_OPTIONS -Os)
    endif()
    find_package(OpenSSL)
    if(OpenSSL_FOUND)
      target_compile_definitions(prism_server PRIVATE PRISM_HAS_TLS=1)
      target_link_libraries(prism_server PRIVATE OpenSSL::SSL OpenSSL::Crypto)
    else()
      message(STATUS "prism serve is built without TLS: no OpenSSL found (on Debian: apt install libssl-dev)")
    endif()
  endif()
endif()
