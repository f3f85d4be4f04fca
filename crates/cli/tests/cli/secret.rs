//! `secret`: what it prints is accepted by both ends, is new each time, and is in no next step.

use serde_json::Value;

use crate::programs::{Running, lastmile};

/// What it prints, and the next steps.
fn printed(options: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = lastmile(folder.path(), &[&["secret"], options].concat());
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0, "it writes no file");
    let [printed, steps] = [output.stdout, output.stderr].map(String::from_utf8);
    (printed.expect("a text"), steps.expect("a text"))
}

/// The commands that check and make signatures accept this key.
fn is_accepted(key: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let words = ["subscriber", "--port", "0", "--secret", "env:KEY", "--require-signature"];
    let mut command = lastmile(folder.path(), &words);
    command.env("KEY", key);
    let mut running = Running::start(command);
    running.line_with("listening").contains("http://")
}

#[test]
fn a_secret_is_new_each_time_and_accepted_and_no_next_step_shows_it() {
    let [(first, steps), (second, _)] = [printed(&[]), printed(&[])];
    assert_ne!(first, second);
    let secret = first.strip_suffix('\n').expect("a line end");
    assert!(secret.starts_with("whsec_") && !secret.contains('\n'), "{first}");
    assert!(is_accepted(secret));
    assert!(!steps.contains(secret), "{steps}");
    assert_eq!(steps.lines().count(), 3, "{steps}");
    for part in ["env:SIGNING_SECRET", "create-secret --region", "receiver: needs the same"] {
        assert!(steps.contains(part), "{steps}");
    }
}

#[test]
fn a_key_pair_is_a_private_and_a_public_key_and_the_steps_show_the_public_one() {
    let (keys, steps) = printed(&["--key-pair"]);
    let [private, public] = keys.lines().collect::<Vec<_>>()[..] else { panic!("{keys}") };
    assert!(private.starts_with("whsk_") && public.starts_with("whpk_"), "{keys}");
    assert!(is_accepted(private) && is_accepted(public));
    assert!(steps.contains(&format!("publicKeys: [\"{public}\"]")), "{steps}");
    assert!(!steps.contains(private), "{steps}");
    assert_eq!(steps.lines().count(), 3, "{steps}");
}

#[test]
fn tools_get_one_object_and_no_next_step() {
    for (options, members) in [
        (&["--output", "json"][..], &["secret"][..]),
        (&["--key-pair", "--output", "json"], &["privateKey", "publicKey"]),
    ] {
        let (object, steps) = printed(options);
        let object: Value = serde_json::from_str(&object).expect("JSON");
        let object = object.as_object().expect("an object");
        assert_eq!(object.keys().collect::<Vec<_>>(), members);
        assert_eq!(steps, "");
    }
}
