//! Reads `spec.delivery`: retries and dead letters. Every field is optional, so that one object can
//! override another.
//!
//! Separate because a Trigger overrides its Broker and a Subscription its Channel before defaults
//! are filled in. An explicit `retry: 0` is a value. A missing `backoffPolicy` is exponential and a
//! missing `backoffDelay` is PT1S, independently of each other. A Broker without `delivery` has the
//! settings of stock Knative.

use serde_json::json;

use super::super::access::SINK_ACCESS;
use super::super::destinations::Destinations;
use super::super::translation::Translation;
use super::address::{Address, Addresses, ResolvedAddress, entry};
use super::class::{Class, Policy, Support};
use super::located::Located;
use super::old;
use delivery::document::findings::{Message, ReferenceUse, quoted};
use delivery::document::kind::Kind as _;
use delivery::document::reader::{Cursor, Fields};
use delivery::event::schema::Schema;
use delivery::subscription::kinds::schedule::Waits;
use delivery::subscription::kinds::sinks::Sinks;
use delivery::subscription::profile::{ATTEMPTS_MAX, LIFETIME_MAX_MS, RESPONSE_TIMEOUT_MAX_MS};
use delivery::subscription::sink::Sink;
use delivery::time::duration::{self, SECOND_MS};
use delivery::waits::Schedule;

#[derive(Clone, Default)]
pub(super) struct Delivery<'a> {
    retry: Option<Located<'a, u32>>,
    policy: Option<Located<'a, Policy>>,
    delay_ms: Option<Located<'a, u64>>,
    max_ms: Option<Located<'a, u64>>,
    timeout_ms: Option<Located<'a, u64>>,
    retry_after_max_ms: Option<Located<'a, u64>>,
    sink: Option<Located<'a, Letters>>,
    format: Option<Located<'a, Schema>>,
    /// True if [`STOCK`] supplies missing retry settings.
    has_stock_defaults: bool,
}

/// The sink of dead letters, and the key from which its address was resolved.
#[derive(Clone)]
struct Letters {
    sink: Sink,
    reference: Option<String>,
}

/// Retry settings that apply if no document states others.
struct RetrySettings {
    retries: u32,
    policy: Policy,
    delay_ms: u64,
}

/// The retry settings that stock Knative writes into a Broker without `delivery`:
/// `config-br-defaults`, as knative/eventing ships it (config/core/configmaps/default-broker.yaml).
const STOCK: RetrySettings =
    RetrySettings { retries: 10, policy: Policy::Exponential, delay_ms: 200 };
/// The settings in [`STOCK`] in the form of a document, for messages.
pub(super) const STOCK_TEXT: &str = "retry: 10, backoffPolicy: exponential, backoffDelay: PT0.2S";
/// Origin of the settings in [`STOCK`], as reports show it.
pub(super) const STOCK_ORIGIN: &str = "default of stock Knative (config-br-defaults)";

const POLICIES: [(&str, Policy); 2] =
    [("linear", Policy::Linear), ("exponential", Policy::Exponential)];
/// Values of `format`, with their schemas. Both are CloudEvents. Without `format`, events are sent
/// as they were published.
const FORMATS: [(&str, Schema); 2] =
    [("json", Schema::CloudEventsStructured), ("binary", Schema::CloudEventsBinary)];
/// Maximum value of `retry` in Knative, which is an int32. At most [`ATTEMPTS_MAX`] attempts are
/// made.
const RETRIES_MAX: u32 = i32::MAX.unsigned_abs();
/// Default of `backoffDelay`, which prevents retries without a pause.
const DELAY_DEFAULT_MS: u64 = SECOND_MS;

impl<'a> Delivery<'a> {
    /// Reads the fields of `delivery` in an object of this class and namespace. A `backoffDelay` of
    /// zero means no wait.
    pub(super) fn read(
        fields: &Fields<'a>,
        class: Class,
        addresses: &Addresses<'_>,
        namespace: &str,
    ) -> Self {
        let duration_ms =
            |name, range| located(fields, name, |cursor| old::duration_ms(cursor, range));
        let resolved = sink_field(fields).and_then(|cursor| addresses.read(&cursor, namespace));
        let resolved = resolved.or_else(|| {
            let at = old::sink_uri(fields)?;
            addresses.of_uri((at.text()?, at))
        });
        let is_pubsub = resolved.as_ref().is_none_or(|resolved| resolved.is_pubsub);
        let delivery = Self {
            retry: located(fields, "retry", retries),
            policy: located(fields, "backoffPolicy", |cursor| cursor.choice(&POLICIES)),
            delay_ms: duration_ms("backoffDelay", 0..=LIFETIME_MAX_MS),
            max_ms: duration_ms("backoffMax", 1..=LIFETIME_MAX_MS),
            timeout_ms: located(fields, "timeout", timeout_ms),
            retry_after_max_ms: duration_ms("retryAfterMax", 0..=LIFETIME_MAX_MS),
            sink: resolved.map(|resolved| sink(resolved, addresses.destinations)),
            format: located(fields, "format", |cursor| cursor.choice(&FORMATS)),
            has_stock_defaults: false,
        };
        delivery.report_support(fields, class, is_pubsub);
        delivery
    }

