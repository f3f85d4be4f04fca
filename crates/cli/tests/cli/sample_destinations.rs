//! Destinations for tests of the command line: subscriptions, and the table in which functions
//! store the states of destinations.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use adapters::machine::Machine;
use adapters::table::DynamoTable;
use delivery::delivery::health::news::{AllNews, News};
use delivery::delivery::health::shared::{Attempted, DestinationState, Document as _, Findings};
use delivery::delivery::health::{DestinationKey, Finding};
use delivery::delivery::outcome::Outcome;
use delivery::ports::Clock as _;
use delivery::subscription;
use delivery::table::{
    Entry, Expected, ItemKey, Permit, PermitAnswer, Recovery, Report, Results, SlotQueue,
    Table as _, TakePermits, TakePlaces,
};
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};
use local::aws::{LocalAws, LocalAwsConfig, TABLE, local_clients};
use tempfile::TempDir;
use url::Url;

use crate::deployments::deploy;

/// Four destinations. The first has two subscriptions and a secret in its query.
pub(crate) const SUBSCRIPTIONS: &str = "\
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: billing}
spec: {destination: {url: 'https://billing.example.com/events?code=secret'}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: refunds, name: billing}
spec: {destination: {url: 'https://billing.example.com/events?code=secret'}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: crm}
spec: {destination: {url: 'https://crm.example.com/hooks'}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: mail}
spec: {destination: {url: 'https://mail.example.com/in', maxPerSecond: 20}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: shop, topic: orders, name: search}
spec: {destination: {url: 'https://search.example.com/'}}
";
pub(crate) const BILLING: &str = "https://billing.example.com/events?code=secret";
pub(crate) const CRM: &str = "https://crm.example.com/hooks";
pub(crate) const MAIL: &str = "https://mail.example.com/in";
pub(crate) const SEARCH: &str = "https://search.example.com/";

pub(crate) fn key(url: &str) -> DestinationKey {
    DestinationKey::new("shop", &url.parse().expect("an address"))
}

/// Half a minute in the past, so that the printed durations stay the same for half a minute.
pub(crate) fn now_ms() -> u64 {
    Machine.now_ms() - 30 * SECOND_MS
}

fn findings(url: &str, subscription: &str, at_ms: u64) -> Findings {
    let destination = subscription::display(&url.parse::<Url>().expect("an address"));
    let attempts = vec![Attempted::new(at_ms, Outcome::Busy, Some(503), 12)];
    Findings { attempts, ..Findings::new(destination, subscription.to_owned()) }
}

/// The findings of a function about a destination that fails at this time, with a probation of five
/// minutes.
pub(crate) fn fails(url: &str, subscription: &str, at_ms: u64) -> Findings {
    let failing = Some((Finding::GoesOn { lasts_ms: 5 * MINUTE_MS }, at_ms));
    Findings { failing, notifies: true, ..findings(url, subscription, at_ms) }
}

/// The state of a destination that has failed for two hours and five minutes. The next probe is in
/// three minutes.
pub(crate) fn failing(url: &str, subscription: &str) -> DestinationState {
    let (mut state, now_ms) = (None, now_ms());
    for ago_ms in [125 * MINUTE_MS, 6 * MINUTE_MS, MINUTE_MS] {
        let at_ms = now_ms - ago_ms;
        state = Some(DestinationState::merged(state, &fails(url, subscription, at_ms), at_ms));
    }
    state.expect("it was found")
}

/// The state of a destination that has been slow for twenty minutes and stays slow for 39 more.
pub(crate) fn slow(url: &str, subscription: &str) -> DestinationState {
    let at_ms = now_ms() - 20 * MINUTE_MS;
    let slow = Some((Finding::Began { lasts_ms: HOUR_MS }, at_ms));
    let attempts = vec![Attempted::abandoned(at_ms - 2_000, at_ms)];
    let findings = Findings { slow, attempts, ..findings(url, subscription, at_ms) };
    DestinationState::merged(None, &findings, at_ms)
}

/// The state of a destination that an operator disabled three hours ago.
pub(crate) fn disabled(url: &str, subscription: &str) -> DestinationState {
    let at_ms = now_ms() - 3 * HOUR_MS;
    let destination = subscription::display(&url.parse::<Url>().expect("an address"));
    let state = DestinationState::healthy(&destination, subscription, at_ms);
    state.disabled_by_operator(at_ms)
}

/// The state of a destination that is healthy again after a failure.
pub(crate) fn recovered(url: &str, subscription: &str) -> DestinationState {
    let at_ms = now_ms() - 30 * SECOND_MS;
    let state = failing(url, subscription);
    let ended =
        Findings { failing: Some((Finding::Ended, at_ms)), ..findings(url, subscription, at_ms) };
    DestinationState::merged(Some(state), &ended, at_ms)
}

/// The table of functions that use the subscriptions in a folder, as if `lastmile dev` ran there.
pub(crate) struct Known {
    _aws: LocalAws,
    pub(crate) table: DynamoTable,
    _lock: File,
    _data: TempDir,
}

/// Returns a folder with subscriptions whose destinations have no state.
pub(crate) async fn folder() -> (TempDir, Known) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    deploy(folder.path(), SUBSCRIPTIONS);
    let known = Known::beside(folder.path()).await;
    (folder, known)
}

