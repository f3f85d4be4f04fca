//! The formats of dead letters and their options.
//!
//! This module is separate because policies, profiles, the wire format and stored blobs all name a
//! format. Only the module `deadletter` writes and reads the bytes.

use crate::event::Shape;
use crate::event::schema::Schema;

words! {
    /// The format in which a dead letter is written.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Format {
        /// The format of Event Grid namespaces:
        /// `{"event":…,"customDeliveryProperties":…,"deadletterProperties":…}`.
        Namespace = "namespace",
        /// The format of Event Grid for its own schema: the event, followed by the reason and times
        /// of the dead letter.
        EventGrid = "eventgrid",
        /// The format of Event Grid for CloudEvents: the event, followed by the reason and times
        /// with lower-case names.
        CloudEvents = "cloudevents",
        /// The format of Event Grid for the custom schema: the mapped fields of the event, the
        /// reason and times, then the payload.
        Custom = "custom",
        /// The format of Knative: the CloudEvent, then its extensions for errors.
        Knative = "knative",
    }
}

/// The rule that determines the format of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadLetterFormat {
    /// Every dead letter has this format.
    Fixed(Format),
    /// The format depends on the schema in which the event was, or would have been, delivered
    /// (Event Grid, "delivery event formats").
    ByDeliverySchema,
}

impl DeadLetterFormat {
    /// All variants, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Fixed(Format::Namespace),
        Self::Fixed(Format::EventGrid),
        Self::Fixed(Format::CloudEvents),
        Self::Fixed(Format::Custom),
        Self::Fixed(Format::Knative),
        Self::ByDeliverySchema,
    ];

    /// Returns the name of the rule in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed(format) => format.as_str(),
            Self::ByDeliverySchema => "byDeliverySchema",
        }
    }

    /// Returns the name of the format. If the format differs between events, returns a description
    /// of the rule instead. `schema` is the delivery schema of the destination.
    #[must_use]
    pub const fn name_for(self, schema: Option<Schema>) -> &'static str {
        match (self, schema) {
            (Self::Fixed(format), _) => format.as_str(),
            (Self::ByDeliverySchema, Some(schema)) => Self::of_schema(schema).as_str(),
            (Self::ByDeliverySchema, None) => "by delivery schema",
        }
    }

    /// Returns the format of a dead letter for an event that was published in the schema `shape`.
    /// `schema` is the delivery schema of the destination; without it, `shape` decides.
    #[must_use]
    pub const fn format(self, shape: Shape, schema: Option<Schema>) -> Format {
        match (self, schema) {
            (Self::Fixed(format), _) => format,
            (Self::ByDeliverySchema, Some(schema)) => Self::of_schema(schema),
            (Self::ByDeliverySchema, None) => match shape {
                Shape::CloudEvent => Format::CloudEvents,
                Shape::EventGrid => Format::EventGrid,
                Shape::Custom => Format::Custom,
                // Event Grid has no format for text, so the namespace format is used.
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

words! {
    /// The arrangement of the event and the properties of the dead letter in the namespace format.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Layout {
        /// The event is the value of one member of the dead letter.
        Nested = "nested",
        /// The members of the event are members of the dead letter, beside its properties.
        Flat = "flat",
    }
}

words! {
    /// The encoding of the last response in `knativeerrordata`, a member of the Knative format.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ErrorData {
        /// The last response is stored as text. This is the default.
        Text = "text",
        /// The last response is in base64, as Knative's own channels encode it.
        Base64 = "base64",
    }
}

words! {
    /// The part of the last response that a dead letter contains.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Response {
        /// The dead letter contains the beginning of the body. Credentials of the request are
        /// masked.
        #[default]
        Beginning = "beginning",
        /// The dead letter contains no part of the body.
        None = "none",
    }
}
