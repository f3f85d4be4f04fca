//! Evaluates a function's partial batch response: which messages are done.
//!
//! Separate because the evaluation is a rule of Lambda, and pure.
//!
//! Promises: a message is done only if the response is valid. An empty or unknown identifier fails
//! the whole batch. <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::collections::HashSet;

use aws_lambda_events::event::sqs::SqsBatchResponse;
use aws_sdk_sqs::types::Message;

/// Returns the messages that are done, which SQS must not redeliver.
///
/// # Errors
/// Fails if the response has an empty identifier, or one of another batch. No message is done then.
pub(super) fn done<'a>(
    messages: &'a [Message],
    response: &SqsBatchResponse,
) -> anyhow::Result<Vec<&'a Message>> {
    let known: HashSet<&str> = messages.iter().filter_map(Message::message_id).collect();
    let failures = response.batch_item_failures.iter();
    let failed: HashSet<&str> = failures.map(|failure| failure.item_identifier.as_str()).collect();
    if let Some(unknown) =
        failed.iter().find(|identifier| identifier.is_empty() || !known.contains(**identifier))
    {
        anyhow::bail!("the response names the message {unknown:?}, which is not in the batch");
    }
    let is_done = |message: &&Message| message.message_id().is_some_and(|id| !failed.contains(id));
    Ok(messages.iter().filter(is_done).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids_done(failed: &[&str]) -> Option<Vec<String>> {
        let messages = ["one", "two", "three"].map(|id| Message::builder().message_id(id).build());
        let mut response = SqsBatchResponse::default();
        response.set_failures(failed.iter().copied());
        let done = done(&messages, &response).ok()?;
        Some(done.iter().filter_map(|message| message.message_id.clone()).collect())
    }

    #[test]
    fn messages_that_are_not_named_as_failed_are_done() {
        assert_eq!(ids_done(&[]).as_deref(), Some(&["one", "two", "three"].map(str::to_owned)[..]));
        assert_eq!(
            ids_done(&["two", "two"]).as_deref(),
            Some(&["one", "three"].map(str::to_owned)[..])
        );
        assert_eq!(ids_done(&["one", "two", "three"]).as_deref(), Some(&[][..]));
    }

    #[test]
    fn an_empty_or_unknown_identifier_fails_the_whole_batch() {
        assert_eq!(ids_done(&[""]), None);
        assert_eq!(ids_done(&["one", "four"]), None);
    }
}
