#!/usr/bin/env bash
# Tests the Python package: makes the wheel, installs it into a fresh virtual environment in the build folder, checks its
# types, and runs python/tests there.
# usage: scripts/test_python.sh BUILD_FOLDER [ARGUMENTS OF PYTEST...]
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
shift
packages="pytest==9.2.0 numpy==2.4.6 pydantic==2.14.3 mypy==2.4.1 nanobind-backend==1.0.0"

"$root/scripts/wheel.sh" "$build"
environment="$build/python-tests"
if [ "$(cat "$environment/packages" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  # shellcheck disable=SC2086
  "$environment/bin/pip" install --quiet --disable-pip-version-check $packages
  echo "$packages" >"$environment/packages"
fi
"$environment/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$build"/wheel/*.whl
export PRISM_CACHE_DIR=${PRISM_CACHE_DIR:-$build/test-cache}
export PRISM_TEST_BUILD=$build
cd "$root"
"$environment/bin/python" -m mypy --cache-dir "$build/mypy-cache" python/tests/typed_use.py
"$environment/bin/python" -m mypy --cache-dir "$build/mypy-cache" --package prismrt
"$environment/bin/python" -X dev -m pytest -q -rs -p no:cacheprovider "$@"
