#!/usr/bin/env bash
# Tests that the checks in scripts/ find violations, and that set-up explains in one line why it cannot continue.
# usage: tests/build/scripts_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
failures=0

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect_complaint SCRIPT TEXT: the script fails on the tree at $place/tree and says TEXT.
expect_complaint() {
  if "$source/scripts/$1" "$place/tree" >"$place/log"; then complain "$1 passed a tree with: $2"; fi
  grep -qF "$2" "$place/log" || complain "$1 does not say: $2; it says: $(cat "$place/log")"
}

write() {
  mkdir -p "$place/tree/src/$(dirname "$1")"
  printf '%s\n' "$2" >"$place/tree/src/$1"
}

fresh() {
  rm -rf "$place/tree"
  write base/a.h '#include <vector>'
  write ir/b.h '#include "base/a.h"'
  write backends/one/one.h '#include "ir/b.h"'
}

# The checks pass on the source tree.
for script in check_includes.py check_vendor_names.py check_environment.py check_pages.py; do
  "$source/scripts/$script" >"$place/log" || complain "$(cat "$place/log")"
done

fresh
"$source/scripts/check_includes.py" "$place/tree" >/dev/null || complain "a sound tree was refused by check_includes.py"
"$source/scripts/check_vendor_names.py" "$place/tree" >/dev/null || complain "a sound tree was refused by check_vendor_names.py"
write base/bad.cpp '#include "ir/b.h"'
expect_complaint check_includes.py 'src/base/bad.cpp:1: base may not include "ir/b.h"'
fresh && write runtime/bad.cpp '#include "backends/one/one.h"'
expect_complaint check_includes.py 'runtime may not include "backends/one/one.h"'
fresh && write backends/two/bad.cpp '#include "backends/one/one.h"'
expect_complaint check_includes.py 'backends/two may not include "backends/one/one.h"'
fresh && write ir/bad.cpp '#include <sys/mman.h>'
expect_complaint check_includes.py '<sys/mman.h> exists on one system only'
fresh && write ir/good.cpp "$(printf '#ifndef _WIN32\n#include <unistd.h>\n#endif')"
"$source/scripts/check_includes.py" "$place/tree" >/dev/null || complain "a header inside an #if on the system was refused"
fresh && mkdir -p "$place/tree/include/prism" && echo '#include "base/a.h"' >"$place/tree/include/prism/device.h"
expect_complaint check_includes.py 'a public header may not include "base/a.h"'
fresh && write ir/bad.cpp '#include "../base/a.h"'
expect_complaint check_includes.py 'is relative'
fresh && write odd/bad.cpp ''
expect_complaint check_includes.py 'folder odd has no place'
fresh && write ir/bad.cpp 'int cudaThing = 0;'
expect_complaint check_vendor_names.py 'src/ir/bad.cpp:1: "cuda" belongs in a backend or a printer'
fresh && write ir/good.cpp 'x = raw("cuda", "{r} = f({0});", {a}, type, other);'
"$source/scripts/check_vendor_names.py" "$place/tree" >/dev/null || complain "a dialect named to raw() was refused"
fresh && write ir/bad.cpp 'x = raw("cuda", "cudaThing({0});", {a}, type, other);'
expect_complaint check_vendor_names.py '"cuda" belongs in a backend or a printer'
fresh && write ir/good.cpp '// CUDA has warps of 32.'
"$source/scripts/check_vendor_names.py" "$place/tree" >/dev/null || complain "a comment was taken for code"
fresh && mkdir "$place/tree/docs" && echo '`PRISM_KNOWN`' >"$place/tree/docs/environment.md"
write ir/good.cpp 'const char* a = std::getenv("PRISM_KNOWN");'
"$source/scripts/check_environment.py" "$place/tree" >/dev/null || complain "a documented variable was refused"
write ir/bad.cpp 'const char* a = std::getenv("SECRET_KNOB");'
expect_complaint check_environment.py 'src/ir/bad.cpp:1: SECRET_KNOB is not in docs/environment.md'
printf '%s\n' 'See `src/ir/b.h` and [it](docs/environment.md).' >"$place/tree/README.md"
"$source/scripts/check_pages.py" "$place/tree" >/dev/null || complain "a sound page was refused"
echo 'See `src/ir/gone.h` and [it](docs/gone.md).' >>"$place/tree/README.md"
expect_complaint check_pages.py 'README.md:2: names src/ir/gone.h, which does not exist'
expect_complaint check_pages.py 'README.md:2: links to docs/gone.md, which does not exist'
printf 'A sentence. %.0s' {1..12} >"$place/tree/README.md"
expect_complaint check_pages.py 'at most 120, or one sentence on a line'
mkdir "$place/tree/src/print"
printf '<!-- begin lines: scripts/count_lines.py -->\n<!-- end lines -->\n' >"$place/tree/docs/layout.md"
mv "$place/tree/src/backends/one" "$place/tree/src/backends/hip"
"$source/scripts/count_lines.py" "$place/tree" >/dev/null || complain "a small backend was refused by count_lines.py"
grep -qF '| backend `hip` | 1 | 600 |' "$place/tree/docs/layout.md" || complain "the table of lines was not written"
write backends/hip/more.cpp "$(yes 'int x;' | head -600)"
write backends/hip/more_test.cpp 'int y;'
write backends/hip/more.h '// a comment'
expect_complaint count_lines.py 'backend hip: 601 lines of code, its limit is 600'

# Commit subjects: a valid one passes, and each rule finds its violation, in a full and in a shallow clone.
repository=$place/repository
git init -q "$repository"
commit() {
  git -C "$repository" -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m "$1"
}
commit 'an old subject that nobody checks.'
base=$(git -C "$repository" rev-parse HEAD)
commit 'Add paged KV cache'
"$source/scripts/check_commits.sh" "$repository" "$base" 2000-01-01 >/dev/null || complain "a sound subject was refused"
commit 'lower case at the start'
commit 'A full stop at the end.'
commit "Add $(printf 'x%.0s' {1..69})"
for clone in "$repository" "$place/shallow"; do
  [ -d "$clone" ] || git clone -q --depth 3 "file://$repository" "$clone"
  if "$source/scripts/check_commits.sh" "$clone" "$base" 2000-01-01 >"$place/log"; then complain "bad subjects passed in $clone"; fi
  for text in 'does not begin with a capital letter' 'ends with a full stop' 'has 73 characters' '3 complaints'; do
    grep -qF "$text" "$place/log" || complain "check_commits.sh does not say: $text; it says: $(cat "$place/log")"
  done
done

# Without root, sudo and any tools, set-up prints one line with the command to run.
mkdir "$place/bin"
for tool in bash env grep cat mktemp rm tail; do ln -s "$(command -v $tool)" "$place/bin/$tool"; done
printf '#!/usr/bin/env bash\nexit 1\n' >"$place/bin/dpkg-query"
printf '#!/usr/bin/env bash\necho 1000\n' >"$place/bin/id"
chmod +x "$place/bin/dpkg-query" "$place/bin/id"
if PATH="$place/bin" bash "$source/scripts/setup.sh" build 2>"$place/log" </dev/null; then
  complain "set-up succeeded with nothing installed and no rights"
fi
[ "$(wc -l <"$place/log")" = 1 ] || complain "set-up says more than one line: $(cat "$place/log")"
grep -q 'as root run: apt-get install -y g++ cmake' "$place/log" || complain "set-up does not name the command"

[ $failures = 0 ] || exit 1
echo "scripts: all as expected"
