#!/usr/bin/env bash
# Checks layout, layers, vendor names and a short list of mistakes; prints every complaint, then fails.
# usage: scripts/lint.sh [BUILD_FOLDER]   (with compile_commands.json, for clang-tidy)
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
status=0

git ls-files -z '*.h' '*.cpp' | xargs -0 -r clang-format --dry-run --Werror 2>&1 | grep -E 'error:' | cut -d: -f1 |
  sort | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/\2: \1 places laid out otherwise; run `make format`/' | tee "$build/format.log"
[ -s "$build/format.log" ] && status=1
scripts/check_includes.py || status=1
scripts/check_vendor_names.py || status=1
scripts/check_environment.py || status=1

# clang-tidy takes seconds a file: the files changed since main, or a sample with LINT_FILES.
files=${LINT_FILES:-$(git diff --name-only --diff-filter=d "$(git merge-base HEAD origin/main 2>/dev/null || echo HEAD~1)" -- 'src/*.cpp' 2>/dev/null | head -20)}
if [ -n "$files" ] && [ -f "$build/compile_commands.json" ]; then
  # shellcheck disable=SC2086
  clang-tidy --quiet -p "$build" $files 2>/dev/null | grep -E 'warning:|error:' && status=1
  echo "clang-tidy: $(wc -w <<<"$files") files"
fi
exit $status
