//! Texts that are refused, and why; no text panics.

use std::sync::Arc;

use delivery::subscription::Subscription;
use delivery::subscription::name::TopicName;
use delivery::subscription::profile::Dialect;
use delivery::wire::stored::{
    StoredError, read_subscription, read_topic, write_subscription, write_topic,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::fixtures::{SUBSCRIPTIONS, fixture};
use crate::samples::subscription;

fn read(text: &str) -> Result<Subscription, StoredError> {
    let name = "shop/orders/billing".parse().expect("a name");
    read_subscription(name, &Arc::default(), text)
}

/// The error of the text, without where it is.
#[track_caller]
fn refusal(text: &str) -> String {
    let error = read(text).expect_err(text).to_string();
    let told = error.strip_prefix("the stored text is not what this version writes: ");
    let told = told.and_then(|told| told.strip_suffix("; apply the subscriptions again"));
    let told = told.unwrap_or_else(|| panic!("{error}"));
    told.split(" at line 1 column ").next().expect("a first part").to_owned()
}

/// What is replaced, by what, and the error.
const REPLACED: [(&str, &str, &str); 24] = [
    (r#"{"v":1,"#, "{", "missing field `v`"),
    (r#""v":1"#, r#""v":"1""#, r#"invalid type: string "1", expected u32"#),
    (
        r#""native""#,
        r#""ours""#,
        r#"dialect is "ours", expected is one of knative, eventgrid, eventgrid-resource, eventgrid-namespace, eventgrid-kubernetes, native"#,
    ),
    (
        "https://billing",
        "ftp://u:hush@billing",
        "destination.url: not an address, http://… or https://… is expected",
    ),
    (
        "https://billing.example.com/events",
        "http://?hush",
        "destination.url: not an address, http://… or https://… is expected",
    ),
    (
        r#""maxConcurrency":50"#,
        r#""maxConcurrency":0"#,
        "destination.maxConcurrency: 0, at least 1 is expected",
    ),
    (
        r#""maxConcurrency":50"#,
        r#""maxConcurrency":4294967296"#,
        "invalid value: integer `4294967296`, expected u32",
    ),
    (
        r#""maxConcurrency":50"#,
        r#""maxConcurrency":50,"maxPerSecond":0"#,
        "destination.maxPerSecond: 0, at least 1 is expected",
    ),
    (r#""maxConcurrency":50,"#, "", "missing field `maxConcurrency`"),
    (r#""slowAfterMs":2000"#, r#""slowAfterMs":-1"#, "invalid value: integer `-1`, expected u64"),
    (r#""maxAttempts":20"#, r#""maxAttempts":0"#, "retry.maxAttempts: 0, at least 1 is expected"),
    (
        r#""kind":"exponentialFromZero""#,
        r#""kind":"random""#,
        "unknown variant `random`, expected one of `linear`, `exponential`, `linearFromZero`, `exponentialFromZero`, `constant`, `waits`, `moments`",
    ),
    (
        r#""delayMs":5000"#,
        r#""waitsMs":[1]"#,
        "retry.schedule: this kind needs delayMs and no list",
    ),
    (
        r#""kind":"exponentialFromZero","delayMs":5000"#,
        r#""kind":"waits""#,
        "retry.schedule: waits needs waitsMs and nothing else",
    ),
    (
        r#""kind":"exponentialFromZero","delayMs":5000"#,
        r#""kind":"moments","momentsMs":[2,2]"#,
        "retry.schedule: moments needs rising momentsMs and nothing else",
    ),
    (
        r#""success":"200-299""#,
        r#""success":"299-200""#,
        r#"retry.success: "299-200" is neither a status nor a range such as 200-299"#,
    ),
    (
        r#""success":"200-299""#,
        r#""success":"200,+1""#,
        r#"retry.success: "+1" is neither a status nor a range such as 200-299"#,
    ),
    (
        r#""success":"200-299""#,
        r#""success":"200,""#,
        r#"retry.success: "" is neither a status nor a range such as 200-299"#,
    ),
    (
        r#""sink":"default""#,
        r#""sink":"drop""#,
        "unknown variant `drop`, expected one of `default`, `container`, `queue`, `url`, `topic`, `none`",
    ),
    (
        r#""sink":"default""#,
        r#""sink":{"queue":"q"}"#,
        r#"deadLetter.sink: "q" is not a queue: host/account/name is expected, its URL without https://"#,
    ),
    (
        r#""sink":"default""#,
        r#""sink":{"container":"/x"}"#,
        r#"deadLetter.sink: "/x" is not a container: bucket or bucket/prefix is expected"#,
    ),
    (
        r#""sink":"default""#,
        r#""sink":{"url":"mailto:hush"}"#,
        "deadLetter.sink: not an address, http://… or https://… is expected",
    ),
    (
        r#""format":"namespace""#,
        r#""format":"csv""#,
        r#"deadLetter.format is "csv", expected is one of namespace, eventgrid, cloudevents, custom, knative, byDeliverySchema"#,
    ),
    (
        r#""eventsPerBlob":1"#,
        r#""eventsPerBlob":0"#,
        "deadLetter.eventsPerBlob: 0, at least 1 is expected",
    ),
];

/// A field beside the others of a subscription, and the error.
const ADDED: [(&str, &str); 12] = [
    (r#""paused":true,"paused":false"#, "duplicate field `paused`"),
    (
        r#""held":true"#,
        "unknown field `held`, expected one of `v`, `dialect`, `destination`, `filter`, `retry`, `batch`, `deadLetter`, `paused`, `reply`, `replyReference`, `expiresMs`",
    ),
    (
        r#""filter":{"exact":["type"]}"#,
        "invalid length 1, expected tuple variant FilterV1::Exact with 2 elements",
    ),
    (
        r#""filter":{"sql":"true"}"#,
        "unknown variant `sql`, expected one of `all`, `any`, `not`, `exact`, `exactText`, `prefix`, `suffix`, `advanced`, `cesql`",
    ),
    (r#""filter":{"cesql":"type = 'a"}"#, "filter: at character 8: the text has no closing quote"),
    (r#""filter":{"all":[],"any":[]}"#, "expected value"),
    (
        r#""filter":{"advanced":{"key":"a..b","test":"isNotNull"}}"#,
        r#"filter: "a..b" is not a key, such as data.order.total"#,
    ),
    (
        r#""filter":{"advanced":{"key":"a","test":"isNotNull","array":true}}"#,
        "unknown field `array`, expected one of `key`, `test`, `arrays`, `noArrays`",
    ),
    (
        r#""filter":{"advanced":{"key":"a","test":{"number":{"in":["1","x"]}}}}"#,
        r#"filter: "x" is not a number, such as -12.5e3"#,
    ),
    (
        r#""batch":{"maxEvents":0,"preferredBytes":1,"onRefused":"all"}"#,
        "batch.maxEvents: 0, at least 1 is expected",
    ),
    (
        r#""reply":{"topic":"t"}"#,
        r#"reply: "t" is not a topic: namespace/topic is expected, and a name is 1 to 255 bytes once percent-encoded, without / and control characters"#,
    ),
    (r#""paused":"yes""#, r#"invalid type: string "yes", expected a boolean"#),
];

/// The same in its destination.
const ADDED_TO_DESTINATION: [(&str, &str); 23] = [
    (
        r#""headers":[{"name":"a b","value":"c"}]"#,
        r#"destination.headers: "a b" is not the name of a header"#,
    ),
    (
        "\"headers\":[{\"name\":\"a\",\"value\":\"hush\\n\"}]",
        "destination.headers, a: a header's value has no control characters and no spaces around it",
    ),
    (
        r#""headers":[{"name":"a","value":"hush","concealed":"hush"}]"#,
        "destination.headers, a: one of value, concealed, path and secret is expected",
    ),
    (
        r#""headers":[{"name":"a","path":"$.*"}]"#,
        r#"destination.headers, a: "$.*" is not a path: a path leads to one value, such as $.data.order.id, $['data']['a b'] or $.data.items[0]"#,
    ),
    (
        r#""auth":{"bearer":{"token":"hush"}}"#,
        r#"destination.auth.bearer.token: "hush" is not the name of a secret: a secret is env:NAME, secretsmanager:ID, secretsmanager:ID#MEMBER or ssm:NAME"#,
    ),
    (
        r#""auth":{"basic":{"user":"a:b","password":"env:A"}}"#,
        "destination.auth.basic.user: a user is not empty and has no colon",
    ),
    (
        r#""auth":{"header":{"name":"a b","value":"env:A"}}"#,
        r#"destination.auth.header: "a b" is not the name of a header"#,
    ),
    (
        r#""auth":{"kerberos":{}}"#,
        "unknown variant `kerberos`, expected one of `basic`, `bearer`, `header`, `oauth2`, `clientCertificate`, `sigv4`, `awsIdentity`",
    ),
    (
        r#""auth":{"awsIdentity":{"audience":"","lifetimeMs":300000}}"#,
        "destination.auth.awsIdentity.audience: has to be 1 to 4096 bytes without control characters and without spaces around it",
    ),
    (
        r#""auth":{"awsIdentity":{"audience":"them","lifetimeMs":300001}}"#,
        "destination.auth.awsIdentity.lifetimeMs: a lifetime is PT1M to PT1H, in whole seconds",
    ),
    (
        r#""auth":{"sigv4":{"service":"s3","region":"eu-west-1"}}"#,
        r#"auth.sigv4.service is "s3", expected is one of execute-api, lambda, vpc-lattice-svcs"#,
    ),
    (
        r#""auth":{"sigv4":{"service":"lambda","region":"Ireland"}}"#,
        "destination.auth.sigv4.region: a region is written as eu-west-1",
    ),
    (
        r#""caBundle":"hush""#,
        "destination.caBundle: not certificates in PEM form, -----BEGIN CERTIFICATE-----",
    ),
    (
        r#""auth":{"oauth2":{"tokenUrl":"ftp://u:hush@l/","clientId":"a","clientSecret":"env:A","style":"post"}}"#,
        "destination.auth.oauth2.tokenUrl: not an address, http://… or https://… is expected",
    ),
    (
        r#""auth":{"oauth2":{"tokenUrl":"https://l/","clientId":"a","clientSecret":"env:A","style":"header"}}"#,
        r#"auth.oauth2.style is "header", expected is one of basic, post"#,
    ),
    (
        r#""auth":{"oauth2":{"tokenUrl":"https://l/","clientId":"a","clientSecret":"env:A","style":"post","parameters":[["scope","b"]]}}"#,
        "destination.auth.oauth2.parameters: scope is a field of its own, or is sent anyway",
    ),
    (
        r#""signing":["vault:x"]"#,
        r#"destination.signing: "vault:x" is not the name of a secret: a secret is env:NAME, secretsmanager:ID, secretsmanager:ID#MEMBER or ssm:NAME"#,
    ),
    (
        r#""publicKeys":["whsk_hush"]"#,
        "destination.publicKeys: a public key is whpk_ and the 32 bytes of an Ed25519 key in base64; a private key (whsk_) stays in a store of secrets",
    ),
    (
        r#""schema":"avro""#,
        r#"schema is "avro", expected is one of cloudevents-structured, cloudevents-binary, eventgrid, custom"#,
    ),
    (
        r#""disable":{"afterMs":1,"then":"drop"}"#,
        r#"disable.then is "drop", expected is one of hold, deadLetter"#,
    ),
    (
        r#""consent":{"handshake":"eventgrid","rate":1}"#,
        "unknown field `rate`, there are no fields",
    ),
    (r#""consent":{"handshake":"cloudevents"}"#, "missing field `origin`"),
    (
        "\"consent\":{\"handshake\":\"cloudevents\",\"origin\":\"a\\r\\nb\"}",
        "destination.consent.origin: a header's value has no control characters and no spaces around it",
    ),
];

#[test]
fn a_broken_text_is_refused_with_the_field() {
    let valid = write_subscription(&subscription(Dialect::Native));
    let added = ADDED.map(|(field, problem)| ("\"retry\"", format!("{field},\"retry\""), problem));
    let of_destination = ADDED_TO_DESTINATION
        .map(|(field, problem)| ("\"slowAfterMs\"", format!("{field},\"slowAfterMs\""), problem));
    let replaced = REPLACED.map(|(part, by, problem)| (part, by.to_owned(), problem));
    for (part, by, problem) in replaced.into_iter().chain(added).chain(of_destination) {
        let text = valid.replacen(part, &by, 1);
        assert_ne!(text, valid, "{part}");
        assert_eq!(refusal(&text), problem, "{text}");
    }
    assert_eq!(refusal(""), "EOF while parsing a value");
    assert_eq!(refusal(&format!("{valid}{valid}")), "trailing characters");
}

#[test]
fn a_client_has_at_most_ten_parameters_of_its_own() {
    let valid = write_subscription(&subscription(Dialect::Native));
    let with = |count: usize| {
        let parameters: Vec<_> = (0..count).map(|n| [format!("p{n}"), n.to_string()]).collect();
        let parameters = serde_json::to_string(&parameters).expect("it can be written");
        let client =
            r#""tokenUrl":"https://l/","clientId":"a","clientSecret":"env:A","style":"post""#;
        let auth = format!(r#""auth":{{"oauth2":{{{client},"parameters":{parameters}}}}}"#);
        valid.replacen("\"slowAfterMs\"", &format!("{auth},\"slowAfterMs\""), 1)
    };
    assert!(read(&with(10)).is_ok());
    let problem = "destination.auth.oauth2.parameters: has more than 10 fields";
    assert_eq!(refusal(&with(11)), problem);
}

#[test]
fn a_broken_topic_is_refused_with_the_field() {
    let topic = || "shop/orders".parse().expect("a name");
    for (text, problem) in [
        (r#"{"v":1,"input":"xml","maxReplies":1}"#, "input is \"xml\", expected is one of auto, "),
        (r#"{"v":1,"input":"auto"}"#, "missing field `maxReplies`"),
        (r#"{"v":1,"input":"auto","maxReplies":1,"from":[]}"#, "unknown field `from`, expected "),
        (r#"{"v":1,"input":"auto","mapping":{"kind":{}},"maxReplies":1}"#, "unknown field `kind`"),
        (
            r#"{"v":1,"input":"auto","mapping":{"eventTime":{"field":"$"}},"maxReplies":1}"#,
            "mapping.eventTime.field: \"$\" is not a path: ",
        ),
        (
            r#"{"v":2,"topic":"of tomorrow"}"#,
            "the stored text has version 2, and this program reads",
        ),
    ] {
        let error = read_topic(topic(), text).expect_err(text).to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_newer_version_is_told_apart_from_a_broken_text() {
    let valid = write_subscription(&subscription(Dialect::Native));
    for newer in [valid.replacen("\"v\":1", "\"v\":2", 1), r#"{"v":2,"new":[]}"#.to_owned()] {
        let error = read(&newer).expect_err("newer");
        assert_eq!(error, StoredError::UnknownVersion(2));
        assert!(error.to_string().contains("deploy the newer version"), "{error}");
    }
}

#[test]
fn endless_nesting_is_refused_and_does_not_exhaust_the_stack() {
    let valid = write_subscription(&subscription(Dialect::Native));
    let nested = |depth: usize| {
        let filter = format!("{}{{\"all\":[]}}{}", "{\"not\":".repeat(depth), "}".repeat(depth));
        valid.replacen("\"retry\"", &format!("\"filter\":{filter},\"retry\""), 1)
    };
    assert!(read(&nested(100)).is_ok());
    assert_eq!(refusal(&nested(100_000)), "recursion limit exceeded");
}

/// Bytes that mean something in these texts.
const PARTS: [&str; 14] =
    ["\"", "{", "}", "[", "]", ":", ",", "0", "-", "e9", "\\", "null", "true", "ö"];

proptest! {
    #[test]
    fn no_text_panics_and_what_is_read_is_kept(
        name in select(&SUBSCRIPTIONS[..]),
        changes in vec((any::<Index>(), 0..9_usize, select(&PARTS[..])), 1..4),
    ) {
        let mut text: Vec<char> = fixture(name).chars().collect();
        for (at, removed, part) in changes {
            let at = at.index(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, part.chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok(subscription) = read(&text) {
            prop_assert_eq!(read(&write_subscription(&subscription)), Ok(subscription));
        }
        let name: TopicName = "shop/orders".parse().expect("a name");
        if let Ok(topic) = read_topic(name.clone(), &text) {
            prop_assert_eq!(read_topic(name, &write_topic(&topic)), Ok(topic));
        }
    }

    #[test]
    fn no_other_text_panics(text in any::<String>()) {
        prop_assert!(read(&text).is_err());
    }
}
