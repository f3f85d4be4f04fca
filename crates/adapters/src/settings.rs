//! Reads and validates the functions' settings, once at cold start.
//!
//! A lookup function supplies the values, so tests need no environment. A function with a missing
//! or invalid setting does not start, and its error names the setting.

use delivery::address::{OwnAddresses, PrivateDestinations, http_url};
use delivery::ports::QueueName;
use delivery::publish::AllowedOrigins;
use delivery::subscription::aws::policy::{AwsPolicy, AwsTargets, OwnResources};
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::SecretName;
use delivery::subscription::sink::Container;
use delivery::time::duration::SECOND_MS;
use thiserror::Error;
use url::Url;

use crate::live_topics::Location;
use crate::metrics::emf::is_namespace;
use crate::metrics::{MetricsSettings, NAMESPACE, Splits};
use crate::telemetry::LogDeliveries;

/// The folder of the subscriptions: `s3://bucket/prefix/` or `file:///folder/`.
pub const SUBSCRIPTIONS_URI: &str = "SUBSCRIPTIONS_URI";
/// The DynamoDB table of the state that functions share, such as the health of destinations.
pub const TABLE_NAME: &str = "TABLE_NAME";
/// The queue of published events.
pub const EVENTS_QUEUE_URL: &str = "EVENTS_QUEUE_URL";
/// The queue of deliveries that wait for an attempt, and of records that dispatch re-enqueued
/// before their first attempt.
pub const RETRY_QUEUE_URL: &str = "RETRY_QUEUE_URL";
/// The queue of due deliveries to slow destinations.
pub const SLOW_QUEUE_URL: &str = "SLOW_QUEUE_URL";
/// The queue of records that were received more than once. Dispatch processes each of them alone.
pub const ISOLATION_QUEUE_URL: &str = "ISOLATION_QUEUE_URL";
/// The queue of dead letters that wait to be stored.
pub const DEAD_LETTER_QUEUE_URL: &str = "DEAD_LETTER_QUEUE_URL";
/// The queue of dead letters that storage refused for too long.
pub const LAST_RESORT_QUEUE_URL: &str = "LAST_RESORT_QUEUE_URL";
/// The bucket for dead letters whose subscription names none.
pub const DEAD_LETTER_CONTAINER: &str = "DEAD_LETTER_CONTAINER";
/// The topic of records that name none, as `namespace/topic`.
pub const DEFAULT_TOPIC: &str = "DEFAULT_TOPIC";
/// Authorization of publishing over HTTP: `keys` (a request needs one of `PUBLISHER_KEYS`) or `iam`
/// (Lambda authorizes requests).
pub const INGRESS_AUTHORIZATION: &str = "INGRESS_AUTHORIZATION";
/// Secrets with the keys of publishers, comma-separated: ARNs of secrets and parameters, or names
/// such as `env:NAME`. A request over HTTP needs one of the keys.
pub const PUBLISHER_KEYS: &str = "PUBLISHER_KEYS";
/// Senders whose CloudEvents handshakes (OPTIONS) are granted: DNS names, comma-separated, such as
/// `eventgrid.azure.net`. `*` grants all.
pub const ALLOWED_ORIGINS: &str = "ALLOWED_ORIGINS";
/// Hosts and CIDRs, comma-separated, that may have private addresses or use plain HTTP.
pub const ALLOW_PRIVATE_DESTINATIONS: &str = "ALLOW_PRIVATE_DESTINATIONS";
/// The role that dispatch assumes to sign requests to destinations (`auth: {sigv4: …}`) and to AWS
/// targets.
pub const INVOKE_ROLE_ARN: &str = "INVOKE_ROLE_ARN";
/// AWS targets that subscriptions may use, as `NAMESPACE=ARN`, comma-separated, such as
/// `shop=arn:aws:sqs:eu-west-1:123456789012:shop-*`. The namespace `*` means all namespaces.
/// Targets without an entry are not allowed.
pub const AWS_TARGETS: &str = "AWS_TARGETS";
/// ARNs of the deployment's own resources, comma-separated, optionally with wildcards. No
/// subscription may use them as targets.
pub const OWN_RESOURCE_ARNS: &str = "OWN_RESOURCE_ARNS";
/// Maximum number of concurrent invocations of dispatch: a number, or a sum such as `50+10`.
pub const MAX_CONCURRENCY: &str = "MAX_CONCURRENCY";
/// Timeout of the function in seconds. The deadline of an invocation minus this timeout is the time
/// at which the invocation began, by the clock of AWS. The function corrects its clock to this time
/// if the difference is more than five seconds. Without this variable, the function does not
/// correct its clock.
pub const FUNCTION_TIMEOUT_SECONDS: &str = "FUNCTION_TIMEOUT_SECONDS";
/// Deliveries to log: `all`, or `failures`, which omits deliveries that succeed at the first
/// attempt.
pub const LOG_DELIVERIES: &str = "LOG_DELIVERIES";
/// The CloudWatch namespace of the metrics. Each deployment in an account needs its own namespace.
pub const METRICS_NAMESPACE: &str = "METRICS_NAMESPACE";
/// Additional dimensions of metrics, comma-separated: `topic`, `outcome` (with the reasons why
/// deliveries ended), `subscription`.
pub const METRICS_PER: &str = "METRICS_PER";

