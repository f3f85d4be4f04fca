//! Reads Subscriptions. A value comes from the Subscription itself, otherwise from its Topic,
//! otherwise from its profile.

use super::defaults::written_defaults;
use super::described::Described;
use super::draft::Draft;
use super::left_out::LeftOut;
use super::metadata::SubscriptionMetadata;
use super::origins::Origins;
use super::selection::Selection;
use super::stated::Stated;
use super::topic::{DEFAULTS_HAVE, check_defaults};
use crate::document::findings::{Finding, Findings, Message};
use crate::document::node::Node;
use crate::document::reader::Cursor;
use crate::document::record::Record as _;
use crate::event::Input;
use crate::subscription::catalogue::Topic;
use crate::subscription::kinds::batches;
use crate::subscription::kinds::filter;
use crate::subscription::name::SubscriptionName;
use crate::subscription::profile::Dialect;
use crate::subscription::{DeliverySettings, Subscription};

/// A Subscription document in the native form, either written in this form or translated into it.
pub struct Written {
    document: Node,
    /// Origins of values that have no single position, such as a schedule that is stated in parts.
    origins: Origins,
    /// True if the values were checked when the document was translated.
    is_checked: bool,
    /// `Some` if the subscription must be left out. The inner value is a finding about it that was
    /// already reported, if there is one.
    error: Option<Option<Box<Finding>>>,
}

impl Written {
    /// Wraps a document that is written in the native form. A document with an `error` is left out;
    /// the inner value is a finding about it that was already reported.
    #[must_use]
    pub fn new(document: Node, error: Option<Option<Box<Finding>>>) -> Self {
        Self { document, origins: Origins::new(), is_checked: false, error }
    }

    /// Wraps a document that was translated from another format, whose values were checked.
    /// `origins` contains the origins of values without a position.
    #[must_use]
    pub const fn translated(document: Node, origins: Origins) -> Self {
        Self { document, origins, is_checked: true, error: None }
    }
}

/// Reads all Subscriptions into the draft. The Topics must have been read before.
pub(super) fn read<'a>(
    subscriptions: &'a [Written],
    findings: &'a Findings,
    defaults: &Node,
    draft: &mut Draft<'a>,
) {
    let mut defaults = ProfileDefaults { native: defaults, last: None };
    for written in subscriptions {
        let document = Cursor::root(&written.document, findings).translated();
        let read = document
            .result_or_error(|| read_subscription(written, &document, &mut defaults, draft));
        let error = match (written.error.clone(), read) {
            (None, Ok(described)) => {
                draft.add_subscription(described);
                continue;
            }
            (Some(error), _) | (None, Err(error)) => error,
        };
        let name = ["metadata.namespace", "metadata.topic", "metadata.name"];
        let name = name.map(|field| document.text_at(field));
        draft.left_out.push(LeftOut::at(&document, &name, error));
    }
}

/// Checks that a Subscription whose destination is an AWS resource has neither batches nor replies.
fn check_target(subscription: &Subscription, spec: &Cursor<'_>) -> Option<()> {
    let at = |name: &str| spec.peek(name).unwrap_or_else(|| spec.clone());
    if subscription.batch.is_some() {
        let message = Message::new("an AWS target receives one event per request, not batches");
        return at("batch").refuse(message.help("batch: none"));
    }
    if subscription.reply.is_some() {
        return at("reply").refuse("an AWS target cannot reply with events");
    }
    Some(())
}

/// Reports settings of requests and responses that have no effect because the destination is a
/// topic.
fn report_unused_of_topic(spec: &Cursor<'_>) {
    let destination = spec.peek("destination").map(|at| at.peek_entries()).unwrap_or_default();
    let of_requests = destination.iter().filter(|entry| {
        !matches!(entry.name, "url" | "reference" | "hidePath") && !entry.value.is_null()
    });
    let of_requests = of_requests.map(|entry| entry.key.clone());
    for key in of_requests.chain(spec.peek("reply").filter(|at| !at.is_null())) {
        key.warn("no effect: the destination is a topic, so no request is sent");
    }
}

/// Caches the merged defaults of the last Subscription. Nearly all Subscriptions of a stored topic
/// have the same defaults. Checking and merging them takes as long as reading all other parts of a
/// Subscription.
struct ProfileDefaults<'n> {
    /// Defaults of the native profile, which supply settings that a document omits.
    native: &'n Node,
    last: Option<Checked>,
}

struct Checked {
    dialect: Dialect,
    /// The field `defaults` of the document, beside its `spec`.
    own: Option<Node>,
    /// The defaults of the profile, overridden by those of the document.
    merged: Node,
    /// True unless the defaults have an error. The next Subscription with these defaults reports
    /// the error again.
    are_usable: bool,
}

