//! When the functions read the certificate authorities of the machine, and what becomes of deliveries without any.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tempfile::{NamedTempFile, tempdir};

use crate::environment::{DEADLETTER, DISPATCH, INGRESS};
use crate::ingress::BY_KEYS;
use crate::records::{invocation, published};
use crate::world::World;

/// The variable that names the file with the authorities.
const SSL_CERT_FILE: &str = "SSL_CERT_FILE";

/// A file that nobody can read to its end: whoever opens it waits for somebody who writes.
fn endless(folder: &Path) -> String {
    let pipe = folder.join("authorities").display().to_string();
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success(), "{made}");
    pipe
}

#[tokio::test]
async fn a_start_reads_none_of_them() {
    let (world, folder) = (World::start().await, tempdir().expect("a folder"));
    let authorities = endless(folder.path());
    for function in [&DISPATCH, &DEADLETTER, &INGRESS] {
        let changes = [&BY_KEYS[..], &[(SSL_CERT_FILE, &authorities)]].concat();
        let mut running = world.run(function, &changes, invocation(&[])).await;
        running.has_started().await;
    }
}

#[tokio::test]
async fn a_delivery_that_can_trust_nobody_waits_and_says_why() {
    let world = World::start().await;
    let nobody = NamedTempFile::new().expect("a file").into_temp_path();
    fs::write(&nobody, "").expect("it is written");
    let nobody = nobody.display().to_string();
    let event = invocation(&[published("m1", "shop/encrypted")]);
    let mut function = world.run(&DISPATCH, &[(SSL_CERT_FILE, &nobody)], event).await;
    assert_eq!(function.returned().await, [""; 0]);
    let line = function.line("delivery.attempted").await;
    assert_eq!((&line["outcome"], &line["verdict"]), (&json!("Aborted"), &json!("retry")));
    let why = line["why"].as_str().expect("a reason");
    assert!(why.contains("the CA certificates of this machine cannot be read"), "{why}");
    assert_eq!((world.requested().len(), world.held("retry").await), (0, 1));
}
