//! The ports of both functions: virtual time, queues and table in memory, a folder for blobs, and real exchanges.
//!
//! An exchange takes real time, and a night has thousands. So each destination answers the first event of a type for real, and its answer
//! is repeated. The texts of failures are therefore those of the sender that the functions use.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{
    AwsIdentity, BlobTag, Clock, ConsentError, Consents, JitterSource, Message, PutBlob, PutError,
    PutMessage, Queue, QueueError, QueueName, SecretError, Secrets, SendHttp, SubscriptionSource,
};
use delivery::request::Request;
use delivery::request::token::Token;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::{AwsCredentials, Keyring, SecretName};
use delivery::subscription::sink::SinkQueue;
use delivery::table::{
    Entry, Expected, ItemKey, LineName, Permit, PermitAnswer, Places, Stored, Table, TableError,
    TakePermits, TakePlaces,
};
use delivery::waits::Jitter;
use lastmile_tests::its_own_ports;
use lastmile_tests::memory_table::MemoryTable;
use lastmile_tests::virtual_clock::VirtualClock;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use url::Url;
use uuid::Uuid;

use crate::destinations::Destinations;
use crate::queues::Queues;

/// The time that a destination takes for a response.
const RESPONSE_MS: u64 = 20;

/// All ports. Clones share their state.
#[derive(Clone)]
pub(crate) struct NightPorts {
    pub(crate) clock: VirtualClock,
    catalogue: Arc<Catalogue>,
    destinations: Arc<Destinations>,
    container: Arc<Path>,
    state: Arc<Mutex<State>>,
}

struct State {
    queues: Queues,
    table: MemoryTable,
    random: StdRng,
    exchanges: HashMap<(Url, String), Exchange>,
}

impl NightPorts {
    /// Ports at this time, for these subscriptions, with blobs in this folder.
    pub(crate) fn new(
        now_ms: u64,
        catalogue: Catalogue,
        destinations: Destinations,
        container: &Path,
    ) -> Self {
        let state = State {
            queues: Queues::default(),
            table: MemoryTable::default(),
            random: StdRng::seed_from_u64(0),
            exchanges: HashMap::new(),
        };
        Self {
            clock: VirtualClock::starting_at(now_ms),
            catalogue: Arc::new(catalogue),
            destinations: Arc::new(destinations),
            container: container.into(),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Reads or changes the queues.
    pub(crate) fn queues<T>(&self, act: impl FnOnce(&mut Queues) -> T) -> T {
        act(&mut self.state().queues)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer of a destination to events of this type.
    fn answer(&self, request: &Request) -> Exchange {
        let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let place = (request.url.clone(), event["type"].to_string());
        let known = self.state().exchanges.get(&place).cloned();
        known.unwrap_or_else(|| {
            let exchange = self.destinations.exchange(request);
            self.state().exchanges.insert(place, exchange.clone());
            exchange
        })
    }
}

its_own_ports!(NightPorts);

impl Clock for NightPorts {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    async fn sleep(&self, wait_ms: u64) {
        self.clock.sleep(wait_ms).await;
    }
}

impl JitterSource for NightPorts {
    fn next_jitter(&self) -> Jitter {
        Jitter(self.state().random.random())
    }
}

impl SendHttp for NightPorts {
    async fn exchange(&self, request: &Request) -> Exchange {
        let started_ms = self.now_ms();
        let exchange = self.answer(request);
        let is_silent = exchange.result == TransportResult::TimedOut;
        let duration_ms = if is_silent { request.timeout_ms } else { RESPONSE_MS };
        self.sleep(duration_ms).await;
        Exchange { started_ms, duration_ms, ..exchange }
    }
}

impl Queue for NightPorts {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        let now_ms = self.now_ms();
        self.queues(|queues| queues.send(queue, message, now_ms));
        Ok(())
    }

    async fn change_visibility(&self, _: QueueName, receipt: &str, seconds: u32) {
        let until_ms = self.now_ms() + u64::from(seconds) * 1_000;
        self.queues(|queues| queues.change_visibility(receipt, until_ms));
    }
}

impl PutBlob for NightPorts {
    async fn put(
        &self,
        _: &str,
        key: &str,
        bytes: Vec<u8>,
        _: Option<BlobTag>,
    ) -> Result<(), PutError> {
        let path = self.container.join(key);
        let failed = |error: std::io::Error| PutError::Permanent(error.to_string());
        std::fs::create_dir_all(path.parent().expect("a key has folders")).map_err(failed)?;
        // As in storage, the first write of a key wins.
        if path.exists() { Ok(()) } else { std::fs::write(path, bytes).map_err(failed) }
    }
}

impl SubscriptionSource for NightPorts {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        Ok(Arc::clone(&self.catalogue))
    }

    async fn reread(
        &self,
        _: Arc<Catalogue>,
        _: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        Ok(Arc::clone(&self.catalogue))
    }
}

/// No subscription of the night has a sink, a secret, a consent or an identity.
const UNUSED: &str = "no subscription of the night needs it";

impl PutMessage for NightPorts {
    async fn put_message(&self, _: &SinkQueue, _: Uuid, _: &str) -> Result<(), PutError> {
        unreachable!("{UNUSED}")
    }
}

impl Secrets for NightPorts {
    async fn keyring(&self, names: &[&SecretName], _: &Url) -> Result<Keyring, SecretError> {
        assert!(names.is_empty(), "{UNUSED}: {names:?}");
        Ok(Keyring::default())
    }
}

impl Consents for NightPorts {
    async fn consent(&self, _: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        unreachable!("{UNUSED}")
    }

    async fn keep_consent(&self, _: &ConsentKey, _: &Granted) -> Result<(), ConsentError> {
        unreachable!("{UNUSED}")
    }
}

impl AwsIdentity for NightPorts {
    async fn signing_credentials(&self) -> Result<Token<AwsCredentials>, String> {
        unreachable!("{UNUSED}")
    }

    async fn web_identity_token(&self, _: &WebIdentity) -> Result<Token, String> {
        unreachable!("{UNUSED}")
    }
}

impl Table for NightPorts {
    async fn entry(&self, key: &ItemKey, now_ms: u64) -> Result<Option<Stored>, TableError> {
        Ok(self.state().table.entry(key, now_ms))
    }

    async fn replace(
        &self,
        key: &ItemKey,
        entry: &Entry,
        expected: Expected,
        now_ms: u64,
    ) -> Result<bool, TableError> {
        Ok(self.state().table.replace(key, entry, expected, now_ms))
    }

    async fn newest(&self, partition: &str, most: u32) -> Result<Vec<Stored>, TableError> {
        Ok(self.state().table.newest(partition, most))
    }

    async fn take_permits(
        &self,
        key: &ItemKey,
        take: &TakePermits,
        now_ms: u64,
    ) -> Result<PermitAnswer, TableError> {
        Ok(self.state().table.take_permits(key, take, now_ms))
    }

    async fn return_permits(
        &self,
        key: &ItemKey,
        permits: &[Permit],
        takes_ms: Option<u64>,
        _: u64,
    ) -> Result<(), TableError> {
        self.state().table.return_permits(key, permits, takes_ms);
        Ok(())
    }

    async fn take_places(
        &self,
        key: &ItemKey,
        name: LineName,
        take: &TakePlaces,
        now_ms: u64,
    ) -> Result<Places, TableError> {
        Ok(self.state().table.take_places(key, name, take, now_ms))
    }
}
