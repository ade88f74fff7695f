#!/usr/bin/env bash
# Tests the backend switches: their order of precedence, and that a changed switch reconfigures the build.
# usage: tests/build/switches_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
build="$place/build"
unset PRISM_CUDA PRISM_HIP PRISM_METAL PRISM_VULKAN PRISM_SYCL PRISM_OPENCL PRISM_WEBGPU GGML_CUDA GGML_HIP GGML_HIPBLAS
# Only switches are tested here; tests, examples and benches would make configuring slow.
export CMAKE_FLAGS="-DPRISM_TESTS=OFF -DPRISM_EXAMPLES=OFF -DPRISM_BENCHES=OFF"
failures=0

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect STEP BACKEND on|off BY: checks the record in the build folder and the flags of the backend list.
expect() {
  local upper=${2^^} value=${3^^} define
  grep -qx "set(BUILT_${upper}_ON $value)" "$build/backend_switches.cmake" || complain "$1: $2 is not $3"
  grep -qx "set(BUILT_${upper}_BY \"$4\")" "$build/backend_switches.cmake" ||
    complain "$1: $2 was decided by $(grep "BUILT_${upper}_BY" "$build/backend_switches.cmake"), not by $4"
  define=off
  if grep -A12 'backends/backends.cpp.o:' "$build/build.ninja" | grep -q "DPRISM_HAS_$upper="; then define=on; fi
  [ "$define" = "$3" ] || complain "$1: the list of backends is compiled with $2 $define"
}

configure() { "$source/scripts/configure.sh" "$build" "$@" 2>"$place/log"; }

configure
for backend in cuda hip metal vulkan sycl opencl webgpu; do expect "nothing set" $backend on default; done

PRISM_CUDA=0 configure
expect "environment" cuda off "environment PRISM_CUDA"
expect "environment" vulkan on default

configure
expect "environment taken away" cuda on default
configure
[ ! -s "$place/log" ] || complain "an unchanged switch configured again"

configure vulkan
expect "target" vulkan on "target build-vulkan"
expect "target" cuda off "target build-vulkan"

PRISM_VULKAN=0 GGML_CUDA=1 configure vulkan
expect "variable over target" vulkan off "environment PRISM_VULKAN"
expect "alias over target" cuda on "environment GGML_CUDA"

GGML_HIPBLAS=off PRISM_SYCL=no GGML_SYCL=1 configure
expect "old alias" hip off "environment GGML_HIPBLAS"
expect "own name over alias" sycl off "environment PRISM_SYCL"

CMAKE_FLAGS="$CMAKE_FLAGS -DPRISM_OPENCL=OFF" PRISM_METAL=0 configure cpu
expect "CMake option" opencl off "CMake option PRISM_OPENCL"
expect "cpu alone" webgpu off "target build-cpu"

if PRISM_CUDA=maybe configure; then complain "PRISM_CUDA=maybe was accepted"; fi
grep -q 'PRISM_CUDA is "maybe"; use 1 or 0' "$place/log" || complain "no clear message for PRISM_CUDA=maybe"

PRISM_HIP=0 cmake -DBUILD="$build" -P "$source/cmake/show_backends.cmake" >"$place/table"
grep -q '^hip: off (environment PRISM_HIP' "$place/table" || complain "show-backends does not show the environment"
grep -q '^cpu: on (always)' "$place/table" || complain "show-backends does not show the cpu"
grep -q '^    missing  framework: Metal exists on macOS only' "$place/table" || [ "$(uname)" = Darwin ] ||
  complain "show-backends does not say what is missing"

[ $failures = 0 ] || exit 1
echo "switches: all as expected"
