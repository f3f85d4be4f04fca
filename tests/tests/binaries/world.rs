//! The surroundings of a function: a local SQS and S3, and destinations. The function itself runs
//! as a process.

use delivery::subscription::NoFields;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use adapters::aws_ports::s3_client;
use adapters::storage::{ListRequest, Storage, StoredObject};
use adapters::table::DynamoTable;
use delivery::machine::consent::{ConsentKey, Granted, Rate};
use delivery::subscription::{Consent, Destination};
use delivery::table::{Entry, Expected, Table as _};
use lastmile_tests::scripted::{Scripted, ScriptedRequest, answer};
use lastmile_tests::topics::apply;
use local::aws::{LocalAws, LocalAwsConfig, TABLE, local_clients};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::environment::{Function, environment};
use crate::runtime_api::{Invocation, RuntimeApi};

/// The topics `shop/…`, each with a subscription `s` to `/…` and additional members of its spec.
const TOPICS: [(&str, &str); 6] = [
    ("taken", ""),
    ("encrypted", ", retry: {schedule: {kind: constant, delay: PT1M}, jitterPercent: 0}"),
    ("later", ", retry: {schedule: {kind: constant, delay: PT1M}, jitterPercent: 0}"),
    ("soon", ", retry: {schedule: {kind: constant, delay: PT0.2S}, jitterPercent: 0}"),
    ("brief", ", retry: {timeToLive: PT10M}"),
    ("consented", ""),
];
/// The limit of a wait: enough to start a process on a busy machine, for its invocation, and for a
/// message.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) struct World {
    aws: LocalAws,
    destination: Scripted,
    _folder: TempDir,
}

/// A running function. Dropping it kills the process.
pub(crate) struct Running {
    process: Child,
    output: NamedTempFile,
    runtime_api: RuntimeApi,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        // An unwaited child would stay a zombie until the tests end.
        let _ = self.process.wait();
    }
}

