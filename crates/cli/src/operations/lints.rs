//! Lints: findings about valid subscriptions that will not behave as their author expects.
//!
//! Separate from the parser because a lint needs more than the files. Some lints need the times of
//! all attempts, to find attempts that do not fit into 14 days. Others need the current time, to
//! find expired subscriptions. Others need a deployment, to find a response timeout that the stack
//! shortens, a refused address, or a sink that the functions may not write to (`writable`).
//!
//! Most lints are warnings. These are errors: an unwritable sink, a refused AWS target
//! (`aws_targets`), a public address without TLS, and a sample that cannot be rendered.
//!
//! No lint checks that secrets exist, because the person who runs the check may not be permitted to
//! read them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use adapters::live_topics::SETTINGS;
use adapters::settings::ALLOW_PRIVATE_DESTINATIONS;
use anyhow::Context as _;
use delivery::address::{
    AddressPolicy, OwnAddresses, PrivateDestinations, Refusal, is_public_host,
};
use delivery::subscription::auth::TokenSource;
use delivery::subscription::catalogue::{Catalogue, Settings};
use delivery::subscription::name::TopicName;
use delivery::subscription::profile::LIFETIME_MAX_MS;
use delivery::subscription::sink::Sink;
use delivery::subscription::{Destination, ReplyTo, Subscription};
use delivery::time::duration::{SECOND_MS, format_ms};
use dialects::{Finding, Reading};
use dispatch::RESPONSE_MARGIN_MS;
use url::Url;

use crate::operations::attempts::Attempts;
use crate::operations::aws_targets::TargetRules;
use crate::operations::files::sort_findings;
use crate::operations::locations::Locations;
use crate::operations::missing_destinations::has_placeholder;
use crate::operations::rendered_samples::unrendered;
use crate::operations::stack::Stack;
use crate::operations::writable::{Problem, problem};

/// The default of the template parameter `DispatchTimeout`.
pub(crate) const DISPATCH_TIMEOUT_MS: u64 = 60 * SECOND_MS;
/// The name of the field to which findings about a dead-letter sink refer.
const SINK: &str = "deadLetter.sink";

/// Returns the findings of parsing together with lints, sorted by position. A finding about all
/// files has no position, and comes last.
///
/// # Errors
/// If the limits of the stack or of the environment are invalid.
pub(crate) fn with_lints<'a>(
    reading: &Reading,
    names: impl Iterator<Item = &'a str> + Clone,
    now_ms: u64,
    stack: Option<&Stack>,
) -> anyhow::Result<Vec<Finding>> {
    let first = names.clone().next().unwrap_or_default();
    let at = Locations { reading, first };
    let find = |subscription: &Subscription, field: &str, problem| {
        at.finding(subscription, field, problem)
    };
    let mut findings = reading.findings.clone();
    findings.extend(lints_at(&reading.catalogue, now_ms, stack, find)?);
    sort_findings(names, &mut findings);
    if reading.catalogue.subscriptions().next().is_none() {
        let none = "the files contain no valid subscription".to_owned();
        findings.push(Problem::warning(none).in_file(first.to_owned(), ""));
    }
    Ok(findings)
}

