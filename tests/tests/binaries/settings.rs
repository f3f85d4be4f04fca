//! A function without a required setting does not start, and names the setting.

use crate::environment::{DEADLETTER, DISPATCH, Function, INGRESS, environment};
use crate::world::command;

/// An address without a server, where a function that starts anyway fails.
const NOWHERE: &str = "127.0.0.1:1";

fn assert_needs(function: &Function, name: &str) {
    let mut variables = environment(function, "http://127.0.0.1:1", NOWHERE);
    assert!(variables.remove(name).is_some(), "the template does not set {name}");
    let output = command(function, &variables).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{name}: {said}");
    assert!(said.contains(&format!("the environment variable {name} is not set")), "{said}");
}

#[test]
fn dispatch_does_not_start_without_a_setting_and_names_it() {
    for name in [
        "SUBSCRIPTIONS_URI",
        "TABLE_NAME",
        "EVENTS_QUEUE_URL",
        "RETRY_QUEUE_URL",
        "SLOW_QUEUE_URL",
        "ISOLATION_QUEUE_URL",
        "DEAD_LETTER_QUEUE_URL",
        "DEAD_LETTER_CONTAINER",
    ] {
        assert_needs(&DISPATCH, name);
    }
}

#[test]
fn deadletter_does_not_start_without_a_setting_and_names_it() {
    for name in [
        "DEAD_LETTER_QUEUE_URL",
        "EVENTS_QUEUE_URL",
        "LAST_RESORT_QUEUE_URL",
        "DEAD_LETTER_CONTAINER",
    ] {
        assert_needs(&DEADLETTER, name);
    }
}

#[test]
fn the_ingress_does_not_start_without_a_setting_and_names_it() {
    for name in ["EVENTS_QUEUE_URL", "INGRESS_AUTHORIZATION"] {
        assert_needs(&INGRESS, name);
    }
}

#[test]
fn the_ingress_does_not_start_with_keys_and_none_named() {
    let mut variables = environment(&INGRESS, "http://127.0.0.1:1", NOWHERE);
    variables.insert("INGRESS_AUTHORIZATION".to_owned(), "keys".to_owned());
    let output = command(&INGRESS, &variables).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("PUBLISHER_KEYS is not set"), "{said}");
}
