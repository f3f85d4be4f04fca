//! `lastmile try`: sends the request that dispatch would send for an event, once and from this
//! machine, and describes the next step of the delivery.
//!
//! Calls the functions of dispatch to build and send the request, and to evaluate the response.
//! Separate from `explain`, which sends nothing, and from `publish`, which needs a deployment:
//! `try` tests an endpoint before anything is deployed. The address policy of this machine applies.
//!
//! With `--consent` it validates endpoints instead ([`consent`]).
//!
//! Promises:
//!
//! - It sends one request to the destination, and one more with another token if the destination
//!   refuses the token, as dispatch does.
//! - With `--print` it sends nothing.
//! - Environment variables are used only with permission ([`crate::operations::environment`]). An
//!   unset variable is reported before anything is sent.
//! - No credential is printed.
//! - The same event gives the same `webhook-id`.
//!
//! Exit code 0 means that the event would be delivered, or that `--print` printed the request; 1
//! that the event would not be delivered.

mod consent;
mod curl;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::aws_identity::Identity;
use adapters::machine::Machine;
use delivery::delivery::outcome::{Exchange, TransportResult, Unsendable};
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Element, Input};
use delivery::explain::event_matches;
use delivery::machine::step::{Arrival, arrive, group};
use delivery::ports::Clock as _;
use delivery::request::{self, AttemptContext, Request};
use delivery::subscription::Subscription;
use delivery::subscription::aws::AwsService;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::credentials::Credentials;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::secret::Keyring;
use delivery::subscription::topic_settings::TopicSettings;
use dialects::{Finding, Reading, Severity};

