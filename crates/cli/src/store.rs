//! Where a deployment reads its subscriptions, seen from outside: read, write, earlier versions.
//!
//! Separate from the functions' own reading (`adapters::subscriptions`), which never writes. An S3
//! object keeps its versions because the bucket does; a file keeps one, beside it, named
//! `.previous`.
//!
//! Promises: what was there before a write can be brought back, if the bucket keeps versions. Does
//! not lock: of two who write at once the later wins, and the earlier is a version.

use std::path::{Path, PathBuf};

use adapters::subscriptions::Location;
use anyhow::Context as _;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;

use crate::stack::{self, Stack};

/// The setting of the environment that S3 on this machine may need, as the functions know it.
const S3_FORCE_PATH_STYLE: &str = adapters::settings::S3_FORCE_PATH_STYLE;
/// How many versions are listed.
const VERSIONS_MAX: i32 = 100;
/// The one earlier version of a file.
const PREVIOUS: &str = "previous";
/// What is there now, where versions have no ids.
const CURRENT: &str = "current";

/// A place for subscriptions.
pub(crate) enum Store {
    File(PathBuf),
    Object { client: Client, bucket: String, key: String },
}

/// A version of what is there.
pub(crate) struct Version {
    /// What it is called.
    pub(crate) id: String,
    /// When it was written, for people.
    pub(crate) modified: String,
    /// Whether it is what is there now.
    pub(crate) is_current: bool,
}

impl Store {
    /// Opens a place by its address, or by the stack whose outputs name it.
    pub(crate) async fn open(to: Option<String>, stack: Option<String>) -> anyhow::Result<Self> {
        let location = match (to, stack) {
            (Some(uri), _) => Location::parse(&uri).map_err(anyhow::Error::msg)?,
            (None, Some(name)) => Stack::describe(&name).await?.subscriptions()?,
            (None, None) => anyhow::bail!("--to or --stack is needed"),
        };
        Ok(match location {
            Location::File(path) => Self::File(path),
            Location::S3 { bucket, key } => Self::Object { client: client().await, bucket, key },
        })
    }

    /// Its address.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Object { bucket, key, .. } => format!("s3://{bucket}/{key}"),
        }
    }

    /// What is there; nothing when nothing is.
    pub(crate) async fn read(&self) -> anyhow::Result<Option<String>> {
        match self {
            Self::File(path) => read_file(path),
            Self::Object { client, bucket, key } => {
                match client.get_object().bucket(bucket).key(key).send().await {
                    Ok(object) => self.text(object.body).await.map(Some),
                    Err(error)
                        if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) =>
                    {
                        Ok(None)
                    }
                    Err(error) => anyhow::bail!("{} cannot be read: {}", self.name(), why(&error)),
                }
            }
        }
    }

    /// What it said in a version.
    pub(crate) async fn read_version(&self, id: &str) -> anyhow::Result<String> {
        match self {
            Self::File(path) => {
                let kept = if id == CURRENT { path.clone() } else { previous(path) };
                read_file(&kept)?.with_context(|| format!("{} is not there", kept.display()))
            }
            Self::Object { client, bucket, key } => {
                match client.get_object().bucket(bucket).key(key).version_id(id).send().await {
                    Ok(object) => self.text(object.body).await,
                    Err(error) => {
                        anyhow::bail!(
                            "{}, version {id}, cannot be read: {}",
                            self.name(),
                            why(&error)
                        )
                    }
                }
            }
        }
    }

    /// Puts this in the place of what is there; that stays as an earlier version.
    pub(crate) async fn write(&self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::File(path) => write_file(path, text),
            Self::Object { client, bucket, key } => {
                let put =
                    client.put_object().bucket(bucket).key(key).content_type("application/yaml");
                match put.body(ByteStream::from(text.as_bytes().to_vec())).send().await {
                    Ok(_) => Ok(()),
                    Err(error) => {
                        anyhow::bail!("{} cannot be written: {}", self.name(), why(&error))
                    }
                }
            }
        }
    }

    /// Its versions, from the newest to the oldest.
    pub(crate) async fn versions(&self) -> anyhow::Result<Vec<Version>> {
        match self {
            Self::File(path) => Ok(file_versions(path)),
            Self::Object { client, bucket, key } => {
                let list =
                    client.list_object_versions().bucket(bucket).prefix(key).max_keys(VERSIONS_MAX);
                let list = match list.send().await {
                    Ok(list) => list,
                    Err(error) => {
                        anyhow::bail!(
                            "the versions of {} cannot be listed: {}",
                            self.name(),
                            why(&error)
                        )
                    }
                };
                // S3 lists the versions of one key from the newest to the oldest.
                let of_key = list.versions().iter().filter(|version| version.key() == Some(key));
                let version = |of: &aws_sdk_s3::types::ObjectVersion| Version {
                    id: of.version_id().unwrap_or("null").to_owned(),
                    modified: of.last_modified().map(ToString::to_string).unwrap_or_default(),
                    // After a deletion the newest is a marker, which is no version: then none of
                    // these is current.
                    is_current: of.is_latest() == Some(true),
                };
                Ok(of_key.map(version).collect())
            }
        }
    }

    async fn text(&self, body: ByteStream) -> anyhow::Result<String> {
        let bytes =
            body.collect().await.with_context(|| format!("{} cannot be read", self.name()))?;
        String::from_utf8(bytes.to_vec()).with_context(|| format!("{} is no text", self.name()))
    }
}

/// S3 as the environment says.
pub(crate) async fn client() -> Client {
    let by_path = std::env::var(S3_FORCE_PATH_STYLE).is_ok_and(|value| value == "true");
    adapters::aws_ports::s3_client(&stack::aws().await, by_path)
}

/// What S3 says against it, in one line; where it said nothing, why not.
pub(crate) fn why<E: ProvideErrorMetadata + std::error::Error + 'static>(
    error: &SdkError<E>,
) -> String {
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{message} ({code})"),
        (Some(code), None) => code.to_owned(),
        (None, _) => DisplayErrorContext(error).to_string(),
    }
}

fn previous(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".previous");
    name.into()
}

fn read_file(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// Written beside and moved into place: who reads sees the old text or the new one, never a part.
fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be written", path.display());
    if let Some(old) = read_file(path)? {
        std::fs::write(previous(path), old).with_context(failed)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text).with_context(failed)?;
    std::fs::rename(&beside, path).with_context(failed)
}

fn file_versions(path: &Path) -> Vec<Version> {
    let versions = [(CURRENT, path.to_path_buf()), (PREVIOUS, previous(path))];
    let there = versions.into_iter().filter(|(_, path)| path.is_file());
    there
        .map(|(id, path)| Version {
            id: id.to_owned(),
            modified: path.display().to_string(),
            is_current: id == CURRENT,
        })
        .collect()
}
