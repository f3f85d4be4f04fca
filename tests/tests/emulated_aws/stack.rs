//! The application, deployed from `template.yaml` to an emulated AWS on this machine.
//!
//! Separate so that the tests are about events and dead letters, not about installing, building and
//! deploying. The scripts in `tests/emulated` do the work, and a person can run them one by one.
//! There is one stack for the whole test binary, with the real function binaries running, and
//! nothing is left running however the tests end. This file knows nothing of what the functions do.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use adapters::storage::StoredObject;
use aws_sdk_s3::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Error;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use lastmile_tests::built::binary;
use lastmile_tests::emulated::{self, ReservedPort};
use lastmile_tests::libraries;
use lastmile_tests::writers::{Place, succeeded};
use serde_json::Value;

use crate::{aws_targets, credentials, now};

/// The stack's parameters.
const PARAMETERS: [&str; 12] = [
    "DispatchTimeout=20",
    "AllowPrivateDestinations=127.0.0.1",
    "Ingress=iam",
    "Observability=true",
    "MetricsPer=topic,outcome",
    "AlarmTopicArn=arn:aws:sns:us-east-1:000000000000:alarms",
    // What the examples of docs/guides/publish.md publish with.
    "PublisherArns=arn:aws:sns:us-east-1:000000000000:shop-orders,\
     arn:aws:events:us-east-1:000000000000:rule/shop,arn:aws:s3:::shop-uploads",
    "OperatorArns=arn:aws:iam::000000000000:role/operators-of-*",
    "SecretArns=arn:aws:secretsmanager:us-east-1:000000000000:secret:named-??????,\
     arn:aws:ssm:us-east-1:000000000000:parameter/named",
    "InvokeRoleArn=arn:aws:iam::000000000000:role/calls-destinations",
    aws_targets::LISTED,
    "IdentityAudiences=https://asked.example.com/",
];

/// The queues whose visibility timeout belongs to that of the functions, by their outputs.
const WITH_TIMEOUT: [&str; 4] =
    ["EventsQueueUrl", "RetryQueueUrl", "SlowQueueUrl", "DeadLetterQueueUrl"];
/// That of queues of functions that have no timeout of their own here, so that a message of a killed function is
/// redelivered within a test.
const SHORT_SECONDS: u32 = 30;

/// Those of a second one, in a VPC that the emulated AWS does not look for.
const SECOND: &[&str] =
    &["AllowPrivateDestinations=127.0.0.1", "SubnetIds=subnet-1,subnet-2", "SecurityGroupIds=sg-1"];

/// The policy of a queue that topics of SNS send to.
const SNS_MAY_SEND: &str = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
    "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": "*"}]}"#;

/// The credentials of the account, which may do everything.
pub(crate) const ACCOUNT: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];

/// Where the config bucket has the subscriptions.
pub(crate) const SUBSCRIPTIONS: &str = "subscriptions/";
/// The owner of what the environment itself applies.
const OWNER: &str = "environment";

/// The outputs of another stack beside that of the tests.
pub(crate) struct Second(BTreeMap<String, String>);

impl Second {
    /// An output of it.
    pub(crate) fn output(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("the stack has no output {name}"))
    }
}

/// The deployed application, and clients for it.
pub(crate) struct Stack {
    /// The endpoint of the emulated AWS.
    pub(crate) endpoint: String,
    outputs: BTreeMap<String, String>,
    queues: aws_sdk_sqs::Client,
    blobs: aws_sdk_s3::Client,
    /// Its standard input closes with this process, which ends the emulated AWS.
    server: Child,
    _port: ReservedPort,
}

impl Stack {
    /// Builds, starts and deploys everything, with these subscriptions: the emulated AWS on this port, functions that call it
    /// on another one, and values (`Name=Value`) that take the place of those of [`PARAMETERS`].
    pub(crate) async fn deploy_at(
        reserved: ReservedPort,
        functions_call: u16,
        changed: &[&str],
        subscriptions: String,
    ) -> Self {
        // The emulated AWS gives functions its own variables.
        let variables = credentials::variables();
        let given = parameters(changed);
        let stack = Self::deploy_with(reserved, functions_call, variables, &given).await;
        if changed.iter().all(|it| !it.starts_with("DispatchTimeout=")) {
            for queue in WITH_TIMEOUT {
                stack.hide_for(queue, SHORT_SECONDS).await;
            }
        }
        stack.put_subscriptions(subscriptions).await;
        stack
    }

