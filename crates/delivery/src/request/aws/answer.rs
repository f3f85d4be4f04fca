//! Translates the response of an AWS service to the equivalent HTTP status.
//!
//! This module is separate because each service reports failures differently. Examples are
//! throttling with status 400, a refused event with status 200, and a failed function in a header.
//! The subscription's retry policy decides by status. So the response gets the status that an HTTP
//! endpoint would have sent. The body stays unchanged.

use serde_json::Value as Json;

use super::errors::{AwsFailure, failure_of};
use crate::delivery::outcome::{Content, Exchange, TransportResult};
use crate::request::{Needs, Request};
use crate::subscription::aws::AwsService;

/// Maximum length of an error code that a message quotes.
const CODE_MAX_BYTES: usize = 80;
/// Response header with which Lambda reports a failed function.
const FUNCTION_ERROR: &str = "x-amz-function-error";
/// Response header with an error code.
const ERROR_TYPE: &str = "x-amzn-errortype";

impl Request {
    /// Translates the response of an AWS service to the equivalent HTTP status. Responses of other
    /// destinations stay unchanged.
    #[must_use]
    pub fn understood(&self, exchange: Exchange) -> Exchange {
        match self.needs {
            Needs::Service(service) => understood(service, exchange),
            Needs::Status | Needs::Body | Needs::Reply => exchange,
        }
    }
}

fn understood(service: AwsService, exchange: Exchange) -> Exchange {
    let Some((status, body)) = exchange.answer() else { return exchange };
    let headers = exchange.content.as_ref().map_or(&[][..], |content: &Content| &content.headers);
    let is_success = (200..300).contains(&status);
    let failure = match is_success {
        true => failure_in_success(service, headers, body),
        false => error_code(headers, body).map(|code| (failure_of(&code), code)),
    };
    let Some((failure, code)) = failure else { return exchange };
    let Some(failure) = failure else {
        // An unknown code with a success status counts as 500. Otherwise the response keeps its
        // status.
        return if is_success { counted(exchange, 500, &code, status) } else { exchange };
    };
    match failure.status() {
        Some(counted_as) => counted(exchange, counted_as, &code, status),
        None => Exchange {
            unread_status: Some(status),
            ..Exchange::new(TransportResult::Aborted, exchange.started_ms, exchange.duration_ms)
        }
        .with_detail(format_args!("the credentials were refused: {code}")),
    }
}

/// Replaces the status of a response. The detail states the original status.
fn counted(mut exchange: Exchange, counted_as: u16, code: &str, sent: u16) -> Exchange {
    if counted_as == sent {
        return exchange;
    }
    if let TransportResult::Answered { status, .. } = &mut exchange.result {
        *status = counted_as;
    }
    exchange.with_detail(format_args!("{code}, received with status {sent}"))
}

/// Returns the failure that a response with a success status reports; `None` if the service
/// accepted the event.
fn failure_in_success(
    service: AwsService,
    headers: &[(String, String)],
    body: &[u8],
) -> Option<(Option<AwsFailure>, String)> {
    let receipt = match service {
        AwsService::Lambda => {
            return header(headers, FUNCTION_ERROR).map(|kind| {
                (Some(AwsFailure::Function), format!("the function failed ({})", code_of(kind)))
            });
        }
        AwsService::EventBridge => "EventId",
        AwsService::Sqs | AwsService::Sns => "MessageId",
        AwsService::StepFunctions => "executionArn",
        AwsService::Kinesis => "SequenceNumber",
        AwsService::Firehose => "RecordId",
    };
    let answer: Json = serde_json::from_slice(body).unwrap_or_default();
    let is_of_bus = service == AwsService::EventBridge;
    let entry = if is_of_bus { &answer["Entries"][0] } else { &answer };
    if let Some(code) = entry["ErrorCode"].as_str().map(code_of).filter(|code| !code.is_empty()) {
        return Some((failure_of(&code), code));
    }
    let is_in_xml = || {
        let element = format!("</{receipt}>");
        body.windows(element.len()).any(|window| window == element.as_bytes())
    };
    let is_taken =
        if service == AwsService::Sns { is_in_xml() } else { entry[receipt].is_string() };
    // Without this member, the event may be lost: another server responded, or the response was
    // cut.
    (!is_taken).then(|| (Some(AwsFailure::Unavailable), format!("the response has no {receipt}")))
}

/// Finds an error code in the headers, or in the body as JSON or XML.
fn error_code(headers: &[(String, String)], body: &[u8]) -> Option<String> {
    let of_header = header(headers, ERROR_TYPE).map(code_of).filter(|code| !code.is_empty());
    let of_json = || {
        let answer: Json = serde_json::from_slice(body).ok()?;
        ["__type", "code", "Code"]
            .into_iter()
            .find_map(|name| Some(code_of(answer[name].as_str()?)))
    };
    // The second form is for JSON that was too long and was cut, so it cannot be parsed. Without
    // the code, throttling with status 400 would count as 400, which is never retried by default.
    let of_text = || {
        let text = String::from_utf8_lossy(body);
        [("<Code>", "</Code>"), ("\"__type\":\"", "\"")].into_iter().find_map(|(begin, end)| {
            let (code, _) = text.split_once(begin)?.1.split_once(end)?;
            Some(code_of(code))
        })
    };
    let of_body = || of_json().or_else(of_text).filter(|code| !code.is_empty());
    of_header.or_else(of_body)
}

/// Removes the namespace and the URL from an error code:
/// - `com.amazonaws.sqs#QueueDoesNotExist` becomes `QueueDoesNotExist`
/// - `AWS.SimpleQueueService.NonExistentQueue` becomes `NonExistentQueue`
/// - `ResourceNotFoundException:http://…` becomes `ResourceNotFoundException`
fn code_of(text: &str) -> String {
    let code = text.rsplit('#').next().unwrap_or_default();
    let code = code.split([':', ';']).next().unwrap_or_default();
    let code = code.rsplit('.').next().unwrap_or_default().trim();
    let is_of_code =
        |character: &char| character.is_ascii_alphanumeric() || "-_".contains(*character);
    code.chars().take_while(is_of_code).take(CODE_MAX_BYTES).collect()
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let found = headers.iter().find(|(listed, _)| listed.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}
