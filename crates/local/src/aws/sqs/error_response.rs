//! Error responses with types that clients recognise.
//!
//! Separate because the engine uses the error names of the old query protocol. Clients of the JSON
//! protocol expect those of the service model (`QueueDoesNotExist`, not `NonExistentQueue`).
//!
//! Promises: the body has the model's name, and a header the old name, as in AWS for migrated
//! clients: <https://smithy.io/2.0/aws/protocols/aws-query-protocol.html>.

use http::header::HeaderValue;
use http::{HeaderName, Response};
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_model::error::{SqsError, SqsErrorCode};

use super::json_response;

/// The header in which clients look for the old name.
const QUERY_ERROR: HeaderName = HeaderName::from_static("x-amzn-query-error");

/// The prefix of many old names.
const OLD_PREFIX: &str = "AWS.SimpleQueueService.";

/// The response to a failed call.
pub(super) fn for_error(error: &SqsError) -> Response<SqsResponseBody> {
    let body = serde_json::json!({ "__type": format!("com.amazonaws.sqs#{}", name(error.code)), "message": error.message });
    let mut response = json_response(body.to_string().into_bytes());
    *response.status_mut() = error.code.status_code();
    let old_name = format!("{};{}", old_name(error.code), error.code.fault());
    if let Ok(old_name) = HeaderValue::try_from(old_name) {
        response.headers_mut().insert(QUERY_ERROR, old_name);
    }
    response
}

/// The name of an error in the service model: two were renamed, the others have no prefix.
fn name(code: SqsErrorCode) -> &'static str {
    let old_name = code.error_type();
    match old_name.strip_prefix(OLD_PREFIX).unwrap_or(old_name) {
        "NonExistentQueue" => "QueueDoesNotExist",
        "QueueAlreadyExists" => "QueueNameExists",
        unprefixed => unprefixed,
    }
}

/// The name of an error in the query protocol; the engine omits the prefix of two.
fn old_name(code: SqsErrorCode) -> String {
    match code.error_type() {
        name @ ("MessageNotInflight" | "PurgeQueueInProgress") => format!("{OLD_PREFIX}{name}"),
        name => name.to_owned(),
    }
}
