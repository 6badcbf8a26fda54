#!/usr/bin/env bash
# Try the wheel in dist/ as a new user has it: installed alone into an empty environment, from an empty folder, on every
# Python named (by default each of 3.11 to 3.14 that is on the path). The source archive is tried so on the first of them.
#   tools/try_wheel.sh [PYTHON...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(echo "$root"/dist/flowevolve-*.whl)
archive=$(echo "$root"/dist/flowevolve-*.tar.gz)
for built in "$wheel" "$archive"; do
  [ -f "$built" ] || { echo "error: $built is not there; make wheel builds it" >&2; exit 2; }
done
if [ $# -eq 0 ]; then
  for version in 3.11 3.12 3.13 3.14; do
    if command -v "python$version" >/dev/null && "python$version" -c '' 2>/dev/null; then set -- "$@" "python$version"; fi
  done
fi
[ $# -gt 0 ] || { echo "error: no Python from 3.11 is on the path; name one" >&2; exit 2; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ten_lines.py" <<'PYTHON'
import flowevolve as fe

rows = [{"question": f"What is {n} and {n}?", "answer": str(2 * n)} for n in range(12)]
result = fe.optimize(
    prompt="Answer briefly.",
    train=rows,
    input="{question}",
    metric=lambda row, output: min(1.0, len(output) / 1000),
    llm="simulated",
    clock="virtual",
    budget=fe.Budget(proposals=4),
    progress=False,
)
print(result)
assert result.best is not None
PYTHON
cat >"$folder/quick.toml" <<'TOML'
clock = "virtual"
[sim]
profile = "instant"
[budget]
proposals = 4
TOML
# Install $2 on the Python $1, and do with it what a new user does.
try() {
  echo "== $("$1" --version), ${2##*/}"
  cd "$folder"
  rm -rf "$folder/venv" "$folder/empty"
  mkdir "$folder/empty"
  "$1" -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$root/constraints.txt" "$2"
  cd "$folder/empty"
  "$folder/venv/bin/pip" check
  "$folder/venv/bin/python" -W error::DeprecationWarning:flowevolve -c 'import flowevolve; print(flowevolve.__version__, flowevolve.__file__.rsplit("/", 3)[1])'
  "$folder/venv/bin/python" "$folder/ten_lines.py"
  "$folder/venv/bin/flowevolve" list algorithms >/dev/null
  "$folder/venv/bin/flowevolve" run "$folder/quick.toml" --out run >out.txt || { cat out.txt; exit 1; }
  grep -E '^score' out.txt
  "$folder/venv/bin/flowevolve" report run >/dev/null
  (cd "$folder/venv/lib/python"*/site-packages && find flowevolve -type f ! -name '*.pyc' | sort) >"$folder/${2##*.}.files"
}
for python in "$@"; do
  try "$python" "$wheel"
done
try "$1" "$archive"
diff "$folder/whl.files" "$folder/gz.files" || { echo "error: the archive installs other files than the wheel" >&2; exit 1; }
echo "the wheel works on: $*; the source archive on $1"
