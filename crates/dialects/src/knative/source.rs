//! Event sources: any object with a sink.
//!
//! Separate because none of them is run: what is read is the subscription to the sink that a source is, and what of
//! its own settings would change how events arrive there is reported.

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
    /// An event source: its topic has its name, and so has the subscription to its sink. Where the
    /// sink is a broker or channel that no file has, that is the topic, and no subscription is needed.
    pub(super) fn source(
        &self,
        spec: &Fields<'a>,
        object: &Object<'a>,
    ) -> Option<PartialSubscription<'a>> {
        // The other fields configure the source itself.
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

    /// The topic to which a source publishes by itself: a broker or channel that no file has; or any, where
    /// another object has the topic of the source's name.
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
        key.warn(format!("not used: what publishes to {topic} has to try again itself"));
    }
    let message = format!(
        "event sources are not run; this one publishes to {topic} and needs no subscription"
    );
    sink.at.warn(Message::new(message).help(format!("publish its events to {topic} yourself")));
}

/// A source of Kafka keeps the order of a partition unless it says otherwise, and tries again unless it says how.
fn report_kafka(spec: &Fields<'_>) {
    let order = spec.given("ordering");
    if order.as_ref().and_then(Cursor::peek_text) != Some("unordered") {
        let message = "the order of events is not kept here: one that is retried is overtaken";
        let at = order.unwrap_or_else(|| spec.parent().clone());
        at.warn(Message::new(message).help("ordering: unordered"));
    }
    if spec.given("delivery").is_none() {
        let message = "without delivery a KafkaSource of Knative tries ten times again; here an event is sent once";
        spec.parent().warn(Message::new(message).help("delivery: {retry: 10}"));
    }
}

/// A source of RabbitMQ limits how many events are sent at once.
fn report_rabbitmq(spec: &Fields<'_>) {
    if let Some(at) = spec.parent().peek("rabbitmqResourcesConfig.parallelism") {
        super::object::report_parallelism(&at);
    }
}
