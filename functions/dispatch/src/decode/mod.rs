//! Decodes a record into deliveries, and matches its events against subscriptions. Pure.
//!
//! A published record becomes one delivery per event and matching subscription (`publish`), or
//! parts if there are too many deliveries (`divide`). A re-enqueued record carries its delivery in
//! an attribute. This attribute is trusted on internal queues only, because a publisher could write
//! it on the events queue. An undeliverable event (malformed, unknown topic, removed subscription)
//! becomes a dead letter.

mod divide;
mod publish;

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Publication};
use delivery::event::{Event, Input};
use delivery::machine::reply::unread_topics;
use delivery::ports::{Attribute, Message, QueueName, Record};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::{Catalogue, Found};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::wire::{WireError, read_dead_letter, read_delivery, read_publication};

pub use self::divide::{PARTS_MAX, REQUESTS_IN_PLACE};
pub(crate) use self::publish::topic_of_record;
use self::publish::{Published, topic_of};

/// One piece of work that a record contains.
#[derive(Debug, Clone)]
pub(crate) enum WorkItem {
    Deliver(Arc<Subscription>, Box<Delivery>),
    /// A dead letter with an event that cannot be delivered.
    DeadLetter(Box<DeadLetter>),
    /// An undecoded record, or a part of one, that is sent to this queue.
    Forward(QueueName, Box<Message>),
}

/// The contents of one record.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) items: Vec<WorkItem>,
    /// Events that no subscription matches, each with its topic. The topic is written as a
    /// subscription name that ends in [`NAMELESS`].
    ///
    /// [`NAMELESS`]: delivery::subscription::name::NAMELESS
    pub(crate) unmatched: Vec<(SubscriptionName, Event)>,
    /// Topics whose newer subscriptions may contain a name that is missing from this catalogue.
    pub(crate) missing: BTreeSet<TopicName>,
    /// Topics that must be read before any work on the record: the record's own topic, the topics
    /// of possible replies and dead letters, and the topics that a forwarded event may reach.
    pub(crate) unread: BTreeSet<TopicName>,
    /// `Some` if the record has to wait, with the reason.
    pub(crate) waits: Option<String>,
}

impl Decoded {
    /// Creates the result for a record whose topic was not read yet.
    fn unread(topic: &TopicName) -> Self {
        Self { unread: BTreeSet::from([topic.clone()]), ..Self::default() }
    }

    /// Creates the result for a record that has to wait.
    fn waits(why: impl Into<String>) -> Self {
        Self { waits: Some(why.into()), ..Self::default() }
    }

    /// Moves the items, unmatched events and missing topics of another result into this one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.items.append(&mut other.items);
        self.unmatched.append(&mut other.unmatched);
        self.missing.append(&mut other.missing);
    }

    /// Adds the topics to which the deliveries may lead: unread topics and missing topics.
    fn note_topics(&mut self, catalogue: &Catalogue) {
        let Self { items, missing, unread, .. } = self;
        for (subscription, delivery) in items.iter().filter_map(WorkItem::target) {
            let topics = || subscription.other_topics();
            missing.extend(topics().filter(|topic| catalogue.lacks(topic)));
            unread.extend(topics().filter(|topic| !catalogue.knows(topic)));
            unread.extend(unread_topics(delivery, subscription, catalogue));
        }
    }
}

impl From<DeadLetter> for WorkItem {
    fn from(letter: DeadLetter) -> Self {
        Self::DeadLetter(Box::new(letter))
    }
}

impl From<WorkItem> for Decoded {
    fn from(item: WorkItem) -> Self {
        let missing = item.missing().into_iter().cloned().collect();
        Self { items: vec![item], missing, ..Self::default() }
    }
}

impl WorkItem {
    /// Returns the name of the subscription; `None` if the item is not a delivery.
    pub(crate) fn subscription(&self) -> Option<&SubscriptionName> {
        self.target().map(|(subscription, _)| &subscription.name)
    }