/// Returns lints about the subscriptions in a catalogue. `find` converts a problem with a field to
/// a finding.
pub(crate) fn lints_at(
    catalogue: &Catalogue,
    now_ms: u64,
    stack: Option<&Stack>,
    find: impl Fn(&Subscription, &str, Problem) -> Finding,
) -> anyhow::Result<Vec<Finding>> {
    let cut_to_ms = stack.map(Stack::dispatch_timeout_ms).transpose()?;
    let cut_to_ms = cut_to_ms.map(|timeout_ms| timeout_ms.saturating_sub(RESPONSE_MARGIN_MS));
    let rules = AddressRules::load(stack)?;
    let targets = TargetRules::load(stack)?;
    let concurrency = StatedLimits::concurrency(catalogue);
    let rate = StatedLimits::rate(catalogue);
    let mut attempts = Attempts::default();
    let mut lints = Vec::new();
    for subscription in catalogue.subscriptions() {
        let warnings = [
            ("maxAttempts", unreachable_attempts(subscription, &mut attempts)),
            ("expirationTimeUtc", expired(subscription, now_ms)),
            ("reply", unsubscribed_reply(subscription, catalogue)),
            ("url", unsubscribed_destination(subscription, catalogue)),
            ("timeout", shortened_timeout(subscription, cut_to_ms)),
            (concurrency.field, concurrency.problem(subscription)),
            (rate.field, rate.problem(subscription)),
            ("url", placeholder(subscription)),
            ("auth", stack.and_then(|stack| without_identity(subscription, stack))),
        ];
        let warnings = warnings
            .into_iter()
            .filter_map(|(field, message)| Some((field, Problem::warning(message?))));
        let addresses = [
            ("url", "", Some(subscription.destination.receiver())),
            ("auth", " a client's secret", token_server(subscription)),
            ("reply", " replies", reply_address(subscription)),
            (SINK, " dead letters", sink_address(subscription)),
        ];
        let addresses = addresses.into_iter().filter_map(|(field, content, to)| {
            Some((field, rules.refusal(subscription, content, to?)?))
        });
        let sink = stack.and_then(|stack| Some((SINK, problem(subscription, stack)?)));
        let target = targets.as_ref().and_then(|rules| Some(("aws", rules.problem(subscription)?)));
        let unrendered = unrendered(subscription, catalogue, now_ms);
        let problems = warnings.chain(addresses).chain(sink).chain(target).chain(unrendered);
        for (field, problem) in problems {
            lints.push(find(subscription, field, problem));
        }
    }
    Ok(lints)
}

/// Returns findings about the settings of a deployment, which may name topics that other owners
/// have removed.
pub(crate) fn lints_of_settings(catalogue: &Catalogue) -> Vec<Finding> {
    let Settings { publishers, notices, .. } = catalogue.settings();
    let lost = publishers.iter().filter(|(_, topic)| catalogue.topic(topic).is_none());
    let lost = lost.map(|(publisher, topic)| {
        format!("the publisher {publisher} belongs to the topic {topic}, which does not exist: records of this publisher become dead letters")
    });
    let unread = notices.iter().filter(|topic| has_no_subscription(topic, catalogue));
    let unread = unread.map(|topic| {
        format!(
            "notices are published to {topic}, which has no valid subscription: nobody receives \
             them"
        )
    });
    let find = |message| Problem::warning(message).in_file(SETTINGS.to_owned(), "");
    lost.chain(unread).map(find).collect()
}

/// The rules that decide to which addresses a deployment sends requests.
pub(crate) struct AddressRules {
    policy: AddressPolicy,
    /// The consequence of a refused address, for messages.
    consequence: String,
    /// The change that allows a refused address, for advice.
    allowance: String,
}

impl AddressRules {
    /// Reads the rules of a stack. Without a stack, allows the private destinations that
    /// `ALLOW_PRIVATE_DESTINATIONS` of this machine lists.
    ///
    /// # Errors
    /// If the private destinations of the stack or of the environment are invalid.
    pub(crate) fn load(stack: Option<&Stack>) -> anyhow::Result<Self> {
        Ok(match stack {
            Some(stack) => Self {
                policy: AddressPolicy::new(stack.private_destinations()?, OwnAddresses::default()),
                consequence: format!(
                    "this is refused, because AllowPrivateDestinations of the stack {} does not \
                     list the host",
                    stack.name
                ),
                allowance: "add the host to the parameter AllowPrivateDestinations of the stack"
                    .to_owned(),
            },
            None => Self {
                policy: AddressPolicy::new(allowed_here()?, OwnAddresses::default()),
                consequence:
                    "this is refused unless ALLOW_PRIVATE_DESTINATIONS of the deployment lists the \
                     host"
                        .to_owned(),
                allowance: "specify the stack with --stack, or set ALLOW_PRIVATE_DESTINATIONS as \
                            in the deployment"
                    .to_owned(),
            },
        })
    }

