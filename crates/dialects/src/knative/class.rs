//! Classes of brokers and channels: how each class numbers its retries, and what Knative does not
//! support for it.
//!
//! Separate because this module is the table of classes. All differences are values here, and no
//! other code depends on the name of a class. An unknown class follows the specification literally,
//! with a warning.

use delivery::document::findings::{Message, quoted};
use delivery::document::hint::hint;
use delivery::document::reader::Cursor;
use delivery::time::duration::SECOND_MS;
use delivery::waits::{Kind, Schedule};

/// A back-off policy: the values of `backoffPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// The delay grows by a constant with each retry.
    Linear,
    Exponential,
}

/// The number of the first retry in the formula of the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    /// One, as the specification literally states: `backoffDelay*2^<numberOfRetries>`. This formula
    /// overrides `10^<numberOfRetries>` of an older draft.
    One,
    /// Zero, as in the core dispatcher: the first linear retry is immediate.
    Zero,
}

/// The delivery settings that Knative supports for a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// Knative supports all delivery settings.
    Whole,
    /// Knative supports no delivery settings in this resource, but lastmile supports all of them.
    NoDelivery,
    /// Knative supports only exponential back-off, and only a Pub/Sub topic as sink.
    GoogleCloud,
}

/// The rule by which a trigger or subscription with its own delivery settings inherits those of its
/// broker or channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inheritance {
    /// Every field that the object does not state is inherited.
    FieldByField,
    /// Only the dead-letter sink is inherited, because the other settings are replaced as a whole.
    /// A channel-based broker passes its own settings to its channel. In Knative, a subscription of
    /// that channel with settings but no sink uses the channel's sink, and no other setting of it.
    Sink,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    /// Name of the class, as findings show it.
    pub(super) name: &'static str,
    /// The delivery settings that Knative supports for the class.
    pub(super) support: Support,
    /// The rule by which objects with their own settings inherit those of their broker or channel.
    pub(super) inheritance: Inheritance,
    numbering: Numbering,
    cap_ms: Option<u64>,
}

/// Annotation that states the class of a broker.
pub(super) const ANNOTATION: &str = "eventing.knative.dev/broker.class";
/// Class of brokers that behave like their channels.
pub(super) const CHANNEL_BASED: &str = "MTChannelBasedBroker";
/// API group of Google's channel.
pub(super) const GOOGLE: &str = "messaging.cloud.google.com";
/// API group of Google's broker and its triggers.
pub(super) const GOOGLE_EVENTING: &str = "eventing.cloud.google.com";

const fn class(name: &'static str, numbering: Numbering, support: Support) -> Class {
    Class { name, support, inheritance: Inheritance::FieldByField, numbering, cap_ms: None }
}

/// All broker classes, by the value of their annotation. Source: "Broker support" in the Knative
/// documentation.
const BROKERS: [Class; 5] = [
    class("Kafka", Numbering::One, Support::Whole),
    // A Kafka broker whose data plane runs in the namespace of the object.
    class("KafkaNamespaced", Numbering::One, Support::Whole),
    class("RabbitMQBroker", Numbering::One, Support::Whole),
    Class {
        inheritance: Inheritance::Sink,
        ..class(CHANNEL_BASED, Numbering::Zero, Support::Whole)
    },
    Class::GOOGLE_BROKER,
];

/// All channel classes, by the kind of the channel. Source: "Channel support" in the Knative
/// documentation.
const CHANNELS: [Class; 3] = [
    class("KafkaChannel", Numbering::One, Support::Whole),
    Class {
        inheritance: Inheritance::Sink,
        ..class("InMemoryChannel", Numbering::Zero, Support::Whole)
    },
    class("NatssChannel", Numbering::One, Support::NoDelivery),
];
const GOOGLE_CHANNEL: Class = class("a GCP PubSub channel", Numbering::One, Support::NoDelivery);

impl Class {
    /// The class of an object whose class is missing or unknown: retries are numbered from one, as
    /// in the specification.
    pub(super) const LITERAL: Self = class("no class", Numbering::One, Support::Whole);

    /// The class of Google's broker, recognised by its annotation or its API group.
    pub(super) const GOOGLE_BROKER: Self = Self {
        cap_ms: Some(600 * SECOND_MS),
        ..class("googlecloud", Numbering::Zero, Support::GoogleCloud)
    };

    /// Returns the broker class with this name. `template` is the class of the broker's channels,
    /// if the broker states it.
    pub(super) fn of_broker(name: &str, cursor: &Cursor<'_>, template: Option<Self>) -> Self {
        match BROKERS.into_iter().find(|class| class.name == name) {
            Some(class) if class.name == CHANNEL_BASED => {
                Self { inheritance: class.inheritance, ..template.unwrap_or(class) }
            }
            Some(class) => class,
            None => {
                report_unknown("broker class", name, cursor, &BROKERS.map(|class| class.name));
                Self::LITERAL
            }
        }
    }

    /// Returns the class of channels with this `kind`; `None` if the kind is unknown or generic.
    pub(super) fn of_channel(api_version: &str, kind: &str) -> Option<Self> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if group == GOOGLE {
            return Some(GOOGLE_CHANNEL);
        }
        CHANNELS.into_iter().find(|class| class.name == kind)
    }

    /// Returns the class of channels with this `kind`. Reports an unknown kind at its position.
    pub(super) fn of_channel_at(api_version: &str, kind: &Cursor<'_>) -> Self {
        let Some(name) = kind.text() else { return Self::LITERAL };
        Self::of_channel(api_version, name).unwrap_or_else(|| {
            report_unknown("channel kind", name, kind, &CHANNELS.map(|class| class.name));
            Self::LITERAL
        })
    }

    /// True if `filter.attributes` compares the text of a number or boolean. The Kafka data plane
    /// does so, with `Object::toString` in `AttributesFilter.java`
    /// (knative-extensions/eventing-kafka-broker).
    pub(super) fn compares_attributes_as_text(self) -> bool {
        matches!(self.name, "Kafka" | "KafkaNamespaced")
    }

    /// Returns the schedule of this class for a policy and a delay, with an optional maximum from
    /// the file.
    pub(super) fn schedule(self, policy: Policy, delay_ms: u64, max_ms: Option<u64>) -> Schedule {
        let kind = match (policy, self.numbering) {
            (Policy::Linear, Numbering::One) => Kind::Linear { delay_ms },
            (Policy::Linear, Numbering::Zero) => Kind::LinearFromZero { delay_ms },
            (Policy::Exponential, Numbering::One) => Kind::Exponential { delay_ms },
            (Policy::Exponential, Numbering::Zero) => Kind::ExponentialFromZero { delay_ms },
        };
        Schedule { kind, max_ms: self.cap_ms.into_iter().chain(max_ms).min() }
    }
}

fn report_unknown(noun: &str, name: &str, at: &Cursor<'_>, known: &[&str]) {
    let message =
        format!("the {noun} {} is unknown; its retries are numbered from one", quoted(name));
    at.warn(Message::new(message).help(hint(name, known)));
}