    /// Deploys as a user does who sets nothing, in an account whose functions may run so many times at once. Only the
    /// subscriber is named, because its address is private.
    pub(crate) async fn deploy_in_account_of(
        concurrency: usize,
        reserved: ReservedPort,
        subscriptions: String,
    ) -> Self {
        let limit = ("LAMBDA_ACCOUNT_CONCURRENCY".to_owned(), concurrency.to_string());
        let number = reserved.number;
        let given = ["AllowPrivateDestinations=127.0.0.1"];
        let stack = Self::deploy_with(reserved, number, vec![limit], &given).await;
        stack.put_subscriptions(subscriptions).await;
        stack
    }

    /// Builds, starts and deploys everything with these parameters; the emulated AWS has these variables.
    async fn deploy_with(
        reserved: ReservedPort,
        functions_call: u16,
        variables: Vec<(String, String)>,
        given: &[&str],
    ) -> Self {
        assert!(has_tools(), "the emulated AWS needs Python");
        if std::env::var_os("LASTMILE_RELEASE").is_none() {
            let binaries = binary("dispatch").with_file_name("");
            script("package.sh", &[&binaries.to_string_lossy()]);
        }
        let port = reserved.number;
        let server = emulated::serve(&build_folder(), port, functions_call, variables).await;
        let port_text = port.to_string();
        let printed = script("deploy.sh", &[&[port_text.as_str()], given].concat());
        Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            outputs: serde_json::from_str(&printed)
                .expect("deploy.sh prints the outputs of the stack as JSON"),
            queues: aws_sdk_sqs::Client::from_conf(
                aws_sdk_sqs::Config::builder()
                    .behavior_version(BehaviorVersion::latest())
                    .region(Region::from_static("us-east-1"))
                    .credentials_provider(credentials())
                    .endpoint_url(format!("http://127.0.0.1:{port}"))
                    .build(),
            ),
            blobs: s3_client(&format!("http://127.0.0.1:{port}")),
            server,
            _port: reserved,
        }
    }

    /// Deploys the application again under this name, without subscriptions, and with more parameters.
    pub(crate) async fn deploy_second(&self, name: &str, more: &[&str]) -> Second {
        let port = self.endpoint.rsplit(':').next().expect("the endpoint has a port").to_owned();
        let mut deploy = command("deploy.sh", &[&[port.as_str()], SECOND, more].concat());
        deploy.env("LASTMILE_DEPLOYED_AS", name);
        let deployed = tokio::task::spawn_blocking(move || output_of("deploy.sh", &mut deploy));
        let printed = deployed.await.expect("deploy.sh ends");
        Second(serde_json::from_str(&printed).expect("deploy.sh prints outputs as JSON"))
    }

    /// The variables that make somebody a session of a new role of this name, with this policy.
    pub(crate) fn session(&self, role: &str, policy: &str) -> [(&'static str, String); 3] {
        let port = self.endpoint.rsplit(':').next().expect("the endpoint has a port");
        let session = script("role.sh", &[port, role, policy]);
        let session: Value = serde_json::from_str(&session).expect("role.sh prints JSON");
        let credentials = [
            ("AWS_ACCESS_KEY_ID", "AccessKeyId"),
            ("AWS_SECRET_ACCESS_KEY", "SecretAccessKey"),
            ("AWS_SESSION_TOKEN", "SessionToken"),
        ];
        let value = |of: &str| session[of].as_str().expect("a credential").to_owned();
        credentials.map(|(name, of)| (name, value(of)))
    }

    /// A client of Lambda.
    pub(crate) fn lambda(&self) -> aws_sdk_lambda::Client {
        aws_sdk_lambda::Client::from_conf(
            aws_sdk_lambda::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .region(Region::from_static("us-east-1"))
                .credentials_provider(credentials())
                .endpoint_url(&self.endpoint)
                .build(),
        )
    }

    /// What tells the command line where the emulated AWS is.
    pub(crate) fn variables(&self) -> [(&str, &str); 6] {
        [
            ("AWS_ENDPOINT_URL", self.endpoint.as_str()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("NO_PROXY", "127.0.0.1"),
        ]
    }

    /// Sends one event to the events queue, as any publisher would.
    pub(crate) async fn publish(&self, topic: &str, event: &str) {
        self.send(event, &[("topic", topic)]).await;
    }

    /// Sends these events to the events queue, ten in a request.
    pub(crate) async fn publish_all(&self, topic: &str, events: &[String]) {
        for events in events.chunks(10) {
            let entries = events.iter().enumerate().map(|(number, event)| {
                let entry = SendMessageBatchRequestEntry::builder().id(number.to_string());
                let entry = entry.message_body(event).message_attributes("topic", text(topic));
                entry.build().expect("an id and a body make an entry")
            });
            let send = self.queues.send_message_batch().queue_url(self.output("EventsQueueUrl"));
            let sent = send.set_entries(Some(entries.collect())).send().await;
            let failed = sent.expect("the events queue accepts a batch").failed;
            assert!(failed.is_empty(), "{failed:?}");
        }
    }

    /// Sends a message with these attributes to the events queue.
    pub(crate) async fn send(&self, body: &str, attributes: &[(&str, &str)]) {
        let mut send =
            self.queues.send_message().queue_url(self.output("EventsQueueUrl")).message_body(body);
        for (name, value) in attributes {
            send = send.message_attributes(*name, text(value));
        }
        send.send().await.expect("the events queue accepts an event");
    }

    /// Sends a message without attributes, as AWS services do.
    pub(crate) async fn publish_without_a_topic(&self, body: &str) {
        let send =
            self.queues.send_message().queue_url(self.output("EventsQueueUrl")).message_body(body);
        send.send().await.expect("the events queue accepts a message");
    }

    /// URL and ARN of the events queue.
    pub(crate) async fn events_queue(&self) -> (String, String) {
        let url = self.output("EventsQueueUrl");
        (url.to_owned(), self.arn(url).await)
    }

    async fn arn(&self, url: &str) -> String {
        let name = QueueAttributeName::QueueArn;
        let answer = self
            .queues
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(name.clone())
            .send()
            .await;
        let answer = answer.expect("the queue returns its attributes");
        answer
            .attributes()
            .and_then(|attributes| attributes.get(&name))
            .expect("the attribute asked for")
            .clone()
    }

    /// How many delayed messages are in the retry queue.
    pub(crate) async fn waiting_retries(&self) -> usize {
        let name = QueueAttributeName::ApproximateNumberOfMessagesDelayed;
        let answer = self
            .queues
            .get_queue_attributes()
            .queue_url(self.output("RetryQueueUrl"))
            .attribute_names(name.clone())
            .send()
            .await
            .expect("the retry queue returns its attributes");
        let count = answer.attributes().and_then(|attributes| attributes.get(&name));
        count.expect("the attribute asked for").parse().expect("a number of messages")
    }

    /// Every dead letter under this prefix: its key and its content.
    pub(crate) async fn dead_letters(&self, prefix: &str) -> Vec<(String, Value)> {
        let bucket = self.output("DeadLetterBucketName");
        let mut pages =
            self.blobs.list_objects_v2().bucket(bucket).prefix(prefix).into_paginator().send();
        let mut letters = Vec::new();
        while let Some(page) = pages.next().await {
            for object in page.expect("the dead-letter bucket can be listed").contents() {
                let key = object.key().expect("a listed object has a key");
                let blob = self.blobs.get_object().bucket(bucket).key(key).send().await;
                let body = blob
                    .expect("a listed blob can be read")
                    .body
                    .collect()
                    .await
                    .expect("a complete blob");
                let letter =
                    serde_json::from_slice(&body.into_bytes()).expect("a dead letter is JSON");
                letters.push((key.to_owned(), letter));
            }
        }
        letters
    }

    /// The bucket of dead letters.
    pub(crate) fn dead_letter_bucket(&self) -> &str {
        self.output("DeadLetterBucketName")
    }

    /// Puts an object into the bucket of dead letters.
    pub(crate) async fn put_dead_letter(&self, key: &str) {
        self.put_object(self.dead_letter_bucket(), key, "{}").await;
    }

    /// A new queue, beside those of the application, that SNS may send to: its URL and ARN.
    pub(crate) async fn new_queue(&self, name: &str) -> (String, String) {
        let answer = self
            .queues
            .create_queue()
            .queue_name(name)
            .attributes(QueueAttributeName::Policy, SNS_MAY_SEND)
            .send()
            .await
            .expect("a queue can be created");
        let url = answer.queue_url().expect("a queue has a URL").to_owned();
        let arn = self.arn(&url).await;
        (url, arn)
    }

    /// Makes the event source mappings look into their queues twenty times a second from now on. Lambda's
    /// long polls return when a delay ends; the emulated mappings see that about a second later, unless
    /// something else wakes them.
    pub(crate) async fn poll_often(&self) {
        let (url, _) = self.new_queue("wakes-the-mappings").await;
        let queues = self.queues.clone();
        tokio::spawn(async move {
            // Until the emulated AWS ends.
            while queues.send_message().queue_url(&url).message_body("x").send().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }

    /// The bodies of some messages of a queue, which are deleted; none after waiting for a second.
    pub(crate) async fn received(&self, url: &str) -> Vec<String> {
        let receive = self
            .queues
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(10)
            .wait_time_seconds(1);
        let messages =
            receive.send().await.expect("the queue can be read").messages.unwrap_or_default();
        let mut bodies = Vec::new();
        for message in messages {
            let receipt =
                message.receipt_handle().expect("a received message has a receipt handle");
            let delete = self.queues.delete_message().queue_url(url).receipt_handle(receipt);
            delete.send().await.expect("a received message can be deleted");
            bodies.extend(message.body);
        }
        bodies
    }

    /// What an operator sees: log lines, alarms and dashboards, as `observe.sh` prints them.
    pub(crate) fn observed(&self) -> Value {
        let port = self.endpoint.rsplit(':').next().expect("the endpoint has a port");
        serde_json::from_str(&script("observe.sh", &[port])).expect("observe.sh prints JSON")
    }

    /// How many messages each queue holds, visible, delayed and in flight together.
    pub(crate) async fn held(&self) -> Vec<(String, usize)> {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let mut all = Vec::new();
        for (name, url) in self.outputs.iter().filter(|(name, _)| name.ends_with("QueueUrl")) {
            let get = self.queues.get_queue_attributes().queue_url(url);
            let answer = get.set_attribute_names(Some(names.to_vec())).send().await;
            let counts = answer.expect("a queue returns its attributes").attributes;
            let counts = counts.expect("the attributes asked for").into_values();
            let held = counts.map(|count| count.parse::<usize>().expect("a number of messages"));
            all.push((name.clone(), held.sum()));
        }
        all
    }

    /// Waits until no queue holds a message; what is left after the limit, by queue.
    pub(crate) async fn drained(&self, limit: Duration) -> Vec<(String, usize)> {
        let deadline = now() + limit;
        // Empty twice in a row: a message may be between two queues.
        let mut empty = 0;
        loop {
            let mut left = self.held().await;
            left.retain(|(_, held)| *held > 0);
            empty = if left.is_empty() { empty + 1 } else { 0 };
            if empty == 2 || now() >= deadline {
                return left;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    /// Sets how long the isolation queue hides what is received.
    pub(crate) async fn hide_isolated_for(&self, seconds: u32) {
        self.hide_for("IsolationQueueUrl", seconds).await;
    }

    async fn hide_for(&self, queue: &str, seconds: u32) {
        let set = self.queues.set_queue_attributes().queue_url(self.output(queue));
        let set = set.attributes(QueueAttributeName::VisibilityTimeout, seconds.to_string());
        set.send().await.expect("the queue takes a visibility timeout");
    }

    /// The process that runs the emulated AWS, which runs the functions.
    pub(crate) fn server_process(&self) -> u32 {
        self.server.id()
    }

    /// What the emulated AWS logged, with the output of the functions.
    pub(crate) fn server_log(&self) -> String {
        server_log()
    }

    /// The log lines of the functions' invocations that ended, in the order of these ends.
    pub(crate) fn log_lines(&self) -> Vec<Value> {
        let log = server_log();
        log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
    }

    /// What functions called, as `tests/emulated/serve.py` notes it, in the order of the first calls.
    pub(crate) fn function_calls(&self) -> Vec<Value> {
        let calls = fs::read_to_string(build_folder().join("calls.log")).unwrap_or_default();
        // The last line may be half written.
        let lines = calls.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let calls = lines.map(|line| serde_json::from_str(line).expect("a line is JSON"));
        let by_function = |call: &Value| {
            let principal = call["principal"].as_str().expect("a call has a principal");
            // A session of a function has its name.
            principal.rsplit('/').next().is_some_and(|session| session.starts_with("lastmile-"))
        };
        calls.filter(by_function).collect()
    }

    /// How many processes of dispatch the emulated AWS has started.
    pub(crate) fn dispatch_processes(&self) -> usize {
        let started = "environment spawned for lastmile-DispatchFunction";
        server_log().lines().filter(|line| line.contains(started)).count()
    }

    /// The keys of the config bucket under this prefix, with their ETags.
    pub(crate) async fn config_objects(&self, prefix: &str) -> Vec<(String, String)> {
        let list = self.blobs.list_objects_v2().bucket(self.output("ConfigBucketName"));
        let listed = list.prefix(prefix).send().await.expect("the config bucket can be listed");
        let objects = listed.contents.unwrap_or_default().into_iter();
        objects.filter_map(|object| Some((object.key?, object.e_tag?))).collect()
    }

    /// The text of an object.
    pub(crate) async fn object(&self, bucket: &str, key: &str) -> String {
        let object = self.blobs.get_object().bucket(bucket).key(key).send().await;
        let content = object.expect("the emulated AWS has the object").body.collect().await;
        String::from_utf8(content.expect("a whole object").to_vec()).expect("a text")
    }

    /// The tags of an object, as `name=value`.
    pub(crate) async fn tags(&self, bucket: &str, key: &str) -> Vec<String> {
        let tags = self.blobs.get_object_tagging().bucket(bucket).key(key).send().await;
        let tags = tags.expect("the emulated AWS has the object").tag_set;
        tags.iter().map(|tag| format!("{}={}", tag.key, tag.value)).collect()
    }

    /// Lists what begins with this in the config bucket, with these credentials.
    ///
    /// # Errors
    /// The code of the error.
    pub(crate) async fn listed_by(
        &self,
        credentials: Credentials,
        prefix: &str,
    ) -> Result<(), String> {
        let client = s3_client_of(&self.endpoint, credentials);
        let list = client.list_objects_v2().bucket(self.output("ConfigBucketName")).prefix(prefix);
        let code =
            |error: SdkError<ListObjectsV2Error>| error.code().unwrap_or_default().to_owned();
        list.send().await.map(drop).map_err(code)
    }

    /// Makes a bucket without versions.
    pub(crate) async fn new_bucket(&self, name: &str) {
        let made = self.blobs.create_bucket().bucket(name).send().await;
        made.expect("the emulated AWS makes a bucket");
    }

    /// Makes a bucket that keeps versions, as the config bucket does.
    pub(crate) async fn new_versioned_bucket(&self, name: &str) {
        self.new_bucket(name).await;
        let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled);
        let set = self.blobs.put_bucket_versioning().bucket(name);
        let set = set.versioning_configuration(enabled.build()).send().await;
        set.expect("the emulated AWS keeps versions");
    }

    /// Writes an object.
    pub(crate) async fn put_object(&self, bucket: &str, key: &str, text: &str) {
        let put = self.blobs.put_object().bucket(bucket).key(key);
        let put = put.body(ByteStream::from(text.as_bytes().to_vec())).send().await;
        put.expect("the emulated AWS accepts an object");
    }

    /// The subscriptions in a config bucket, as these credentials read and change them.
    pub(crate) fn place(&self, bucket: &str, credentials: &[(&str, &str)]) -> Place {
        let environment = self.variables();
        let environment = environment.iter().chain(credentials);
        let environment =
            environment.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let folder = StoredObject::in_bucket(s3_client(&self.endpoint), bucket, SUBSCRIPTIONS);
        Place::new(format!("s3://{bucket}/{SUBSCRIPTIONS}"), folder, environment)
    }

    /// Applies these in the place of those that were applied before. Without any, the deployment is not set up.
    pub(crate) async fn put_subscriptions(&self, subscriptions: String) {
        self.put_subscriptions_into(self.output("ConfigBucketName"), subscriptions).await;
    }

    /// The same for a stack with this config bucket.
    pub(crate) async fn put_subscriptions_into(&self, bucket: &str, subscriptions: String) {
        if subscriptions.is_empty() {
            return;
        }
        let place = self.place(bucket, &ACCOUNT);
        let applied = tokio::task::spawn_blocking(move || {
            let mut apply = place.apply(OWNER, &subscriptions);
            apply.arg("--prune");
            succeeded(apply)
        });
        drop(applied.await.expect("the program runs"));
    }

    /// An output of the stack.
    pub(crate) fn output(&self, name: &str) -> &str {
        self.outputs.get(name).unwrap_or_else(|| panic!("the stack has no output {name}"))
    }
}

/// All parameters, with these in the place of those of the same name.
fn parameters<'a>(changed: &[&'a str]) -> Vec<&'a str> {
    let is_kept = |kept: &&str| changed.iter().all(|changed| name_of(changed) != name_of(kept));
    PARAMETERS.into_iter().filter(is_kept).chain(changed.iter().copied()).collect()
}

fn name_of(parameter: &str) -> Option<&str> {
    parameter.split('=').next()
}

/// The value of a message attribute that holds text.
fn text(value: &str) -> MessageAttributeValue {
    let text = MessageAttributeValue::builder().data_type("String").string_value(value);
    text.build().expect("a type and a value make an attribute")
}

/// Installs the tools. Without Python it returns `false`, and the tests are reported as skipped.
pub(crate) fn has_tools() -> bool {
    libraries::python("the emulated AWS").is_some()
}

/// Runs a script of `tests/emulated` with the build folder to its end and returns its output.
///
/// # Panics
/// If the script fails, with its error output.
pub(crate) fn script(name: &str, arguments: &[&str]) -> String {
    output_of(name, &mut command(name, arguments))
}

fn output_of(name: &str, command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
    let output = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        done.status.success(),
        "{name}: {}\n{}\n{}",
        done.status,
        output(&done.stdout),
        output(&done.stderr)
    );
    output(&done.stdout)
}

/// The folder where the scripts' results are kept between runs.
pub(crate) fn build_folder() -> PathBuf {
    emulated::build_folder("emulated")
}

fn command(script: &str, arguments: &[&str]) -> Command {
    emulated::command(&build_folder(), script, arguments)
}

fn server_log() -> String {
    emulated::server_log(&build_folder())
}

fn s3_client(endpoint: &str) -> aws_sdk_s3::Client {
    s3_client_of(endpoint, credentials())
}

fn s3_client_of(endpoint: &str, credentials: Credentials) -> aws_sdk_s3::Client {
    aws_sdk_s3::Client::from_conf(
        aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(credentials)
            .endpoint_url(endpoint)
            .force_path_style(true)
            .build(),
    )
}

fn credentials() -> Credentials {
    Credentials::builder()
        .access_key_id("test")
        .secret_access_key("test")
        .provider_name("emulated")
        .build()
}
