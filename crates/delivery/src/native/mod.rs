//! Reads native documents into a [`Catalogue`](crate::subscription::catalogue::Catalogue), and
//! writes it back.
//!
//! This module is separate so that other modules get only valid data: a
//! [`Subscription`](crate::subscription::Subscription) has all of its defaults, every range is
//! checked and every address is parsed. Every other format is translated into the native form
//! first.
//!
//! A Topic may follow its Subscriptions or be in another file, so all Topics are read first
//! (`topic`). Both have [`DeliverySettings`](crate::subscription::DeliverySettings). A field that
//! the Subscription does not state is taken from the Topic's `delivery`, otherwise from the
//! defaults of the profile (`subscription`). Then each Subscription is checked against other
//! documents (`draft`): its topic (`conversion`), the topics of its dead letters (`sinks`) and the
//! hosts that may receive its secrets (`secret_policy`).
//!
//! Every problem of every document is reported with its position. No field is ignored silently, and
//! no input causes a panic. A subscription with an error, or whose topic has an error, is not in
//! the catalogue. The module does not read files, resolve host names or check that a container
//! exists.

pub(crate) mod canonical;
mod circles;
mod combined;
mod conversion;
mod defaults;
mod described;
mod draft;
mod left_out;
mod metadata;
mod named_secrets;
mod notifications;
mod origins;
pub mod schema;
mod secret_policy;
mod selection;
mod sinks;
mod stated;
mod subscription;
mod topic;

pub use canonical::{API_VERSION, documents};
pub use combined::{mismatches, problems};
pub use draft::{Built, ObjectTopic};
pub use left_out::LeftOut;
pub use named_secrets::NamedSecret;
pub use origins::Origins;
pub use subscription::Written;
pub use topic::TopicDocument;

use crate::document::findings::Findings;
use crate::document::node::Node;
use crate::document::reader::Cursor;
use crate::subscription::profile::Dialect;
use crate::subscription::secret_policy::SecretPolicy;
use draft::Draft;

/// Documents that are read together, grouped by `kind`.
pub struct Documents<'a> {
    /// The documents whose `kind` is Topic.
    pub topics: Vec<TopicDocument<'a>>,
    /// Topics that objects of other formats define.
    pub object_topics: Vec<ObjectTopic<'a>>,
    /// Subscriptions, written in the native form or translated to it.
    pub subscriptions: &'a [Written],
    /// SecretPolicy documents, which state the hosts that may receive each secret.
    pub secret_policies: Vec<Cursor<'a>>,
    /// Notifications documents. More than one is an error.
    pub notifications: Vec<Cursor<'a>>,
    /// True if these are all documents of a deployment. Otherwise a topic that no document defines
    /// may exist.
    pub are_all: bool,
}

/// Reads documents into a catalogue. `deployed` is the secret policy of the deployment, which
/// applies to these documents too.
#[must_use]
pub fn read(documents: &Documents<'_>, findings: &Findings, deployed: &SecretPolicy) -> Built {
    let defaults = Node::of_json(&defaults::written_defaults(Dialect::Native));
    let mut draft = Draft::default();
    draft.are_all = documents.are_all;
    topic::read(&documents.topics, &defaults, &mut draft);
    draft.add_object_topics(&documents.object_topics);
    subscription::read(documents.subscriptions, findings, &defaults, &mut draft);
    let secrets = secret_policy::read(&documents.secret_policies);
    let mut built = draft.into_catalogue(&deployed.clone().with(&secrets));
    built.catalogue.restrict_secrets(secrets);
    notifications::read(&documents.notifications, &mut built.catalogue);
    built
}
