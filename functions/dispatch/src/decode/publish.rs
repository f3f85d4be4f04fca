//! Reads a published record or a part of one: its topic, its input format, and the deliveries of
//! each element. Pure.
//!
//! No event is dropped: an event yields no item only if its topic is known and no filter matches.
//! Such an event is reported as unmatched.

use std::sync::Arc;

use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC};
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Hold, Part, Publication, check_moment};
use delivery::event::envelope::{self, Elements, Publisher};
use delivery::event::{Element, Event, Input, Malformed};
use delivery::ports::{Message, QueueName, Record};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::{Catalogue, Topic};
use delivery::subscription::name::{ALL_NAMES, NAMELESS, NameRange, SubscriptionName, TopicName};

use super::{Decoded, WorkItem, divide};

/// A published record, with the topic and the input format that apply to it.
pub(crate) struct Published<'a> {
    body: &'a Arc<str>,
    publication: &'a Publication,
    catalogue: &'a Catalogue,
    name: TopicName,
    /// The topic; `None` if no document defines it.
    topic: Option<&'a Topic>,
    input: Input,
    /// The publisher if it is SNS, EventBridge or S3, none of which can name a topic; `None` for
    /// other publishers.
    publisher: Option<Publisher>,
    /// The subscriptions that the record is for: all, or the range of a part.
    names: &'a NameRange,
    now_ms: u64,
}

impl<'a> Published<'a> {
    /// Finds the topic of a record, in this order:
    /// - the topic that the record names
    /// - the topic whose `from` names the publisher
    /// - the default topic
    ///
    /// With input `auto`, a record that names no topic is decoded from the envelope of SNS,
    /// EventBridge or S3, if it has one. A record of an unknown topic keeps its published format.
    pub(crate) fn new(
        body: &'a Arc<str>,
        publication: &'a Publication,
        catalogue: &'a Catalogue,
        default_topic: Option<&TopicName>,
        now_ms: u64,
    ) -> Self {
        // SNS, EventBridge and S3 cannot set the attribute, so a record with it comes from another
        // publisher.
        let named = publication.topic.as_deref();
        let publisher = publisher_of(named, body);
        let name = routed(named, publisher.as_ref(), catalogue, default_topic);
        let topic = catalogue.topic(&name);
        let input = match (topic.map_or(Input::Auto, |topic| topic.settings.input), &publisher) {
            (Input::Auto, Some(publisher)) if topic.is_some() => envelope::input_of(publisher),
            (input, _) => input,
        };
        let (input, names) = match &publication.part {
            Some(part) => (part.input, &part.names),
            None => (input, &ALL_NAMES),
        };
        Self { body, publication, catalogue, name, topic, input, publisher, names, now_ms }
    }

    /// Returns the deliveries and dead letters of the record, or its parts.
    pub(crate) fn items(&self) -> Decoded {
        if !self.catalogue.knows(&self.name) {
            return Decoded::unread(&self.name);
        }
        if let Some(why) = self.catalogue.unreadable(&self.name) {
            return Decoded::waits(why);
        }
        match Elements::parse(self.body, self.input) {
            Ok(elements) => self.usable_items(&elements),
            Err(why) => self.malformed(0, self.body, why).into(),
        }
    }

    /// Returns the items of `elements`. If some subscriptions are unusable, adds a part of the
    /// record that waits for these subscriptions alone.
    fn usable_items(&self, elements: &Elements<'_>) -> Decoded {
        let unusable = self.catalogue.unusable_ranges(&self.name, self.names);
        let Some(first) = unusable.first() else { return divide::items_of(self, elements) };
        if !self.catalogue.has_usable(&self.name, self.names) {
            let name = SubscriptionName { topic: self.name.clone(), name: first.from.clone() };
            let why = self.catalogue.unusable(&name).unwrap_or_default();
            return Decoded::waits(format!("the subscription {name} cannot be used: {why}"));
        }
        let mut decoded = divide::items_of(self, elements);
        // An unusable subscription may still match these events, or accept a dead letter that no
        // other subscription accepts.
        decoded.unmatched.clear();
        decoded.items.retain(|item| {
            item.delivery().is_none_or(|delivery| delivery.subscription.name != NAMELESS)
        });
        let is_divided = decoded.items.iter().any(|item| matches!(item, WorkItem::Forward(..)));
        let is_divided = is_divided || unusable.len() > divide::PARTS_MAX;
        let others = if is_divided { divide::around(self, &unusable) } else { unusable };
        if is_divided {
            decoded.items.clear();
        }
        let parts: Vec<Message> = divide::for_names(self, elements, others).collect();
        if !parts.iter().all(Message::fits) {
            return Decoded::waits(
                "the message is too large to wait for only some of its subscriptions",
            );
        }
        let forward = |part| WorkItem::Forward(QueueName::Retry, Box::new(part));
        decoded.items.extend(parts.into_iter().map(forward));
        decoded
    }