    /// Creates the settings of a Broker that states no settings: those of stock Knative.
    pub(super) fn stock() -> Self {
        Self { has_stock_defaults: true, ..Self::default() }
    }

    /// True if at least one retry setting comes from stock Knative.
    pub(super) fn uses_stock_defaults(&self) -> bool {
        self.has_stock_defaults && self.stated_retries().contains(&false)
    }

    /// True if failed attempts are retried.
    pub(super) fn retries(&self) -> bool {
        value(&self.retry).map_or(self.has_stock_defaults, |retries| retries > 0)
    }

    /// True if documents state at least one retry setting.
    pub(super) fn states_retries(&self) -> bool {
        self.stated_retries().contains(&true)
    }

    fn stated_retries(&self) -> [bool; 3] {
        [self.retry.is_some(), self.policy.is_some(), self.delay_ms.is_some()]
    }

    /// Reports settings that Knative does not support for this class. `is_pubsub` is true if the
    /// sink is a Pub/Sub topic.
    fn report_support(&self, fields: &Fields<'_>, class: Class, is_pubsub: bool) {
        match class.support {
            Support::Whole => {}
            Support::NoDelivery => {
                let message = format!(
                    "{} supports no delivery parameters in Knative; lastmile supports them",
                    class.name
                );
                fields.parent().warn(message);
            }
            Support::GoogleCloud => {
                if let Some(policy) =
                    self.policy.as_ref().filter(|policy| policy.value == Policy::Linear)
                {
                    let message =
                        Message::new("a broker of class googlecloud supports only exponential");
                    policy.at.error(message.help("backoffPolicy: exponential"));
                }
                if let Some(sink) = self.sink.as_ref().filter(|_| !is_pubsub) {
                    sink.at.warn(
                        "a broker of class googlecloud supports only a pubsub:// topic as its sink",
                    );
                }
            }
        }
    }

    /// Returns these settings, completed by those of `base`.
    pub(super) fn with_fallback(self, base: &Self) -> Self {
        Self {
            retry: self.retry.or_else(|| base.retry.clone()),
            policy: self.policy.or_else(|| base.policy.clone()),
            delay_ms: self.delay_ms.or_else(|| base.delay_ms.clone()),
            max_ms: self.max_ms.or_else(|| base.max_ms.clone()),
            timeout_ms: self.timeout_ms.or_else(|| base.timeout_ms.clone()),
            retry_after_max_ms: self.retry_after_max_ms.or_else(|| base.retry_after_max_ms.clone()),
            sink: self.sink.or_else(|| base.sink.clone()),
            format: self.format.or_else(|| base.format.clone()),
            has_stock_defaults: self.has_stock_defaults || base.has_stock_defaults,
        }
    }

    /// Returns these settings, with the sink of `base` if they have no sink.
    pub(super) fn with_sink_of(self, base: &Self) -> Self {
        Self { sink: self.sink.or_else(|| base.sink.clone()), ..self }
    }

    /// Writes these settings into a native document. The class determines how retries are numbered.
    /// `at` is the position of the object.
    pub(super) fn translate(&self, class: Class, at: &Cursor<'_>, to: &mut Translation) {
        self.translate_retries(class, at, to);
        let duration = |ms: u64| json!(duration::format_ms(ms));
        let located = [
            ("destination.timeout", &self.timeout_ms),
            ("retry.retryAfterMax", &self.retry_after_max_ms),
        ];
        for (path, located) in located {
            to.set_some(path, value(located), duration, self::at(located));
        }
        let schema = value(&self.format).map(Schema::as_str);
        to.set_some("destination.schema", schema, |schema| json!(schema), self::at(&self.format));
        if let Some(Located { value: Letters { sink, reference }, at }) = &self.sink
            && *sink != Sink::DefaultContainer
        {
            to.set("deadLetter.sink", &Sinks.write(sink), at);
            to.set_some("deadLetter.reference", reference.as_ref(), |key| json!(key), Some(at));
        }
    }

    /// Writes the number of attempts and the schedule. Also records the origin of a stock value,
    /// which has no position in a file, and of the schedule, which may have several positions.
    fn translate_retries(&self, class: Class, object: &Cursor<'_>, to: &mut Translation) {
        let policy = value(&self.policy).unwrap_or(STOCK.policy);
        let missing_ms = if self.has_stock_defaults { STOCK.delay_ms } else { DELAY_DEFAULT_MS };
        let delay_ms = value(&self.delay_ms).unwrap_or(missing_ms);
        // A delay above the maximum never applies.
        let delay_ms = delay_ms.min(value(&self.max_ms).unwrap_or(delay_ms));
        let schedule = class.schedule(policy, delay_ms, value(&self.max_ms));
        if let Some(retry) = &self.retry {
            to.set("retry.maxAttempts", &json!(max_attempts(retry, &schedule)), &retry.at);
        } else if self.has_stock_defaults {
            to.imply("retry.maxAttempts", &json!(STOCK.retries + 1));
            to.origins.insert("maxAttempts".to_owned(), STOCK_ORIGIN.to_owned());
        }
        let parts = [at(&self.policy), at(&self.delay_ms), at(&self.max_ms)];
        let mut origin: Vec<String> = parts.into_iter().flatten().map(Cursor::location).collect();
        let is_stock =
            self.has_stock_defaults && (self.policy.is_none() || self.delay_ms.is_none());
        origin.extend(is_stock.then(|| STOCK_ORIGIN.to_owned()));
        origin.extend((class != Class::LITERAL).then(|| format!("numbered as in {}", class.name)));
        if origin.is_empty() {
            return;
        }
        let at = parts.into_iter().flatten().next().unwrap_or(object);
        to.set("retry.schedule", &Waits.write(&schedule), at);
        to.origins.insert("schedule".to_owned(), origin.join(", "));
    }
}

