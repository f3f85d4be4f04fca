//! The processor time that floods cost the sender, measured by hand:
//!
//! `cargo test -p lastmile-tests --test hostile_memory processor -- --ignored --nocapture`
//!
//! Each flood meets a child process that runs nothing but the sender.

use std::path::Path;
use std::process::Output;
use std::time::Duration;
use std::{env, fs};

use delivery::ports::SendHttp as _;
use delivery::request::{ANSWER_MAX_BYTES, Request};
use lastmile_tests::certificates::Authority;
use lastmile_tests::hostile::floods;

use crate::{AUTHORITY, FOLDER, HOSTILE, client, memory_bytes, request, sender};

/// The timeout of the exchange.
const TIMEOUT_MS: u64 = 2_000;
/// What the sender may still need after the timeout.
const GRACE: Duration = Duration::from_millis(200);
/// How long the process is watched after that.
const WATCHED: Duration = Duration::from_secs(10);
/// The unit of times in `/proc/self/stat`, which is the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

#[tokio::test]
#[ignore = "a measurement, by hand; it takes a quarter of a minute for each flood"]
async fn processor_time_during_and_after_floods() {
    println!(
        "{:32} {:>10} {:>22} {:>12}",
        "", "until then", "in the 10 s after that", "peak memory"
    );
    for flood in floods() {
        let authority = Authority::new().expect("a key");
        let folder = tempfile::tempdir().expect("a folder");
        let server = flood.serve(&authority).await.expect("a free port");
        fs::write(folder.path().join(AUTHORITY), authority.der()).expect("a file");
        fs::write(folder.path().join(HOSTILE), flood.url(&server)).expect("a file");
        let client =
            client("processor::child_process_of_the_measurement", folder.path().to_path_buf());
        let Output { status, stdout, stderr } =
            tokio::task::spawn_blocking(client).await.expect("no panic");
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        let stdout = String::from_utf8_lossy(&stdout);
        let figures = stdout.lines().find_map(|line| line.strip_prefix("figures:"));
        println!("{:32} {}", flood.name, figures.expect("the figures"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other test runs it in a process of its own"]
async fn child_process_of_the_measurement() {
    let Some(folder) = env::var_os(FOLDER) else {
        println!("not measured: no {FOLDER}");
        return;
    };
    let read = |name: &str| fs::read(Path::new(&folder).join(name)).expect("a file");
    let sender = sender(&read(AUTHORITY));
    let url = String::from_utf8(read(HOSTILE)).expect("a URL");
    let request = Request { timeout_ms: TIMEOUT_MS, ..request(&url, ANSWER_MAX_BYTES) };
    let before = processor_seconds();
    let made = sender.exchange(&request).await;
    tokio::time::sleep(GRACE).await;
    let during = processor_seconds();
    tokio::time::sleep(WATCHED).await;
    let after = processor_seconds();
    println!(
        "figures: {:>8.2} s {:>20.2} s {:>8} KiB, {:?}",
        during - before,
        after - during,
        memory_bytes("VmHWM") / 1_024,
        made.result
    );
}

/// The processor time that this process has used so far.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux reports the times of a process");
    // The name of the process, in parentheses, may contain spaces; 11 fields follow it.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u32 = ticks.map(|field| field.parse::<u32>().expect("a time")).sum();
    f64::from(ticks) / TICKS_PER_SECOND
}
