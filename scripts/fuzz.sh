#!/usr/bin/env bash
# Builds the fuzzers and runs each for some time on a copy of its corpus; a crash saves its input in the build folder.
# usage: scripts/fuzz.sh [SECONDS_EACH] [NAME...]     (NAME: gguf for fuzz/gguf_fuzz.cpp; default: all)
# FUZZ_RUNS=N runs the same N inputs each time (a fixed seed) within the time limit; without it, inputs are new.
# FUZZ_TOTAL=N goes on, over several calls, until each fuzzer has run N inputs: corpora and counts stay in the build folder.
# It begins with the counts of fuzz/counts.txt, where those of earlier machines are kept.
# FUZZ_SANITIZE=OFF leaves out ASan and UBSan, and runs several times as many inputs. The inputs that it finds are then run
# with them: FUZZ_CORPUS=build-fuzz-fast/corpus scripts/fuzz.sh begins with the inputs in that folder.
# Inputs have at most twice the bytes of the largest in the corpus, and 1,024 at least: most are much faster than long ones.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-25}
shift || true
sanitize=${FUZZ_SANITIZE:-ON}
build=${BUILD:-$([ "$sanitize" = ON ] && echo build-fuzz || echo build-fuzz-fast)}

scripts/setup.sh build fuzz
CXX=clang++ CMAKE_FLAGS="-DPRISM_FUZZ=ON -DPRISM_TESTS=OFF -DPRISM_EXAMPLES=OFF -DPRISM_BENCHES=OFF
  -DPRISM_FUZZ_SANITIZE=$sanitize -DCMAKE_BUILD_TYPE=None" scripts/configure.sh "$build" 2>/dev/null
names=("$@")
[ ${#names[@]} -gt 0 ] || for file in fuzz/*_fuzz.cpp; do
  name=${file##*/}
  names+=("${name%_fuzz.cpp}")
done
cmake --build "$build" --target "${names[@]/#/fuzz_}"

# fuzz_one NAME: one of them, with its output in one piece.
fuzz_one() {
  local name=$1 before=0 ran
  local work="$build/corpus/$name" count="$build/count-$name" log="$build/fuzz-$name.log"
  local same=() largest longest folders=("$work" "fuzz/corpus/$name")
  [ -z "${FUZZ_RUNS:-}" ] || same=(-seed=1 -runs="$FUZZ_RUNS")
  if [ -n "${FUZZ_TOTAL:-}" ]; then
    before=$(awk -v name="$name" -v column="$column" '$1 == name { print $column }' fuzz/counts.txt)
    [ ! -f "$count" ] || before=$(cat "$count")
    before=${before:-0}
    [ "$before" -lt "$FUZZ_TOTAL" ] || { echo "fuzz $name: $before inputs"; return 0; }
    # To weigh inputs by the rarity of what they reach takes a third of the time.
    same=(-seed=$((before + 1)) -runs=$((FUZZ_TOTAL - before)) -entropic=0)
  else
    rm -rf "$work"
  fi
  mkdir -p "$work" "fuzz/corpus/$name"
  largest=$(find "fuzz/corpus/$name" -type f -printf '%s\n' | sort -n | tail -1)
  longest=$((2 * ${largest:-0} > 1024 ? 2 * ${largest:-0} : 1024))
  [ ! -d "${FUZZ_CORPUS:-}/$name" ] || folders+=("$FUZZ_CORPUS/$name")
  # New inputs are written to the first folder; the committed corpus is read-only.
  "$build/fuzz_$name" "${same[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 \
    -max_len="$longest" -print_final_stats=1 -artifact_prefix="$build/crash-$name-" "${folders[@]}" 2>"$log" ||
    { echo "fuzz $name: FAILED"; tail -40 "$log"; return 1; }
  ran=$(sed -n 's/.*number_of_executed_units: *//p' "$log")
  if [ -n "${FUZZ_TOTAL:-}" ]; then
    echo $((before + ran)) >"$count"
    echo "fuzz $name: $((before + ran)) of $FUZZ_TOTAL inputs"
  else
    echo "fuzz $name: ${ran:-no} inputs, $(sed -n 's/.*peak_rss_mb: *//p' "$log") MB at most," \
      "$(find "fuzz/corpus/$name" -type f | wc -l) in its corpus"
  fi
}
export -f fuzz_one
column=$([ "$sanitize" = ON ] && echo 3 || echo 2)  # of fuzz/counts.txt
export build seconds column
# Short call stacks of allocations, and a smaller quarantine of freed memory, save a fifth of the time.
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=4:quarantine_size_mb=32}
printf '%s\n' "${names[@]}" | xargs -P "$(nproc 2>/dev/null || echo 1)" -I NAME bash -c 'fuzz_one NAME'
