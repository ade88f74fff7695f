#!/usr/bin/env bash
# Installs the build to a temporary folder and uses it as users do: find_package, pkg-config, each header alone.
# Then does the same with a shared library made of the same objects.
# usage: tests/build/install_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1
build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() { echo "$*"; exit 1; }
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
compiler=$(cached CMAKE_CXX_COMPILER)
sanitize=$(cached PRISM_SANITIZE)
flags=(${sanitize:+-fsanitize=$sanitize})
jobs=$(nproc 2>/dev/null || echo 2)

cmake --install "$build" --prefix "$place/prefix" >"$place/install.log"

# Headers: exactly those of include/prism; each compiles on its own and exports its declarations.
(cd "$source/include" && find . -name '*.h' | sort) >"$place/wanted"
(cd "$place/prefix/include" && find . -type f | sort) >"$place/found"
diff "$place/wanted" "$place/found" || fail "installed headers (>) are not those of include/prism (<)"
! grep -rl "$source" "$place/prefix/include" || fail "an installed header names the source folder"
while read -r header; do
  grep -q '^namespace prism' "$place/prefix/include/$header" || continue
  grep -q '^#pragma GCC visibility push(default)' "$place/prefix/include/$header" ||
    fail "$header: its declarations are hidden in a shared library; put \"#pragma GCC visibility push(default)\" before them"
done <"$place/found"
mkdir "$place/alone"
while read -r header; do
  name=$(tr '/.' '__' <<<"${header#./}")
  echo "#include <${header#./}>" >"$place/alone/$name.cpp"
done <"$place/found"
find "$place/alone" -name '*.cpp' -print0 |
  xargs -0 -n 4 -P "$jobs" "$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$place/prefix/include" ||
  fail "a public header does not compile on its own"
echo "$(wc -l <"$place/found") public headers, each compiles on its own"

# Size: without debug information. The limit applies to release build types only.
kilobytes=$(du -sk "$place/prefix" | cut -f1)
echo "the whole install takes $((kilobytes / 1024)) MiB"
case "$(cached CMAKE_BUILD_TYPE)$sanitize" in
  RelWithDebInfo | Release | MinSizeRel) [ "$kilobytes" -le $((48 * 1024)) ] || fail "it should take at most 48 MiB" ;;
esac
if command -v readelf >/dev/null && [ "$(cached PRISM_STRIP)" = ON ]; then
  for file in "$place"/prefix/bin/* "$place"/prefix/lib*/libprism.*; do
    ! readelf -S "$file" 2>/dev/null | grep -q '\.debug_line' || fail "$file was not stripped"
  done
fi

# use PREFIX FOLDER: builds the examples and a program with its own headers against an installed copy, and runs them.
# The examples are copied, so that they cannot include files of the source tree by accident.
mkdir "$place/examples"
cp "$source"/examples/*.cpp "$place/examples/"
use() {
  local prefix=$1 folder=$2 model=$source/../shared/models/stories260K.gguf ran=0 example name
  cp -r "$source/tests/build/install" "$folder"
  cmake -G Ninja -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLES="$place/examples" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="${flags[*]}" >"$folder/configure.log"
  cmake --build "$folder/build"
  "$folder/build/own_headers"
  # The training examples take minutes; training_examples_test runs them for a few steps.
  for example in "$place"/examples/*.cpp; do
    name=$(basename "$example" .cpp)
    case $name in char_gpt | mnist | moons) continue ;; esac
    echo "== $name"
    # The optional argument of an example is the device; for examples with a language model it is the model.
    if ! grep -q LanguageModel "$example"; then
      "$folder/build/$name" cpu
    elif [ -f "$model" ]; then
      "$folder/build/$name" "$model"
    else
      echo "built and not run: there is no $model"
      continue
    fi
    ran=$((ran + 1))
  done
  [ "$ran" -gt 0 ] || fail "no example was built"
  echo "$ran examples built and run against the installed copy"
}

# use_pkg_config PREFIX PROGRAM WORDS...: builds one example with the flags from pkg-config and runs it.
use_pkg_config() {
  local prefix=$1 program=$2
  shift 2
  if ! command -v pkg-config >/dev/null; then
    echo "pkg-config is not installed; prism.pc was not tried"
    return
  fi
  local folder
  folder=$(dirname "$(find "$prefix" -name prism.pc)")
  # shellcheck disable=SC2046
  PKG_CONFIG_PATH=$folder "$compiler" "${flags[@]}" "$place/examples/vector_add.cpp" -o "$program" \
    $(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs "$@" prism)
  LD_LIBRARY_PATH=$(dirname "$folder") "$program" cpu
}

use "$place/prefix" "$place/static"
use_pkg_config "$place/prefix" "$place/by_pkg_config" --static

# A figure to compare from time to time. It is not a test, because the machine may be busy.
begun=$(date +%s%N)
"$compiler" -std=c++20 -fsyntax-only -I "$place/prefix/include" "$place/alone/prism_prism_h.cpp"
echo "a program that includes <prism/prism.h> compiles in $((($(date +%s%N) - begun) / 1000000)) ms"

# The shared library: made of the same objects, with only the public API visible.
case "$(uname -s)" in Linux) ;; *) exit 0 ;; esac
mapfile -t switches < <(grep -E '^PRISM_(ONLY|CUDA|HIP|METAL|VULKAN|SYCL|OPENCL|WEBGPU):' "$build/CMakeCache.txt" | sed 's/^/-D/')
cmake -G Ninja -S "$source" -B "$place/shared_build" "${switches[@]}" -DBUILD_SHARED_LIBS=ON -DPRISM_OBJECTS_FROM="$build" \
  -DPRISM_PROGRAM=OFF -DPRISM_TESTS=OFF -DPRISM_BENCHES=OFF -DCMAKE_CXX_COMPILER="$compiler" -DPRISM_SANITIZE="$sanitize" \
  >"$place/shared.log" 2>&1 || { cat "$place/shared.log"; fail "a shared build does not configure"; }
cmake --build "$place/shared_build"
cmake --install "$place/shared_build" --prefix "$place/shared_prefix" >"$place/install.log"
library=$(find "$place/shared_prefix" -name 'libprism.so')
[ -n "$library" ] || fail "the shared install has no libprism.so"
[ -z "$(find "$place/shared_prefix" -name '*.a')" ] || fail "the shared install has an archive"
nm -DC --defined-only "$library" >"$place/symbols"
for name in 'prism::Tensor::' 'prism::Device::named(' 'prism::ones(' 'prism::llm::LanguageModel::' 'typeinfo for prism::Error'; do
  grep -qF "$name" "$place/symbols" || fail "the shared library lacks $name"
done
# Uses mangled names, because standard library templates over internal types are not symbols of Prism.
internals='^_ZNK?(5prism(3cpu|4cuda|2ir2vm|16make_cpu_backend|9calibrate)|3fmt)'
! nm -D --defined-only "$library" | cut -d' ' -f3 | grep -m 3 -E "$internals" || fail "the shared library shows internals"
echo "the shared library shows $(grep -c 'prism::' "$place/symbols") symbols of Prism"
use "$place/shared_prefix" "$place/shared"
use_pkg_config "$place/shared_prefix" "$place/by_pkg_config"
