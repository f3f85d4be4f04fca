//! What a person should know about subscriptions that are right: warnings beyond those of reading.
//!
//! Separate from the reader because these need a whole life to be seen (attempts that no longer fit into 14 days), the
//! time of day (what has expired), or a deployment: a response timeout that its stack cuts, an address that sending
//! refuses unless the deployment allows it.
//!
//! Does not look whether a secret exists: who may read it is the function, not the person who checks.

use std::net::{IpAddr, Ipv4Addr};

use delivery::address::{Fence, Refusal};
use delivery::duration::{SECOND_MS, format_ms};
use delivery::explain::{Endpoint, explain};
use delivery::manifest::{Finding, Reading, Severity};
use delivery::profile::LIFETIME_MAX_MS;
use delivery::subscription::{ReplyTo, Subscription};
use url::Url;

use crate::stack::Stack;

/// `DispatchTimeout` of the template, where a deployment does not say otherwise.
pub(crate) const DISPATCH_TIMEOUT_MS: u64 = 120 * SECOND_MS;
/// What dispatch keeps of its timeout for everything but the request.
pub(crate) const TIMEOUT_MARGIN_MS: u64 = 15 * SECOND_MS;
/// What becomes of requests to a place that is not public.
const UNLESS_ALLOWED: &str = "that is refused unless ALLOW_PRIVATE_DESTINATIONS of the deployment names it";

/// Warnings about subscriptions without an error; `first` is the file that is named where no place is known.
pub(crate) fn remarks(
    reading: &Reading,
    first: &str,
    now_ms: u64,
    stack: Option<&Stack>,
) -> anyhow::Result<Vec<Finding>> {
    let cut_to_ms = stack.map(Stack::dispatch_timeout_ms).transpose()?;
    let cut_to_ms = cut_to_ms.map(|timeout_ms| timeout_ms.saturating_sub(TIMEOUT_MARGIN_MS));
    let at = Places { reading, first };
    let mut remarks = Vec::new();
    if reading.catalogue.subscriptions().next().is_none() {
        remarks.push(at.beginning("the files hold no subscription without an error"));
    }
    for subscription in reading.catalogue.subscriptions() {
        remarks
            .extend(outlives_the_limit(subscription).map(|message| at.warning(subscription, "maxAttempts", message)));
        remarks.extend(
            expired(subscription, now_ms).map(|message| at.warning(subscription, "expirationTimeUtc", message)),
        );
        remarks.extend(refused(subscription).map(|message| at.warning(subscription, "url", message)));
        remarks.extend(reply_refused(subscription).map(|message| at.warning(subscription, "reply", message)));
        remarks.extend(reply_unheard(subscription, reading).map(|message| at.warning(subscription, "reply", message)));
        let cut = cut_to_ms.and_then(|cut_to_ms| timeout_cut(subscription, cut_to_ms));
        remarks.extend(cut.map(|message| at.warning(subscription, "responseTimeout", message)));
    }
    Ok(remarks)
}

/// Attempts that the file allows and the 14 days of every dialect do not.
fn outlives_the_limit(subscription: &Subscription) -> Option<String> {
    let unlimited = subscription.retry.time_to_live_ms.is_none_or(|time_to_live_ms| time_to_live_ms >= LIFETIME_MAX_MS);
    let always_fails = Endpoint { always: "500".parse().ok()?, retry_after: None };
    let made = explain(subscription, &always_fails, 0).attempts.len();
    let (name, allowed) = (&subscription.name, subscription.retry.max_attempts);
    let fewer = unlimited && u32::try_from(made).is_ok_and(|made| made < allowed);
    fewer.then(|| {
        format!("{name} allows {allowed} attempts, but {made} fit into the 14 days that a delivery lives at most")
    })
}

fn expired(subscription: &Subscription, now_ms: u64) -> Option<String> {
    let past = subscription.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms);
    past.then(|| format!("{} has expired and takes no new events", subscription.name))
}

