//! A fake SQS and S3 that accept and count every request.
//!
//! The fakes store nothing. A message gets an id and is passed to the channel of
//! [`Cloud::sending`], if there is one. An object gets an ETag. Only the objects of the config
//! bucket can be read. Requests to SQS and the messages in them are counted, because SQS bills by
//! request.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::events::Subscriptions;
use crate::http::{Body, respond};

const AWS_JSON: &str = "application/x-amz-json-1.0";

/// The body of S3's response if an object does not exist.
const NO_SUCH_KEY: &[u8] = b"<Error><Code>NoSuchKey</Code><Message>no</Message></Error>";

/// Maximum number of objects on a page of a listing, as in S3.
const PAGE: usize = 1_000;

/// No contender verifies the checksum, so zeros will do.
const MD5: &str = "00000000000000000000000000000000";

/// The fake services, with their counters.
#[derive(Default)]
pub(crate) struct Cloud {
    /// The objects of the config bucket, by key.
    objects: BTreeMap<String, Bytes>,
    requests: AtomicU64,
    messages: AtomicU64,
    storage_requests: AtomicU64,
    sent: Option<UnboundedSender<Sent>>,
}

/// A message that was sent to SQS.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The queue's name, not its URL.
    pub(crate) queue: String,
    pub(crate) body: String,
    /// The attributes in the format of the SQS API.
    pub(crate) attributes: Value,
    pub(crate) delay_seconds: u64,
}

impl Sent {
    fn new(queue_url: &Value, message: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let queue = text(queue_url);
        Self {
            queue: queue.rsplit('/').next().unwrap_or_default().to_owned(),
            body: text(&message["MessageBody"]),
            attributes: message["MessageAttributes"].clone(),
            delay_seconds: message["DelaySeconds"].as_u64().unwrap_or_default(),
        }
    }
}

/// Counts of the requests that SQS has received.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SqsUsage {
    /// Requests of every kind.
    pub(crate) requests: u64,
    /// Messages sent to SQS. Each message of a batch counts.
    pub(crate) messages: u64,
}

impl Cloud {
    /// Creates services whose config bucket contains these subscriptions.
    pub(crate) fn new(subscriptions: Subscriptions) -> Self {
        Self { objects: subscriptions.objects(), ..Self::default() }
    }

    /// Creates services whose config bucket contains these objects.
    pub(crate) fn with_objects(objects: BTreeMap<String, Bytes>) -> Self {
        Self { objects, ..Self::default() }
    }

    /// Passes every message to `sent`.
    pub(crate) fn sending(self, sent: UnboundedSender<Sent>) -> Self {
        Self { sent: Some(sent), ..self }
    }

    /// The requests that SQS has received so far.
    pub(crate) fn sqs_usage(&self) -> SqsUsage {
        SqsUsage {
            requests: self.requests.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
        }
    }

    /// The requests that S3 has received so far.
    pub(crate) fn storage_requests(&self) -> u64 {
        self.storage_requests.load(Ordering::Relaxed)
    }

    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
    ) -> anyhow::Result<Response<Body>> {
        let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
        if let Some(operation) =
            target.and_then(|target| target.strip_prefix("AmazonSQS.")).map(ToOwned::to_owned)
        {
            let body = request.into_body().collect().await?.to_bytes();
            return self.sqs(&operation, &body);
        }
        if target.is_some_and(|target| target.starts_with("DynamoDB_")) {
            request.into_body().collect().await?;
            // The table has no items: all destinations are healthy.
            return Ok(respond(StatusCode::OK, AWS_JSON, Bytes::from_static(b"{\"Items\":[]}")));
        }
        self.storage_requests.fetch_add(1, Ordering::Relaxed);
        let mut response = match *request.method() {
            Method::GET => self.get(request.uri()),
            _ => respond(StatusCode::OK, "application/xml", Bytes::new()),
        };
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"0\""));
        // A connection with an unread body cannot be reused: the client would connect anew.
        request.into_body().collect().await?;
        Ok(response)
    }

    /// Returns an object, or a list of objects.
    fn get(&self, uri: &Uri) -> Response<Body> {
        if uri.query().is_some_and(|query| query.contains("list-type=2")) {
            return self.list(uri);
        }
        if uri
            .query()
            .is_some_and(|query| query.split('&').any(|part| part.starts_with("versions")))
        {
            // No object has an earlier version.
            return respond(StatusCode::OK, "application/xml", "<ListVersionsResult/>".into());
        }
        let key = uri.path().trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
        match self.objects.get(key) {
            Some(object) => respond(StatusCode::OK, "application/json", object.clone()),
            None => {
                respond(StatusCode::NOT_FOUND, "application/xml", Bytes::from_static(NO_SUCH_KEY))
            }
        }
    }

    /// Returns the page of objects that follow the key in `start-after`.
    fn list(&self, uri: &Uri) -> Response<Body> {
        let parameters = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let after = parameters.into_iter().find(|(name, _)| name == "start-after");
        let after = after.map(|(_, key)| key.into_owned()).unwrap_or_default();
        let mut rest = self.objects.range::<str, _>((Bound::Excluded(&*after), Bound::Unbounded));
        let entry = |(key, object): (&String, &Bytes)| {
            let size = object.len();
            format!(
                "<Contents><Key>{key}</Key><ETag>&quot;0&quot;</ETag><Size>{size}</Size></Contents>"
            )
        };
        let entries: String = rest.by_ref().take(PAGE).map(entry).collect();
        let next = match rest.next() {
            Some(_) => {
                "<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
            }
            None => "<IsTruncated>false</IsTruncated>",
        };
        let list = format!("<ListBucketResult>{next}{entries}</ListBucketResult>");
        respond(StatusCode::OK, "application/xml", list.into())
    }

    fn sqs(&self, operation: &str, body: &[u8]) -> anyhow::Result<Response<Body>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let response = match operation {
            "SendMessageBatch" => {
                let request: Value = serde_json::from_slice(body)?;
                let entries = request["Entries"].as_array().map_or(&[][..], Vec::as_slice);
                self.messages.fetch_add(entries.len() as u64, Ordering::Relaxed);
                entries.iter().for_each(|entry| self.hand_on(&request["QueueUrl"], entry));
                accept_all(entries)
            }
            "SendMessage" => {
                let request: Value = serde_json::from_slice(body)?;
                self.messages.fetch_add(1, Ordering::Relaxed);
                self.hand_on(&request["QueueUrl"], &request);
                json!({"MessageId": "0", "MD5OfMessageBody": MD5})
            }
            _ => json!({}),
        };
        Ok(respond(StatusCode::OK, AWS_JSON, response.to_string().into()))
    }
}

impl Cloud {
    fn hand_on(&self, queue_url: &Value, message: &Value) {
        if let Some(sent) = &self.sent {
            // The receiver may have ended.
            let _ = sent.send(Sent::new(queue_url, message));
        }
    }
}

/// The response that accepts every entry of a batch.
fn accept_all(entries: &[Value]) -> Value {
    let accepted = entries.iter().enumerate().map(|(index, entry)| {
        json!({"Id": entry["Id"], "MessageId": index.to_string(), "MD5OfMessageBody": MD5})
    });
    json!({"Failed": [], "Successful": accepted.collect::<Vec<_>>()})
}
