//! Destinations for tests of the command line: subscriptions, and the documents about destinations as
//! functions write them.

use std::path::Path;
use std::process::{Command, Output};

use adapters::machine::Machine;
use adapters::storage::{Fetched, Storage};
use delivery::delivery::health::permits::{self, Permits};
use delivery::delivery::health::shared::{
    Attempted, DestinationState, Digest, Document, Findings, digest_document,
};
use delivery::delivery::health::slots::{Slots, Wanted};
use delivery::delivery::health::{DestinationKey, Finding};
use delivery::delivery::outcome::Outcome;
use delivery::ports::Clock as _;
use delivery::subscription::{self, Disabled};
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};
use url::Url;
use uuid::Uuid;

/// Four destinations; the first one has two subscriptions, and a secret in its query.
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
    DestinationKey::of(&url.parse().expect("an address"))
}

/// Half a minute before the durations change that the program prints.
pub(crate) fn now_ms() -> u64 {
    Machine.now_ms() - 30 * SECOND_MS
}

fn findings(url: &str, subscription: &str, at_ms: u64) -> Findings {
    let destination = subscription::display(&url.parse::<Url>().expect("an address"));
    let attempts = vec![Attempted::new(at_ms, Outcome::Busy, Some(503), 12)];
    Findings { attempts, ..Findings::new(destination, subscription.to_owned()) }
}

/// What a function finds out about a destination that fails at this time, for an hour.
pub(crate) fn fails(url: &str, subscription: &str, at_ms: u64) -> Findings {
    let failing = Some((Finding::GoesOn { lasts_ms: HOUR_MS }, at_ms));
    Findings { failing, notifies: true, ..findings(url, subscription, at_ms) }
}

/// Failing for two hours and five minutes; probed in 42 minutes.
pub(crate) fn failing(url: &str, subscription: &str) -> DestinationState {
    let (mut state, now_ms) = (None, now_ms());
    for ago_ms in [125 * MINUTE_MS, 78 * MINUTE_MS, 17 * MINUTE_MS] {
        let at_ms = now_ms - ago_ms;
        state = Some(DestinationState::merged(state, &fails(url, subscription, at_ms), at_ms));
    }
    state.expect("it was found")
}

/// Slow for twenty minutes, and for 39 to come.
pub(crate) fn slow(url: &str, subscription: &str) -> DestinationState {
    let at_ms = now_ms() - 20 * MINUTE_MS;
    let slow = Some((Finding::Began { lasts_ms: HOUR_MS }, at_ms));
    let attempts = vec![Attempted::abandoned(at_ms - 2_000, at_ms)];
    let findings = Findings { slow, attempts, ..findings(url, subscription, at_ms) };
    DestinationState::merged(None, &findings, at_ms)
}

/// Disabled by an operator three hours ago.
pub(crate) fn disabled(url: &str, subscription: &str, then: Disabled) -> DestinationState {
    let at_ms = now_ms() - 3 * HOUR_MS;
    let destination = subscription::display(&url.parse::<Url>().expect("an address"));
    let state = DestinationState::healthy(&destination, subscription, at_ms);
    state.disabled_by_operator(then, at_ms)
}

/// Healthy again after one failure.
pub(crate) fn recovered(url: &str, subscription: &str) -> DestinationState {
    let at_ms = now_ms() - MINUTE_MS;
    let state = failing(url, subscription);
    let ended =
        Findings { failing: Some((Finding::Ended, at_ms)), ..findings(url, subscription, at_ms) };
    DestinationState::merged(Some(state), &ended, at_ms)
}

/// The documents about destinations, where functions keep them.
pub(crate) struct Documents(pub(crate) Storage);

impl Documents {
    pub(crate) fn of_folder(folder: &Path) -> Self {
        Self(Storage::folder(folder))
    }

    pub(crate) async fn read<D: Document>(&self, key: &str) -> Option<(D, String)> {
        match self.0.get_if_changed(key, None).await.expect("storage answers") {
            Fetched::Changed { bytes, etag, .. } => {
                Some((D::read(&bytes).expect("it is a document"), etag))
            }
            Fetched::Missing | Fetched::Unchanged => None,
        }
    }

    pub(crate) async fn state(&self, url: &str) -> Option<DestinationState> {
        self.read(&key(url).document()).await.map(|(state, _)| state)
    }

    pub(crate) async fn digest(&self) -> Digest {
        self.read(&digest_document()).await.map(|(digest, _)| digest).unwrap_or_default()
    }

    pub(crate) async fn write(&self, key: &str, document: &impl Document) {
        self.0.put(key, document.write()).await.expect("storage answers");
    }

    /// Writes a state, and notes it in the digest.
    pub(crate) async fn write_state(&self, url: &str, state: &DestinationState) {
        self.write(&key(url).document(), state).await;
        let mut digest = self.digest().await;
        digest.note(key(url), state, Machine.now_ms());
        self.write(&digest_document(), &digest).await;
    }

    /// Gives out slots for so many seconds.
    pub(crate) async fn give_out(&self, url: &str, per_second: u32, seconds: u32) {
        let mut slots = Slots::default();
        let count = per_second * seconds;
        let wanted = Wanted { per_second, count, latest_ms: u64::MAX, ahead: 0 };
        slots.reserve(wanted, Machine.now_ms());
        self.write(&key(url).slots_document(), &slots).await;
    }

    /// Leases permits of so many to processes: the number of each, how many it wants, and for how long.
    pub(crate) async fn lease(&self, url: &str, most: u32, processes: &[(u128, u32, u64)]) {
        let (mut permits, now_ms) = (Permits::default(), Machine.now_ms());
        for (holder, count, lasts_ms) in processes {
            let until_ms = now_ms + lasts_ms;
            let wanted = permits::Wanted { new: 0, waited: *count, in_use: 0, until_ms };
            permits.lease(Uuid::from_u128(*holder), wanted, most, now_ms);
        }
        self.write(&key(url).permits_document(), &permits).await;
    }
}

/// The program in a folder.
pub(crate) fn lastmile(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(arguments).current_dir(folder).env("AWS_EC2_METADATA_DISABLED", "true");
    let credentials = [("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")];
    command.envs(credentials).env("AWS_REGION", "us-east-1").env("S3_FORCE_PATH_STYLE", "true");
    command
}

/// What `lastmile destinations` prints, on standard output and beside it, and its exit code.
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

/// The same in a folder.
pub(crate) fn destinations(folder: &Path, arguments: &[&str]) -> Printed {
    Printed::by(&mut lastmile(folder, &[&["destinations"], arguments].concat()))
}
