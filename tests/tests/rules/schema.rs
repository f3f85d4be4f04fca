//! Compares the published JSON Schema of the native format with the reader.
//!
//! The schema is generated from the declarations, for editors. Schema and reader must accept the
//! same documents, have the same fields, and refuse the same values that are out of range.

use std::sync::LazyLock;

use dialects::{Severity, Source, read};
use jsonschema::Validator;
use serde_json::Value;

use super::canonical::is_kept;

const SCHEMA: &str = include_str!("../../../schemas/native.schema.json");
const FULL: &str = include_str!("../../../crates/dialects/fixtures/full.yaml");
const EXAMPLES: [&str; 2] =
    [include_str!("../../../examples/native.yaml"), include_str!("../../../examples/demo.yaml")];

/// Fields that cannot be combined with those of the full example.
const REST: &str = "
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: refunds, name: a}
spec:
  destination: {url: 'https://a.example.com/', auth: {basic: {user: größe 7, password: 'env:P'}}, plainJson: false, notificationHeaders: true, headers: [{name: a, value: b, hidden: true}]}
  filter: {any: [{suffix: {source: /eu}}, {not: {prefix: {subject: x}}}, {cesql: 'n = 1'}, {exactText: {n: '1'}}, \
                {eventGrid: {operatorType: NumberIn, key: data.n, values: [1], arrays: elements}}, \
                {eventGrid: {operatorType: StringIn, key: data.t, values: [A], caseSensitive: true}}, \
                {eventGrid: {operatorType: BoolEquals, key: data.b, value: true}}]}
  retry: {schedule: {kind: waits, waits: [PT1S, 'PT1,5M']}, otherwiseLeastWait: PT1S, lastAttemptNamesTheLimit: true}
  deadLetter: none
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: refunds, name: b}
spec:
  destination: {url: 'https://b.example.com/', reference: b, method: PUT, query: {a: '{{ event.id }}'}, body: {a: '{{ event.type }}'}, contentType: a/b}
  retry: {schedule: {kind: moments, moments: [PT1S, P1W]}}
  deadLetter: {sink: {topic: shop/refunds}, reference: letters}
  reply: https://r.example.com/
  replyReference: replies
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: refunds, name: c}
spec: {destination: {url: 'https://c.example.com/', bodyText: '{{ event.id }}'}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: refunds, name: d}
spec: {destination: {aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:refunds', action: SendMessage, parameters: {DelaySeconds: 9}}}}
---
apiVersion: lastmile.dev/v1
kind: Topic
metadata: {namespace: shop, name: made}
spec: {delivery: {destination: {method: PUT, query: {a: b}, body: {a: b}, contentType: a/b}}}
---
apiVersion: lastmile.dev/v1
kind: Topic
metadata: {namespace: shop, name: texts}
spec: {sample: {a: 1}, delivery: {destination: {bodyText: a}}}
---
apiVersion: lastmile.dev/v1
kind: Topic
metadata: {namespace: shop, name: refunds}
spec:
  maxReplies: 0
  from: [{snsTopic: 'arn:aws:sns:us-east-1:123456789012:refunds.fifo'}, {eventSource: a b}, {bucket: a.b}]
  mapping:
    id: {field: orderId}
    topic: {field: $.shop}
    eventTime: {field: '$.at[0]'}
    eventType: {field: kind, default: order}
    subject: {default: none}
    dataVersion: {default: 1}
  delivery:
    destination:
      timeout: PT5S
      plainJson: true
      notificationHeaders: false
      hidePath: true
      schema: eventgrid
      maxConcurrency: 1000
      headers: [{name: a, value: true}, {name: b, path: data.id}, {name: c, secret: 'secretsmanager:shop#token'}]
      auth: {bearer: {token: 'env:A'}}
      tls: {caBundle: \"-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n\"}
      signing: {secrets: ['env:A'], publicKeys: ['whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=']}
      maxPerSecond: 10000
      slowAfter: PT10S
      lateResponseWindow: PT0S
      probation: false
      disable: {after: P5D}
      consent: {handshake: eventgrid}
    batch: {onRefused: split}
    retry: {schedule: {kind: linear, delay: PT1S, numbering: fromZero, max: PT1M}}
    deadLetter: {sink: 'https://letters.example.com/t0ken', hidePath: true, layout: flat, response: none}
    delay: PT1H
    paused: false
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: partner}
spec:
  destination:
    url: https://partner.example.com/
    auth:
      oauth2:
        tokenUrl: https://login.example.com/token
        clientId: lastmile
        clientSecret: env:CLIENT
        scope: orders.write orders.read
        audience: https://partner.example.com
        resource: https://partner.example.com/
        style: post
        parameters: {tenant: acme, version: 2}
    tls: {caBundle: \"-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n\"}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: slow}
spec: {destination: {url: 'https://slow.example.com/', auth: {clientCertificate: {certificate: 'env:C', key: 'env:K'}}, hidePath: false, slowAfter: PT10S, maxPerSecond: 1, disable: {after: PT1H}}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: shown}
spec: {destination: {url: 'https://shown.example.com/', auth: {awsIdentity: {audience: 'https://shown.example.com', lifetime: PT10M}}}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: signed}
profile: knative
defaults: {retry: {maxAttempts: 1}}
spec: {reply: 'https://r.example.com/', expires: 2026-12-01T00:00:00Z, destination: {url: 'https://signed.example.com/', auth: {sigv4: {service: lambda, region: eu-west-1}}}}
---
apiVersion: lastmile.dev/v1
kind: Notifications
spec: {topic: shop/orders}
---
apiVersion: lastmile.dev/v1
kind: Destinations
spec:
  v1/Service/shop/billing: {url: 'https://a.example.com/', auth: {oauth2: {clientId: a, clientSecret: 'env:A', scope: a, audience: b, resource: c, style: basic, parameters: {d: e}}}}
  https://b.example.com/: {auth: null, tls: {caBundle: \"-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n\"}}
  v1/Service/shop/refunds: {url: 'https://c.example.com/', auth: {basic: {user: a, password: 'env:A'}}, maxConcurrency: 5, maxPerSecond: 20}
---
apiVersion: lastmile.dev/v1
kind: SecretPolicy
spec:
  secrets:
  - {name: 'secretsmanager:*', hosts: [h, '*.example.com']}
  - {name: 'env:*', hosts: [h, '*.example.com']}
  - {name: 'ssm:*', hosts: [h]}
";

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("the documents are YAML")
}

fn compiled(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).expect("the schema is a schema")
}

fn accepts(text: &str) -> bool {
    // Compiling the schema takes much longer than its use.
    static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compiled(&schema()));
    documents(text).iter().all(|document| VALIDATOR.is_valid(document))
}

