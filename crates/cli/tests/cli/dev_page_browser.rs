//! The page of `lastmile dev` in a real browser: it fills while it is open, is filtered, walked by keys, used to
//! publish, and judged by axe. `page/dev.mjs` does what a person does; here are the application and two receivers.

use std::path::Path;
use std::process::Command;

use crate::deadletters_browser::{installed, sources};
use crate::dev_page_server::{Dev, subscription};
use crate::programs::receiver;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const BUSY: &str =
    "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\nretry-after: 600\r\nconnection: close\r\n\r\nbusy";

#[test]
fn a_person_watches_filters_opens_and_publishes_and_nothing_of_an_event_runs() {
    let Some((installed, chromium)) = installed() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let ((good, _received), (busy, _refused)) = (receiver(OK), receiver(BUSY));
    let both = [subscription("good", &good, "", ""), subscription("busy", &busy, "", "")];
    let dev = Dev::start(folder.path(), &both.concat(), &[]);
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&pictures).expect("a folder can be made");
    let browse = Command::new("node")
        .arg(sources().join("dev.mjs"))
        .args([&installed, Path::new(&chromium)])
        .args([Path::new(&format!("http://{}", dev.page)), &pictures])
        .env("INGRESS", format!("http://{}/topics/shop/orders", dev.ingress))
        .output()
        .expect("an installed language starts");
    assert!(browse.status.success(), "{}", String::from_utf8_lossy(&browse.stderr));
}
