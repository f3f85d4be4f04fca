//! What is checked at the end: that nothing is lost, nothing multiplied, and every dead letter tells the truth.

use std::collections::{BTreeMap, BTreeSet};

use delivery::delivery::{HISTORY_FIRST, HISTORY_LAST};
use delivery::moment::rfc3339;
use delivery::outcome::Ending;
use delivery::ports::QueueName;
use delivery::sink::Sink;
use serde_json::Value;
use uuid::Uuid;

use super::driver::LIFETIME_MS;
use super::ledger::Seen;
use super::queues::READ;
use super::replies::HOPS_MAX;
use super::rules::{Expected, Rules};
use super::world::Inner;

/// The longest that rounding a wait up to whole seconds makes an attempt late.
const ROUNDING_MS: u64 = 1_000;

/// A blob as a reader sees it.
struct Blob {
    key: String,
    text: String,
    properties: Value,
}

impl Blob {
    fn number(&self, name: &str) -> u64 {
        self.properties[name].as_u64().unwrap_or(u64::MAX)
    }

    fn reason(&self) -> &str {
        self.properties["deadletterreasoncode"].as_str().unwrap_or("")
    }
}

/// Everything that is wrong with a world that has come to its end.
pub(crate) fn verdict(world: &Inner) -> Vec<String> {
    let mut broken = world.ledger.broken.clone();
    let blobs = read_blobs(world, &mut broken);
    broken.extend(lost(world, &blobs));
    broken.extend(multiplied(world, &blobs));
    for (id, blob) in blobs.iter().flat_map(|(id, blobs)| blobs.iter().map(move |blob| (*id, blob))) {
        broken.extend(untrue(world, id, blob).map(|what| format!("{}: {what}", world.ledger.name(id))));
    }
    if world.dice.quiet {
        broken.extend(inexact(world, &blobs));
    }
    let mut told = BTreeSet::new();
    broken.retain(|what| told.insert(what.clone()));
    broken
}

/// The blobs by id of the delivery.
fn read_blobs(world: &Inner, broken: &mut Vec<String>) -> BTreeMap<Uuid, Vec<Blob>> {
    let mut blobs: BTreeMap<Uuid, Vec<Blob>> = BTreeMap::new();
    for ((_, key), bytes) in &world.storage.blobs {
        let parsed: Result<Value, _> = serde_json::from_slice(bytes);
        let properties = parsed.map(|mut blob| blob["deadletterProperties"].take()).unwrap_or_default();
        let id = properties["deadletterid"].as_str().and_then(|id| id.parse::<Uuid>().ok());
        match id {
            Some(id) if key.ends_with(&format!("/{id}.json")) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                blobs.entry(id).or_default().push(Blob { key: key.clone(), text, properties });
            }
            _ => broken.push(format!("the blob {key} cannot be read or has another id")),
        }
    }
    blobs
}

/// Deliveries and records without an end.
fn lost(world: &Inner, blobs: &BTreeMap<Uuid, Vec<Blob>>) -> Vec<String> {
    let ledger = &world.ledger;
    let carried =
        |queue| world.queues.all(queue).filter_map(|held| held.carried.delivery()).map(|delivery| delivery.id);
    let rescued: BTreeSet<Uuid> = carried(QueueName::LastResort).collect();
    let waiting: BTreeSet<Uuid> = READ.into_iter().flat_map(carried).collect();
    let untouched = |queue| world.queues.all(queue).filter(|held| held.carried.delivery().is_none());
    let records: BTreeSet<&str> = [QueueName::Events, QueueName::DeadLetter, QueueName::LastResort]
        .into_iter()
        .flat_map(untouched)
        .map(|held| held.message.as_str())
        .collect();
    let mut broken = Vec::new();
    for id in &ledger.owed {
        let taken = ledger.seen.get(id).is_some_and(|seen| seen.iter().any(|seen| seen.taken));
        let record = ledger.unprocessed.get(id).map(|record| ledger.published[*record].0.as_str());
        let kept = blobs.contains_key(id) || rescued.contains(id) || record.is_some_and(|it| records.contains(it));
        if !taken && !kept && !waiting.contains(id) && !may_be_dropped(world, *id) {
            broken.push(format!("{}: lost", ledger.name(*id)));
        }
    }
    for (message, _) in &ledger.published {
        let handled = ledger.acknowledged.contains(message) || ledger.given_up.contains(message);
        if !handled && !records.contains(message.as_str()) {
            broken.push(format!("the record {message} was lost"));
        }
    }
    let over = world.now_ms + LIFETIME_MS / 20 >= world.began_ms + LIFETIME_MS;
    if !waiting.is_empty() && !over {
        broken.push("something still waits although there is time".to_owned());
    }
    broken
}

