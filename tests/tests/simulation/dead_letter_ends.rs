//! Compares the places where dead letters end with the sinks of their subscriptions.

use delivery::subscription::sink::Sink;
use uuid::Uuid;

use super::blobs::Blob;
use super::ledger::Seen;
use super::rules::OWN_CONTAINER;
use super::sinks::Route;
use super::world::Inner;

/// Counts of dead letters that went elsewhere than to a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SinkCounts {
    /// Accepted by an address.
    pub(crate) taken: u64,
    /// Returned from an address.
    pub(crate) returned: u64,
    /// Deliveries to the subscriptions of a topic.
    pub(crate) published: u64,
    /// Deliveries that passed through more than one topic.
    pub(crate) chained: u64,
    /// Sent to an external queue.
    pub(crate) sink_messages: u64,
    /// Stored in the default container because their sink could not take them.
    pub(crate) store_in_default: u64,
}

impl SinkCounts {
    /// Counts the dead letters of one world.
    pub(crate) fn count(world: &Inner) -> Self {
        let ledger = &world.ledger;
        let started_count = |route| {
            ledger
                .fresh
                .keys()
                .map(|id| (id, &ledger.known[id]))
                .filter(move |(_, known)| known.route == route)
        };
        let taken =
            |id: &Uuid| ledger.seen.get(id).is_some_and(|seen| seen.iter().any(|seen| seen.taken));
        let says = |name: &'static str| {
            world.storage.blobs.values().filter(move |blob| holds(blob, name)).count() as u64
        };
        Self {
            taken: started_count(Route::Sink).filter(|(id, _)| taken(id)).count() as u64,
            returned: says("\"sink\":{"),
            published: started_count(Route::Event).count() as u64,
            chained: started_count(Route::Event).filter(|(_, known)| known.via.len() > 1).count()
                as u64,
            sink_messages: world.storage.sink_messages.len() as u64,
            store_in_default: says("\"sinkerror\":"),
        }
    }

    /// Adds two sets of counts.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            taken: self.taken + other.taken,
            returned: self.returned + other.returned,
            published: self.published + other.published,
            chained: self.chained + other.chained,
            sink_messages: self.sink_messages + other.sink_messages,
            store_in_default: self.store_in_default + other.store_in_default,
        }
    }
}

/// True if a blob contains this text, plain or escaped in a string.
fn holds(blob: &[u8], text: &str) -> bool {
    let blob = String::from_utf8_lossy(blob);
    blob.contains(text) || blob.contains(&text.replace('"', "\\\""))
}

/// Returns a complaint if a blob is not in the sink of its subscription and does not report why.
/// Reasons that may mean an unknown subscription are excused.
pub(crate) fn misplaced(world: &Inner, id: Uuid, blob: &Blob) -> Option<String> {
    let number = world.ledger.known.get(&id)?.subscription?;
    let result_seen = |name: &str| blob.properties.get(name).is_some();
    let own = OWN_CONTAINER.split('/').next() == Some(&blob.bucket);
    let right = match &world.rules[number].subscription.dead_letter.sink {
        // The dead letter of a paused subscription is in the default container, whatever the sink
        // is.
        _ if blob.reason() == "Paused" => !own,
        Sink::Container(_) => own || result_seen("sinkerror"),
        Sink::DefaultContainer => !own && !result_seen("sinkerror") && !result_seen("sink"),
        Sink::Address(_) => !own && (result_seen("sink") || result_seen("sinkerror")),
        Sink::Topic(_) | Sink::Queue(_) => !own && result_seen("sinkerror"),
        Sink::None => false,
    };
    let may_be_unknown = ["SubscriptionNotFound", "ProcessingFailed", "EventTooLargeToResend"]
        .contains(&blob.reason());
    (!right && !may_be_unknown)
        .then(|| format!("its blob in {} does not report why it is there", blob.bucket))
}

/// Compares the stored blobs with the end that the delivery must have in a world without faults.
pub(crate) fn end_agrees(
    world: &Inner,
    id: Uuid,
    reasons: Vec<String>,
    blobs: &[Blob],
) -> Result<(), String> {
    let ledger = &world.ledger;
    let number = ledger.known[&id].subscription.ok_or("nobody can deliver it")?;
    let next = ledger.after.get(&id).map_or(&[][..], Vec::as_slice);
    let wanted = next.iter().filter(|next| world.takes(&ledger.known[*next])).count();
    let began = next.iter().filter(|next| ledger.started_count(**next) > 0).count();
    let sink_messages = world.storage.sink_messages.contains_key(&id);
    let big = ledger.published[ledger.known[&id].record].1.big;
    let failed = !reasons.is_empty();
    let kept = match &world.rules[number].subscription.dead_letter.sink {
        _ if !failed || big => None,
        Sink::None => Some((0, 0, false)),
        Sink::DefaultContainer | Sink::Container(_) => Some((1, 0, false)),
        Sink::Queue(_) => Some((0, 0, true)),
        // Only the sink delivery can have left a blob.
        Sink::Address(_) => Some((blobs.len(), 1, false)),
        Sink::Topic(_) => Some((usize::from(wanted == 0), wanted, false)),
    };
    let is = (blobs.len(), began, sink_messages);
    let expected = kept.unwrap_or(if failed { is } else { (0, 0, false) });
    if is != expected {
        return Err(format!(
            "blobs, sink deliveries, in an external queue: {is:?}, expected {expected:?}"
        ));
    }
    let Some(blob) = blobs.first() else { return Ok(()) };
    let attempts = ledger.seen.get(&id).map_or(0, Vec::len) as u64;
    if !reasons.iter().any(|reason| blob.reason().starts_with(reason.as_str())) {
        return Err(format!("ended as {} instead of {reasons:?}", blob.reason()));
    }
    if blob.number("deliveryattempts") != attempts {
        return Err("its blob counts its attempts wrongly".to_owned());
    }
    Ok(())
}

/// Compares the stored blobs with the end that the sink delivery must have in a world without
/// faults.
pub(crate) fn sink_delivery_agrees(
    reasons: Vec<String>,
    seen: &[Seen],
    blobs: &[Blob],
) -> Result<(), String> {
    if blobs.len() != usize::from(!reasons.is_empty()) {
        return Err(format!("{} blobs after its sink", blobs.len()));
    }
    let Some(sink) = blobs.first().map(|blob| &blob.properties["sink"]) else { return Ok(()) };
    let reason = sink["reason"].as_str().unwrap_or_default();
    if !reasons.iter().any(|may| reason.starts_with(may.as_str())) {
        return Err(format!("its sink ended as {reason} instead of {reasons:?}"));
    }
    if sink["deliveryattempts"].as_u64() != Some(seen.len() as u64) {
        return Err("its blob counts the attempts at its sink wrongly".to_owned());
    }
    Ok(())
}
