#!/usr/bin/env bash
# Tests the README and the pages: examples and commands run, code prints the output shown, every file that a page names or
# links to exists, and lines of prose are short.
# usage: tests/build/readme_test.sh SOURCE_FOLDER BUILD_FOLDER
set -uo pipefail
source=$1
build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failures=0

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

cd "$source"
for part in examples summary; do scripts/update_readme.py $part --check --build "$build" || complain "README.md: $part"; done
for page in tensor-tutorial kernels training; do
  scripts/docs_snippets.py check "docs/$page.md" "$build/docs_$page" || complain "docs/$page.md"
done

# block LANGUAGE: prints the README's blocks in that language, without comments.
block() {
  sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" README.md | grep -v '^```' | sed 's/  *#.*//'
}

# Runs the commands in a folder where model.gguf is a small model. Commands that would fetch the default model only show
# their help.
mkdir "$place/bin" && ln -s "$build/prism" "$place/bin/prism"
model=$source/../shared/models/stories260K.gguf
commands=0
while read -r line; do
  case $line in
    *model.gguf*) [ -f "$model" ] || { echo "not run, there is no $model: $line"; continue; } ;;
    *) line="$line --help" ;;
  esac
  ln -sf "$model" "$place/model.gguf"
  (cd "$place" && PATH="$place/bin:$PATH" PRISM_DEVICE=cpu bash -c "$line" >log 2>&1 </dev/null) ||
    complain "README.md: \"$line\" fails: $(tail -3 "$place/log")"
  commands=$((commands + 1))
done < <(block sh)
echo "README.md: $commands commands run"

# The CMake lines must appear in the project that install_test.sh builds.
while read -r line; do
  grep -qF "${line/my_program/\$\{name\}}" tests/build/install/CMakeLists.txt || complain "README.md: \"$line\" is in no test"
done < <(block cmake)

python3 scripts/check_pages.py || complain "pages"
[ $failures = 0 ]