/// True if the reader accepts the text without an error.
fn reads(text: &str) -> bool {
    let findings = read(&[Source { name: "a.yaml", text }]).findings;
    findings.iter().all(|finding| finding.severity != Severity::Error)
}

/// The places of all `properties` in the schema, as JSON pointers, with the names in them.
fn properties(schema: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                let place = format!("{at}/{name}");
                // Conditions repeat names that stand elsewhere.
                if name == "properties" && !at.contains("/if") {
                    let names = value.as_object().expect("properties are a mapping").keys();
                    found.extend(names.map(|name| (place.clone(), name.clone())));
                }
                properties(value, &place, found);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                properties(element, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn schema_and_reader_take_the_examples() {
    for text in [FULL, REST].into_iter().chain(EXAMPLES) {
        assert!(accepts(text), "{text}");
        assert!(reads(text), "{:?}", read(&[Source { name: "a.yaml", text }]).findings);
        // Each field has a value in one of these texts. The canonical form keeps that value, and
        // its secrets are known.
        is_kept(&read(&[Source { name: "a.yaml", text }]));
    }
}

#[test]
fn every_field_of_the_schema_is_one_the_reader_reads_and_without_it_the_examples_fail() {
    let (schema, texts) = (schema(), [FULL, REST].map(documents));
    let mut fields = Vec::new();
    properties(&schema, "", &mut fields);
    assert!(fields.len() > 50, "{fields:?}");
    for (place, name) in fields {
        let mut without = schema.clone();
        let removed = without
            .pointer_mut(&place)
            .and_then(Value::as_object_mut)
            .and_then(|names| names.remove(&name));
        assert!(removed.is_some(), "{place} {name}");
        let validator = compiled(&without);
        let is_in_an_example = texts.iter().flatten().any(|text| !validator.is_valid(text));
        assert!(is_in_an_example, "{place}/{name} is in no example");
    }
}

/// Checks that the schema and the reader accept the text with this part. Each change of the part,
/// from the first text to the second, must make both refuse the text.
fn each_is_refused(whole: impl Fn(&str) -> String, part: &str, changes: &[(&str, &str)]) {
    let good = whole(part);
    assert!(accepts(&good) && reads(&good), "{part}");
    for (right, wrong) in changes {
        let changed = part.replacen(right, wrong, 1);
        assert_ne!(changed, part, "{right}");
        let changed = whole(&changed);
        assert!(!accepts(&changed), "the schema accepts {wrong}");
        assert!(!reads(&changed), "the reader accepts {wrong}");
    }
}

/// The whole example with another `auth`.
fn with_auth(auth: &str) -> String {
    let partner = "header: {name: x-partner, value: \"secretsmanager:billing#partner\"}";
    FULL.replacen("name: authorization", "name: x-token", 1).replacen(partner, auth, 1)
}

#[test]
fn an_unknown_field_is_refused_by_both() {
    each_is_refused(
        str::to_owned,
        FULL,
        &[
            ("metadata: {", "metadata: {extra: 1, "),
            ("spec:\n", "spec:\n  extra: 1\n"),
            ("destination:\n", "destination:\n    extra: 1\n"),
            ("retry:\n", "retry:\n    extra: 1\n"),
            ("schedule: {", "schedule: {extra: 1, "),
            ("deadLetter: {", "deadLetter: {extra: 1, "),
            ("{name: x-tenant", "{extra: 1, name: x-tenant"),
            ("{exact: {", "{extra: 1, exact: {"),
            ("destination: {timeout", "destination: {extra: 1, timeout"),
            ("auth: {", "auth: {extra: 1, "),
            ("{header: {", "{header: {extra: 1, "),
            ("signing: {", "signing: {extra: 1, "),
            ("consent: {", "consent: {extra: 1, "),
            ("batch: {", "batch: {extra: 1, "),
            ("{bucket: ", "{extra: 1, bucket: "),
            ("spec:\n  input", "spec:\n  mapping: {extra: {field: a}}\n  input"),
            ("spec:\n  input", "spec:\n  mapping: {id: {field: a, default: b}}\n  input"),
            ("spec:\n  input", "spec:\n  mapping: {subject: {field: a, extra: b}}\n  input"),
        ],
    );
}

#[test]
fn what_is_out_of_range_is_refused_by_both() {
    each_is_refused(
        str::to_owned,
        FULL,
        &[
            ("maxAttempts: 12", "maxAttempts: 0"),
            ("maxAttempts: 12", "maxAttempts: 1001"),
            ("maxAttempts: 12", "maxAttempts: many"),
            ("timeToLive: P2D", "timeToLive: 2 days"),
            ("timeToLive: P2D", "timeToLive: P1M"),
            ("kind: exponential", "kind: exponentially"),
            ("kind: exponential", "kind: waits"),
            ("jitterPercent: 20", "jitterPercent: 101"),
            ("schema: cloudevents-structured", "schema: cloudevents"),
            ("maxConcurrency: 20", "maxConcurrency: 0"),
            ("maxConcurrency: 20", "maxConcurrency: 1001"),
            ("value: acme", "value: ' acme'"),
            ("value: acme", "value: \"ac\\nme\""),
            ("value: acme", "value: acme, path: id"),
            (", value: acme", ""),
            ("name: x-tenant", "name: aeg-tenant"),
            ("name: x-tenant", "name: CE-tenant"),
            ("path: $.data.orderId", "path: $..orderId"),
            ("path: $.data.orderId", "path: ''"),
            ("path: $.data.orderId", "path: '$[0]'"),
            ("path: $.data.orderId", "path: \"['orderId']\""),
            ("path: $.data.orderId", "path: \"$['order]\""),
            ("secret: \"env:BILLING_TOKEN\"", "secret: hunter2"),
            ("secret: \"env:BILLING_TOKEN\"", "secret: \"env:\""),
            ("secret: \"env:BILLING_TOKEN\"", "secret: \"env:A B\""),
            ("secret: \"env:BILLING_TOKEN\"", "secret: \"env:A=B\""),
            ("secret: \"env:BILLING_TOKEN\"", "secret: \"secretsmanager:#a\""),
            ("\"ssm:/billing/old\"", "\"env:BILLING_SIGNING_SECRET\""),
            ("auth: {header: {name: x-partner", "auth: {bearer: {name: x-partner"),
            (
                "auth: {header: {name: x-partner, value: \"secretsmanager:billing#partner\"}}",
                "auth: {}",
            ),
            ("auth: {header", "auth: {bearer: {token: 'env:A'}, header"),
            ("auth: {header: {name: x-partner", "auth: {header: {name: ce-partner"),
            ("value: \"secretsmanager:billing#partner\"", "value: hunter2"),
            ("auth: {header: {name: x-partner, value:", "auth: {basic: {user: 'a:b', password:"),
            ("auth: {header: {name: x-partner, value:", "auth: {basic: {user: ' a', password:"),
            ("auth: {header: {name: x-partner, value:", "auth: {basic: {user: '', password:"),
            ("signing: {secrets", "signing: {secret"),
            (
                "signing: {secrets",
                "signing: {publicKeys: ['whsk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo='], secrets",
            ),
            (
                "signing: {secrets",
                "signing: {publicKeys: ['whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHUR='], secrets",
            ),
            ("[\"env:BILLING_SIGNING_SECRET\", \"ssm:/billing/old\"]", "[]"),
            ("neverRetry: [409", "neverRetry: [99"),
            ("leastWaits: {503", "leastWaits: {5030"),
            ("format: knative", "format: flat"),
            ("sink: \"pubsub://dead-letters\"", "sink: {topic: orders}"),
            ("sink: \"pubsub://dead-letters\"", "sink: {ref: shop/orders}"),
            ("sink: \"pubsub://dead-letters\"", "sink: {}"),
            ("delay: PT90M", "delay: 90"),
            ("paused: true", "paused: maybe"),
            ("lateResponseWindow: PT2M", "lateResponseWindow: 120"),
            ("probation: true", "probation: PT1M"),
        ],
    );
}

#[test]
fn a_bad_aws_target_is_refused_by_both() {
    let with = |destination: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: refunds, name: d}}\n\
             spec: {{{destination}}}\n"
        )
    };
    each_is_refused(
        with,
        "destination: {aws: {arn: 'arn:aws:sqs:eu-west-1:123456789012:refunds', action: SendMessage, parameters: {DelaySeconds: 9}}}",
        &[
            ("arn: 'arn:aws:sqs:eu-west-1:123456789012:refunds', ", ""),
            (", action: SendMessage", ""),
            ("arn:aws:", "arn:azure:"),
            (":sqs:", ":s3:"),
            ("123456789012", "1"),
            (":refunds", ":refunds-*"),
            ("SendMessage", "Send"),
            ("DelaySeconds: 9", "Delay: 9"),
            ("parameters: {DelaySeconds: 9}", "parameters: 9"),
            ("{aws: {", "{url: 'https://a.example.com/', aws: {"),
        ],
    );
}

