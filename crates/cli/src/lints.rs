//! Lints: findings about valid subscriptions that will not behave as their author expects.
//!
//! Separate from the reader because a lint needs the life of a delivery (attempts that do not fit
//! into 14 days), the current time (an expired subscription), or a deployment: a response timeout
//! that the stack shortens, an address that sending refuses, a sink that its functions may not write
//! to (`writable`). The last is an error, all others are warnings.
//!
//! Does not check that secrets exist: the function may read them, the person who runs the check may
//! not.

use std::net::{IpAddr, Ipv4Addr};

use delivery::address::{AddressPolicy, OwnAddresses, Refusal};
use delivery::explain::{Endpoint, explain};
use delivery::manifest::{Finding, Reading, Severity};
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::subscription::sink::Sink;
use delivery::subscription::{Destination, ReplyTo, Subscription};
use delivery::time::duration::{SECOND_MS, format_ms};
use dispatch::RESPONSE_MARGIN_MS;
use url::Url;

use crate::stack::Stack;
use crate::writable::{Problem, problem};

/// The default of the template parameter `DispatchTimeout`.
pub(crate) const DISPATCH_TIMEOUT_MS: u64 = 120 * SECOND_MS;
/// The field of the dead-letter sink.
const SINK: &str = "deadLetter.sink";

/// Findings about subscriptions without an error. `first` is the file of findings without a known
/// location.
pub(crate) fn lints(
    reading: &Reading,
    first: &str,
    now_ms: u64,
    stack: Option<&Stack>,
) -> anyhow::Result<Vec<Finding>> {
    let cut_to_ms = stack.map(Stack::dispatch_timeout_ms).transpose()?;
    let cut_to_ms = cut_to_ms.map(|timeout_ms| timeout_ms.saturating_sub(RESPONSE_MARGIN_MS));
    let rules = AddressRules::of(stack)?;
    let at = Locations { reading, first };
    let mut lints = Vec::new();
    if reading.catalogue.subscriptions().next().is_none() {
        lints.push(Finding {
            severity: Severity::Warning,
            file: first.to_owned(),
            line: 1,
            column: 1,
            field: String::new(),
            message: "the files contain no subscription without an error".to_owned(),
            help: Some("apply would remove all current subscriptions".to_owned()),
        });
    }
    for subscription in reading.catalogue.subscriptions() {
        let warnings = [
            ("maxAttempts", unreachable_attempts(subscription)),
            ("expirationTimeUtc", expired(subscription, now_ms)),
            ("url", rules.refusal(subscription, "", Some(&subscription.destination.url))),
            ("reply", rules.refusal(subscription, " replies", reply_address(subscription))),
            ("reply", unsubscribed_reply(subscription, reading)),
            (SINK, rules.refusal(subscription, " dead letters", sink_address(subscription))),
            ("responseTimeout", shortened_timeout(subscription, cut_to_ms)),
            ("sharedLimit", limits_that_differ(subscription, reading)),
        ];
        let warnings = warnings
            .into_iter()
            .filter_map(|(field, message)| Some((field, Problem::warning(message?))));
        let sink = stack.and_then(|stack| Some((SINK, problem(subscription, stack)?)));
        for (field, problem) in warnings.chain(sink) {
            lints.push(at.finding(subscription, field, problem));
        }
    }
    Ok(lints)
}

/// The addresses that a deployment sends requests to.
struct AddressRules {
    policy: AddressPolicy,
    /// What happens to requests to other addresses.
    consequence: String,
}

impl AddressRules {
    /// The rules of the stack; without one, of a deployment that allows no private destination.
    fn of(stack: Option<&Stack>) -> anyhow::Result<Self> {
        Ok(match stack {
            Some(stack) => Self {
                policy: AddressPolicy::new(stack.private_destinations()?, OwnAddresses::default()),
                consequence: format!(
                    "that is refused, as AllowPrivateDestinations of the stack {} does not name it",
                    stack.name
                ),
            },
            None => Self {
                policy: AddressPolicy::default(),
                consequence:
                    "that is refused unless ALLOW_PRIVATE_DESTINATIONS of the deployment names it"
                        .to_owned(),
            },
        })
    }

    /// What a subscription sends to a refused address, and what happens then.
    fn refusal(&self, subscription: &Subscription, what: &str, to: Option<&Url>) -> Option<String> {
        let host = match check_address(to?, &self.policy).err()? {
            Refusal::NotPublic(host) => format!("{host}, which is not a public address"),
            Refusal::InClear(host) => format!("{host} without TLS"),
            Refusal::Own(host) => host.to_string(),
            Refusal::NoHost => return None,
        };
        Some(format!("{} sends{what} to {host}; {}", subscription.name, self.consequence))
    }
}

