//! Consents, kept beside the subscriptions: objects `_consents/…` of the config bucket, or files of
//! a folder `_consents`.
//!
//! Separate from dead letters because the newest consent counts, and there the first write does;
//! and from subscriptions because these are many small documents that programs write.
//!
//! Promises: one that is there is looked at again every five minutes, so that removing it withdraws
//! it; one that is missing every thirty seconds, so that nobody waits long for another's consent.
//! While storage cannot be read, the last one seen counts; where none was seen, nobody can say.
//! Does not ask destinations, and does not lock: of two who keep a consent at once, either wins.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use aws_sdk_s3::Client;
use aws_sdk_s3::error::DisplayErrorContext;
use aws_sdk_s3::primitives::ByteStream;
use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{Clock, ConsentError, Consents};

use crate::machine::Machine;
use crate::subscriptions::Location;

/// A consent that is there is looked at again after this long.
const LOOK_AGAIN_MS: u64 = 300_000;
/// A consent that is missing is looked for again after this long.
const MISSING_LOOK_AGAIN_MS: u64 = 30_000;

/// Where consents are.
#[derive(Debug, Clone)]
pub enum ConsentPlace {
    /// The folder that holds the folder `_consents`.
    Folder(PathBuf),
    /// The bucket that holds them.
    Bucket(Client, String),
}

impl ConsentPlace {
    /// The place beside these subscriptions; the client is used for S3 only.
    #[must_use]
    pub fn beside(subscriptions: &Location, client: Client) -> Self {
        match subscriptions {
            Location::File(path) => {
                Self::Folder(path.parent().unwrap_or(Path::new("/")).to_owned())
            }
            Location::S3 { bucket, .. } => Self::Bucket(client, bucket.clone()),
        }
    }

    async fn get(&self, key: &ConsentKey) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Folder(folder) => match tokio::fs::read(folder.join(key.as_str())).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error.to_string()),
            },
            Self::Bucket(client, bucket) => {
                match client.get_object().bucket(bucket).key(key.as_str()).send().await {
                    Ok(object) => object
                        .body
                        .collect()
                        .await
                        .map(|bytes| Some(bytes.to_vec()))
                        .map_err(|e| e.to_string()),
                    Err(error)
                        if error.raw_response().is_some_and(|raw| raw.status().as_u16() == 404) =>
                    {
                        Ok(None)
                    }
                    Err(error) => Err(DisplayErrorContext(&error).to_string()),
                }
            }
        }
    }

    async fn put(&self, key: &ConsentKey, bytes: Vec<u8>) -> Result<(), String> {
        match self {
            Self::Folder(folder) => {
                write(&folder.join(key.as_str()), &bytes).await.map_err(|error| error.to_string())
            }
            Self::Bucket(client, bucket) => {
                let put = client
                    .put_object()
                    .bucket(bucket)
                    .key(key.as_str())
                    .content_type("application/json");
                let put = put.body(ByteStream::from(bytes)).send().await;
                put.map(|_| ()).map_err(|error| DisplayErrorContext(&error).to_string())
            }
        }
    }
}

/// For people: `s3://bucket` or the folder.
impl fmt::Display for ConsentPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Bucket(_, bucket) => write!(f, "s3://{bucket}"),
        }
    }
}

/// Written beside and moved into place: who reads sees a whole document.
async fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    tokio::fs::write(&beside, bytes).await?;
    tokio::fs::rename(&beside, path).await
}

/// What was seen of a consent, and when.
#[derive(Debug, Clone)]
struct Seen {
    at_ms: u64,
    granted: Option<Granted>,
}

impl Seen {
    fn is_fresh(&self, now_ms: u64) -> bool {
        let fresh_ms = if self.granted.is_some() { LOOK_AGAIN_MS } else { MISSING_LOOK_AGAIN_MS };
        now_ms.saturating_sub(self.at_ms) < fresh_ms
    }
}

/// The consents of a deployment.
#[derive(Debug)]
pub struct ConsentStore<C = Machine> {
    place: ConsentPlace,
    clock: C,
    seen: Mutex<HashMap<ConsentKey, Seen>>,
}

impl ConsentStore {
    /// The consents at this place.
    #[must_use]
    pub fn new(place: ConsentPlace) -> Self {
        Self::with_clock(place, Machine)
    }
}

impl<C: Clock> ConsentStore<C> {
    /// The same by another clock, which says when to look again.
    #[must_use]
    pub fn with_clock(place: ConsentPlace, clock: C) -> Self {
        Self { place, clock, seen: Mutex::default() }
    }

    fn seen(&self, key: &ConsentKey) -> Option<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn see(&self, key: &ConsentKey, granted: Option<Granted>) {
        let seen = Seen { at_ms: self.clock.now_ms(), granted };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), seen);
    }

    async fn look(&self, key: &ConsentKey) -> Result<Option<Granted>, String> {
        let Some(document) = self.place.get(key).await? else { return Ok(None) };
        Granted::read(&document).map(Some).map_err(|error| error.to_string())
    }
}

impl<C: Clock + Send + Sync> Consents for ConsentStore<C> {
    async fn consent(&self, key: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        let seen = self.seen(key);
        if let Some(seen) = seen.as_ref().filter(|seen| seen.is_fresh(self.clock.now_ms())) {
            return Ok(seen.granted.clone());
        }
        match (self.look(key).await, seen.and_then(|seen| seen.granted)) {
            (Ok(granted), _) => {
                self.see(key, granted.clone());
                Ok(granted)
            }
            (Err(_), Some(granted)) => {
                self.see(key, Some(granted.clone()));
                Ok(Some(granted))
            }
            (Err(problem), None) => Err(ConsentError { key: key.as_str().to_owned(), problem }),
        }
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        self.see(key, Some(granted.clone()));
        let kept = self.place.put(key, granted.write()).await;
        kept.map_err(|problem| ConsentError { key: key.as_str().to_owned(), problem })
    }
}
