//! Reads `SecretPolicy` documents.
//!
//! This module is separate because these documents belong to the deployment, not to a dialect. The
//! rules are in `subscription::secret_policy`. If there is such a document, a subscription that
//! sends a secret to an unlisted host is left out.

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
        /// All secrets that subscriptions may send. A secret that is not listed is never sent.
        "secrets" => pub(crate) secrets: Vec<SecretRule> = Required(Each(Whole::<SecretRule>::KIND)),
    }
}

/// Reads the documents, whose entries apply together. If one of them has an error, the returned
/// policy allows everything, because the intended rules are unknown. Files with such an error are
/// not applied.
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

/// Checks that the destination of a subscription may receive all secrets of its requests. A problem
/// is reported once for each position and destination: at the name of the secret, or at the
/// subscription's name if that position is unknown.
///
/// # Errors
/// The message about the first secret that the destination must not receive.
pub(super) fn may_have_secrets<'a>(
    described: &Described<'a>,
    policy: &SecretPolicy,
    named_at: Option<&Cursor<'a>>,
    reported_at: &mut BTreeSet<String>,
) -> Result<(), String> {
    let Described { subscription, secrets_at, .. } = described;
    let destination = &subscription.destination;
    // A topic as the destination receives no request.
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
