//! Reads event sources: any object with a sink.
//!
//! Separate because lastmile does not run event sources. It reads only the subscription to the sink
//! of a source, and reports settings that would change how events arrive at the sink.

use super::Reader;
use super::address::ResolvedAddress;
use super::class::Class;
use super::object::Object;
use super::parent::Parent;
use super::partial::PartialSubscription;
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::name::TopicName;

impl<'a> Reader<'a, '_> {
    /// Reads an event source. Its topic, and the subscription to its sink, have the name of the
    /// source. If the sink is a broker or channel that no file contains, then that broker or
    /// channel is the topic, and no subscription is needed.
    pub(super) fn source(
        &self,
        spec: &Fields<'a>,
        object: &Object<'a>,
    ) -> Option<PartialSubscription<'a>> {
        // All other fields configure the source itself.
        spec.accept_rest();
        if let Some(key) = spec.given_key("ceOverrides") {
            let message = "ceOverrides are not supported by this version; events are sent as they were published";
            key.warn(message);
        }
        let sink = self.destination(spec, "sink", object);
        if let Some((topic, sink)) =
            sink.as_ref().and_then(|sink| Some((self.publishes_itself(sink, object)?, sink)))
        {
            report_publisher(topic, sink, spec);
            return None;
        }
        let topic = self.addresses.topics.take(object);
        let message = format!("event sources are not run; publish their events to {topic}");
        object.document.warn(message);
        match object.kind {
            "KafkaSource" => report_kafka(spec),
            "RabbitmqSource" => report_rabbitmq(spec),
            _ => {}
        }
        let parent = Parent::absent(Class::LITERAL);
        self.partial(spec, sink, object, Some((topic, parent)))
    }

    /// Returns the broker or channel to which a source publishes directly, if no file contains it.
    /// If a broker or channel has the source's name, the source cannot have a topic of its own, and
    /// the broker or channel may be in a file.
    fn publishes_itself<'s>(
        &self,
        sink: &'s ResolvedAddress<'a>,
        object: &Object<'a>,
    ) -> Option<&'s TopicName> {
        if self.addresses.topics.has(&object.name) {
            return sink.publishes_to.as_ref();
        }
        sink.topic_elsewhere()
    }
}

fn report_publisher(topic: &TopicName, sink: &ResolvedAddress<'_>, spec: &Fields<'_>) {
    if let Some(key) = spec.given_key("delivery") {
        key.warn(format!("no effect: the publisher of {topic} must retry by itself"));
    }
    let message = format!(
        "event sources are not run; this source publishes to {topic} and needs no subscription"
    );
    sink.at.warn(Message::new(message).help(format!("publish its events to {topic} yourself")));
}

/// Adds warnings for behaviour of a KafkaSource that lastmile does not reproduce. Unless the file
/// states otherwise, a KafkaSource keeps the order of a partition, and retries failed events.
fn report_kafka(spec: &Fields<'_>) {
    let order = spec.given("ordering");
    if order.as_ref().and_then(Cursor::peek_text) != Some("unordered") {
        let message = "lastmile does not keep the order of events: later events overtake an event \
                       that is retried";
        let at = order.unwrap_or_else(|| spec.parent().clone());
        at.warn(Message::new(message).help("ordering: unordered"));
    }
    if spec.given("delivery").is_none() {
        let message = "if `delivery` is omitted, a KafkaSource of Knative retries ten times, but \
                       lastmile sends each event only once";
        spec.parent().warn(Message::new(message).help("delivery: {retry: 10}"));
    }
}

/// Reports the limit of concurrent events of a RabbitmqSource.
fn report_rabbitmq(spec: &Fields<'_>) {
    if let Some(at) = spec.parent().peek("rabbitmqResourcesConfig.parallelism") {
        super::object::report_parallelism(&at);
    }
}
