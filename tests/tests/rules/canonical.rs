//! The canonical form means the same as its source in every dialect, and is its own canonical form.

use std::fs;
use std::path::{Path, PathBuf};

use delivery::native::documents;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::SecretName;
use delivery::topic_object::{self, Content, DeploymentObjects};
use dialects::{Reading, Severity, Source, read};
use proptest::prelude::*;
use serde_json::Value;

/// The documents of a reading as one text.
fn written(reading: &Reading) -> String {
    Value::from(documents(&reading.catalogue)).to_string()
}

/// Checks that the canonical form of a reading has the same topics and subscriptions, and the same
/// canonical form.
pub(crate) fn is_kept(reading: &Reading) {
    let canonical = written(reading);
    let again = read(&[Source { name: "canonical.json", text: &canonical }]);
    let errors: Vec<_> =
        again.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{canonical}");
    for subscription in reading.catalogue.subscriptions() {
        let read = again.catalogue.subscription(&subscription.name);
        let [before, after] = [Some(subscription), read].map(|version| format!("{version:#?}"));
        let differing = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        assert_eq!(differing, None, "{canonical}");
    }
    assert!(again.catalogue == reading.catalogue, "{canonical}");
    reading.catalogue.subscriptions().for_each(|subscription| knows_its_secrets(subscription));
    assert_eq!(written(&again), canonical);
    are_kept_in_objects(reading);
}

/// Checks that the objects of the topics of a reading give back the same topics and subscriptions.
fn are_kept_in_objects(reading: &Reading) {
    let objects = DeploymentObjects::new("owner", &reading.catalogue);
    let secrets = &reading.catalogue.settings().secrets;
    for (name, object) in &objects.topics {
        let text = object.to_text().expect("an object");
        let Ok(Content::Topic(parsed)) = Content::parse(text.as_bytes()) else { panic!("{text}") };
        assert_eq!(parsed, *object);
        let topic = topic_object::read(name, &parsed, secrets).expect(&text);
        assert_eq!(topic.unusable().len(), 0, "{:?}", topic.unusable());
        let expected = reading.catalogue.topic_subscriptions(name).expect("a topic");
        assert_eq!(&topic, &**expected, "{text}");
    }
    let settings = topic_object::settings(&objects.settings, &objects.publishers);
    assert_eq!(settings.as_ref(), Ok(reading.catalogue.settings()));
}

