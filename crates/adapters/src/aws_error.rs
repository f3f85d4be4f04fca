//! Describes an error of an AWS client in a sentence for people.
//!
//! Separate from [`crate::error_words`] because every AWS client has its own error types, and most
//! contain the response of the service.
//!
//! Gives no advice, because the right advice depends on the reader.

use std::error::Error;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};

use crate::error_words::cause_words;

/// Describes an error as `Code: message`, as the service reported it. If the service reported
/// neither a code nor a message, describes the cause of the failure.
pub fn sentence<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E>) -> String {
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => without_answer(error),
    }
}

/// Describes the error of a response that ended before it was complete.
pub fn interrupted(error: &(dyn Error + 'static)) -> String {
    format!("the response ended early: {}", cause_words(error))
}

fn without_answer<E: Error + 'static>(error: &SdkError<E>) -> String {
    if let Some(response) = error.raw_response() {
        return format!("the service responded with status {}", response.status().as_u16());
    }
    let is_late = matches!(error, SdkError::TimeoutError(_))
        || matches!(error, SdkError::DispatchFailure(failure) if failure.is_timeout());
    let is_cut = matches!(error, SdkError::DispatchFailure(failure) if failure.is_io());
    match cause_words(error) {
        _ if is_late => "there was no response in time".to_owned(),
        root if is_cut => format!("no connection: {root}"),
        root => root,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::primitives::SdkBody;
    use aws_sdk_sqs::config::http::HttpResponse;
    use aws_sdk_sqs::error::{ConnectorError, ErrorMetadata};
    use aws_sdk_sqs::operation::send_message::SendMessageError;

    use super::*;

    type Failure = SdkError<SendMessageError>;

    fn io() -> std::io::Error {
        std::io::Error::from_raw_os_error(111)
    }

    #[test]
    fn no_error_shows_the_structures_of_the_sdk() {
        let failures = [
            (
                Failure::dispatch_failure(ConnectorError::io(io().into())),
                "no connection: connection refused",
            ),
            (Failure::timeout_error(io()), "there was no response in time"),
            (
                Failure::dispatch_failure(ConnectorError::timeout(io().into())),
                "there was no response in time",
            ),
            (
                Failure::construction_failure("Invalid Configuration: Missing Region"),
                "Invalid Configuration: Missing Region",
            ),
        ];
        for (failure, expected) in failures {
            assert_eq!(sentence(&failure), expected);
        }
    }

    #[test]
    fn an_answer_that_ended_early_says_so_and_why() {
        assert_eq!(interrupted(&io()), "the response ended early: connection refused");
    }

    #[test]
    fn a_service_is_quoted_with_its_code_and_a_bare_status_is_named() {
        let answered = |meta: ErrorMetadata| {
            let status = 403_u16.try_into().expect("a status");
            let response = HttpResponse::new(status, SdkBody::empty());
            sentence(&Failure::service_error(SendMessageError::generic(meta), response))
        };
        let meta = ErrorMetadata::builder().code("AccessDenied").message("not you").build();
        assert_eq!(answered(meta), "AccessDenied: not you");
        assert_eq!(
            answered(ErrorMetadata::builder().build()),
            "the service responded with status 403"
        );
    }
}
