//! Formats texts about unreadable replay ledgers, for the commands and the console.

use deadletters::replay::UnreadableLedger;

use crate::terminal::text;

/// Describes the replay jobs that cannot be shown, with the reason and advice; `None` if all are
/// shown.
pub(crate) fn not_shown(ledgers: &[UnreadableLedger]) -> Option<String> {
    let first = ledgers.first()?;
    let jobs = match ledgers.len() {
        1 => format!("the replay job {}", first.job),
        count => format!("{count} replay jobs, for example {}", first.job),
    };
    let folder = &first.folder;
    let advice = "update lastmile, or move the folder";
    Some(text::line(&format!("not shown: {jobs}: {first}; {advice} {folder} to another place")))
}

/// Explains why dead letters are not replayed if an unreadable ledger may record that they were
/// already sent.
pub(crate) fn refusal(ledger: &UnreadableLedger) -> String {
    let folder = &ledger.folder;
    text::line(&format!(
        "{ledger}: the job may have sent some of these dead letters; update lastmile, or, if the \
         job has sent none of them, move the folder {folder} to another place"
    ))
}

/// Describes dismissals that cannot be read, and whose dead letters therefore count as open; `None`
/// if all can be read.
pub(crate) fn dismissals_not_read(keys: &[String]) -> Option<String> {
    let first = text::line(keys.first()?);
    let records = text::counted(keys.len() as u64, "record");
    Some(format!(
        "{records} of dismissals cannot be read, for example {first}; their dead letters count as \
         open"
    ))
}