/// Checks that every text of a destination that is the name of a secret is one of its secrets.
/// Otherwise, a policy and its check would miss that secret.
fn knows_its_secrets(subscription: &Subscription) {
    fn names(value: &Value, found: &mut Vec<SecretName>) {
        match value {
            Value::String(text) => found.extend(text.parse::<SecretName>()),
            Value::Array(elements) => elements.iter().for_each(|element| names(element, found)),
            Value::Object(fields) => fields.values().for_each(|field| names(field, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut catalogue = Catalogue::default();
    catalogue.add_subscription(subscription.clone());
    let mut named = Vec::new();
    for document in documents(&catalogue) {
        names(&document["spec"]["destination"], &mut named);
    }
    let known: Vec<&SecretName> =
        subscription.destination.secrets_with_addresses().map(|(name, _)| name).collect();
    for name in named {
        assert!(known.contains(&&name), "{name} is no secret of {}", subscription.name);
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "json")
        {
            found.push(path);
        }
    }
}

#[test]
fn examples_and_samples_of_every_dialect_are_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["examples", "crates/dialects/fixtures"] {
        files(&root.join(folder), &mut found);
    }
    let mut dialects = Vec::new();
    for path in &found {
        let text = fs::read_to_string(path).expect("text");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let reading = read(&[Source { name, text: &text }]);
        is_kept(&reading);
        dialects.extend(reading.catalogue.subscriptions().map(|subscription| subscription.dialect));
    }
    // The samples of Azure's own endpoints are among the files of other projects.
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::EventGridResource)
    {
        assert!(dialects.contains(&dialect), "{dialect:?} is in none of {found:?}");
    }
}

/// The fields that a `spec` may have in each of its sections. A document has one text of each list,
/// or none.
const SECTIONS: [(&str, &[&[&str]]); 4] = [
    (
        "destination",
        &[
            &["reference: crm"],
            &[
                "tls: {caBundle: \"-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n\"}",
            ],
            &["method: PUT", "method: DELETE"],
            &["query: {a: '{{ attempt.number }}', b: c}"],
            &[
                "body: {a: ['{{ attempt.number }}', 1.5, null]}",
                "bodyText: '<a>{{ attempt.number }}</a>'",
                "bodyText: a, contentType: application/xml",
            ],
            &["schema: eventgrid", "schema: custom", "schema: cloudevents-binary"],
            &["plainJson: true", "plainJson: false"],
            &["hidePath: true", "hidePath: false"],
            &["timeout: PT1S", "timeout: PT10M", "timeout: PT90S"],
            &["maxConcurrency: 1", "maxConcurrency: 1000"],
            &[
                "headers: [{name: a, value: b}, {name: c, path: data.id}]",
                "headers: [{name: a, value: b, hidden: true}]",
                "headers: [{name: k, secret: 'env:K'}]",
                "headers: [{name: t, value: 'number {{ attempt.number }}'}]",
            ],
            &[
                "auth: {basic: {user: u, password: 'env:P'}}",
                "auth: {awsIdentity: {audience: a, lifetime: PT10M}}",
                "auth: {oauth2: {tokenUrl: 'https://t.example.com/', clientId: c, clientSecret: 'env:S', parameters: {tenant: 7}}}",
                "auth: {sigv4: {service: lambda, region: eu-west-1}}",
                "auth: {clientCertificate: {certificate: 'env:C', key: 'env:D'}}",
                "auth: {header: {name: x, value: 'env:V'}}",
                "auth: {bearer: {token: 'env:T'}}",
            ],
            &[
                "signing: {secrets: ['env:A', 'env:B']}",
                "signing: {secrets: ['env:A'], publicKeys: ['whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=']}",
            ],
            &["notificationHeaders: true", "notificationHeaders: false"],
            &["maxPerSecond: 7"],
            &["slowAfter: PT9S"],
            &["lateResponseWindow: PT0S", "lateResponseWindow: PT1M"],
            &["probation: true", "probation: false"],
            &["disable: {after: PT1H}", "disable: {after: P2D}"],
            &[
                "consent: {handshake: eventgrid}",
                "consent: {handshake: cloudevents, origin: a.example.com, rate: 9}",
            ],
        ],
    ),
    (
        "retry",
        &[
            &["maxAttempts: 1", "maxAttempts: 1000"],
            &["timeToLive: PT1S", "timeToLive: P14D"],
            &[
                "schedule: {kind: linear, delay: PT1S}",
                "schedule: {kind: linear, numbering: fromZero, max: P14D}",
                "schedule: {delay: PT2S, max: PT3S}",
                "schedule: {numbering: fromZero}",
                "schedule: {kind: constant}",
                "schedule: {kind: waits, waits: [PT1S, PT2S], max: PT1S}",
                "schedule: {kind: moments, moments: [PT1S, PT2S]}",
            ],
            &["jitterPercent: 0", "jitterPercent: 100"],
            &["success: [200]", "success: [200-299]", "success: [200-202, 404]"],
            &["neverRetry: [500]", "neverRetry: [409, 500-599]"],
            &["retryOn: [400]", "retryOn: [403, 410]"],
            &["leastWaits: {503: PT9S}", "leastWaits: {}"],
            &["otherwiseLeastWait: PT0S", "otherwiseLeastWait: PT3S"],
            &["retryAfterMax: PT0S", "retryAfterMax: P1D"],
            &["lastAttemptNamesTheLimit: true", "lastAttemptNamesTheLimit: false"],
        ],
    ),
    (
        "deadLetter",
        &[
            &[
                "sink: 's3://letters/a'",
                "sink: 'https://l.example.com/?k=v'",
                "sink: 'sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost'",
            ],
            &["hidePath: true"],
            &["reference: letters"],
            &[
                "format: namespace",
                "format: eventgrid",
                "format: cloudevents",
                "format: custom",
                "format: knative",
                "format: byDeliverySchema",
            ],
            &["layout: flat", "layout: nested"],
            &["errorData: base64"],
            &["response: none", "response: beginning"],
            &["delay: PT0S", "delay: PT15M"],
            &["keepTryingFor: PT1M", "keepTryingFor: P3D"],
        ],
    ),
    ("batch", &[&["maxEvents: 9"], &["preferredKilobytes: 9"], &["onRefused: all"]]),
];

const REST: [&[&str]; 6] = [
    &[
        "filter: {exact: {type: a}, not: {prefix: {subject: b}}}",
        "filter: {any: [{suffix: {source: c}}, {cesql: 'n = 1'}]}",
        "filter: {eventGrid: {operatorType: NumberInRange, key: data.n, values: [[1, 2], [3.5, '12345678901234567890']]}}",
        "filter: {all: [{eventGrid: {operatorType: StringNotContains, key: subject, values: [Ä, b], arrays: elements}}, {exactText: {n: '5'}}]}",
        "filter: {eventGrid: {operatorType: StringNotIn, key: data.t, values: [Ä, b], arrays: elements, caseSensitive: true}}",
    ],
    &["delay: PT0.5S", "delay: P7D"],
    &["paused: true"],
    &["reply: 'https://r.example.com/?a=b'", "reply: 'topic:n/t'"],
    &["replyReference: partner"],
    &["expires: 2030-01-01T00:00:00Z", "expires: 9999-12-31T23:59:59.9999999Z"],
];

/// The fields that a Topic may have besides the settings of its Subscriptions.
const TOPIC: [&[&str]; 4] = [
    &["input: custom", "input: sns", "input: opaque"],
    &["maxReplies: 0", "maxReplies: 10000"],
    &["from: [{bucket: uploads}, {eventSource: com.example}]"],
    &[
        "mapping: {id: {field: data.id}, topic: {field: data.shop}, eventTime: {field: data.at}}",
        "mapping: {eventType: {field: data.kind, default: order}, subject: {default: none}, dataVersion: {default: '1'}}",
    ],
];

/// Chooses one text of each list, or none.
fn chosen(options: &[&[&str]], picks: &mut impl Iterator<Item = usize>) -> Vec<String> {
    let choose = |list: &&[&str]| {
        let pick = picks.next().unwrap_or_default() % (list.len() + 1);
        list.get(pick).map(|text| (*text).to_owned())
    };
    options.iter().filter_map(choose).collect()
}

/// A document with these choices, and the defaults of its topic.
fn document(picks: &[usize]) -> String {
    let mut picks = picks.iter().copied();
    let (profile, _) =
        Dialect::PROFILES[picks.next().unwrap_or_default() % Dialect::PROFILES.len()];
    let mut sections = |url: &str| {
        let mut fields: Vec<String> = Vec::new();
        for (section, options) in SECTIONS {
            let mut texts = chosen(options, &mut picks);
            if section == "destination" && !url.is_empty() {
                texts.push(format!("url: '{url}'"));
            }
            let drops = section == "deadLetter" && texts.len() == 2;
            let text = if drops { "none".to_owned() } else { format!("{{{}}}", texts.join(", ")) };
            fields.extend((text != "{}").then(|| format!("{section}: {text}")));
        }
        fields
    };
    let delivery = sections("").join(", ");
    let mut spec = sections("https://a.example.com/in?k=v");
    spec.extend(chosen(&REST, &mut picks));
    let topic = chosen(&TOPIC, &mut picks).into_iter().chain([format!("delivery: {{{delivery}}}")]);
    let topic = topic.collect::<Vec<_>>().join(", ");
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: n, name: t}}\nspec: {{{topic}}}\n---\n\
         apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: s}}\nprofile: {profile}\n\
         spec: {{{}}}\n",
        spec.join(", ")
    )
}

