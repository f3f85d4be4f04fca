//! The memory use and duration of sixteen concurrent hostile exchanges.
//!
//! Measured in a child process that runs nothing but the sender: this binary, started again for its
//! other test. The servers stay here. Linux only, since `/proc` reports the peak.

mod processor;
mod templates;

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::{env, fs};

use adapters::http::{Certificate, HttpSender, Network};
use adapters::machine::Machine;
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::delivery::outcome::TransportResult;
use delivery::ports::{Clock as _, SendHttp as _};
use delivery::request::{ANSWER_MAX_BYTES, Method, Needs, REPLY_MAX_BYTES, Request};
use futures::future::join_all;
use lastmile_tests::certificates::{Authority, Validity};
use lastmile_tests::hostile::catalogue;
use lastmile_tests::scripted::{Script, Scripted, answer};

const AT_ONCE: usize = 16;
const TIMEOUT_MS: u64 = 300;
/// An exchange may exceed its timeout by this much on a busy machine; by itself none of them would end.
const GRACE_MS: u64 = 60_000;
/// Maximum memory that sixteen concurrent exchanges may add, and that may remain after the
/// exchanges of all groups.
const GROWTH_MAX_BYTES: u64 = 16 * 1_024 * 1_024;

/// The folder with the servers' URLs and the trusted certificate, for the client.
const FOLDER: &str = "LASTMILE_HOSTILE_SERVERS";
const FRIENDLY: &str = "friendly";
const HOSTILE: &str = "hostile";
const AUTHORITY: &str = "authority.der";

#[tokio::test]
async fn sixteen_concurrent_hostile_exchanges_end_in_time_and_need_little_memory() {
    if !Path::new("/proc/self/clear_refs").exists() {
        println!(
            "not measured: /proc on this machine cannot report and reset the peak memory of a process"
        );
        return;
    }
    let authority = Authority::new().expect("a key");
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
    let friendly = friendly_servers(&authority).await;
    let urls: Vec<String> =
        friendly.iter().map(|server| format!("{}/", server.endpoint())).collect();
    write(FRIENDLY, urls.join("\n").as_bytes());
    let (mut servers, mut urls) = (Vec::new(), Vec::new());
    for behaviour in catalogue() {
        let server = behaviour.serve(&authority).await.expect("a free port");
        urls.push(format!("{} {}", behaviour.url(&server), behaviour.name));
        servers.push(server);
    }
    write(HOSTILE, urls.join("\n").as_bytes());
    write(AUTHORITY, authority.der());
    let client = client("child_process_of_the_memory_test", folder.path().to_path_buf());
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(client).await.expect("no panic");
    println!("{}", String::from_utf8_lossy(&stdout));
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let idle = servers.iter().zip(catalogue()).filter(|(server, _)| server.connections() == 0);
    assert_eq!(idle.map(|(_, behaviour)| behaviour.name).collect::<Vec<_>>(), Vec::<&str>::new());
}

/// Runs another test of this binary in a child process.
fn client(
    test: &'static str,
    folder: impl AsRef<Path> + Send + 'static,
) -> impl FnOnce() -> Output {
    move || {
        let mut command = Command::new(env::current_exe().expect("this binary"));
        command.args(["--exact", test, "--ignored", "--nocapture"]);
        // Freed buffers are returned to the system at once, and all threads allocate from one heap.
        // Otherwise the allocator keeps ever larger buffers, and each thread keeps free memory in a
        // heap of its own. The peak would then include memory of earlier exchanges.
        command.env("MALLOC_MMAP_THRESHOLD_", "131072").env("MALLOC_ARENA_MAX", "1");
        command.env(FOLDER, folder.as_ref()).output().expect("a process")
    }
}

