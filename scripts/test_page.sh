#!/usr/bin/env bash
# Tests the chat page of `prism serve` in Chromium. Selenium comes from PyPI into a virtual environment in the build folder.
# usage: scripts/test_page.sh BUILD_FOLDER [TEST...]
set -euo pipefail
build=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
model="$root/../shared/models/stories260K.gguf"
packages="selenium==4.41.0"

[ -f "$model" ] || { echo "test-page: skipped, it needs ../shared/models/stories260K.gguf"; exit 0; }
environment="$build/page-browser"
# shellcheck disable=SC2086
"$root/scripts/python_environment.sh" "$environment" $packages
export PRISM_CACHE_DIR=${PRISM_CACHE_DIR:-$build/test-cache}
"$environment/bin/python" "$root/tests/server/page/run_tests.py" "$build" "$model" "$@"
