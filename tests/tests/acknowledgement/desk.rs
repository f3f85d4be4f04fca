//! A desk: every port of both functions, answering as told and keeping what it was asked.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adapters::records::Record;
use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::machine::consent::{ConsentKey, Granted};
use delivery::manifest;
use delivery::manifest::Source;
use delivery::ports::{
    ChangeVisibility, Clock, ConsentError, Consents, JitterSource, Late, Message, PutBlob,
    PutError, PutMessage, Queue, QueueError, QueueName, SecretError, Secrets, SendHttp,
    SubscriptionSource,
};
use delivery::request::{Method, Request};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::schedule::Jitter;
use delivery::subscription::secret::{Keyring, Secret, SecretName};
use delivery::subscription::sink::{Container, SinkQueue};
use uuid::Uuid;

use crate::hours::Hours;
use crate::reactions::{Reaction, Reactions};

/// When a scene begins.
pub(crate) const NOW_MS: u64 = 1_795_158_180_000;

/// The deployment's container.
pub(crate) fn container() -> Container {
    Container { bucket: "letters".to_owned(), prefix: String::new() }
}

/// A published record of topic shop/orders, received for the first time.
pub(crate) fn record(message: &str, body: &str) -> Record {
    Record {
        message: message.to_owned(),
        receipt: message.to_owned(),
        queue: "events".to_owned(),
        body: body.into(),
        topic: Some("shop/orders".to_owned()),
        delivery: None,
        deadletter: None,
        traceparent: None,
        sent_ms: NOW_MS - 10,
        first_received_ms: NOW_MS,
        receives: 1,
    }
}

/// The topic shop/orders with so many subscriptions, s0, s1 and so on.
pub(crate) fn subscriptions(count: usize) -> Catalogue {
    catalogue(count, "")
}

/// The topic shop/orders with the subscription s0, whose dead letters go there.
pub(crate) fn subscriptions_with_sink(sink: &str) -> Catalogue {
    catalogue(1, &format!(", deadLetter: {{sink: '{sink}'}}"))
}

/// The topic shop/orders with the subscription s0, whose destination has this beside its address.
pub(crate) fn subscriptions_with_destination(more: &str) -> Catalogue {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s0}}\n\
         spec: {{destination: {{url: 'https://s0.example.com/', {more}}}, retry: {{jitterPercent: 0, timeToLive: PT1H}}}}\n"
    );
    manifest::read(&[Source { name: "scene", text: &text }])
        .into_result()
        .expect("the scene is right")
}

fn catalogue(count: usize, more: &str) -> Catalogue {
    let topic =
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n"
            .to_owned();
    let subscription = |n: usize| {
        format!(
            "---\napiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s{n}}}\n\
             spec: {{destination: {{url: 'https://s{n}.example.com/'}}, retry: {{jitterPercent: 0}}{more}}}\n"
        )
    };
    let text = (0..count).map(subscription).fold(topic, |text, next| text + &next);
    manifest::read(&[Source { name: "scene", text: &text }])
        .into_result()
        .expect("the scene is right")
}

/// These subscriptions and their topics.
pub(crate) fn catalogue_of(subscriptions: impl IntoIterator<Item = Subscription>) -> Catalogue {
    let mut catalogue = Catalogue::default();
    subscriptions.into_iter().for_each(|subscription| catalogue.add_subscription(subscription));
    catalogue
}

/// What a desk was asked.
#[derive(Default)]
struct Asked {
    slept_ms: u64,
    requests: usize,
    panics_left: usize,
    send_panics_left: usize,
    sent: Vec<(QueueName, Message)>,
    sent_ms: Vec<u64>,
    hidden: Vec<(String, String, u32)>,
    blobs: BTreeMap<String, String>,
    handed_over: Vec<(String, Uuid, String)>,
    consents: HashMap<ConsentKey, Granted>,
    consents_are_unreadable: bool,
    /// The `webhook-*` headers of answers to questions for consent; an empty list answers with
    /// none.
    allows: Vec<(String, String)>,
    questions: Vec<Request>,
    posts: Vec<Request>,
}

/// Every port of both functions. Clones are the same desk.
#[derive(Clone)]
pub(crate) struct Desk {
    catalogue: Option<Arc<Catalogue>>,
    newer: Option<Arc<Catalogue>>,
    newest_is_readable: bool,
    result: TransportResult,
    duration_ms: u64,
    takes_messages: bool,
    storage: BTreeMap<String, PutError>,
    reactions: Arc<Reactions>,
    hours: Hours,
    asked: Arc<Mutex<Asked>>,
}

fn answer(status: u16) -> TransportResult {
    TransportResult::Answered { status, retry_after: None, body: Vec::new() }
}

