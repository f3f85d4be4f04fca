//! The fields, a value of each, and the effect of that value.
//!
//! Separate because it is a table.

/// The effect of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    /// The field changes subscriptions, as in Knative.
    Honoured,
    /// `check` reports a warning.
    Warning,
    /// `check` reports an error.
    Error,
    /// The field has no effect, for this reason.
    Nothing(&'static str),
}

use Here::{Error, Honoured, Nothing, Warning};

/// The value in a row that removes its field.
pub(super) const ABSENT: &str = "";

const OF_SOURCE: Here = Nothing("configures the source, of which `check` says that it is not run");
const OF_BROKER: Here = Nothing("configures the messaging system");
const OF_CLUSTER: Here = Nothing("is about the cluster that runs it");
const CONTROLLER: Here = Nothing("is written by controllers");
const BY_NAME: Here = Nothing("what is referred to is found by its name");

/// An object, a field, a value, and the effect of that value. Slashes separate the names of nested
/// fields.
pub(super) type Row = (&'static str, &'static str, &'static str, Here);

const DELIVERY: [Row; 20] = [
    ("delivery", "retry", "3", Honoured),
    ("delivery", "backoffPolicy", r#""linear""#, Honoured),
    ("delivery", "backoffPolicy", r#""constant""#, Error),
    ("delivery", "backoffDelay", r#""PT7S""#, Honoured),
    ("delivery", "timeout", r#""PT7S""#, Honoured),
    ("delivery", "retryAfterMax", r#""PT7S""#, Honoured),
    ("delivery", "format", r#""binary""#, Honoured),
    ("delivery", "deadLetterSink/uri", r#""https://lost.example.com/""#, Honoured),
    ("delivery", "deadLetterSink/uri", r#""http://lost.default.svc.cluster.local""#, Honoured),
    ("delivery", "deadLetterSink/uri", r#""lost""#, Warning),
    (
        "delivery",
        "deadLetterSink/ref",
        r#"{"apiVersion":"v1","kind":"Service","name":"known"}"#,
        Honoured,
    ),
    (
        "delivery",
        "deadLetterSink/ref",
        r#"{"apiVersion":"v1","kind":"Service","name":"unknown"}"#,
        Warning,
    ),
    ("delivery", "deadLetterSink", r#"{"uri":"https://lost.example.com/","CACerts":"x"}"#, Error),
    (
        "delivery",
        "deadLetterSink",
        r#"{"uri":"https://lost.example.com/","CACerts":"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"}"#,
        Warning,
    ),
    (
        "delivery",
        "deadLetterSink",
        r#"{"uri":"https://lost.example.com/","audience":"x"}"#,
        Warning,
    ),
    ("delivery", "retries", "3", Warning),
    ("delivery", "retry", "-1", Error),
    ("delivery", "backoffDelay", r#""soon""#, Error),
    ("delivery", "timeout", r#""PT0S""#, Error),
    ("delivery", "format", r#""avro""#, Error),
];

const DESTINATION: [Row; 14] = [
    ("subscriber by uri", "uri", r#""https://other.example.com/""#, Honoured),
    ("subscriber by uri", "uri", r#""somewhere""#, Error),
    ("subscriber by uri", "uri", ABSENT, Error),
    ("subscriber by ref", "ref/apiVersion", r#""v2""#, Error),
    ("subscriber by ref", "ref/kind", r#""Pod""#, Error),
    ("subscriber by ref", "ref/name", r#""unknown""#, Error),
    ("subscriber by ref", "ref/namespace", r#""unknown""#, Error),
    (
        "subscriber by ref",
        "ref/group",
        r#""core""#,
        Nothing("the `apiVersion` says it already, and is needed"),
    ),
    ("subscriber by ref", "ref/address", r#""x""#, Warning),
    ("subscriber by ref", "uri", r#""/in""#, Honoured),
    (
        "subscriber by ref",
        "CACerts",
        r#""-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n""#,
        Honoured,
    ),
    ("subscriber by ref", "CACerts", r#""x""#, Error),
    ("subscriber by ref", "audience", r#""x""#, Warning),
    ("subscriber by ref", "port", "80", Warning),
];

const TRIGGER: [Row; 30] = [
    ("Trigger", "spec/broker", r#""other""#, Honoured),
    ("Trigger", "spec/broker", r#""absent""#, Warning),
    ("Trigger", "spec/broker", ABSENT, Warning),
    ("Trigger", "spec/brokerRef", r#"{"name":"other"}"#, Warning),
    ("Trigger by brokerRef", "spec/brokerRef/name", r#""other""#, Honoured),
    ("Trigger by brokerRef", "spec/brokerRef/namespace", r#""shop""#, Warning),
    ("Trigger by brokerRef", "spec/brokerRef/kind", r#""Broker""#, BY_NAME),
    ("Trigger by brokerRef", "spec/brokerRef/apiVersion", r#""eventing.knative.dev/v1""#, BY_NAME),
    ("Trigger", "spec/filter/attributes", r#"{"type":"t"}"#, Honoured),
    ("Trigger", "spec/filter/attributes", r#"{"Not A Name":"t"}"#, Error),
    ("Trigger", "spec/filter/sourceAndType", r#"{"type":"t"}"#, Warning),
    ("Trigger", "spec/filters", r#"[{"exact":{"type":"t"}}]"#, Honoured),
    ("Trigger", "spec/filters", r#"[{"prefix":{"type":"t"}}]"#, Honoured),
    ("Trigger", "spec/filters", r#"[{"suffix":{"type":"t"}}]"#, Honoured),
    ("Trigger", "spec/filters", r#"[{"all":[{"exact":{"type":"t"}}]}]"#, Honoured),
    ("Trigger", "spec/filters", r#"[{"any":[{"exact":{"type":"t"}}]}]"#, Honoured),
    ("Trigger", "spec/filters", r#"[{"not":{"exact":{"type":"t"}}}]"#, Honoured),
    ("Trigger", "spec/filters", r#"[{"cesql":"type = 't'"}]"#, Honoured),
    ("Trigger", "spec/filters", r#"[{"regex":{"type":"t"}}]"#, Error),
    ("Trigger", "spec/filters", r#"[{"exact":{"type":"t"},"prefix":{"type":"t"}}]"#, Error),
    ("Trigger", "spec/subscriber", ABSENT, Error),
    ("Trigger", "spec/delivery", r#"{"retry":2}"#, Honoured),
    ("Trigger", "spec/other", "1", Warning),
    ("Trigger", "@kafka.eventing.knative.dev/delivery.order", r#""ordered""#, Warning),
    (
        "Trigger",
        "@kafka.eventing.knative.dev/delivery.order",
        r#""unordered""#,
        Nothing("is what happens anyway"),
    ),
    ("Trigger", "@rabbitmq.eventing.knative.dev/parallelism", r#""10""#, Warning),
    ("Trigger", "@rabbitmq.eventing.knative.dev/cpu-limit", r#""1""#, OF_CLUSTER),
    ("Trigger", "@knative.dev/dependency", r#""{}""#, OF_CLUSTER),
    ("Trigger", "@eventing.knative.dev/injection", r#""enabled""#, OF_CLUSTER),
    ("Trigger", "status", "{}", CONTROLLER),
];

const BROKER: [Row; 16] = [
    ("Broker", "@eventing.knative.dev/broker.class", r#""Kafka""#, Honoured),
    ("Broker", "@eventing.knative.dev/broker.class", r#""Unheard""#, Warning),
    ("Broker", "@eventing.knative.dev/broker.class", ABSENT, Warning),
    ("Broker", "@kafka.eventing.knative.dev/external.topic", r#""orders""#, Warning),
    (
        "Broker",
        "spec/config",
        r#"{"apiVersion":"v1","kind":"ConfigMap","name":"kafka-channels"}"#,
        Warning,
    ),
    (
        "Broker",
        "spec/config",
        r#"{"apiVersion":"v1","kind":"ConfigMap","name":"kafka-channels","namespace":"x"}"#,
        Warning,
    ),
    ("Broker", "spec/config", r#"{"apiVersion":"v1","kind":"ConfigMap","name":"absent"}"#, Warning),
    (
        "Broker",
        "spec/config",
        r#"{"apiVersion":"v1","kind":"Secret","name":"kafka-channels"}"#,
        Warning,
    ),
    (
        "Broker",
        "spec/config",
        r#"{"apiVersion":"eventing.knative.dev/v1alpha1","kind":"RabbitmqBrokerConfig","name":"x"}"#,
        OF_BROKER,
    ),
    ("Broker", "spec/delivery", r#"{"retry":2}"#, Honoured),
    (
        "Broker",
        "spec/channelTemplateSpec",
        r#"{"apiVersion":"messaging.knative.dev/v1","kind":"KafkaChannel"}"#,
        Honoured,
    ),
    ("Broker", "spec/other", "1", Warning),
    ("Broker", "apiVersion", r#""eventing.knative.dev/v9""#, Error),
    ("Broker", "metadata/labels", r#"{"a":"b"}"#, OF_CLUSTER),
    ("Broker", "metadata/finalizers", r#"["x"]"#, CONTROLLER),
    ("Broker", "status", "{}", CONTROLLER),
];

const CHANNELS: [Row; 28] = [
    ("Channel", "spec/channelTemplate/kind", r#""KafkaChannel""#, Honoured),
    ("Channel", "spec/channelTemplate/kind", r#""OtherChannel""#, Warning),
    ("Channel", "spec/channelTemplate/spec", r#"{"numPartitions":3}"#, OF_BROKER),
    ("Channel", "spec/channelTemplate/spec", r#"{"delivery":{"retry":2}}"#, Honoured),
    ("Channel", "spec/channelTemplate", ABSENT, Warning),
    (
        "Channel",
        "spec/delivery",
        r#"{"deadLetterSink":{"uri":"https://lost.example.com/"}}"#,
        Honoured,
    ),
    ("Channel", "spec/other", "1", Warning),
    ("KafkaChannel", "spec/numPartitions", "3", OF_BROKER),
    ("KafkaChannel", "spec/replicationFactor", "3", OF_BROKER),
    ("KafkaChannel", "spec/retentionDuration", r#""PT1H""#, OF_BROKER),
    ("KafkaChannel", "spec/subscribers", "[]", CONTROLLER),
    (
        "KafkaChannel",
        "spec/subscribers",
        r#"[{"subscriberUri":"https://a.example.com/"}]"#,
        CONTROLLER,
    ),
    ("KafkaChannel", "spec/subscribers", r#"[{"uid":"a"},{"uid":"b"}]"#, Warning),
    ("subscribers", "subscriberUri", r#""https://other.example.com/""#, Honoured),
    ("subscribers", "replyUri", r#""https://other.example.com/""#, Honoured),
    ("subscribers", "delivery", r#"{"retry":2}"#, Honoured),
    ("subscribers", "uid", r#""other""#, Honoured),
    ("subscribers", "generation", "1", CONTROLLER),
    ("subscribers", "name", r#""x""#, Warning),
    ("subscribers", "namespace", r#""x""#, Warning),
    (
        "subscribers",
        "subscriberCACerts",
        r#""-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n""#,
        Honoured,
    ),
    ("subscribers", "subscriberCACerts", r#""x""#, Error),
    ("subscribers", "subscriberAudience", r#""x""#, Warning),
    (
        "subscribers",
        "replyCACerts",
        r#""-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n""#,
        Warning,
    ),
    ("subscribers", "replyCACerts", r#""x""#, Error),
    ("subscribers", "replyAudience", r#""x""#, Warning),
    ("subscribers", "auth", r#"{"serviceAccountName":"x"}"#, Warning),
    ("subscribers", "subscriberUri", ABSENT, Error),
];

const SUBSCRIPTION: [Row; 11] = [
    ("Subscription", "spec/channel/name", r#""other""#, Honoured),
    ("Subscription", "spec/channel/namespace", r#""other""#, Honoured),
    ("Subscription", "spec/channel/kind", r#""KafkaChannel""#, BY_NAME),
    ("Subscription", "spec/channel/apiVersion", r#""messaging.knative.dev/v1beta1""#, BY_NAME),
    ("Subscription", "spec/channel", ABSENT, Error),
    ("Subscription", "spec/reply", r#"{"uri":"https://other.example.com/"}"#, Honoured),
    ("Subscription", "spec/subscriber", ABSENT, Error),
    ("Subscription with reply", "spec/subscriber", ABSENT, Honoured),
    ("Subscription", "spec/delivery", r#"{"retry":2}"#, Honoured),
    ("Subscription", "spec/other", "1", Warning),
    ("Subscription", "status", "{}", CONTROLLER),
];

const SOURCES: [Row; 36] = [
    ("PingSource", "spec/sink", r#"{"uri":"https://other.example.com/"}"#, Honoured),
    (
        "PingSource",
        "spec/sink",
        r#"{"ref":{"apiVersion":"v1","kind":"Service","name":"unknown"}}"#,
        Error,
    ),
    ("PingSource", "spec/ceOverrides", r#"{"extensions":{"a":"b"}}"#, Warning),
    ("PingSource", "spec/delivery", r#"{"retry":2}"#, Honoured),
    ("PingSource", "spec/schedule", r#""* * * * *""#, OF_SOURCE),
    ("PingSource", "spec/timezone", r#""UTC""#, OF_SOURCE),
    ("PingSource", "spec/contentType", r#""text/plain""#, OF_SOURCE),
    ("PingSource", "spec/data", r#""x""#, OF_SOURCE),
    ("PingSource", "spec/dataBase64", r#""x""#, OF_SOURCE),
    ("ApiServerSource", "spec/mode", r#""Resource""#, OF_SOURCE),
    ("ApiServerSource", "spec/resources", "[]", OF_SOURCE),
    ("ApiServerSource", "spec/owner", "{}", OF_SOURCE),
    ("ApiServerSource", "spec/namespaceSelector", "{}", OF_SOURCE),
    ("ApiServerSource", "spec/serviceAccountName", r#""x""#, OF_SOURCE),
    ("ContainerSource", "spec/template", "{}", OF_SOURCE),
    ("SinkBinding", "spec/subject", "{}", OF_SOURCE),
    ("SinkBinding", "spec/ceOverrides", r#"{"extensions":{"a":"b"}}"#, Warning),
    ("KafkaSource", "spec/ordering", r#""ordered""#, Warning),
    ("KafkaSource", "spec/ordering", ABSENT, Warning),
    ("KafkaSource", "spec/delivery", ABSENT, Warning),
    ("KafkaSource", "spec/delivery", r#"{"retry":5}"#, Honoured),
    ("KafkaSource", "spec/bootstrapServers", r#"["x"]"#, OF_SOURCE),
    ("KafkaSource", "spec/topics", r#"["x"]"#, OF_SOURCE),
    ("KafkaSource", "spec/consumerGroup", r#""x""#, OF_SOURCE),
    ("KafkaSource", "spec/consumers", "3", OF_SOURCE),
    ("KafkaSource", "spec/initialOffset", r#""latest""#, OF_SOURCE),
    ("KafkaSource", "spec/net", "{}", OF_SOURCE),
    ("RabbitmqSource", "spec/rabbitmqResourcesConfig", r#"{"parallelism":10}"#, Warning),
    (
        "RabbitmqSource",
        "spec/rabbitmqResourcesConfig",
        r#"{"exchangeName":"x","queueName":"x","vhost":"x","predeclared":true}"#,
        OF_SOURCE,
    ),
    ("RabbitmqSource", "spec/rabbitmqClusterReference", "{}", OF_SOURCE),
    ("RabbitmqSource", "spec/serviceAccountName", r#""x""#, OF_SOURCE),
    ("RabbitmqSource", "spec/adapterContainerName", r#""x""#, OF_SOURCE),
    ("RabbitmqSource", "spec/delivery", r#"{"retry":5}"#, Honoured),
    ("PingSource to a broker", "spec/delivery", r#"{"retry":2}"#, Warning),
    ("PingSource to a broker", "spec/ceOverrides", r#"{"extensions":{"a":"b"}}"#, Warning),
    ("RabbitmqBrokerConfig", "spec/queueType", r#""quorum""#, OF_BROKER),
];

const CONFIG_MAPS: [Row; 8] = [
    ("RabbitmqBrokerConfig", "spec/vhost", r#""x""#, OF_BROKER),
    ("RabbitmqBrokerConfig", "spec/rabbitmqClusterReference", "{}", OF_BROKER),
    ("RabbitmqBrokerConfig", "spec/other", "1", Warning),
    (
        "config-br-defaults",
        "data/default-br-config",
        r#""clusterDefault: {brokerClass: Kafka}""#,
        Warning,
    ),
    ("config-br-default-channel", "data/channel-template-spec", r#""kind: KafkaChannel""#, Warning),
    ("config-br-default-channel", "data/channelTemplateSpec", r#""kind: KafkaChannel""#, Warning),
    (
        "default-ch-webhook",
        "data/default-ch-config",
        r#""clusterDefault: {kind: KafkaChannel}""#,
        Warning,
    ),
    ("default-ch-webhook", "data/_example", r#""x""#, Nothing("Knative does not read it either")),
];

/// Objects that are not read: the API and the kind.
pub(super) const KINDS: [(&str, &str); 16] = [
    ("flows.knative.dev/v1", "Sequence"),
    ("flows.knative.dev/v1", "Parallel"),
    ("eventing.knative.dev/v1beta3", "EventType"),
    ("eventing.knative.dev/v1alpha1", "EventPolicy"),
    ("eventing.knative.dev/v1alpha1", "EventTransform"),
    ("eventing.knative.dev/v1alpha1", "RequestReply"),
    ("eventing.knative.dev/v1alpha1", "KafkaSink"),
    ("sinks.knative.dev/v1alpha1", "JobSink"),
    ("sinks.knative.dev/v1alpha1", "IntegrationSink"),
    ("bindings.knative.dev/v1", "KafkaBinding"),
    ("serving.knative.dev/v1", "Service"),
    ("operator.knative.dev/v1beta1", "KnativeEventing"),
    ("rabbitmq.com/v1beta1", "RabbitmqCluster"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("apps/v1", "Deployment"),
];

/// The rows of all tables.
pub(super) const ROWS: [&[Row]; 8] =
    [&BROKER, &TRIGGER, &SUBSCRIPTION, &CHANNELS, &DELIVERY, &DESTINATION, &SOURCES, &CONFIG_MAPS];