#[test]
fn a_bad_signing_scope_is_refused_by_both() {
    let long = format!("region: {}", "a".repeat(33));
    each_is_refused(
        with_auth,
        "sigv4: {service: execute-api, region: eu-west-1}",
        &[
            ("service: execute-api, ", ""),
            (", region: eu-west-1", ""),
            ("execute-api", "s3"),
            ("execute-api", "''"),
            ("eu-west-1", "''"),
            ("eu-west-1", "EU-west-1"),
            ("eu-west-1", "eu_west_1"),
            ("eu-west-1", "'*'"),
            ("eu-west-1", "1-eu"),
            ("eu-west-1", "eu-"),
            ("region: eu-west-1", &long),
            ("region: eu-west-1", "region: eu-west-1, role: a"),
        ],
    );
}

#[test]
fn a_bad_identity_is_refused_by_both() {
    let long = format!("audience: {}", "a".repeat(1_001));
    each_is_refused(
        with_auth,
        "awsIdentity: {audience: 'https://partner.example.com', lifetime: PT10M}",
        &[
            ("audience: 'https://partner.example.com', ", ""),
            ("'https://partner.example.com'", "''"),
            ("audience: 'https://partner.example.com'", &long),
            ("'https://partner.example.com'", "' a'"),
            ("PT10M", "10"),
            ("lifetime: PT10M", "algorithm: RS256"),
        ],
    );
    // The schema has no limits of durations.
    for lifetime in ["PT59S", "PT1H0.001S", "PT1M0.5S"] {
        let identity = format!("awsIdentity: {{audience: a, lifetime: {lifetime}}}");
        assert!(!reads(&with_auth(&identity)), "{lifetime}");
    }
}

