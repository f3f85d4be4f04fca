//! The ports of the functions, over the fake world.
//!
//! Each call may be disturbed before and after its effect: by a crash, a panic or a pause. A crash
//! is a future that never completes; the driver sees the mark and drops the invocation.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::machine::consent::{ConsentKey, Granted, Rate};
use delivery::ports::{
    AwsIdentity, BlobTag, Clock, ConsentError, Consents, JitterSource, Late, Message, PutBlob,
    PutError, PutMessage, Queue, QueueError, QueueName, SecretError, Secrets, SendHttp,
    SubscriptionSource,
};
use delivery::request::Request;
use delivery::request::token::Token;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use delivery::subscription::sink::SinkQueue;
use delivery::table::{
    Entry, Expected, ItemKey, Permit, PermitAnswer, Places, SlotQueue, Stored, Table, TableError,
    TakePermits, TakePlaces,
};
use delivery::waits::Jitter;
use lastmile_tests::its_own_ports;
use lastmile_tests::memory_table::MemoryTable;
use uuid::Uuid;

use super::abandoned::UnderWay;
use super::faults::Fault;
use super::late::Open;
use super::queued::Carried;
use super::sending::Way;
use super::world::{Disturbance, Inner, Touched, World};
use reqwest::Url;

impl World {
    /// A point at which a fault may happen.
    async fn step(&self, touched: &Touched) {
        match self.with(|world| world.disturbance(touched)) {
            Disturbance::None => {}
            Disturbance::Yield => yield_once().await,
            Disturbance::Delay(wait_ms) => self.sleep(wait_ms).await,
            Disturbance::Crash => std::future::pending().await,
            // Unlike a plain panic, this one does not write to the terminal.
            Disturbance::Panic => std::panic::resume_unwind(Box::new("a panic on purpose")),
        }
    }
}

impl World {
    /// A call may be slow.
    async fn pause(&self) {
        let wait_ms = self.with(Inner::pause_ms);
        if wait_ms > 0 {
            self.sleep(wait_ms).await;
        }
    }
}

async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A sleep in virtual time.
struct Sleep {
    world: World,
    until_ms: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.world.with(|world| {
            if world.now_ms >= self.until_ms {
                return Poll::Ready(());
            }
            world.timers.push((self.until_ms, context.waker().clone()));
            Poll::Pending
        })
    }
}

impl SendHttp for World {
    async fn exchange(&self, request: &Request) -> Exchange {
        self.exchange_or_late(request).await.0
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let (number, ids) = self.with(|world| world.addressees(request));
        self.with(|world| world.watch_request(number, &ids));
        let mut under_way = self.with(|world| UnderWay::new(self, world, number, &ids));
        // Before the effect: the endpoint has not seen the request yet.
        self.step(&Touched::Request(ids.clone())).await;
        let (exchange, answer) = self.with(|world| {
            under_way.request = Some(world.ledger.next_request());
            world.request(request)
        });
        under_way.is_answered = exchange.content.is_some();
        let (world, timed_out) = (self.clone(), exchange.clone());
        let open = Open { world, number, ids: ids.clone(), timed_out, answer };
        self.sleep(exchange.duration_ms).await;
        // After the effect: the function may crash before it sees the result.
        self.step(&Touched::Deliveries(ids.clone())).await;
        under_way.ended = true;
        self.with(|world| world.watch_result(number, &ids, &exchange));
        let late = (exchange.result == TransportResult::TimedOut).then(|| open.late());
        (exchange, late)
    }
}

impl AwsIdentity for World {
    async fn signing_credentials(&self) -> Result<Token<AwsCredentials>, String> {
        Err("injected by the test".to_owned())
    }

    async fn web_identity_token(&self, _: &WebIdentity) -> Result<Token, String> {
        Err("injected by the test".to_owned())
    }
}

impl Secrets for World {
    async fn keyring(&self, names: &[&SecretName], _: &Url) -> Result<Keyring, SecretError> {
        Ok(names.iter().map(|name| ((*name).clone(), Secret::new("hush".to_owned()))).collect())
    }
}

/// In the fake world every destination has consented.
impl Consents for World {
    async fn consent(&self, _: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        let (destination, handshake) = (String::new(), String::new());
        Ok(Some(Granted {
            destination,
            handshake,
            origin: None,
            rate: Rate::Unlimited,
            granted_ms: 0,
        }))
    }

    async fn keep_consent(&self, _: &ConsentKey, _: &Granted) -> Result<(), ConsentError> {
        Ok(())
    }
}

its_own_ports!(World);

impl World {
    /// One request to the table, which may be slow, or be disturbed before and after its effect.
    async fn ask_table<T>(
        &self,
        change: impl FnOnce(&mut MemoryTable) -> T,
    ) -> Result<T, TableError> {
        self.pause().await;
        let wait_ms = self.with(|world| world.shared.takes_ms(world.now_ms));
        if wait_ms > 0 {
            self.sleep(wait_ms).await;
        }
        self.step(&Touched::Everything).await;
        let answer = self.with(|world| {
            world.reach_table()?;
            let answer = change(&mut world.shared.table);
            // The table has it, but its writer does not learn that.
            world.reach_table().map(|()| answer)
        });
        self.step(&Touched::Everything).await;
        answer
    }
}

impl Table for World {
    async fn entry(&self, key: &ItemKey, now_ms: u64) -> Result<Option<Stored>, TableError> {
        self.ask_table(|table| table.entry(key, now_ms)).await
    }

