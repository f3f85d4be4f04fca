//! Describes the machine on which the bench ran, and the versions of the programs.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns one line each for machine, kernel, versions, commit, load and command. `load_before` is
/// the result of [`load`] before the measurement.
pub(crate) fn describe(load_before: &str) -> Vec<String> {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // Excludes BENCH.md, because each run writes that file.
    let status = ["status", "--porcelain", "--untracked-files=no", ":(top,exclude)BENCH.md"];
    let dirty = if output_of("git", &status).is_empty() { "" } else { ", with changes" };
    vec![
        format!("Machine: {cpus} × {}, {}", value_of("/proc/cpuinfo", "model name"), memory()),
        format!("System: Linux {}", kernel.trim()),
        format!(
            "Versions: {}; Node {}; {}",
            output_of("rustc", &["--version"]),
            output_of("node", &["--version"]),
            output_of("python3", &["--version"])
        ),
        format!("Commit: {}{dirty}", output_of("git", &["rev-parse", "--short=12", "HEAD"])),
        format!("Load before: {load_before}"),
        "Command: `bench/run`".to_owned(),
    ]
}

/// The size of a file in MiB, as text.
pub(crate) fn mib(path: &Path) -> String {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xF_FFFF) * 10) >> 20)
}

fn memory() -> String {
    let kib: u64 =
        value_of("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
    format!("{} GiB of memory", kib >> 20)
}

/// Returns the load average of the last five minutes as text. A load above the number of CPUs means
/// that other programs used the machine too.
pub(crate) fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{} busy processes on average in the last five minutes",
        loads.split(' ').nth(1).unwrap_or("?")
    )
}

fn value_of(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':'))
        .map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => "?".to_owned(),
    }
}
