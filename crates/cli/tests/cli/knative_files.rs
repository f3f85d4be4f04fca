//! `check` on the files of a Knative cluster, in which most objects have nothing to do with events.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Kinds of objects that state nothing about deliveries, with the number of objects: 200 together.
const OTHERS: [(&str, &str, usize); 10] = [
    ("apps/v1", "Deployment", 60),
    ("v1", "Service", 40),
    ("v1", "Secret", 25),
    ("serving.knative.dev/v1", "Service", 20),
    ("v1", "ConfigMap", 20),
    ("networking.k8s.io/v1", "Ingress", 10),
    ("autoscaling/v2", "HorizontalPodAutoscaler", 10),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", 5),
    ("v1", "Namespace", 5),
    ("v1", "ServiceAccount", 5),
];

/// Subscriptions, and ten objects that are not read and change them.
const PLANTED: &str = "
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata:
  name: orders
  namespace: planted
  annotations: {eventing.knative.dev/broker.class: MTChannelBasedBroker}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: billing, namespace: planted}
spec: {broker: orders, subscriber: {uri: 'https://billing.example.com/events'}}
---
apiVersion: operator.knative.dev/v1beta1
kind: KnativeEventing
metadata: {name: knative-eventing, namespace: knative-eventing}
spec:
  config:
    config-br-defaults:
      default-br-config: |
        clusterDefault: {brokerClass: MTChannelBasedBroker, delivery: {retry: 3}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: packing, namespace: planted}
spec:
  broker: orders
  subscriber: {ref: {apiVersion: flows.knative.dev/v1, kind: Sequence, name: pack}}
---
apiVersion: flows.knative.dev/v1
kind: Sequence
metadata: {name: pack, namespace: planted}
spec: {steps: [{uri: 'https://pack.example.com/'}]}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: pricing, namespace: planted}
spec:
  broker: orders
  subscriber: {ref: {apiVersion: flows.knative.dev/v1, kind: Parallel, name: prices}}
---
apiVersion: flows.knative.dev/v1
kind: Parallel
metadata: {name: prices, namespace: planted}
spec: {branches: []}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: exporting, namespace: planted}
spec:
  broker: orders
  subscriber: {ref: {apiVersion: eventing.knative.dev/v1alpha1, kind: EventTransform, name: flat}}
---
apiVersion: eventing.knative.dev/v1alpha1
kind: EventTransform
metadata: {name: flat, namespace: planted}
spec: {jsonata: {expression: '{}'}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: auditing, namespace: planted}
spec:
  broker: orders
  subscriber: {uri: 'https://audit.example.com/'}
  delivery:
    retry: 4
    backoffPolicy: linear
    backoffDelay: PT10S
    deadLetterSink: {ref: {apiVersion: eventing.knative.dev/v1alpha1, kind: KafkaSink, name: lost}}
---
apiVersion: eventing.knative.dev/v1alpha1
kind: KafkaSink
metadata: {name: lost, namespace: planted}
spec: {topic: lost}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: printing, namespace: planted}
spec:
  broker: orders
  subscriber: {ref: {apiVersion: sinks.knative.dev/v1alpha1, kind: JobSink, name: printer}}
---
apiVersion: sinks.knative.dev/v1alpha1
kind: JobSink
metadata: {name: printer, namespace: planted}
spec: {job: {}}
---
apiVersion: messaging.knative.dev/v1
kind: InMemoryChannel
metadata: {name: mails, namespace: planted}
---
apiVersion: messaging.knative.dev/v1
kind: Subscription
metadata: {name: mailing, namespace: planted}
spec:
  channel: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: mails}
  subscriber: {uri: 'https://mail.example.com/'}
  reply: {ref: {apiVersion: sinks.knative.dev/v1alpha1, kind: IntegrationSink, name: archive}}
