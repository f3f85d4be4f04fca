//! Formats the error of a command for people: what failed, why, and what to do.
//!
//! Separate because most failures come from AWS, in any command. A description of an AWS error
//! begins with its code ([`adapters::aws_error`]), and each code has one piece of advice.

use adapters::aws_error::sentence;
use adapters::error_words::chain_words;
use anyhow::anyhow;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};

/// Prefixes of the AWS error codes for denied access.
const DENIALS: &[&str] = &["AccessDenied", "AllAccessDisabled", "AuthorizationError"];

/// Advice for AWS errors, by the prefixes of their descriptions.
const ADVICE: [(&[&str], &str); 10] = [
    (
        &["ExpiredToken", "RequestExpired", "TokenRefreshRequired"],
        "the credentials have expired; renew them, for example with `aws sso login`",
    ),
    (
        &[
            "InvalidClientTokenId",
            "UnrecognizedClientException",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
        ],
        "AWS does not accept these credentials: check AWS_PROFILE, or AWS_ACCESS_KEY_ID, \
         AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    ),
    (
        DENIALS,
        "these credentials lack a permission: use other credentials (AWS_PROFILE), or request the \
         permission",
    ),
    (
        &["NoSuchBucket"],
        "the bucket does not exist: check its name, and the account of the credentials \
         (AWS_PROFILE)",
    ),
    (
        &["ValidationError"],
        "check the name of the stack, its region (AWS_REGION) and its account (AWS_PROFILE)",
    ),
    (&["PermanentRedirect"], "the bucket is in another region: set AWS_REGION to that region"),
    (
        &["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"],
        "the queue does not exist: check its URL and its region, or use --stack to find the queues \
         of a deployment",
    ),
    (
        &["Invalid Configuration: Missing Region", "A region must be set"],
        "no AWS region is set: set AWS_REGION, or a region in the profile (AWS_PROFILE)",
    ),
    (
        &["no credentials found", "no providers in chain provided credentials"],
        "no AWS credentials were found: set AWS_PROFILE, or log in with `aws sso login`",
    ),
    (
        &["no connection:", "there was no response in time"],
        "check the network, and AWS_ENDPOINT_URL if it is set",
    ),
];

/// Converts an error of an AWS client to an error of a command.
pub(crate) fn aws_error<E>(error: &SdkError<E>) -> anyhow::Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    anyhow!(sentence(error))
}

/// Returns true if AWS denied access, because the credentials lack a permission.
pub(crate) fn is_denied(error: &anyhow::Error) -> bool {
    let begins = |text: &str| DENIALS.iter().any(|begin| text.starts_with(begin));
    error.chain().any(|cause| begins(&cause.to_string()))
}

/// Joins an error and its causes with colons. Omits details of the operating system and of
/// libraries.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    chain_words(error.as_ref()).join(": ")
}

/// Formats an error with its causes, and with advice on a second line if there is any.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let said = chain_words(error.as_ref());
    let chain = said.join(": ");
    let advice = ADVICE.iter().find(|(beginnings, _)| {
        let is_said = |text: &String| beginnings.iter().any(|begin| text.starts_with(begin));
        said.iter().any(is_said)
    });
    // Do not repeat advice that the error already contains.
    match advice {
        Some((_, advice)) if !chain.contains(advice) => format!("{chain}\n  {advice}"),
        Some(_) | None => chain,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_known_failure_has_advice_below_its_whole_chain_and_another_has_none() {
        let failure = |text: &str| {
            let error = Err::<(), _>(anyhow!(text.to_owned())).context("it cannot be read");
            describe(&error.unwrap_err())
        };
        for (text, advice) in [
            ("ExpiredToken: The provided token has expired.", "aws sso login"),
            ("ExpiredTokenException: expired", "aws sso login"),
            ("InvalidAccessKeyId: it does not exist", "AWS_PROFILE"),
            ("AccessDenied: not you", "request the permission"),
            ("AccessDeniedException: not you", "request the permission"),
            ("NoSuchBucket: none", "check its name"),
            ("AWS.SimpleQueueService.NonExistentQueue: none", "--stack"),
            ("Invalid Configuration: Missing Region", "AWS_REGION"),
            ("no connection: connection refused", "AWS_ENDPOINT_URL"),
        ] {
            let shown = failure(text);
            let (chain, below) = shown.split_once("\n  ").expect("there is advice");
            assert_eq!(chain, format!("it cannot be read: {text}"));
            assert!(below.contains(advice), "{shown}");
        }
        assert_eq!(failure("the file is empty"), "it cannot be read: the file is empty");
    }
}
