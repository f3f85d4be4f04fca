//! Fakes of all ports of both functions: they respond as configured and record every call.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use delivery::delivery::health::news::NEWS;
use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{
    AwsIdentity, BlobTag, Clock, ConsentError, Consents, JitterSource, Late, Message, PutBlob,
    PutError, PutMessage, Queue, QueueError, QueueName, Record, SecretError, Secrets, SendHttp,
    SubscriptionSource,
};
use delivery::request::token::Token;
use delivery::request::{Method, Request};
use delivery::subscription::Subscription;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::catalogue::{Catalogue, Found};
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::subscription::sink::{Container, SinkQueue};
use delivery::table::{
    Entry, Expected, ItemKey, Line, LineName, Permit, PermitAnswer, Places, Stored, Table,
    TableError, TakePermits, TakePlaces,
};
use delivery::waits::Jitter;
use dialects::Source;
use lastmile_tests::its_own_ports;
use lastmile_tests::memory_table::MemoryTable;
use uuid::Uuid;

use crate::reactions::{Reaction, Reactions};
use lastmile_tests::virtual_clock::VirtualClock;
use reqwest::Url;

/// The start of every test.
pub(crate) const NOW_MS: u64 = 1_795_158_180_000;

/// The default container.
pub(crate) fn container() -> Container {
    Container { bucket: "letters".to_owned(), prefix: String::new() }
}

/// A published record of topic shop/orders, received for the first time.
pub(crate) fn record(message: &str, body: &str) -> Record {
    Record {
        message: message.to_owned(),
        receipt: message.to_owned(),
        queue: QueueName::Events,
        body: body.into(),
        topic: Some("shop/orders".to_owned()),
        attribute: None,
        group: None,
        earlier_receives: 0,
        unread: 0,
        traceparent: None,
        sent_ms: NOW_MS - 10,
        first_received_ms: NOW_MS,
        receives: 1,
    }
}

/// The topic shop/orders with this many subscriptions, s0, s1 and so on.
pub(crate) fn subscriptions(count: usize) -> Catalogue {
    catalogue(count, "")
}

/// The topic shop/orders with the subscription s0, whose dead letters go to this sink.
pub(crate) fn subscriptions_with_sink(sink: &str) -> Catalogue {
    catalogue(1, &format!(", deadLetter: {{sink: '{sink}'}}"))
}

/// The topic shop/orders with the subscription s0, whose destination has these further fields.
pub(crate) fn subscriptions_with_destination(more: &str) -> Catalogue {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s0}}\n\
         spec: {{destination: {{url: 'https://s0.example.com/', {more}}}, retry: {{jitterPercent: 0, timeToLive: PT1H, schedule: {{kind: exponential, delay: PT1S, max: PT1H}}}}}}\n"
    );
    dialects::read(&[Source { name: "test", text: &text }])
        .into_result()
        .expect("the subscriptions are valid")
}

fn catalogue(count: usize, more: &str) -> Catalogue {
    let topic =
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n"
            .to_owned();
    let subscription = |n: usize| {
        format!(
            "---\napiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s{n}}}\n\
             spec: {{destination: {{url: 'https://s{n}.example.com/'}}, retry: {{jitterPercent: 0, schedule: {{kind: exponential, delay: PT1S, max: PT1H}}}}{more}}}\n"
        )
    };
    let text = (0..count).map(subscription).fold(topic, |text, next| text + &next);
    dialects::read(&[Source { name: "test", text: &text }])
        .into_result()
        .expect("the subscriptions are valid")
}

/// These subscriptions and their topics.
pub(crate) fn catalogue_of(subscriptions: impl IntoIterator<Item = Subscription>) -> Catalogue {
    let mut catalogue = Catalogue::default();
    subscriptions.into_iter().for_each(|subscription| catalogue.add_subscription(subscription));
    catalogue
}

/// An act of another process before the next news is told.
type BeforeNews = Box<dyn FnOnce(&mut MemoryTable, u64) + Send>;