---
apiVersion: sinks.knative.dev/v1alpha1
kind: IntegrationSink
metadata: {name: archive, namespace: planted}
spec: {aws: {s3: {arn: a}}}
---
apiVersion: eventing.knative.dev/v1alpha1
kind: EventPolicy
metadata: {name: only-shop, namespace: planted}
spec:
  to: [{ref: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel, name: mails}}]
  from: [{sub: 'system:serviceaccount:planted:shop'}]
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata:
  name: payments
  namespace: planted
  annotations: {eventing.knative.dev/broker.class: Kafka}
spec: {config: {apiVersion: v1, kind: ConfigMap, name: kafka-config}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kafka-config, namespace: planted}
data: {bootstrap.servers: kafka:9092}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: booking, namespace: planted}
spec: {broker: payments, subscriber: {uri: 'https://book.example.com/'}}
---
apiVersion: sources.knative.dev/v1
kind: KafkaSource
metadata: {name: clicks, namespace: planted}
spec: {topics: [clicks], bootstrapServers: [kafka:9092]}
";

/// Each planted object, and a subscription that it changes.
const LOSSES: [(&str, &str); 10] = [
    ("KnativeEventing knative-eventing/knative-eventing", "planted/orders/billing"),
    ("Sequence planted/pack", "planted/orders/packing"),
    ("Parallel planted/prices", "planted/orders/pricing"),
    ("EventTransform planted/flat", "planted/orders/exporting"),
    ("KafkaSink planted/lost", "planted/orders/auditing"),
    ("JobSink planted/printer", "planted/orders/printing"),
    ("IntegrationSink planted/archive", "planted/mails/mailing"),
    ("EventPolicy planted/only-shop", "planted/mails/mailing"),
    ("ConfigMap planted/kafka-config", "planted/payments/booking"),
    ("KafkaSource planted/clicks", "planted/clicks/clicks"),
];

/// Each planted subscription, its destination, and its attempts.
const TRIED: [(&str, &str, &str); 9] = [
    (
        "planted/orders/billing",
        "https://billing.example.com/events",
        "11 attempts within 3 min 24 s, by the defaults of stock Knative",
    ),
    (
        "planted/orders/packing",
        "-",
        "none, not deployed: ./planted.yaml:28:21: spec.subscriber.ref: nothing says what \"flows.knative.dev/v1/Sequence/planted/pack\" is here",
    ),
    (
        "planted/orders/pricing",
        "-",
        "none, not deployed: ./planted.yaml:40:21: spec.subscriber.ref: nothing says what \"flows.knative.dev/v1/Parallel/planted/prices\" is here",
    ),
    (
        "planted/orders/exporting",
        "-",
        "none, not deployed: ./planted.yaml:52:21: spec.subscriber.ref: nothing says what \"eventing.knative.dev/v1alpha1/EventTransform/planted/flat\" is here",
    ),
    ("planted/orders/auditing", "https://audit.example.com/", "5 attempts within 1 min"),
    (
        "planted/orders/printing",
        "-",
        "none, not deployed: ./planted.yaml:81:21: spec.subscriber.ref: nothing says what \"sinks.knative.dev/v1alpha1/JobSink/planted/printer\" is here",
    ),
    (
        "planted/mails/mailing",
        "-",
        "none, not deployed: ./planted.yaml:98:16: spec.reply.ref: nothing says what \"sinks.knative.dev/v1alpha1/IntegrationSink/planted/archive\" is here",
    ),
    (
        "planted/payments/booking",
        "https://book.example.com/",
        "11 attempts within 6 min 49 s, by the defaults of stock Knative",
    ),
    (
        "planted/clicks/clicks",
        "-",
        "none, not deployed: ./planted.yaml:130:1: spec.sink is missing",
    ),
];

/// 200 objects that have nothing to do with events.
fn others() -> String {
    let object = |(api_version, kind, count): (&str, &str, usize)| {
        let each = (0..count).map(move |number| {
            format!(
                "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: other-{number}, namespace: shop}}\n---\n"
            )
        });
        each.collect::<String>()
    };
    OTHERS.into_iter().map(object).collect()
}

/// A folder with the planted objects and the others.
fn cluster() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (name, text) in [("planted.yaml", PLANTED), ("others.yaml", &others())] {
        fs::write(folder.path().join(name), text).expect("the file can be written");
    }
    folder
}

