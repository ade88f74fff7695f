# Builds a backend as a shared library: cmake --build BUILD --target prism_backend_X makes plugins/X.so (.dylib, .dll).
# A program loads it from the folder PRISM_PLUGINS, in addition to its own backends or instead of the one of that name.
foreach(backend IN LISTS PRISM_ENABLED_BACKENDS)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/${backend}/${backend}_backend.h AND NOT backend STREQUAL "cpu")
    set(entry ${CMAKE_BINARY_DIR}/plugins/${backend}_plugin.cpp)
    file(CONFIGURE OUTPUT ${entry} CONTENT
"// Written by cmake/plugin.cmake.
#include \"backends/@backend@/@backend@_backend.h\"
#include \"runtime/discovery/plugin.h\"
PRISM_BACKEND_PLUGIN(prism::make_@backend@_backend())
" @ONLY)
    add_library(prism_backend_${backend} MODULE EXCLUDE_FROM_ALL ${entry})
    set_target_properties(prism_backend_${backend} PROPERTIES PREFIX "" OUTPUT_NAME ${backend}
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
    target_link_libraries(prism_backend_${backend} PRIVATE prism_internal prism_warnings)
    if(NOT APPLE AND NOT WIN32)
      # Do not export its private copy of Prism's code.
      target_link_options(prism_backend_${backend} PRIVATE -Wl,--exclude-libs,ALL)
    endif()
  endif()
endforeach()
