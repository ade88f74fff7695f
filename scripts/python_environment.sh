#!/usr/bin/env bash
# Makes a virtual environment with packages from PyPI, unless it has them.
# usage: scripts/python_environment.sh FOLDER PACKAGE...
set -euo pipefail
environment=$1
shift
[ "$(cat "$environment/packages" 2>/dev/null)" != "$*" ] || exit 0
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check "$@"
echo "$*" >"$environment/packages"
