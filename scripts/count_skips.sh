#!/usr/bin/env bash
# Counts the tests that the last ctest run skipped, by reason, including those inside a program that passed.
# usage: scripts/count_skips.sh BUILD_FOLDER
set -euo pipefail
awk '/: Skipped$/ { if ((getline reason) > 0) { count[reason]++; all++ } }
     END { printf "skipped: %d\n", all; for (reason in count) printf "%5d  %s\n", count[reason], reason | "sort -rn" }' \
  "$1/Testing/Temporary/LastTest.log"
