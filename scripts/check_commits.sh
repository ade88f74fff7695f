#!/usr/bin/env bash
# Fails when the subject of a new commit breaks the rules of CONTRIBUTING.md, and names each one.
# A subject has at most 72 characters, begins with a capital letter and does not end with a full stop.
# usage: scripts/check_commits.sh [REPOSITORY [BASE SINCE]]
# Commits after BASE are new. A clone too shallow to have BASE is checked by date: its last 20 commits after SINCE.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
base=${2:-d1e2e27bea568484b076d8d8779b65cb423b6916}
since=${3:-2026-11-17T03:06:28Z}

git rev-parse --git-dir >/dev/null 2>&1 || { echo "commits: not a git checkout, nothing to check"; exit 0; }
if git merge-base --is-ancestor "$base" HEAD 2>/dev/null; then
  range=("$base..HEAD")
else
  range=(-20 "--since=$since" HEAD)
fi

count=0
complaints=0
while IFS=$'\t' read -r commit subject; do
  [ -n "$commit" ] || continue
  count=$((count + 1))
  reason=""
  [ ${#subject} -le 72 ] || reason="has ${#subject} characters, at most 72 are allowed"
  [[ $subject != *. ]] || reason="ends with a full stop"
  [[ $subject == [[:upper:]]* ]] || reason="does not begin with a capital letter"
  [ -z "$reason" ] || { echo "$commit: the subject $reason: $subject"; complaints=$((complaints + 1)); }
done < <(git log --no-merges --format='%h%x09%s' "${range[@]}")
echo "commits: $count subjects, $complaints complaints"
[ $complaints = 0 ]
