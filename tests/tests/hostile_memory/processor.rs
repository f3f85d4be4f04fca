//! The processor time that floods cost the sender.
//!
//! Each flood meets a child process that runs only the sender, so the measurement includes neither
//! the server nor the test. The table is made by hand:
//!
//! `cargo test -p lastmile-tests --test hostile_memory processor -- --ignored --nocapture`

use std::path::Path;
use std::process::Output;
use std::time::Duration;
use std::{env, fs};

use delivery::ports::SendHttp as _;
use delivery::request::{ANSWER_MAX_BYTES, Request};
use lastmile_tests::certificates::Authority;
use lastmile_tests::hostile::{HostileBehaviour, floods, floods_after_an_answer, slow_senders};

use crate::{AUTHORITY, FOLDER, HOSTILE, client, memory_bytes, request, sender};

/// The timeout of the exchange.
const TIMEOUT_MS: u64 = 2_000;
/// The time that the sender may still use the processor after the exchange or its timeout.
const GRACE: Duration = Duration::from_millis(200);
/// The file with the milliseconds for which the process is watched afterwards.
const WATCH: &str = "watch";
/// The watch time of the table.
const TABLE_WATCH_MS: u64 = 10_000;
/// The watch time of the test.
const TEST_WATCH_MS: u64 = 500;
/// The most processor seconds of an exchange with an unoptimized client, including the TLS
/// handshake. An endless read takes as long as the timeout, or longer.
const EXCHANGE_MAX: f64 = 0.9;
/// The most processor seconds of the idle sender afterwards. A continued read would need most of
/// [`TEST_WATCH_MS`]. On a busy machine, the sender detects the end of a connection late.
const AFTER_MAX: f64 = 0.15;
/// The unit of times in `/proc/self/stat`, which is the same on all Linux systems.
const TICKS_PER_SECOND: f64 = 100.0;

/// The cost of one flood.
struct Figures {
    during_seconds: f64,
    after_seconds: f64,
    peak_kib: u64,
    result: String,
}

fn all_floods() -> impl Iterator<Item = HostileBehaviour> {
    floods().into_iter().chain(floods_after_an_answer()).chain(slow_senders())
}

#[tokio::test]
async fn a_flood_costs_little_processor_time_and_none_after_its_exchange() {
    if !Path::new("/proc/self/stat").exists() {
        println!("not measured: /proc on this machine does not report the times of a process");
        return;
    }
    let mut dear = Vec::new();
    for flood in all_floods() {
        let cost = measure(&flood, TEST_WATCH_MS).await;
        let (during, after) = (cost.during_seconds, cost.after_seconds);
        println!("{:40} {during:.2} s, then {after:.2} s: {}", flood.name, cost.result);
        if during > EXCHANGE_MAX || after > AFTER_MAX {
            dear.push(format!("{}: {during:.2} s, then {after:.2} s", flood.name));
        }
    }
    assert!(dear.is_empty(), "{dear:#?}");
}

#[tokio::test]
#[ignore = "a measurement, by hand; it takes a quarter of a minute for each flood"]
async fn processor_time_during_and_after_floods() {
    println!(
        "{:40} {:>10} {:>22} {:>12}",
        "", "until then", "in the 10 s after that", "peak memory"
    );
    for flood in all_floods() {
        let Figures { during_seconds, after_seconds, peak_kib, result } =
            measure(&flood, TABLE_WATCH_MS).await;
        println!(
            "{:40} {during_seconds:>8.2} s {after_seconds:>20.2} s {peak_kib:>8} KiB, {result}",
            flood.name
        );
    }
}

/// Returns the figures of a child process about its exchange with this flood.
async fn measure(flood: &HostileBehaviour, watch_ms: u64) -> Figures {
    let authority = Authority::new().expect("a key");
    let folder = tempfile::tempdir().expect("a folder");
    let server = flood.serve(&authority).await.expect("a free port");
    fs::write(folder.path().join(AUTHORITY), authority.der()).expect("a file");
    fs::write(folder.path().join(HOSTILE), flood.url(&server)).expect("a file");
    fs::write(folder.path().join(WATCH), watch_ms.to_string()).expect("a file");
    let client = client("processor::child_process_of_the_measurement", folder.path().to_path_buf());
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(client).await.expect("no panic");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let stdout = String::from_utf8_lossy(&stdout);
    let line = stdout.lines().find_map(|line| line.strip_prefix("figures: "));
    let fields: Vec<&str> = line.expect("the figures").splitn(4, ' ').collect();
    let [during, after, peak, result] = fields[..] else { panic!("four figures: {fields:?}") };
    let seconds = |text: &str| text.parse::<f64>().expect("seconds");
    Figures {
        during_seconds: seconds(during),
        after_seconds: seconds(after),
        peak_kib: peak.parse().expect("KiB"),
        result: result.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other tests run it in a process of its own"]
async fn child_process_of_the_measurement() {
    let Some(folder) = env::var_os(FOLDER) else {
        println!("not measured: no {FOLDER}");
        return;
    };
    let read = |name: &str| fs::read(Path::new(&folder).join(name)).expect("a file");
    let text = |name: &str| String::from_utf8(read(name)).expect("text");
    let sender = sender(&read(AUTHORITY));
    let watch_ms: u64 = text(WATCH).parse().expect("a number");
    let request = Request { timeout_ms: TIMEOUT_MS, ..request(&text(HOSTILE), ANSWER_MAX_BYTES) };
    let before = processor_seconds();
    let made = sender.exchange(&request).await;
    if watch_ms == TABLE_WATCH_MS {
        // Waits until the same time for all floods, even if the exchange has ended earlier.
        let rest = Duration::from_millis(TIMEOUT_MS.saturating_sub(made.duration_ms));
        tokio::time::sleep(rest).await;
    }
    tokio::time::sleep(GRACE).await;
    let during = processor_seconds();
    tokio::time::sleep(Duration::from_millis(watch_ms)).await;
    let after = processor_seconds();
    println!(
        "figures: {} {} {} {:?}",
        during - before,
        after - during,
        memory_bytes("VmHWM") / 1_024,
        made.result
    );
}

/// The processor time that this process has used so far.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux reports the times of a process");
    // The name of the process is in parentheses and may contain spaces; 11 fields follow it.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u32 = ticks.map(|field| field.parse::<u32>().expect("a time")).sum();
    f64::from(ticks) / TICKS_PER_SECOND
}
