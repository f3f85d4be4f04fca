//! The schemas in which events are delivered.

/// The schema in which events are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schema {
    /// CloudEvents 1.0, structured mode: one JSON document.
    CloudEventsStructured,
    /// CloudEvents 1.0, binary mode: the data as body, attributes as headers.
    CloudEventsBinary,
    /// The Event Grid event schema, in an array.
    EventGrid,
    /// The publisher's own payload, in an array.
    Custom,
}

impl Schema {
    /// Every schema.
    pub const ALL: [Self; 4] =
        [Self::CloudEventsStructured, Self::CloudEventsBinary, Self::EventGrid, Self::Custom];

    /// The word used in native subscription files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CloudEventsStructured => "cloudevents-structured",
            Self::CloudEventsBinary => "cloudevents-binary",
            Self::EventGrid => "eventgrid",
            Self::Custom => "custom",
        }
    }
}
