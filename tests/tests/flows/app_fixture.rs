//! The application under test: a local stack, a subscriber that records requests, and the dead
//! letters as files.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use axum::http::StatusCode;
use delivery::publish::AllowedOrigins;
use lastmile_tests::topics;
use local::guard::Hosts;
use local::ingress::Ingress;
use local::stack::{Stack, StackConfig, TargetSettings};
use local::subscriber::{Received, Subscriber, status_sequence};
use serde_json::Value;
use tempfile::TempDir;

use crate::reactions::{self, Reaction};
use crate::{eventbridge, services};

/// The folder of the subscriptions within the data folder.
const FOLDER: &str = "subscriptions";
/// The limit of every wait in a test.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct AppFixture {
    pub(crate) stack: Stack,
    received: Arc<Mutex<Vec<Received>>>,
    data: TempDir,
    /// The port of the subscriber.
    port: u16,
}

impl AppFixture {
    /// Starts the application with these subscriptions, in which `PORT` stands for the subscriber's
    /// port. The subscriber responds with these statuses in order.
    pub(crate) async fn start(subscriptions: &[String], answers: &[u16]) -> Self {
        let subscriber = Subscriber::listen(0).await.expect("a port is free");
        let port = subscriber.port().expect("it listens");
        let statuses =
            answers.iter().map(|status| StatusCode::from_u16(*status).expect("a status")).collect();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let keep = Arc::clone(&received);
        tokio::spawn(subscriber.serve(status_sequence(statuses, 0), move |request, _| {
            keep.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        }));
        Self::with_loopback_allowed(subscriptions, port, received).await
    }

    /// Starts the application with a subscriber that reacts to each request by its number, from 0.
    pub(crate) async fn with_reactions(
        subscriptions: &[String],
        react: impl Fn(usize, &Received) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let port = reactions::serve(react, Arc::clone(&received)).await;
        Self::with_loopback_allowed(subscriptions, port, received).await
    }

    /// Adds subscriptions while the application runs.
    pub(crate) async fn apply(&self, subscriptions: &[String]) {
        let text = subscriptions.join("---\n").replace("PORT", &self.port.to_string());
        topics::apply_in(&self.data.path().join(FOLDER), &text).await;
    }

    /// Starts the application with a subscriber that responds with 200, and without allowed private
    /// addresses.
    pub(crate) async fn without_private_addresses(subscriptions: &[String]) -> Self {
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let port = reactions::serve(|_, _| reactions::answers(200), Arc::clone(&received)).await;
        Self::with_private_destinations("", subscriptions, port, received).await
    }

    /// Starts the application for a subscriber at this local port.
    pub(crate) async fn with_port(subscriptions: &[String], port: u16) -> Self {
        Self::with_loopback_allowed(subscriptions, port, Arc::default()).await
    }

    async fn with_loopback_allowed(
        subscriptions: &[String],
        port: u16,
        received: Arc<Mutex<Vec<Received>>>,
    ) -> Self {
        Self::with_private_destinations("127.0.0.1", subscriptions, port, received).await
    }

    async fn with_private_destinations(
        allow_private: &str,
        subscriptions: &[String],
        port: u16,
        received: Arc<Mutex<Vec<Received>>>,
    ) -> Self {
        let data = tempfile::tempdir().expect("a folder can be made");
        let folder = data.path().join(FOLDER);
        std::fs::create_dir(&folder).expect("a folder can be made");
        let text = subscriptions.join("---\n").replace("PORT", &port.to_string());
        topics::apply_in(&folder, &text).await;
        let config = StackConfig {
            // Tests run concurrently, so each needs a free port.
            aws_port: 0,
            data: data.path().to_owned(),
            subscriptions: folder,
            allow_private: allow_private.to_owned(),
            targets: TargetSettings::default(),
            default_topic: None,
        };
        let secrets = |name: &str, _: Option<&_>| {
            eventbridge::secret(name).or_else(|| services::secret(name))
        };
        let stack = Stack::start_with(&config, secrets).await.expect("the stack starts");
        Self { stack, received, data, port }
    }

    /// Sends a record to the events queue, as any publisher would.
    pub(crate) async fn publish(&self, topic: &str, body: &str) {
        self.send("events", body, &[("topic", topic)]).await;
    }