/// A destination that is refused where nothing is allowed, as far as its URL tells.
fn refused(subscription: &Subscription) -> Option<String> {
    let place = refused_place(&subscription.destination.url)?;
    Some(format!("{} sends to {place}; {UNLESS_ALLOWED}", subscription.name))
}

/// The same of an address that replies go to.
fn reply_refused(subscription: &Subscription) -> Option<String> {
    let place = match subscription.reply.as_ref()? {
        ReplyTo::Address(url) => refused_place(url)?,
        ReplyTo::Topic(_) => return None,
    };
    Some(format!("{} sends replies to {place}; {UNLESS_ALLOWED}", subscription.name))
}

/// A topic that replies go to, and nobody subscribes to.
fn reply_unheard(subscription: &Subscription, reading: &Reading) -> Option<String> {
    let topic = match subscription.reply.as_ref()? {
        ReplyTo::Address(_) => return None,
        ReplyTo::Topic(topic) => topic,
    };
    let heard = reading.catalogue.subscriptions().any(|of| of.name.topic == *topic);
    (!heard)
        .then(|| format!("replies to {} go to {topic}, which has no subscription: they are lost", subscription.name))
}

/// The place of an address that is refused, and what is wrong with it.
fn refused_place(url: &Url) -> Option<String> {
    match reach(url).err()? {
        Refusal::NotPublic(place) => Some(format!("{place}, which is not a public address")),
        Refusal::InClear(place) => Some(format!("{place} without TLS")),
        Refusal::Own(place) => Some(place.to_string()),
        Refusal::NoHost => None,
    }
}

/// What sending would do. Names are not resolved, but `localhost` and what is below it lead to this machine everywhere
/// (RFC 6761, 6.3).
fn reach(url: &Url) -> Result<(), Refusal> {
    let fence = Fence::default();
    let lane = fence.admit(url)?;
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_end_matches('.');
    let is_local = name == "localhost" || name.ends_with(".localhost");
    if is_local { fence.judge(lane, host, &[IpAddr::V4(Ipv4Addr::LOCALHOST)]) } else { Ok(()) }
}

fn timeout_cut(subscription: &Subscription, cut_to_ms: u64) -> Option<String> {
    let timeout_ms = subscription.destination.response_timeout_ms;
    let (name, timeout, most) = (&subscription.name, format_ms(timeout_ms), format_ms(cut_to_ms));
    (timeout_ms > cut_to_ms).then(|| {
        format!("{name} waits {timeout} for an answer, but the stack cuts it to {most}, DispatchTimeout less 15 s")
    })
}

/// Where things are stated.
struct Places<'a> {
    reading: &'a Reading,
    first: &'a str,
}

impl Places<'_> {
    /// A warning where the field is stated, else where the subscription states anything, else at the beginning.
    fn warning(&self, subscription: &Subscription, field: &str, message: String) -> Finding {
        let stated = self.reading.origins.get(&subscription.name);
        let stated = stated.and_then(|origins| origins.get(field).or_else(|| origins.values().next()));
        let beginning = || (self.first.to_owned(), 1, 1);
        let (file, line, column) = stated.and_then(|origin| place(origin)).unwrap_or_else(beginning);
        Finding { severity: Severity::Warning, file, line, column, field: field.to_owned(), message, help: None }
    }

    fn beginning(&self, message: &str) -> Finding {
        Finding {
            severity: Severity::Warning,
            file: self.first.to_owned(),
            line: 1,
            column: 1,
            field: String::new(),
            message: message.to_owned(),
            help: Some("apply would remove everything that is there".to_owned()),
        }
    }
}

/// The parts of the first `file:line:column`.
fn place(origin: &str) -> Option<(String, u64, u64)> {
    let (rest, column) = origin.split(", ").next()?.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?, column.parse().ok()?))
}