fn check(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    let output = command.arg("check").args(arguments).current_dir(folder).output();
    output.expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The number of objects that the notes count, by kind and version; each has one note.
fn ignored(printed: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for note in printed.lines().filter_map(|line| line.split_once(" note: ignored ")) {
        let (count, rest) = note.1.split_once(' ').expect("a number and a kind");
        let (kind, _) = rest.split_once(": ").expect("a kind");
        let again = counts.insert(kind.to_owned(), count.parse().expect("a number"));
        assert_eq!(again, None, "{kind} has several notes");
    }
    counts
}

/// The cells of the row of a subscription.
fn row<'p>(printed: &'p str, subscription: &str) -> Vec<&'p str> {
    let begins = format!("{subscription} ");
    let mut rows = printed.lines().filter(|line| line.starts_with(&begins));
    let row = rows.next().unwrap_or_else(|| panic!("no {subscription} in {printed}"));
    assert_eq!(rows.next(), None, "{subscription}");
    row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

fn names_each_loss(printed: &str) {
    for (object, subscription) in LOSSES {
        let message = format!(" the {object} is not read, which changes deliveries of ");
        let line = printed.lines().find(|line| line.contains(&message));
        let line = line.unwrap_or_else(|| panic!("no {object} in\n{printed}"));
        assert!(line.contains(" warning: ") && line.contains(subscription), "{line}");
    }
}

fn shows_each_subscription(printed: &str) {
    for (subscription, destination, attempts) in TRIED {
        assert_eq!(row(printed, subscription), [subscription, destination, attempts]);
    }
}

#[test]
fn two_hundred_other_objects_are_a_line_for_each_kind_and_a_lost_one_is_a_warning() {
    let folder = cluster();
    let printed = stdout(&check(folder.path(), &["."]));
    let expected = OTHERS.map(|(version, kind, count)| (format!("{kind} ({version})"), count));
    assert_eq!(ignored(&printed), expected.into());
    names_each_loss(&printed);
    shows_each_subscription(&printed);
    let warnings = printed.lines().filter(|line| line.contains(" warning: ")).count();
    // Nothing says what the KafkaSink is here.
    assert_eq!(warnings, LOSSES.len() + 1, "{printed}");
    assert_eq!(printed.matches("the retry settings of stock Knative").count(), 1, "{printed}");
}

/// ConfigMaps as stock Knative ships them, and a plain Channel.
const CONFIG_MAPS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: config-br-defaults, namespace: knative-eventing}
data:
  default-br-config: |
    clusterDefault:
      brokerClass: MTChannelBasedBroker
      apiVersion: v1
      kind: ConfigMap
      name: config-br-default-channel
      namespace: knative-eventing
      delivery: {retry: 10, backoffPolicy: exponential, backoffDelay: PT0.2S}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config-br-default-channel, namespace: knative-eventing}
data:
  channel-template-spec: |
    apiVersion: messaging.knative.dev/v1
    kind: InMemoryChannel
---
apiVersion: v1
kind: ConfigMap
metadata: {name: default-ch-webhook, namespace: knative-eventing}
data:
  default-ch-config: |
    clusterDefault: {apiVersion: messaging.knative.dev/v1, kind: InMemoryChannel}
---
apiVersion: messaging.knative.dev/v1
kind: Channel
metadata: {name: plain, namespace: planted}
---
apiVersion: messaging.knative.dev/v1
kind: Subscription
metadata: {name: counting, namespace: planted}
spec:
  channel: {apiVersion: messaging.knative.dev/v1, kind: Channel, name: plain}
  subscriber: {uri: 'https://count.example.com/'}
";

