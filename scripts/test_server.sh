#!/usr/bin/env bash
# Tests `prism serve` through the official clients, which come from PyPI into a virtual environment in the build folder.
# usage: scripts/test_server.sh BUILD_FOLDER [TEST ...]
#   TEST   names of tests/server/clients without _test.py; default: all
set -euo pipefail
build=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
model="$root/../shared/models/stories260K.gguf"
packages="openai==3.49.0 anthropic==2.8.0 ollama==0.6.3 langchain-openai==1.7.3 jsonschema==4.26.0 mcp==2.3.0"

[ -f "$model" ] || { echo "test-server: skipped, it needs ../shared/models/stories260K.gguf"; exit 0; }
environment="$build/server-clients"
# shellcheck disable=SC2086
"$root/scripts/python_environment.sh" "$environment" $packages
# A cache folder of its own: an embedder that other tests fetched would answer in place of the model.
export PRISM_CACHE_DIR=$build/server-test-cache
[ $# -gt 0 ] || set -- openai responses anthropic ollama langchain schemas docs ending mcp
for test in "$@"; do
  echo "test-server: $test"
  "$environment/bin/python" "$root/tests/server/clients/${test}_test.py" "$build/prism" "$model"
done
