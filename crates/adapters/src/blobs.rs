//! Blobs in S3.
//!
//! A put carries `If-None-Match: *`: the first write of a key wins, and a second one is a success
//! that changes nothing.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html>

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use delivery::ports::{BlobName, PutBlob, PutError, ReadBlobs, ReadError};
use delivery::subscription::sink::Container;

/// How often a put that raced another is made again at once.
const RACES_MAX: u32 = 3;

/// Blobs in S3.
#[derive(Debug, Clone)]
pub struct S3Blobs {
    client: Client,
}

impl S3Blobs {
    /// Blobs reached through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl PutBlob for S3Blobs {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), PutError> {
        let body = SdkBody::from(bytes);
        let mut races = 0;
        loop {
            let put = self.client.put_object().bucket(bucket).key(key).if_none_match("*");
            let put = put.content_type("application/json").body(ByteStream::new(shared(&body)));
            let Err(error) = put.send().await else { return Ok(()) };
            match status_of(&error) {
                Some(412) => return Ok(()),
                Some(409) if races < RACES_MAX => races += 1,
                _ => return Err(put_error(&error)),
            }
        }
    }
}

/// The same bytes, not copied.
fn shared(body: &SdkBody) -> SdkBody {
    body.try_clone().expect("a body in memory can be cloned")
}

fn put_error<E: ProvideErrorMetadata + std::error::Error + 'static>(
    error: &SdkError<E>,
) -> PutError {
    let told = error.code().and_then(|code| Some(format!("{code}: {}", error.message()?)));
    let text = told.unwrap_or_else(|| DisplayErrorContext(error).to_string());
    match error.code() {
        Some(
            "NoSuchBucket" | "AccessDenied" | "AllAccessDisabled" | "PermanentRedirect"
            | "InvalidBucketName",
        ) => PutError::NoSuchContainer(text),
        _ => PutError::Refused(text),
    }
}

fn status_of<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

impl ReadBlobs for S3Blobs {
    async fn list(&self, container: &Container) -> Result<Vec<BlobName>, ReadError> {
        let list =
            self.client.list_objects_v2().bucket(&container.bucket).prefix(&container.prefix);
        let mut pages = list.into_paginator().send();
        let mut names = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| ReadError(DisplayErrorContext(&error).to_string()))?;
            for object in page.contents() {
                let bytes = object.size().and_then(|size| size.try_into().ok()).unwrap_or(0);
                names.push(BlobName { key: object.key().unwrap_or_default().to_owned(), bytes });
            }
        }
        Ok(names)
    }

    async fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, ReadError> {
        match self.client.get_object().bucket(bucket).key(key).send().await {
            Ok(object) => match object.body.collect().await {
                Ok(bytes) => Ok(Some(bytes.to_vec())),
                Err(error) => Err(ReadError(DisplayErrorContext(&error).to_string())),
            },
            Err(error) if status_of(&error) == Some(404) => Ok(None),
            Err(error) => Err(ReadError(DisplayErrorContext(&error).to_string())),
        }
    }
}
