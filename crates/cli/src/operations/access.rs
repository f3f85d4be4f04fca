//! Tests which actions of the console are allowed by S3. The test sends writes that cannot succeed.
//!
//! S3 checks permissions before the digest of a body. Therefore, a write with a wrong digest fails
//! in either case: with `AccessDenied` if the permission is missing, otherwise because of the
//! digest. The test stores nothing, needs no IAM permission, and takes bucket policies into
//! account. Replays and dismissals both begin with a write to S3.
//!
//! SQS has no similar request, so permissions of the queue are not tested. If SQS refuses a replay,
//! the replay reports the error and has sent nothing.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::primitives::ByteStream;
use deadletters::container::DeadLetterContainer;

use crate::operations::store;

/// An action in the console that needs permission to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start or resume a replay.
    Replay,
    /// Dismiss dead letters, or undo a dismissal.
    Dismiss,
}

/// The reason why each action is denied; `None` if it is allowed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    replay: Option<String>,
    dismiss: Option<String>,
}

impl Access {
    /// Creates the result from two reasons: why replays are denied, and why dismissals are denied.
    /// `None` allows the action.
    pub(crate) fn new(replay: Option<String>, dismiss: Option<String>) -> Self {
        Self { replay, dismiss }
    }

    /// Returns the reason why an action is denied; `None` if it is allowed or could not be tested.
    pub(crate) fn denied(&self, action: Action) -> Option<&str> {
        match action {
            Action::Replay => self.replay.as_deref(),
            Action::Dismiss => self.dismiss.as_deref(),
        }
    }
}

/// The folder that each action writes to first: ledgers for a replay, dismissals for a dismissal.
const FOLDERS: [&str; 2] = ["_replays", "_dismissed"];
/// A digest that matches no test body.
const WRONG_MD5: &str = "AAAAAAAAAAAAAAAAAAAAAA==";
/// An ETag that no object has.
const WRONG_ETAG: &str = "\"none\"";

/// Tests which actions the current credentials may perform on a container.
pub(crate) async fn access(container: &DeadLetterContainer) -> Access {
    let Some(bucket) = container.name.strip_prefix("s3://") else {
        return of_folder(&container.name);
    };
    let (bucket, _) = bucket.split_once('/').unwrap_or((bucket, ""));
    let client = store::client().await;
    let mut reasons = FOLDERS.map(|_| None);
    for (folder, reason) in FOLDERS.iter().zip(&mut reasons) {
        let key = [container.prefix.as_str(), folder, "permission"];
        let key = key.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        if is_denied(&client, bucket, &key).await {
            *reason =
                Some(format!("these credentials have no permission to write s3://{bucket}/{key}"));
        }
    }
    let [replay, dismiss] = reasons;
    Access::new(replay, dismiss)
}

/// Returns true if S3 denies writing this object. The write never succeeds.
async fn is_denied(client: &Client, bucket: &str, key: &str) -> bool {
    let put = client.put_object().bucket(bucket).key(key).body(ByteStream::from_static(b"x"));
    let answer = put.content_md5(WRONG_MD5).if_match(WRONG_ETAG).send().await;
    answer.is_err_and(|error| error.code() == Some("AccessDenied"))
}

/// Tests a local folder. Replays and dismissals both write to the folder, so a read-only folder
/// denies both.
fn of_folder(folder: &str) -> Access {
    let is_read_only = std::fs::metadata(folder).is_ok_and(|found| found.permissions().readonly());
    let why = is_read_only.then(|| format!("{folder} cannot be written"));
    Access::new(why.clone(), why)
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
    use axum::Router;
    use axum::http::{HeaderMap, StatusCode};
    use tokio::net::TcpListener;

    use super::*;

    /// An S3 server that refuses every write with this error. It asserts that the write could not
    /// have succeeded.
    async fn refusing(status: StatusCode, code: &'static str) -> Client {
        let answer = async move |headers: HeaderMap| {
            assert!(headers.contains_key("content-md5") && headers.contains_key("if-match"));
            (status, format!("<Error><Code>{code}</Code><Message>no</Message></Error>"))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .endpoint_url(format!("http://{address}"))
            .force_path_style(true);
        Client::from_conf(config.build())
    }

    #[tokio::test]
    async fn only_a_refused_permission_denies_an_action() {
        for (status, code, denied) in [
            (StatusCode::FORBIDDEN, "AccessDenied", true),
            (StatusCode::BAD_REQUEST, "BadDigest", false),
            (StatusCode::PRECONDITION_FAILED, "PreconditionFailed", false),
            (StatusCode::NOT_FOUND, "NoSuchKey", false),
        ] {
            let client = refusing(status, code).await;
            assert_eq!(is_denied(&client, "letters", "_replays/x").await, denied, "{code}");
        }
    }
}