impl Running {
    /// Waits for the response to the invocation.
    pub(crate) async fn response(&mut self) -> Value {
        let answered = async {
            loop {
                if let Some(response) = self.runtime_api.response() {
                    return response;
                }
                let ended = self.process.try_wait().expect("a process of ours");
                assert!(ended.is_none(), "the function ended: {ended:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LIMIT, answered).await.expect("the function responds")
    }

    /// Waits until the function requests an invocation.
    pub(crate) async fn has_started(&mut self) {
        let asked = async {
            while !self.runtime_api.is_asked() {
                let ended = self.process.try_wait().expect("a process of ours");
                assert!(ended.is_none(), "the function ended: {ended:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LIMIT, asked).await.expect("it asks for work");
    }

    /// Stops the function, as Lambda stops a process that is registered as an extension, and waits
    /// until it has ended.
    pub(crate) async fn stop(&mut self) {
        assert!(self.runtime_api.is_awaited(), "without an extension Lambda tells nobody");
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
        let ended = async {
            loop {
                if let Some(status) = self.process.try_wait().expect("a process of ours") {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let status = tokio::time::timeout(LIMIT, ended).await.expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// Returns true if the function has written a line with this text.
    pub(crate) fn has_line(&self, text: &str) -> bool {
        fs::read_to_string(self.output.path()).expect("a text").contains(text)
    }

    /// Returns the records that the invocation returns to their queue.
    pub(crate) async fn returned(&mut self) -> Vec<String> {
        let response = self.response().await;
        let failures = response["batchItemFailures"].as_array();
        let failures = failures.unwrap_or_else(|| panic!("it has the list: {response}"));
        let id = |failure: &Value| failure["itemIdentifier"].as_str().expect("an id").to_owned();
        failures.iter().map(id).collect()
    }

    /// Waits for a line of standard output with this text, and parses it as JSON.
    pub(crate) async fn line(&self, text: &str) -> Value {
        let found = async {
            loop {
                let output = fs::read_to_string(self.output.path()).expect("a text");
                // The last line may be incomplete.
                let whole = output.split_inclusive('\n').filter(|line| line.ends_with('\n'));
                if let Some(line) = whole.into_iter().find(|line| line.contains(text)) {
                    return serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LIMIT, found).await.unwrap_or_else(|_| panic!("no line has {text}"))
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = LocalAwsConfig::of_lastmile(0, folder.path().to_owned(), 60);
        let aws = LocalAws::start(config).await.expect("a free port");
        let world = Self { aws, destination: destination().await, _folder: folder };
        let subscriptions = TOPICS.map(|(topic, spec)| world.subscription(topic, spec));
        let (storage, key) = (world.bucket("config"), "subscriptions/".to_owned());
        let folder = StoredObject { storage, key };
        apply(&folder, &subscriptions.join("---\n")).await;
        world
    }

    fn subscription(&self, topic: &str, spec: &str) -> String {
        let consent = if topic == "consented" { ", consent: {handshake: eventgrid}" } else { "" };
        let url = self.url(topic);
        let url = if topic == "encrypted" { url.replace("http:", "https:") } else { url };
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: {topic}, name: s}}\n\
             spec: {{destination: {{url: '{url}'{consent}}}{spec}}}\n"
        )
    }

    fn url(&self, topic: &str) -> String {
        format!("{}/{topic}", self.destination.endpoint())
    }

    /// The address of the destinations.
    pub(crate) fn destination_url(&self) -> String {
        self.destination.endpoint()
    }

    /// Stores the consent of `shop/consented` with this rate.
    pub(crate) async fn consent(&self, rate: &str) {
        let url: reqwest::Url = self.url("consented").parse().expect("a URL");
        let rate = Rate::parse(rate).expect("a rate");
        let granted =
            Granted::new(&Destination::new(url.clone(), 1), &Consent::EventGrid(NoFields), rate, 1);
        let key = ConsentKey::new("shop", &url, &Consent::EventGrid(NoFields));
        let table = DynamoTable::new(&local_clients(&self.aws.endpoint()), TABLE.to_owned());
        let entry = Entry { text: granted.write(), expires_ms: None };
        let kept = table.replace(&key.item(), &entry, Expected::Anything, 0).await;
        assert_eq!(kept, Ok(true));
    }

    /// Starts a function with these changes to its environment.
    pub(crate) async fn run(
        &self,
        function: &Function,
        changes: &[(&str, &str)],
        invocation: Invocation,
    ) -> Running {
        let runtime_api = RuntimeApi::start(vec![invocation]).await;
        let mut variables = environment(function, &self.aws.endpoint(), &runtime_api.address());
        variables
            .extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let output = NamedTempFile::new().expect("a file");
        let mut command = command(function, &variables);
        command.stdout(output.reopen().expect("the file")).stderr(Stdio::null());
        let process = command.spawn().expect("the binary starts");
        Running { process, output, runtime_api }
    }

    /// Returns the URL of a queue, whether or not the queue exists.
    pub(crate) fn queue_url(&self, name: &str) -> String {
        self.aws.queue_url(name)
    }

    /// Returns the sorted paths of the requests to destinations so far.
    pub(crate) fn requested(&self) -> Vec<String> {
        let path =
            |request: &ScriptedRequest| request.head.split(' ').nth(1).map(ToOwned::to_owned);
        let mut paths: Vec<String> = self.destination.requests().iter().filter_map(path).collect();
        paths.sort();
        paths
    }

    /// Returns the number of messages in a queue: visible, delayed and in flight together.
    pub(crate) async fn held(&self, queue: &str) -> u64 {
        self.aws.messages_held().await.expect("an answer")[queue]
    }

    /// Waits for the only message of a queue and returns its `delivery` attribute.
    pub(crate) async fn delivery_in(&self, queue: &str) -> Value {
        let sqs = aws_sdk_sqs::Client::new(&local_clients(&self.aws.endpoint()));
        let receive = || {
            let receive = sqs.receive_message().queue_url(self.aws.queue_url(queue));
            receive.message_attribute_names("All").wait_time_seconds(1).send()
        };
        let received = async {
            loop {
                let messages = receive().await.expect("an answer").messages.unwrap_or_default();
                if let [message] = &messages[..] {
                    return message.clone();
                }
            }
        };
        let message = tokio::time::timeout(LIMIT, received).await.expect("a message arrives");
        let attributes = message.message_attributes.unwrap_or_default();
        let text = attributes
            .get("delivery")
            .and_then(|attribute| attribute.string_value())
            .expect("it is ours");
        serde_json::from_str(text).expect("JSON")
    }

    /// Returns the sorted keys of a bucket.
    pub(crate) async fn keys(&self, bucket: &str) -> Vec<String> {
        let page = self.bucket(bucket).list_page(&ListRequest::default()).await.expect("a list");
        page.entries.into_iter().map(|entry| entry.key).collect()
    }

    fn bucket(&self, name: &str) -> Storage {
        Storage::bucket(s3_client(&local_clients(&self.aws.endpoint())), name)
    }
}

/// Starts the destinations: `/soon` and `/later` respond with 503, the others with 200.
async fn destination() -> Scripted {
    let script = |request: &ScriptedRequest| {
        let is_busy =
            ["POST /soon ", "POST /later "].iter().any(|start| request.head.starts_with(start));
        vec![answer(if is_busy { "503 Busy" } else { "200 OK" }, &[], b"")]
    };
    Scripted::start(script).await.expect("a free port")
}

/// Returns the command of the binary, with only this environment.
pub(crate) fn command(function: &Function, variables: &BTreeMap<String, String>) -> Command {
    let [program, arguments @ ..] = &function.command()[..] else { unreachable!("a program") };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(variables).stdin(Stdio::null());
    command
}
