#!/usr/bin/env bash
# sam-build.sh <build folder>: `sam build` of template.yaml into <build folder>/sam, as users build it, but for this machine and
# without optimisation. Prints the path of each function's program.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

# The host's linker instead of zig: there is no other platform to link for.
export CARGO_LAMBDA_COMPILER=cargo SAM_BUILD_MODE=debug
# A folder of its own: cargo-lambda names a target, so it shares no build output with `cargo test`.
export CARGO_TARGET_DIR=$build/cargo

cd "$root"
sam build --template-file template.yaml --build-dir "$build/sam" --parameter-overrides "Architecture=$architecture" >&2
ls "$build"/sam/*/bootstrap
