//! `lastmile explain`: shows the attempts and the end of a delivery whose endpoint always responds
//! in the same way. With an event, explains which subscriptions match the event ([`event`]).
//!
//! Runs the production state machine (`delivery::explain`), which computes all waits. Shows the
//! result as a table for people or as JSON for tools. With the table of a deployment, the output
//! includes the current state of the destination. With `--origins`, it includes the origin of each
//! value.
//!
//! The subscriptions come from files or from a deployment ([`asked`]). If the arguments name a
//! topic of a deployment, only this topic is read.

mod asked;
mod event;
mod event_text;
mod json;
mod table;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::live_topics::Location;
use adapters::machine::Machine;
use delivery::delivery::outcome::retry_after_ms;
use delivery::explain::{Always, Endpoint, Life, ProbationTerms, explain, probation};
use delivery::machine::reply::HOPS_MAX;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::policy::{Setting, settings};
use delivery::time::duration::format_ms;
use dispatch::RESPONSE_MARGIN_MS;

use self::asked::{Asked, Named};
use crate::operations::destinations::{Now, states_now};
use crate::operations::files::{Files, print_findings};
use crate::operations::lints::DISPATCH_TIMEOUT_MS;
use crate::operations::named::{listed, named};
use crate::operations::place::{DestinationsPlace, Place};
use crate::operations::topics::{self, Deployed, Wanted};
use crate::terminal::help::{FILES, OUTPUT, examples};
use crate::terminal::output::{Output, note, out, out_json};
use crate::terminal::usage::usage_error;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/subscribe.md",
        "lastmile explain subscriptions.yaml --outcome 503",
        "lastmile explain subscriptions/ shop/orders/billing --origins",
        "lastmile explain shop/orders/billing --stack orders-prod",
        "lastmile explain subscriptions.yaml --event event.json",
    )
)]
pub(crate) struct Arguments {
    /// Subscription files, or folders with subscription files, and topics or subscriptions to
    /// explain
    ///
    /// Without files, --to or --stack names the deployment to explain. With a stack, a table or a
    /// folder of `lastmile dev`, explain also shows the current states of destinations.
    #[arg(
        value_name = "FILE|NS/TOPIC[/NAME]",
        required_unless_present_any = ["to", "stack", "more_files"]
    )]
    files_or_names: Vec<PathBuf>,
    /// Subscription files, like the argument FILE
    #[arg(short = 'f', long = "file", num_args = 1.., value_name = "FILE", help_heading = FILES)]
    more_files: Vec<PathBuf>,
    /// Explain only this subscription
    #[arg(long, value_name = "NS/TOPIC/NAME")]
    subscription: Option<SubscriptionName>,
    #[command(flatten)]
    place: DestinationsPlace,
    /// Show which subscriptions get the events of this file and why, and show the resulting
    /// requests; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["outcome", "retry_after"])]
    event: Option<String>,
    /// With --event, show only the subscriptions of this topic
    #[arg(long, value_name = "NS/TOPIC", requires = "event", conflicts_with_all = ["subscription", "outcome", "retry_after", "origins"])]
    topic: Option<TopicName>,
    /// Outcome of every attempt: a status, timeout, refused, reset, dns, tls, blocked, or an
    /// outcome of dead letters such as Busy
    #[arg(long, value_name = "OUTCOME", default_value = "500")]
    outcome: Always,
    /// Retry-After header of every response: seconds or an HTTP date
    #[arg(long, value_name = "VALUE")]
    retry_after: Option<String>,
    /// Also show where each value comes from: a line of a file, a default, or the owner
    #[arg(long, conflicts_with = "event")]
    origins: bool,
    /// Output format
    #[arg(long, default_value = "table", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

