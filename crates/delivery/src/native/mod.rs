//! Documents in the native form → [`Catalogue`](crate::subscription::catalogue::Catalogue), and back.
//!
//! Separate because everything behind this boundary is valid: a [`Subscription`](crate::subscription::Subscription) has all
//! its defaults, every range is checked and every address parsed. Every other format is translated into this form before
//! it is read.
//!
//! A Topic may come before or after its Subscriptions and in another file, so all Topics are read first (`topic`). The
//! delivery settings of both are [`DeliverySettings`](crate::subscription::DeliverySettings): where the Subscription
//! states nothing, the Topic's `delivery` is read, field by field, and then the defaults of the profile
//! (`subscription`). Then each is checked against the others (`draft`): its topic (`conversion`), the topics that its dead
//! letters go to (`sinks`) and the hosts that may have its secrets (`secret_policy`).
//!
//! Promises: every problem of every document is reported, each with its position; no field is ignored silently; no input
//! panics. A subscription with an error, or whose topic has one, is not in the catalogue.
//!
//! Does not read files, resolve host names or check whether a container exists.

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

/// The documents that are read together, by kind.
pub struct Documents<'a> {
    /// Documents of kind Topic.
    pub topics: Vec<TopicDocument<'a>>,
    /// The topics that objects of other formats define.
    pub object_topics: Vec<ObjectTopic<'a>>,
    /// The Subscriptions, and what was translated into them.
    pub subscriptions: &'a [Written],
    /// The documents that say which hosts may have which secrets.
    pub secret_policies: Vec<Cursor<'a>>,
    /// The documents that say where notices about destinations go; a deployment has one.
    pub notifications: Vec<Cursor<'a>>,
    /// Whether these are all documents of a deployment. Otherwise a topic that none of them names may exist.
    pub are_all: bool,
}

/// Reads documents for a deployment, whose policy of secrets binds them too.
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
