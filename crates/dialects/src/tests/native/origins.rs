//! Places of the values of a policy, which may be stated in two documents.

use super::{HEAD, TOPIC, URL};
use crate::tests::support::{origins, read_one};

#[test]
fn every_stated_value_has_its_place() {
    let retry = "retry: {maxAttempts: 4, timeToLive: PT1H}";
    let of_retry = ["maxAttempts f:11:24", "timeToLive f:4:55", "url f:10:22"];
    for (dead_letter, own, place) in [
        ("{delay: PT1M}", "", "deadLetter.delay f:4:82"),
        ("{delay: PT1M}", "  deadLetter: none\n", "deadLetter.sink f:12:15"),
        ("none", "", "deadLetter.sink f:4:74"),
        ("none", "  deadLetter: {delay: PT1M}\n", "deadLetter.delay f:12:23"),
    ] {
        let topic =
            format!("{TOPIC}spec: {{delivery: {{{retry}, deadLetter: {dead_letter}}}}}\n---\n");
        let reading = read_one(&format!("{topic}{HEAD}{URL}  retry: {{maxAttempts: 7}}\n{own}"));
        let expected = [&[place][..], &of_retry].concat();
        assert_eq!(origins(&reading, "n/t/s"), expected, "{dead_letter} {own}");
    }
}

#[test]
fn what_is_sent_has_its_place_too() {
    let key = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let signing = format!("signing: {{secrets: [env:A], publicKeys: ['{key}']}}");
    for (topic, own, expected) in [
        (
            "destination: {schema: custom, maxConcurrency: 3}",
            format!("  destination: {{url: http://h/, schema: eventgrid, headers: [], {signing}}}\n"),
            &["headers f:10:61", "maxConcurrency f:4:65", "schema f:10:41", "signing f:10:74", "url f:10:22"][..],
        ),
        (
            "batch: {maxEvents: 7, onRefused: all}",
            "  destination: {url: http://h/, lateResponseWindow: PT1M, probation: true, consent: {handshake: eventgrid}}\n  \
             batch: {maxEvents: 8, preferredKilobytes: 9}\n"
                .to_owned(),
            &[
                "batch.maxEvents f:11:22",
                "batch.onRefused f:4:52",
                "batch.preferredKilobytes f:11:45",
                "consent f:10:85",
                "lateResponseWindow f:10:53",
                "probation f:10:70",
                "url f:10:22",
            ],
        ),
    ] {
        let topic = format!("{TOPIC}spec: {{delivery: {{{topic}}}}}\n---\n");
        let reading = read_one(&format!("{topic}{HEAD}{own}"));
        assert_eq!(origins(&reading, "n/t/s"), expected);
    }
}
