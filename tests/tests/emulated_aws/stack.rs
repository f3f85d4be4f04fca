//! The application, deployed from `template.yaml` to an emulated AWS on this machine.
//!
//! This module is separate so that the tests are about events and dead letters, not about
//! installing, building and deploying. The scripts in `tests/emulated` do the work, and a person
//! can run them one by one. The test binary has one stack, which runs the real function binaries.
//! Nothing keeps running after the tests, however they end. This file does not depend on the
//! behaviour of the functions.

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

/// The parameters of the stack.
const PARAMETERS: [&str; 12] = [
    "DispatchTimeout=20",
    "AllowPrivateDestinations=127.0.0.1",
    "Ingress=iam",
    "Observability=true",
    "MetricsPer=topic,outcome",
    "AlarmTopicArn=arn:aws:sns:us-east-1:000000000000:alarms",
    // The sources that the examples of docs/guides/publish.md publish with.
    "PublisherArns=arn:aws:sns:us-east-1:000000000000:shop-orders,\
     arn:aws:events:us-east-1:000000000000:rule/shop,arn:aws:s3:::shop-uploads",
    "OperatorArns=arn:aws:iam::000000000000:role/operators-of-*",
    "SecretArns=arn:aws:secretsmanager:us-east-1:000000000000:secret:named-??????,\
     arn:aws:ssm:us-east-1:000000000000:parameter/named",
    "InvokeRoleArn=arn:aws:iam::000000000000:role/calls-destinations",
    aws_targets::LISTED,
    "IdentityAudiences=https://asked.example.com/",
];

/// The queues whose visibility timeout depends on that of the functions, by their outputs.
const WITH_TIMEOUT: [&str; 4] =
    ["EventsQueueUrl", "RetryQueueUrl", "SlowQueueUrl", "DeadLetterQueueUrl"];
/// The visibility timeout of these queues, unless a test sets `DispatchTimeout`. It is short, so
/// that a message of a killed function is redelivered within a test.
const SHORT_SECONDS: u32 = 30;

/// The parameters of a second stack, in a VPC whose existence the emulated AWS does not check.
const SECOND: &[&str] =
    &["AllowPrivateDestinations=127.0.0.1", "SubnetIds=subnet-1,subnet-2", "SecurityGroupIds=sg-1"];

/// The policy of a queue to which SNS topics send.
const SNS_MAY_SEND: &str = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
    "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": "*"}]}"#;

/// The credentials of the account, which may do everything.
pub(crate) const ACCOUNT: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];

/// The folder of the subscriptions in the config bucket.
pub(crate) const SUBSCRIPTIONS: &str = "subscriptions/";
/// The owner of the subscriptions that the environment itself applies.
const OWNER: &str = "environment";

/// The outputs of another stack beside that of the tests.
pub(crate) struct Second(BTreeMap<String, String>);

impl Second {
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
    /// The standard input of the emulated AWS closes with this process, which ends the emulated
    /// AWS.
    server: Child,
    _port: ReservedPort,
}

impl Stack {
    /// Builds, starts and deploys everything, with these subscriptions. The emulated AWS uses the
    /// reserved port, and the functions call `functions_call` instead. The values in `changed`
    /// (`Name=Value`) replace those of [`PARAMETERS`].
    pub(crate) async fn deploy_at(
        reserved: ReservedPort,
        functions_call: u16,
        changed: &[&str],
        subscriptions: String,
    ) -> Self {
        // The emulated AWS passes its own variables to the functions.
        let variables = credentials::variables();
        let given = parameters(changed);
        let stack = Self::deploy_with(reserved, functions_call, variables, &given).await;
        if changed.iter().all(|parameter| !parameter.starts_with("DispatchTimeout=")) {
            for queue in WITH_TIMEOUT {
                stack.hide_for(queue, SHORT_SECONDS).await;
            }
        }
        stack.put_subscriptions(subscriptions).await;
        stack
    }

    /// Deploys with default parameters, in an account with this limit of concurrent executions.
    /// Only the subscriber is named, because its address is private.
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

    /// Builds, starts and deploys everything with these parameters. The emulated AWS gets these
    /// variables.
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

    /// Deploys the application a second time under this name, with additional parameters and
    /// without subscriptions.
    pub(crate) async fn deploy_second(&self, name: &str, more: &[&str]) -> Second {
        let port = self.endpoint.rsplit(':').next().expect("the endpoint has a port").to_owned();
        let mut deploy = command("deploy.sh", &[&[port.as_str()], SECOND, more].concat());
        deploy.env("LASTMILE_DEPLOYED_AS", name);
        let deployed = tokio::task::spawn_blocking(move || output_of("deploy.sh", &mut deploy));
        let printed = deployed.await.expect("deploy.sh ends");
        Second(serde_json::from_str(&printed).expect("deploy.sh prints outputs as JSON"))
    }