/// Whether `deadLetter: none` explains why nothing is left of a delivery.
fn may_be_dropped(world: &Inner, id: Uuid) -> bool {
    let Some(known) = world.ledger.known.get(&id) else { return false };
    let Some(number) = known.subscription else { return false };
    let rules = &world.rules[number];
    if rules.subscription.dead_letter.sink != Sink::None {
        return false;
    }
    let published = &world.ledger.published[known.record].1;
    let seen = world.ledger.seen.get(&id).map_or(&[][..], Vec::as_slice);
    let attempts = seen.len() as u32 + world.ledger.chains_allowed(id) - 1;
    let limit_ms = rules.subscription.retry.time_to_live_ms.unwrap_or(u64::MAX);
    seen.iter().any(|seen| rules.expected(&seen.told) == Expected::Final)
        || attempts >= world.versions.fewest_attempts(number)
        || world.now_ms - published.at_ms >= limit_ms
        || published.big
}

/// Deliveries with more chains than the faults explain, and more blobs than chains.
fn multiplied(world: &Inner, blobs: &BTreeMap<Uuid, Vec<Blob>>) -> Vec<String> {
    let ledger = &world.ledger;
    let mut broken = Vec::new();
    for id in ledger.known.keys() {
        let allowed = ledger.chains_allowed(*id);
        let waits =
            |queue| world.queues.all(queue).filter(|held| held.carried.delivery().is_some_and(|it| it.id == *id));
        let waiting = waits(QueueName::Events).chain(waits(QueueName::Retry)).count() as u32;
        let chains = ledger.ends(*id) + waiting;
        if chains > allowed {
            broken.push(format!("{}: {chains} chains, but the faults explain {allowed}", ledger.name(*id)));
        }
        let number = ledger.known[id].subscription;
        let most = number.map_or(0, |number| world.rules[number].subscription.retry.max_attempts);
        let attempts = ledger.seen.get(id).map_or(0, Vec::len) as u32;
        // One more alone, after a refusal with others.
        let most = most + u32::from(number.is_some_and(|number| world.rules[number].subscription.batch.is_some()));
        if attempts > most * allowed {
            broken.push(format!("{}: {attempts} attempts in at most {allowed} chains", ledger.name(*id)));
        }
        let letters = ledger.letters.get(id).copied().unwrap_or(0);
        let keys: BTreeSet<&str> = blobs.get(id).into_iter().flatten().map(|blob| guid_path(&blob.key)).collect();
        if keys.len() as u32 > letters {
            broken.push(format!("{}: {} blobs of {letters} dead letters", ledger.name(*id), keys.len()));
        }
    }
    broken
}

/// A key without the prefix of its container.
fn guid_path(key: &str) -> &str {
    key.find("shop/").map_or(key, |at| &key[at..])
}

/// What a blob says against what the world saw.
fn untrue(world: &Inner, id: Uuid, blob: &Blob) -> Option<String> {
    let ledger = &world.ledger;
    let attempts = blob.number("deliveryattempts");
    let history = blob.properties["history"].as_array().cloned().unwrap_or_default();
    let omitted: u64 = history.iter().filter_map(|entry| entry["omitted"].as_u64()).sum();
    let entries: Vec<&Value> = history.iter().filter(|entry| entry["omitted"].is_null()).collect();
    let attempted = entries.iter().filter(|entry| entry["outcome"] != "Probation").count() as u64;
    let adds_up = (attempted..=attempted + omitted).contains(&attempts);
    if !adds_up || (omitted > 0 && entries.len() != HISTORY_FIRST + HISTORY_LAST) {
        return Some(format!("its history does not add up to {attempts} attempts"));
    }
    let seen = ledger.seen.get(&id).map_or(&[][..], Vec::as_slice);
    let agrees = |entry: &Value, seen: &Seen| {
        let status = if let Ending::Answered { status, .. } = &seen.told { Some(u64::from(*status)) } else { None };
        entry["at"] == rfc3339(seen.at_ms) && entry["status"].as_u64() == status
    };
    let made = |entry: &&&Value| entry["outcome"] != "Aborted" && entry["outcome"] != "Probation";
    for entry in entries.iter().filter(made) {
        if !seen.iter().any(|seen| agrees(entry, seen)) {
            return Some(format!("its history tells of an attempt that nobody saw: {entry}"));
        }
    }
    if ledger.chains_allowed(id) == 1 && seen.len() as u64 != attempts {
        return Some(format!("it tells of {attempts} attempts, the endpoint saw {}", seen.len()));
    }
    let known = ledger.known.get(&id)?;
    let text = &ledger.published[known.record].1.elements[known.index].text;
    let whole = blob.text.contains(text.as_str()) || blob.text.contains(&serde_json::to_string(text).ok()?);
    (!whole).then(|| "its blob has other bytes than the event".to_owned())
}