#[test]
fn a_bad_client_is_refused_by_both() {
    each_is_refused(
        with_auth,
        "oauth2: {tokenUrl: 'https://login.example.com/', clientId: a, clientSecret: 'env:A', style: post, parameters: {b: c}}",
        &[
            ("tokenUrl: 'https://login.example.com/', ", ""),
            ("https://login.example.com/", "login.example.com"),
            ("https://login.example.com/", "s3://login"),
            ("clientId: a, ", ""),
            ("clientId: a", "clientId: ''"),
            ("clientSecret: 'env:A'", "clientSecret: hunter2"),
            ("style: post", "style: header"),
            ("{b: c}", "{scope: c}"),
            ("{b: c}", "{b: ''}"),
            ("{b: c}", "[b]"),
            ("{b: c}", "{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1}"),
            ("style: post", "extra: 1, style: post"),
            ("oauth2: {", "clientCertificate: {certificate: 'env:A'}, oauth2: {"),
        ],
    );
}

#[test]
fn a_bad_entry_of_destinations_is_refused_by_both() {
    let with = |entry: &str| {
        format!("apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  a: {entry}\n")
    };
    let good = "{url: 'https://a/', auth: {oauth2: {clientId: a, clientSecret: 'env:A'}}}";
    each_is_refused(
        with,
        good,
        &[
            ("https://a/", "a"),
            ("url: 'https://a/'", "uri: 'https://a/'"),
            ("clientId: a, ", ""),
            ("'env:A'", "hunter2"),
            ("oauth2: {", "bearer: {token: 'env:A'}, oauth2: {"),
            ("{oauth2: {clientId: a, clientSecret: 'env:A'}}", "{bearer: {}}"),
            ("auth: {", "tls: {caBundle: no}, auth: {"),
            (good, "{}"),
            (good, "7"),
        ],
    );
}