/// The recorded calls.
#[derive(Default)]
struct Calls {
    /// Which topics were read together.
    topics_read: Vec<BTreeSet<TopicName>>,
    slept_ms: u64,
    requests: usize,
    /// Requests under way, and the most that ever were.
    under_way: usize,
    most_under_way: usize,
    panics_left: usize,
    send_panics_left: usize,
    queue_faults: HashMap<QueueName, Fault>,
    hanging: Option<Hanging>,
    sent: Vec<(QueueName, Message)>,
    sent_ms: Vec<u64>,
    visibility_changes: Vec<(QueueName, String, u32)>,
    blobs: BTreeMap<String, String>,
    sink_messages: Vec<(String, Uuid, String)>,
    consents: HashMap<ConsentKey, Granted>,
    consents_unreadable: bool,
    /// How long credentials that sign requests are valid; nobody has any without it.
    credentials_life_ms: Option<u64>,
    credentials_asked: usize,
    table: MemoryTable,
    table_unreachable: bool,
    /// How often another process still replaces an entry just before this one does.
    overtaken: usize,
    news_refused: bool,
    before_news: Option<BeforeNews>,
    /// Replacements until one is carried out twice, because its first answer was lost.
    until_lost: Option<usize>,
    /// Answers about permits that are still to be too late.
    late_permits: usize,
    /// The partition whose items are throttled.
    throttled: Option<String>,
    /// The `webhook-*` headers of the responses to validation requests; if empty, a response has
    /// none.
    consent_headers: Vec<(String, String)>,
    validation_requests: Vec<Request>,
    /// The `authorization` of validation requests that are answered with 401.
    refused_authorization: Option<String>,
    looked_at_settings: bool,
    /// Each with the time of its start.
    posts: Vec<(u64, Request)>,
}

impl Calls {
    fn is_answer_lost(&mut self) -> bool {
        let left = self.until_lost.take();
        self.until_lost = left.and_then(|left| left.checked_sub(1));
        left == Some(0)
    }

    /// Whether another process changes an item just before this one does.
    fn is_overtaken(&mut self) -> bool {
        let is_overtaken = self.overtaken > 0;
        self.overtaken -= usize::from(is_overtaken);
        is_overtaken
    }

    fn begin_request(&mut self) {
        self.under_way += 1;
        self.most_under_way = self.most_under_way.max(self.under_way);
    }
}

/// What is wrong with a queue.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// It takes nothing.
    Refuses,
    /// It never answers.
    Hangs,
}

/// A port whose calls never end.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Hanging {
    PutBlob,
    ChangeVisibility,
    KeepConsent,
    Table,
}

/// All ports of both functions. Clones share their state.
#[derive(Clone)]
pub(crate) struct FakePorts {
    catalogue: Option<Arc<Catalogue>>,
    newer: Option<Arc<Catalogue>>,
    /// That of the settings, from the second look at them on.
    later_policy: Option<SecretPolicy>,
    newest_is_readable: bool,
    unreadable_topic: Option<TopicName>,
    /// A topic, and how long a request for it takes.
    slow_topic: Option<(TopicName, u64)>,
    result: TransportResult,
    duration_ms: u64,
    storage: BTreeMap<String, PutError>,
    reactions: Arc<Reactions>,
    clock: VirtualClock,
    jitter: Jitter,
    calls: Arc<Mutex<Calls>>,
}

fn answer(status: u16) -> TransportResult {
    TransportResult::Answered { status, retry_after: None, body: Vec::new() }
}

/// Whether a request asks for consent.
fn is_validation_request(request: &Request) -> bool {
    let validation = |(name, value): &(String, String)| {
        name == "aeg-event-type" && value == "SubscriptionValidation"
    };
    request.method == Method::Options || request.headers.iter().any(validation)
}

