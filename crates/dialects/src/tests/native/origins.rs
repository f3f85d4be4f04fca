//! Where values of a policy are stated, also by two documents.

use super::{HEAD, TOPIC, URL, read_one};

#[test]
fn every_stated_value_has_its_place() {
    let topic = |dead_letter: &str| {
        let delivery =
            format!("{{retry: {{maxAttempts: 4, timeToLive: PT1H}}, deadLetter: {dead_letter}}}");
        format!("{TOPIC}spec: {{delivery: {delivery}}}\n---\n")
    };
    for (of_topic, own, dead_letter) in [
        ("{delay: PT1M}", "", vec![("deadLetter.delay", "f:4:82")]),
        ("{delay: PT1M}", "  deadLetter: none\n", vec![("deadLetter.sink", "f:12:15")]),
        ("none", "", vec![("deadLetter.sink", "f:4:74")]),
        ("none", "  deadLetter: {delay: PT1M}\n", vec![("deadLetter.delay", "f:12:23")]),
    ] {
        let reading =
            read_one(&format!("{}{HEAD}{URL}  retry: {{maxAttempts: 7}}\n{own}", topic(of_topic)));
        let origins = &reading.origins[&"n/t/s".parse().unwrap()];
        let found: Vec<(&str, &str)> =
            origins.iter().map(|(field, at)| (field.as_str(), at.as_str())).collect();
        let retry = [("maxAttempts", "f:11:24"), ("timeToLive", "f:4:55"), ("url", "f:10:22")];
        assert_eq!(
            found,
            dead_letter.into_iter().chain(retry).collect::<Vec<_>>(),
            "{of_topic} {own}"
        );
    }
}

#[test]
fn what_is_sent_has_its_place_too() {
    let topic = format!(
        "{TOPIC}spec: {{delivery: {{destination: {{schema: custom, maxConcurrency: 3}}}}}}\n---\n"
    );
    let own = "  destination: {url: http://h/, schema: eventgrid, headers: [], signing: {secrets: [env:A], publicKeys: ['whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=']}}\n";
    let reading = read_one(&format!("{topic}{HEAD}{own}"));
    let origins = &reading.origins[&"n/t/s".parse().unwrap()];
    let found: Vec<(&str, &str)> =
        origins.iter().map(|(field, at)| (field.as_str(), at.as_str())).collect();
    assert_eq!(
        found,
        [
            ("headers", "f:10:61"),
            ("maxConcurrency", "f:4:65"),
            ("schema", "f:10:41"),
            ("signing", "f:10:74"),
            ("url", "f:10:22"),
        ]
    );
}
