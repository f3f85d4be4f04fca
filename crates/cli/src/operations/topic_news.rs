//! Notifies the processes of a stack of changed topics, so that they need not wait for their
//! listing.
//!
//! The notification is a hint, on which nothing depends. A failure is only printed as a note.

use adapters::machine::Machine;
use adapters::table::DynamoTable;
use delivery::delivery::health::news::{NEWS_MAX, News};
use delivery::delivery::health::shared::Document as _;
use delivery::ports::Clock as _;
use delivery::subscription::name::TopicName;
use delivery::table::{Expected, Table as _};
use futures::stream::{self, StreamExt as _};

use crate::operations::stack::{self, Stack};
use crate::terminal::advice::chain;
use crate::terminal::output::note;
use crate::terminal::text;

/// Half of the news that a process reads, because news about destinations needs room too.
const TOLD_MAX: usize = NEWS_MAX as usize / 2;
/// The most notifications that are written at once.
const WRITES_AT_ONCE: usize = 16;

/// Sends notifications for these topics, if the stack is known.
pub(crate) async fn tell(stack: Option<&Stack>, topics: &[TopicName]) {
    let Some(stack) = stack.filter(|_| !topics.is_empty()) else { return };
    if let Err(problem) = tell_all(stack, topics).await {
        note(text::line(&format!(
            "functions were not told of this change; they find it when they list the topics: within 30 seconds up to \
             1,000 topics, within five minutes up to 10,000: {}",
            chain(&problem)
        )));
    }
}

async fn tell_all(stack: &Stack, topics: &[TopicName]) -> anyhow::Result<()> {
    let table = DynamoTable::new(&stack::aws().await, stack.output("TableName")?.to_owned());
    let now_ms = Machine.now_ms();
    let tell = async |topic: &TopicName| {
        let news = News::of_topic(topic, now_ms);
        table.replace(&news.item(), &news.entry(), Expected::Anything, now_ms).await
    };
    let told = stream::iter(topics.iter().take(TOLD_MAX)).map(tell);
    let mut told = told.buffer_unordered(WRITES_AT_ONCE);
    while let Some(told) = told.next().await {
        told?;
    }
    Ok(())
}