/// The response to a validation request: with headers it consents, and echoes the code of a
/// validation event.
fn validation_response(
    request: &Request,
    consent_headers: &[(String, String)],
    now_ms: u64,
) -> Exchange {
    let body =
        String::from_utf8_lossy(&request.body).replace("validationCode", "validationResponse");
    let data = body.split_once(r#""data":"#).and_then(|(_, rest)| rest.split_once(','));
    let echo = data
        .filter(|_| !consent_headers.is_empty())
        .map_or(Vec::new(), |(data, _)| data.as_bytes().to_vec());
    let result = TransportResult::Answered { status: 200, retry_after: None, body: echo };
    let content = Content { webhook: consent_headers.to_vec(), ..Content::default() };
    Exchange { content: Some(content), ..Exchange::new(result, now_ms, 0) }
}

/// Configuration before a test starts.
impl FakePorts {
    pub(crate) fn without_subscriptions() -> Self {
        Self {
            catalogue: None,
            newer: None,
            later_policy: None,
            newest_is_readable: true,
            unreadable_topic: None,
            slow_topic: None,
            result: answer(200),
            duration_ms: 0,
            storage: BTreeMap::new(),
            reactions: Arc::default(),
            clock: VirtualClock::starting_at(NOW_MS),
            jitter: Jitter::NONE,
            calls: Arc::default(),
        }
    }

    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self { catalogue: Some(Arc::new(catalogue)), ..Self::without_subscriptions() }
    }

    pub(crate) fn with_newer_catalogue(self, catalogue: Catalogue) -> Self {
        Self { newer: Some(Arc::new(catalogue)), ..self }
    }

    /// Somebody else applies a policy of secrets when an invocation has begun.
    pub(crate) fn with_later_policy(self, policy: SecretPolicy) -> Self {
        Self { later_policy: Some(policy), ..self }
    }

    /// The last good subscriptions are loaded, but the newest cannot be read.
    pub(crate) fn with_failing_reload(self) -> Self {
        Self { newest_is_readable: false, ..self }
    }

    /// This topic cannot be read.
    pub(crate) fn with_unreadable_topic(self, topic: &str) -> Self {
        Self { unreadable_topic: Some(topic.parse().expect("a topic")), ..self }
    }

    pub(crate) fn with_slow_topic(self, topic: &str, takes_ms: u64) -> Self {
        Self { slow_topic: Some((topic.parse().expect("a topic"), takes_ms)), ..self }
    }

    /// Its random values differ from those of others, by so little that no wait does.
    pub(crate) fn with_random(self, jitter: u32) -> Self {
        Self { jitter: Jitter(jitter), ..self }
    }

    pub(crate) fn with_result(self, result: TransportResult) -> Self {
        Self { result, ..self }
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        self.with_result(answer(status))
    }

    /// Requests whose URL or body contains this text get these reactions in order; the last one
    /// repeats.
    pub(crate) fn with_reactions(mut self, text: &str, reactions: &[Reaction]) -> Self {
        let configured = Arc::get_mut(&mut self.reactions);
        configured.expect("the fakes are configured before they are cloned").add(text, reactions);
        self
    }

    /// Each exchange takes this long, and advances the clock.
    /// From now on a host reacts like this.
    pub(crate) fn react_from_now_on(&self, text: &str, reactions: &[Reaction]) {
        self.reactions.replace(text, reactions);
    }

    pub(crate) fn with_duration_ms(self, duration_ms: u64) -> Self {
        Self { duration_ms, ..self }
    }

    pub(crate) fn with_failing_queue(self) -> Self {
        let names = [QueueName::Retry, QueueName::Isolation];
        let names = names.into_iter().chain([QueueName::DeadLetter, QueueName::LastResort]);
        names.fold(self, |ports, name| ports.with_queue_fault(name, Fault::Refuses))
    }

    pub(crate) fn with_queue_fault(self, queue: QueueName, fault: Fault) -> Self {
        self.calls().queue_faults.insert(queue, fault);
        self
    }

    /// No call of this port ever ends.
    pub(crate) fn with_hanging(self, port: Hanging) -> Self {
        self.calls().hanging = Some(port);
        self
    }

    /// Writes to this bucket, below this path of a bucket, or to this external queue, fail.
    pub(crate) fn with_put_error(mut self, name: &str, error: PutError) -> Self {
        self.storage.insert(name.to_owned(), error);
        self
    }

    pub(crate) fn with_one_panic(self) -> Self {
        self.calls().panics_left = 1;
        self
    }
}

