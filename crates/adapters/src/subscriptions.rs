//! The subscriptions of a deployment, kept fresh.
//!
//! The source is a file or an S3 object. It is read for the first records and checked again every
//! 30 s, cheaply, by its modification time or ETag; a file on this machine every 100 ms. A newer version that is broken is reported as
//! an error and does not replace the last good one. A process that starts on a broken one uses the
//! newest earlier version that can be read, where versions are kept: a broken file stops nothing
//! that was known before. Where nothing was ever written a process says so once, and its records wait. A caller that does not find a name may request a check right now; that is
//! done at most once a second.
//!
//! Not one type with the caches of secrets and consents: here the caller chooses between two
//! freshness windows, the fetch is conditional, and a problem is reported even when a good value
//! exists.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use aws_sdk_s3::Client;
use delivery::ports::{Clock, SubscriptionSource};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use dialects::Source;
use tokio::sync::{Mutex, MutexGuard};

use crate::file_text::text_of;
use crate::machine::Machine;
use crate::storage::{Fetched, StorageError, StoredObject};

/// The source is checked again after this long.
pub const FILE_EVERY_MS: u64 = 30_000;
/// A file on this machine is checked after this long: that asks nobody else, and whoever saves it wants
/// to see its effect.
pub const LOCAL_FILE_EVERY_MS: u64 = 100;
/// A missing name causes a check, but not more often than this.
const REREAD_EVERY_MS: u64 = 1_000;
/// What to do where nothing is.
const WRITE_IT: &str = "write it with lastmile apply; until then events wait";
/// How many earlier versions are tried when the newest one cannot be read.
const EARLIER_VERSIONS_MAX: usize = 20;

/// Where the subscriptions are: in one file, or, if the address ends with a slash, in a catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of this machine, or the folder of a catalogue.
    File(PathBuf),
    /// An S3 object, or what the keys of a catalogue begin with.
    S3 {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: String,
    },
}

impl Location {
    /// Reads `s3://bucket/key` or `file:///path`, for a catalogue with a slash at its end.
    ///
    /// # Errors
    /// What form is expected.
    pub fn parse(uri: &str) -> Result<Self, String> {
        if let Some(path) = uri.strip_prefix("file://").filter(|path| path.starts_with('/')) {
            return Ok(Self::File(path.into()));
        }
        match uri.strip_prefix("s3://").and_then(|rest| rest.split_once('/')) {
            Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                Ok(Self::S3 { bucket: bucket.to_owned(), key: key.to_owned() })
            }
            _ => Err(format!(
                "\"{uri}\" is not a source of subscriptions: s3://bucket/key or file:///path is \
                 expected, or for a catalogue s3://bucket/prefix/ or file:///folder/"
            )),
        }
    }

    /// Whether it is a catalogue.
    #[must_use]
    pub fn is_catalogue(&self) -> bool {
        match self {
            Self::File(path) => path.as_os_str().as_encoded_bytes().ends_with(b"/"),
            Self::S3 { key, .. } => key.ends_with('/'),
        }
    }

    /// What is there; the client is used for S3 only.
    #[must_use]
    pub fn object(&self, client: Client) -> StoredObject {
        match self {
            Self::File(path) => StoredObject::file(path),
            Self::S3 { bucket, key } => StoredObject::in_bucket(client, bucket, key),
        }
    }
}

/// The subscriptions of a deployment.
#[derive(Debug)]
pub struct LiveSubscriptions<C = Machine> {
    source: StoredObject,
    clock: C,
    /// The source is checked after this long, if that is sooner than what a caller asks for.
    check_every_ms: u64,
    /// A text without any document is taken for a broken one.
    refuses_blank: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    good: Option<Arc<Catalogue>>,
    /// The ETag of the version read last, good or broken.
    etag: Option<String>,
    checked_ms: Option<u64>,
    /// There was nothing when it was read last.
    is_missing: bool,
    /// That was said.
    is_told_missing: bool,
    /// When earlier versions were looked at.
    looked_back_ms: Option<u64>,
    /// What is wrong with the newest version, or with reaching it.
    problem: Option<String>,
    /// What is wrong with the version read last.
    broken: Option<String>,
}

impl<C: Clock> LiveSubscriptions<C> {
    /// The subscriptions in this file or object, which is checked again by the clock.
    #[must_use]
    pub fn new(source: StoredObject, clock: C) -> Self {
        let (check_every_ms, refuses_blank) = (FILE_EVERY_MS, false);
        Self { source, clock, check_every_ms, refuses_blank, state: Mutex::default() }
    }

    /// The same, for a file that a person edits: one that became empty does not replace what was read.
    #[must_use]
    pub fn refusing_blank(self) -> Self {
        Self { refuses_blank: true, ..self }
    }

    /// The same, checked this often.
    #[must_use]
    pub fn checked_every(self, check_every_ms: u64) -> Self {
        Self { check_every_ms, ..self }
    }

