#!/usr/bin/env bash
# Installs the build to a folder of its own, builds the examples against that copy with find_package, runs them.
# usage: tests/build/install_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1
build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

cmake --install "$build" --prefix "$place/prefix" >"$place/install.log"
for file in include/prism/prism.h include/prism/base/error.h include/prism/runtime/device.h; do
  [ -f "$place/prefix/$file" ] || { echo "$file was not installed"; exit 1; }
done
if find "$place/prefix/include" -name '*.h' -exec grep -l "$source" {} + ; then
  echo "an installed header names the source folder"
  exit 1
fi

# Copied, so that nothing beside them can be included by accident.
mkdir "$place/examples"
cp "$source"/examples/*.cpp "$place/examples/"
cp "$source/tests/install/CMakeLists.txt" "$place/"
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
sanitize=$(sed -n 's/^PRISM_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
cmake -G Ninja -S "$place" -B "$place/build" -DCMAKE_PREFIX_PATH="$place/prefix" -DEXAMPLES="$place/examples" \
  -DCMAKE_CXX_COMPILER="$compiler" ${sanitize:+-DCMAKE_CXX_FLAGS=-fsanitize=$sanitize} >"$place/configure.log"
cmake --build "$place/build"

model=$source/../shared/models/stories260K.gguf
ran=0
for example in "$place"/examples/*.cpp; do
  name=$(basename "$example" .cpp)
  echo "== $name"
  # An example takes the device as its one optional word, but for those over a language model: that takes the model.
  if ! grep -q LanguageModel "$example"; then
    "$place/build/$name" cpu
  elif [ -f "$model" ]; then
    "$place/build/$name" "$model"
  else
    echo "built and not run: there is no $model"
    continue
  fi
  ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || { echo "no example was built"; exit 1; }
echo "$ran examples built and run against the installed copy"
