//! How a dead letter is written: the formats, and what may be said about them.
//!
//! Separate because policies, profiles, the wire and the blobs all name a format, and only the
//! blobs know what it looks like.

use crate::event::Shape;
use crate::event::schema::Schema;

/// How a dead letter is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Event Grid namespaces: `{"event":…,"customDeliveryProperties":…,"deadletterProperties":…}`.
    Namespace,
    /// Event Grid, Event Grid schema: the event, then why and when.
    EventGrid,
    /// Event Grid, CloudEvents schema: the event, then why and when in lower case.
    CloudEvents,
    /// Event Grid, custom schema: what the mapping says of the event, why and when, then the
    /// payload.
    Custom,
    /// Knative: the CloudEvent, then its extensions for errors.
    Knative,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] =
        [Self::Namespace, Self::EventGrid, Self::CloudEvents, Self::Custom, Self::Knative];

    /// The word of subscription files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::EventGrid => "eventgrid",
            Self::CloudEvents => "cloudevents",
            Self::Custom => "custom",
            Self::Knative => "knative",
        }
    }
}

/// Which format letters have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadLetterFormat {
    /// This one.
    Fixed(Format),
    /// That of the shape in which the event was, or would have been, delivered (Event Grid,
    /// "delivery event formats").
    ByDeliverySchema,
}

impl DeadLetterFormat {
    /// The format's word, or what decides about it, for a destination that wants this schema.
    #[must_use]
    pub const fn told(self, schema: Option<Schema>) -> &'static str {
        match (self, schema) {
            (Self::Fixed(format), _) => format.as_str(),
            (Self::ByDeliverySchema, Some(schema)) => Self::of_schema(schema).as_str(),
            (Self::ByDeliverySchema, None) => "by delivery schema",
        }
    }

    /// The format of an event of this shape to a destination that wants this schema.
    #[must_use]
    pub const fn of(self, shape: Shape, schema: Option<Schema>) -> Format {
        match (self, schema) {
            (Self::Fixed(format), _) => format,
            (Self::ByDeliverySchema, Some(schema)) => Self::of_schema(schema),
            (Self::ByDeliverySchema, None) => match shape {
                Shape::CloudEvent => Format::CloudEvents,
                Shape::EventGrid => Format::EventGrid,
                Shape::Custom => Format::Custom,
                // Text has none of Event Grid's shapes.
                Shape::Opaque => Format::Namespace,
            },
        }
    }

    const fn of_schema(schema: Schema) -> Format {
        match schema {
            Schema::CloudEventsStructured | Schema::CloudEventsBinary => Format::CloudEvents,
            Schema::EventGrid => Format::EventGrid,
            Schema::Custom => Format::Custom,
        }
    }
}

/// How the namespace format is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// The event is a member of its own.
    Nested,
    /// The event's members stand beside what is said about it.
    Flat,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 2] = [Self::Nested, Self::Flat];

    /// The word of subscription files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nested => "nested",
            Self::Flat => "flat",
        }
    }
}

/// How `knativeerrordata` tells the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorData {
    /// As text.
    Text,
    /// In base64, as Knative's own channels write it.
    Base64,
}

impl ErrorData {
    /// Every way of telling it.
    pub const ALL: [Self; 2] = [Self::Text, Self::Base64];

    /// The word of subscription files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Base64 => "base64",
        }
    }
}