/// Set by Lambda: the address of the Runtime API and of the Extensions API.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
pub const AWS_LAMBDA_RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";
/// Set by Lambda: the name of the function.
pub const AWS_LAMBDA_FUNCTION_NAME: &str = "AWS_LAMBDA_FUNCTION_NAME";
/// Set by Lambda: the address of the X-Ray daemon, if there is one.
pub const AWS_XRAY_DAEMON_ADDRESS: &str = "AWS_XRAY_DAEMON_ADDRESS";
/// The port of the AWS Parameters and Secrets extension.
/// <https://docs.aws.amazon.com/secretsmanager/latest/userguide/retrieving-secrets_lambda.html>
pub const PARAMETERS_SECRETS_EXTENSION_HTTP_PORT: &str = "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT";
/// A server that replaces AWS, such as an emulator. Requests to AWS targets go to this server. The
/// clients of the SDK read this variable too.
/// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html>
pub const AWS_ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";

const RUNTIME_API_DEFAULT: &str = "127.0.0.1:9001";
/// Port of the extension if its variable is not set.
pub(crate) const EXTENSION_PORT_DEFAULT: &str = "2773";

/// Maximum timeout of a Lambda function.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const TIMEOUT_MAX_SECONDS: u64 = 900;

/// The reason why a function does not start.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SettingsError {
    /// A required setting is missing.
    #[error("the environment variable {0} is not set")]
    Missing(&'static str),
    /// A setting has an invalid value.
    #[error("the environment variable {name} is invalid: {problem}")]
    Invalid {
        /// The name of the setting.
        name: &'static str,
        /// The problem, and the value that was expected.
        problem: String,
    },
}

/// The settings of the dispatch function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchSettings {
    /// The location of the subscriptions.
    pub subscriptions: Location,
    /// The name of the shared table.
    pub table: String,
    /// The URLs of the queues to which dispatch sends.
    pub queues: Vec<(QueueName, String)>,
    /// The deployment's default container of dead letters.
    pub container: Container,
    /// The topic of records that name no topic.
    pub default_topic: Option<TopicName>,
    /// The private addresses that are allowed as destinations.
    pub private: PrivateDestinations,
    /// The function's own addresses, which are never allowed as destinations.
    pub own_addresses: OwnAddresses,
    /// The role that dispatch assumes to sign requests to destinations.
    pub invoke_role_arn: Option<String>,
    /// The AWS targets that subscriptions may use.
    pub aws_policy: AwsPolicy,
    /// The deployment's own resources, to which the assumed role is denied access.
    pub own_resources: OwnResources,
    /// A server that receives requests for AWS targets in place of AWS, such as an emulator.
    pub aws_endpoint: Option<Url>,
    /// Maximum number of concurrent invocations of dispatch.
    pub max_concurrency: u32,
    /// The function's timeout, which is needed to detect a wrong clock.
    pub timeout_ms: Option<u64>,
    /// The selection of deliveries that are logged.
    pub log_deliveries: LogDeliveries,
    /// The namespace and the dimensions of metrics.
    pub metrics: MetricsSettings,
}