/// In a quiet world every delivery makes exactly the attempts that its policy and its endpoint give.
fn inexact(world: &Inner, blobs: &BTreeMap<Uuid, Vec<Blob>>) -> Vec<String> {
    let ledger = &world.ledger;
    let mut broken = Vec::new();
    for id in &ledger.owed {
        let Some(known) = ledger.known.get(id) else { continue };
        let blobs: &[Blob] = blobs.get(id).map_or(&[], Vec::as_slice);
        let problem = match known.subscription {
            None => (blobs.len() != 1).then(|| format!("{} blobs instead of one", blobs.len())),
            // A chain of replies came to its end.
            Some(_) if known.hops > HOPS_MAX => {
                let right = matches!(blobs, [blob] if blob.reason() == "ReplyLoop");
                (!right || ledger.seen.contains_key(id)).then(|| "not ended as the end of a chain".to_owned())
            }
            Some(number) => {
                let published = &ledger.published[known.record].1;
                let seen = ledger.seen.get(id).map_or(&[][..], Vec::as_slice);
                let rules = &world.rules[number];
                let put_offs = ledger.put_offs.get(id).map_or(&[][..], Vec::as_slice);
                replay(rules, seen, put_offs, published.at_ms, published.big)
                    .and_then(|end| end_agrees(rules, end, seen, blobs))
                    .err()
            }
        };
        broken.extend(problem.map(|problem| format!("{}: {problem}", ledger.name(*id))));
    }
    broken
}

/// Follows the attempts by the book; says with which reasons the delivery may have ended, none if it was delivered.
fn replay(
    rules: &Rules,
    seen: &[Seen],
    put_offs: &[(u64, u64)],
    published_ms: u64,
    big: bool,
) -> Result<Vec<String>, String> {
    let retry = &rules.subscription.retry;
    let limit_ms = retry.time_to_live_ms.map_or(u64::MAX, |limit_ms| published_ms + limit_ms);
    let names_limit = rules.subscription.dialect.as_str().starts_with("eventgrid");
    let mut due_ms = (published_ms, published_ms);
    let mut put_offs = put_offs.iter().peekable();
    for (index, attempt) in seen.iter().enumerate() {
        let attempts = index as u32 + 1;
        while let Some((at_ms, until_ms)) = put_offs.next_if(|(at_ms, _)| *at_ms <= attempt.at_ms) {
            due_ms = put_off(due_ms, *at_ms, *until_ms)?;
        }
        if attempt.at_ms < due_ms.0 || attempt.at_ms > due_ms.1 + ROUNDING_MS {
            return Err(format!("attempt {attempts} at {} although due within {due_ms:?}", attempt.at_ms));
        }
        let last = index + 1 == seen.len();
        let end = match attempt.expected {
            Expected::Delivered => Some(Vec::new()),
            Expected::Alone => {
                due_ms = (attempt.ended_ms, attempt.ended_ms);
                None
            }
            Expected::Final if attempts >= retry.max_attempts && names_limit => {
                Some(vec!["MaxDeliveryAttemptsExceeded".to_owned()])
            }
            Expected::Final => Some(vec!["UndeliverableDueTo".to_owned()]),
            Expected::Retry(_) if attempts >= retry.max_attempts => {
                Some(vec!["MaxDeliveryAttemptsExceeded".to_owned()])
            }
            Expected::Retry(least_ms) => {
                let wait_ms = rules.wait_ms(attempts, attempt.first_ms, attempt.ended_ms, least_ms);
                due_ms = (attempt.ended_ms + wait_ms.0, attempt.ended_ms + wait_ms.1);
                None
            }
        };
        match (end, last) {
            (Some(end), true) => return Ok(end),
            (Some(_), false) => return Err(format!("attempt {attempts} was its end, yet there are more")),
            (None, _) => {}
        }
    }
    for (at_ms, until_ms) in put_offs {
        due_ms = put_off(due_ms, *at_ms, *until_ms)?;
    }
    let mut ends = Vec::new();
    if due_ms.1 + ROUNDING_MS >= limit_ms {
        ends.push("TimeToLiveExceeded".to_owned());
    }
    if big && (!seen.is_empty() || rules.subscription.destination.probation) {
        // Found when it has to leave, which may be before its time to live has passed.
        ends.push("EventTooLargeToResend".to_owned());
    }
    if !ends.is_empty() {
        return Ok(ends);
    }
    Err(format!("no attempt after {} although one was due", seen.len()))
}

/// What was due is due at another moment; not before it was due, and not long after.
fn put_off(due_ms: (u64, u64), at_ms: u64, until_ms: u64) -> Result<(u64, u64), String> {
    if at_ms < due_ms.0 || at_ms > due_ms.1 + ROUNDING_MS {
        return Err(format!("put off at {at_ms} although due within {due_ms:?}"));
    }
    Ok((until_ms, until_ms))
}

/// Whether what is stored agrees with how the delivery had to end.
fn end_agrees(rules: &Rules, reasons: Vec<String>, seen: &[Seen], blobs: &[Blob]) -> Result<(), String> {
    let stored = !reasons.is_empty() && rules.subscription.dead_letter.sink != Sink::None;
    if blobs.len() != usize::from(stored) {
        return Err(format!("{} blobs, expected {}", blobs.len(), usize::from(stored)));
    }
    let Some(blob) = blobs.first() else { return Ok(()) };
    if !reasons.iter().any(|reason| blob.reason().starts_with(reason.as_str())) {
        return Err(format!("ended as {} instead of {reasons:?}", blob.reason()));
    }
    if blob.number("deliveryattempts") != seen.len() as u64 {
        return Err("its blob counts its attempts wrongly".to_owned());
    }
    Ok(())
}
