//! What a person should know about subscriptions that are right: findings beyond those of reading.
//!
//! Separate from the reader because these need a whole life to be seen (attempts that no longer fit
//! into 14 days), the time of day (what has expired), or a deployment: a response timeout that its
//! stack cuts, an address that sending refuses unless the deployment allows it, a sink that its
//! functions may not write to (`writable`), which is the one error among them.
//!
//! Does not look whether a secret exists: who may read it is the function, not the person who
//! checks.

use std::net::{IpAddr, Ipv4Addr};

use delivery::address::{AddressPolicy, OwnAddresses, Refusal};
use delivery::explain::{Endpoint, explain};
use delivery::manifest::{Finding, Reading, Severity};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription};
use delivery::time::duration::{SECOND_MS, format_ms};
use url::Url;

use crate::stack::Stack;
use crate::writable::{Problem, problem};

/// `DispatchTimeout` of the template, where a deployment does not say otherwise.
pub(crate) const DISPATCH_TIMEOUT_MS: u64 = 120 * SECOND_MS;
/// What dispatch keeps of its timeout for everything but the request.
pub(crate) const TIMEOUT_MARGIN_MS: u64 = 15 * SECOND_MS;
/// The field that says where dead letters go.
const SINK: &str = "deadLetter.sink";

/// Findings about subscriptions without an error; `first` is the file that is named where no place
/// is known.
pub(crate) fn remarks(
    reading: &Reading,
    first: &str,
    now_ms: u64,
    stack: Option<&Stack>,
) -> anyhow::Result<Vec<Finding>> {
    let cut_to_ms = stack.map(Stack::dispatch_timeout_ms).transpose()?;
    let cut_to_ms = cut_to_ms.map(|timeout_ms| timeout_ms.saturating_sub(TIMEOUT_MARGIN_MS));
    let reach = Reach::of(stack)?;
    let at = Places { reading, first };
    let mut remarks = Vec::new();
    if reading.catalogue.subscriptions().next().is_none() {
        remarks.push(at.beginning("the files hold no subscription without an error"));
    }
    for subscription in reading.catalogue.subscriptions() {
        let warnings = [
            ("maxAttempts", outlives_the_limit(subscription)),
            ("expirationTimeUtc", expired(subscription, now_ms)),
            ("url", refused(subscription, &reach)),
            ("reply", reply_refused(subscription, &reach)),
            ("reply", reply_unheard(subscription, reading)),
            (SINK, sink_refused(subscription, &reach)),
            (
                "responseTimeout",
                cut_to_ms.and_then(|cut_to_ms| timeout_cut(subscription, cut_to_ms)),
            ),
        ];
        let warnings = warnings.into_iter().filter_map(|(field, message)| Some((field, message?)));
        remarks.extend(warnings.map(|(field, message)| at.warning(subscription, field, message)));
        remarks.extend(stack.and_then(|stack| problem(subscription, stack)).map(|problem| {
            match problem {
                Problem::Refused { message, help } => at.error(subscription, SINK, message, help),
                Problem::Untold(message) => at.warning(subscription, SINK, message),
            }
        }));
    }
    Ok(remarks)
}

/// What a deployment sends requests to.
struct Reach {
    fence: AddressPolicy,
    /// What becomes of requests to another place.
    otherwise: String,
}

impl Reach {
    /// What the stack says; without one, nothing is allowed that a deployment might allow.
    fn of(stack: Option<&Stack>) -> anyhow::Result<Self> {
        Ok(match stack {
            Some(stack) => Self {
                fence: AddressPolicy::new(stack.private_destinations()?, OwnAddresses::default()),
                otherwise: format!(
                    "that is refused, as AllowPrivateDestinations of the stack {} does not name it",
                    stack.name
                ),
            },
            None => Self {
                fence: AddressPolicy::default(),
                otherwise:
                    "that is refused unless ALLOW_PRIVATE_DESTINATIONS of the deployment names it"
                        .to_owned(),
            },
        })
    }
}

