//! S3 on a plain folder: the file `<data>/<bucket>/<key>` is an object.
//!
//! Separate from the queues because S3 and the queues have only the port in common.
//! `rustack-s3-http` implements the protocol, and `adapters::storage` stores the objects.
//!
//! Promises: conditional reads and writes; any credentials, or none. Has no versions, multipart
//! uploads, copies, metadata, virtual-hosted addresses or access control.

mod buckets;
mod handler;
mod operations;

use rustack_s3_http::service::{S3HttpConfig, S3HttpService};

pub(super) use buckets::Buckets;

use super::REGION;

/// The S3 service, in the form that hyper requires.
pub(super) type Service = S3HttpService<handler::Handler>;

/// Creates the S3 service for these buckets.
pub(super) fn service(buckets: Buckets) -> Service {
    let config = S3HttpConfig {
        domain: String::new(),
        virtual_hosting: false,
        skip_signature_validation: true,
        region: REGION.to_owned(),
        credential_provider: None,
    };
    S3HttpService::new(handler::Handler::new(buckets), config)
}
