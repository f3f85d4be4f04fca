//! `lastmile validate`: asks destinations for their consent, before the first event or again.
//!
//! The questions and what answers mean are `delivery::machine::consent`, as in the function. Separate from
//! it because a person can do what the function cannot: offer an address that confirms a consent
//! (`listen`), and wait for somebody to call it. With a place to keep them, consents are found
//! there by the functions.
//!
//! Exit code 0 means that all have consented, 1 that some have not, 2 that something went wrong.

mod listen;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use adapters::consents::ConsentStore;
use adapters::http::HttpSender;
use adapters::machine::Machine;
use adapters::secrets::SecretStores;
use adapters::storage::Storage;
use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::machine::consent::{
    ASK_TIMEOUT_MS, Answer, ConsentKey, Granted, Question, Rate, ask, judge,
};
use delivery::manifest::Reading;
use delivery::ports::{Clock as _, Consents as _, JitterSource as _, Secrets as _, SendHttp as _};
use delivery::request::AttemptContext;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::secret::SecretName;
use delivery::subscription::{Consent, Subscription};
use delivery::time::duration;
use futures::future::join_all;
use listen::{Desk, Offer};
use url::Url;

use crate::commands::dev::allow_private;
use crate::files::{Files, have_errors, tell, usage};
use crate::store;

/// The exit code of something that went wrong.
const WRONG: u8 = 2;
/// The width of the table, in characters.
const WIDTH: u16 = 110;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of subscriptions, read together
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only the destination of this subscription; may be said several times
    #[arg(long, value_name = "NS/TOPIC/NAME")]
    subscription: Vec<SubscriptionName>,
    /// Ask in this way, whatever the files say
    #[arg(long, value_enum, requires = "subscription")]
    handshake: Option<Handshake>,
    /// Who asks, with --handshake cloudevents: the name of DNS that every delivery will carry
    #[arg(long, value_name = "NAME", requires = "handshake")]
    origin: Option<String>,
    /// How many requests a minute are asked for, with --handshake cloudevents
    #[arg(long, value_name = "NUMBER", requires = "handshake")]
    rate: Option<NonZeroU32>,
    /// Keep consents where this deployed CloudFormation stack finds them
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    stack: Option<String>,
    /// Keep consents here: the config bucket as s3://BUCKET, or the folder of the subscriptions
    /// file
    #[arg(long, value_name = "PLACE")]
    config: Option<String>,
    /// Listen here for somebody who confirms by calling an address
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<SocketAddr>,
    /// What destinations can reach that address by; without it, http://IP:PORT
    #[arg(long, value_name = "URL", requires = "listen")]
    public_url: Option<Url>,
    /// How long to wait for a confirmation
    #[arg(long, default_value = "PT5M", value_parser = duration::parse_ms, value_name = "DURATION")]
    wait: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Handshake {
    /// Event Grid's SubscriptionValidation
    Eventgrid,
    /// CloudEvents' OPTIONS
    Cloudevents,
}

/// Everything that asking needs.
struct Office {
    sender: HttpSender,
    secrets: SecretStores,
    desk: Option<Desk>,
    store: Option<ConsentStore>,
    wait_ms: u64,
}

/// One destination, how it is asked, and what came of it.
struct Asked {
    subscription: Arc<Subscription>,
    consent: Consent,
    answer: Answer,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    validate(arguments).await.or_else(|error| {
        eprintln!("lastmile: {error:#}");
        Ok(ExitCode::from(WRONG))
    })
}

