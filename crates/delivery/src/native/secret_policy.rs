//! `SecretPolicy` documents.
//!
//! Separate because they belong to the deployment, and to no family of dialects: what they mean is
//! `subscription::secret_policy`.
//!
//! Promises: with a document of this kind, no subscription is read that sends a secret to a host which
//! is not listed for it.

use std::collections::BTreeSet;

use super::described::Described;
use crate::document::findings::Message;
use crate::document::kind::{Each, Whole};
use crate::document::reader::{Cursor, read_each};
use crate::document::record::{Record as _, Required};
use crate::subscription::display;
use crate::subscription::secret_policy::{SecretPolicy, SecretRefusal, SecretRule};

record! {
    /// The hosts to which each secret may be sent.
    pub(crate) struct SecretPolicySpec {
        /// Every secret that subscriptions name: one that is not listed is sent nowhere.
        "secrets" => pub(crate) secrets: Vec<SecretRule> = Required(Each(Whole::<SecretRule>::KIND)),
    }
}

/// Reads the documents; their entries count together. Where one has an error nothing is refused, since
/// nobody knows what it would allow: the files are not used as they are.
pub(super) fn read(documents: &[Cursor<'_>]) -> SecretPolicy {
    let of_document = |document: &Cursor<'_>| {
        document.without_error(|| {
            document.mapping(|fields| {
                fields.accept(&["apiVersion", "kind"]);
                fields.required("spec")?.mapping(SecretPolicySpec::read)?
            })?
        })
    };
    let mut policy = SecretPolicy::default();
    if let Some(specs) = read_each(documents, of_document).filter(|specs| !specs.is_empty()) {
        policy.begin();
        specs.into_iter().flat_map(|spec| spec.secrets).for_each(|rule| policy.add(rule));
    }
    policy
}

impl From<SecretRefusal> for Message {
    fn from(refusal: SecretRefusal) -> Self {
        Self::new(refusal.problem()).help(refusal.help())
    }
}

/// Checks that the destination of a subscription may have all secrets that requests to it carry. Reported where a secret
/// is named, else at the subscription's name, once for each position and destination.
///
/// # Errors
/// The first secret that it may not have.
pub(super) fn may_have_secrets<'a>(
    described: &Described<'a>,
    policy: &SecretPolicy,
    named_at: Option<&Cursor<'a>>,
    reported_at: &mut BTreeSet<String>,
) -> Result<(), String> {
    let Described { subscription, secrets_at, .. } = described;
    let destination = &subscription.destination;
    // A topic is not called.
    if destination.topic().is_some() {
        return Ok(());
    }
    let mut may_have_all = Ok(());
    for (secret, to) in destination.secrets_with_addresses() {
        let Some(refusal) = policy.refusal(secret, to) else { continue };
        may_have_all = may_have_all.and_then(|()| Err(refusal.to_string()));
        let name = secret.to_string();
        let at = secrets_at.iter().find(|at| at.peek_text() == Some(&name)).or(named_at);
        let once =
            |at: &&Cursor<'a>| reported_at.insert(format!("{} {}", at.location(), display(to)));
        if let Some(at) = at.filter(once) {
            at.error(refusal);
        }
    }
    may_have_all
}