/// Servers that respond normally, with and without TLS.
async fn friendly_servers(authority: &Authority) -> Vec<Scripted> {
    let tls =
        authority.server("127.0.0.1", Validity::Always, &["http/1.1"]).expect("a certificate");
    let script = Script::Answers(Arc::new(|_| vec![answer("200 OK", &[], b"")]));
    let servers = [None, Some(tls)]
        .map(|tls| Scripted::serve((Ipv4Addr::LOCALHOST, 0).into(), tls, script.clone()));
    join_all(servers).await.into_iter().map(|server| server.expect("a free port")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other test runs it in a process of its own"]
async fn child_process_of_the_memory_test() {
    let Some(folder) = env::var_os(FOLDER) else {
        println!("not measured: no {FOLDER}");
        return;
    };
    let read = |name: &str| fs::read(Path::new(&folder).join(name)).expect("a file");
    let sender = sender(&read(AUTHORITY));
    let (friendly, hostile) =
        [FRIENDLY, HOSTILE].map(|name| String::from_utf8(read(name)).expect("text")).into();
    for url in friendly.lines() {
        let patient = Request { timeout_ms: GRACE_MS, ..request(url, ANSWER_MAX_BYTES) };
        let made = sender.exchange(&patient).await;
        assert!(matches!(made.result, TransportResult::Answered { status: 200, .. }), "{made:?}");
    }
    let first_bytes = memory_bytes("VmRSS");
    let all: Vec<(&str, &str)> = hostile.lines().filter_map(|line| line.split_once(' ')).collect();
    let alike = all.iter().map(|server| (vec![*server; AT_ONCE], REPLY_MAX_BYTES));
    let mixed = all.chunks(AT_ONCE).map(|together| (together.to_vec(), ANSWER_MAX_BYTES));
    for (together, answer_max_bytes) in alike.chain(mixed) {
        reset_peak();
        let before_bytes = memory_bytes("VmRSS");
        assert_in_time(&sender, &together, answer_max_bytes).await;
        let growth = memory_bytes("VmHWM").saturating_sub(before_bytes);
        println!("{:>6} KiB: {}", growth / 1_024, together[0].1);
        assert!(growth < GROWTH_MAX_BYTES, "{}: {growth} bytes", together[0].1);
    }
    let kept = memory_bytes("VmRSS").saturating_sub(first_bytes);
    println!("{:>6} KiB are kept after all of them", kept / 1_024);
    assert!(kept < GROWTH_MAX_BYTES, "{kept} bytes are kept");
}

fn sender(authority: &[u8]) -> HttpSender {
    let authorities = vec![Certificate::from(authority.to_vec())];
    let policy = AddressPolicy::new(
        PrivateDestinations::parse("127.0.0.1").expect("destinations"),
        OwnAddresses::default(),
    );
    HttpSender::on(&Network { authorities, ..Network::default() }, policy).expect("TLS works")
}

fn request(url: &str, answer_max_bytes: usize) -> Request {
    let url = url.parse().expect("a URL");
    Request {
        method: Method::Post,
        url,
        headers: Vec::new(),
        body: "{}".into(),
        timeout_ms: TIMEOUT_MS,
        needs: if answer_max_bytes > ANSWER_MAX_BYTES { Needs::Body } else { Needs::Status },
        answer_max_bytes,
        tls: delivery::request::tls::RequestTls::default(),
        signer: None,
        hidden: Vec::new(),
        deliveries: Vec::new(),
    }
}

/// Runs exchanges concurrently and asserts that each ends in time.
async fn assert_in_time(sender: &HttpSender, together: &[(&str, &str)], answer_max_bytes: usize) {
    let exchanges =
        together.iter().map(|(url, name)| lateness(sender, name, request(url, answer_max_bytes)));
    let late: Vec<String> = join_all(exchanges).await.into_iter().flatten().collect();
    assert!(late.is_empty(), "{late:?}");
}

/// A description of an exchange that did not end in time.
async fn lateness(sender: &HttpSender, name: &str, request: Request) -> Option<String> {
    let before_ms = Machine.now_ms();
    let made = sender.exchange(&request).await;
    let took_ms = Machine.now_ms() - before_ms;
    (took_ms > TIMEOUT_MS + GRACE_MS).then(|| format!("{name}: {took_ms} ms, {:?}", made.result))
}

/// A memory figure of this process.
fn memory_bytes(figure: &str) -> u64 {
    let status =
        fs::read_to_string("/proc/self/status").expect("Linux reports the memory of a process");
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or_else(|| panic!("no {figure} in {status}")) * 1_024
}

/// Resets the peak of this process.
fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("Linux resets the peak of the own process");
}
