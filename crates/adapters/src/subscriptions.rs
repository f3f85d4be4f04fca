//! The subscriptions of a deployment, kept fresh.
//!
//! A source is a file or an S3 object. It is read for the first records and looked at again every
//! 30 s, cheaply, by its modification time or ETag. A newer version that is broken is reported as
//! an error and does not replace the last good one. Whoever misses a name may ask for a look right
//! now; that is done at most once a second.

use std::path::PathBuf;
use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::DisplayErrorContext;
use delivery::manifest;
use delivery::manifest::Source;
use delivery::ports::{Clock, SubscriptionSource};
use delivery::subscription::catalogue::Catalogue;
use thiserror::Error;
use tokio::sync::{Mutex, MutexGuard};

use crate::machine::Machine;

/// The source is looked at again after this long.
const LOOK_EVERY_MS: u64 = 30_000;
/// A missing name makes us look again, but not more often than this.
const REREAD_EVERY_MS: u64 = 1_000;

/// Where the subscriptions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of this machine.
    File(PathBuf),
    /// An S3 object.
    S3 {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: String,
    },
}

impl Location {
    /// Reads `s3://bucket/key` or `file:///path`.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(uri: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{uri}\" is no source of subscriptions: s3://bucket/key or file:///path is expected"
            )
        };
        if let Some(path) = uri.strip_prefix("file://").filter(|path| path.starts_with('/')) {
            return Ok(Self::File(path.into()));
        }
        match uri.strip_prefix("s3://").and_then(|rest| rest.split_once('/')) {
            Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                Ok(Self::S3 { bucket: bucket.to_owned(), key: key.to_owned() })
            }
            _ => Err(wrong()),
        }
    }

    /// The name that error messages use for the file.
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::S3 { bucket, key } => format!("s3://{bucket}/{key}"),
        }
    }
}

/// Why the subscriptions could not be read.
#[derive(Debug, Error)]
enum FetchError {
    #[error("{name} cannot be read: {why}")]
    Unreadable { name: String, why: String },
}

/// A version of the source: an ETag, or a modification time and length.
type Version = String;

/// The subscriptions of a deployment.
#[derive(Debug)]
pub struct LiveSubscriptions {
    location: Location,
    client: Option<Client>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    good: Option<Arc<Catalogue>>,
    seen: Option<Version>,
    looked_ms: Option<u64>,
    /// What is wrong with the newest version, or with reaching it.
    problem: Option<String>,
    /// What is wrong with the version seen last.
    broken: Option<String>,
}

impl LiveSubscriptions {
    /// Subscriptions at this location; the client is needed for S3 only.
    #[must_use]
    pub fn new(location: Location, client: Option<Client>) -> Self {
        Self { location, client, state: Mutex::default() }
    }

    /// Looks at the source unless that was done within `fresh_ms`.
    async fn look(&self, fresh_ms: u64) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().await;
        let now_ms = Machine.now_ms();
        let fresh_ms = if state.good.is_some() { fresh_ms } else { REREAD_EVERY_MS };
        if state.looked_ms.is_none_or(|looked_ms| now_ms.saturating_sub(looked_ms) >= fresh_ms) {
            state.looked_ms = Some(now_ms);
            self.refresh(&mut state).await;
        }
        state
    }

    async fn refresh(&self, state: &mut State) {
        match self.fetch(state.seen.as_deref()).await {
            Ok(None) => state.problem.clone_from(&state.broken),
            Ok(Some((text, version))) => {
                state.seen = Some(version);
                let name = self.location.name();
                match manifest::read(&[Source { name: &name, text: &text }]).into_result() {
                    Ok(catalogue) => {
                        let count = catalogue.subscriptions().count();
                        tracing::info!(
                            source = name,
                            subscriptions = count,
                            "subscriptions.loaded"
                        );
                        state.good = Some(Arc::new(catalogue));
                        (state.problem, state.broken) = (None, None);
                    }
                    Err(findings) => {
                        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
                        report(state, &lines.join("\n"));
                        state.broken.clone_from(&state.problem);
                    }
                }
            }
            Err(error) => report(state, &error.to_string()),
        }
    }

    /// The text and version of the source; `None` when it is the version seen already.
    async fn fetch(&self, seen: Option<&str>) -> Result<Option<(String, Version)>, FetchError> {
        let unreadable = |why: String| FetchError::Unreadable { name: self.location.name(), why };
        match (&self.location, &self.client) {
            (Location::File(path), _) => {
                let metadata = tokio::fs::metadata(path)
                    .await
                    .map_err(|error| unreadable(error.to_string()))?;
                let version = format!("{:?} {}", metadata.modified().ok(), metadata.len());
                if seen == Some(version.as_str()) {
                    return Ok(None);
                }
                let text = tokio::fs::read_to_string(path)
                    .await
                    .map_err(|error| unreadable(error.to_string()))?;
                Ok(Some((text, version)))
            }
            (Location::S3 { bucket, key }, Some(client)) => {
                let get = client
                    .get_object()
                    .bucket(bucket)
                    .key(key)
                    .set_if_none_match(seen.map(ToOwned::to_owned));
                let object = match get.send().await {
                    Ok(object) => object,
                    Err(error)
                        if error.raw_response().is_some_and(|raw| raw.status().as_u16() == 304) =>
                    {
                        return Ok(None);
                    }
                    Err(error) => return Err(unreadable(DisplayErrorContext(&error).to_string())),
                };
                let version = object.e_tag().unwrap_or_default().to_owned();
                let bytes = object
                    .body
                    .collect()
                    .await
                    .map_err(|error| unreadable(error.to_string()))?
                    .to_vec();
                let text =
                    String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
                Ok(Some((text, version)))
            }
            (Location::S3 { .. }, None) => Err(unreadable("there is no S3 client".to_owned())),
        }
    }
}

fn report(state: &mut State, problem: &str) {
    let kept = state.good.is_some();
    tracing::error!(problem, last_good_kept = kept, "subscriptions.broken");
    state.problem = Some(problem.to_owned());
}

impl SubscriptionSource for LiveSubscriptions {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        let state = self.look(LOOK_EVERY_MS).await;
        state.good.clone().ok_or_else(|| state.problem.clone().unwrap_or_default())
    }

    async fn reread(&self) -> Result<Arc<Catalogue>, String> {
        let state = self.look(REREAD_EVERY_MS).await;
        match (&state.problem, &state.good) {
            (None, Some(good)) => Ok(Arc::clone(good)),
            (problem, _) => Err(problem.clone().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_file_or_an_object() {
        assert_eq!(Location::parse("file:///a/b.yaml"), Ok(Location::File("/a/b.yaml".into())));
        let object =
            Location::S3 { bucket: "b".to_owned(), key: "k/subscriptions.yaml".to_owned() };
        assert_eq!(Location::parse("s3://b/k/subscriptions.yaml"), Ok(object));
        for uri in ["", "file://a", "s3://b", "s3://b/", "s3:///k", "https://x/y"] {
            assert!(Location::parse(uri).is_err(), "{uri}");
        }
    }
}
