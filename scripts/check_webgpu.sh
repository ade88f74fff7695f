#!/usr/bin/env bash
# Runs every kernel with each WebGPU library of BUILD/devices.env, in parallel. Writes BUILD/check-NAME.json and
# BUILD/devices-NAME.json for the support table. usage: scripts/check_webgpu.sh BUILD
set -euo pipefail
build=$1
set -a
. "$build/devices.env"
set +a

check() { # name library
  export PRISM_BACKENDS=webgpu,cpu PRISM_WEBGPU_LIBRARY=$2
  "$build/prism" devices --json >"$build/devices-$1.json" 2>"$build/check-$1.log" &&
    "$build/prism" check --quick --device webgpu --json >"$build/check-$1.json" 2>>"$build/check-$1.log"
}

check wgpu-native "$PRISM_TEST_WGPU_LIBRARY" &
first=$!
check Dawn "$PRISM_TEST_DAWN_LIBRARY" &
second=$!
failed=0
wait $first || failed=1
wait $second || failed=1
if [ $failed = 1 ]; then
  cat "$build/check-wgpu-native.log" "$build/check-Dawn.log" >&2
  echo "check_webgpu: a kernel is wrong, or a library does not run: see $build/check-*.json" >&2
  exit 1
fi
echo "prism check: every kernel is right on WebGPU, with wgpu-native and with Dawn"