use self::consent::ConsentArgs;
use self::curl::CurlCommand;
use self::report::Report;
use crate::operations::aws_targets::TargetRules;
use crate::operations::environment::{EnvironmentArgs, receivers};
use crate::operations::event_files::{documents, text_of};
use crate::operations::event_report::elements;
use crate::operations::files::{Files, print_findings};
use crate::operations::from_here::FromHere;
use crate::operations::locations::Locations;
use crate::operations::named::named;
use crate::operations::sample_events::sample_for;
use crate::operations::unset_secrets::unset_secrets;
use crate::terminal::help::{FILES, examples};
use crate::terminal::output::{note, out};
use crate::terminal::text;
use crate::terminal::usage::usage_error;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/subscribe.md",
        "lastmile try -f subscriptions.yaml shop/orders/billing",
        "lastmile try -f subscriptions.yaml shop/orders/billing --event order.json \\\n      --env BILLING_TOKEN",
        "lastmile try -f subscriptions.yaml shop/orders/billing --print",
        "lastmile try --consent --stack orders-prod shop/orders/billing",
        "lastmile try --consent -f subscriptions.yaml --listen 127.0.0.1:8088",
    )
)]
pub(crate) struct Arguments {
    /// Subscription to test
    ///
    /// With --consent, any number of subscriptions; if none is named, all that require consent.
    #[arg(value_name = "NS/TOPIC/NAME", required_unless_present = "consent")]
    names: Vec<SubscriptionName>,
    /// Subscription file, or folder with subscription files. Repeatable
    #[arg(short = 'f', long = "file", required_unless_present_any = ["to", "stack"], value_name = "FILE", help_heading = FILES)]
    files: Vec<PathBuf>,
    /// Send the event of this file; - is standard input
    ///
    /// If the subscription batches events, the file may contain several events.
    #[arg(long, value_name = "FILE", conflicts_with = "sample")]
    event: Option<String>,
    /// Send the sample of the topic, or a generated event if it has none. This is the default
    /// without --event
    #[arg(long)]
    sample: bool,
    /// Send nothing; print the request as a curl command, which reads secrets from shell variables
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    environment: EnvironmentArgs,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.environment.check_names()?;
    if arguments.consent.consent {
        return consent::run(arguments).await;
    }
    let [name] = arguments.names.as_slice() else {
        return Err(usage_error("try sends one request: specify one subscription"));
    };
    let Some(reading) = Files::read(&arguments.files)?.valid_reading() else {
        return Ok(ExitCode::FAILURE);
    };
    let catalogue = &reading.catalogue;
    let subscription = named(catalogue, name)?;
    let mut problems = unset_secrets(&reading, [subscription.as_ref()], Severity::Error, |name| {
        std::env::var(name).ok()
    });
    if !arguments.print {
        problems.extend(refused_target(&reading, &subscription)?);
    }
    if !problems.is_empty() {
        print_findings(&problems);
        note("nothing was sent");
        return Ok(ExitCode::FAILURE);
    }
    let now_ms = Machine.now_ms();
    let deliveries = deliveries(catalogue, &subscription, arguments.event.as_deref(), now_ms)?;
    warn(catalogue, &subscription, &deliveries, now_ms)?;
    let allowed = arguments.environment.allow(&receivers([subscription.as_ref()]))?;
    let identity = match arguments.print {
        true => Identity::of_person(|_| false),
        false => arguments.environment.identity([subscription.as_ref()])?,
    };
    let from_here = FromHere::new(allowed, identity, &catalogue.settings().secrets)?;
    let attempt = Attempt::new(&subscription, &deliveries);
    if arguments.print {
        return attempt.print(&from_here).await;
    }
    let made = attempt.make(&from_here).await;
    drop(attempt);
    let report = Report::new(catalogue, &subscription, deliveries, &made);
    out(&report.text)?;
    Ok(if report.is_delivered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the error if `AWS_TARGETS` does not list the AWS target of a subscription.
fn refused_target(
    reading: &Reading,
    subscription: &Subscription,
) -> anyhow::Result<Option<Finding>> {
    let problem = TargetRules::here()?.problem(subscription);
    let at = Locations { reading, first: "" };
    Ok(problem.map(|problem| at.finding(subscription, "aws", problem)))
}

/// Creates the deliveries in the request: one, or several if the subscription batches events.
fn deliveries(
    catalogue: &Catalogue,
    subscription: &Arc<Subscription>,
    event: Option<&str>,
    now_ms: u64,
) -> anyhow::Result<Vec<Delivery>> {
    let topic = &subscription.name.topic;
    let settings = catalogue.topic(topic).map(|topic| &topic.settings);
    let input = settings.map_or(Input::Auto, |settings| settings.input);
    let (file, text) = match (event, settings.and_then(TopicSettings::sample_text)) {
        (Some(file), _) => (file, text_of(file)?),
        (None, Some(sample)) => ("the sample", sample),
        (None, None) => ("the sample", sample_for(subscription, input)?),
    };
    let documents = match input {
        // For opaque input, any text is one event.
        Input::Opaque => vec![(1, text.as_str().into())],
        Input::Auto
        | Input::CloudEvents
        | Input::EventGrid
        | Input::Custom
        | Input::Sns
        | Input::SnsWhole
        | Input::EventBridge
        | Input::S3 => documents(&text),
    };
    let mut deliveries = Vec::new();
    for (line, document) in documents {
        for (index, element) in (0..).zip(elements(catalogue, topic, &document)) {
            let event = match element {
                Element::Event(event) => event,
                Element::Malformed { why, .. } => {
                    let problem = format!("{file}:{line}: not a valid event of {topic}: {why}");
                    return Err(usage_error(text::line(&problem)));
                }
            };
            // Use the document instead of a message id, so that the same event gives the same
            // delivery id.
            let origin = Origin { message: document.to_string(), index };
            let delivery = Delivery::new(event, subscription.name.clone(), origin, now_ms);
            deliveries.push((Arc::clone(subscription), Box::new(delivery)));
        }
    }
    let mut groups = group(deliveries, now_ms);
    match (groups.pop(), groups.len()) {
        (Some(group), 0) => Ok(group.members.into_iter().map(|delivery| *delivery).collect()),
        (None, _) => Err(usage_error(format!("{} contains no event", text::line(file)))),
        (Some(_), more) => Err(usage_error(format!(
            "the events of {} require {} requests to {}, but try sends only one: use a file with \
             one event",
            text::line(file),
            more + 1,
            subscription.name
        ))),
    }
}

/// Prints a warning if dispatch would not send this request now.
fn warn(
    catalogue: &Catalogue,
    subscription: &Subscription,
    deliveries: &[Delivery],
    now_ms: u64,
) -> anyhow::Result<()> {
    let (name, running) =
        (&subscription.name, Subscription { paused: false, ..subscription.clone() });
    for delivery in deliveries {
        match arrive(delivery, &running, now_ms) {
            Arrival::Forward(topic) => {
                return Err(usage_error(format!(
                    "{name} makes no request, because events are forwarded to the topic {topic}; \
                     try a subscription of that topic"
                )));
            }
            Arrival::Ended(reason) => {
                note(format_args!("{name}: dispatch would not send a request: {reason}"));
            }
            Arrival::Attempt | Arrival::NotDue { .. } => {}
        }
        let matches = event_matches(catalogue, &name.topic, &delivery.event, now_ms);
        if matches
            .iter()
            .any(|candidate| candidate.subscription.name == *name && !candidate.matches)
        {
            let id = delivery.event.members().id().unwrap_or_default();
            note(text::line(&format!(
                "{name} does not receive the event {id}, because the filter does not match or the \
                 subscription has expired; see explain --event"
            )));
        }
    }
    if subscription.paused {
        note(format_args!("{name} is paused: dispatch would not send a request"));
    }
    if subscription.destination.consent.is_some() {
        note(format_args!(
            "{name}: dispatch sends requests only after the endpoint has consented; use try \
             --consent"
        ));
    }
    Ok(())
}

struct Attempt<'a> {
    subscription: &'a Subscription,
    deliveries: Vec<&'a Delivery>,
}

/// The result of an attempt: the request, the response, and the credentials that were sent.
struct Made {
    /// The request that was sent last.
    request: Result<Request, Unsendable>,
    exchange: Exchange,
    /// The credentials that this machine sends, and the secrets from which they are derived.
    credentials: Credentials,
    /// True if the destination refused a token, and the request was repeated with another one.
    is_second: bool,
}

impl<'a> Attempt<'a> {
    fn new(subscription: &'a Subscription, deliveries: &'a [Delivery]) -> Self {
        Self { subscription, deliveries: deliveries.iter().collect() }
    }

