//! Error responses with types that clients recognise.
//!
//! Separate because the engine uses the error names of the old query protocol. Clients of the JSON
//! protocol expect the names of the service model (`QueueDoesNotExist`, not `NonExistentQueue`).
//!
//! Promises: the body has the model's name, and a header has the old name, as in AWS for migrated
//! clients: <https://smithy.io/2.0/aws/protocols/aws-query-protocol.html>.

use http::header::HeaderValue;
use http::{HeaderName, Response};
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_model::error::{SqsError, SqsErrorCode};

use super::json_response;

/// Header in which clients look for the error name of the query protocol.
const QUERY_ERROR: HeaderName = HeaderName::from_static("x-amzn-query-error");

/// Prefix of many error names in the query protocol.
const OLD_PREFIX: &str = "AWS.SimpleQueueService.";

/// Returns the response to a call that failed with this error.
pub(super) fn for_error(error: &SqsError) -> Response<SqsResponseBody> {
    let body = serde_json::json!({ "__type": format!("com.amazonaws.sqs#{}", name(error.code)), "message": error.message });
    let mut response = json_response(body.to_string().into_bytes());
    *response.status_mut() = error.code.status_code();
    if let Ok(old_name) = HeaderValue::try_from(old_name(error.code)) {
        response.headers_mut().insert(QUERY_ERROR, old_name);
    }
    response
}

/// Returns the name of an error in the service model. Two errors were renamed; the other names only
/// lose the prefix.
fn name(code: SqsErrorCode) -> &'static str {
    let old_name = code.error_type();
    match old_name.strip_prefix(OLD_PREFIX).unwrap_or(old_name) {
        "NonExistentQueue" => "QueueDoesNotExist",
        "QueueAlreadyExists" => "QueueNameExists",
        unprefixed => unprefixed,
    }
}

/// Returns the name and the fault of an error in the query protocol. The engine omits the prefix of
/// `MessageNotInflight`, so this function adds it.
fn old_name(code: SqsErrorCode) -> String {
    let prefix = if code == SqsErrorCode::MessageNotInflight { OLD_PREFIX } else { "" };
    format!("{prefix}{}", code.query_error_header())
}
