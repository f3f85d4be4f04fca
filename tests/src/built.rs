//! Programs of this workspace that tests run as processes.
//!
//! Separate because cargo builds the binaries of a tested package only: a second `[[bin]]` here would link each program
//! twice. Promises: a program is as new as its sources, whichever test asks for it.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

/// The binaries of all packages by name; built once per test process, which takes no time if nothing changed.
static BINARIES: LazyLock<BTreeMap<String, PathBuf>> = LazyLock::new(|| build(&["--bins"]));

/// A binary of this workspace: `dispatch`, `deadletter`, `ingress`, or `lastmile` with all features.
///
/// # Panics
/// If it does not compile.
pub fn binary(name: &str) -> PathBuf {
    BINARIES.get(name).unwrap_or_else(|| panic!("no package has a binary {name}")).clone()
}

/// An example of this package.
///
/// # Panics
/// If it does not compile.
pub fn example(name: &str) -> PathBuf {
    build(&["--example", name]).remove(name).expect("cargo names what it built")
}

/// Builds targets as `cargo test --workspace` does: with other features, most dependencies would be compiled again.
/// Returns the programs by name.
fn build(targets: &[&str]) -> BTreeMap<String, PathBuf> {
    let test = env::current_exe().expect("the path of the test binary");
    // The outermost folder of cargo: `--target` makes one inside.
    let target = test.ancestors().filter(|folder| folder.join(".rustc_info.json").exists()).last();
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command.args(["build", "--quiet", "--locked", "--workspace", "--features", "lastmile/aws"]);
    command.arg("--target-dir").arg(target.expect("a test is in the target folder"));
    command.args(targets).args(["--message-format", "json-render-diagnostics"]);
    if test.ancestors().any(|folder| folder.ends_with("release/deps")) {
        command.arg("--release");
    }
    let output = command.stderr(Stdio::inherit()).output().expect("cargo starts");
    assert!(output.status.success(), "cargo build {targets:?}: {}", output.status);
    let messages = String::from_utf8(output.stdout).expect("cargo prints text");
    messages.lines().filter_map(program).collect()
}

/// The name and the path of the program that this message of cargo is about.
fn program(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).expect("cargo prints JSON");
    let path = message["executable"].as_str()?;
    Some((message["target"]["name"].as_str()?.to_owned(), path.into()))
}