/// Injected panics.
impl FakePorts {
    /// The first `send` panics.
    pub(crate) fn with_one_panic_on_send(self) -> Self {
        self.calls().send_panics_left = 1;
        self
    }
}

/// Changes while a test runs.
impl FakePorts {
    /// From now on destinations send these headers in responses to validation requests.
    pub(crate) fn set_consent_headers(&self, consent_headers: &[(&str, &str)]) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.calls().consent_headers = consent_headers.iter().map(owned).collect();
    }

    /// From now on destinations answer validation requests that show this with 401.
    pub(crate) fn refuse_authorization(&self, authorization: &str) {
        self.calls().refused_authorization = Some(authorization.to_owned());
    }

    /// Who asks for credentials that sign requests gets some for so long.
    pub(crate) fn grant_credentials(&self, life_ms: Option<u64>) {
        self.calls().credentials_life_ms = life_ms;
    }

    /// How often credentials that sign requests were asked for.
    pub(crate) fn credentials_asked(&self) -> usize {
        self.calls().credentials_asked
    }

    /// Whether stored consents cannot be read.
    pub(crate) fn set_consents_unreadable(&self, unreadable: bool) {
        self.calls().consents_unreadable = unreadable;
    }

    /// The table fails, or answers again.
    pub(crate) fn set_table_unreachable(&self, unreachable: bool) {
        self.calls().table_unreachable = unreachable;
    }

    /// The table refuses news, or takes them again.
    pub(crate) fn set_news_refused(&self, refused: bool) {
        self.calls().news_refused = refused;
    }

    /// Does this before the next news are told.
    pub(crate) fn before_news(&self, happens: impl FnOnce(&mut MemoryTable, u64) + Send + 'static) {
        self.calls().before_news = Some(Box::new(happens));
    }

    /// After so many replacements one is carried out, its answer is lost, and the client tries again.
    pub(crate) fn lose_answer_after(&self, replacements: usize) {
        self.calls().until_lost = Some(replacements);
    }

    /// So many permits are given out, but their answers are too late.
    pub(crate) fn answer_late_about_permits(&self, times: usize) {
        self.calls().late_permits = times;
    }

    /// No permits of this partition are given out, because it is throttled.
    pub(crate) fn throttle(&self, partition: Option<&str>) {
        self.calls().throttled = partition.map(str::to_owned);
    }

    /// So often from now on another process changes an item just before this one does.
    pub(crate) fn overtake(&self, times: usize) {
        self.calls().overtaken = times;
    }

    /// Another process, or a person, changes the table.
    pub(crate) fn change_table<T>(&self, change: impl FnOnce(&mut MemoryTable, u64) -> T) -> T {
        let now_ms = self.now_ms();
        let mut calls = self.calls();
        let requests = calls.table.requests;
        let changed = change(&mut calls.table, now_ms);
        calls.table.requests = requests;
        changed
    }

    /// Another process replaces an entry.
    pub(crate) fn set_entry(&self, key: &ItemKey, entry: &Entry) {
        self.change_table(|table, now_ms| {
            table.replace(key, entry, Expected::Anything, now_ms);
        });
    }

    /// From now on every queue takes messages.
    pub(crate) fn repair_queues(&self) {
        self.calls().queue_faults.clear();
    }

    /// Counts the most requests at once from here on.
    pub(crate) fn forget_requests_at_once(&self) {
        self.calls().most_under_way = 0;
    }

    pub(crate) fn advance_ms(&self, wait_ms: u64) {
        self.clock.advance(wait_ms);
    }

    /// Runs a future: whenever it cannot make progress, the clock jumps to the next time that
    /// somebody waits for.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.clock.run(future)
    }
}

/// The recorded calls, for assertions.
impl FakePorts {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn requests(&self) -> usize {
        self.calls().requests
    }

    /// The most requests that were under way at once.
    pub(crate) fn most_requests_at_once(&self) -> usize {
        self.calls().most_under_way
    }

    /// The validation requests.
    pub(crate) fn validation_requests(&self) -> Vec<Request> {
        self.calls().validation_requests.clone()
    }

