//! Waits and ends of the files of other systems, as `lastmile explain` prints them.

use std::process::{Command, Output};

const DESTINATIONS: &str = "\n---\napiVersion: lastmile.dev/v1\nkind: Destinations\n\
    spec: {serving.knative.dev/v1/Service/default/sink: 's3://letters'}\n";

fn explain(file: &str, text: &str, rest: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join(file), text).expect("the file can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(["explain", "-f", file, "--output", "json"]).args(rest).current_dir(folder.path());
    command.output().expect("the program runs")
}

/// The waits of the retries in seconds, the reason of the end and its time in seconds.
fn life(file: &str, text: &str, rest: &[&str]) -> (Vec<u64>, String, u64) {
    let output = explain(file, text, rest);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let explained: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the output is JSON");
    let waits = explained["attempts"].as_array().into_iter().flatten().skip(1);
    let seconds = |value: &serde_json::Value| value.as_u64().expect("a number") / 1_000;
    let reason = explained["end"]["reason"].as_str().expect("a text").to_owned();
    (
        waits.map(|attempt| seconds(&attempt["wait_ms"])).collect(),
        reason,
        seconds(&explained["end"]["at_ms"]),
    )
}

/// A trigger of a broker of this class.
fn trigger(class: &str, policy: &str) -> String {
    format!(
        "apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata:\n  name: b\n  annotations: \
         {{eventing.knative.dev/broker.class: {class}}}\n---\n\
         apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {{name: t}}\nspec:\n  broker: b\n  \
         subscriber: {{uri: 'https://a.example.com/'}}\n  delivery:\n    retry: 5\n    backoffPolicy: {policy}\n    \
         backoffDelay: PT1S\n    deadLetterSink: {{ref: {{apiVersion: serving.knative.dev/v1, kind: Service, name: sink}}}}\n\
         {DESTINATIONS}"
    )
}

/// A subscription to a channel of this kind.
fn channel(kind: &str, policy: &str) -> String {
    format!(
        "apiVersion: messaging.knative.dev/v1\nkind: Subscription\nmetadata: {{name: s}}\nspec:\n  \
         channel: {{apiVersion: messaging.knative.dev/v1, kind: {kind}, name: c}}\n  \
         subscriber: {{uri: 'https://a.example.com/'}}\n  delivery: {{retry: 5, backoffPolicy: {policy}, backoffDelay: PT1S}}\n"
    )
}

#[test]
fn knative_waits_follow_the_class_of_the_broker_or_channel() {
    for (text, waits) in [
        (trigger("Kafka", "exponential"), [2, 4, 8, 16, 32]),
        (trigger("MTChannelBasedBroker", "exponential"), [1, 2, 4, 8, 16]),
        (trigger("googlecloud", "exponential"), [1, 2, 4, 8, 16]),
        (channel("InMemoryChannel", "linear"), [0, 1, 2, 3, 4]),
        (channel("KafkaChannel", "linear"), [1, 2, 3, 4, 5]),
    ] {
        let exceeded = "MaxDeliveryAttemptsExceeded".to_owned();
        assert_eq!(
            life("k.yaml", &text, &[]),
            (waits.to_vec(), exceeded, waits.iter().sum()),
            "{text}"
        );
    }
}

#[test]
fn a_policy_that_a_class_does_not_support_is_an_error_with_its_location() {
    let output = explain("k.yaml", &trigger("googlecloud", "linear"), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(
        stderr.lines().any(|line| line.starts_with("k.yaml:15:20: error: ") && line.contains("backoffPolicy")),
        "{stderr}"
    );
}

#[test]
fn event_grid_retries_until_the_time_to_live_or_a_final_status() {
    let text = include_str!("../../../../examples/eventgrid.json");
    let waits = vec![10, 30, 60, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200];
    let ended = 34 * 3_600 + 46 * 60 + 40;
    assert_eq!(life("e.json", text, &[]), (waits, "TimeToLiveExceeded".to_owned(), ended));
    assert_eq!(life("e.json", text, &["--outcome", "408"]).0[0], 120);
    let refused = (vec![], "UndeliverableDueToHttpBadRequest".to_owned(), 0);
    assert_eq!(life("e.json", text, &["--outcome", "400"]), refused);
}

#[test]
fn event_grid_namespaces_and_kubernetes_have_their_own_schedules() {
    let namespace = include_str!("../../../../examples/eventgrid-namespace.json");
    let namespace: serde_json::Value =
        serde_json::from_str(namespace).expect("the example is JSON");
    let namespace = with(namespace, "eventTimeToLive", &"PT20M".into());
    let waits = vec![10, 20, 30, 240, 300, 300];
    assert_eq!(life("n.json", &namespace, &[]), (waits, "TimeToLiveExceeded".to_owned(), 1_200));

    let kubernetes = include_str!("../../../../examples/eventgrid-kubernetes.json");
    let kubernetes: serde_json::Value =
        serde_json::from_str(kubernetes).expect("the example is JSON");
    let kubernetes = with(kubernetes, "maxDeliveryAttempts", &3.into());
    assert_eq!(
        life("k.json", &kubernetes, &[]),
        (vec![60, 600], "MaxDeliveryAttemptsExceeded".to_owned(), 660)
    );
}

/// A resource of the preview version with this source.
fn preview(source: &str) -> String {
    format!(
        r#"{{"apiVersion": "2020-10-15-preview", "name": "n", "type": "Microsoft.EventGrid/eventSubscriptions",
        "id": "/subscriptions/s/resourceGroups/g/providers/{source}/eventSubscriptions/n",
        "properties": {{"destination": {{"endpointType": "WebHook", "properties": {{"endpointUrl": "https://a.example.com/"}}}}}}}}"#
    )
}

#[test]
fn the_preview_version_is_kubernetes_for_custom_topics_and_changes_nothing_for_others() {
    let waits = vec![10, 30, 60, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200];
    let ended = 34 * 3_600 + 46 * 60 + 40;
    for source in [
        "Microsoft.EventGrid/systemTopics/t",
        "Microsoft.EventHub/namespaces/h/providers/Microsoft.EventGrid",
    ] {
        let expected = (waits.clone(), "TimeToLiveExceeded".to_owned(), ended);
        assert_eq!(life("s.json", &preview(source), &[]), expected, "{source}");
    }
    let (waits, reason, ended) = life("t.json", &preview("Microsoft.EventGrid/topics/t"), &[]);
    assert_eq!(
        (&waits[..3], reason.as_str(), ended),
        (&[60, 600, 600][..], "TimeToLiveExceeded", 7_260)
    );
}

#[test]
fn a_wait_of_fourteen_days_is_not_begun() {
    let text = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: t}\nspec:\n  broker: b\n  \
                subscriber: {uri: 'https://a.example.com/'}\n  \
                delivery: {retry: 1, backoffPolicy: exponential, backoffDelay: P14D}\n";
    assert_eq!(life("k.yaml", text, &[]), (vec![], "TimeToLiveExceeded".to_owned(), 0));
}

/// The document with another value of the field of this name, at any depth.
fn with(mut document: serde_json::Value, name: &str, value: &serde_json::Value) -> String {
    assert!(set(&mut document, name, value), "{name} is in {document}");
    document.to_string()
}

fn set(document: &mut serde_json::Value, name: &str, value: &serde_json::Value) -> bool {
    let Some(members) = document.as_object_mut() else { return false };
    if let Some(field) = members.get_mut(name) {
        *field = value.clone();
        return true;
    }
    members.values_mut().any(|member| set(member, name, value))
}