    pub(crate) fn refuse(&self, to: &Url) -> bool {
        check_address(to, &self.policy).is_err()
    }

    /// Returns the problem if requests to this address are refused. A public address without TLS is
    /// an error, because that is always a mistake. A private address is only a warning, because the
    /// deployment may allow it.
    fn refusal(&self, subscription: &Subscription, content: &str, to: &Url) -> Option<Problem> {
        let refusal = check_address(to, &self.policy).err()?;
        let host = match &refusal {
            Refusal::NotPublic(host) => format!("{host}, which is not a public address"),
            Refusal::InClear(host) => format!("{host} without TLS"),
            Refusal::Own(host) => host.to_string(),
            Refusal::NoHost => return None,
        };
        let message =
            format!("{} sends{content} to {host}; {}", subscription.name, self.consequence);
        Some(if matches!(refusal, Refusal::InClear(_)) && is_public_host(to) {
            Problem::refused(message, format!("use https, or {}", self.allowance))
        } else {
            Problem::warning(message)
        })
    }
}

/// Warns if the policy allows attempts that do not fit into 14 days, the time limit of every
/// dialect.
fn unreachable_attempts<'a>(
    subscription: &'a Subscription,
    attempts: &mut Attempts<'a>,
) -> Option<String> {
    let policy = &subscription.retry;
    if subscription.destination.topic().is_some() {
        // Events for a topic are forwarded without an attempt.
        return None;
    }
    if policy.time_to_live_ms.is_some_and(|time_to_live_ms| time_to_live_ms < LIFETIME_MAX_MS) {
        return None;
    }
    let made = attempts.tries(subscription).attempts;
    let (name, allowed) = (&subscription.name, policy.max_attempts);
    u32::try_from(made).is_ok_and(|made| made < allowed).then(|| {
        format!(
            "{name} allows {allowed} attempts, but only {made} fit into 14 days, the maximum \
             duration of a delivery"
        )
    })
}

fn expired(subscription: &Subscription, now_ms: u64) -> Option<String> {
    let past = subscription.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms);
    past.then(|| format!("{} has expired and accepts no new events", subscription.name))
}

/// Warns if the destination is a placeholder from `check --write-destinations`.
fn placeholder(subscription: &Subscription) -> Option<String> {
    has_placeholder(subscription).then(|| {
        format!(
            "the destination of {} is a placeholder: replace it with a real address",
            subscription.name
        )
    })
}

/// Warns if the stack cannot sign the requests to a destination, or may not request the AWS
/// identity token that the destination needs.
fn without_identity(subscription: &Subscription, stack: &Stack) -> Option<String> {
    let (name, destination) = (&subscription.name, &subscription.destination);
    let missing = if destination.signing_scope().is_some() && !stack.signs_requests() {
        format!("requires signed requests, but the stack {} has no InvokeRoleArn", stack.name)
    } else if let Some(TokenSource::Aws(identity)) = destination.token_source()
        && !stack.identity_audiences().any(|audience| audience == identity.audience)
    {
        let audience = &identity.audience;
        format!(
            "uses a token for {audience}, which IdentityAudiences of the stack {} does not list",
            stack.name
        )
    } else {
        return None;
    };
    Some(format!("{name} {missing}: all attempts are aborted"))
}

fn token_server(subscription: &Subscription) -> Option<&Url> {
    match subscription.destination.token_source()? {
        TokenSource::Client(client) => Some(&client.token_url),
        TokenSource::Aws(_) => None,
    }
}

fn reply_address(subscription: &Subscription) -> Option<&Url> {
    let ReplyTo::Address(url) = subscription.reply.as_ref()? else { return None };
    Some(url)
}

fn sink_address(subscription: &Subscription) -> Option<&Url> {
    let Sink::Address(url) = &subscription.dead_letter.sink else { return None };
    Some(url)
}