    /// The requests that deliver events.
    pub(crate) fn posts(&self) -> Vec<Request> {
        self.calls().posts.iter().map(|(_, request)| request.clone()).collect()
    }

    /// Each of these requests with the time of its start since the start of the test.
    pub(crate) fn timed_posts(&self) -> Vec<(u64, Request)> {
        let since = |(at_ms, request): &(u64, Request)| (at_ms - NOW_MS, request.clone());
        self.calls().posts.iter().map(since).collect()
    }

    /// What an item holds, if it holds anything.
    pub(crate) fn entry_text(&self, key: &ItemKey) -> Option<String> {
        self.change_table(|table, now_ms| table.entry(key, now_ms)).map(|stored| stored.text)
    }

    /// How often the table was asked.
    pub(crate) fn table_requests(&self) -> u64 {
        self.calls().table.requests
    }

    /// The stored consents.
    pub(crate) fn consents(&self) -> Vec<Granted> {
        self.calls().consents.values().cloned().collect()
    }

    /// The topics that were read, by the reads.
    pub(crate) fn topics_read(&self) -> Vec<Vec<String>> {
        let names = |topics: &BTreeSet<TopicName>| topics.iter().map(ToString::to_string).collect();
        self.calls().topics_read.iter().map(names).collect()
    }

    pub(crate) fn slept_ms(&self) -> u64 {
        self.calls().slept_ms
    }

    pub(crate) fn sent(&self) -> Vec<(QueueName, Message)> {
        self.sent_after(0)
    }

    /// The messages that were sent after so many others.
    pub(crate) fn sent_after(&self, count: usize) -> Vec<(QueueName, Message)> {
        self.calls().sent.iter().skip(count).cloned().collect()
    }

    /// The time since the start of the test.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.now_ms() - NOW_MS
    }

    /// The time of each sent message since the start of the test.
    pub(crate) fn sent_after_ms(&self) -> Vec<u64> {
        self.calls().sent_ms.iter().map(|at_ms| at_ms - NOW_MS).collect()
    }

    /// Queue, receipt and seconds of each changed visibility.
    pub(crate) fn visibility_changes(&self) -> Vec<(QueueName, String, u32)> {
        self.calls().visibility_changes.clone()
    }

    /// Queue, id and text of each dead letter sent to an external queue.
    pub(crate) fn sink_messages(&self) -> Vec<(String, Uuid, String)> {
        self.calls().sink_messages.clone()
    }

    /// `bucket/key` and text of each blob.
    pub(crate) fn blobs(&self) -> Vec<(String, String)> {
        self.calls().blobs.clone().into_iter().collect()
    }
}

impl SendHttp for FakePorts {
    async fn exchange(&self, request: &Request) -> Exchange {
        self.exchange_or_late(request).await.0
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let started_ms = self.now_ms();
        if let Some(answer) = self.record_request(request) {
            return (answer, None);
        }
        // Recorded and answered above: validation requests never use up a reaction.
        let Some(reaction) = self.reactions.next(request) else {
            self.clock.advance(self.duration_ms);
            return (Exchange::new(self.result.clone(), started_ms, self.duration_ms), None);
        };
        self.calls().begin_request();
        let reacted = reaction.run(self.clock.clone()).await;
        self.calls().under_way -= 1;
        reacted
    }
}

impl FakePorts {
    async fn hang(&self, port: Hanging) {
        if self.calls().hanging == Some(port) {
            std::future::pending::<()>().await;
        }
    }

    /// Records a request, and responds if it is a validation request.
    fn record_request(&self, request: &Request) -> Option<Exchange> {
        let now_ms = self.now_ms();
        let mut calls = self.calls();
        if is_validation_request(request) {
            calls.validation_requests.push(request.clone());
            let is_refused = |(name, value): &(String, String)| {
                name == "authorization" && Some(value) == calls.refused_authorization.as_ref()
            };
            if request.headers.iter().any(is_refused) {
                let (retry_after, body) = (None, Vec::new());
                let result = TransportResult::Answered { status: 401, retry_after, body };
                return Some(Exchange::new(result, now_ms, 0));
            }
            return Some(validation_response(request, &calls.consent_headers, now_ms));
        }
        calls.posts.push((now_ms, request.clone()));
        calls.requests += 1;
        if calls.panics_left > 0 {
            calls.panics_left -= 1;
            panic!("injected by the test");
        }
        None
    }
}

