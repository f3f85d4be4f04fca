//! Where a deployment reads its subscriptions, as `apply` and `rollback` use it: read, write,
//! earlier versions.
//!
//! Separate from the functions' own reading (`adapters::subscriptions`), which never writes. An S3
//! object keeps its versions because the bucket does; a file keeps one, beside it, named
//! `.previous`.
//!
//! Promises: what was there before a write can be restored, if the bucket keeps versions. Does not
//! lock: of two writes at once the later wins, and the earlier is a version.

use adapters::file_text;
use adapters::storage::{Storage, StoredObject, Version};
use adapters::subscriptions::Location;
use anyhow::Context as _;
use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use local::http_client::is_here;

use crate::files::usage_error;
use crate::stack::{self, Stack};

/// The setting of the environment that S3 elsewhere than at AWS may need, as the functions know it.
const S3_FORCE_PATH_STYLE: &str = adapters::settings::S3_FORCE_PATH_STYLE;
/// The endpoint of S3 alone; the SDK reads it itself.
const S3_ENDPOINT: &str = "AWS_ENDPOINT_URL_S3";

/// Where the subscriptions of a deployment are.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Where the deployment reads subscriptions: s3://bucket/key or file:///path; a catalogue ends with a slash
    #[arg(long, value_name = "URI")]
    to: Option<String>,
    /// The deployed CloudFormation stack, whose outputs say where it reads subscriptions
    #[arg(long, value_name = "NAME")]
    pub(crate) stack: Option<String>,
}

/// The file or S3 object with the subscriptions of a deployment.
pub(crate) struct SubscriptionStore {
    object: StoredObject,
}

impl Target {
    /// The address of what is there.
    pub(crate) async fn location(&self) -> anyhow::Result<Location> {
        let stack = Stack::optional(self.stack.as_deref()).await?;
        location(self.to.as_deref(), stack.as_ref())
    }
}

impl SubscriptionStore {
    /// The one at this address, which is not a catalogue.
    pub(crate) async fn at(location: &Location) -> Self {
        Self { object: object(location).await }
    }

    /// Its address.
    pub(crate) fn name(&self) -> String {
        self.object.to_string()
    }

    /// Where it is, and what belongs to it.
    pub(crate) fn storage(&self) -> &Storage {
        &self.object.storage
    }

    /// Its content; `None` when it does not exist.
    pub(crate) async fn read(&self) -> anyhow::Result<Option<String>> {
        let content = self.object.storage.get(&self.object.key).await;
        let content = content.with_context(|| format!("{} cannot be read", self.name()))?;
        content.map(|bytes| self.text(bytes)).transpose()
    }

    /// Its content in a version.
    pub(crate) async fn read_version(&self, id: &str) -> anyhow::Result<String> {
        let content = self.object.storage.get_version(&self.object.key, id).await;
        let what = format!("{}, version {id},", self.name());
        let content = content.with_context(|| format!("{what} cannot be read"))?;
        self.text(content.with_context(|| format!("{what} does not exist"))?)
    }

    /// Replaces its content; what was there stays as an earlier version.
    pub(crate) async fn write(&self, text: &str) -> anyhow::Result<()> {
        let StoredObject { storage, key } = &self.object;
        let written = storage.put_version(key, text.as_bytes().to_vec()).await;
        written.with_context(|| format!("{} cannot be written", self.name()))
    }

    /// Its versions, newest first.
    pub(crate) async fn versions(&self) -> anyhow::Result<Vec<Version>> {
        let versions = self.object.storage.versions(&self.object.key).await;
        versions.with_context(|| format!("the versions of {} cannot be listed", self.name()))
    }

    fn text(&self, bytes: Vec<u8>) -> anyhow::Result<String> {
        file_text::text_of(bytes).with_context(|| format!("{} cannot be read", self.name()))
    }
}

/// Where the subscriptions are, by `--to` or the stack.
///
/// # Errors
/// A usage error for what is no address.
pub(crate) fn location(to: Option<&str>, stack: Option<&Stack>) -> anyhow::Result<Location> {
    match (to, stack) {
        (Some(uri), _) => Location::parse(uri).map_err(usage_error),
        (None, Some(stack)) => stack.subscriptions(),
        (None, None) => Err(usage_error("--to or --stack is required")),
    }
}

/// The file, object or folder at this address.
pub(crate) async fn object(location: &Location) -> StoredObject {
    // A file needs no client, and looking for credentials may take seconds.
    match location {
        Location::File(path) => StoredObject::file(path),
        Location::S3 { bucket, key } => StoredObject::in_bucket(client().await, bucket, key),
    }
}

/// An S3 client as the environment describes it.
pub(crate) async fn client() -> Client {
    let aws = stack::aws().await;
    let by_path = std::env::var(S3_FORCE_PATH_STYLE).is_ok_and(|value| value == "true");
    adapters::aws_ports::s3_client(&aws, by_path || is_s3_here(&aws))
}

/// Whether S3 is on this machine: with a bucket in front of it, `localhost` resolves on some systems only.
fn is_s3_here(aws: &SdkConfig) -> bool {
    let own = std::env::var(S3_ENDPOINT).ok();
    own.as_deref().or(aws.endpoint_url()).is_some_and(is_here)
}
