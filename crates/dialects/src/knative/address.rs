//! Reads Knative destinations: a `ref` to an object, a `uri`, or a `uri` relative to a `ref`.
//!
//! Separate because subscribers, replies, sinks and dead-letter sinks have the same form, but
//! accept different targets. No cluster is queried: a `Destinations` document gives the address for
//! a `ref`, under the key `apiVersion/Kind/namespace/name`.

use url::Url;

use super::super::access::{Asked, AskedToken, REPLY_ACCESS, Wanted};
use super::super::destinations::Destinations;
use super::topic_kind::{TopicKind, topic_kind};
use super::topics::Topics;
use super::{object, old};
use delivery::address::mistake;
use delivery::document::findings::{Message, ReferenceUse, quoted};
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::ReplyTo;
use delivery::subscription::auth::oauth2::{Style, check_parameter};
use delivery::subscription::kinds::address::{Resolved, Target};
use delivery::subscription::name::TopicName;
use delivery::subscription::tls::CaBundle;
use delivery::subscription::topic_address;

/// Resolves addresses, with the topics and mappings of all files.
pub(super) struct Addresses<'d> {
    /// The entries of the `Destinations` documents.
    pub(super) destinations: &'d Destinations<'d>,
    /// The brokers and channels in all files.
    pub(super) topics: Topics,
}

/// The target of a Knative destination.
#[derive(Clone)]
pub(super) enum Address {
    Target(Target),
    /// A broker or channel that the files contain.
    Topic(TopicName),
    /// An unknown target, with the key that a `Destinations` document would need.
    Unresolved(String),
}

/// A resolved Knative destination, with its position.
#[derive(Clone)]
pub(super) struct ResolvedAddress<'a> {
    pub(super) address: Address,
    /// Key of the destination in a `Destinations` document.
    pub(super) key: String,
    /// All values that the file requests for the destination, except its address.
    pub(super) asked: Asked<'a>,
    pub(super) at: Cursor<'a>,
    /// True if the address is a Pub/Sub topic.
    pub(super) is_pubsub: bool,
    /// The broker or channel that a `ref` names, whether the files contain it or not; `None` if the
    /// `ref` is mapped to an address.
    pub(super) publishes_to: Option<TopicName>,
}

/// URL scheme of Google Pub/Sub topics.
const PUBSUB: &str = "pubsub://";

impl Addresses<'_> {
    /// Reads a destination. A `ref` without a namespace gets the namespace of the object that
    /// contains it.
    pub(super) fn read<'a>(
        &self,
        cursor: &Cursor<'a>,
        namespace: &str,
    ) -> Option<ResolvedAddress<'a>> {
        cursor.mapping(|fields| {
            let asked = asked(fields, ["audience", "CACerts"]);
            let reference = fields.given("ref").map(|reference| {
                let key = reference.mapping(|fields| key_of(fields, namespace)).flatten()?;
                Some((key, reference))
            });
            let reference = reference.or_else(|| {
                let at = old::flat_reference(fields)?;
                Some(key_of(fields, namespace).map(|key| (key, at)))
            });
            let uri = fields.given("uri").map(|uri| Some((uri.text()?, uri)));
            let resolved = match (reference, uri) {
                (Some(reference), Some(uri)) => {
                    let (reference, uri) = (reference?, uri?);
                    self.joined(self.of_reference(reference)?, uri)
                }
                (Some(reference), None) => self.of_reference(reference?),
                (None, Some(uri)) => self.of_uri(uri?),
                (None, None) => fields
                    .parent()
                    .refuse(Message::new("ref or uri is missing").help("uri: https://…")),
            };
            Some(ResolvedAddress { asked, ..resolved? })
        })?
    }

    /// Resolves an address that is written as text.
    pub(super) fn of_uri<'a>(&self, (text, at): (&str, Cursor<'a>)) -> Option<ResolvedAddress<'a>> {
        let address = match self.destinations.resolve(text, &at) {
            Resolved::Target(target) => Address::Target(target),
            Resolved::Reported => return None,
            Resolved::Unknown => Address::Unresolved(text.to_owned()),
        };
        Some(ResolvedAddress {
            address,
            key: text.to_owned(),
            asked: Asked::default(),
            at,
            is_pubsub: text.starts_with(PUBSUB),
            publishes_to: None,
        })
    }

    fn of_reference<'a>(&self, (key, at): (Key, Cursor<'a>)) -> Option<ResolvedAddress<'a>> {
        let of_kind = |(topic_kind, name): &(TopicKind, TopicName)| {
            self.topics.find(*topic_kind, &key.kind, name).cloned()
        };
        let here = key.topic.as_ref().and_then(of_kind);
        let topic = key.topic.map(|(_, topic)| topic);
        let (address, publishes_to) = match self.destinations.resolve(&key.text, &at) {
            Resolved::Target(target) => (Address::Target(target), None),
            Resolved::Reported => return None,
            Resolved::Unknown => match here {
                Some(known) => (Address::Topic(known.clone()), Some(known)),
                None => (Address::Unresolved(key.text.clone()), topic),
            },
        };
        let (key, asked) = (key.text, Asked::default());
        Some(ResolvedAddress { address, key, asked, at, is_pubsub: false, publishes_to })
    }

    /// Appends a `uri` to the address of the object that the `ref` beside it names.
    fn joined<'a>(
        &self,
        base: ResolvedAddress<'a>,
        (text, at): (&str, Cursor<'a>),
    ) -> Option<ResolvedAddress<'a>> {
        if Url::parse(text).is_ok() || text.starts_with("//") {
            return at.refuse(
                Message::new("a uri with a ref must be relative")
                    .help("use a path such as /events, or remove ref"),
            );
        }
        match base.address {
            Address::Target(Target::Endpoint(url)) => match url.join(text) {
                Ok(url) => Some(ResolvedAddress {
                    address: Address::Target(Target::Endpoint(url)),
                    ..base
                }),
                Err(error) => at.refuse(format!("not a valid path: {error}")),
            },
            Address::Target(Target::Container(_)) => {
                at.refuse("the ref is mapped to a container, which has no paths")
            }
            Address::Target(Target::Queue(_)) => {
                at.refuse("the ref is mapped to a queue, which has no paths")
            }
            Address::Topic(_) => {
                at.warn("no effect: the ref is a topic, which has no paths");
                Some(base)
            }
            Address::Unresolved(_) => Some(base),
        }
    }
}

