#!/bin/bash
# Installs what the tests need, builds, and runs them:
#   tests/run.sh            the default levels: unit, live, e2e
#   tests/run.sh --all      these, lint, the sanitizer suites, and vm; also with CI=true
#   tests/run.sh --update   writes golden files and the metric reference anew, to be reviewed
# A level that cannot run says why and counts as skipped.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
jobs=$(nproc)
failures=()

section() { printf '\n=== %s\n' "$*"; }

# A step that fails is named at the end; the others still run.
step() {
  local name=$1
  shift
  section "$name"
  if ! "$@"; then
    failures+=("$name")
  fi
}

build() {
  local preset=$1
  cmake --preset "$preset" >/dev/null && cmake --build --preset "$preset" -j "$jobs"
}

run_levels() {
  local preset=$1
  shift
  local result=0
  ctest --test-dir "build/$preset" --output-on-failure --timeout 300 "$@" || result=$?
  # CTest says which test was skipped, and not why.
  grep -h '^cannot run here' "build/$preset/Testing/Temporary/LastTest.log" || true
  return $result
}

test_release() {
  # One test at a time for those that measure or fill the machine; units in parallel.
  run_levels release -L unit -j "$jobs" && run_levels release -L 'live|e2e'
}

# The tests of files that no compiler touches need no second run.
readonly without_binary='e2e/(alerts|dashboards|systemd|run_script)_test'

test_sanitized() {
  local preset=$1
  run_levels "$preset" -L unit -j "$jobs" && run_levels "$preset" -L 'live|e2e' -E "$without_binary"
}

check_format() {
  git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format --dry-run -Werror
}

check_tidy() {
  # The compile commands of the clang build; what WarningsAsErrors names is an error. Files of
  # tests are held to the compilers' warnings and the sanitizers.
  git ls-files 'exporter/*.cpp' 'collectors/*.cpp' 'analysis/*.cpp' 'verdict/*.cpp' 'checks/*.cpp' \
    'triage/*.cpp' |
    xargs -P "$jobs" -n 4 clang-tidy --quiet -p build/asan \
      --checks='-*,bugprone-*,concurrency-*,performance-*,clang-analyzer-*,-bugprone-easily-swappable-parameters' \
      2>/dev/null
}

check_scripts() {
  git ls-files -z '*.sh' '.ci/run' | xargs -0 shellcheck
  git ls-files -z '*.yml' '*.yaml' | xargs -0 yamllint --strict -d \
    '{extends: default, rules: {line-length: disable, document-start: disable, braces: disable}}'
}

update() {
  build release
  /usr/bin/python3 -B tests/e2e/golden_test.py --update
  APU_UPDATE_DOCS=1 build/release/tests/apu_tests --gtest_filter='MetricReference.*'
  git diff --stat
}

finish() {
  if [ ${#failures[@]} -gt 0 ]; then
    printf '\nFAILED: %s\n' "${failures[@]}"
    exit 1
  fi
  printf '\nall steps passed\n'
}

default_levels() {
  deploy/install-packages.sh test
  step "build (g++, release)" build release
  step "unit, live, e2e" test_release
}

all_levels() {
  deploy/install-packages.sh all
  default_levels
  step "clang-format" check_format
  step "scripts and YAML" check_scripts
  step "build (clang, ASan and UBSan)" build asan
  step "clang-tidy" check_tidy
  step "unit, live, e2e under ASan and UBSan" test_sanitized asan
  step "fuzz" run_levels asan -L fuzz -j "$jobs"
  step "build (g++, TSan)" build tsan
  step "unit, live, e2e under TSan" test_sanitized tsan
  step "vm" run_levels release -L vm
}

case "${1:-}" in
  --update)
    deploy/install-packages.sh test
    update
    ;;
  --all)
    all_levels
    finish
    ;;
  "")
    if [ "${CI:-}" = true ]; then all_levels; else default_levels; fi
    finish
    ;;
  *)
    echo "usage: $0 [--all|--update]" >&2
    exit 2
    ;;
esac
