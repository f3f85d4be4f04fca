mod circles;
mod combined;
mod conversion;
mod diff;
mod named_secrets;
mod native;
mod references;
mod secret_policy;
mod sinks;
pub(crate) mod support;

use std::fs;
use std::path::Path;

use super::*;
use support::{found, names, native_subscription, native_topic, read_one, shown};

#[test]
fn nothing_is_an_empty_catalogue() {
    for text in ["", "\n# only a comment\n", "---\n---\n", "null", "[]"] {
        assert_eq!(read_one(text).into_result(), Ok(Catalogue::default()), "{text:?}");
    }
    assert_eq!(read(&[]).into_result(), Ok(Catalogue::default()));
}

#[test]
fn manifests_of_other_families_are_known_by_their_outermost_fields() {
    for text in [
        "apiVersion: messaging.knative.dev/v1\nkind: Subscription\n",
        "apiVersion: eventing.knative.dev/v1\nkind: Trigger\n",
        "apiVersion: messaging.cloud.google.com/v1beta1\nkind: Channel\n",
        "apiVersion: sources.example.com/v1\nkind: FooSource\nspec: {sink: {uri: http://h/}}\n",
        "type: Microsoft.EventGrid/eventSubscriptions\nproperties: {}\n",
        "type: Microsoft.Storage/storageAccounts/providers/eventSubscriptions\n",
        "id: /subscriptions/s/providers/Microsoft.EventGrid/eventSubscriptions/n\n",
        "properties: {destination: {endpointType: WebHook}}\n",
        "{\"properties\": {\"deliveryConfiguration\": {}}}",
        "$schema: https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\n",
    ] {
        let found = found(text);
        assert!(!found.iter().any(|finding| finding.contains("apiVersion")), "{text}: {found:?}");
    }
}

#[test]
fn a_document_of_no_known_kind_is_reported_with_a_suggestion() {
    for (text, expected) in [
        (
            "hello",
            "f:1:1: error: a document must be a mapping; begin with apiVersion: lastmile.dev/v1",
        ),
        ("kind: Topic", "f:1:1: error: apiVersion is missing; apiVersion: lastmile.dev/v1"),
        (
            "apiVersion: 1",
            "f:1:13: error: apiVersion: apiVersion must be a string; apiVersion: lastmile.dev/v1",
        ),
        (
            "apiVersion: lastmile.dev/v2\nspec: {sink: x}",
            "f:1:13: error: apiVersion: \"lastmile.dev/v2\" is not a known apiVersion; did you mean lastmile.dev/v1?",
        ),
        (
            "apiVersion: lastmile.dev/v1",
            "f:1:1: error: kind is missing; expected one of Topic, Subscription, Destinations, \
             Notifications, SecretPolicy",
        ),
        (
            "apiVersion: lastmile.dev/v1\nkind: subscription",
            "f:2:7: error: kind: lastmile.dev/v1 has no kind \"subscription\"; did you mean Subscription?",
        ),
        (
            "apiVersion: lastmile.dev/v1\nkind: 1",
            "f:2:7: error: kind: expected text, found a whole number; write it in quotes",
        ),
        ("apiVersion: lastmile.dev/v1\nkind: Topic", "f:1:1: error: metadata: metadata is missing"),
        ("apiVersion: lastmile.dev/v1\nkind: Destinations", "f:1:1: error: spec: spec is missing"),
    ] {
        assert_eq!(found(text), [expected], "{text}");
    }
}