/// The settings of the deadletter function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterSettings {
    /// The URLs of three queues: the events queue (whose messages are untrusted), the dead-letter
    /// queue, and the last-resort queue.
    pub queues: Vec<(QueueName, String)>,
    /// The deployment's default container of dead letters.
    pub container: Container,
    /// The function's timeout, which is needed to detect a wrong clock.
    pub timeout_ms: Option<u64>,
    /// The namespace and the dimensions of metrics.
    pub metrics: MetricsSettings,
}

/// The settings of the ingress function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngressSettings {
    /// The URL of the queue to which the function publishes.
    pub events_queue_url: String,
    /// The topic of requests that name no topic.
    pub default_topic: Option<TopicName>,
    /// The names of the accepted keys; empty if Lambda authorizes callers by IAM.
    pub keys: Vec<SecretName>,
    /// The senders whose webhook handshakes are granted; none by default.
    pub allowed_origins: AllowedOrigins,
    /// The function's timeout, which is needed to detect a wrong clock.
    pub timeout_ms: Option<u64>,
}

impl DispatchSettings {
    /// Reads the settings with a lookup such as `|name| std::env::var(name).ok()`.
    ///
    /// # Errors
    /// Returns the first setting that is missing or invalid.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let env = Lookup(lookup);
        Ok(Self {
            subscriptions: env.parse(SUBSCRIPTIONS_URI, Location::parse)?,
            table: env.required(TABLE_NAME)?,
            queues: vec![
                (QueueName::Events, env.queue(EVENTS_QUEUE_URL)?),
                (QueueName::Retry, env.queue(RETRY_QUEUE_URL)?),
                (QueueName::Slow, env.queue(SLOW_QUEUE_URL)?),
                (QueueName::Isolation, env.queue(ISOLATION_QUEUE_URL)?),
                (QueueName::DeadLetter, env.queue(DEAD_LETTER_QUEUE_URL)?),
            ],
            container: env.container()?,
            default_topic: env.default_topic()?,
            private: env.parse_or(ALLOW_PRIVATE_DESTINATIONS, "", PrivateDestinations::parse)?,
            own_addresses: env.own_addresses()?,
            invoke_role_arn: env.optional(INVOKE_ROLE_ARN),
            aws_policy: env.aws_policy()?,
            own_resources: env.own_resources()?,
            aws_endpoint: env.aws_endpoint()?,
            max_concurrency: env.parse_or(MAX_CONCURRENCY, "1", sum)?,
            timeout_ms: env.timeout_ms()?,
            log_deliveries: env.log_deliveries()?,
            metrics: env.metrics()?,
        })
    }
}

impl DeadLetterSettings {
    /// Reads the settings with a lookup such as `|name| std::env::var(name).ok()`.
    ///
    /// # Errors
    /// Returns the first setting that is missing or invalid.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let env = Lookup(lookup);
        Ok(Self {
            queues: vec![
                (QueueName::Events, env.queue(EVENTS_QUEUE_URL)?),
                (QueueName::DeadLetter, env.queue(DEAD_LETTER_QUEUE_URL)?),
                (QueueName::LastResort, env.queue(LAST_RESORT_QUEUE_URL)?),
            ],
            container: env.container()?,
            timeout_ms: env.timeout_ms()?,
            metrics: env.metrics()?,
        })
    }
}

