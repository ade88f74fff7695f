#!/usr/bin/env bash
# The README's example is examples/vector_add.cpp to the letter, and prints what the README says.
# usage: tests/readme_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
"$1/scripts/update_readme.py" example --check --build "$2"