#[test]
fn destinations_are_addresses_defined_once() {
    let text = "apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  a: https://h/\n  b: nowhere\n  c: sqs://q\n  d: sqs://sqs.eu-west-1.amazonaws.com/123456789012/q\n";
    let again = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {a: s3://bucket/x}\n";
    assert_eq!(
        found(&format!("{text}{again}")),
        [
            "f:5:6: error: spec.b: not an address; https://…, http://…, s3://bucket/prefix or sqs://host/account/name",
            "f:6:6: error: spec.c: \"q\" is not a queue: expected host/account/name, which is the \
             queue URL without https://; sqs://sqs.REGION.amazonaws.com/ACCOUNT/NAME",
            "f:11:8: error: spec.a: a is defined twice; the first is at f:4:3",
        ]
    );
}

#[test]
fn all_problems_of_all_files_are_found_in_order() {
    let bad = "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {namespace: n, topic: t}\nspec:\n  \
               destination: {url: nowhere, timeout: 5}\n  retry: {maxAttempts: 0}\n---\na: [\n";
    let reading = read(&[Source { name: "a", text: bad }, Source { name: "b", text: "x" }]);
    let places: Vec<_> =
        reading.findings.iter().map(|f| (f.file.as_str(), f.line, f.field.as_str())).collect();
    assert_eq!(
        places,
        [
            ("a", 3, "metadata.name"),
            ("a", 5, "spec.destination.url"),
            ("a", 5, "spec.destination.timeout"),
            ("a", 6, "spec.retry.maxAttempts"),
            ("a", 8, ""),
            ("b", 1, ""),
        ]
    );
    assert!(reading.into_result().is_err());
}

#[test]
fn every_example_loads_without_an_error_and_ours_without_a_finding() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut subscriptions = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if !path.extension().is_some_and(|extension| {
            ["yaml", "yml", "json"].iter().any(|ending| extension == *ending)
        }) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let reading = read(&[Source { name: &path.to_string_lossy(), text: &text }]);
        let other_family = ["eventgrid", "knative"].iter().any(|family| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(family))
        });
        let found = reading
            .findings
            .iter()
            .filter(|finding| !other_family || finding.severity == Severity::Error);
        assert_eq!(found.map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
        subscriptions += reading.catalogue.subscriptions().count();
    }
    assert!(subscriptions > 0);
}

#[test]
fn the_fields_shown_as_comments_in_the_example_are_right() {
    let example = include_str!("../../../../examples/native.yaml");
    let alternatives = ["schedule: {kind: waits", "# deadLetter: none", "# Which", "# event; all"];
    let lines =
        example.lines().skip(9).filter(|line| !alternatives.iter().any(|part| line.contains(part)));
    let shown_fields = lines.filter(|line| !is_prose(line)).map(uncommented);
    let text: String = shown_fields.map(|line| line + "\n").collect();
    assert_eq!(found(&text), Vec::<String>::new(), "{text}");
    assert!(text.contains("\n  deadLetter:\n") && text.contains("\nkind: Destinations"), "{text}");
}

/// The line without the mark that makes it a comment; a comment after a field stays one.
fn uncommented(line: &str) -> String {
    if line.trim_start().starts_with("# ") { line.replacen("# ", "", 1) } else { line.to_owned() }
}

/// A comment that is a sentence, not a field.
fn is_prose(line: &str) -> bool {
    line.trim_start().starts_with("# ") && line.trim_end().ends_with('.')
}

/// A generator of the same numbers on every run (Knuth's MMIX constants); the tests need variety,
/// not chance.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}

