//! Records the author and the reason of a change, in the metadata of every object that the change
//! writes.
//!
//! Separate because `apply`, `rollback` and `subscriptions delete` write the same record, and
//! `subscriptions history` shows it. The author is the ARN that STS returns. Every caller may use
//! STS, and this program contains the STS client anyway. The user name on the machine would often
//! be that of a build server. If STS does not respond, the change is made without an author.

use std::time::Duration;

use adapters::live_topics::Location;
use adapters::storage::Metadata;
use anyhow::Context as _;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_sts::Client;
use aws_sdk_sts::config::Builder;

use crate::operations::stack;
use crate::terminal::advice::aws_error;
use crate::terminal::advice::chain;
use crate::terminal::output::note;

/// The timeout of the request to STS. Without a response, the change is made without its author's
/// name.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum length of a message, in characters. One character needs up to twelve bytes: four in
/// UTF-8, each percent-encoded as three. S3 allows 2 KB for all metadata of an object.
const MESSAGE_MAX_CHARACTERS: usize = 140;
/// The name under which the author is stored in the metadata.
const BY: &str = "by";
/// The name under which the message is stored in the metadata.
const MESSAGE: &str = "message";

/// The options of commands that record a change.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Reason for the change, for the history of the topic
    #[arg(short, long, value_name = "TEXT", value_parser = message)]
    message: Option<String>,
}

/// The author of a change of subscriptions, and the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeRecord {
    /// The ARN of the AWS caller who made the change; `None` if it is unknown.
    pub(crate) by: Option<String>,
    /// The reason from `--message`, if given.
    pub(crate) message: Option<String>,
}

impl RecordArgs {
    /// Creates the record of a change that is made now. A record for a folder is empty, because
    /// files have no metadata.
    pub(crate) async fn record(&self, location: &Location) -> ChangeRecord {
        let message = self.message.clone();
        if let Location::Folder(_) = location {
            if message.is_some() {
                note("a folder has no history, so --message is not stored");
            }
            return ChangeRecord::default();
        }
        let by = caller().await;
        if let Err(problem) = &by {
            note(format_args!(
                "the history will not contain the author of this change: {}",
                chain(problem)
            ));
        }
        ChangeRecord { by: by.ok(), message }
    }
}

impl ChangeRecord {
    /// Reads the record from the metadata of an object. Objects that other programs wrote may have
    /// none.
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let value = |name: &str| metadata.get(name).cloned();
        Self { by: value(BY), message: value(MESSAGE) }
    }

    pub(crate) fn metadata(&self) -> Metadata {
        let all = [(BY, &self.by), (MESSAGE, &self.message)];
        all.into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect()
    }
}

/// Parses the value of `--message`. Leading and trailing white space is removed, as in any HTTP
/// header.
fn message(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("the message is empty".to_owned()),
        count if count > MESSAGE_MAX_CHARACTERS => Err(format!(
            "the message has {count} characters; the limit is {MESSAGE_MAX_CHARACTERS}"
        )),
        _ => Ok(text.to_owned()),
    }
}

/// Requests the ARN of the AWS caller from STS.
async fn caller() -> anyhow::Result<String> {
    let timeouts =
        TimeoutConfig::builder().connect_timeout(TIMEOUT).operation_timeout(TIMEOUT).build();
    let config = Builder::from(&stack::aws().await).timeout_config(timeouts);
    let sts = Client::from_conf(config.retry_config(RetryConfig::disabled()).build());
    let answer = sts.get_caller_identity().send().await;
    let answer = answer
        .map_err(|error| aws_error(&error))
        .context("STS did not return the identity of the caller")?;
    answer.arn.context("STS did not return the identity of the caller")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_some_text_and_fits_beside_the_name_of_its_author() {
        let longest = "\u{1f980}".repeat(MESSAGE_MAX_CHARACTERS);
        for (text, expected) in [
            (" why ", Ok("why".to_owned())),
            ("  ", Err("the message is empty".to_owned())),
            (&longest, Ok(longest.clone())),
        ] {
            assert_eq!(message(text), expected);
        }
        assert!(message(&format!("{longest}x")).is_err());
        // Percent-encoding triples the bytes of a character. The ARN of a session has at most 200
        // characters.
        let encoded = longest.len() * 3 + 200 + BY.len() + MESSAGE.len();
        assert!(encoded <= adapters::storage::METADATA_MAX_BYTES, "{encoded}");
    }
}