    /// Returns the subscription and the delivery; `None` if the item is not a delivery.
    fn target(&self) -> Option<(&Subscription, &Delivery)> {
        match self {
            Self::Deliver(subscription, delivery) => Some((subscription, delivery)),
            Self::DeadLetter(_) | Self::Forward(..) => None,
        }
    }

    /// Returns the delivery in the item, or the failed delivery in its dead letter; `None` for an
    /// undecoded record.
    pub(crate) fn delivery(&self) -> Option<&Delivery> {
        match self {
            Self::Deliver(_, delivery) => Some(delivery),
            Self::DeadLetter(letter) => Some(&letter.delivery),
            Self::Forward(..) => None,
        }
    }

    /// Returns the topic of an event that became a dead letter because its topic or subscription
    /// was not found; `None` for all other items.
    fn missing(&self) -> Option<&TopicName> {
        match self {
            Self::Deliver(..) | Self::Forward(..) => None,
            Self::DeadLetter(letter) => {
                let reason = letter.newest_reason().known();
                matches!(reason, Some(Reason::SubscriptionNotFound | Reason::TopicNotFound))
                    .then_some(&letter.delivery.subscription.topic)
            }
        }
    }
}

/// Reads a record and matches its events against the subscriptions.
///
/// # Errors
/// [`WireError`] if the attribute may come from a newer version. The record must then wait.
pub(crate) fn decode_and_match(
    record: &Record,
    catalogue: &Catalogue,
    default_topic: Option<&TopicName>,
    now_ms: u64,
) -> Result<Decoded, WireError> {
    let published = |publication: &Publication| {
        Published::new(&record.body, publication, catalogue, default_topic, now_ms).items()
    };
    let decoded = match record.trusted_attribute() {
        Some(Attribute::Publication(text)) => {
            read_publication(text).map(|publication| published(&publication))
        }
        Some(Attribute::Delivery(text)) => resume(record, text, catalogue, now_ms),
        Some(Attribute::DeadLetter(text)) => redriven(record, text, catalogue, now_ms),
        None => Ok(published(&record.as_publication())),
    };
    match decoded {
        Err(WireError::Unreadable(why)) if record.has_waited_unread(now_ms) => {
            Ok(unprocessed(record, default_topic, &why, now_ms).into())
        }
        Ok(mut decoded) => {
            decoded.note_topics(catalogue);
            Ok(decoded)
        }
        Err(error) => Err(error),
    }
}

