//! Rare answers of S3: a temporary failure, a write that raced another one, a refusal. There is
//! also an object with many versions, which the local S3 does not keep.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_sdk_s3::Client;
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step, answer};

use crate::cloud::s3_client;

/// An answer of S3 to a write: its status, and the error code if it is an error.
pub(crate) type Answer = (u16, &'static str);

/// S3 accepts the write.
pub(crate) const TAKEN: Answer = (200, "");
/// Another write of the same key has not ended.
pub(crate) const RACED: Answer = (409, "ConditionalRequestConflict");
/// An object with this key exists.
pub(crate) const EXISTS: Answer = (412, "PreconditionFailed");
pub(crate) const DENIED: Answer = (403, "AccessDenied");
pub(crate) const SLOW_DOWN: Answer = (503, "SlowDown");

/// An S3 that gives these answers in turn, and the last one for ever.
pub(crate) async fn answering(answers: &'static [Answer]) -> Scripted {
    let given = AtomicUsize::new(0);
    let script = move |_: &ScriptedRequest| {
        let turn = given.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
        vec![step(answers[turn])]
    };
    Scripted::start(script).await.expect("a free port")
}

/// The step that sends this answer.
pub(crate) fn step((status, code): Answer) -> Step {
    match code {
        "" => answer(&format!("{status} S"), &[], b""),
        code => error(status, code),
    }
}

fn error(status: u16, code: &str) -> Step {
    let body = format!("<Error><Code>{code}</Code><Message>said so</Message></Error>");
    answer(&format!("{status} S"), &[("content-type", "application/xml")], body.as_bytes())
}

/// The object of a topic and all its versions, in a bucket with the settings of a deployment.
pub(crate) struct VersionedObject {
    server: Scripted,
    /// The oldest version is the first, and the id of a version is its index. `None` is a delete
    /// marker.
    versions: Arc<Mutex<Vec<Option<String>>>>,
}

impl VersionedObject {
    pub(crate) const BUCKET: &str = "config";
    pub(crate) const KEY: &str = "subscriptions/shop/orders.json";
    /// The text of a version that nobody may read.
    pub(crate) const REFUSED: &str = "refused";

    pub(crate) async fn start() -> Self {
        let versions = Arc::<Mutex<Vec<Option<String>>>>::default();
        let of_script = Arc::clone(&versions);
        let script = move |request: &ScriptedRequest| {
            vec![respond(&target(request), &of_script.lock().expect("no panic"))]
        };
        Self { server: Scripted::start(script).await.expect("a free port"), versions }
    }

    pub(crate) fn client(&self) -> Client {
        s3_client(&self.server.endpoint())
    }

    pub(crate) fn write(&self, text: &str) {
        self.versions.lock().expect("no panic").push(Some(text.to_owned()));
    }

    /// Deletes the object, as a lifecycle rule does.
    pub(crate) fn expire(&self) {
        self.versions.lock().expect("no panic").push(None);
    }

    /// The number of listings of the versions of the object.
    pub(crate) fn listings(&self) -> usize {
        let requests = self.server.requests();
        let of_key = |target: &str| is_listing(target) && target.contains("orders.json");
        requests.iter().filter(|request| of_key(&target(request))).count()
    }
}

/// Path and query of a request.
fn target(request: &ScriptedRequest) -> String {
    request.head.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn is_listing(target: &str) -> bool {
    target.contains("?versions") || target.contains("&versions")
}

fn respond(target: &str, versions: &[Option<String>]) -> Step {
    if target.contains("/_settings.json") && !is_listing(target) {
        return answer("200 OK", &[("etag", "\"settings\"")], br#"{"v":1}"#);
    }
    if target.contains("list-type=2") {
        return answer("200 OK", &[], page(versions).as_bytes());
    }
    if !target.contains("orders.json") && is_listing(target) {
        return answer("200 OK", &[], b"<ListVersionsResult></ListVersionsResult>");
    }
    if !target.contains("orders.json") {
        return error(404, "NoSuchKey");
    }
    if is_listing(target) {
        return answer("200 OK", &[], listing(versions).as_bytes());
    }
    let id = target.split_once("versionId=").map(|(_, rest)| rest.split('&').next());
    let index = match id {
        Some(id) => id.and_then(|id| id.parse().ok()),
        None => versions.len().checked_sub(1),
    };
    match index.and_then(|index: usize| versions.get(index)) {
        Some(Some(text)) if text == VersionedObject::REFUSED => error(403, "AccessDenied"),
        Some(Some(text)) => {
            let etag = format!("\"{}\"", index.unwrap_or_default());
            answer("200 OK", &[("etag", &etag)], text.as_bytes())
        }
        Some(None) | None => error(404, "NoSuchKey"),
    }
}

/// The listing of the current object.
fn page(versions: &[Option<String>]) -> String {
    let current = versions.last().filter(|version| version.is_some());
    let contents = current.map(|_| {
        let (key, index) = (VersionedObject::KEY, versions.len() - 1);
        format!("<Contents><Key>{key}</Key><ETag>&quot;{index}&quot;</ETag></Contents>")
    });
    format!("<ListBucketResult>{}</ListBucketResult>", contents.unwrap_or_default())
}

/// The listing of all versions in the order of S3: the newest first, before those of a longer key
/// with the same prefix.
fn listing(versions: &[Option<String>]) -> String {
    let mut xml = String::from("<ListVersionsResult>");
    let longer = format!("{}.backup", VersionedObject::KEY);
    let of_key = versions.iter().enumerate().rev().map(|(index, version)| {
        let kind = if version.is_some() { "Version" } else { "DeleteMarker" };
        (kind, VersionedObject::KEY, index, index + 1 == versions.len())
    });
    for (kind, key, id, is_latest) in of_key.chain([("Version", longer.as_str(), 0, true)]) {
        let _ = write!(
            xml,
            "<{kind}><Key>{key}</Key><VersionId>{id}</VersionId><IsLatest>{is_latest}</IsLatest>\
             <LastModified>2026-11-20T07:00:00Z</LastModified></{kind}>"
        );
    }
    xml + "</ListVersionsResult>"
}