/// Warns if replies go to a topic without subscriptions.
fn unsubscribed_reply(subscription: &Subscription, catalogue: &Catalogue) -> Option<String> {
    let ReplyTo::Topic(topic) = subscription.reply.as_ref()? else { return None };
    has_no_subscription(topic, catalogue).then(|| {
        format!(
            "replies to {} go to {topic}, which has no valid subscription: nobody receives them",
            subscription.name
        )
    })
}

/// Warns if the destination is a topic without subscriptions.
fn unsubscribed_destination(subscription: &Subscription, catalogue: &Catalogue) -> Option<String> {
    let topic = subscription.destination.topic()?;
    has_no_subscription(&topic, catalogue).then(|| {
        format!(
            "events of {} are forwarded to {topic}, which has no valid subscription: nobody \
             receives them",
            subscription.name
        )
    })
}

fn has_no_subscription(topic: &TopicName, catalogue: &Catalogue) -> bool {
    catalogue.topic_subscriptions(topic).is_none_or(|subscriptions| subscriptions.is_empty())
}

/// A limit that subscriptions may set for their address. Functions count requests by address, so
/// subscriptions with the same address share their limits. For each address, this struct contains
/// the first subscription that sets the limit, and the first one that sets a different value.
struct StatedLimits<'a> {
    field: &'static str,
    number: fn(&Destination) -> Option<u32>,
    by_address: HashMap<&'a str, (&'a Subscription, Option<&'a Subscription>)>,
}

impl<'a> StatedLimits<'a> {
    fn concurrency(catalogue: &'a Catalogue) -> Self {
        Self::collect(catalogue, "maxConcurrency", |to| to.max_concurrency.shared())
    }

    fn rate(catalogue: &'a Catalogue) -> Self {
        Self::collect(catalogue, "maxPerSecond", |to| to.max_per_second)
    }

    fn collect(
        catalogue: &'a Catalogue,
        field: &'static str,
        number: fn(&Destination) -> Option<u32>,
    ) -> Self {
        let mut by_address = HashMap::new();
        for subscription in catalogue.subscriptions() {
            let destination = &subscription.destination;
            // A topic as destination receives no requests.
            if number(destination).is_none() || destination.topic().is_some() {
                continue;
            }
            let address = destination.url.as_str();
            let (first, other) = by_address.entry(address).or_insert((subscription.as_ref(), None));
            if other.is_none() && number(&first.destination) != number(destination) {
                *other = Some(subscription.as_ref());
            }
        }
        Self { field, number, by_address }
    }

    /// Returns the problem if another subscription with the same address sets a different value of
    /// the limit.
    fn problem(&self, subscription: &Subscription) -> Option<String> {
        let Self { field, number, by_address } = self;
        let stated = number(&subscription.destination)?;
        let (first, other) = by_address.get(subscription.destination.url.as_str())?;
        let is_first = number(&first.destination) == Some(stated);
        let other = if is_first { (*other)? } else { first };
        let others = number(&other.destination)?;
        Some(format!(
            "{} and {} share the {field} of their address, but set {stated} and {others}: use the \
             same value",
            subscription.name, other.name
        ))
    }
}

/// Returns the private destinations that the environment of this command allows.
fn allowed_here() -> anyhow::Result<PrivateDestinations> {
    let Ok(text) = std::env::var(ALLOW_PRIVATE_DESTINATIONS) else {
        return Ok(PrivateDestinations::default());
    };
    PrivateDestinations::parse(&text)
        .map_err(anyhow::Error::msg)
        .context(ALLOW_PRIVATE_DESTINATIONS)
}

/// Checks an address as the sender does, but does not resolve names. The exception is `localhost`
/// and its subdomains, which always mean this machine (RFC 6761, 6.3).
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
        format!(
            "{name} has a response timeout of {timeout}, but the stack shortens it to {most} \
             (DispatchTimeout minus 15 s)"
        )
    })
}