fn mutated(text: &str, numbers: &mut Numbers) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=numbers.below(3) {
        let from = numbers.below(bytes.len());
        let to = (from + 1 + numbers.below(40)).min(bytes.len());
        match numbers.below(4) {
            0 => drop(bytes.drain(from..to)),
            1 => drop(bytes.splice(from..from, bytes[from..to].to_vec())),
            2 => bytes[from] ^= 1 << numbers.below(8),
            _ => bytes[from] = b"\0\n\t -:{}[]&*!|>'\"%@0"[numbers.below(20)],
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn no_mutation_of_a_file_panics_and_every_finding_has_a_place() {
    let seeds = [
        include_str!("../../fixtures/full.yaml"),
        include_str!("../../fixtures/full.json"),
        include_str!("../../../../examples/knative.yaml"),
        include_str!("../../../../examples/eventgrid.json"),
        include_str!("../../fixtures/eventgrid.json"),
        include_str!("../../fixtures/eventgrid-namespace.json"),
        include_str!("../../fixtures/eventgrid-kubernetes.json"),
        include_str!("../../fixtures/templates/literal.json"),
    ];
    let mut numbers = Numbers(1);
    for seed in seeds {
        for _ in 0..200 {
            let text = mutated(seed, &mut numbers);
            for finding in read_one(&text).findings {
                assert!(finding.line >= 1 && finding.column >= 1, "{finding} in\n{text}");
                assert!(!finding.to_string().contains('\n'), "{finding:?}");
            }
        }
    }
}

#[test]
fn what_says_how_files_are_deployed_is_a_warning() {
    for (name, text, expected) in [
        ("d/kustomization.yaml", "resources: [a.yaml]", "the kustomization is not applied"),
        (
            "f",
            "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: []}",
            "the kustomization is not applied",
        ),
        (
            "f",
            "{$schema: 'https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#', parameters: {}}",
            "the parameters of a deployment have no effect",
        ),
    ] {
        let found = read(&[Source { name, text }]).findings;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].severity == Severity::Warning && found[0].message.contains(expected),
            "{found:?}"
        );
    }
}

#[test]
fn other_objects_of_kubernetes_are_a_note_for_each_kind_where_the_first_of_them_is() {
    let object = |version: &str, kind: &str| {
        format!("{{apiVersion: {version}, kind: {kind}, metadata: {{name: a}}, spec: {{}}}}\n---\n")
    };
    let [broker, deployment, older, service, of_knative] = [
        ("other.knative.dev/v1", "Broker"),
        ("apps/v1", "Deployment"),
        ("apps/v1beta1", "Deployment"),
        ("v1", "Service"),
        ("serving.knative.dev/v1", "Service"),
    ]
    .map(|(version, kind)| object(version, kind));
    let (first, second) = (
        format!("{service}{deployment}{deployment}"),
        format!("{older}{of_knative}{broker}kind: Topic\n"),
    );
    let sources = [Source { name: "a", text: &first }, Source { name: "b", text: &second }];
    assert_eq!(
        shown(&read(&sources)),
        [
            "a:1:1: note: ignored 1 Service (v1): it contains no delivery settings",
            "a:3:1: note: ignored 3 Deployment (apps/v1, apps/v1beta1): they contain no delivery settings",
            "b:3:1: note: ignored 1 Service (serving.knative.dev/v1): it contains no delivery settings",
            "b:5:1: note: ignored 1 Broker (other.knative.dev/v1): it contains no delivery settings",
            "b:7:1: error: apiVersion is missing; apiVersion: lastmile.dev/v1",
        ]
    );
    assert!(read(&sources[..1]).into_result().is_ok());
}

#[test]
fn a_subscription_that_is_not_deployed_is_left_out_with_the_reason() {
    let native = |name: &str, spec: &str| {
        let spec = format!("destination: {{url: 'https://a.example.com/'}}{spec}");
        native_subscription(&format!("n/t/{name}"), &spec)
    };
    let unnamed = native("x", "").replace(", name: x", "");
    let resource =
        "type: Microsoft.EventGrid/eventSubscriptions\nname: mails\nproperties: {}\n---\n";
    let topic = native_topic("n/t", "input: snss");
    for (text, name, reason) in [
        (
            native("s", ", retry: {maxAttempts: 0}"),
            "n/t/s",
            "spec.retry.maxAttempts: must be 1 to 1000, but is 0",
        ),
        (
            native("s", ", deadLetter: {sink: {topic: n/lost}}"),
            "n/t/s",
            "the topic of its dead letters does not exist",
        ),
        (
            format!("{}{topic}", native("s", "")),
            "n/t/s",
            "an object that the subscription refers to has an error",
        ),
        (unnamed, "f:1:1", "metadata.name: name is missing"),
        (resource.to_owned(), "mails", "the topic of this subscription is missing"),
    ] {
        let left_out = read_one(&text).left_out;
        let [LeftOut { name: found, reason: why, .. }] = &left_out[..] else {
            panic!("{text}{left_out:?}")
        };
        assert_eq!(found, name, "{text}");
        assert!(why.starts_with(reason), "{why}");
    }
    assert_eq!(read_one(&native("s", "")).left_out, []);
}

