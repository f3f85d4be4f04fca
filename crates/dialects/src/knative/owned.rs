//! Skips the channels and Subscriptions that a broker's controller creates. An export of a cluster
//! contains them.
//!
//! Separate because these objects would duplicate deliveries: such a Subscription sends to the
//! filter of the broker, which calls the subscriber of the Trigger.

use super::object::Object;
use delivery::document::reader::Cursor;

/// Returns the objects that no Broker or Trigger owns. Reports the others in one finding.
pub(super) fn without_owned<'a>(objects: impl Iterator<Item = Object<'a>>) -> Vec<Object<'a>> {
    let (owned, others): (Vec<_>, Vec<_>) = objects.partition(is_of_broker);
    if let Some(first) = owned.first() {
        let number = owned.len();
        first.document.note(format!(
            "ignored objects of messaging.knative.dev ({number}): they belong to a Broker or \
             Trigger, which is read instead"
        ));
    }
    others
}

/// True if a Broker or Trigger owns the channel or Subscription.
fn is_of_broker(object: &Object<'_>) -> bool {
    let owners = object.document.peek("metadata.ownerReferences").filter(Cursor::is_list);
    let owners = owners.and_then(|owners| owners.list()).unwrap_or_default();
    let is_broker = |owner: &Cursor<'_>| {
        owner.text_at("apiVersion").starts_with("eventing.knative.dev/")
            && ["Broker", "Trigger"].contains(&owner.text_at("kind"))
    };
    object.group() == "messaging.knative.dev" && owners.iter().any(is_broker)
}
