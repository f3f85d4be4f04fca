//! Dead letters in S3.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};

use super::{Blob, ListRequest, Page, Storage, StorageFuture};

/// A bucket.
pub(super) struct Bucket {
    client: Client,
    bucket: String,
}

impl Bucket {
    pub(super) fn new(client: Client, bucket: String) -> Self {
        Self { client, bucket }
    }
}

impl Storage for Bucket {
    fn list<'a>(&'a self, request: &'a ListRequest) -> StorageFuture<'a, Page> {
        Box::pin(async move {
            let list = self.client.list_objects_v2().bucket(&self.bucket).prefix(&request.prefix);
            let list = list.set_delimiter(request.by_folder.then(|| "/".to_owned()));
            let list = list.set_start_after(request.start_after.clone());
            let page = list.set_continuation_token(request.continuation.clone()).send().await;
            let page = page.map_err(|error| anyhow::anyhow!(describe(&error)))?;
            let blob = |object: &aws_sdk_s3::types::Object| Blob {
                key: object.key().unwrap_or_default().to_owned(),
                modified_ms: object
                    .last_modified()
                    .and_then(|at| at.to_millis().ok()?.try_into().ok())
                    .unwrap_or(0),
            };
            let folders = page.common_prefixes().iter().filter_map(|folder| folder.prefix());
            Ok(Page {
                blobs: page.contents().iter().map(blob).collect(),
                folders: folders.map(ToOwned::to_owned).collect(),
                next: page.next_continuation_token().map(ToOwned::to_owned),
            })
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> StorageFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            match self.client.get_object().bucket(&self.bucket).key(key).send().await {
                Ok(object) => Ok(Some(object.body.collect().await?.to_vec())),
                Err(error)
                    if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) =>
                {
                    Ok(None)
                }
                Err(error) => Err(anyhow::anyhow!(describe(&error))),
            }
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> StorageFuture<'a, ()> {
        Box::pin(async move {
            let put = self
                .client
                .put_object()
                .bucket(&self.bucket)
                .key(key)
                .body(ByteStream::from(bytes));
            put.send().await.map(|_| ()).map_err(|error| anyhow::anyhow!(describe(&error)))
        })
    }

    fn put_new<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> StorageFuture<'a, ()> {
        Box::pin(async move {
            use delivery::ports::PutBlob as _;
            let blobs = adapters::blobs::S3Blobs::new(self.client.clone());
            Ok(blobs.put(&self.bucket, key, bytes).await?)
        })
    }

    fn delete<'a>(&'a self, keys: &'a [String]) -> StorageFuture<'a, ()> {
        Box::pin(async move {
            let named = |key: &String| ObjectIdentifier::builder().key(key).build();
            let objects = keys.iter().map(named).collect::<Result<Vec<_>, _>>()?;
            let delete = Delete::builder().set_objects(Some(objects)).quiet(true).build()?;
            let deleted =
                self.client.delete_objects().bucket(&self.bucket).delete(delete).send().await;
            let deleted = deleted.map_err(|error| anyhow::anyhow!(describe(&error)))?;
            match deleted.errors() {
                [] => Ok(()),
                [first, ..] => anyhow::bail!(
                    "{} blobs were not removed, first {}: {}",
                    deleted.errors().len(),
                    first.key().unwrap_or_default(),
                    first.message().unwrap_or_default()
                ),
            }
        })
    }
}

/// The error of S3 in one line; without one, why the request failed.
fn describe<E: ProvideErrorMetadata + std::error::Error + 'static>(error: &SdkError<E>) -> String {
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{message} ({code})"),
        (Some(code), None) => code.to_owned(),
        (None, _) => DisplayErrorContext(error).to_string(),
    }
}