#[test]
fn a_config_map_is_a_warning_for_the_subscriptions_that_depend_on_it() {
    let folder = cluster();
    fs::write(folder.path().join("maps.yaml"), CONFIG_MAPS).expect("the file can be written");
    let printed = stdout(&check(folder.path(), &["."]));
    names_each_loss(&printed);
    shows_each_subscription(&printed);
    for (name, concerned, others, command) in [
        (
            "config-br-defaults",
            &["orders/billing", "orders/auditing", "payments/booking"][..],
            &["plain/counting", "mails/mailing"][..],
            "kubectl get broker -o yaml",
        ),
        (
            "config-br-default-channel",
            &["orders/billing", "orders/auditing"],
            &["payments/booking", "plain/counting", "mails/mailing"],
            "kubectl get broker -o yaml",
        ),
        (
            "default-ch-webhook",
            &["plain/counting"],
            &["orders/billing", "mails/mailing"],
            "kubectl get channel -o yaml",
        ),
    ] {
        let message = format!("the ConfigMap knative-eventing/{name} is not read");
        let lines: Vec<&str> = printed.lines().filter(|line| line.contains(&message)).collect();
        let [line] = lines[..] else { panic!("{name}: {printed}") };
        assert!(line.contains(" warning: ") && line.contains(command), "{line}");
        assert!(concerned.iter().all(|of| line.contains(of)), "{line}");
        assert!(!others.iter().any(|of| line.contains(of)), "{line}");
    }
    assert_eq!(ignored(&printed)["ConfigMap (v1)"], 20);
}

#[test]
fn explain_shows_the_retries_of_a_stock_broker_and_where_they_come_from() {
    let folder = cluster();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    let text = PLANTED.split("---").take(2).collect::<Vec<_>>().join("---");
    fs::write(folder.path().join("stock.yaml"), text).expect("the file can be written");
    let arguments = ["explain", "-f", "stock.yaml", "--outcome", "503", "--origins"];
    let output =
        command.args(arguments).args(["--output", "json"]).current_dir(folder.path()).output();
    let output = output.expect("the program runs");
    let life: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(life["attempts"].as_array().map(Vec::len), Some(11), "{life}");
    assert_eq!(life["attempts"][10]["at_ms"], 204_600);
    let stock = "default of stock Knative (config-br-defaults)";
    assert_eq!(life["policy"]["maxAttempts"]["from"], stock);
    let schedule = life["policy"]["schedule"]["from"].as_str().unwrap_or_default();
    assert!(schedule.starts_with(stock), "{schedule}");
}

#[test]
fn a_policy_that_never_retries_a_status_is_no_policy_that_does_not_fit() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let trigger = "apiVersion: messaging.knative.dev/v1\nkind: Subscription\n\
                   metadata: {name: s, annotations: {lastmile.dev/never-retry: '500'}}\nspec:\n  \
                   channel: {apiVersion: messaging.knative.dev/v1, kind: KafkaChannel, name: c}\n  \
                   subscriber: {uri: 'https://a.example.com/'}\n  delivery: {retry: 2}\n";
    fs::write(folder.path().join("a.yaml"), trigger).expect("the file can be written");
    let printed = stdout(&check(folder.path(), &["a.yaml"]));
    assert!(!printed.contains("fit into the 14 days"), "{printed}");
    assert_eq!(
        row(&printed, "default/c/s"),
        ["default/c/s", "https://a.example.com/", "3 attempts within 6 s"]
    );
}

#[test]
fn as_json_a_kind_is_a_finding_with_the_severity_note() {
    let folder = cluster();
    let output = check(folder.path(), &["others.yaml", "planted.yaml", "--output", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let ignored = findings.iter().filter(|of| {
        let message = of["message"].as_str().unwrap_or_default();
        of["severity"] == "note" && message.starts_with("ignored ")
    });
    let ignored: Vec<_> = ignored.collect();
    assert_eq!(ignored.len(), OTHERS.len());
    let members: Vec<&String> = ignored[0].as_object().expect("an object").keys().collect();
    let expected = ["severity", "file", "line", "column", "field", "message", "help"];
    assert!(expected.iter().all(|member| members.iter().any(|of| of == member)), "{members:?}");
    assert_eq!(members.len(), expected.len());
    assert_eq!(report.as_object().map(serde_json::Map::len), Some(1));
}