/// Attempts that the file allows but that do not fit into the 14 days of every dialect.
fn unreachable_attempts(subscription: &Subscription) -> Option<String> {
    let unlimited = subscription
        .retry
        .time_to_live_ms
        .is_none_or(|time_to_live_ms| time_to_live_ms >= LIFETIME_MAX_MS);
    let always_fails = Endpoint { always: "500".parse().ok()?, retry_after: None };
    let made = explain(subscription, &always_fails, 0).attempts.len();
    let (name, allowed) = (&subscription.name, subscription.retry.max_attempts);
    let fewer = unlimited && u32::try_from(made).is_ok_and(|made| made < allowed);
    fewer.then(|| {
        format!("{name} allows {allowed} attempts, but {made} fit into the 14 days that a delivery can last")
    })
}

fn expired(subscription: &Subscription, now_ms: u64) -> Option<String> {
    let past = subscription.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms);
    past.then(|| format!("{} has expired and takes no new events", subscription.name))
}

/// The address that replies are sent to.
fn reply_address(subscription: &Subscription) -> Option<&Url> {
    let ReplyTo::Address(url) = subscription.reply.as_ref()? else { return None };
    Some(url)
}

/// The address that dead letters are sent to.
fn sink_address(subscription: &Subscription) -> Option<&Url> {
    let Sink::Address(url) = &subscription.dead_letter.sink else { return None };
    Some(url)
}

/// A reply topic without a subscription.
fn unsubscribed_reply(subscription: &Subscription, reading: &Reading) -> Option<String> {
    let ReplyTo::Topic(topic) = subscription.reply.as_ref()? else { return None };
    let has_subscription = reading.catalogue.subscriptions().any(|of| of.name.topic == *topic);
    (!has_subscription).then(|| {
        format!(
            "replies to {} go to {topic}, which has no subscription: they are lost",
            subscription.name
        )
    })
}

/// Another subscription with the same shared limit and other numbers.
fn limits_that_differ(subscription: &Subscription, reading: &Reading) -> Option<String> {
    let limits = |of: &Subscription| {
        let Destination { max_concurrency, shares_concurrency, max_per_second, .. } =
            of.destination;
        (shares_concurrency.then_some(max_concurrency), max_per_second)
    };
    let shared = subscription.destination.shared_limit.as_ref()?;
    let name = &subscription.name;
    if limits(subscription) == (None, None) {
        return Some(format!(
            "{name} shares the limit {shared}, but has neither maxConcurrency nor maxPerSecond"
        ));
    }
    let is_other = |other: &&Subscription| {
        other.destination.shared_limit.as_ref() == Some(shared)
            && other.name.topic.namespace == name.topic.namespace
            && limits(other) != limits(subscription)
    };
    let other = reading.catalogue.subscriptions().map(AsRef::as_ref).find(is_other)?;
    Some(format!(
        "{name} and {} share the limit {shared}, but not maxConcurrency and maxPerSecond",
        other.name
    ))
}

/// What sending would do. Names are not resolved, except that `localhost` and its subdomains are
/// always this machine (RFC 6761, 6.3).
fn check_address(url: &Url, policy: &AddressPolicy) -> Result<(), Refusal> {
    let kind = policy.admit(url)?;
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_end_matches('.');
    let is_local = name == "localhost" || name.ends_with(".localhost");
    if is_local { policy.judge(kind, host, &[IpAddr::V4(Ipv4Addr::LOCALHOST)]) } else { Ok(()) }
}

fn shortened_timeout(subscription: &Subscription, cut_to_ms: Option<u64>) -> Option<String> {
    let cut_to_ms = cut_to_ms?;
    let timeout_ms = subscription.destination.response_timeout_ms;
    let (name, timeout, most) = (&subscription.name, format_ms(timeout_ms), format_ms(cut_to_ms));
    (timeout_ms > cut_to_ms).then(|| {
        format!("{name} has a response timeout of {timeout}, but the stack shortens it to {most}, DispatchTimeout less 15 s")
    })
}

/// Finds the location of a field.
struct Locations<'a> {
    reading: &'a Reading,
    first: &'a str,
}

impl Locations<'_> {
    /// A finding at the field, else at any field of the subscription, else at the beginning of the
    /// first file.
    fn finding(&self, subscription: &Subscription, field: &str, problem: Problem) -> Finding {
        let Problem { severity, message, help } = problem;
        let stated = self.reading.origins.get(&subscription.name);
        let stated =
            stated.and_then(|origins| origins.get(field).or_else(|| origins.values().next()));
        let beginning = || (self.first.to_owned(), 1, 1);
        let (file, line, column) =
            stated.and_then(|origin| location(origin)).unwrap_or_else(beginning);
        Finding { severity, file, line, column, field: field.to_owned(), message, help }
    }
}

/// The parts of the first `file:line:column`; an origin may list several, separated by commas.
fn location(origin: &str) -> Option<(String, u64, u64)> {
    // From the right, because a path may contain colons.
    let (rest, column) = origin.split(", ").next()?.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?, column.parse().ok()?))
}