/// Attempts that the file allows and the 14 days of every dialect do not.
fn outlives_the_limit(subscription: &Subscription) -> Option<String> {
    let unlimited = subscription
        .retry
        .time_to_live_ms
        .is_none_or(|time_to_live_ms| time_to_live_ms >= LIFETIME_MAX_MS);
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

/// A destination that is refused, as far as its URL tells.
fn refused(subscription: &Subscription, reach: &Reach) -> Option<String> {
    let place = refused_place(&subscription.destination.url, reach)?;
    Some(format!("{} sends to {place}; {}", subscription.name, reach.otherwise))
}

/// The same of an address that replies go to.
fn reply_refused(subscription: &Subscription, reach: &Reach) -> Option<String> {
    let place = match subscription.reply.as_ref()? {
        ReplyTo::Address(url) => refused_place(url, reach)?,
        ReplyTo::Topic(_) => return None,
    };
    Some(format!("{} sends replies to {place}; {}", subscription.name, reach.otherwise))
}

/// The same of an address that dead letters go to.
fn sink_refused(subscription: &Subscription, reach: &Reach) -> Option<String> {
    let place = match &subscription.dead_letter.sink {
        Sink::Address(url) => refused_place(url, reach)?,
        Sink::DefaultContainer
        | Sink::Container(_)
        | Sink::Queue(_)
        | Sink::Topic(_)
        | Sink::None => return None,
    };
    Some(format!("{} sends dead letters to {place}; {}", subscription.name, reach.otherwise))
}

/// A topic that replies go to, and nobody subscribes to.
fn reply_unheard(subscription: &Subscription, reading: &Reading) -> Option<String> {
    let topic = match subscription.reply.as_ref()? {
        ReplyTo::Address(_) => return None,
        ReplyTo::Topic(topic) => topic,
    };
    let heard = reading.catalogue.subscriptions().any(|of| of.name.topic == *topic);
    (!heard).then(|| {
        format!(
            "replies to {} go to {topic}, which has no subscription: they are lost",
            subscription.name
        )
    })
}

/// The place of an address that is refused, and what is wrong with it.
fn refused_place(url: &Url, reach: &Reach) -> Option<String> {
    match admitted(url, &reach.fence).err()? {
        Refusal::NotPublic(place) => Some(format!("{place}, which is not a public address")),
        Refusal::InClear(place) => Some(format!("{place} without TLS")),
        Refusal::Own(place) => Some(place.to_string()),
        Refusal::NoHost => None,
    }
}

/// What sending would do. Names are not resolved, but `localhost` and what is below it lead to this
/// machine everywhere (RFC 6761, 6.3).
fn admitted(url: &Url, fence: &AddressPolicy) -> Result<(), Refusal> {
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
    fn warning(&self, subscription: &Subscription, field: &str, message: String) -> Finding {
        self.finding(Severity::Warning, subscription, field, (message, None))
    }

    fn error(
        &self,
        subscription: &Subscription,
        field: &str,
        message: String,
        help: String,
    ) -> Finding {
        self.finding(Severity::Error, subscription, field, (message, Some(help)))
    }

    /// A finding where the field is stated, else where the subscription states anything, else at
    /// the beginning.
    fn finding(
        &self,
        severity: Severity,
        subscription: &Subscription,
        field: &str,
        (message, help): (String, Option<String>),
    ) -> Finding {
        let stated = self.reading.origins.get(&subscription.name);
        let stated =
            stated.and_then(|origins| origins.get(field).or_else(|| origins.values().next()));
        let beginning = || (self.first.to_owned(), 1, 1);
        let (file, line, column) =
            stated.and_then(|origin| place(origin)).unwrap_or_else(beginning);
        Finding { severity, file, line, column, field: field.to_owned(), message, help }
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