/// Reads a number of retries, in the range that Knative accepts.
fn retries(cursor: &Cursor<'_>) -> Option<u32> {
    let retries = cursor.clone().silent().integer(0..=RETRIES_MAX);
    // Reports any other value with the range that has an effect here.
    retries.or_else(|| cursor.integer(0..=ATTEMPTS_MAX - 1))
}

/// Returns the number of attempts. A number above [`ATTEMPTS_MAX`] is reduced, with a warning, to
/// the number of attempts that fit in the lifetime of a delivery.
fn max_attempts(retry: &Located<'_, u32>, schedule: &Schedule) -> u32 {
    let attempts = retry.value.saturating_add(1);
    if attempts <= ATTEMPTS_MAX {
        return attempts;
    }
    let fitting = schedule.attempts_within(LIFETIME_MAX_MS, ATTEMPTS_MAX);
    let problem = match fitting {
        ATTEMPTS_MAX => format!("the limit is {ATTEMPTS_MAX} attempts"),
        fitting => {
            format!("{fitting} attempts fit into 14 days, the maximum duration of a delivery")
        }
    };
    let message = Message::new(format!(
        "of {} retries, only {} are made: {problem}",
        retry.value,
        fitting - 1
    ));
    retry.at.warn(message.help(format!("retry: {}", fitting - 1)));
    fitting
}

/// Reads the response timeout. Reduces a timeout above the maximum, with a warning.
fn timeout_ms(cursor: &Cursor<'_>) -> Option<u64> {
    let ms = duration::parse_ms(cursor.peek_text().unwrap_or_default());
    if ms.is_ok_and(|ms| ms > RESPONSE_TIMEOUT_MAX_MS) {
        let longest = duration::format_ms(RESPONSE_TIMEOUT_MAX_MS);
        let message = format!("shortened to {longest}, the maximum response timeout");
        cursor.warn(Message::new(message).help(longest));
        return Some(RESPONSE_TIMEOUT_MAX_MS);
    }
    old::duration_ms(cursor, 1..=RESPONSE_TIMEOUT_MAX_MS)
}

fn located<'a, T>(
    fields: &Fields<'a>,
    name: &'static str,
    read: impl FnOnce(&Cursor<'a>) -> Option<T>,
) -> Option<Located<'a, T>> {
    let at = fields.given(name)?;
    read(&at).map(|value| Located { value, at })
}

fn value<T: Copy>(located: &Option<Located<'_, T>>) -> Option<T> {
    located.as_ref().map(|located| located.value)
}

fn at<'s, 'a>(located: &'s Option<Located<'a, impl Copy>>) -> Option<&'s Cursor<'a>> {
    located.as_ref().map(|located| &located.at)
}

/// Returns the field `deadLetterSink`, or `errorSink` as in an older draft.
fn sink_field<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    let sink = fields.given("deadLetterSink");
    if let Some(old) = fields.given_key("errorSink") {
        let message = if sink.is_some() {
            "no effect: deadLetterSink is also set"
        } else {
            "read as deadLetterSink"
        };
        old.warn(Message::new(message).help("deadLetterSink"));
    }
    sink.or_else(|| fields.given("errorSink"))
}

/// Returns the sink of dead letters. An unresolved sink only causes a warning, because dead letters
/// are then stored in the default container.
fn sink<'a>(
    resolved: ResolvedAddress<'a>,
    destinations: &Destinations<'_>,
) -> Located<'a, Letters> {
    resolved.asked.warn_unused(SINK_ACCESS);
    destinations.warn_unused_access(&resolved.key, &resolved.at, SINK_ACCESS);
    let at = resolved.at;
    let mut reference = None;
    let sink = match resolved.address {
        Address::Target(target) => {
            let key = destinations.reference(&resolved.key, &target.to_string());
            reference = key.map(str::to_owned);
            target.into()
        }
        Address::Topic(topic) => Sink::Topic(topic),
        Address::Unresolved(key) => {
            let message = format!(
                "no file or Destinations document defines {}; dead letters go to the default \
                 container",
                quoted(&key)
            );
            let message = Message::new(message).help(entry(&key, "s3://bucket"));
            at.warn(message.about(&key, ReferenceUse::DeadLetters));
            Sink::DefaultContainer
        }
    };
    Located { value: Letters { sink, reference }, at }
}
