//! The formats of dead letters and their options.
//!
//! Separate because policies, profiles, the wire and the blobs all name a format; only
//! The room `deadletter` knows its bytes.

use crate::event::Shape;
use crate::event::schema::Schema;

words! {
    /// The format of a dead letter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Format {
        /// Event Grid namespaces:
        /// `{"event":…,"customDeliveryProperties":…,"deadletterProperties":…}`.
        Namespace = "namespace",
        /// Event Grid, Event Grid schema: the event, then why and when.
        EventGrid = "eventgrid",
        /// Event Grid, CloudEvents schema: the event, then why and when in lower case.
        CloudEvents = "cloudevents",
        /// Event Grid, custom schema: the mapped fields of the event, why and when, then the
        /// payload.
        Custom = "custom",
        /// Knative: the CloudEvent, then its extensions for errors.
        Knative = "knative",
    }
}

/// Which format is used for dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadLetterFormat {
    /// This one.
    Fixed(Format),
    /// That of the schema in which the event was, or would have been, delivered (Event Grid,
    /// "delivery event formats").
    ByDeliverySchema,
}

impl DeadLetterFormat {
    /// Every one, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Fixed(Format::Namespace),
        Self::Fixed(Format::EventGrid),
        Self::Fixed(Format::CloudEvents),
        Self::Fixed(Format::Custom),
        Self::Fixed(Format::Knative),
        Self::ByDeliverySchema,
    ];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed(format) => format.as_str(),
            Self::ByDeliverySchema => "byDeliverySchema",
        }
    }

    /// The name of the format, or of the rule that decides it, for a destination with this schema.
    #[must_use]
    pub const fn name_for(self, schema: Option<Schema>) -> &'static str {
        match (self, schema) {
            (Self::Fixed(format), _) => format.as_str(),
            (Self::ByDeliverySchema, Some(schema)) => Self::of_schema(schema).as_str(),
            (Self::ByDeliverySchema, None) => "by delivery schema",
        }
    }

    /// The format of an event of this schema to a destination with that schema.
    #[must_use]
    pub const fn of(self, shape: Shape, schema: Option<Schema>) -> Format {
        match (self, schema) {
            (Self::Fixed(format), _) => format,
            (Self::ByDeliverySchema, Some(schema)) => Self::of_schema(schema),
            (Self::ByDeliverySchema, None) => match shape {
                Shape::CloudEvent => Format::CloudEvents,
                Shape::EventGrid => Format::EventGrid,
                Shape::Custom => Format::Custom,
                // Event Grid has no format for text.
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
    /// How the namespace format is laid out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Layout {
        /// The event is a member of its own.
        Nested = "nested",
        /// The event's members are in one object with those about it.
        Flat = "flat",
    }
}

words! {
    /// How `knativeerrordata` encodes the last answer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ErrorData {
        /// As text.
        Text = "text",
        /// In base64, as Knative's own channels write it.
        Base64 = "base64",
    }
}

words! {
    /// How much of the last answer a dead letter stores.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Response {
        /// The beginning of its body, without the credentials of the request.
        #[default]
        Beginning = "beginning",
        /// Nothing of its body.
        None = "none",
    }
}