    /// Sends a message with these attributes to a queue.
    pub(crate) async fn send(&self, queue: &str, body: &str, attributes: &[(&str, &str)]) {
        let queue = self.stack.aws().queue_url(queue);
        let mut send = self.stack.sqs().send_message().queue_url(queue).message_body(body);
        for (name, value) in attributes {
            let text = MessageAttributeValue::builder().data_type("String").string_value(*value);
            send = send.message_attributes(*name, text.build().expect("typed"));
        }
        send.send().await.expect("the queue accepts it");
    }

    /// Sends up to ten records in one request, so that one invocation may receive them all.
    pub(crate) async fn publish_all(&self, topic: &str, bodies: &[String]) {
        let named = MessageAttributeValue::builder()
            .data_type("String")
            .string_value(topic)
            .build()
            .expect("typed");
        let entry = |(number, body): (usize, &String)| {
            let entry =
                SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(body);
            entry.message_attributes("topic", named.clone()).build().expect("complete")
        };
        let entries = bodies.iter().enumerate().map(entry).collect();
        let send =
            self.stack.sqs().send_message_batch().queue_url(self.stack.aws().queue_url("events"));
        let answer = send.set_entries(Some(entries)).send().await.expect("the queue accepts them");
        assert!(answer.failed().is_empty(), "{answer:?}");
    }

    /// Starts an HTTP ingress for this application and returns its address.
    pub(crate) async fn ingress(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let ingress = Ingress {
            queue: self.stack.events_queue(),
            subscriptions: self.stack.subscriptions(),
            default_topic: None,
            keys: Vec::new(),
            origins: AllowedOrigins::default(),
            hosts: Hosts::default(),
        };
        tokio::spawn(axum::serve(listener, ingress.router()).into_future());
        format!("http://{address}")
    }

    /// Waits until the subscriber has received this many requests, and returns them.
    pub(crate) async fn received(&self, requests: usize) -> Vec<Received> {
        let held = || self.received.lock().unwrap_or_else(PoisonError::into_inner).clone();
        until(&format!("{requests} requests"), async || {
            Some(held()).filter(|held| held.len() >= requests)
        })
        .await
    }

    /// Waits until there are this many dead letters, and returns them by key.
    pub(crate) async fn dead_letters(&self, letters: usize) -> Vec<(String, Value)> {
        let container = self.data.path().join("s3/dead-letters");
        until(&format!("{letters} dead letters"), async || {
            Some(files(&container)).filter(|found| found.len() >= letters)
        })
        .await
    }

    /// Receives and deletes the first message of a queue, and returns its body.
    pub(crate) async fn message_of(&self, queue: &str) -> Value {
        let url = self.stack.aws().queue_url(queue);
        until(&format!("a message of {queue}"), async || {
            let received = self
                .stack
                .sqs()
                .receive_message()
                .queue_url(&url)
                .send()
                .await
                .expect("the queue responds");
            let message = received.messages().first()?;
            let receipt = message.receipt_handle().expect("it was received");
            let delete = self.stack.sqs().delete_message().queue_url(&url).receipt_handle(receipt);
            delete.send().await.expect("the queue deletes it");
            Some(serde_json::from_str(message.body().expect("a body")).expect("JSON"))
        })
        .await
    }

    /// Waits until all queues are empty, and returns the dead letters.
    pub(crate) async fn dead_letters_when_idle(&self) -> Vec<(String, Value)> {
        until("empty queues", async || {
            let held = self.stack.aws().messages_held().await.expect("the queues respond");
            held.values().all(|messages| *messages == 0).then_some(())
        })
        .await;
        self.dead_letters(0).await
    }
}

async fn until<T>(awaited: &str, check: impl AsyncFn() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting)
        .await
        .unwrap_or_else(|_| panic!("timed out waiting for {awaited}"))
}

/// Returns true for the name of a file that is being written: `.lastmile-`, the id of the process,
/// `-` and a number.
fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix(".lastmile-").and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, number)| {
        process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok()
    })
}

fn files(folder: &Path) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if is_temporary(&entry.file_name().to_string_lossy()) {
                continue;
            }
            let key = path.strip_prefix(folder).expect("below the folder").display().to_string();
            let bytes = std::fs::read(&path).expect("a dead letter can be read");
            found.push((key, serde_json::from_slice(&bytes).expect("a dead letter is JSON")));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