/// Whether a request asks for consent.
fn is_question(request: &Request) -> bool {
    let validation = |(name, value): &(String, String)| {
        name == "aeg-event-type" && value == "SubscriptionValidation"
    };
    request.method == Method::Options || request.headers.iter().any(validation)
}

/// A destination that allows something names it, and echoes the code of a validation event.
fn answer_to_question(request: &Request, allows: &[(String, String)], now_ms: u64) -> Exchange {
    let body =
        String::from_utf8_lossy(&request.body).replace("validationCode", "validationResponse");
    let data = body.split_once(r#""data":"#).and_then(|(_, rest)| rest.split_once(','));
    let echo = data
        .filter(|_| !allows.is_empty())
        .map_or(Vec::new(), |(data, _)| data.as_bytes().to_vec());
    let result = TransportResult::Answered { status: 200, retry_after: None, body: echo };
    let content = Content { webhook: allows.to_vec(), ..Content::default() };
    Exchange { content: Some(content), ..Exchange::new(result, now_ms, 0) }
}

/// How a scene sets its desk.
impl Desk {
    pub(crate) fn without_subscriptions() -> Self {
        Self {
            catalogue: None,
            newer: None,
            newest_is_readable: true,
            result: answer(200),
            duration_ms: 0,
            takes_messages: true,
            storage: BTreeMap::new(),
            reactions: Arc::default(),
            hours: Hours::since(NOW_MS),
            asked: Arc::default(),
        }
    }

    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self { catalogue: Some(Arc::new(catalogue)), ..Self::without_subscriptions() }
    }

    pub(crate) fn finding_on_reread(self, catalogue: Catalogue) -> Self {
        Self { newer: Some(Arc::new(catalogue)), ..self }
    }

    /// The last good subscriptions are there, but nobody can say what the newest are.
    pub(crate) fn with_a_broken_reload(self) -> Self {
        Self { newest_is_readable: false, ..self }
    }

    pub(crate) fn result(self, result: TransportResult) -> Self {
        Self { result, ..self }
    }

    pub(crate) fn answering(self, status: u16) -> Self {
        self.result(answer(status))
    }

    /// Requests whose address or body holds this text meet these reactions in turn; the last one
    /// repeats.
    pub(crate) fn meeting(mut self, text: &str, reactions: &[Reaction]) -> Self {
        let known = Arc::get_mut(&mut self.reactions).expect("a desk is set before it is shared");
        known.add(text, reactions);
        self
    }

    /// Each exchange takes so long, and the clock moves with it.
    pub(crate) fn taking_ms(self, duration_ms: u64) -> Self {
        Self { duration_ms, ..self }
    }

    pub(crate) fn refusing_messages(self) -> Self {
        Self { takes_messages: false, ..self }
    }

    /// This bucket refuses every blob, or this queue of others every message.
    pub(crate) fn refusing_blobs(mut self, name: &str, error: PutError) -> Self {
        self.storage.insert(name.to_owned(), error);
        self
    }

    pub(crate) fn panicking_once(self) -> Self {
        self.asked().panics_left = 1;
        self
    }
}

/// What breaks on purpose.
impl Desk {
    /// The first message is not sent, for a panic.
    pub(crate) fn panicking_once_while_sending(self) -> Self {
        self.asked().send_panics_left = 1;
        self
    }
}

/// What happens in the middle of a scene.
impl Desk {
    /// From now on destinations allow this when they are asked.
    pub(crate) fn now_allows(&self, allows: &[(&str, &str)]) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.asked().allows = allows.iter().map(owned).collect();
    }

    /// Nobody can say any more, or again, who consented.
    pub(crate) fn consents_unreadable(&self, unreadable: bool) {
        self.asked().consents_are_unreadable = unreadable;
    }

    pub(crate) fn passes_ms(&self, wait_ms: u64) {
        self.hours.pass(wait_ms);
    }

    /// Lets a scene happen: whenever nothing else can, time goes on to the next moment that
    /// somebody waits for.
    pub(crate) fn run<T>(&self, scene: impl Future<Output = T>) -> T {
        self.hours.run(scene)
    }
}

/// What a scene asks its desk afterwards.
impl Desk {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn requests(&self) -> usize {
        self.asked().requests
    }

    /// The questions for consent.
    pub(crate) fn questions(&self) -> Vec<Request> {
        self.asked().questions.clone()
    }

    /// The requests that were no such questions.
    pub(crate) fn posts(&self) -> Vec<Request> {
        self.asked().posts.clone()
    }

    /// The consents that were kept.
    pub(crate) fn consents(&self) -> Vec<Granted> {
        self.asked().consents.values().cloned().collect()
    }

    pub(crate) fn slept_ms(&self) -> u64 {
        self.asked().slept_ms
    }

    pub(crate) fn sent(&self) -> Vec<(QueueName, Message)> {
        self.asked().sent.clone()
    }

