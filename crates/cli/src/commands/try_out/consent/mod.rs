//! `lastmile try --consent`: validates endpoints by their consent handshake.
//!
//! Builds requests and evaluates responses with `delivery::machine::consent`, as dispatch does.
//! Separate because the command can also offer a URL that confirms a consent
//! (`confirmation_server`), and wait for a request to this URL. If the options name a table, the
//! command stores consents there for the functions.
//!
//! Environment variables that requests contain as secrets are sent only with permission
//! ([`crate::operations::environment`]).
//!
//! Exit code 0 means that all endpoints have consented, 1 that some have not or that an error
//! occurred.

mod confirmation_server;

use delivery::address::http_url;
use delivery::subscription::CloudEventsHandshake;
use delivery::subscription::NoFields;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::consents::ConsentStore;
use adapters::machine::Machine;
use adapters::table::DynamoTable;
use clap::{ArgGroup, ValueEnum};
use confirmation_server::{Confirmation, ConfirmationServer};
use delivery::machine::consent::{
    ASK_TIMEOUT_MS, Answer, ConsentKey, Granted, Question, Rate, ask, judge,
};
use delivery::ports::{Clock as _, Consents as _, JitterSource as _};
use delivery::request::AttemptContext;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::{Consent, Subscription};
use delivery::time::{brief, duration};
use dialects::{Reading, Severity};
use futures::future::join_all;
use url::Url;

use super::Arguments;
use crate::operations::environment::receivers;
use crate::operations::files::{Files, have_errors, print_findings};
use crate::operations::from_here::FromHere;
use crate::operations::place::{DestinationsPlace, Place};
use crate::operations::topics::{self, Wanted};
use crate::operations::unset_secrets::unset_secrets;
use crate::terminal::output::{note, out};
use crate::terminal::text;
use crate::terminal::text::Table;
use crate::terminal::usage::usage_error;

/// The options of `try` that send one request. Each handshake option declares a conflict with them,
/// because clap ignores `requires` if the required option conflicts with a given option.
const ONE_REQUEST: [&str; 3] = ["event", "sample", "print"];

/// The options of the handshakes. All of them need `--consent`.
#[derive(Debug, clap::Args)]
#[command(group(
    ArgGroup::new("place")
        .args(["to", "table", "stack"])
        .multiple(true)
        .requires("consent")
        .conflicts_with_all(ONE_REQUEST)
))]
pub(super) struct ConsentArgs {
    #[command(flatten)]
    place: DestinationsPlace,
    /// Send no event; ask endpoints for consent. Exit with code 1 unless all endpoints consent
    ///
    /// --to, --table and --stack need this option. A stack, a table or a folder of `lastmile dev`
    /// also stores the consents.
    #[arg(long, help_heading = HEADING, conflicts_with_all = ONE_REQUEST)]
    pub(super) consent: bool,
    /// Handshake to use instead of the one in the files
    #[arg(
        long,
        help_heading = HEADING,
        requires_all = ["consent", "names"], conflicts_with_all = ONE_REQUEST,
        value_enum,
        value_name = "KIND"
    )]
    handshake: Option<Handshake>,
    /// With --handshake cloudevents, origin to send: the DNS name that deliveries also send
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "handshake", conflicts_with_all = ONE_REQUEST)]
    origin: Option<String>,
    /// With --handshake cloudevents, rate to ask for, in requests per minute
    #[arg(long, help_heading = HEADING, value_name = "NUMBER", requires = "handshake", conflicts_with_all = ONE_REQUEST)]
    rate: Option<NonZeroU32>,
    /// Address on which to wait for confirmations, such as 127.0.0.1:8088. A person consents by
    /// opening a URL
    #[arg(long, help_heading = HEADING, value_name = "IP:PORT", requires = "consent", conflicts_with_all = ONE_REQUEST)]
    listen: Option<SocketAddr>,
    /// Public URL of the --listen address; by default http://IP:PORT
    #[arg(long, help_heading = HEADING, value_name = "URL", value_parser = http_url, requires = "listen", conflicts_with_all = ONE_REQUEST)]
    public_url: Option<Url>,
    /// Maximum time to wait for a confirmation
    #[arg(
        long,
        help_heading = HEADING,
        requires = "listen", conflicts_with_all = ONE_REQUEST,
        default_value = "5m",
        value_parser = brief::parse_ms,
        value_name = "DURATION"
    )]
    wait: u64,
}

/// The heading of the handshake options in the help.
const HEADING: &str = "Consent";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Handshake {
    /// SubscriptionValidation event of Event Grid
    Eventgrid,
    /// OPTIONS request of the CloudEvents webhook specification
    Cloudevents,
}

struct Validator {
    from_here: FromHere,
    confirmations: Option<ConfirmationServer>,
    store: Option<ConsentStore<DynamoTable>>,
    wait_ms: u64,
}

