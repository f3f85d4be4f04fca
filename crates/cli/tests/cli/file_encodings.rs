//! Files in an encoding that is not UTF-8: what can be read is, and everything else is refused with its line.

use std::path::Path;
use std::process::Stdio;

use crate::programs::{Running, lastmile, printed, run};

const DOCUMENT: &str = "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                        metadata: {namespace: shop, topic: orders, name: a}\n# caf\u{e9}\n\
                        spec: {destination: {url: 'https://a.example.com/'}}\n";
const LATIN: &str = "line 4 is not UTF-8 text: it has the byte 0xE9; if the file is latin1, convert it: iconv -f latin1 -t utf-8";

/// A folder with the document in several encodings.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: Vec<u8>| {
        std::fs::write(folder.path().join(name), bytes).expect("a file can be written");
    };
    let units = |bytes: fn(u16) -> [u8; 2]| DOCUMENT.encode_utf16().flat_map(bytes).collect();
    write("latin.yaml", DOCUMENT.chars().map(|c| u8::try_from(c).expect("Latin-1")).collect());
    write("utf16le.yaml", units(u16::to_le_bytes));
    write("utf16be.yaml", units(u16::to_be_bytes));
    write(
        "event.json",
        b"{\"specversion\":\"1.0\",\"id\":\"1\",\n\"source\":\"caf\xe9\",\"type\":\"t\"}".to_vec(),
    );
    folder
}

/// A command line about a file.
fn words<'a>(line: &'a str, file: &'a str) -> Vec<&'a str> {
    line.split(' ').map(|word| if word == "FILE" { file } else { word }).collect()
}

#[test]
fn every_command_that_reads_subscriptions_reads_utf_16_and_names_the_line_of_what_is_no_text() {
    let folder = files();
    let to = format!("--to file://{}/deployed/", folder.path().display());
    let apply = format!("apply {to} --yes -f FILE");
    for line in [
        "check FILE",
        "explain FILE",
        "explain -f FILE",
        "convert FILE",
        "try --consent -f FILE",
        "try shop/orders/a --print -f FILE",
        apply.as_str(),
    ] {
        let (said, code) = run(folder.path(), &words(line, "latin.yaml"));
        let expected = format!("lastmile: latin.yaml cannot be read: {LATIN}\n");
        assert_eq!((said, code), (expected, Some(2)), "{line}");
        for file in ["utf16le.yaml", "utf16be.yaml"] {
            let (said, code) = run(folder.path(), &words(line, file));
            assert_eq!(code, Some(0), "{line} {file}: {said}");
        }
    }
}

#[test]
fn dev_reads_the_same_files() {
    let folder = files();
    let arguments = "dev --port 0 --aws-port 0 --console-port 0 -f FILE";
    let (said, code) = run(folder.path(), &words(arguments, "latin.yaml"));
    assert_eq!((said, code), (format!("lastmile: latin.yaml cannot be read: {LATIN}\n"), Some(2)));
    let mut dev = Running::start(lastmile(folder.path(), &words(arguments, "utf16le.yaml")));
    dev.line_with("1 subscription from utf16le.yaml");
    assert!(!dev.seen().contains("cannot be read"), "{}", dev.seen());
    std::fs::copy(folder.path().join("latin.yaml"), folder.path().join("utf16le.yaml"))
        .expect("a file can be copied");
    let saved = dev.line_with("not reloaded");
    assert!(saved.contains(LATIN), "{saved}");
}

#[test]
fn events_are_read_in_the_same_way() {
    let folder = files();
    let problem = "line 2 is not UTF-8 text: it has the byte 0xE9";
    for line in [
        "explain -f utf16le.yaml --event FILE",
        "try shop/orders/a --print -f utf16le.yaml --event FILE",
        "publish --topic shop/orders FILE",
    ] {
        let (said, code) = run(folder.path(), &words(line, "event.json"));
        let expected = format!("lastmile: event.json cannot be read: {problem}");
        assert!(said.starts_with(&expected) && code == Some(2), "{line}: {said}");
        let (said, code) = from_standard_input(folder.path(), &words(line, "-"));
        let expected = format!("lastmile: standard input cannot be read: {problem}");
        assert!(said.starts_with(&expected) && code == Some(2), "{line}: {said}");
    }
}

fn from_standard_input(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let event = std::fs::File::open(folder.join("event.json")).expect("the event is there");
    let output = lastmile(folder, arguments).stdin(Stdio::from(event)).output();
    printed(&output.expect("the program runs"))
}