/// The data that every output format shows: a subscription, and the attempts and the end of a
/// simulated delivery.
struct Explained {
    subscription: Arc<Subscription>,
    policy: Vec<Setting>,
    /// The origin of each setting's value; `None` without `--origins`.
    origins: Option<Vec<String>>,
    life: Life,
    /// The conditions under which the destination is put on probation; `None` if probation is off.
    probation: Option<ProbationTerms>,
    /// The current state of the destination, if requested.
    now: Option<Now>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let place = Place::from(arguments.place.clone());
    let Asked { files, name } = Asked::from_arguments(&arguments, &place)?;
    let name = name.as_ref();
    let Known { catalogue, selected, origins } = if files.is_empty() {
        of_deployment(name, &place, arguments.event.is_some()).await?
    } else {
        let Some(reading) = Files::read(&files)?.valid_reading() else {
            return Ok(ExitCode::FAILURE);
        };
        let selected = selected(&reading.catalogue, name)?;
        let origins = Origins::Files(reading.origins);
        Known { catalogue: reading.catalogue, selected, origins }
    };
    if let Some(file) = &arguments.event {
        let topics = topics(name, &catalogue);
        return event::run(file, &catalogue, &topics, &selected, arguments.output);
    }
    let now_ms = Machine.now_ms();
    if let Some(text) =
        arguments.retry_after.as_deref().filter(|text| retry_after_ms(text, now_ms).is_none())
    {
        return Err(usage_error(format!(
            "--retry-after {text:?} must be a number of seconds or an HTTP date"
        )));
    }
    let endpoint = Endpoint { always: arguments.outcome, retry_after: arguments.retry_after };
    let now = states_now(place.named_table().await?.as_ref(), &selected).await?;
    let explained: Vec<Explained> = selected
        .into_iter()
        .zip(now)
        .map(|(subscription, now)| Explained {
            life: explain(&subscription, &endpoint, now_ms),
            policy: settings(&subscription),
            origins: arguments.origins.then(|| origins.of_settings(&subscription)),
            probation: probation(&subscription, &endpoint),
            subscription,
            now,
        })
        .collect();
    warn(&explained);
    match arguments.output {
        Output::Table => out(&table::write(&explained, &endpoint))?,
        Output::Json => out_json(&json::write(&explained)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The subscriptions to explain, and all subscriptions of the same source.
struct Known {
    catalogue: Catalogue,
    selected: Vec<Arc<Subscription>>,
    origins: Origins,
}

/// Returns the topics for which an event is explained: the named topic, or all topics.
fn topics(name: Option<&Named>, catalogue: &Catalogue) -> BTreeSet<TopicName> {
    match name {
        Some(name) => [name.topic.clone()].into(),
        None => catalogue.topics().map(|topic| topic.name.clone()).collect(),
    }
}

/// Returns the named subscription, all subscriptions of the named topic, or, without a name, all
/// subscriptions.
fn selected(catalogue: &Catalogue, name: Option<&Named>) -> anyhow::Result<Vec<Arc<Subscription>>> {
    match name {
        None => Ok(catalogue.subscriptions().cloned().collect()),
        Some(Named { subscription: Some(name), .. }) => Ok(vec![named(catalogue, name)?]),
        Some(Named { topic, .. }) => {
            let of_topic = catalogue.topic_subscriptions(topic).ok_or_else(|| {
                let names = catalogue.topics().map(|known_topic| known_topic.name.to_string());
                usage_error(format!("there is no topic {topic}{}", listed(names)))
            })?;
            Ok(of_topic.subscriptions().cloned().collect())
        }
    }
}

/// Reads the named subscription of a deployment, all subscriptions of the named topic, or, without
/// a name, all subscriptions. Unreadable objects are reported, but do not fail the command. With
/// `is_followed`, also reads the topics to which the topic's subscriptions forward events.
async fn of_deployment(
    name: Option<&Named>,
    place: &Place,
    is_followed: bool,
) -> anyhow::Result<Known> {
    let location = place.subscriptions().await?;
    let deployed = match name {
        Some(name) => read_onward(&location, &name.topic, is_followed).await?,
        None => topics::read(&location, Wanted::All).await?,
    };
    print_findings(&deployed.reading.findings);
    let selected = match name {
        None => deployed.reading.catalogue.subscriptions().cloned().collect(),
        Some(Named { subscription: Some(name), .. }) => {
            vec![Arc::clone(deployed.subscription(name)?)]
        }
        Some(Named { topic, .. }) => {
            let of_topic = deployed.reading.catalogue.topic_subscriptions(topic);
            let of_topic = of_topic.ok_or_else(|| {
                usage_error(format!("there is no topic {topic} in {}", deployed.source))
            })?;
            of_topic.subscriptions().cloned().collect()
        }
    };
    let origins = Origins::Owners(deployed.owners);
    Ok(Known { catalogue: deployed.reading.catalogue, selected, origins })
}

/// Reads the subscriptions of a topic. With `is_followed`, also reads the topics to which the
/// subscriptions forward events, recursively.
async fn read_onward(
    location: &Location,
    topic: &TopicName,
    is_followed: bool,
) -> anyhow::Result<Deployed> {
    let mut topics = BTreeSet::from([topic.clone()]);
    for _ in 0..HOPS_MAX {
        let deployed = topics::read(location, Wanted::Topics(topics.clone())).await?;
        let before = topics.len();
        let subscriptions = deployed.reading.catalogue.subscriptions();
        topics.extend(subscriptions.filter_map(|subscription| subscription.destination.topic()));
        if !is_followed || topics.len() == before {
            return Ok(deployed);
        }
    }
    topics::read(location, Wanted::Topics(topics)).await
}

/// The origins of the values of settings, in files or in a deployment.
enum Origins {
    /// The location of each field in the files.
    Files(BTreeMap<SubscriptionName, dialects::Origins>),
    /// The owner of each subscription in the deployment.
    Owners(BTreeMap<SubscriptionName, Arc<str>>),
}

impl Origins {
    /// Returns the origin of every setting: the location of its field, the profile that defines its
    /// default, or the owner who applied it.
    fn of_settings(&self, subscription: &Subscription) -> Vec<String> {
        let name = &subscription.name;
        let from = |setting: &Setting| match self {
            Self::Files(origins) => {
                let stated = origins.get(name).and_then(|origins| origins.get(&setting.field));
                let default =
                    || format!("default of the {} profile", subscription.dialect.as_str());
                stated.cloned().unwrap_or_else(default)
            }
            Self::Owners(owners) => {
                format!("applied by {:?}", owners.get(name).map_or("", AsRef::as_ref))
            }
        };
        settings(subscription).iter().map(from).collect()
    }
}

/// Warns of settings that the defaults of the template would limit in a deployment.
fn warn(explained: &[Explained]) {
    let longest_ms = DISPATCH_TIMEOUT_MS - RESPONSE_MARGIN_MS;
    for Explained { subscription, .. } in explained {
        let timeout_ms = subscription.destination.response_timeout_ms;
        if timeout_ms > longest_ms {
            note(format_args!(
                "warning: {}: a response timeout of {} is shortened to {} unless DispatchTimeout is raised",
                subscription.name,
                format_ms(timeout_ms),
                format_ms(longest_ms)
            ));
        }
    }
}
