//! The schemas in which events are delivered.

words! {
    /// The schema in which events are delivered to a destination.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Schema {
        /// CloudEvents 1.0 in structured mode: one JSON document.
        CloudEventsStructured = "cloudevents-structured",
        /// CloudEvents 1.0 in binary mode: the data is the body, and the attributes are headers.
        CloudEventsBinary = "cloudevents-binary",
        /// The Event Grid event schema. The body is an array.
        EventGrid = "eventgrid",
        /// An array of payloads, each exactly as it was published.
        Custom = "custom",
    }
}