impl Known {
    pub(crate) async fn beside(folder: &Path) -> Self {
        let data = tempfile::tempdir().expect("a folder can be made");
        let config = LocalAwsConfig::of_lastmile(0, data.path().to_path_buf(), 30);
        let aws = LocalAws::start(config).await.expect("the local AWS starts");
        let table = DynamoTable::new(&local_clients(&aws.endpoint()), TABLE.to_owned());
        let mut lock = File::create(folder.join("dev.lock")).expect("a file");
        write!(lock, "http://127.0.0.1:1\n{}\n", aws.endpoint()).expect("it is written");
        lock.lock().expect("nobody else has it");
        Self { _aws: aws, table, _lock: lock, _data: data }
    }

    pub(crate) async fn read(&self, item: &ItemKey) -> Option<(DestinationState, u64)> {
        let stored = self.table.entry(item, Machine.now_ms()).await.expect("the table answers");
        let stored = stored?;
        let state = DestinationState::read(stored.text.as_bytes()).expect("it is a state");
        Some((state, stored.version))
    }

    pub(crate) async fn state(&self, url: &str) -> Option<DestinationState> {
        self.read(&item(url)).await.map(|(state, _)| state)
    }

    pub(crate) async fn news(&self) -> AllNews {
        let stored = self.table.newest("@news", 1_000).await.expect("the table answers");
        stored
            .iter()
            .map(|entry| News::read(entry.text.as_bytes()).expect("they are news"))
            .collect()
    }

    pub(crate) async fn write(&self, item: &ItemKey, entry: &Entry) {
        let now_ms = Machine.now_ms();
        let written = self.table.replace(item, entry, Expected::Anything, now_ms).await;
        assert_eq!(written, Ok(true));
    }

    /// Writes a state and its news.
    pub(crate) async fn write_state(&self, url: &str, state: &DestinationState) {
        self.write(&item(url), &state.entry()).await;
        for news in News::of_state(key(url), state, state.changed_ms) {
            self.write(&news.item(), &news.entry()).await;
        }
    }

    /// Takes all slots of this many seconds.
    pub(crate) async fn give_out(&self, url: &str, per_second: u32, seconds: u32) {
        let each_us = 1_000_000 / u64::from(per_second);
        let (item, now_ms) = (limits(url), Machine.now_ms());
        let (count, latest_ms, plausible_ms) = (per_second * seconds, u64::MAX, u64::MAX);
        let places = TakePlaces {
            count,
            each_us,
            others_wait: false,
            earliest_ms: now_ms,
            latest_ms,
            plausible_ms,
            report: None,
        };
        let given = self.table.take_places(&item, SlotQueue::Slots, &places, now_ms).await;
        assert!(given.is_ok(), "{given:?}");
    }

    /// Gives a permit to a process for this long.
    pub(crate) async fn give_permit(&self, url: &str, process: u32, lasts_ms: u64) {
        let now_ms = Machine.now_ms();
        let permits = vec![Permit { until_ms: now_ms + lasts_ms, process, number: 1 }];
        let instead_of = Vec::new();
        let take = TakePermits { permits, instead_of, most: 50, only_if_nobody_waits: false };
        let taken = self.table.take_permits(&limits(url), &take, now_ms).await;
        assert_eq!(taken, Ok(PermitAnswer::Taken));
    }
}

impl Known {
    /// Begins a recovery whose outage ended a second ago, and reports these numbers of successes
    /// and failures.
    pub(crate) async fn recovers(&self, url: &str, good: u32, failed: u32) {
        let now_ms = Machine.now_ms();
        let known = Recovery::beginning(None, now_ms - SECOND_MS);
        let results = Results { good, failed, ..Results::default() };
        let take = TakePlaces {
            count: 1,
            each_us: 1,
            others_wait: false,
            earliest_ms: now_ms,
            latest_ms: now_ms + SECOND_MS,
            plausible_ms: now_ms + MINUTE_MS,
            report: Some(Report { known, results }),
        };
        let places = self.table.take_places(&limits(url), SlotQueue::Recovery, &take, now_ms).await;
        assert!(places.is_ok_and(|places| places.recovery.is_some()));
    }
}

pub(crate) fn item(url: &str) -> ItemKey {
    key(url).health_item("shop")
}

fn limits(url: &str) -> ItemKey {
    key(url).limits_item("shop")
}

/// Returns the command of the program in a folder.
pub(crate) fn lastmile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).env("AWS_EC2_METADATA_DISABLED", "true");
    let credentials = [("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")];
    command.envs(credentials).env("AWS_REGION", "us-east-1");
    command
}

/// The output of a program on standard output and standard error, and its exit code.
pub(crate) struct Printed {
    pub(crate) out: String,
    pub(crate) beside: String,
    pub(crate) code: Option<i32>,
}

impl Printed {
    pub(crate) fn by(command: &mut Command) -> Self {
        let Output { stdout, stderr, status } = command.output().expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("the output is text");
        Self { out: text(stdout), beside: text(stderr), code: status.code() }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// Runs `lastmile destinations` in a folder.
pub(crate) fn destinations(folder: &Path, arguments: &[&str]) -> Printed {
    Printed::by(&mut lastmile(folder, &[&["destinations"], arguments].concat()))
}