    async fn replace(
        &self,
        key: &ItemKey,
        entry: &Entry,
        expected: Expected,
        now_ms: u64,
    ) -> Result<bool, TableError> {
        self.with(|world| world.trace(|| format!("replaces {key}: {}", entry.text)));
        let replaced = self.ask_table(|table| table.replace(key, entry, expected, now_ms)).await;
        if replaced != Ok(false) {
            self.with(|world| world.shared.note_written(key, &entry.text));
        }
        replaced
    }

    async fn newest(&self, partition: &str, most: u32) -> Result<Vec<Stored>, TableError> {
        self.ask_table(|table| table.newest(partition, most)).await
    }

    async fn take_permits(
        &self,
        key: &ItemKey,
        take: &TakePermits,
        now_ms: u64,
    ) -> Result<PermitAnswer, TableError> {
        self.ask_table(|table| table.take_permits(key, take, now_ms)).await
    }

    async fn return_permits(
        &self,
        key: &ItemKey,
        permits: &[Permit],
        takes_ms: Option<u64>,
        _now_ms: u64,
    ) -> Result<(), TableError> {
        self.ask_table(|table| table.return_permits(key, permits, takes_ms)).await
    }

    async fn take_places(
        &self,
        key: &ItemKey,
        name: SlotQueue,
        take: &TakePlaces,
        now_ms: u64,
    ) -> Result<Places, TableError> {
        self.ask_table(|table| table.take_places(key, name, take, now_ms)).await
    }
}

impl Queue for World {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        let carried = Carried::decode(&message);
        let way = Way::new(queue, &message);
        let touched = self.with(|world| world.touched_by(way, &carried));
        let mut given_up = GivenUp::new(self, way, &carried);
        self.step(&touched).await;
        given_up.may_have_it = true;
        let (wait_ms, answer) = self.with(|world| world.send_at(queue, message, carried));
        if wait_ms > 0 {
            self.sleep(wait_ms).await;
        }
        self.step(&touched).await;
        given_up.is_answered = true;
        answer
    }

    async fn change_visibility(&self, queue: QueueName, receipt: &str, seconds: u32) {
        self.pause().await;
        self.step(&Touched::Everything).await;
        self.with(|world| {
            if world.random.injects(Fault::ChangeVisibilityFailed) {
                world.note_still_hidden(receipt);
                return;
            }
            let until_ms = world.now_ms + u64::from(seconds) * 1_000;
            world.trace(|| format!("changes the visibility of {receipt} to {seconds} s"));
            if seconds > 43_200 || !world.queues.change_visibility(queue, receipt, until_ms) {
                world.ledger.record_violation(format!(
                    "the visibility of {receipt} of {queue:?} cannot be {seconds} s"
                ));
            }
        });
    }
}

/// A send that its sender may give up before it is answered: dropped until then, it says what may
/// follow.
struct GivenUp {
    world: World,
    invocation: usize,
    way: Way,
    carried: Carried,
    /// The queue was asked.
    may_have_it: bool,
    is_answered: bool,
}

impl GivenUp {
    fn new(world: &World, way: Way, carried: &Carried) -> Self {
        let invocation = world.with(|world| world.current);
        let (world, carried) = (world.clone(), carried.clone());
        Self { world, invocation, way, carried, may_have_it: false, is_answered: false }
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.world.with(|world| {
            let current = std::mem::replace(&mut world.current, self.invocation);
            if self.may_have_it {
                world.note_perhaps_twice(self.way, &self.carried);
            } else {
                world.note_not_taken(self.way, &self.carried);
            }
            world.current = current;
        });
    }
}

impl PutMessage for World {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        self.step(&Touched::Blob).await;
        let answer = self.with(|world| world.send_to_sink(queue, id, json));
        self.step(&Touched::Blob).await;
        answer
    }
}

impl PutBlob for World {
    async fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
        _: Option<BlobTag>,
    ) -> Result<(), PutError> {
        self.pause().await;
        self.step(&Touched::Blob).await;
        let answer = self.with(|world| world.store(bucket, key.to_owned(), bytes));
        self.step(&Touched::Blob).await;
        answer
    }
}

impl SubscriptionSource for World {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        self.pause().await;
        self.step(&Touched::Everything).await;
        self.with(|world| world.catalogue(30_000, false))
    }

    async fn reread(
        &self,
        _known: Arc<Catalogue>,
        _topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        self.pause().await;
        self.step(&Touched::Everything).await;
        self.with(|world| world.catalogue(1_000, true))
    }
}

impl Clock for World {
    fn now_ms(&self) -> u64 {
        self.with(|world| world.clock_ms())
    }

    async fn sleep(&self, wait_ms: u64) {
        let until_ms = self.with(|world| world.now_ms) + wait_ms;
        Sleep { world: self.clone(), until_ms }.await;
    }
}

impl JitterSource for World {
    fn next_jitter(&self) -> Jitter {
        let (jitter, panics) = self.with(|world| {
            let panics = world.random.percent(10) && world.random.injects(Fault::Panic);
            if panics {
                world.trace(|| "PANIC in next_jitter".to_owned());
                world.fork(&Touched::Everything);
                world.invocation().panics += 1;
            }
            (world.random.jitter(), panics)
        });
        if panics {
            std::panic::resume_unwind(Box::new("a panic on purpose"));
        }
        Jitter(jitter)
    }
}