/// The validation of a destination: its handshake and the result.
struct Validation {
    subscription: Arc<Subscription>,
    consent: Consent,
    answer: Answer,
}

/// Validates the endpoints, and stores their consents in the table that the options name.
pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let place = Place::from(arguments.consent.place.clone());
    place.check_beside_files(&arguments.files)?;
    let reading = if arguments.files.is_empty() {
        of_deployment(&place, &arguments.names).await?
    } else {
        let files = Files::read(&arguments.files)?;
        let Some(reading) = files.valid_reading() else { return Ok(ExitCode::FAILURE) };
        reading
    };
    let selected = selected(&reading, &arguments)?;
    // An invalid subscription of the deployment may require consent too, but is not included.
    let has_unusable = have_errors(&reading.findings);
    if selected.is_empty() {
        note(format_args!("no subscription requires consent"));
        return Ok(if has_unusable { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let all = selected.iter().map(|(subscription, _)| subscription.as_ref());
    print_findings(&unset_secrets(&reading, all, Severity::Warning, |name| {
        std::env::var(name).ok()
    }));
    let sent = receivers(selected.iter().map(|(subscription, _)| subscription.as_ref()));
    let allowed = arguments.environment.allow(&sent)?;
    let shown = selected.iter().map(|(subscription, _)| subscription.as_ref());
    let identity = arguments.environment.identity(shown)?;
    let from_here = FromHere::new(allowed, identity, &reading.catalogue.settings().secrets)?;
    let validator = Validator::open(arguments.consent, &place, from_here).await?;
    // Validate concurrently, because with --listen each validation may wait for minutes.
    let validations = selected
        .into_iter()
        .map(|(subscription, consent)| validator.validate(subscription, consent));
    let validations = join_all(validations).await;
    // Print before storing, so that the results are visible even if storing fails.
    out(&format!("{}\n", table(&validations)))?;
    let stored = validator.store_consents(&validations).await?;
    let granted = validations
        .iter()
        .filter(|validation| matches!(validation.answer, Answer::Granted(_)))
        .count();
    note(format_args!("{granted} of {} endpoints have consented{stored}", validations.len()));
    if granted < validations.len() && validator.confirmations.is_none() {
        note(format_args!(
            "for an endpoint that cannot respond to the handshake, use --listen to provide a \
             confirmation URL"
        ));
    }
    let have_all = granted == validations.len() && !has_unusable;
    Ok(if have_all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the topics of the named subscriptions of a deployment, or all topics.
async fn of_deployment(place: &Place, names: &[SubscriptionName]) -> anyhow::Result<Reading> {
    let location = place.subscriptions().await?;
    let wanted = match names {
        [] => Wanted::All,
        names => Wanted::topics_of(names),
    };
    let reading = topics::read(&location, wanted).await?.reading;
    print_findings(&reading.findings);
    Ok(reading)
}

/// Returns the named subscriptions, or all that require consent, each with its handshake.
fn selected(
    reading: &Reading,
    arguments: &Arguments,
) -> anyhow::Result<Vec<(Arc<Subscription>, Consent)>> {
    if arguments.names.is_empty() {
        let all = reading.catalogue.subscriptions();
        return Ok(all
            .filter_map(|subscription| {
                Some((Arc::clone(subscription), subscription.destination.consent.clone()?))
            })
            .collect());
    }
    let named = arguments.names.iter().map(|name| {
        let subscription = reading.catalogue.subscription(name);
        let subscription =
            subscription.ok_or_else(|| usage_error(format!("there is no subscription {name}")))?;
        Ok((Arc::clone(subscription), handshake_of(subscription, &arguments.consent)?))
    });
    named.collect()
}

/// Returns the consent to request for a subscription. The arguments override the origin and rate of
/// its destination.
fn handshake_of(subscription: &Subscription, arguments: &ConsentArgs) -> anyhow::Result<Consent> {
    let own = subscription.destination.consent.as_ref();
    let (own_origin, own_rate) = match own {
        Some(Consent::CloudEvents(CloudEventsHandshake { origin, rate })) => {
            (Some(origin.clone()), *rate)
        }
        Some(Consent::EventGrid(NoFields)) | None => (None, None),
    };
    let name = &subscription.name;
    match arguments.handshake {
        None => own.cloned().ok_or_else(|| {
            usage_error(format!(
                "{name} requires no consent; to request it anyway, add --handshake"
            ))
        }),
        Some(Handshake::Eventgrid) => {
            let is_valid = arguments.origin.is_none() && arguments.rate.is_none();
            if !is_valid {
                return Err(usage_error(
                    "--handshake eventgrid cannot be combined with --origin or --rate",
                ));
            }
            Ok(Consent::EventGrid(NoFields))
        }
        Some(Handshake::Cloudevents) => {
            let origin = arguments.origin.clone().or(own_origin);
            let origin = origin.ok_or_else(|| {
                usage_error("--handshake cloudevents requires --origin, such as events.example.com")
            })?;
            let rate = arguments.rate.map(NonZeroU32::get).or(own_rate);
            Ok(Consent::CloudEvents(CloudEventsHandshake { origin, rate }))
        }
    }
}

impl Validator {
    async fn open(
        arguments: ConsentArgs,
        place: &Place,
        from_here: FromHere,
    ) -> anyhow::Result<Self> {
        let confirmations = match arguments.listen {
            Some(address) => Some(ConfirmationServer::start(address, arguments.public_url).await?),
            None => None,
        };
        let table = place.named_table().await?;
        Ok(Self {
            from_here,
            confirmations,
            store: table.map(|table| ConsentStore::new(table, Machine)),
            wait_ms: arguments.wait,
        })
    }

    async fn validate(&self, subscription: Arc<Subscription>, consent: Consent) -> Validation {
        let server = self.confirmations.as_ref();
        // Register before the request is sent, because the endpoint may call the URL at once.
        let confirmation = server.map(|server| server.expect(&subscription, &consent, random()));
        let question = Question::new(
            random(),
            confirmation.as_ref().map(|confirmation| confirmation.url.clone()),
        );
        let answer = self.send_question(&subscription, &consent, &question).await;
        let answer = match (answer, confirmation) {
            (Answer::Pending, Some(confirmation)) => {
                self.wait_for(&subscription, confirmation).await
            }
            (answer @ (Answer::Granted(_) | Answer::Pending | Answer::Refused(_)), _) => answer,
        };
        Validation { subscription, consent, answer }
    }

    /// Sends the validation request.
    async fn send_question(
        &self,
        subscription: &Subscription,
        consent: &Consent,
        question: &Question,
    ) -> Answer {
        let keyring = match self.from_here.keyring(&subscription.destination).await {
            Ok(keyring) => keyring,
            Err(problem) => return Answer::Refused(format!("the request was not sent: {problem}")),
        };
        let timeout_ms = subscription.destination.response_timeout_ms.min(ASK_TIMEOUT_MS);
        let context = AttemptContext { keyring: &keyring, now_ms: Machine.now_ms(), timeout_ms };
        let exchange = match ask(subscription, consent, question, context) {
            Ok(request) => self.from_here.exchange(&request).await,
            Err(problem) => problem.exchange(Machine.now_ms()),
        };
        let credentials = subscription.destination.credentials(&keyring, None);
        judge(consent, question, &exchange).redact(&credentials)
    }

    async fn wait_for(&self, subscription: &Subscription, confirmation: Confirmation) -> Answer {
        let wait = duration::format_ms(self.wait_ms);
        note(format_args!(
            "{}: pending; confirm with a GET or POST to {} within {wait}",
            subscription.name, confirmation.url
        ));
        confirmation.rate(self.wait_ms).await.map_or(Answer::Pending, Answer::Granted)
    }

    /// Stores the consents if an option names a store. Returns a text for the end of the summary
    /// line.
    async fn store_consents(&self, validations: &[Validation]) -> anyhow::Result<&'static str> {
        let Some(store) = &self.store else {
            return Ok(
                "; nothing was stored; use --stack, --table or --to FOLDER to store the consents",
            );
        };
        for Validation { subscription, consent, answer } in validations {
            let Answer::Granted(rate) = answer else { continue };
            let destination = &subscription.destination;
            let granted = Granted::new(destination, consent, *rate, Machine.now_ms());
            let namespace = &subscription.name.topic.namespace;
            let key = ConsentKey::new(namespace, &destination.url, consent);
            store.keep_consent(&key, &granted).await?;
        }
        Ok("; the consents were stored")
    }
}

fn random() -> [u32; 4] {
    std::array::from_fn(|_| Machine.next_jitter().0)
}

fn table(validations: &[Validation]) -> Table {
    let columns = ["subscription", "destination", "handshake", "answer"];
    let mut table = text::table(&columns);
    for Validation { subscription, consent, answer } in validations {
        let handshake = match consent {
            Consent::EventGrid(NoFields) => "eventgrid".to_owned(),
            Consent::CloudEvents(CloudEventsHandshake { origin, .. }) => {
                format!("cloudevents, {origin}")
            }
        };
        table.add_row([
            subscription.name.to_string(),
            subscription.destination.display(),
            handshake,
            describe(answer),
        ]);
    }
    table
}

fn describe(answer: &Answer) -> String {
    match answer {
        Answer::Granted(Rate::Unlimited) => "granted, any rate".to_owned(),
        Answer::Granted(Rate::PerMinute(requests)) => {
            format!("granted, {requests} requests per minute")
        }
        Answer::Pending => "pending: no confirmation arrived in time; try again".to_owned(),
        Answer::Refused(why) => format!("refused: {why}"),
    }
}
