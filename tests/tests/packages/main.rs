//! The packages of the command line, made as a release makes them and installed into empty environments.
//!
//! Separate because pip and npm are what users have: a package that these tools do not install is none. The program is that of
//! the tests, without its symbols. Nothing is downloaded. A machine without glibc, Python or Node skips its part and reports that.

mod bill_of_materials;
mod check_action;
mod npm;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use lastmile_tests::built::binary;
use lastmile_tests::libraries;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The name of the packages for pip and npm.
const NAME: &str = "lastmile-events";
/// A small program that every Linux has.
const SHELL: &str = "/bin/sh";

/// The program of the tests without its symbols, which are a third of it.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let stripped = folder("program").join("lastmile");
    succeeded(Command::new("strip").arg(binary("lastmile")).arg("-o").arg(&stripped));
    stripped
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// An empty folder of this suite, below cargo's target folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// A script of `scripts/packages`.
fn script(name: &str) -> Command {
    Command::new(root().join("scripts/packages").join(name))
}

/// Standard output and standard error of a command.
fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Runs a command, which has to succeed, and returns its standard output.
fn succeeded(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    assert!(output.status.success(), "{command:?}\n{}", printed(&output));
    String::from_utf8(output.stdout).expect("a program prints text")
}

/// The version of glibc that this machine has.
fn glibc(test: &str) -> Option<String> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = text.and_then(|text| Some(text.trim().strip_prefix("glibc ")?.to_owned()));
    if version.is_none() {
        libraries::skipped(test, "glibc");
    }
    version
}

/// The names of the files in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// An installed program is that of this version, and its demo leaves the dead letters that the README states.
fn assert_demo_runs(installed: &Path, data: &Path) {
    let version = succeeded(Command::new(installed).arg("--version"));
    assert_eq!(version, format!("lastmile {VERSION}\n"));
    succeeded(Command::new(installed).args(["demo", "--port", "0", "--data"]).arg(data));
    let mut list = Command::new(installed);
    list.args(["deadletters", "list", "--output", "ndjson", "--container"]);
    let list = succeeded(list.arg(data.join("s3/dead-letters")));
    assert_eq!(list.lines().count(), 8, "{list}");
}

#[test]
fn the_manual_names_the_files_that_a_release_has() {
    let text = |path: &str| fs::read_to_string(root().join(path)).expect("it is there");
    let (release, manual) = (text("scripts/release"), text("docs/start/install.md"));
    let glibc = release.lines().find_map(|line| line.strip_prefix("readonly glibc="));
    let glibc = glibc.expect("a release has an oldest glibc");
    let tag = glibc.replace('.', "_");
    for file in [
        format!("./lastmile_events-{VERSION}-py3-none-manylinux_{tag}_x86_64.whl"),
        format!("./{NAME}-linux-x64-{VERSION}.tgz"),
        format!("glibc {glibc}"),
    ] {
        assert!(manual.contains(&file), "{file}");
    }
}