/// Outputs of `az` and `kubectl`, unchanged, and the subscriptions in them.
const EXPORTS: [(&str, &str, &[&str]); 4] = [
    (
        "az-list.json",
        include_str!("../../fixtures/exports/az-list.json"),
        &["shop/orders/billing", "shop/orders/stock"],
    ),
    ("az-show.json", include_str!("../../fixtures/exports/az-show.json"), &["shop/uploads/images"]),
    (
        "az-namespace-list.json",
        include_str!("../../fixtures/exports/az-namespace-list.json"),
        &["market/orders/billing"],
    ),
    (
        "kubectl.yaml",
        include_str!("../../fixtures/exports/kubectl.yaml"),
        &["shop/default/billing", "shop/events/stock", "shop/orders/audit"],
    ),
];

#[test]
fn what_az_and_kubectl_print_has_no_finding_except_about_addresses() {
    for (name, text, subscriptions) in EXPORTS {
        let export = Source { name, text };
        let is_of_address = |finding: &Finding| {
            finding.reference.is_some() || finding.message.contains("an exported URL has no query")
        };
        let mut entries = serde_json::Map::new();
        for finding in read(&[export]).findings {
            assert!(finding.severity == Severity::Note || is_of_address(&finding), "{finding}");
            if let Some(missing) = finding.reference {
                let address = match missing.used_for {
                    ReferenceUse::Events => "https://a.example.com/",
                    ReferenceUse::DeadLetters | ReferenceUse::Token => "s3://dead-letters",
                };
                entries.insert(missing.key, address.into());
            }
        }
        let destinations = serde_json::json!({"apiVersion": "lastmile.dev/v1", "kind": "Destinations", "spec": entries});
        let destinations = Source { name: "d.json", text: &destinations.to_string() };
        let reading = read(&[export, destinations]);
        assert_eq!(names(&reading), subscriptions, "{name}: {:#?}", shown(&reading));
    }
}

#[test]
fn what_a_broker_owns_is_read_once_and_reported_once() {
    let (_, text, _) = EXPORTS[3];
    let of_export = found(text);
    let owned: Vec<&String> =
        of_export.iter().filter(|finding| finding.contains("they belong to a Broker")).collect();
    assert_eq!(
        owned,
        [
            "f:120:3: note: items[2]: ignored objects of messaging.knative.dev (1): they belong to a \
          Broker or Trigger, which is read instead"
        ]
    );
    let channel = "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\nmetadata:\n  name: b-kne-trigger\n  \
                   ownerReferences: [{apiVersion: eventing.knative.dev/v1, kind: Broker, name: b}]\nspec:\n  \
                   subscribers: [{uid: a, subscriberUri: 'http://h/'}]\n";
    let reading = read_one(channel);
    assert!(
        shown(&reading).iter().all(|finding| finding.contains("they belong to a Broker")),
        "{:?}",
        shown(&reading)
    );
    assert_eq!(reading.catalogue, Catalogue::default());
    // The owner of one may be another object, whose deliveries it makes.
    let flow = text.replace("eventing.knative.dev/v1\n      blockOwnerDeletion: true\n      controller: true\n      kind: Trigger", "flows.knative.dev/v1\n      kind: Sequence");
    assert!(!found(&flow).iter().any(|finding| finding.contains("they belong to a Broker")));
}
