#!/usr/bin/env bash
# Checks and measures the WebGPU backend on this machine's card, compared with Vulkan on the same card, and writes text
# and JSON files to a folder.
#
# usage: scripts/measure_webgpu.sh BUILD LIBRARY OUT [MODEL.gguf]
#   LIBRARY  wgpu-native's file, from the wheel `wgpu` 0.32: wgpu/resources/libwgpu_native-release.so (9.3 MB; it needs libc and
#            libm only), or Dawn's, from `dawn-python` 0.3: pydawn/lib/libwebgpu_dawn_x86_64.so (15.2 MB)
#   MODEL    a model for timing generation; default: none
# The loader must find the card's Vulkan driver: on a headless machine with NVIDIA's driver and no ICD file, write one
# that names libEGL_nvidia.so.0 and set VK_ICD_FILENAMES to it. If no loader is installed, put libvulkan.so.1 (the
# package libvulkan1, 0.5 MB) on LD_LIBRARY_PATH.
set -uo pipefail
build=${1:?usage: measure_webgpu.sh BUILD LIBRARY OUT [MODEL.gguf]} library=${2:?} out=${3:?} model=${4:-}
mkdir -p "$out"
export PRISM_WEBGPU_LIBRARY=$library PRISM_BACKENDS=cuda,vulkan,webgpu,cpu
failed=0

step() { # file, command...: prints the output and copies it to the file; remembers a failure
  local file=$out/$1
  shift
  echo "== $*"
  timeout 540 "$@" 2>"$file.err" | tee "$file"
  if [ "${PIPESTATUS[0]}" != 0 ]; then
    failed=1
    tail -n 5 "$file.err"
  fi
}

step devices.json "$build/prism" devices --json
step devices.txt "$build/prism" devices --verbose
step check.json "$build/prism" check --device webgpu:0 --json
step ops.json "$build/prism" check --ops --device webgpu:0 --json
step calibrate.txt "$build/prism" calibrate
step bench_ops.txt "$build/prism" bench ops --device webgpu:0
step bench_ops_vulkan.txt "$build/prism" bench ops --device vulkan:0
[ -x "$build/bench_devices" ] && step bench_devices.txt "$build/bench_devices" --device webgpu:0
[ -x "$build/bench_products" ] && step bench_products.txt "$build/bench_products" --device webgpu:0
if [ -n "$model" ]; then
  step bench_model.txt "$build/prism" bench --model "$model" --device webgpu:0
fi
[ $failed = 0 ] && echo "measure_webgpu: all ran; results in $out" || echo "measure_webgpu: a step failed; see $out/*.err"
exit $failed
