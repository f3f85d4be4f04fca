//! Everything that is installed from PyPI has the hash that was looked at, and is not built here: what a package is
//! built with has no hash.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders in which something may install packages of Python, or says which.
const FOLDERS: [&str; 7] =
    [".ci", ".github", "bench", "crates/cli/tests", "infra", "scripts", "tests"];
/// What installs them.
const INSTALLERS: [&str; 6] =
    ["pip\" install", "pip install", "pip3 install", "pipx ", "uv pip ", "easy_install"];
/// The line of a list, and of its lock, that keeps pip from building anything.
const WHEELS_ONLY: &str = "--only-binary :all:";

/// Every file below these folders.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|name| root.join(name)).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// The packages that a list of requirements pins, such as `duckdb==2.0.0`, and how many hashes each has.
fn pinned(text: &str) -> Vec<(String, usize)> {
    let mut packages: Vec<(String, usize)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("--hash=sha256:") {
            packages.last_mut().expect("a hash is that of a package").1 += 1;
        } else if let Some(pin) = line.split_whitespace().next().filter(|pin| pin.contains("==")) {
            // Without extras, and without what the pin is for.
            let (name, version) = pin.split_once("==").expect("a pin has a version");
            let name = name.split('[').next().unwrap_or(name).replace('_', "-");
            packages.push((format!("{name}=={version}"), 0));
        }
    }
    packages
}

/// Whether something is run as it is there, also by a workflow or a template.
fn is_script(path: &Path) -> bool {
    let named = path.extension().is_some_and(|it| it == "sh" || it == "yaml" || it == "yml");
    named || fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!"))
}

#[test]
fn nothing_is_installed_without_its_hash() {
    let mut installs = 0;
    for script in files().into_iter().filter(|path| is_script(path)) {
        let text = fs::read_to_string(&script).expect("a script is text").replace("\\\n", "");
        let is_install = |line: &&str| INSTALLERS.iter().any(|installer| line.contains(installer));
        for line in text.lines().filter(is_install) {
            assert!(line.contains(" --require-hashes "), "{}: {line}", script.display());
            assert!(
                line.contains(".lock\"") || line.contains("\"$lock"),
                "{}: {line}",
                script.display()
            );
            installs += 1;
        }
    }
    assert_eq!(installs, 4, "the scripts that install are found");
}

/// Whether this is a list of requirements, or a lock.
fn is_list(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "lock")
        || path.file_name().is_some_and(|name| name == "requirements.txt")
}

#[test]
fn nothing_is_built_where_it_is_installed() {
    for path in files().into_iter().filter(|path| is_list(path)) {
        let text = fs::read_to_string(&path).expect("a list is text");
        assert!(text.lines().any(|line| line == WHEELS_ONLY), "{}", path.display());
    }
}

#[test]
fn a_lock_has_every_requirement_and_a_hash_of_each_package() {
    let files = files();
    let (mut locks, mut lists) = (0, 0);
    for path in files {
        let text = || fs::read_to_string(&path).expect("a list is text");
        if path.extension().is_some_and(|it| it == "lock") {
            let packages = pinned(&text());
            assert!(!packages.is_empty(), "{}", path.display());
            let bare: Vec<_> = packages.iter().filter(|(_, hashes)| *hashes == 0).collect();
            assert!(bare.is_empty(), "{}: {bare:?}", path.display());
            locks += 1;
        } else if path.file_name().is_some_and(|name| name == "requirements.txt") {
            let lock = path.with_extension("lock");
            let lock =
                fs::read_to_string(&lock).unwrap_or_else(|error| panic!("{lock:?}: {error}"));
            let locked: BTreeSet<String> = pinned(&lock).into_iter().map(|(pin, _)| pin).collect();
            for (pin, _) in pinned(&text()) {
                assert!(locked.contains(&pin), "{}: the lock has no {pin}", path.display());
            }
            lists += 1;
        }
    }
    assert_eq!((lists, locks), (7, 8), "the lists and their locks are found");
}