impl IngressSettings {
    /// Reads the settings with a lookup such as `|name| std::env::var(name).ok()`.
    ///
    /// # Errors
    /// Returns the first setting that is missing or invalid. With `keys` as authorization, at least
    /// one key is required, so that unauthenticated callers are never accepted.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let env = Lookup(lookup);
        let events_queue_url = env.queue(EVENTS_QUEUE_URL)?;
        let by_keys = env.parse(INGRESS_AUTHORIZATION, |text| match text {
            "keys" => Ok(true),
            "iam" => Ok(false),
            other => Err(format!("\"{other}\" is not valid: expected keys or iam")),
        })?;
        let keys = env.parse_or(PUBLISHER_KEYS, "", |text| {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(publisher_key).collect::<Result<Vec<SecretName>, String>>()
        })?;
        if by_keys && keys.is_empty() {
            return Err(SettingsError::Missing(PUBLISHER_KEYS));
        }
        let allowed_origins = env.parse_or(ALLOWED_ORIGINS, "", str::parse)?;
        let (default_topic, timeout_ms) = (env.default_topic()?, env.timeout_ms()?);
        Ok(Self { events_queue_url, default_topic, keys, allowed_origins, timeout_ms })
    }
}

/// Reads settings as typed values, with a lookup function.
struct Lookup<F>(F);

impl<F: Fn(&str) -> Option<String>> Lookup<F> {
    /// Returns an optional setting; `None` if it is missing or empty.
    fn optional(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|text| !text.is_empty())
    }

    fn required(&self, name: &'static str) -> Result<String, SettingsError> {
        self.optional(name).ok_or(SettingsError::Missing(name))
    }

    fn parse<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, SettingsError> {
        invalid(name, parse(&self.required(name)?))
    }

    fn parse_or<T>(
        &self,
        name: &'static str,
        default: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, SettingsError> {
        invalid(name, parse(self.optional(name).as_deref().unwrap_or(default)))
    }

    fn queue(&self, name: &'static str) -> Result<String, SettingsError> {
        self.parse(name, |url| {
            if url.ends_with(".fifo") {
                return Err(format!(
                    "{url} is a FIFO queue, which does not support a delay per message; use a \
                     standard queue"
                ));
            }
            match url::Url::parse(url) {
                Ok(parsed) if parsed.has_host() => Ok(url.to_owned()),
                _ => Err(format!("\"{url}\" is not a queue URL")),
            }
        })
    }

    fn default_topic(&self) -> Result<Option<TopicName>, SettingsError> {
        let topic = self.optional(DEFAULT_TOPIC);
        topic.map(|text| invalid(DEFAULT_TOPIC, text.parse())).transpose()
    }

    fn container(&self) -> Result<Container, SettingsError> {
        let bucket = self.parse(DEAD_LETTER_CONTAINER, |bucket| {
            if bucket.contains('/') {
                return Err(format!("\"{bucket}\" is not a valid bucket name"));
            }
            Ok(bucket.to_owned())
        })?;
        Ok(Container { bucket, prefix: String::new() })
    }

    fn metrics(&self) -> Result<MetricsSettings, SettingsError> {
        let namespace = self.parse_or(METRICS_NAMESPACE, NAMESPACE, |text| {
            if !is_namespace(text) {
                return Err(format!(
                    "\"{text}\" is not a valid namespace: expected up to 255 letters, digits, \
                     spaces and . - _ / #, not beginning with AWS/"
                ));
            }
            Ok(text.to_owned())
        })?;
        let splits = self.parse_or(METRICS_PER, "", splits)?;
        Ok(MetricsSettings { namespace, splits })
    }

    fn timeout_ms(&self) -> Result<Option<u64>, SettingsError> {
        let seconds = |text: String| {
            let seconds =
                text.parse().ok().filter(|seconds| (1..=TIMEOUT_MAX_SECONDS).contains(seconds));
            seconds.map(|seconds| seconds * SECOND_MS).ok_or_else(|| {
                format!("\"{text}\" is not a number of seconds from 1 to {TIMEOUT_MAX_SECONDS}")
            })
        };
        let timeout = self.optional(FUNCTION_TIMEOUT_SECONDS);
        timeout.map(|text| invalid(FUNCTION_TIMEOUT_SECONDS, seconds(text))).transpose()
    }

    fn log_deliveries(&self) -> Result<LogDeliveries, SettingsError> {
        self.parse_or(LOG_DELIVERIES, "all", |text| match text {
            "all" => Ok(LogDeliveries::All),
            "failures" => Ok(LogDeliveries::Failures),
            other => Err(format!("\"{other}\" is not valid: expected all or failures")),
        })
    }

    fn aws_policy(&self) -> Result<AwsPolicy, SettingsError> {
        let targets = self.parse_or(AWS_TARGETS, "", AwsTargets::parse)?;
        let role = self.optional(INVOKE_ROLE_ARN);
        Ok(AwsPolicy::new(targets, self.own_resources()?, role.as_deref()))
    }

    /// Returns the resources of [`OWN_RESOURCE_ARNS`]. Adds this function if Lambda sets its name.
    fn own_resources(&self) -> Result<OwnResources, SettingsError> {
        let own = self.parse_or(OWN_RESOURCE_ARNS, "", OwnResources::parse)?;
        Ok(match self.optional(AWS_LAMBDA_FUNCTION_NAME) {
            Some(name) => own.with_function(&name),
            None => own,
        })
    }

    fn aws_endpoint(&self) -> Result<Option<Url>, SettingsError> {
        let endpoint = self.optional(AWS_ENDPOINT_URL);
        endpoint.map(|text| invalid(AWS_ENDPOINT_URL, http_url(&text))).transpose()
    }

    /// Returns the endpoints that serve the function in its sandbox, which no destination may use.
    fn own_addresses(&self) -> Result<OwnAddresses, SettingsError> {
        let mut own = OwnAddresses::default();
        self.parse_or(AWS_LAMBDA_RUNTIME_API, RUNTIME_API_DEFAULT, |runtime| own.add(runtime))?;
        self.parse_or(PARAMETERS_SECRETS_EXTENSION_HTTP_PORT, EXTENSION_PORT_DEFAULT, |port| {
            own.add(&format!("127.0.0.1:{port}"))
        })?;
        // Either one endpoint, or one for each protocol: `tcp:127.0.0.1:2000 udp:127.0.0.1:2001`.
        for daemon in self.optional(AWS_XRAY_DAEMON_ADDRESS).unwrap_or_default().split_whitespace()
        {
            let endpoint = daemon.trim_start_matches("tcp:").trim_start_matches("udp:");
            invalid(AWS_XRAY_DAEMON_ADDRESS, own.add(endpoint))?;
        }
        Ok(own)
    }
}

