#!/usr/bin/env bash
# Tests that the examples in the comments of include/prism compile, and that a broken one is found.
# usage: tests/build/header_examples_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1
build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")

python3 "$source/tests/build/header_examples.py" "$source" "$compiler"

cp -r "$source/include" "$place/include"
printf '%s\n' '// A header.' '//' '//   Tensor x = no_such_function();' >"$place/include/prism/broken.h"
if python3 "$source/tests/build/header_examples.py" "$place" "$compiler" 2>"$place/log"; then
  echo "an example that does not compile was passed"
  exit 1
fi
grep -q 'broken.h:3.*no_such_function' "$place/log" || { echo "the example's line is not named:"; cat "$place/log"; exit 1; }