impl AwsIdentity for FakePorts {
    async fn signing_credentials(&self) -> Result<Token<AwsCredentials>, String> {
        let now_ms = self.now_ms();
        let mut calls = self.calls();
        calls.credentials_asked += 1;
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("never-sent".to_owned()),
            session_token: Some(Secret::new(format!("session-t0ken-{}", calls.credentials_asked))),
        };
        let ends_ms = now_ms + calls.credentials_life_ms.ok_or("no role is set: InvokeRoleArn")?;
        Ok(Token::ending(credentials, now_ms, now_ms, ends_ms))
    }

    async fn web_identity_token(&self, of: &WebIdentity) -> Result<Token, String> {
        let now_ms = self.now_ms();
        let mut calls = self.calls();
        calls.credentials_asked += 1;
        let token = format!("jwt-for-{}-{}", of.audience, calls.credentials_asked);
        calls.credentials_life_ms.ok_or("outbound identity federation is off")?;
        Ok(Token::ending(Secret::new(token), now_ms, now_ms, now_ms + of.lifetime_ms))
    }
}

impl Secrets for FakePorts {
    async fn keyring(&self, names: &[&SecretName], _: &Url) -> Result<Keyring, SecretError> {
        Ok(names.iter().map(|name| ((*name).clone(), Secret::new("hush".to_owned()))).collect())
    }
}

impl Consents for FakePorts {
    async fn consent(&self, key: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        if self.calls().consents_unreadable {
            return Err(ConsentError {
                key: key.to_string(),
                problem: "injected by the test".to_owned(),
            });
        }
        Ok(self.calls().consents.get(key).cloned())
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        self.hang(Hanging::KeepConsent).await;
        self.calls().consents.insert(key.clone(), granted.clone());
        Ok(())
    }
}

its_own_ports!(FakePorts);

impl FakePorts {
    async fn ask_table<T>(
        &self,
        change: impl FnOnce(&mut MemoryTable) -> T,
    ) -> Result<T, TableError> {
        self.hang(Hanging::Table).await;
        let mut calls = self.calls();
        if calls.table_unreachable {
            calls.table.requests += 1;
            return Err(TableError::unreachable("reach it: injected by the test"));
        }
        Ok(change(&mut calls.table))
    }
}

impl Table for FakePorts {
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
        let happens = if key.partition == NEWS { self.calls().before_news.take() } else { None };
        if let Some(happens) = happens {
            happens(&mut self.calls().table, now_ms);
        }
        if self.calls().news_refused && key.partition == NEWS {
            return Err(TableError::refused("replace it: injected by the test"));
        }
        let is_overtaken = expected != Expected::Anything && self.calls().is_overtaken();
        let expected = if is_overtaken { Expected::Version(0) } else { expected };
        if self.calls().is_answer_lost() {
            self.ask_table(|table| table.replace(key, entry, expected, now_ms)).await?;
        }
        self.ask_table(|table| table.replace(key, entry, expected, now_ms)).await
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
        if self.calls().throttled.as_deref() == Some(&key.partition) {
            return Err(TableError::refused("ThrottlingException: injected by the test"));
        }
        let answer = self.ask_table(|table| table.take_permits(key, take, now_ms)).await;
        let is_late = self.calls().late_permits > 0;
        if is_late {
            self.calls().late_permits -= 1;
            self.clock.sleep(2_000).await;
        }
        answer
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
        name: LineName,
        take: &TakePlaces,
        now_ms: u64,
    ) -> Result<Places, TableError> {
        let is_overtaken = self.calls().is_overtaken();
        if is_overtaken {
            return Ok(Places { line: Line::Overtaken, recovery: None });
        }
        self.ask_table(|table| table.take_places(key, name, take, now_ms)).await
    }
}

