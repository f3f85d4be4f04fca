//! A published record, or a part of one: its topic, how it is read, and the deliveries of each of its
//! elements. Pure.
//!
//! Nothing is dropped: an event yields no item only when its topic is known and no filter matches it,
//! and then it is reported as unmatched.

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

/// A published record and what the subscriptions say about it.
pub(crate) struct Published<'a> {
    body: &'a Arc<str>,
    publication: &'a Publication,
    catalogue: &'a Catalogue,
    /// The name of its topic.
    name: TopicName,
    /// `None` when no document names it.
    topic: Option<&'a Topic>,
    input: Input,
    /// The publisher, if that is one that cannot name a topic.
    publisher: Option<Publisher>,
    /// All subscriptions, unless it is a part.
    names: &'a NameRange,
    now_ms: u64,
}

impl<'a> Published<'a> {
    /// The topic that the record names; else the one whose `from` names its publisher, else the
    /// default. A record that names none and looks like SNS, EventBridge or S3 comes from there, so
    /// with automatic input it is read as such. A record of an unknown topic stays as it is.
    pub(crate) fn new(
        body: &'a Arc<str>,
        publication: &'a Publication,
        catalogue: &'a Catalogue,
        default_topic: Option<&TopicName>,
        now_ms: u64,
    ) -> Self {
        // SNS, EventBridge and S3 cannot set the attribute, so a record that has it is none of theirs.
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

    /// Its items: its deliveries and dead letters, or its parts.
    pub(crate) fn items(&self) -> Decoded {
        if !self.catalogue.knows(&self.name) {
            return Decoded::unread(&self.name);
        }
        if let Some(why) = self.catalogue.unreadable(&self.name) {
            return Decoded::waits(why);
        }
        match Elements::of(self.body, self.input) {
            Ok(elements) => self.usable_items(&elements),
            Err(why) => self.malformed(0, self.body, why).into(),
        }
    }

    /// The items of these elements. Where some subscriptions cannot be used, a part of the record waits for those alone.
    fn usable_items(&self, elements: &Elements<'_>) -> Decoded {
        let unusable = self.catalogue.unusable_ranges(&self.name, self.names);
        let Some(first) = unusable.first() else { return divide::items_of(self, elements) };
        if !self.catalogue.has_usable(&self.name, self.names) {
            let name = SubscriptionName { topic: self.name.clone(), name: first.from.clone() };
            let why = self.catalogue.unusable(&name).unwrap_or_default();
            return Decoded::waits(format!("the subscription {name} cannot be used: {why}"));
        }
        let mut decoded = divide::items_of(self, elements);
        // A subscription that cannot be used may still match them, or take a dead letter that no other takes.
        decoded.unmatched.clear();
        decoded
            .items
            .retain(|item| item.delivery().is_none_or(|of| of.subscription.name != NAMELESS));
        let is_divided = decoded.items.iter().any(|item| matches!(item, WorkItem::Forward(..)));
        let is_divided = is_divided || unusable.len() > divide::PARTS_MAX;
        let others = if is_divided { divide::around(self, &unusable) } else { unusable };
        if is_divided {
            decoded.items.clear();
        }
        let parts: Vec<Message> = divide::for_names(self, elements, others).collect();
        if !parts.iter().all(Message::fits) {
            return Decoded::waits("it is too large to wait for some of its subscriptions only");
        }
        let forward = |part| WorkItem::Forward(QueueName::Retry, Box::new(part));
        decoded.items.extend(parts.into_iter().map(forward));
        decoded
    }

    /// Now, by whichever clock is ahead: its deliveries are due when it was published, by that of SQS.
    pub(crate) fn grouped_at_ms(&self) -> u64 {
        self.now_ms.max(self.publication.published_ms)
    }

    /// The subscriptions it is for.
    pub(crate) fn names(&self) -> &NameRange {
        self.names
    }

    /// Checks whether it is for all of them: only then it can know that none takes an event.
    pub(crate) fn is_for_all(&self) -> bool {
        *self.names == ALL_NAMES
    }

    /// What one of its elements contains, with at most so many deliveries: more than run in place need not
    /// be made to know that.
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
        let unmatched = is_unmatched.then(|| (self.of(NAMELESS), event));
        Decoded { items, unmatched: unmatched.into_iter().collect(), ..Decoded::default() }
    }

