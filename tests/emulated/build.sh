#!/usr/bin/env bash
# build.sh <build folder>: `sam build` of all functions into <build folder>/sam, as users build them, but for this
# machine and without optimization: the tests need a bootstrap that works, not one that is fast.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

if [[ -n ${LASTMILE_RELEASE:-} ]]; then
  echo "deploying $LASTMILE_RELEASE, nothing is built" >&2
  exit 0
fi

# The host's linker instead of zig: there is no other platform to link for.
export CARGO_LAMBDA_COMPILER=cargo
# A separate folder, so that these binaries are never mistaken for a release build; shared by the functions, so that
# their common dependencies are compiled once.
export CARGO_TARGET_DIR=$build/cargo
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

cd "$root"
sam build \
  --template-file template.yaml \
  --build-dir "$build/sam" \
  --parameter-overrides "Architecture=$architecture"
