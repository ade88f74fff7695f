#!/usr/bin/env bash
# Runs CMake if the build folder is new, or if a switch, the compiler or a flag has changed.
# usage: scripts/configure.sh BUILD_FOLDER [BACKEND]   (BACKEND: the only one besides the CPU; default: all)
set -euo pipefail
build=$1
only=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)

switches=$(env | grep -E '^(PRISM|GGML)_(CUDA|HIP|HIPBLAS|METAL|VULKAN|SYCL|OPENCL|WEBGPU)=' | sort || true)
wanted="$switches
only=$only
compiler=${CXX:-}
flags=${CMAKE_FLAGS:-}"
record="$build/configured_with.txt"
if [ -f "$build/build.ninja" ] && [ -f "$record" ] && [ "$(cat "$record")" = "$wanted" ]; then
  exit 0
fi
# CMake keeps the compiler of its first run, so another compiler needs another cache.
if [ -f "$record" ] && [ "$(grep '^compiler=' "$record")" != "compiler=${CXX:-}" ]; then
  rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
fi
mkdir -p "$build"
# shellcheck disable=SC2086
if ! cmake -G Ninja -S "$root" -B "$build" -DPRISM_ONLY="$only" ${CMAKE_FLAGS:-} >"$build/configure.log" 2>&1; then
  cat "$build/configure.log" >&2
  exit 1
fi
grep -E '^-- (backend |.* is built without )' "$build/configure.log" | sed 's/^-- //' >&2
printf '%s\n' "$wanted" >"$record"
