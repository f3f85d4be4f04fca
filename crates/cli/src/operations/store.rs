//! Resolves the options that name the location of a deployment's subscriptions.

use adapters::live_topics::Location;
use adapters::storage::StoredObject;
use aws_sdk_s3::Client;

use crate::operations::stack::{self, Stack};
use crate::terminal::usage::usage_error;

/// The options that name the location of a deployment's subscriptions.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Location of the deployment's subscriptions: s3://bucket/prefix/ or file:///folder/
    #[arg(long, value_name = "URI")]
    to: Option<String>,
    /// Deployed CloudFormation stack; its outputs name the location of its subscriptions
    #[arg(long, value_name = "NAME")]
    pub(crate) stack: Option<String>,
}

impl Target {
    /// Returns the location that the options name.
    pub(crate) async fn location(&self) -> anyhow::Result<Location> {
        let stack = Stack::optional(self.stack.as_deref()).await?;
        location(self.to.as_deref(), stack.as_ref())
    }
}

/// Returns the location of the subscriptions: that of `--to`, otherwise that of the stack.
///
/// # Errors
/// A usage error for an invalid address.
pub(crate) fn location(to: Option<&str>, stack: Option<&Stack>) -> anyhow::Result<Location> {
    match (to, stack) {
        (Some(uri), _) => Location::parse(uri).map_err(usage_error),
        (None, Some(stack)) => stack.subscriptions(),
        (None, None) => Err(usage_error("--to or --stack is required")),
    }
}

/// Opens the object or the folder at this location.
pub(crate) async fn object(location: &Location) -> StoredObject {
    // A local path needs no S3 client. Creating one searches for credentials, which may take
    // seconds.
    match location {
        Location::Folder(path) => StoredObject::file(path),
        Location::Bucket { name, prefix } => StoredObject::in_bucket(client().await, name, prefix),
    }
}

/// Creates an S3 client with the configuration of the environment.
pub(crate) async fn client() -> Client {
    let aws = stack::aws().await;
    adapters::aws_ports::s3_client(&aws)
}