/// Parses the dimension sets of metrics from a comma-separated list of names.
///
/// # Errors
/// Returns the first unknown name.
pub fn splits(text: &str) -> Result<Splits, String> {
    let mut splits = Splits::default();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match name {
            "topic" => splits.topic = true,
            "outcome" => splits.outcome = true,
            "subscription" => splits.subscription = true,
            other => {
                return Err(format!(
                    "\"{other}\" is not valid: expected topic, outcome or subscription"
                ));
            }
        }
    }
    Ok(splits)
}

/// Parses the name of a publisher's key. Secrets Manager and Parameter Store accept an ARN as a
/// name.
///
/// # Errors
/// Fails if the text is neither an ARN nor the name of a secret.
pub fn publisher_key(text: &str) -> Result<SecretName, String> {
    match text.split(':').nth(2) {
        Some(service) if text.starts_with("arn:") => format!("{service}:{text}").parse(),
        _ => text.parse(),
    }
}

/// Parses a positive number, or a sum of positive numbers. Sums are allowed because a template can
/// join two parameters, but cannot add them.
fn sum(text: &str) -> Result<u32, String> {
    let numbers = text
        .split('+')
        .map(|number| number.trim().parse::<u32>().ok().filter(|number| *number > 0));
    let sum = numbers.reduce(|sum, number| Some(sum?.saturating_add(number?)));
    sum.flatten()
        .ok_or_else(|| format!("\"{text}\" is neither a positive number nor a sum such as 50+10"))
}