impl ProfileDefaults<'_> {
    /// Returns the defaults of a profile, overridden by the defaults that a document states beside
    /// its `spec`.
    fn node(&mut self, dialect: Dialect, own: Option<&Cursor<'_>>) -> &Node {
        let known = self.last.take().filter(|last| {
            last.are_usable && last.dialect == dialect && own.map(Cursor::node) == last.own.as_ref()
        });
        let checked = known.unwrap_or_else(|| Checked::new(dialect, own, self.native));
        &self.last.insert(checked).merged
    }
}

impl Checked {
    fn new(dialect: Dialect, own: Option<&Cursor<'_>>, native: &Node) -> Self {
        let of_profile = Node::of_json(&written_defaults(dialect));
        let Some(own) = own else {
            return Self { dialect, own: None, merged: of_profile, are_usable: true };
        };
        let check = || {
            check_defaults(own, DEFAULTS_HAVE, native);
            Some(())
        };
        let are_usable = own.without_error(check).is_some();
        let merged = if own.is_mapping() { own.laid_over(of_profile) } else { of_profile };
        Self { dialect, own: Some(own.node().clone()), merged, are_usable }
    }
}

fn read_subscription<'a>(
    written: &Written,
    document: &Cursor<'a>,
    defaults: &mut ProfileDefaults<'_>,
    draft: &mut Draft<'a>,
) -> Option<Described<'a>> {
    let reported =
        if written.is_checked { document.clone().errors_only() } else { document.clone() };
    reported.mapping(|fields| {
        fields.accept(&["apiVersion", "kind"]);
        let metadata = fields.required("metadata");
        let name = metadata.and_then(|at| at.mapping(SubscriptionMetadata::read).flatten());
        let name = name.map(SubscriptionName::from).filter(|name| {
            let at = document.peek("metadata.name");
            at.is_some_and(|at| draft.name_subscription(name, &at))
        });
        let delivery = name.as_ref().and_then(|name| draft.deliveries.get(&name.topic));
        let of_topic = |topic: &&Topic| name.as_ref().is_some_and(|name| name.topic == topic.name);
        let input = || {
            let topic = draft.topics.iter().find(of_topic);
            topic.map_or(Input::default(), |topic| topic.settings.input)
        };
        let profile = fields.read("profile", |at| at.choice(&Dialect::PROFILES));
        let dialect = profile.unwrap_or(Dialect::Native);
        let own_defaults = fields.given("defaults");
        let of_profile = defaults.node(dialect, own_defaults.as_ref());
        let spec = fields.required("spec").and_then(|spec| {
            let delivery = delivery.cloned().map(Cursor::silent);
            let of_profile = spec.beside(of_profile);
            let bases: Vec<Cursor<'_>> = delivery.into_iter().chain([of_profile]).collect();
            spec.mapping_over(&bases, |fields| {
                fields.given("filter").iter().for_each(|at| filter::check_names(at, input()));
                let selection = Selection::read(fields);
                // The Subscription itself must state the destination, because a destination in the
                // defaults has no address.
                let own = fields.own("destination").filter(|at| !at.is_null());
                let destination = own.or_else(|| fields.report_missing("destination"));
                let settings = DeliverySettings::read(fields).filter(|_| destination.is_some());
                (selection, settings)
            })
        });
        let (name, (selection, settings)) = (name?, spec?);
        let spec = document.peek("spec")?;
        if draft.broken_topics.contains(&name.topic) {
            return None;
        }
        let stated = Stated::new(&spec, delivery, own_defaults.as_ref());
        let Selection { filter, reply, reply_reference, expires_ms } = selection?;
        let subscription = Subscription {
            filter,
            reply,
            reply_reference,
            expires_ms,
            ..Subscription::with_settings(name, dialect, settings?)
        };
        let Stated { mut origins, schema_at, batch_at, on_refused_at, dead_letters_at, secrets_at } =
            stated;
        origins.extend(written.origins.clone());
        if let (None, Some(at)) = (subscription.batch, on_refused_at) {
            batches::report_without_batch(&at);
        }
        check_destination(&subscription, &spec)?;
        Some(Described { subscription, origins, schema_at, batch_at, dead_letters_at, secrets_at })
    })?
}

/// Checks settings that depend on the kind of the destination.
fn check_destination(subscription: &Subscription, spec: &Cursor<'_>) -> Option<()> {
    let destination = &subscription.destination;
    if destination.topic().is_some() {
        report_unused_of_topic(spec);
    }
    if destination.aws.is_some() {
        check_target(subscription, spec)?;
    }
    if subscription.batch.is_some() && destination.reads_event() {
        let message = "a batch has no `event`: use the list `events`";
        return spec.peek("destination").and_then(|at| at.refuse(message));
    }
    Some(())
}