/// Turns a dead letter that an operator moved back to an internal queue into a fresh delivery of
/// its event.
fn redriven(
    record: &Record,
    attribute: &str,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Result<Decoded, WireError> {
    let Delivery { event, subscription, origin, traceparent, .. } =
        read_dead_letter(attribute, &record.body)?.delivery;
    // The age of the new delivery starts at zero. Otherwise an expired delivery would end
    // immediately.
    let new = Delivery::new(event, subscription, origin, record.first_received_ms);
    Ok(to_subscription(Delivery { traceparent, ..new }, catalogue, now_ms))
}

/// Turns a record with an unusable attribute into a dead letter, for an operator to examine.
fn unprocessed(
    record: &Record,
    default_topic: Option<&TopicName>,
    why: &str,
    now_ms: u64,
) -> WorkItem {
    let delivery = record.unprocessed(topic_of(record.topic.as_deref(), default_topic));
    let letter = DeadLetter::without_subscription(delivery, Reason::ProcessingFailed, now_ms);
    letter.with_detail(why).into()
}

/// Resumes a re-enqueued delivery. Looks up its subscription by name, so that current settings
/// apply. The event keeps its published format, even if the input format of its topic has changed.
fn resume(
    record: &Record,
    attribute: &str,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Result<Decoded, WireError> {
    let delivery = read_delivery(attribute, Event::recall(&record.body, Input::Auto))?;
    Ok(to_subscription(delivery, catalogue, now_ms))
}

fn to_subscription(delivery: Delivery, catalogue: &Catalogue, now_ms: u64) -> Decoded {
    if !catalogue.knows(&delivery.subscription.topic) {
        return Decoded::unread(&delivery.subscription.topic);
    }
    if let Some(why) = catalogue
        .unreadable(&delivery.subscription.topic)
        .or_else(|| catalogue.unusable(&delivery.subscription))
    {
        return Decoded::waits(why);
    }
    if catalogue.found(&delivery.subscription.topic) == Some(&Found::Nothing) {
        let missing = BTreeSet::from([delivery.subscription.topic.clone()]);
        let why = format!(
            "the object of the topic {} was deleted without `lastmile apply --prune`",
            delivery.subscription.topic
        );
        return Decoded { missing, ..Decoded::waits(why) };
    }
    let item = match catalogue.subscription(&delivery.subscription) {
        Some(subscription) => WorkItem::Deliver(Arc::clone(subscription), Box::new(delivery)),
        None => {
            DeadLetter::without_subscription(delivery, Reason::SubscriptionNotFound, now_ms).into()
        }
    };
    item.into()
}

#[cfg(test)]
mod tests {
    use delivery::delivery::Origin;
    use dialects::Source;

    use super::*;

    const SUBSCRIPTIONS: &str = "
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: billing}
spec: {destination: {url: 'https://billing.example.com/'}, filter: {exact: {type: order.created}}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: audit}
spec: {destination: {url: 'https://audit.example.com/'}}
";

    fn catalogue() -> Catalogue {
        dialects::read(&[Source { name: "test", text: SUBSCRIPTIONS }])
            .into_result()
            .expect("the file is right")
    }

    fn record(body: &str, topic: Option<&str>) -> Record {
        Record {
            message: "m1".to_owned(),
            receipt: "r1".to_owned(),
            queue: QueueName::Events,
            body: body.into(),
            topic: topic.map(ToOwned::to_owned),
            attribute: None,
            group: None,
            earlier_receives: 0,
            unread: 0,
            traceparent: None,
            sent_ms: 1_000,
            first_received_ms: 1_000,
            receives: 1,
        }
    }

    /// Subscription, index in the array and reason (if dead-lettered) of each item.
    fn decoded(
        body: &str,
        topic: Option<&str>,
        default_topic: Option<&TopicName>,
    ) -> Vec<(String, u32, Option<Reason>)> {
        let items = decode_and_match(&record(body, topic), &catalogue(), default_topic, 2_000)
            .expect("readable")
            .items;
        let describe = |item: &WorkItem| {
            let (delivery, reason) = match item {
                WorkItem::Deliver(_, delivery) => (&**delivery, None),
                WorkItem::DeadLetter(letter) => (&letter.delivery, letter.reason.known()),
                WorkItem::Forward(..) => panic!("{item:?}"),
            };
            (delivery.subscription.to_string(), delivery.origin.index, reason)
        };
        items.iter().map(describe).collect()
    }

    fn event(kind: &str) -> String {
        format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"{kind}"}}"#)
    }

    #[test]
    fn an_event_is_delivered_to_each_subscription_that_wants_it() {
        let both = [
            ("shop/orders/audit".to_owned(), 0, None),
            ("shop/orders/billing".to_owned(), 0, None),
        ];
        assert_eq!(decoded(&event("order.created"), Some("shop/orders"), None), both);
        assert_eq!(decoded(&event("order.paid"), Some("shop/orders"), None), both[..1]);
    }

    #[test]
    fn a_bad_element_is_dead_lettered_alone_and_keeps_its_index() {
        let body =
            format!(r#"[{}, {{"specversion":"7"}}, {}]"#, event("order.paid"), event("order.paid"));
        let items = decoded(&body, Some("shop/orders"), None);
        let audit = |index| ("shop/orders/audit".to_owned(), index, None);
        let malformed = ("shop/orders/_malformed".to_owned(), 1, Some(Reason::MalformedEvent));
        assert_eq!(items, [audit(0), malformed, audit(2)]);
    }

    #[test]
    fn an_event_for_an_impossible_moment_is_one_dead_letter_and_for_a_possible_one_a_delivery() {
        let at = |moment: &str| {
            event("t").replace(r#""id""#, &format!(r#""deliverat":"{moment}","id""#))
        };
        let audit = vec![("shop/orders/audit".to_owned(), 0, None)];
        let malformed =
            vec![("shop/orders/_malformed".to_owned(), 0, Some(Reason::MalformedEvent))];
        // The record was published at 1970-01-01T00:00:01Z.
        for (moment, expected) in [
            ("1970-01-01T00:00:00Z", &audit),
            ("1970-01-15T00:00:00.999Z", &audit),
            ("1970-01-15T00:00:01Z", &malformed),
            ("9999-12-31T23:59:59Z", &malformed),
            ("tomorrow", &malformed),
        ] {
            assert_eq!(&decoded(&at(moment), Some("shop/orders"), None), expected, "{moment}");
        }
    }

    #[test]
    fn an_unknown_topic_keeps_its_name_and_a_missing_one_takes_the_default() {
        let event = event("t");
        let unknown = |name: &str| vec![(name.to_owned(), 0, Some(Reason::TopicNotFound))];
        assert_eq!(decoded(&event, Some("shop/other"), None), unknown("shop/other/_unknown"));
        assert_eq!(decoded(&event, Some("orders"), None), unknown("_/orders/_unknown"));
        assert_eq!(decoded(&event, Some("a/b/c"), None), unknown("_/_/_unknown"));
        assert_eq!(decoded(&event, None, None), unknown("_/_/_unknown"));
        let default: TopicName = "shop/orders".parse().unwrap();
        assert_eq!(decoded(&event, None, Some(&default))[0].0, "shop/orders/audit");
    }

    /// Decodes a record, the parts into which it is divided, and their parts. Returns all results.
    fn read_all(first: Record, catalogue: &Catalogue) -> Vec<Decoded> {
        let (mut waiting, mut all) = (vec![first], Vec::new());
        while let Some(record) = waiting.pop() {
            let decoded = decode_and_match(&record, catalogue, None, 2_000).expect("readable");
            for item in &decoded.items {
                let WorkItem::Forward(queue, part) = item else { continue };
                let (queue, body) = (*queue, Arc::clone(&part.body));
                let attribute = Some(part.attribute.clone());
                waiting.push(Record { queue, body, attribute, ..record.clone() });
            }
            all.push(decoded);
        }
        all
    }

    #[test]
    fn an_event_that_nobody_wants_is_reported_once_however_its_record_is_divided() {
        let wants = "filter: {exact: {type: order.created}}";
        let two = SUBSCRIPTIONS
            .replace("audit.example.com/'}", &format!("audit.example.com/'}}, {wants}"));
        let batching = two.replacen(wants, &format!("{wants}, batch: {{maxEvents: 1000}}"), 1);
        // With 6,000 matching events on each side, not all deliveries are counted.
        for (text, wanted) in
            [(&two, 2), (&two, 40), (&batching, 40), (&batching, 2_400), (&two, 6_000)]
        {
            let catalogue = dialects::read(&[Source { name: "test", text }]).into_result().unwrap();
            let wanted = vec![event("order.created"); wanted].join(",");
            let body = format!("[{wanted},{},{wanted}]", event("nobody.wants"));
            let all = read_all(record(&body, Some("shop/orders")), &catalogue);
            let reported: Vec<_> = all.iter().flat_map(|decoded| &decoded.unmatched).collect();
            let [(name, unwanted)] = &reported[..] else { panic!("{reported:?}") };
            assert_eq!(name.to_string(), "shop/orders/_");
            assert_eq!(unwanted.text().as_ref(), event("nobody.wants"));
        }
    }

    #[test]
    fn a_confirmation_of_sns_is_no_event_whatever_its_topic_reads() {
        let arn = "arn:aws:sns:eu-central-1:123456789012:orders";
        for input in ["auto", "sns", "sns-whole", "custom", "opaque"] {
            let from = format!("from: [{{snsTopic: '{arn}'}}], input: {input}");
            let text =
                FROM.replace("from: [{bucket: pictures}, {eventSource: com.example}]", &from);
            let catalogue = dialects::read(&[Source { name: "test", text: &text }]);
            let catalogue = catalogue.into_result().unwrap();
            for (kind, is_event) in [("Notification", true), ("SubscriptionConfirmation", false)] {
                let body = format!(
                    r#"{{"Type":"{kind}","MessageId":"1","TopicArn":"{arn}","Message":"m"}}"#
                );
                let decoded = decode_and_match(&record(&body, None), &catalogue, None, 2_000);
                let items = decoded.expect("readable").items;
                let delivered = matches!(&items[..], [WorkItem::Deliver(..)]);
                let refused = matches!(&items[..], [WorkItem::DeadLetter(letter)]
                    if letter.reason.known() == Some(Reason::MalformedEvent));
                assert_eq!(
                    (delivered, refused),
                    (is_event, !is_event),
                    "{input} {kind}: {items:?}"
                );
            }
        }
    }

    const FROM: &str = "
apiVersion: lastmile.dev/v1
kind: Topic
metadata: {namespace: shop, name: uploads}
spec: {from: [{bucket: pictures}, {eventSource: com.example}]}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: uploads, name: resize}
spec: {destination: {url: 'https://resize.example.com/'}}
";

    const EVENT_BRIDGE: &str = r#"{"version":"0","id":"1","detail-type":"t","source":"com.example","account":"1",
        "time":"2026-11-20T07:03:00Z","region":"r","resources":[],"detail":{}}"#;

    fn notification(bucket: &str) -> String {
        let record = |key: &str| {
            format!(
                r#"{{"eventSource":"aws:s3","awsRegion":"r","eventName":"ObjectCreated:Put","responseElements":
                {{"x-amz-request-id":"1"}},"s3":{{"bucket":{{"name":"{bucket}"}},"object":{{"key":"{key}"}}}}}}"#
            )
        };
        format!(r#"{{"Records":[{},{}]}}"#, record("a"), record("b"))
    }

    /// Describes each item of a record: its subscription, its index, and its shape with the reason
    /// if the item is a dead letter. The publisher does not send CloudEvents.
    fn decoded_from(
        body: &str,
        topic: Option<&str>,
        default_topic: Option<&str>,
    ) -> Vec<(String, u32, String)> {
        let text = format!("{SUBSCRIPTIONS}---{FROM}");
        let catalogue = dialects::read(&[Source { name: "test", text: &text }])
            .into_result()
            .expect("the file is right");
        let default_topic = default_topic.map(|name| name.parse().expect("a topic"));
        let items =
            decode_and_match(&record(body, topic), &catalogue, default_topic.as_ref(), 2_000)
                .expect("readable")
                .items;
        let describe = |item: &WorkItem| match item {
            WorkItem::Deliver(_, delivery) => (
                delivery.subscription.to_string(),
                delivery.origin.index,
                format!("{:?}", delivery.event.shape()),
            ),
            WorkItem::DeadLetter(letter) => {
                let delivery = &letter.delivery;
                let why = letter.detail.clone().unwrap_or_default();
                (
                    delivery.subscription.to_string(),
                    delivery.origin.index,
                    format!("{:?} {}: {why}", delivery.event.shape(), letter.reason),
                )
            }
            WorkItem::Forward(..) => panic!("{item:?}"),
        };
        items.iter().map(describe).collect()
    }

    #[test]
    fn a_publisher_that_names_no_topic_is_matched_by_from_and_read_in_its_own_envelope() {
        let resize = |index| ("shop/uploads/resize".to_owned(), index, "CloudEvent".to_owned());
        assert_eq!(decoded_from(&notification("pictures"), None, None), [resize(0), resize(1)]);
        assert_eq!(decoded_from(EVENT_BRIDGE, None, Some("shop/orders")), [resize(0)]);
    }

    #[test]
    fn an_unknown_publisher_takes_the_default_topic_and_is_named_where_there_is_none() {
        let audit = |index| ("shop/orders/audit".to_owned(), index, "CloudEvent".to_owned());
        assert_eq!(
            decoded_from(&notification("other"), None, Some("shop/orders")),
            [audit(0), audit(1)]
        );
        let why = "Custom TopicNotFound: the message names no topic, and no topic lists bucket \
                   other in its `from`"
            .to_owned();
        assert_eq!(
            decoded_from(&notification("other"), None, None),
            [("_/_/_unknown".to_owned(), 0, why)]
        );
    }

    #[test]
    fn a_record_that_names_a_topic_is_not_read_as_an_aws_envelope() {
        let audit = ("shop/orders/audit".to_owned(), 0, "Custom".to_owned());
        assert_eq!(decoded_from(&notification("pictures"), Some("shop/orders"), None), [audit]);
    }

    #[test]
    fn a_delivery_whose_subscription_is_gone_is_dead_lettered_under_its_name() {
        let mut record = record(&event("t"), Some("shop/orders"));
        let origin = Origin { message: "m0".to_owned(), index: 0 };
        let gone = Delivery::new(
            Event::recall(&record.body, Input::Auto),
            "shop/orders/gone".parse().unwrap(),
            origin,
            5,
        );
        record.queue = QueueName::Retry;
        record.attribute = Some(Attribute::Delivery(delivery::wire::write_delivery(&gone)));
        let items = decode_and_match(&record, &catalogue(), None, 9).unwrap().items;
        let [WorkItem::DeadLetter(letter)] = &items[..] else { panic!("{items:?}") };
        assert_eq!(letter.reason, Reason::SubscriptionNotFound);
        assert_eq!(letter.delivery, gone);
    }

    #[test]
    fn an_attribute_that_is_not_ours_waits_and_is_then_dead_lettered_with_its_event() {
        let mut record = record(&event("t"), Some("shop/orders"));
        record.queue = QueueName::Retry;
        record.attribute = Some(Attribute::Delivery("express".to_owned()));
        let read = decode_and_match(&record, &catalogue(), None, 9);
        assert!(matches!(read, Err(WireError::Unreadable(_))));
        record.unread = 5;
        let items = decode_and_match(&record, &catalogue(), None, 9).unwrap().items;
        let [WorkItem::DeadLetter(letter)] = &items[..] else { panic!("{items:?}") };
        assert_eq!(letter.reason, Reason::ProcessingFailed);
        assert_eq!(letter.delivery.subscription.to_string(), "shop/orders/_unprocessed");
    }

    #[test]
    fn an_unreadable_attribute_that_names_a_subscription_ends_under_that_name() {
        let mut record = record(&event("t"), Some("shop/orders"));
        record.queue = QueueName::Retry;
        let text = r#"{"v":1,"subscription":"shop/orders/billing","attempts":"many"}"#;
        record.attribute = Some(Attribute::Delivery(text.to_owned()));
        record.unread = 5;
        let items = decode_and_match(&record, &catalogue(), None, 9).unwrap().items;
        let [WorkItem::DeadLetter(letter)] = &items[..] else { panic!("{items:?}") };
        assert_eq!(letter.delivery.subscription.to_string(), "shop/orders/billing");
    }

    #[test]
    fn an_unknown_wire_version_is_an_error_and_no_dead_letter() {
        let mut record = record(&event("t"), Some("shop/orders"));
        record.queue = QueueName::Retry;
        record.attribute = Some(Attribute::Delivery(r#"{"v":2}"#.to_owned()));
        assert!(matches!(
            decode_and_match(&record, &catalogue(), None, 9),
            Err(WireError::UnknownVersion(2))
        ));
    }
}
