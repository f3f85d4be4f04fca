//! The record of a change: its author and reason, in the metadata of every object that it writes.
//!
//! Separate because `apply`, `rollback` and `subscriptions delete` write the same record, and
//! `subscriptions history` shows it. STS identifies the author, because every caller may use it and
//! its client is linked anyway. The user name of the machine would often be that of a build server.
//! If STS does not respond, the change is made without an author.

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

/// The timeout of STS. The name is not worth a longer wait.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest message, in characters. A character has at most four bytes, which are twelve when
/// percent-encoded, and all metadata of an object has at most 2 KB.
const MESSAGE_MAX_CHARACTERS: usize = 140;
/// The names of the metadata.
const BY: &str = "by";
const MESSAGE: &str = "message";

/// The options of commands that record a change.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The reason for the change, for the history of the topic
    #[arg(short, long, value_name = "TEXT", value_parser = message)]
    message: Option<String>,
}

/// The author of a change and the reason for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeRecord {
    /// The ARN of the caller; `None` if it is unknown.
    pub(crate) by: Option<String>,
    /// The reason, if one is given.
    pub(crate) message: Option<String>,
}

impl RecordArgs {
    /// The record of a change that is made now. A folder stores no record.
    pub(crate) async fn record(&self, location: &Location) -> ChangeRecord {
        let message = self.message.clone();
        if let Location::Folder(_) = location {
            if message.is_some() {
                note("a folder keeps no history: --message is not stored");
            }
            return ChangeRecord::default();
        }
        let by = caller().await;
        if let Err(problem) = &by {
            note(format_args!(
                "the history will not show who makes this change: {}",
                chain(problem)
            ));
        }
        ChangeRecord { by: by.ok(), message }
    }
}

impl ChangeRecord {
    /// Reads the record from the metadata of an object. Objects of other programs may have none.
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

/// Parses a message. Leading and trailing space is removed, as in any header.
fn message(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("a reason is expected".to_owned()),
        count if count > MESSAGE_MAX_CHARACTERS => Err(format!(
            "it has {count} characters; a message has at most {MESSAGE_MAX_CHARACTERS}"
        )),
        _ => Ok(text.to_owned()),
    }
}

/// The ARN of the AWS caller.
async fn caller() -> anyhow::Result<String> {
    let timeouts =
        TimeoutConfig::builder().connect_timeout(TIMEOUT).operation_timeout(TIMEOUT).build();
    let config = Builder::from(&stack::aws().await).timeout_config(timeouts);
    let sts = Client::from_conf(config.retry_config(RetryConfig::disabled()).build());
    let answer = sts.get_caller_identity().send().await;
    let answer =
        answer.map_err(|error| aws_error(&error)).context("STS does not name the caller")?;
    answer.arn.context("STS does not name the caller")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_some_text_and_fits_beside_the_name_of_its_author() {
        let longest = "\u{1f980}".repeat(MESSAGE_MAX_CHARACTERS);
        for (text, expected) in [
            (" why ", Ok("why".to_owned())),
            ("  ", Err("a reason is expected".to_owned())),
            (&longest, Ok(longest.clone())),
        ] {
            assert_eq!(message(text), expected);
        }
        assert!(message(&format!("{longest}x")).is_err());
        // Each character is three times as many bytes, and an ARN of a session has at most 200 characters.
        let encoded = longest.len() * 3 + 200 + BY.len() + MESSAGE.len();
        assert!(encoded <= adapters::storage::METADATA_MAX_BYTES, "{encoded}");
    }
}
