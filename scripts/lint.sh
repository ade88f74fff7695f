#!/usr/bin/env bash
# Checks format, layers, vendor names, documented environment variables and clang-tidy; prints every complaint, then fails.
# usage: scripts/lint.sh [BUILD_FOLDER]   (with compile_commands.json, for clang-tidy)
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
status=0

# Checks the format of all files, and runs clang-tidy on those changed since the main branch, on LINT_FILES="a.cpp b.h",
# or on all with LINT_FILES=all.
base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD)
files=${LINT_FILES:-$(git diff --name-only --diff-filter=d "$base" -- '*.h' '*.cpp')}
[ "$files" = all ] && files=$(git ls-files '*.h' '*.cpp')

scripts/check_layout.sh || status=1
scripts/check_includes.py || status=1
scripts/check_vendor_names.py || status=1
scripts/check_environment.py || status=1

# shellcheck disable=SC2086
sources=$(printf '%s\n' $files | grep '^src/.*\.cpp$')
if [ -n "$sources" ]; then
  # compile_commands.json has the compiler's flags, and g++ has warnings that clang does not know.
  # shellcheck disable=SC2086
  complaints=$(printf '%s\n' $sources | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option 2>/dev/null |
    grep -E 'warning:|error:')
  [ -z "$complaints" ] || { echo "$complaints"; status=1; }
  # shellcheck disable=SC2086
  echo "clang-tidy: $(printf '%s\n' $sources | wc -l) files"
fi
[ $status = 0 ] && echo "lint: clean"
exit $status