    /// Returns the current time, or the time of publication if that is later. SQS sets the time of
    /// publication, and its clock may be ahead. Deliveries are not due before that time.
    pub(crate) fn grouped_at_ms(&self) -> u64 {
        self.now_ms.max(self.publication.published_ms)
    }

    pub(crate) fn names(&self) -> &NameRange {
        self.names
    }

    /// True if the record is for all subscriptions. Only such a record can detect an unmatched
    /// event.
    pub(crate) fn is_for_all(&self) -> bool {
        *self.names == ALL_NAMES
    }

    /// Reads one element, with at most `at_most` deliveries. The limit is for a caller that only
    /// has to detect too many deliveries.
    pub(crate) fn read(&self, elements: &Elements<'_>, index: usize, at_most: usize) -> Decoded {
        let event = match self.event(elements, index) {
            Ok(event) => event,
            Err(decoded) => return decoded,
        };
        let matching: Vec<&Arc<Subscription>> = self.matching(&event).take(at_most).collect();
        let origin = self.index(index);
        let deliveries = self.publication.deliveries(origin, &event, &matching);
        let deliver = |(subscription, delivery): (&&Arc<Subscription>, Delivery)| {
            WorkItem::Deliver(Arc::clone(subscription), Box::new(delivery))
        };
        let items: Vec<WorkItem> = matching.iter().zip(deliveries).map(deliver).collect();
        if items.is_empty() && self.is_dead_letter() {
            return self.unmatched_dead_letter(origin, event).into();
        }
        let is_unmatched = items.is_empty() && self.is_for_all();
        let unmatched = is_unmatched.then(|| (self.full_name(NAMELESS), event));
        Decoded { items, unmatched: unmatched.into_iter().collect(), ..Decoded::default() }
    }

    /// Returns the event of an element. For a malformed element or an unknown topic, `Err` contains
    /// the dead letter. `Err` is empty if the first part of the record reports the malformed
    /// element instead.
    pub(crate) fn event(&self, elements: &Elements<'_>, index: usize) -> Result<Event, Decoded> {
        // A malformed element belongs to no subscription, so only the first part reports it.
        let is_first = self.names.from.is_empty();
        let origin = self.index(index);
        match elements.decode(index) {
            Element::Malformed { text, why } if is_first => {
                Err(self.malformed(origin, &text, why).into())
            }
            Element::Malformed { .. } => Err(Decoded::default()),
            Element::Event(event) if self.topic.is_none() => {
                let delivery =
                    self.publication.delivery(origin, event, self.full_name(UNKNOWN_TOPIC));
                let reason = Reason::TopicNotFound;
                let letter = DeadLetter::without_subscription(delivery, reason, self.now_ms);
                Err(WorkItem::from(letter.with_detail(self.missing())).into())
            }
            Element::Event(event) => match check_moment(&event, self.publication.published_ms) {
                Ok(()) => Ok(event),
                Err(why) if is_first => Err(self.malformed(origin, event.text(), why).into()),
                Err(_) => Err(Decoded::default()),
            },
        }
    }