    /// Checks the source unless that was done within `fresh_ms`. The lock is held meanwhile, so
    /// one caller reads and the others wait for its result.
    async fn check(&self, fresh_ms: u64) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().await;
        let now_ms = self.clock.now_ms();
        // Without a good version all records wait, so a repair has to be seen soon.
        let fresh_ms = if state.good.is_some() { fresh_ms } else { REREAD_EVERY_MS };
        let fresh_ms = fresh_ms.min(self.check_every_ms);
        if state.checked_ms.is_none_or(|checked_ms| now_ms.saturating_sub(checked_ms) >= fresh_ms) {
            // Also if reading fails: those who wait for the lock must not each repeat it.
            state.checked_ms = Some(now_ms);
            self.refresh(&mut state).await;
            let looked_back = state.looked_back_ms;
            let is_stale = |at_ms: u64| now_ms.saturating_sub(at_ms) >= FILE_EVERY_MS;
            // Not when it could not be reached: then it may well be right, and an older one would be
            // wrong without anyone noticing.
            let is_unusable = state.broken.is_some() || state.is_missing;
            if state.good.is_none() && is_unusable && looked_back.is_none_or(is_stale) {
                state.looked_back_ms = Some(now_ms);
                let found = self.newest_readable().await;
                state.good = found.unwrap_or_else(|error| {
                    tracing::warn!(problem = %error, "subscriptions.no_versions");
                    None
                });
            }
            self.tell_missing(&mut state);
        }
        state
    }

    /// Says once that nothing was ever written: a new deployment waits for its first file, which is no error.
    fn tell_missing(&self, state: &mut State) {
        if state.is_missing && state.good.is_none() && !state.is_told_missing {
            state.is_told_missing = true;
            let source = self.source.to_string();
            tracing::warn!(source, help = WRITE_IT, "subscriptions.missing");
        }
    }

    /// The newest earlier version that can be read, if there is one.
    async fn newest_readable(&self) -> Result<Option<Arc<Catalogue>>, StorageError> {
        let StoredObject { storage, key } = &self.source;
        let versions = storage.versions(key).await?;
        let earlier = versions.into_iter().filter(|version| !version.is_current);
        for version in earlier.take(EARLIER_VERSIONS_MAX) {
            // One that cannot be reached is not skipped: it may be the newest that is right.
            let bytes = storage.get_version(key, &version.id).await?;
            let text = bytes.and_then(|bytes| text_of(bytes).ok());
            let Some(Ok(catalogue)) = text.map(|text| self.parse(&text)) else { continue };
            let (source, of) = (self.source.to_string(), version.description);
            tracing::warn!(source, version = of, "subscriptions.earlier_version_used");
            return Ok(Some(Arc::new(catalogue)));
        }
        Ok(None)
    }

    /// The catalogue of this text, or its findings as lines.
    fn parse(&self, text: &str) -> Result<Catalogue, String> {
        let name = self.source.to_string();
        let source = Source { name: &name, text };
        let blank = dialects::blank(source).filter(|_| self.refuses_blank);
        let read =
            blank.map_or_else(|| dialects::read(&[source]).into_result(), |it| Err(vec![it]));
        read.map_err(|findings| {
            let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
            lines.join("\n")
        })
    }

    async fn refresh(&self, state: &mut State) {
        let StoredObject { storage, key } = &self.source;
        let fetched = storage.get_if_changed(key, state.etag.as_deref()).await;
        state.is_missing = matches!(fetched, Ok(Fetched::Missing));
        let unreadable = |why: &str| format!("{} cannot be read: {why}", self.source);
        match fetched {
            // The source can be reached; what may still be wrong is its content.
            Ok(Fetched::Unchanged) => state.problem.clone_from(&state.broken),
            Ok(Fetched::Changed { bytes, etag, .. }) => {
                // Of a broken version too: it is not read and parsed again every 30 s.
                state.etag = Some(etag);
                let text = text_of(bytes).map_err(|why| unreadable(&why.to_string()));
                match text.and_then(|text| self.parse(&text)) {
                    Ok(catalogue) => {
                        let source = self.source.to_string();
                        let subscriptions = catalogue.subscriptions().count();
                        tracing::info!(source, subscriptions, "subscriptions.loaded");
                        state.good = Some(Arc::new(catalogue));
                        (state.problem, state.broken) = (None, None);
                    }
                    Err(problem) => {
                        report(state, &problem);
                        state.broken.clone_from(&state.problem);
                    }
                }
            }
            Ok(Fetched::Missing) if state.good.is_none() => {
                let problem = format!("it does not exist: {WRITE_IT}");
                state.problem = Some(unreadable(&problem));
            }
            Ok(Fetched::Missing) => report(state, &unreadable("it does not exist")),
            Err(error) => report(state, &unreadable(&error.to_string())),
        }
    }
}

fn report(state: &mut State, problem: &str) {
    let kept = state.good.is_some();
    tracing::error!(problem, last_good_kept = kept, "subscriptions.broken");
    state.problem = Some(problem.to_owned());
}

impl<C: Clock + Send + Sync> SubscriptionSource for LiveSubscriptions<C> {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        let state = self.check(FILE_EVERY_MS).await;
        state.good.clone().ok_or_else(|| state.problem.clone().unwrap_or_default())
    }

    async fn reread(
        &self,
        _known: Arc<Catalogue>,
        _topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        let state = self.check(REREAD_EVERY_MS).await;
        // Unless the newest version was read, no name may count as missing.
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
        let is_catalogue = |uri: &str| Location::parse(uri).map(|location| location.is_catalogue());
        for (uri, expected) in [
            ("file:///a/b.yaml", false),
            ("file:///a/catalogue/", true),
            ("s3://b/k.yaml", false),
            ("s3://b/catalogue/", true),
        ] {
            assert_eq!(is_catalogue(uri), Ok(expected), "{uri}");
        }
        for uri in ["", "file://a", "s3://b", "s3://b/", "s3:///k", "https://x/y"] {
            assert!(Location::parse(uri).is_err(), "{uri}");
        }
    }
}
