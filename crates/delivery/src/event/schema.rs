//! The schemas in which events are delivered.

words! {
    /// The schema in which a subscription receives events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Schema {
        /// CloudEvents 1.0, structured mode: one JSON document.
        CloudEventsStructured = "cloudevents-structured",
        /// CloudEvents 1.0, binary mode: the data as body, and the attributes as headers.
        CloudEventsBinary = "cloudevents-binary",
        /// The Event Grid event schema, in an array.
        EventGrid = "eventgrid",
        /// The publisher's own payload, in an array.
        Custom = "custom",
    }
}
