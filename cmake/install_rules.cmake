# Owns the files that `cmake --install` installs: public headers, the library, the program,
# find_package(Prism), prism.pc.
include(CMakePackageConfigHelpers)

option(PRISM_STRIP "Strip what is installed: debug information is most of its size" ON)
if(PRISM_STRIP)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)")
endif()

target_include_directories(prism INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(DIRECTORY include/prism DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

install(TARGETS prism EXPORT PrismTargets)
if(PRISM_STRIP AND NOT BUILD_SHARED_LIBS AND CMAKE_STRIP)
  # CMake does not strip archives, because a plain strip would remove symbols that linking needs.
  if(APPLE)
    set(strip_options -S)
  else()
    set(strip_options --strip-unneeded)
  endif()
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" ${strip_options}
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:prism>\")")
endif()
if(TARGET prism_program)
  install(TARGETS prism_program)
  include(completions)
endif()

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Prism)
install(EXPORT PrismTargets NAMESPACE Prism:: DESTINATION ${config_folder})
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/PrismConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/PrismConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/PrismConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/PrismConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/PrismConfigVersion.cmake
  DESTINATION ${config_folder})

# Users of a static Prism also link its dependencies (`pkg-config --static`). A shared one includes them.
set(pkg_requires "")
set(pkg_libraries "")
if(NOT BUILD_SHARED_LIBS)
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/cmake/FindPCRE2.cmake DESTINATION ${config_folder})
  set(pkg_requires "fmt libhwy libpcre2-8 zlib")
  list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE pkg_libraries)
  list(JOIN pkg_libraries " " pkg_libraries)
  set(pkg_libraries "${pkg_libraries} ${CMAKE_THREAD_LIBS_INIT} -pthread")
endif()
set(pkg_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkg_prefix /${pkg_folder} /)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/prism.pc.in ${CMAKE_CURRENT_BINARY_DIR}/prism.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/prism.pc DESTINATION ${pkg_folder})
