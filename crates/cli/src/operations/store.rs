//! Opens the storage of a deployment's subscriptions: objects in a bucket, or files in a folder.

use adapters::live_topics::Location;
use adapters::storage::StoredObject;
use aws_sdk_s3::Client;

use crate::operations::stack;

/// Opens the folder, or the prefix in a bucket, at this location.
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