    /// How long the scene has lasted.
    pub(crate) fn after_ms(&self) -> u64 {
        self.now_ms() - NOW_MS
    }

    /// How long after the beginning of the scene each message was sent.
    pub(crate) fn sent_after_ms(&self) -> Vec<u64> {
        self.asked().sent_ms.iter().map(|at_ms| at_ms - NOW_MS).collect()
    }

    /// Queue, receipt and seconds of each record that was hidden.
    pub(crate) fn hidden(&self) -> Vec<(String, String, u32)> {
        self.asked().hidden.clone()
    }

    /// Queue, id and text of each dead letter that went to a queue of others.
    pub(crate) fn handed_over(&self) -> Vec<(String, Uuid, String)> {
        self.asked().handed_over.clone()
    }

    /// `bucket/key` and text of each blob.
    pub(crate) fn blobs(&self) -> Vec<(String, String)> {
        self.asked().blobs.clone().into_iter().collect()
    }
}

impl SendHttp for Desk {
    async fn exchange(&self, request: &Request) -> Exchange {
        self.exchange_or_late(request).await.0
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let started_ms = self.now_ms();
        if let Some(answer) = self.note(request) {
            return (answer, None);
        }
        let Some(reaction) = self.reactions.next(request) else {
            self.hours.pass(self.duration_ms);
            return (Exchange::new(self.result.clone(), started_ms, self.duration_ms), None);
        };
        reaction.happen(self.hours.clone()).await
    }
}

impl Desk {
    /// Writes a request down; a question for consent is answered here.
    fn note(&self, request: &Request) -> Option<Exchange> {
        let now_ms = self.now_ms();
        let mut asked = self.asked();
        if is_question(request) {
            asked.questions.push(request.clone());
            return Some(answer_to_question(request, &asked.allows, now_ms));
        }
        asked.posts.push(request.clone());
        asked.requests += 1;
        if asked.panics_left > 0 {
            asked.panics_left -= 1;
            panic!("as the scene wants it");
        }
        None
    }
}

impl Secrets for Desk {
    async fn keyring(&self, names: &[&SecretName]) -> Result<Keyring, SecretError> {
        Ok(names.iter().map(|name| ((*name).clone(), Secret::new("hush".to_owned()))).collect())
    }
}

impl Consents for Desk {
    async fn consent(&self, key: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        if self.asked().consents_are_unreadable {
            return Err(ConsentError {
                key: key.as_str().to_owned(),
                problem: "as the scene wants it".to_owned(),
            });
        }
        Ok(self.asked().consents.get(key).cloned())
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        self.asked().consents.insert(key.clone(), granted.clone());
        Ok(())
    }
}

impl Queue for Desk {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        if !self.takes_messages {
            return Err(QueueError("as the scene wants it".to_owned()));
        }
        let mut asked = self.asked();
        if asked.send_panics_left > 0 {
            asked.send_panics_left -= 1;
            panic!("as the scene wants it");
        }
        asked.sent_ms.push(self.hours.now_ms());
        asked.sent.push((queue, message));
        Ok(())
    }
}

impl ChangeVisibility for Desk {
    async fn change_visibility(&self, queue: &str, receipt: &str, seconds: u32) {
        self.asked().hidden.push((queue.to_owned(), receipt.to_owned(), seconds));
    }
}

impl PutMessage for Desk {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        let queue = queue.to_string();
        if let Some(error) = self.storage.get(&queue) {
            return Err(error.clone());
        }
        self.asked().handed_over.push((queue, id, json.to_owned()));
        Ok(())
    }
}

impl PutBlob for Desk {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), PutError> {
        if let Some(error) = self.storage.get(bucket) {
            return Err(error.clone());
        }
        let text = String::from_utf8(bytes).expect("a blob is text");
        self.asked().blobs.entry(format!("{bucket}/{key}")).or_insert(text);
        Ok(())
    }
}

impl SubscriptionSource for Desk {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        self.catalogue.clone().ok_or_else(|| "subscriptions.yaml:1:1: broken".to_owned())
    }

    async fn reread(&self) -> Result<Arc<Catalogue>, String> {
        if !self.newest_is_readable {
            return Err("subscriptions.yaml:1:1: broken".to_owned());
        }
        self.newer.clone().or_else(|| self.catalogue.clone()).ok_or_else(|| "broken".to_owned())
    }
}

impl Clock for Desk {
    fn now_ms(&self) -> u64 {
        self.hours.now_ms()
    }

    async fn sleep(&self, wait_ms: u64) {
        self.hours.sleep(wait_ms).await;
        self.asked().slept_ms += wait_ms;
    }
}

impl JitterSource for Desk {
    fn next_jitter(&self) -> Jitter {
        Jitter::NONE
    }
}