async fn validate(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = match Files::read(&arguments.files) {
        Ok(files) => files,
        Err(problem) => return Ok(usage(&problem)),
    };
    let reading = files.reading();
    tell(&reading.findings);
    if have_errors(&reading.findings) {
        return Ok(ExitCode::from(WRONG));
    }
    let meant = match meant(&reading, &arguments) {
        Ok(meant) => meant,
        Err(problem) => return Ok(usage(&problem)),
    };
    if meant.is_empty() {
        eprintln!("no subscription asks for consent");
        return Ok(ExitCode::SUCCESS);
    }
    let office = Office::open(arguments).await?;
    let asked = join_all(
        meant.into_iter().map(|(subscription, consent)| office.ask(subscription, consent)),
    )
    .await;
    println!("{}", table(&asked));
    let kept = office.keep(&asked).await?;
    let granted = asked.iter().filter(|asked| matches!(asked.answer, Answer::Granted(_))).count();
    eprintln!("{granted} of {} have consented{kept}", asked.len());
    if granted < asked.len() && office.desk.is_none() {
        eprintln!(
            "where an endpoint cannot answer by itself, --listen offers an address that confirms for it"
        );
    }
    Ok(if granted == asked.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The subscriptions that were named, or all that ask for consent, each with its way of asking.
fn meant(
    reading: &Reading,
    arguments: &Arguments,
) -> Result<Vec<(Arc<Subscription>, Consent)>, String> {
    if arguments.subscription.is_empty() {
        let all = reading.catalogue.subscriptions();
        return Ok(all
            .filter_map(|of| Some((Arc::clone(of), of.destination.consent.clone()?)))
            .collect());
    }
    let named = arguments.subscription.iter().map(|name| {
        let subscription = reading.catalogue.subscription(name);
        let subscription =
            subscription.ok_or_else(|| format!("there is no subscription {name}"))?;
        Ok((Arc::clone(subscription), way(subscription, arguments)?))
    });
    named.collect()
}

/// How a subscription that was named is asked.
fn way(subscription: &Subscription, arguments: &Arguments) -> Result<Consent, String> {
    let stated = subscription.destination.consent.as_ref();
    let (stated_origin, stated_rate) = match stated {
        Some(Consent::CloudEvents { origin, rate }) => (Some(origin.clone()), *rate),
        Some(Consent::EventGrid) | None => (None, None),
    };
    match (arguments.handshake, stated) {
        (None, Some(consent)) => Ok(consent.clone()),
        (None, None) => {
            Err(format!("{} does not ask for consent; --handshake says how to", subscription.name))
        }
        (Some(Handshake::Eventgrid), _)
            if arguments.origin.is_some() || arguments.rate.is_some() =>
        {
            Err("--handshake eventgrid says nothing of an origin or a rate".to_owned())
        }
        (Some(Handshake::Eventgrid), _) => Ok(Consent::EventGrid),
        (Some(Handshake::Cloudevents), _) => {
            let origin = arguments.origin.clone().or(stated_origin);
            let origin = origin.ok_or(
                "--handshake cloudevents needs --origin: who asks, such as events.example.com",
            )?;
            Ok(Consent::CloudEvents {
                origin,
                rate: arguments.rate.map(NonZeroU32::get).or(stated_rate),
            })
        }
    }
}

impl Office {
    async fn open(arguments: Arguments) -> anyhow::Result<Self> {
        let private = PrivateDestinations::parse(&allow_private()).map_err(anyhow::Error::msg)?;
        let desk = match arguments.listen {
            Some(address) => Some(Desk::open(address, arguments.public_url).await?),
            None => None,
        };
        Ok(Self {
            sender: HttpSender::new(AddressPolicy::new(private, OwnAddresses::default()))?,
            secrets: SecretStores::new(|name| std::env::var(name).ok())?,
            desk,
            store: place(arguments.config, arguments.stack).await?.map(ConsentStore::new),
            wait_ms: arguments.wait,
        })
    }

    async fn ask(&self, subscription: Arc<Subscription>, consent: Consent) -> Asked {
        let offer = self.desk.as_ref().map(|desk| desk.offer(&subscription, &consent));
        let question = Question::new(random(), offer.as_ref().map(|offer| offer.url.clone()));
        let answer = match (self.put(&subscription, &consent, &question).await, offer) {
            (Answer::Pending, Some(offer)) => self.confirmed(&subscription, offer).await,
            (answer @ (Answer::Granted(_) | Answer::Pending | Answer::Refused(_)), _) => answer,
        };
        Asked { subscription, consent, answer }
    }

    /// Puts the question.
    async fn put(
        &self,
        subscription: &Subscription,
        consent: &Consent,
        question: &Question,
    ) -> Answer {
        let names: Vec<&SecretName> = subscription.destination.secrets().collect();
        let keyring = match self.secrets.keyring(&names).await {
            Ok(keyring) => keyring,
            Err(error) => return Answer::Refused(format!("it was not asked: {error}")),
        };
        let timeout_ms = subscription.destination.response_timeout_ms.min(ASK_TIMEOUT_MS);
        let exchange = match ask(
            subscription,
            consent,
            question,
            AttemptContext { keyring: &keyring, now_ms: Machine.now_ms(), timeout_ms },
        ) {
            Ok(request) => self.sender.exchange(&request).await,
            Err(problem) => problem.exchange(Machine.now_ms()),
        };
        judge(consent, question, &exchange)
    }

    async fn confirmed(&self, subscription: &Subscription, offer: Offer) -> Answer {
        let wait = duration::format_ms(self.wait_ms);
        eprintln!(
            "{}: it did not say no; GET or POST {} within {wait} consents",
            subscription.name, offer.url
        );
        match offer.called(self.wait_ms).await {
            Some(rate) => Answer::Granted(rate),
            None => Answer::Pending,
        }
    }

    /// Keeps the consents where there is a place for them; says so.
    async fn keep(&self, asked: &[Asked]) -> anyhow::Result<&'static str> {
        let Some(store) = &self.store else {
            return Ok("; nothing was kept, --config or --stack says where to");
        };
        for Asked { subscription, consent, answer } in asked {
            let Answer::Granted(rate) = answer else { continue };
            let url = &subscription.destination.url;
            let granted = Granted::new(url, consent, *rate, Machine.now_ms());
            store.keep_consent(&ConsentKey::of(url, consent), &granted).await?;
        }
        Ok(", and that is kept")
    }
}

fn random() -> [u32; 4] {
    std::array::from_fn(|_| Machine.next_jitter().0)
}

/// Where consents are kept, if that was said.
async fn place(config: Option<String>, stack: Option<String>) -> anyhow::Result<Option<Storage>> {
    Ok(match (config, stack) {
        (Some(place), _) => Some(match place.strip_prefix("s3://") {
            Some(bucket) => {
                let bucket = bucket.trim_end_matches('/');
                anyhow::ensure!(
                    !bucket.is_empty() && !bucket.contains('/'),
                    "{place} is no bucket: s3://BUCKET is"
                );
                Storage::bucket(store::client().await, bucket)
            }
            None => Storage::folder(place.strip_prefix("file://").unwrap_or(&place)),
        }),
        (None, Some(name)) => {
            let subscriptions = crate::stack::Stack::describe(&name).await?.subscriptions()?;
            Some(subscriptions.object(store::client().await).storage().clone())
        }
        (None, None) => None,
    })
}

fn table(asked: &[Asked]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH).set_header(["subscription", "destination", "asked by", "answer"]);
    for Asked { subscription, consent, answer } in asked {
        let by = match consent {
            Consent::EventGrid => "eventgrid".to_owned(),
            Consent::CloudEvents { origin, .. } => format!("cloudevents, {origin}"),
        };
        table.add_row([
            subscription.name.to_string(),
            subscription.destination.display(),
            by,
            describe(answer),
        ]);
    }
    table
}

fn describe(answer: &Answer) -> String {
    match answer {
        Answer::Granted(Rate::Unlimited) => "granted, any rate".to_owned(),
        Answer::Granted(Rate::PerMinute(requests)) => {
            format!("granted, {requests} requests a minute")
        }
        Answer::Pending => "pending: nobody confirmed in time; ask again".to_owned(),
        Answer::Refused(why) => format!("refused: {why}"),
    }
}