proptest! {
    #[test]
    fn native_documents_are_kept(picks in prop::collection::vec(0..64_usize, 140)) {
        let text = document(&picks);
        let reading = read(&[Source { name: "native.yaml", text: &text }]);
        is_kept(&reading);
    }
}

/// AWS targets, each with fields that are allowed beside it.
const TARGETS: [&str; 4] = [
    "aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:a', action: SendMessage}, timeout: PT9S",
    "aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:a.fifo', action: SendMessage, parameters: {MessageGroupId: '{{ event.id }}'}}",
    "aws: {arn: 'arn:aws:lambda:eu-west-1:123456789012:function:a', action: Invoke, parameters: {LogType: Tail}}, body: {a: 1}",
    "aws: {arn: 'arn:aws:events:eu-west-1:123456789012:event-bus/a', action: PutEvents}, schema: cloudevents-structured, probation: false",
];

#[test]
fn aws_targets_are_kept_in_every_profile_beside_what_a_topic_states_for_urls() {
    for (profile, _) in Dialect::PROFILES {
        for target in TARGETS {
            let text = format!(
                "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: n, name: t}}\n\
                 spec: {{delivery: {{destination: {{method: PUT, headers: [{{name: a, value: b}}], auth: {{bearer: {{token: 'env:T'}}}}}}}}}}\n---\n\
                 apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: s}}\nprofile: {profile}\n\
                 spec: {{destination: {{{target}}}}}\n"
            );
            is_kept(&read(&[Source { name: "native.yaml", text: &text }]));
        }
    }
}

