#!/usr/bin/env bash
# Fails if a source file is not formatted by clang-format; lists each with the number of places.
set -uo pipefail
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || { echo "layout: clang-format not found; run scripts/setup.sh lint" >&2; exit 1; }

complaints=$(git ls-files '*.h' '*.cpp' | xargs -r clang-format --dry-run --Werror 2>&1 | grep 'error:' | cut -d: -f1 | sort | uniq -c |
  sed 's/^ *\([0-9]*\) \(.*\)/\2: \1 places not formatted; run `make format`/')
[ -z "$complaints" ] && { echo "layout: $(git ls-files '*.h' '*.cpp' | wc -l) files"; exit 0; }
echo "$complaints"
exit 1