fn invalid<T>(name: &'static str, result: Result<T, String>) -> Result<T, SettingsError> {
    result.map_err(|problem| SettingsError::Invalid { name, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &str); 8] = [
        (SUBSCRIPTIONS_URI, "s3://config/subscriptions/"),
        (TABLE_NAME, "lastmile"),
        (EVENTS_QUEUE_URL, "https://sqs.eu-west-1.amazonaws.com/1/events"),
        (RETRY_QUEUE_URL, "https://sqs.eu-west-1.amazonaws.com/1/retry"),
        (SLOW_QUEUE_URL, "https://sqs.eu-west-1.amazonaws.com/1/slow"),
        (ISOLATION_QUEUE_URL, "https://sqs.eu-west-1.amazonaws.com/1/isolation"),
        (DEAD_LETTER_QUEUE_URL, "https://sqs.eu-west-1.amazonaws.com/1/dead"),
        (DEAD_LETTER_CONTAINER, "letters"),
    ];

    fn read(changes: &[(&str, &str)]) -> Result<DispatchSettings, SettingsError> {
        DispatchSettings::read(|name| {
            let changed = changes.iter().find(|(variable, _)| *variable == name);
            changed
                .or_else(|| GOOD.iter().find(|(variable, _)| *variable == name))
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_is_not_set_has_a_safe_default() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.private, PrivateDestinations::default());
        assert_eq!(settings.default_topic, None);
        assert_eq!(settings.container.to_string(), "letters");
        assert_eq!(settings.max_concurrency, 1);
        assert_eq!(settings.timeout_ms, None);
        assert_eq!(settings.log_deliveries, LogDeliveries::All);
        assert_eq!(
            settings.metrics,
            MetricsSettings { namespace: "lastmile".to_owned(), splits: Splits::default() }
        );
    }

    #[test]
    fn how_many_functions_run_at_once_is_a_number_or_a_sum() {
        for (value, number) in
            [("60", 60), ("50+10", 60), (" 50 + 10 ", 60), ("4294967295+9", u32::MAX)]
        {
            assert_eq!(
                read(&[(MAX_CONCURRENCY, value)]).unwrap().max_concurrency,
                number,
                "{value}"
            );
        }
    }

    #[test]
    fn a_timeout_is_a_number_of_seconds_that_lambda_allows() {
        for (value, timeout_ms) in [("1", Some(1_000)), ("900", Some(900_000)), ("", None)] {
            let read = read(&[(FUNCTION_TIMEOUT_SECONDS, value)]);
            assert_eq!(read.map(|settings| settings.timeout_ms), Ok(timeout_ms), "{value}");
        }
    }

    #[test]
    fn the_functions_own_addresses_have_defaults_and_follow_the_environment() {
        let own = |changes| read(changes).unwrap().own_addresses;
        let ports =
            |own: &OwnAddresses, ports: &[u16]| ports.iter().all(|port| own.has_port(*port));
        assert!(ports(&own(&[]), &[9001, 2773]) && !own(&[]).has_port(2000));
        let changed = own(&[
            (AWS_LAMBDA_RUNTIME_API, "127.0.0.1:43211"),
            (PARAMETERS_SECRETS_EXTENSION_HTTP_PORT, "2774"),
            (AWS_XRAY_DAEMON_ADDRESS, "tcp:127.0.0.1:2000 udp:127.0.0.2:2001"),
        ]);
        assert!(
            ports(&changed, &[43211, 2774, 2000, 2001])
                && !changed.has_port(9001)
                && !changed.has_port(2773)
        );
        assert!(own(&[(AWS_XRAY_DAEMON_ADDRESS, "169.254.79.129:2000")]).has_port(2000));
    }

    #[test]
    fn a_missing_setting_is_named() {
        for (name, _) in GOOD {
            assert_eq!(
                read(&[(name, "")]).unwrap_err().to_string(),
                format!("the environment variable {name} is not set")
            );
        }
    }

    #[test]
    fn an_invalid_setting_is_named_with_what_is_expected() {
        for (name, value, says) in [
            (SUBSCRIPTIONS_URI, "subscriptions", "s3://bucket/prefix/"),
            (RETRY_QUEUE_URL, "https://sqs.eu-west-1.amazonaws.com/1/retry.fifo", "standard queue"),
            (EVENTS_QUEUE_URL, "events", "not a queue URL"),
            (EVENTS_QUEUE_URL, "mailto:events@example.com", "not a queue URL"),
            (DEFAULT_TOPIC, "orders", "namespace/topic"),
            (LOG_DELIVERIES, "none", "expected all or failures"),
            (METRICS_PER, "topic,day", "expected topic, outcome or subscription"),
            (METRICS_NAMESPACE, "AWS/Lambda", "not beginning with AWS/"),
            (MAX_CONCURRENCY, "50+", "50+10"),
            (MAX_CONCURRENCY, "0", "positive"),
            (FUNCTION_TIMEOUT_SECONDS, "0", "from 1 to 900"),
            (FUNCTION_TIMEOUT_SECONDS, "901", "from 1 to 900"),
            (FUNCTION_TIMEOUT_SECONDS, "2m", "from 1 to 900"),
            (ALLOW_PRIVATE_DESTINATIONS, "http://x", "10.0.0.0/8"),
            (AWS_TARGETS, "arn:aws:sqs:eu-west-1:123456789012:q", "shop=arn:aws:sqs"),
            (OWN_RESOURCE_ARNS, "queue", "is not an ARN"),
            (DEAD_LETTER_CONTAINER, "a/b", "not a valid bucket name"),
            (AWS_LAMBDA_RUNTIME_API, "127.0.0.1", "host:port"),
            (PARAMETERS_SECRETS_EXTENSION_HTTP_PORT, "http", "host:port"),
            (AWS_XRAY_DAEMON_ADDRESS, "tcp:127.0.0.1:2000 udp:2001", "host:port"),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(says), "{error}");
        }
    }

    #[test]
    fn metrics_are_split_by_what_is_listed() {
        let splits = |list| read(&[(METRICS_PER, list)]).unwrap().metrics.splits;
        assert_eq!(splits(""), Splits::default());
        assert_eq!(splits("topic, subscription,outcome"), Splits::ALL);
        assert_eq!(splits("outcome"), Splits { outcome: true, ..Splits::default() });
    }

    #[test]
    fn the_ingress_does_not_start_where_everybody_could_publish() {
        let read = |authorization: &'static str, keys: &'static str| {
            IngressSettings::read(move |name| {
                let value = match name {
                    INGRESS_AUTHORIZATION => authorization,
                    PUBLISHER_KEYS => keys,
                    EVENTS_QUEUE_URL => "https://sqs.eu-west-1.amazonaws.com/1/events",
                    _ => "",
                };
                Some(value.to_owned())
            })
        };
        let names = |settings: IngressSettings| {
            settings.keys.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(read("", "ssm:a"), Err(SettingsError::Missing(INGRESS_AUTHORIZATION)));
        assert_eq!(read("keys", ""), Err(SettingsError::Missing(PUBLISHER_KEYS)));
        assert_eq!(read("keys", " , "), Err(SettingsError::Missing(PUBLISHER_KEYS)));
        assert_eq!(read("iam", "").map(names), Ok(vec![]));
        let two = vec!["secretsmanager:one#key".to_owned(), "ssm:/two".to_owned()];
        assert_eq!(read("keys", "secretsmanager:one#key, ssm:/two").map(names), Ok(two));
        let (secret, parameter) = (
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:keys-a1b2c3",
            "arn:aws:ssm:eu-west-1:123456789012:parameter/keys",
        );
        let both: &'static str = format!("{secret},{parameter}").leak();
        let named = vec![format!("secretsmanager:{secret}"), format!("ssm:{parameter}")];
        assert_eq!(read("keys", both).map(names), Ok(named));
        assert_eq!(read("iam", "").map(|read| read.allowed_origins), Ok(AllowedOrigins::default()));
        for (authorization, keys, name) in
            [("none", "ssm:a", INGRESS_AUTHORIZATION), ("keys", "hunter2", PUBLISHER_KEYS)]
        {
            let error = read(authorization, keys).expect_err("it is invalid").to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
