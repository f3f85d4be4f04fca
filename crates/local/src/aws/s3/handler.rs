//! Receives requests from `rustack-s3-http`, and calls the operation for each request.
//!
//! Separate from the operations because it handles the protocol's envelope: parsing, body and
//! response.
//!
//! Promises: an operation that is not listed here fails with `NotImplemented`. A key or an object
//! that is too large is refused.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use rustack_s3_core::error::S3ServiceError;
use rustack_s3_core::storage::{StagedRead, StagedUpload};
use rustack_s3_core::validation::validate_object_key;
use rustack_s3_http::{FromS3Request, IntoS3Response, RoutingContext, S3Handler, S3ResponseBody};
use rustack_s3_model::S3Operation;
use rustack_s3_model::error::{S3Error, S3ErrorCode};

use super::buckets::Buckets;
use super::operations;

/// Maximum size of an object, because an object is held in memory during a write.
const OBJECT_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

type Request = (Parts, Bytes, RoutingContext);

type ResponseFuture =
    Pin<Box<dyn Future<Output = Result<Response<S3ResponseBody>, S3Error>> + Send>>;

/// The S3 operations on buckets that are folders.
#[derive(Debug)]
pub(in super::super) struct Handler(Arc<Buckets>);

impl Handler {
    pub(super) fn new(buckets: Buckets) -> Self {
        Self(Arc::new(buckets))
    }

    /// Parses a request, runs the operation, and serializes its output.
    fn run<I, O, F>(
        &self,
        request: Request,
        work: impl FnOnce(Arc<Buckets>, I) -> F,
    ) -> ResponseFuture
    where
        I: FromS3Request,
        O: IntoS3Response,
        F: Future<Output = Result<O, S3Error>> + Send + 'static,
    {
        match parse(request) {
            Ok(input) => {
                let working = work(Arc::clone(&self.0), input);
                Box::pin(async move { working.await?.into_s3_response() })
            }
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

impl S3Handler for Handler {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other operations are not supported")]
    fn handle_operation(
        &self,
        operation: S3Operation,
        parts: Parts,
        body: Bytes,
        context: RoutingContext,
    ) -> ResponseFuture {
        let request = (parts, body, context);
        match operation {
            S3Operation::CreateBucket => self.run(request, operations::create_bucket),
            S3Operation::HeadBucket => self.run(request, operations::head_bucket),
            S3Operation::GetBucketLocation => self.run(request, operations::get_bucket_location),
            S3Operation::ListBuckets => self.run(request, operations::list_buckets),
            S3Operation::ListObjectsV2 => self.run(request, operations::list_objects),
            S3Operation::ListObjectVersions => self.run(request, operations::list_object_versions),
            S3Operation::GetObject => self.run(request, operations::get_object),
            S3Operation::HeadObject => self.run(request, operations::head_object),
            S3Operation::DeleteObject => self.run(request, operations::delete_object),
            S3Operation::DeleteObjects => self.run(request, operations::delete_objects),
            other => Box::pin(ready(Err(S3Error::not_implemented(other.as_str())))),
        }
    }

    /// Puts an object, whose body the server has written to a temporary file.
    fn handle_staged_upload(
        &self,
        parts: Parts,
        upload: Arc<StagedUpload>,
        context: RoutingContext,
    ) -> ResponseFuture {
        if context.operation != S3Operation::PutObject {
            let name = context.operation.as_str();
            return Box::pin(ready(Err(S3Error::not_implemented(name))));
        }
        self.run((parts, Bytes::new(), context), |buckets, input| async move {
            operations::put_object(buckets, input, read(upload).await?).await
        })
    }
}

fn parse<I: FromS3Request>((parts, body, context): Request) -> Result<I, S3Error> {
    let (bucket, key) = (context.bucket.as_deref(), context.key.as_deref());
    key.map_or(Ok(()), validate_object_key).map_err(S3ServiceError::into_s3_error)?;
    I::from_s3_request(&parts, bucket, key, &context.query_params, body)
}

/// Reads an uploaded object into memory.
async fn read(upload: Arc<StagedUpload>) -> Result<Bytes, S3Error> {
    let length = upload.size();
    if length > OBJECT_LIMIT_BYTES {
        return Err(S3Error::with_message(
            S3ErrorCode::EntityTooLarge,
            format!("the local S3 accepts objects of at most {OBJECT_LIMIT_BYTES} bytes"),
        ));
    }
    let content = StagedRead { upload, offset: 0, length };
    content.collect_bounded(OBJECT_LIMIT_BYTES).await.map_err(|error| {
        S3Error::internal_error(format!("the temporary file of an upload cannot be read: {error}"))
    })
}
