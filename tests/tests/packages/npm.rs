//! `scripts/packages/npm`: npm installs the program of this platform, and the launcher starts it and ends as it ends.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use lastmile_tests::libraries;

use crate::{
    NAME, PROGRAM, SHELL, VERSION, assert_demo_runs, folder, names, printed, script, succeeded,
};

/// The `cpu` of npm and the ELF machine of each processor.
const PROCESSORS: [(&str, u16); 2] = [("x64", 62), ("arm64", 183)];

/// The `cpu` of this machine.
fn own_cpu() -> &'static str {
    let [x64, arm64] = PROCESSORS.map(|(cpu, _)| cpu);
    if cfg!(target_arch = "aarch64") { arm64 } else { x64 }
}

/// The package of this platform.
fn own_package() -> String {
    format!("{NAME}-linux-{}", own_cpu())
}

/// A program for the other processor: a copy of the shell that states so.
fn other_program(folder: &Path) -> PathBuf {
    let (_, machine) = PROCESSORS.into_iter().find(|(cpu, _)| *cpu != own_cpu()).expect("two");
    let mut content = fs::read(SHELL).expect("a program");
    content[18..20].copy_from_slice(&machine.to_le_bytes());
    let program = folder.join("other");
    fs::write(&program, content).expect("a file can be written");
    program
}

fn make(program: &Path, folder: &Path) {
    let other = other_program(&crate::folder("other-program"));
    succeeded(script("npm").arg("--launcher").arg(folder).arg(program).arg(other));
}

/// The folder of the packages of the program of the tests. `None` without npm.
fn packages(test: &str) -> Option<&'static Path> {
    static PACKAGES: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = folder("npm");
        make(&PROGRAM, &folder);
        folder
    });
    if Command::new("npm").arg("--version").output().is_err() {
        libraries::skipped(test, "npm");
        return None;
    }
    Some(&PACKAGES)
}

/// A command of npm in a folder, with a cache that is empty and nothing to ask.
fn npm(program: &str, cache: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("npm_config_cache", cache).env("npm_config_offline", "true");
    command.env("npm_config_audit", "false").env("npm_config_fund", "false");
    command
}

/// Installs packages into a new folder, and returns the program that npm linked.
fn install(name: &str, packages: &Path, options: &[&str]) -> PathBuf {
    let project = folder(name);
    let mut install = npm("npm", &folder(&format!("{name}-cache")));
    install.arg("install").args(options).current_dir(&project);
    install.arg(packages.join(format!("{NAME}-{VERSION}.tgz")));
    succeeded(&mut install);
    project.join("node_modules/.bin/lastmile")
}

/// The program that npm linked after it installed the package of this platform besides.
fn installed(test: &str) -> Option<&'static Path> {
    static INSTALLED: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let packages = packages("npm in an empty folder")?;
        let own = packages.join(format!("{}-{VERSION}.tgz", own_package()));
        Some(install("npm-installed", packages, &[own.to_str().expect("a path of text")]))
    });
    packages(test)?;
    INSTALLED.as_deref()
}

#[test]
fn npm_installs_the_package_of_this_platform_and_the_demo_runs_to_its_end() {
    let Some(lastmile) = installed("the demo by npm") else { return };
    assert_demo_runs(lastmile, &lastmile.with_file_name("data"));
    let mut installed = names(&lastmile.with_file_name(".."));
    installed.retain(|name| !name.starts_with('.'));
    assert_eq!(installed, [NAME, &own_package()]);
}

#[test]
fn npx_runs_the_package_of_a_platform_by_itself() {
    let Some(packages) = packages("npx with one file") else { return };
    let mut npx = npm("npx", &folder("npx-cache"));
    npx.current_dir(packages).arg("--yes");
    npx.arg(format!("./{}-{VERSION}.tgz", own_package())).arg("--version");
    assert_eq!(succeeded(&mut npx), format!("lastmile {VERSION}\n"));
}

#[test]
fn the_launcher_ends_as_the_program_ends() {
    let Some(lastmile) = installed("the launcher of npm") else { return };
    let refused = Command::new(lastmile).args(["check", "missing.yaml"]).output();
    let expected = Command::new(&*PROGRAM).args(["check", "missing.yaml"]).output();
    let (refused, expected) = (refused.expect("it runs"), expected.expect("it runs"));
    assert!(!expected.status.success());
    assert_eq!(
        (refused.status.code(), printed(&refused)),
        (expected.status.code(), printed(&expected))
    );
}

#[test]
fn the_launcher_passes_the_signal_to_stop_on() {
    let Some(lastmile) = installed("the launcher and signals") else { return };
    let mut command = Command::new(lastmile);
    command.args(["subscriber", "--port", "0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut launcher = command.process_group(0).spawn().expect("it starts");
    let mut output = BufReader::new(launcher.stderr.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("the subscriber prints text");
    assert!(line.starts_with("listening on "), "{line}");
    let id = launcher.id().to_string();
    succeeded(Command::new("kill").args(["-TERM", &id]));
    // The output ends when the launcher and the program have closed it.
    let (sender, end) = mpsc::channel();
    thread::spawn(move || sender.send(output.read_to_end(&mut Vec::new())));
    let has_ended = end.recv_timeout(Duration::from_secs(30)).is_ok();
    let _ = Command::new("kill")
        .args(["-KILL", "--", &format!("-{id}")])
        .stderr(Stdio::null())
        .status();
    launcher.wait().expect("it ends");
    assert!(has_ended, "the program goes on without its launcher");
}

#[test]
fn a_launcher_without_its_program_names_what_is_missing() {
    let Some(packages) = packages("the launcher alone") else { return };
    let lastmile = install("npm-alone", packages, &["--omit=optional"]);
    let output = Command::new(lastmile).arg("--version").output().expect("it runs");
    let message = format!(
        "lastmile: the package {} is not installed: install lastmile again, without --omit=optional\n",
        own_package()
    );
    assert_eq!((output.status.code(), printed(&output)), (Some(1), message));
}

#[test]
fn the_same_programs_give_the_same_packages() {
    let [first, second] = ["npm-first", "npm-second"].map(|name| {
        let folder = folder(name);
        make(Path::new(SHELL), &folder);
        folder
    });
    assert_eq!(names(&first).len(), 3);
    assert_eq!(names(&first), names(&second));
    for name in names(&first) {
        let content = |folder: &Path| fs::read(folder.join(&name)).expect("a package");
        assert!(content(&first) == content(&second), "{name}");
    }
}

/// npm would look up the dependencies in the registry, where the names may be another's.
#[test]
fn without_a_launcher_no_package_has_dependencies() {
    let folder = folder("npm-platforms");
    succeeded(script("npm").arg(&folder).arg(SHELL));
    assert_eq!(names(&folder), [format!("{}-{VERSION}.tgz", own_package())]);
    let unpacked = crate::folder("npm-unpacked");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(folder.join(&names(&folder)[0])).arg("-C").arg(&unpacked);
    succeeded(&mut tar);
    let manifest = fs::read_to_string(unpacked.join("package/package.json")).expect("a manifest");
    assert!(!manifest.to_lowercase().contains("dependencies"), "{manifest}");
}
