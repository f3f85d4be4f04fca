//! The page of `lastmile dev` in a real browser: it fills while it is open, is filtered, walked by
//! keys, used to publish, and judged by axe. `page/dev.mjs` does what a person does; here are the
//! application, which it asks to be started again, and three receivers, one of which answers when
//! it asks for that.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::console_browser::{installed, sources};
use crate::console_live_server::{Dev, subscription};
use crate::programs::{receiver, waiting_receiver};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const BUSY: &str =
    "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\nretry-after: 600\r\nconnection: close\r\n\r\nbusy";

#[test]
fn a_person_watches_filters_opens_and_publishes_and_nothing_of_an_event_runs() {
    let Some((installed, chromium)) = installed() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let ((good, _received), (busy, _refused)) = (receiver(OK), receiver(BUSY));
    let (slow, _waiting, answers) = waiting_receiver(OK);
    let mut answers = Some(answers);
    // On a busy machine an attempt ends before all is seen; the next one begins a second later.
    let times = ", slowAfter: PT10M, timeout: PT2M, probation: false";
    let retries = ", retry: {maxAttempts: 100, schedule: {kind: constant, delay: PT1S}}";
    let slow =
        subscription("slow", &slow, times, retries).replace("topic: orders", "topic: reports");
    let all = [subscription("good", &good, "", ""), subscription("busy", &busy, "", ""), slow];
    let dev = Dev::start(folder.path(), &all.concat(), &[]);
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&pictures).expect("a folder can be made");
    let page = dev.page.clone();
    let topics = |dev: &Dev| format!("http://{}/topics/shop", dev.ingress);
    let mut browse = Command::new("node")
        .arg(sources().join("dev.mjs"))
        .args([&installed, &chromium])
        .args([Path::new(&format!("http://{page}")), &pictures])
        .env("INGRESS", topics(&dev))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("an installed language starts");
    let mut input = browse.stdin.take().expect("it is piped");
    let asked = BufReader::new(browse.stdout.take().expect("it is piped"));
    let mut running = Some(dev);
    for request in asked.lines().map_while(Result::ok) {
        match request.as_str() {
            // Every request that waits is answered, and every later one.
            "answer" => drop(answers.take()),
            "restart" => {
                // First the old one, or its port would be taken.
                drop(running.take());
                let port = page.rsplit(':').next().expect("a port");
                running = Some(Dev::start_on(port, folder.path(), &[], &[]));
            }
            other => panic!("{other} is nothing to ask for"),
        }
        let dev = running.as_ref().expect("it was started");
        writeln!(input, "{}", topics(dev)).expect("it reads");
    }
    let browse = browse.wait_with_output().expect("it ends");
    assert!(browse.status.success(), "{}", String::from_utf8_lossy(&browse.stderr));
}