/// The key of an object, and its topic if the object is a broker or channel.
struct Key {
    text: String,
    kind: String,
    topic: Option<(TopicKind, TopicName)>,
}

fn key_of(fields: &Fields<'_>, namespace: &str) -> Option<Key> {
    fields.accept(&["group"]);
    if let Some(key) = fields.given_key("address") {
        key.warn("address has no effect in this version");
    }
    let [api_version, kind, name] =
        ["apiVersion", "kind", "name"].map(|field| fields.required(field)?.text());
    let namespace =
        object::namespace(fields).map_or(Some(namespace), |namespace| namespace.text())?;
    let (api_version, kind, name) = (api_version?, kind?, name?);
    let topic = TopicName { namespace: namespace.to_owned(), topic: name.to_owned() };
    let topic = topic_kind(api_version, kind).map(|topic_kind| (topic_kind, topic));
    let text = format!("{api_version}/{kind}/{namespace}/{name}");
    Some(Key { text, kind: kind.to_owned(), topic })
}

impl ResolvedAddress<'_> {
    /// Returns the broker or channel that a `ref` names, if no file contains it.
    pub(super) fn topic_elsewhere(&self) -> Option<&TopicName> {
        let is_here = matches!(self.address, Address::Topic(_));
        self.publishes_to.as_ref().filter(|_| !is_here)
    }

    /// Returns the endpoint that receives events, or the address of the topic to which they are
    /// forwarded. Reports any other target as an error.
    pub(super) fn endpoint(self) -> Option<Url> {
        match self.address {
            Address::Target(target) => return target.for_events(&self.at),
            Address::Topic(topic) => return Some(topic_address::address_of(&topic)),
            Address::Unresolved(key) => self.at.error(unresolved(&key, &self.at)),
        }
        None
    }

    /// Returns the target of replies. Reports a target that cannot receive replies.
    pub(super) fn reply(self, destinations: &Destinations<'_>) -> Option<ReplyTo> {
        self.asked.warn_unused(REPLY_ACCESS);
        destinations.warn_unused_access(&self.key, &self.at, REPLY_ACCESS);
        match self.address {
            Address::Target(Target::Endpoint(url)) => return Some(ReplyTo::Address(url)),
            Address::Topic(topic) => return Some(ReplyTo::Topic(topic)),
            Address::Target(Target::Container(_)) => self.at.error(no_replies("a container")),
            Address::Target(Target::Queue(_)) => self.at.error(no_replies("a queue")),
            Address::Unresolved(key) => self.at.error(unresolved(&key, &self.at)),
        }
        None
    }
}

/// Reads two values that a file requests for a destination: the audience of a token, and
/// certificate authorities to trust. The arguments are the names of the two fields.
pub(super) fn asked<'a>(
    fields: &Fields<'a>,
    [audience, authorities]: [&'static str; 2],
) -> Asked<'a> {
    let token = fields.given(audience).and_then(|at| {
        let text = at.text()?;
        let valid = check_parameter(text);
        valid.map_or_else(|problem| at.refuse(problem), |()| Some(())).map(|()| AskedToken {
            wanted: Wanted::Audience(text.to_owned()),
            token_url: None,
            style: Style::Basic,
            at,
        })
    });
    let ca_bundle = fields.given(authorities).and_then(|at| {
        let bundle = CaBundle::new(at.text()?);
        bundle.map_or_else(|problem| at.refuse(problem), |bundle| Some((bundle, at.clone())))
    });
    Asked { token, ca_bundle }
}

/// Returns the message for a reference to an object that no file has, or for a mistyped URL.
fn unresolved(key: &str, at: &Cursor<'_>) -> Message {
    let unknown = format!("no file or Destinations document defines {}", quoted(key));
    // An address with any scheme may belong to the cluster, so an entry can map it.
    let uri = at.peek_text().filter(|text| !text.contains("://"));
    let message = match uri.and_then(mistake) {
        Some(mistake) => Message::new(format!("{mistake}, and {unknown}"))
            .help(format!("https://…, or {}", entry(key, "https://…"))),
        None => Message::new(unknown).help(entry(key, "https://…")),
    };
    message.about(key, ReferenceUse::Events)
}

fn no_replies(target: &str) -> Message {
    Message::new(format!("{target} cannot receive replies"))
        .help("use https://…, http://…, or the ref of a channel or broker")
}

/// Returns the help text for a key without an address.
pub(super) fn entry(key: &str, to: &str) -> String {
    format!("add to the spec of a Destinations document: {key}: {to}")
}
