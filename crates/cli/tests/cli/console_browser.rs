//! The page of dead letters in a real browser: seen, walked by keys, clicked, and judged by axe.
//!
//! `page/browse.mjs` does what a person does; here are the dead letters and the queue. A machine
//! without Chromium or Node skips this and says so. Pictures of every page are left in the build
//! folder, `tmp/pages`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::console_server::ConsoleServer;
use crate::libraries;
use crate::sample_letters::{LETTERS, Sample, TestContainer, sample};
use local::aws::{LocalAws, LocalAwsConfig};

/// The folder with `node_modules`, and the browser; `None`, reported as skipped, without either.
pub(crate) fn installed() -> Option<(PathBuf, PathBuf)> {
    const TEST: &str = "the page in a browser";
    let libraries = libraries::node(TEST)?;
    let Some(chromium) = chromium() else {
        libraries::skipped(TEST, "chromium (CHROMIUM names one)");
        return None;
    };
    Some((libraries, chromium))
}

/// The path of the browser: Playwright does not search for it.
fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM");
    let names = named.into_iter().chain(["chromium", "chromium-browser"].map(OsString::from));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut files = names.flat_map(|name| folders.iter().map(move |folder| folder.join(&name)));
    files.find(|file| file.is_file())
}

pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/console")
}

/// A dead letter that tries to be markup.
fn hostile() -> Sample {
    let response = "<script>alert(1)</script><img src=https://evil.example.com/x onerror=alert(2)>\u{1b}[2J\u{202e}";
    Sample { kind: "<svg onload=alert(3)>", status: Some(404), ..sample(6, (20, 10), response) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_filters_and_replays_and_nothing_of_an_event_runs() {
    let Some((installed, chromium)) = installed() else { return };
    let (container, data) =
        (TestContainer::folder(), tempfile::tempdir().expect("a folder can be made"));
    container.write(&LETTERS.map(Sample::blob));
    let (key, blob) = hostile().blob();
    container.write(&[(key, blob.replace("order-6", "'><script>alert(4)</script>"))]);
    let aws = LocalAws::start(LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 600)).await;
    let aws = aws.expect("the local AWS starts");
    let server = ConsoleServer::start(&container, &["--queue-url", &aws.queue_url("retry")]);
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&pictures).expect("a folder can be made");
    let browse = Command::new("node")
        .arg(sources().join("browse.mjs"))
        .args([&installed, &chromium, Path::new(&server.url), &pictures])
        .env("LETTERS", format!("{} {}", LETTERS[0].id(), hostile().id()))
        .env("CONTAINER", container.path())
        .env("NEW", serde_json::to_string(&sample(7, (21, 10), "overloaded").blob()).expect("JSON"))
        .output()
        .expect("an installed language starts");
    assert!(browse.status.success(), "{}", String::from_utf8_lossy(&browse.stderr));
    aws.stop().await;
}
