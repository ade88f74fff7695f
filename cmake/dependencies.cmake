# Finds the libraries that Prism is built with. If some are missing, one message names all of them and their packages.
set(missing_dependencies "")
set(missing_packages "")

# prism_need(FOUND NAME DEBIAN_PACKAGE): notes a dependency that was not found.
function(prism_need found name package)
  if(NOT found)
    list(APPEND missing_dependencies ${name})
    list(APPEND missing_packages ${package})
    set(missing_dependencies ${missing_dependencies} PARENT_SCOPE)
    set(missing_packages ${missing_packages} PARENT_SCOPE)
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(fmt QUIET)
prism_need("${fmt_FOUND}" fmt libfmt-dev)
find_package(hwy QUIET)
prism_need("${hwy_FOUND}" Highway libhwy-dev)
find_package(PCRE2 QUIET)
prism_need("${PCRE2_FOUND}" PCRE2 libpcre2-dev)
find_package(nlohmann_json QUIET)  # headers only, inside .cpp files
prism_need("${nlohmann_json_FOUND}" nlohmann-json nlohmann-json3-dev)
if(PRISM_PROGRAM)
  find_package(CLI11 QUIET)
  prism_need("${CLI11_FOUND}" CLI11 libcli11-dev)
endif()
# Only the headers: neither library is linked.
if("vulkan" IN_LIST PRISM_ENABLED_BACKENDS)
  find_path(VULKAN_HEADERS vulkan/vulkan_core.h)
  prism_need("${VULKAN_HEADERS}" "the headers of Vulkan" libvulkan-dev)
endif()
if("opencl" IN_LIST PRISM_ENABLED_BACKENDS)
  find_path(OPENCL_HEADERS CL/cl.h)
  prism_need("${OPENCL_HEADERS}" "the headers of OpenCL" opencl-headers)
endif()
mark_as_advanced(VULKAN_HEADERS OPENCL_HEADERS)
if(PRISM_PYTHON)
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  prism_need("${Python_Development.Module_FOUND}" "the headers of Python" python3-dev)
endif()

if(missing_dependencies)
  list(JOIN missing_dependencies ", " names)
  list(JOIN missing_packages " " packages)
  message(FATAL_ERROR "Prism cannot be built, because these are missing: ${names}.\n"
          "On Debian and Ubuntu: apt install ${packages}\n"
          "Elsewhere install them with your package manager; CONTRIBUTING.md lists all that Prism needs.")
endif()