    /// Creates a role with this name and policy, and returns the variables of a session of the
    /// role.
    pub(crate) fn session(&self, role: &str, policy: &str) -> [(&'static str, String); 3] {
        let port = self.endpoint.rsplit(':').next().expect("the endpoint has a port");
        let session = script("role.sh", &[port, role, policy]);
        let session: Value = serde_json::from_str(&session).expect("role.sh prints JSON");
        let credentials = [
            ("AWS_ACCESS_KEY_ID", "AccessKeyId"),
            ("AWS_SECRET_ACCESS_KEY", "SecretAccessKey"),
            ("AWS_SESSION_TOKEN", "SessionToken"),
        ];
        let value = |field: &str| session[field].as_str().expect("a credential").to_owned();
        credentials.map(|(name, field)| (name, value(field)))
    }

    /// Returns a client of Lambda.
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

    /// Returns the variables that direct the command line to the emulated AWS.
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

    /// Sends these events to the events queue, ten per request.
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

    /// Returns the URL and the ARN of the events queue.
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

    /// Returns the number of delayed messages in the retry queue.
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

    /// Returns the key and the content of every dead letter under this prefix.
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

    pub(crate) fn dead_letter_bucket(&self) -> &str {
        self.output("DeadLetterBucketName")
    }

    /// Puts an object into the bucket of dead letters.
    pub(crate) async fn put_dead_letter(&self, key: &str) {
        self.put_object(self.dead_letter_bucket(), key, "{}").await;
    }

    /// Creates a queue outside the application to which SNS may send. Returns its URL and ARN.
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

    /// Makes the event source mappings poll their queues twenty times a second from now on.
    /// Lambda's long polls return when a delay ends. The emulated mappings notice that about a
    /// second later, unless another message wakes them.
    pub(crate) async fn poll_often(&self) {
        let (url, _) = self.new_queue("wakes-the-mappings").await;
        let queues = self.queues.clone();
        tokio::spawn(async move {
            // The loop ends with the emulated AWS.
            while queues.send_message().queue_url(&url).message_body("x").send().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }

    /// Receives and deletes some messages of a queue, and returns their bodies. Waits for a second
    /// at most.
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

    /// Returns the output of `observe.sh`: log lines, alarms and dashboards.
    pub(crate) fn observed(&self) -> Value {
        let port = self.endpoint.rsplit(':').next().expect("the endpoint has a port");
        serde_json::from_str(&script("observe.sh", &[port])).expect("observe.sh prints JSON")
    }

    /// Returns the number of messages in each queue: visible, delayed and in flight together.
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

    /// Waits until no queue holds a message. Returns the messages left after the limit, by queue.
    pub(crate) async fn drained(&self, limit: Duration) -> Vec<(String, usize)> {
        let deadline = now() + limit;
        // Two empty counts in a row are required, because a message may be between two queues.
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

    /// Sets the visibility timeout of the isolation queue.
    pub(crate) async fn hide_isolated_for(&self, seconds: u32) {
        self.hide_for("IsolationQueueUrl", seconds).await;
    }

    async fn hide_for(&self, queue: &str, seconds: u32) {
        let set = self.queues.set_queue_attributes().queue_url(self.output(queue));
        let set = set.attributes(QueueAttributeName::VisibilityTimeout, seconds.to_string());
        set.send().await.expect("the queue takes a visibility timeout");
    }

    /// Returns the process of the emulated AWS, which starts the functions.
    pub(crate) fn server_process(&self) -> u32 {
        self.server.id()
    }

    /// Returns the log of the emulated AWS, with the output of the functions.
    pub(crate) fn server_log(&self) -> String {
        server_log()
    }

    /// Returns the log lines of ended invocations, in the order of their ends.
    pub(crate) fn log_lines(&self) -> Vec<Value> {
        let log = server_log();
        log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
    }

    /// Returns the calls of functions that `tests/emulated/serve.py` recorded, in the order of the
    /// first calls.
    pub(crate) fn function_calls(&self) -> Vec<Value> {
        let calls = fs::read_to_string(build_folder().join("calls.log")).unwrap_or_default();
        // The last line may be incomplete.
        let lines = calls.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let calls = lines.map(|line| serde_json::from_str(line).expect("a line is JSON"));
        let by_function = |call: &Value| {
            let principal = call["principal"].as_str().expect("a call has a principal");
            // The session of a function has the function's name.
            principal.rsplit('/').next().is_some_and(|session| session.starts_with("lastmile-"))
        };
        calls.filter(by_function).collect()
    }

    /// Returns the number of dispatch processes that the emulated AWS has started.
    pub(crate) fn dispatch_processes(&self) -> usize {
        let started = "environment spawned for lastmile-DispatchFunction";
        server_log().lines().filter(|line| line.contains(started)).count()
    }

    /// Returns the keys of the config bucket under this prefix, with their ETags.
    pub(crate) async fn config_objects(&self, prefix: &str) -> Vec<(String, String)> {
        let list = self.blobs.list_objects_v2().bucket(self.output("ConfigBucketName"));
        let listed = list.prefix(prefix).send().await.expect("the config bucket can be listed");
        let objects = listed.contents.unwrap_or_default().into_iter();
        objects.filter_map(|object| Some((object.key?, object.e_tag?))).collect()
    }

    /// Returns the text of an object.
    pub(crate) async fn object(&self, bucket: &str, key: &str) -> String {
        let object = self.blobs.get_object().bucket(bucket).key(key).send().await;
        let content = object.expect("the emulated AWS has the object").body.collect().await;
        String::from_utf8(content.expect("a whole object").to_vec()).expect("a text")
    }

    /// Returns the tags of an object, as `name=value`.
    pub(crate) async fn tags(&self, bucket: &str, key: &str) -> Vec<String> {
        let tags = self.blobs.get_object_tagging().bucket(bucket).key(key).send().await;
        let tags = tags.expect("the emulated AWS has the object").tag_set;
        tags.iter().map(|tag| format!("{}={}", tag.key, tag.value)).collect()
    }

    /// Lists the keys with this prefix in the config bucket, with these credentials.
    ///
    /// # Errors
    /// The error code of S3.
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

    /// Creates a bucket without versions.
    pub(crate) async fn new_bucket(&self, name: &str) {
        let made = self.blobs.create_bucket().bucket(name).send().await;
        made.expect("the emulated AWS makes a bucket");
    }

    /// Creates a bucket that keeps versions, as the config bucket does.
    pub(crate) async fn new_versioned_bucket(&self, name: &str) {
        self.new_bucket(name).await;
        let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled);
        let set = self.blobs.put_bucket_versioning().bucket(name);
        let set = set.versioning_configuration(enabled.build()).send().await;
        set.expect("the emulated AWS keeps versions");
    }

    pub(crate) async fn put_object(&self, bucket: &str, key: &str, text: &str) {
        let put = self.blobs.put_object().bucket(bucket).key(key);
        let put = put.body(ByteStream::from(text.as_bytes().to_vec())).send().await;
        put.expect("the emulated AWS accepts an object");
    }

    /// Returns the subscriptions in a config bucket, accessed with these credentials.
    pub(crate) fn place(&self, bucket: &str, credentials: &[(&str, &str)]) -> Place {
        let environment = self.variables();
        let environment = environment.iter().chain(credentials);
        let environment =
            environment.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let folder = StoredObject::in_bucket(s3_client(&self.endpoint), bucket, SUBSCRIPTIONS);
        Place::new(format!("s3://{bucket}/{SUBSCRIPTIONS}"), folder, environment)
    }

    /// Replaces the subscriptions that were applied before. Without subscriptions, the deployment
    /// is not set up.
    pub(crate) async fn put_subscriptions(&self, subscriptions: String) {
        self.put_subscriptions_into(self.output("ConfigBucketName"), subscriptions).await;
    }

    /// Replaces the subscriptions of the stack with this config bucket.
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

    /// Returns an output of the stack.
    pub(crate) fn output(&self, name: &str) -> &str {
        self.outputs.get(name).unwrap_or_else(|| panic!("the stack has no output {name}"))
    }
}

/// Returns all parameters, with `changed` in place of those with the same names.
fn parameters<'a>(changed: &[&'a str]) -> Vec<&'a str> {
    let is_kept = |kept: &&str| changed.iter().all(|changed| name_of(changed) != name_of(kept));
    PARAMETERS.into_iter().filter(is_kept).chain(changed.iter().copied()).collect()
}

fn name_of(parameter: &str) -> Option<&str> {
    parameter.split('=').next()
}

/// Returns a message attribute of type String.
fn text(value: &str) -> MessageAttributeValue {
    let text = MessageAttributeValue::builder().data_type("String").string_value(value);
    text.build().expect("a type and a value make an attribute")
}

/// Installs the tools. Returns false without Python, and the tests are reported as skipped.
pub(crate) fn has_tools() -> bool {
    libraries::python("the emulated AWS").is_some()
}

/// Runs a script of `tests/emulated` with the build folder and returns its output.
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

/// The folder that keeps the scripts' results between runs.
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
