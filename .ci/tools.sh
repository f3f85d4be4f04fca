#!/usr/bin/env bash
# tools.sh <folder>: puts cargo-deny and typos into <folder>/bin, in the versions below and in typos.lock, unless they are
# there already.
#
# cargo-deny is compiled without optimisation: it reads one lock file, and compiling it otherwise takes longer than all it
# ever does here. typos comes as the wheel that its authors publish.
set -euo pipefail
readonly folder=$1 deny=0.20.2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
typos=$(sed -n 's/^typos==\([^ ]*\).*/\1/p' "$here/typos.lock")

mkdir -p "$folder"
if [[ $("$folder/bin/cargo-deny" --version 2>/dev/null) != "cargo-deny $deny" ]]; then
  CARGO_TARGET_DIR=$folder/build CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install cargo-deny --version "$deny" --locked --profile dev --root "$folder" --quiet
  rm -rf "$folder/build"
fi
if [[ $("$folder/bin/typos" --version 2>/dev/null) != "typos-cli $typos" ]]; then
  python3 -m venv "$folder/python"
  "$folder/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps \
    --requirement "$here/typos.lock"
  ln -sf "$folder/python/bin/typos" "$folder/bin/typos"
fi
