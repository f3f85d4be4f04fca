//! `scripts/packages/wheel`: what it promises to pip, and that pip installs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lastmile_tests::libraries;
use sha2::{Digest as _, Sha256};

use crate::{
    NAME, PROGRAM, SHELL, VERSION, assert_demo_runs, folder, glibc, names, printed, script,
};
use crate::{root, succeeded};

/// The wheel of a program in this folder.
fn make(program: &Path, glibc: &str, folder: &Path) -> PathBuf {
    succeeded(script("wheel").arg(program).arg(glibc).arg(folder));
    let [name] = &names(folder)[..] else { panic!("{:?}", names(folder)) };
    folder.join(name)
}

/// The wheel of the program of the tests, for the glibc of this machine. `None` without glibc or Python.
pub(crate) fn wheel(test: &str) -> Option<(PathBuf, PathBuf)> {
    static WHEEL: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| Some(make(&PROGRAM, &glibc("the wheel")?, &folder("wheel"))));
    let python = libraries::python(test)?;
    Some((python, WHEEL.clone()?))
}

#[test]
fn pip_installs_the_wheel_into_an_empty_environment_and_the_demo_runs_to_its_end() {
    let Some((python, wheel)) = wheel("the wheel in an empty environment") else { return };
    let environment = folder("environment");
    succeeded(Command::new(python).args(["-m", "venv"]).arg(&environment));
    let mut install = Command::new(environment.join("bin/pip"));
    // The wheel of a test has no checksum that pip could be given.
    install.env_remove("PIP_REQUIRE_HASHES").args(["install", "--no-index", "--quiet"]).arg(wheel);
    succeeded(&mut install);
    assert_demo_runs(&environment.join("bin/lastmile"), &environment.join("data"));
    let show = succeeded(Command::new(environment.join("bin/pip")).args(["show", NAME]));
    assert!(show.contains(&format!("Version: {VERSION}\n")), "{show}");
    succeeded(Command::new(environment.join("bin/pip")).args([
        "uninstall",
        "--yes",
        "--quiet",
        NAME,
    ]));
    assert!(!environment.join("bin/lastmile").exists());
}

#[test]
fn the_same_program_gives_the_same_wheel_at_another_time_in_another_folder() {
    let Some(glibc) = glibc("the same wheel twice") else { return };
    let copy = folder("copied-program").join("program");
    fs::copy(SHELL, &copy).expect("a program can be copied");
    let first = make(Path::new(SHELL), &glibc, &folder("wheel-first"));
    let second = make(&copy, &glibc, &folder("wheel-second"));
    assert_eq!(first.file_name(), second.file_name());
    assert!(fs::read(first).expect("a wheel") == fs::read(second).expect("a wheel"));
}

#[test]
fn the_files_of_a_wheel_and_its_record_are_the_same_and_have_the_checksums_in_it() {
    let Some(glibc) = glibc("the record of a wheel") else { return };
    let wheel = make(Path::new(SHELL), &glibc, &folder("wheel-recorded"));
    let unpacked = folder("wheel-unpacked");
    succeeded(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked));
    let stem = format!("lastmile_events-{VERSION}");
    let info = format!("{stem}.dist-info");
    let record = fs::read_to_string(unpacked.join(&info).join("RECORD")).expect("a record");
    let expected: Vec<String> = record
        .lines()
        .filter_map(|line| line.split(',').next())
        .filter(|name| !name.ends_with("/RECORD"))
        .map(|name| {
            let content = fs::read(unpacked.join(name)).unwrap_or_else(|_| panic!("no {name}"));
            let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&content));
            format!("{name},sha256={digest},{}", content.len())
        })
        .chain([format!("{info}/RECORD,,")])
        .collect();
    assert_eq!(record.lines().collect::<Vec<_>>(), expected);
    assert!(record.starts_with(&format!("{stem}.data/scripts/lastmile,")), "{record}");
    let licenses = names(&root()).into_iter().filter(|name| name.starts_with("LICENSE"));
    assert_eq!(names(&unpacked.join(&info).join("licenses")), licenses.collect::<Vec<_>>());
}

#[test]
fn what_does_not_run_where_the_wheel_promises_is_refused() {
    let folder = folder("wheel-refused");
    let text = folder.join("text");
    fs::write(&text, "#!/bin/sh\n").expect("a file can be written");
    let other = folder.join("other");
    let mut program = fs::read(SHELL).expect("a program");
    program[18..20].copy_from_slice(&243_u16.to_le_bytes()); // RISC-V
    fs::write(&other, program).expect("a file can be written");
    for (program, glibc, reason) in [
        (Path::new(SHELL), "2.1", "newer than 2.1; link it against 2.1"),
        (&text, "2.28", "is no program for 64-bit Linux"),
        (&other, "2.28", "is for the ELF machine 243; packages exist for x86_64 and aarch64"),
    ] {
        let output = script("wheel").arg(program).arg(glibc).arg(&folder).output();
        let output = output.expect("the script starts");
        assert!(!output.status.success() && printed(&output).contains(reason), "{output:?}");
    }
    assert_eq!(names(&folder), ["other", "text"]);
}

/// `libssl` stands for a library of some systems: the name is written over that of libc, which is as long.
#[test]
fn a_program_that_needs_a_library_of_some_systems_is_refused() {
    let folder = folder("wheel-library");
    let program = folder.join("program");
    let mut content = fs::read(SHELL).expect("a program");
    let name = b"libc.so.6\0";
    let at = content.windows(name.len()).position(|bytes| bytes == name).expect("it needs libc");
    content[at..at + name.len()].copy_from_slice(b"libz.so.1\0");
    fs::write(&program, content).expect("a file can be written");
    let output = script("wheel").arg(&program).args(["2.99"]).arg(&folder).output();
    let output = output.expect("the script starts");
    assert!(printed(&output).contains("needs libz.so.1, which not every Linux has"), "{output:?}");
}