#[test]
fn every_field_of_a_declared_record_is_chosen_somewhere() {
    let chosen: Vec<&str> = SECTIONS
        .iter()
        .flat_map(|(_, options)| options.iter())
        .chain(&REST)
        .chain(&TOPIC)
        .flat_map(|texts| texts.iter().copied())
        .chain(TARGETS)
        .collect();
    let text = chosen.join("\n");
    for (name, schema) in delivery::native::schema::definitions() {
        // The filter is written by hand. Documents and defaults have the fields of the other
        // records.
        for pair in schema["properties"].as_array().into_iter().flatten() {
            let field = pair[0].as_str().expect("a name");
            let is_section = SECTIONS.iter().any(|(section, _)| *section == field);
            let is_of_deployment = name.ends_with("Document") || name == "secretRule";
            let is_elsewhere = is_of_deployment || field == "url" || is_section;
            let is_chosen = text.match_indices(&format!("{field}:")).any(|(at, _)| {
                let before = text[..at].chars().next_back();
                before.is_none_or(|before| !before.is_alphanumeric())
            });
            assert!(is_elsewhere || is_chosen, "{name}.{field} is chosen nowhere");
        }
    }
}

/// Specs with an error, as JSON.
const REFUSED: [&str; 16] = [
    r#"{}"#,
    r#"{"destination": {"aws": {"arn": "arn:aws:sqs:eu-west-1:123456789012:*", "action": "SendMessage"}}}"#,
    r#"{"destination": {"aws": {"arn": "arn:aws:sqs:eu-west-1:123456789012:a", "action": "Invoke"}}}"#,
    r#"{"destination": {"url": "example.com"}}"#,
    r#"{"destination": {"url": "https://a.example.com", "headers": [{"name": "content-length", "value": "5"}]}}"#,
    r#"{"destination": {"url": "https://a.example.com", "headers": [{"name": "host", "value": "b.example.com"}]}}"#,
    r#"{"destination": {"url": "https://a.example.com", "timeout": "PT11M"}}"#,
    r#"{"destination": {"url": "https://a.example.com", "schema": "unknown"}}"#,
    r#"{"destination": {"url": "https://a.example.com", "auth": {"bearer": {"token": "in clear text"}}}}"#,
    r#"{"destination": {"url": "https://a.example.com"}, "batch": {"onRefused": "all"}}"#,
    r#"{"destination": {"url": "https://a.example.com", "schema": "cloudevents-binary"}, "batch": {"maxEvents": 9}}"#,
    r#"{"destination": {"url": "https://a.example.com"}, "retry": {"maxAttempts": 4000000000}}"#,
    r#"{"destination": {"url": "https://a.example.com"}, "retry": {"success": [200], "neverRetry": [200]}}"#,
    r#"{"destination": {"url": "https://a.example.com"}, "retry": {"schedule": {"kind": "waits"}}}"#,
    r#"{"destination": {"url": "https://a.example.com"}, "deadLetter": {"sink": "ftp://a.example.com"}}"#,
    r#"{"destination": {"url": "https://a.example.com"}, "filter": {"cesql": "type = "}}"#,
];

#[test]
fn what_a_file_may_not_state_cannot_be_used_in_an_object_either() {
    for spec in REFUSED {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: n, topic: t, name: s}}\nspec: {spec}\n"
        );
        let of_file = read(&[Source { name: "native.yaml", text: &text }]);
        assert!(
            of_file.findings.iter().any(|finding| finding.severity == Severity::Error),
            "{spec}"
        );

        let stored = format!(r#"{{"v": 1, "subscriptions": {{"s": {{"spec": {spec}}}}}}}"#);
        let Ok(Content::Topic(object)) = Content::parse(stored.as_bytes()) else {
            panic!("{spec}")
        };
        let name = "n/t".parse().expect("a topic");
        let topic = topic_object::read(&name, &object, &Default::default()).expect("a topic");
        assert!(topic.unusable().contains_key("s"), "{spec}");
    }
}
