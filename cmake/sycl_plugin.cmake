# Owns the SYCL plug-in: a wrapper around SYCL's C++ interface that the program loads at run time. Built if SYCL's headers and
# library are found in PRISM_SYCL_ROOT, in an environment set up by oneAPI's setvars.sh, or in oneAPI's usual folder. Needs no SYCL
# compiler.
set(roots $ENV{PRISM_SYCL_ROOT} $ENV{PRISM_TEST_SYCL_ROOT} $ENV{CMPLR_ROOT} /opt/intel/oneapi/compiler/latest)
find_path(PRISM_SYCL_INCLUDE sycl/sycl.hpp HINTS ${roots} PATH_SUFFIXES include)
find_library(PRISM_SYCL_LIBRARY sycl HINTS ${roots} PATH_SUFFIXES lib)
mark_as_advanced(PRISM_SYCL_INCLUDE PRISM_SYCL_LIBRARY)
if(NOT PRISM_SYCL_INCLUDE OR NOT PRISM_SYCL_LIBRARY)
  message(STATUS "SYCL plug-in: not built, no sycl/sycl.hpp with libsycl found (PRISM_SYCL_ROOT names their folder)")
  return()
endif()
message(STATUS "SYCL plug-in: built against ${PRISM_SYCL_INCLUDE}")

file(GLOB sycl_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/sycl/plugin/*.cpp)
add_library(prism_sycl MODULE ${sycl_sources})
target_compile_definitions(prism_sycl PRIVATE SYCL_DISABLE_FSYCL_SYCLHPP_WARNING)
target_include_directories(prism_sycl SYSTEM PRIVATE ${PRISM_SYCL_INCLUDE})
target_link_libraries(prism_sycl PRIVATE prism_internal prism_warnings fmt::fmt ${PRISM_SYCL_LIBRARY})
if(NOT APPLE AND NOT WIN32)
  target_link_options(prism_sycl PRIVATE -Wl,--exclude-libs,ALL)  # do not export its private copy of Prism's code
endif()
set_target_properties(prism_sycl PROPERTIES CXX_VISIBILITY_PRESET hidden INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS prism_sycl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