    /// The event of an element that belongs to a known topic; of others what becomes of them.
    pub(crate) fn event(&self, elements: &Elements<'_>, index: usize) -> Result<Event, Decoded> {
        // A malformed element belongs to no subscription, so the first part reports it.
        let is_first = self.names.from.is_empty();
        let origin = self.index(index);
        match elements.decode(index) {
            Element::Malformed { text, why } if is_first => {
                Err(self.malformed(origin, &text, why).into())
            }
            Element::Malformed { .. } => Err(Decoded::default()),
            Element::Event(event) if self.topic.is_none() => {
                let delivery = self.publication.delivery(origin, event, self.of(UNKNOWN_TOPIC));
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

    /// The subscriptions that an event of it is delivered to, by name.
    pub(crate) fn matching(&self, event: &Event) -> impl Iterator<Item = &'a Arc<Subscription>> {
        self.catalogue.matching(&self.name, self.names, event, self.now_ms)
    }

    /// The delivery of the event of one of its elements.
    pub(crate) fn delivery(&self, index: usize, event: &Event, to: &Subscription) -> Delivery {
        self.publication.delivery_to(self.index(index), event.clone(), to)
    }

    /// A part of it, whose first element has this index here, for these subscriptions.
    pub(crate) fn part(&self, first: usize, names: NameRange) -> Publication {
        // A topic that is known stays the same, whoever the publisher of the part seems to be.
        let topic = self.topic.map(|topic| topic.name.to_string());
        Publication {
            topic: topic.or_else(|| self.publication.topic.as_deref().map(beginning)),
            hold: Hold::default(),
            part: Some(Part { first: self.index(first), input: self.input, names }),
            ..self.publication.clone()
        }
    }

    /// The index in the published record of an element of this part. Malformed elements count too: the
    /// index is part of the id of every delivery.
    fn index(&self, element: usize) -> u32 {
        let first = self.publication.part.as_ref().map_or(0, |part| part.first);
        first.saturating_add(u32::try_from(element).unwrap_or(u32::MAX))
    }

    /// True if its event is a dead letter, which must not end unseen.
    fn is_dead_letter(&self) -> bool {
        self.publication.onward.as_ref().is_some_and(|onward| onward.is_dead_letter)
    }

    /// A dead letter that no subscription takes any more: they have changed since it was sent.
    fn unmatched_dead_letter(&self, index: u32, event: Event) -> WorkItem {
        let delivery = self.publication.delivery(index, event, self.of(NAMELESS));
        let letter =
            DeadLetter::without_subscription(delivery, Reason::SubscriptionNotFound, self.now_ms);
        let of = if self.is_for_all() { "no subscription" } else { "none of these subscriptions" };
        letter.with_detail(format!("{of} of topic {} takes it any more", self.name)).into()
    }

    fn malformed(&self, index: u32, text: &Arc<str>, why: Malformed) -> WorkItem {
        let event = Event::recall(text, Input::Opaque);
        let delivery = self.publication.delivery(index, event, self.of(MALFORMED));
        let letter =
            DeadLetter::without_subscription(delivery, Reason::MalformedEvent, self.now_ms);
        letter.with_detail(why).into()
    }

    /// The reason why there is no topic, for people.
    fn missing(&self) -> String {
        match (&self.publication.topic, &self.publisher) {
            (Some(named), _) => format!("{named:?}"),
            (None, Some(publisher)) => {
                format!("no topic is named, and none has {publisher} in its from")
            }
            (None, None) => "no topic is named".to_owned(),
        }
    }

    fn of(&self, subscription: &str) -> SubscriptionName {
        SubscriptionName { topic: self.name.clone(), name: subscription.to_owned() }
    }
}

/// No name of a topic is as long.
const UNKNOWN_TOPIC_KEPT_BYTES: usize = 600;

/// As much of the name of an unknown topic as people need. What is cut off is still no topic's name.
fn beginning(topic: &str) -> String {
    let end = topic.floor_char_boundary(UNKNOWN_TOPIC_KEPT_BYTES);
    topic.get(..end).unwrap_or(topic).to_owned()
}

/// The topic of a record, as far as it can be told without reading its events. Internal messages name theirs.
pub(crate) fn topic_of_record(
    record: &Record,
    catalogue: &Catalogue,
    default_topic: Option<&TopicName>,
) -> TopicName {
    let named = record.topic.as_deref();
    let publisher = publisher_of(named, &record.body);
    routed(named, publisher.as_ref(), catalogue, default_topic)
}

/// The publisher of a record that names no topic, if it is SNS, EventBridge or S3.
fn publisher_of(named: Option<&str>, body: &str) -> Option<Publisher> {
    match named {
        Some(_) => None,
        None => envelope::publisher(body),
    }
}

/// The topic whose `from` names the publisher, else the one that the record names, else the default.
fn routed(
    named: Option<&str>,
    publisher: Option<&Publisher>,
    catalogue: &Catalogue,
    default_topic: Option<&TopicName>,
) -> TopicName {
    let from = publisher.and_then(|publisher| catalogue.topic_from(publisher));
    from.cloned().unwrap_or_else(|| topic_of(named, default_topic))
}

/// The topic a record names, else the default.
pub(crate) fn topic_of(named: Option<&str>, default_topic: Option<&TopicName>) -> TopicName {
    match named {
        Some(named) => TopicName::published(named),
        None => default_topic.cloned().unwrap_or_else(TopicName::nameless),
    }
}
