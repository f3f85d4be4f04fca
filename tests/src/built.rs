//! Programs of this workspace that tests run as processes.
//!
//! Separate because cargo builds the binaries of a tested package only: a second `[[bin]]` here would link each program
//! twice. Promises: a program is as new as its sources, whichever test asks for it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The folder of the profile with which this test was built, such as `target/debug`.
static OUTPUT: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = env::current_exe().expect("the path of the test binary");
    // target/debug/deps/NAME
    test.ancestors().nth(2).expect("it is in a folder of cargo").to_owned()
});

/// The binaries of all packages; built once per test process, which takes no time if nothing changed.
static BINARIES: LazyLock<()> = LazyLock::new(|| build(&["--bins"]));

/// A binary of this workspace: `dispatch`, `deadletter`, `ingress`, or `lastmile` with all features.
///
/// # Panics
/// If it does not compile.
pub fn binary(name: &str) -> PathBuf {
    LazyLock::force(&BINARIES);
    OUTPUT.join(name)
}

/// An example of this package.
///
/// # Panics
/// If it does not compile.
pub fn example(name: &str) -> PathBuf {
    build(&["--example", name]);
    OUTPUT.join("examples").join(name)
}

/// Builds targets as `cargo test --workspace` does: with other features, most dependencies would be compiled again.
fn build(targets: &[&str]) {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command.args(["build", "--quiet", "--locked", "--workspace", "--features", "lastmile/aws"]);
    command.arg("--target-dir").arg(OUTPUT.parent().expect("the target folder")).args(targets);
    if OUTPUT.ends_with("release") {
        command.arg("--release");
    }
    let status = command.status().expect("cargo starts");
    assert!(status.success(), "cargo build {targets:?}: {status}");
}