#[test]
fn bad_handshakes_batches_publishers_and_names_are_refused_by_both() {
    each_is_refused(
        str::to_owned,
        FULL,
        &[
            ("handshake: cloudevents", "handshake: cloudevent"),
            ("handshake: cloudevents", "handshake: eventgrid"),
            (", origin: events.example.com", ""),
            ("origin: events.example.com", "origin: https://events.example.com"),
            ("origin: events.example.com", "origin: events-.example.com"),
            ("rate: 120", "rate: 0"),
            ("rate: 120", "rate: 1000001"),
            ("maxEvents: 100", "maxEvents: 0"),
            ("maxEvents: 100", "maxEvents: 5001"),
            ("preferredKilobytes: 256", "preferredKilobytes: 1025"),
            ("onRefused: all", "onRefused: none"),
            ("bucket: order-uploads", "bucket: s3://order-uploads"),
            ("bucket: order-uploads", "bucket: order-uploads, eventSource: a"),
            ("{bucket: order-uploads}", "{}"),
            ("eventSource: com.example.orders", "eventSource: ' com'"),
            (
                "arn:aws:sns:eu-central-1:123456789012:orders",
                "arn:aws:sqs:eu-central-1:123456789012:orders",
            ),
            (
                "arn:aws:sns:eu-central-1:123456789012:orders",
                "arn:aws:sns:eu-central-1:123456789012:orders.txt",
            ),
            ("input: cloudevents", "input: anything"),
            ("name: billing", "name: bill/ing"),
            ("name: billing", "name: _billing"),
            ("kind: Topic", "kind: Topics"),
            ("apiVersion: lastmile.dev/v1", "apiVersion: lastmile.dev/v2"),
            ("destination: {timeout: PT10S}", "destination: {url: 'https://a.example.com/'}"),
        ],
    );
}