impl Queue for FakePorts {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        let fault = self.calls().queue_faults.get(&queue).copied();
        match fault {
            Some(Fault::Refuses) => return Err(QueueError("injected by the test".to_owned())),
            Some(Fault::Hangs) => std::future::pending().await,
            None => {}
        }
        let mut calls = self.calls();
        if calls.send_panics_left > 0 {
            calls.send_panics_left -= 1;
            panic!("injected by the test");
        }
        calls.sent_ms.push(self.clock.now_ms());
        calls.sent.push((queue, message));
        Ok(())
    }

    async fn change_visibility(&self, queue: QueueName, receipt: &str, seconds: u32) {
        self.hang(Hanging::ChangeVisibility).await;
        self.calls().visibility_changes.push((queue, receipt.to_owned(), seconds));
    }
}

impl PutMessage for FakePorts {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        let queue = queue.to_string();
        if let Some(error) = self.storage.get(&queue) {
            return Err(error.clone());
        }
        self.calls().sink_messages.push((queue, id, json.to_owned()));
        Ok(())
    }
}

impl PutBlob for FakePorts {
    async fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
        _: Option<BlobTag>,
    ) -> Result<(), PutError> {
        let path = format!("{bucket}/{key}");
        if let Some((_, error)) = self.storage.iter().find(|(name, _)| path.starts_with(*name)) {
            return Err(error.clone());
        }
        self.hang(Hanging::PutBlob).await;
        let text = String::from_utf8(bytes).expect("a blob is text");
        // As in storage, the first write of a key wins.
        self.calls().blobs.entry(path).or_insert(text);
        Ok(())
    }
}

/// Why subscriptions cannot be read.
const BROKEN: &str = "the settings cannot be read: broken";

/// What is known, and what a whole catalogue says about these topics.
fn read_topics<'a>(
    mut known: Catalogue,
    whole: &Catalogue,
    topics: impl IntoIterator<Item = &'a TopicName>,
) -> Catalogue {
    for topic in topics {
        match (whole.topic_subscriptions(topic), whole.found(topic)) {
            (Some(of), _) => known.add_found(topic.clone(), Arc::clone(of)),
            (None, found) => {
                known.add_missing(topic.clone(), found.cloned().unwrap_or(Found::Removed));
            }
        }
    }
    known
}

/// By need, so that a topic that nobody asked for is not there.
impl SubscriptionSource for FakePorts {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        let whole = self.catalogue.as_deref().ok_or(BROKEN)?;
        let mut current = Catalogue::by_need(whole.settings().clone());
        let is_later = std::mem::replace(&mut self.calls().looked_at_settings, true);
        if let Some(policy) = self.later_policy.as_ref().filter(|_| is_later) {
            current.restrict_secrets(policy.clone());
        }
        Ok(Arc::new(current))
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Arc<Catalogue> {
        self.calls().topics_read.push(topics.clone());
        if let Some((_, takes_ms)) = self.slow_topic.as_ref().filter(|(of, _)| topics.contains(of))
        {
            self.clock.sleep(*takes_ms).await;
        }
        let whole = self.catalogue.as_deref().expect("what is known has settings");
        let mut read = read_topics((*known).clone(), whole, topics);
        if let Some(topic) = self.unreadable_topic.as_ref().filter(|topic| topics.contains(topic)) {
            read.add_missing(topic.clone(), Found::Unreadable(BROKEN.to_owned()));
        }
        Arc::new(read)
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let newest = self.newer.as_deref().or(self.catalogue.as_deref());
        let newest = newest.filter(|_| self.newest_is_readable).ok_or(BROKEN)?;
        let known = known.with_settings(newest.settings().clone());
        Ok(Arc::new(read_topics(known, newest, topics)))
    }
}

impl Clock for FakePorts {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    async fn sleep(&self, wait_ms: u64) {
        self.clock.sleep(wait_ms).await;
        self.calls().slept_ms += wait_ms;
    }
}

impl JitterSource for FakePorts {
    fn next_jitter(&self) -> Jitter {
        self.jitter
    }
}
