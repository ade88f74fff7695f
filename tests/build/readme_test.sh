#!/usr/bin/env bash
# The README's examples are those of examples/ to the letter, and the first prints what the README says.
# usage: tests/build/readme_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
"$1/scripts/update_readme.py" example --check --build "$2"
"$1/scripts/update_readme.py" generate --check --build "$2"  # run by examples_device_test
# Every file the documents link to is there.
cd "$1"
broken=0
for page in README.md docs/*.md; do
  while read -r target; do
    [ -e "$(dirname "$page")/$target" ] || { echo "$page links to $target, which is not there"; broken=1; }
  # Links only, not C++ lambdas in code: a page's links end in .md or a slash, or name a file of the root.
  done < <(grep -oE '\]\(([^)#: ]+(\.md|/)|[A-Z]+)[)#]' "$page" | sed 's/^](//; s/[)#]$//')
done
exit $broken
