#!/usr/bin/env bash
# package.sh <build folder> <folder of binaries>: makes <build folder>/release from these binaries, in the form that
# scripts/release gives to each processor: template.yaml, infra/ and a zip for each function.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

release=$build/release
rm -rf "$release"
mkdir -p "$release/zipping"
"$root/scripts/release-template" "$architecture" >"$release/template.yaml"
cp -r "$root/infra" "$release/infra"
"$root/scripts/release-template" "$architecture" infra/notify.yaml >"$release/infra/notify.yaml"
cd "$release/zipping"
for function in dispatch deadletter ingress notify; do
  # Hundreds of megabytes of debug information would be uploaded for each stack.
  strip -o bootstrap "$2/$function"
  python -m zipfile -c "../$function.zip" bootstrap
done
rm -r "$release/zipping"