    fn compose(&self, keyring: &Keyring, timeout_ms: u64) -> Result<Request, Unsendable> {
        let context = AttemptContext { keyring, now_ms: Machine.now_ms(), timeout_ms };
        request::compose(self.subscription, &self.deliveries, context)
    }

    /// Sends the request. If the destination refuses its token, sends it once more with another
    /// token.
    async fn make(&self, from_here: &FromHere) -> Made {
        let destination = &self.subscription.destination;
        let timeout_ms = destination.response_timeout_ms;
        let keyring = match from_here.keyring(destination).await {
            Ok(keyring) => keyring,
            Err(problem) => return self.made(Err(problem), None, &Keyring::default()),
        };
        let request = match self.compose(&keyring, timeout_ms) {
            Ok(request) => request,
            Err(problem) => return self.made(Err(problem), None, &keyring),
        };
        let exchange = from_here.exchange(&request).await;
        let left_ms = timeout_ms.saturating_sub(exchange.duration_ms);
        let other = from_here.keyring_after(&exchange, &keyring, self.subscription, left_ms);
        let keyring = match other.await {
            Ok(Some(other)) => other,
            Ok(None) => return self.made(Ok(request), Some(exchange), &keyring),
            Err(problem) => return self.made(Err(problem), None, &keyring),
        };
        match self.compose(&keyring, left_ms) {
            Ok(request) => {
                let exchange = from_here.exchange(&request).await;
                Made { is_second: true, ..self.made(Ok(request), Some(exchange), &keyring) }
            }
            Err(problem) => self.made(Err(problem), None, &keyring),
        }
    }

    fn made(
        &self,
        request: Result<Request, Unsendable>,
        exchange: Option<Exchange>,
        keyring: &Keyring,
    ) -> Made {
        let event = self.deliveries.first().map(|delivery| &delivery.event);
        let mut credentials = self.subscription.destination.credentials(keyring, event);
        // Include secrets that are sent in another form or to another server, and secrets that only
        // sign requests.
        let secrets = self.subscription.destination.secrets().filter_map(|name| keyring.get(name));
        let of_aws = keyring.aws().map(|aws| &aws.secret_access_key);
        let values = secrets.chain(keyring.token()).chain(of_aws);
        values.for_each(|value| credentials.add(value.expose().trim().as_bytes()));
        let not_sent = |problem: &Unsendable| problem.exchange(Machine.now_ms());
        let exchange = exchange.or_else(|| request.as_ref().err().map(not_sent));
        let exchange = exchange.unwrap_or_else(|| Exchange::new(TransportResult::Aborted, 0, 0));
        Made { request, exchange, credentials, is_second: false }
    }

    /// Prints the request as a curl command.
    async fn print(&self, from_here: &FromHere) -> anyhow::Result<ExitCode> {
        let destination = &self.subscription.destination;
        let keyring = from_here.keyring_without_token(destination).await;
        let command = keyring.and_then(|keyring| {
            let request = self.compose(&keyring, destination.response_timeout_ms)?;
            Ok(CurlCommand::new(&request, self.subscription, &keyring))
        });
        match command {
            Ok(command) => {
                if command.hides_secrets {
                    note(
                        "the body contains [secret] in place of a secret. Replace it before you \
                         run the command",
                    );
                }
                let target = destination.aws.as_ref().map(|target| target.arn.service());
                if target == Some(AwsService::Lambda) {
                    note(
                        "old versions of curl, such as 7.88, compute a wrong signature if the path \
                         contains an ARN: use a recent version",
                    );
                }
                for (variable, description) in &command.variables {
                    note(text::line(&format!(
                        "set {variable} before you run the command: {description}"
                    )));
                }
                out(&format!("{}\n", command.text))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(problem) => {
                note(format_args!("no request can be made: {}", text::line(&problem.to_string())));
                Ok(ExitCode::FAILURE)
            }
        }
    }
}
