#!/usr/bin/env bash
# Tests the completion scripts: always in bash, and in zsh and fish if they are installed.
# usage: tests/build/completions_test.sh SOURCE_FOLDER BUILD_FOLDER
set -uo pipefail
build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failures=0

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

for shell in bash zsh fish; do
  "$build/prism" completion $shell >"$place/$shell" || complain "prism completion $shell"
done
"$build/prism" completion tcsh >"$place/log" 2>&1 && complain "an unknown shell was accepted"
grep -q 'bash, zsh' "$place/log" || complain "the error does not list the shells: $(cat "$place/log")"

# The installed files equal what the program prints.
cmp -s "$place/bash" "$build/completions/prism" || complain "build/completions/prism is stale"
cmp -s "$place/zsh" "$build/completions/_prism" || complain "build/completions/_prism is stale"
cmp -s "$place/fish" "$build/completions/prism.fish" || complain "build/completions/prism.fish is stale"

for folder in bash-completion/completions zsh/site-functions fish/vendor_completions.d; do
  grep -q "share/$folder" "$build/cmake_install.cmake" || complain "nothing is installed to share/$folder"
done

source "$place/bash"
complete -p prism | grep -q -- '-F _prism' || complain "bash knows no function for prism"

# completes WORDS... EXPECTED: completes the last of WORDS and expects EXPECTED among the results.
completes() {
  local expected=${!#}
  COMP_WORDS=("${@:1:$#-1}")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _prism
  printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$expected" ||
    complain "\"${COMP_WORDS[*]}\" does not complete to $expected; bash offers: ${COMPREPLY[*]}"
}
completes prism '' run
completes prism ch chat
completes prism kernel '' show
completes prism kernel show vector vector_add_f32
completes prism kernel show vector_add_f32 --lang sp spirv
completes prism run --tem --temperature
completes prism run model.gguf --device vul vulkan
completes prism completion z zsh
COMP_WORDS=(prism run -p '') COMP_CWORD=3 COMPREPLY=(x)
_prism
[ ${#COMPREPLY[@]} = 0 ] || complain "the value of -p is completed to ${COMPREPLY[*]}"

if command -v zsh >/dev/null; then
  zsh -n "$place/zsh" || complain "zsh finds a syntax error"
  zsh -f -c "autoload -U compinit && compinit -D -u && source $place/zsh && [[ \$_comps[prism] == _prism ]]" ||
    complain "zsh knows no function for prism"
else
  echo "zsh is not installed: its script is not checked"
fi
if command -v fish >/dev/null; then
  fish --no-execute "$place/fish" || complain "fish finds a syntax error"
  fish --no-config -c "source $place/fish; complete -C 'prism kernel sh'" | grep -q '^show' || complain "fish does not complete prism kernel sh"
  fish --no-config -c "source $place/fish; complete -C 'prism run --tem'" | grep -q -- '^--temperature' ||
    complain "fish does not complete prism run --tem"
else
  echo "fish is not installed: its script is not checked"
fi

[ $failures = 0 ] || exit 1
echo "completions: all as expected"