    /// Returns the subscriptions that match an event, by name.
    pub(crate) fn matching(&self, event: &Event) -> impl Iterator<Item = &'a Arc<Subscription>> {
        self.catalogue.matching(&self.name, self.names, event, self.now_ms)
    }

    /// Creates the delivery of the event in element `index`.
    pub(crate) fn delivery(&self, index: usize, event: &Event, to: &Subscription) -> Delivery {
        self.publication.delivery_to(self.index(index), event.clone(), to)
    }

    /// Creates a part that begins with element `first`, for the subscriptions in `names`.
    pub(crate) fn part(&self, first: usize, names: NameRange) -> Publication {
        // The part keeps a known topic, even if its body looks like that of another publisher.
        let topic = self.topic.map(|topic| topic.name.to_string());
        Publication {
            topic: topic.or_else(|| self.publication.topic.as_deref().map(beginning)),
            hold: Hold::default(),
            part: Some(Part { first: self.index(first), input: self.input, names }),
            ..self.publication.clone()
        }
    }

    /// Returns the index of an element in the undivided record. The index is part of every delivery
    /// id, so malformed elements count too.
    fn index(&self, element: usize) -> u32 {
        let first = self.publication.part.as_ref().map_or(0, |part| part.first);
        first.saturating_add(u32::try_from(element).unwrap_or(u32::MAX))
    }

    /// True if the event is a dead letter, which must not be dropped without a trace.
    fn is_dead_letter(&self) -> bool {
        self.publication.onward.as_ref().is_some_and(|onward| onward.is_dead_letter)
    }

    /// Returns a new dead letter for an event that is itself a dead letter, and that no
    /// subscription accepts any more. The subscriptions have changed since that event was sent.
    fn unmatched_dead_letter(&self, index: u32, event: Event) -> WorkItem {
        let delivery = self.publication.delivery(index, event, self.full_name(NAMELESS));
        let letter =
            DeadLetter::without_subscription(delivery, Reason::SubscriptionNotFound, self.now_ms);
        let subject =
            if self.is_for_all() { "no subscription" } else { "none of these subscriptions" };
        letter
            .with_detail(format!(
                "{subject} of topic {} accepts this dead letter any more",
                self.name
            ))
            .into()
    }

    fn malformed(&self, index: u32, text: &Arc<str>, why: Malformed) -> WorkItem {
        let event = Event::recall(text, Input::Opaque);
        let delivery = self.publication.delivery(index, event, self.full_name(MALFORMED));
        let letter =
            DeadLetter::without_subscription(delivery, Reason::MalformedEvent, self.now_ms);
        letter.with_detail(why).into()
    }

    /// Explains why no topic was found for the record.
    fn missing(&self) -> String {
        match (&self.publication.topic, &self.publisher) {
            (Some(named), _) => format!("{named:?}"),
            (None, Some(publisher)) => {
                format!("the message names no topic, and no topic lists {publisher} in its `from`")
            }
            (None, None) => "the message names no topic".to_owned(),
        }
    }

    fn full_name(&self, subscription: &str) -> SubscriptionName {
        SubscriptionName { topic: self.name.clone(), name: subscription.to_owned() }
    }
}

/// Maximum length of an unknown topic's name in a part. Longer than any valid name.
const UNKNOWN_TOPIC_KEPT_BYTES: usize = 600;

/// Shortens the name of an unknown topic. A shortened name is longer than any valid name, so it
/// cannot become the name of a valid topic.
fn beginning(topic: &str) -> String {
    let end = topic.floor_char_boundary(UNKNOWN_TOPIC_KEPT_BYTES);
    topic.get(..end).unwrap_or(topic).to_owned()
}

/// Returns the topic of a record without decoding its events. Internal messages name their topic.
pub(crate) fn topic_of_record(
    record: &Record,
    catalogue: &Catalogue,
    default_topic: Option<&TopicName>,
) -> TopicName {
    let named = record.topic.as_deref();
    let publisher = publisher_of(named, &record.body);
    routed(named, publisher.as_ref(), catalogue, default_topic)
}

/// Returns the publisher of a record that names no topic; `None` unless it is SNS, EventBridge or
/// S3.
fn publisher_of(named: Option<&str>, body: &str) -> Option<Publisher> {
    match named {
        Some(_) => None,
        None => envelope::publisher(body),
    }
}

/// Returns the topic whose `from` names the publisher. Falls back to the topic that the record
/// names, then to the default.
fn routed(
    named: Option<&str>,
    publisher: Option<&Publisher>,
    catalogue: &Catalogue,
    default_topic: Option<&TopicName>,
) -> TopicName {
    let from = publisher.and_then(|publisher| catalogue.topic_from(publisher));
    from.cloned().unwrap_or_else(|| topic_of(named, default_topic))
}

/// Returns the topic that a record names, or the default.
pub(crate) fn topic_of(named: Option<&str>, default_topic: Option<&TopicName>) -> TopicName {
    match named {
        Some(named) => TopicName::published(named),
        None => default_topic.cloned().unwrap_or_else(TopicName::nameless),
    }
}
