#!/usr/bin/env bash
# setup.sh <folder>: puts Playwright and axe into <folder>/page, in the versions that package-lock.json pins, and says
# which Chromium there is (or CHROMIUM names one). No browser is downloaded. Does nothing when the libraries are there
# already; the stamp is written last, so an interrupted installation is started over. Ends with 3 where this machine
# lacks something, and says what.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1/page
stamp=$folder/installed.sha256

missing() {
  echo "$1" >&2
  exit 3
}

command -v node >/dev/null || missing "node (20 or newer)"
command -v npm >/dev/null || missing "npm"
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[[ -n $chromium ]] || missing "chromium (CHROMIUM names one)"

wanted=$({ node --version && cat "$here/package-lock.json"; } | sha256sum | cut -d' ' -f1)
if [[ ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$here/package.json" "$here/package-lock.json" "$folder"
  (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error >&2)
  echo "$wanted" >"$stamp"
fi
echo "$chromium"
